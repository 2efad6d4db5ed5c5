#!/usr/bin/env bash
# Installs the reference (ai-dynamo 1.6.1) into a virtual environment, to be
# asked as a black box by `make oracle` and `make bench`.
# Usage: setup.sh DIR
set -euo pipefail

dir=${1:?usage: setup.sh DIR}
if [ -x "$dir/bin/python" ] && "$dir/bin/python" -c 'import dynamo.replay' 2>/dev/null; then
	exit 0
fi
echo "setting up the reference in $dir (about 230 MB of packages)" >&2
python3 -m venv "$dir"
# Not its dependencies: replay needs only the few below, and some of the others
# exist for GPU machines only.
"$dir/bin/python" -m pip install --quiet --no-deps ai-dynamo==1.6.1 ai-dynamo-runtime==1.6.1
"$dir/bin/python" -m pip install --quiet 'pydantic<=2.13' uvloop msgspec pyzmq aiohttp httpx \
	pyyaml numpy transformers prometheus_client zstandard
"$dir/bin/python" -c 'import dynamo.replay'
