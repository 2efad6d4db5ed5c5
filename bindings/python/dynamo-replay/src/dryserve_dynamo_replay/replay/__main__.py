"""``python -m dynamo.replay``: the command line that ai-dynamo had until 1.4."""

import sys

from dryserve.replay.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
