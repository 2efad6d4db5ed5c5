"""The functions of dynamo.replay, where ai-dynamo is not installed."""

from dryserve.replay import *  # noqa: F403
from dryserve.replay import __all__ as __all__
