#!/usr/bin/env bash
# Installs the reference (ai-dynamo 1.6.1) into a virtual environment, to be
# asked as a black box by `make oracle` and `make bench`, and to be served by
# `make test`. Versions are pinned in requirements.txt. What is there already is
# kept.
# Usage: setup.sh DIR
set -euo pipefail

dir=${1:?usage: setup.sh DIR}
pinned=$(dirname "$0")/requirements.txt
if [ -x "$dir/bin/python" ] && cmp -s "$pinned" "$dir/requirements.txt"; then
	exit 0
fi
echo "setting up the reference in $dir (about 230 MB of packages)" >&2
[ -x "$dir/bin/python" ] || "${PYTHON:-python3}" -m venv "$dir"
# Not what the packages ask for: some of that exists for GPU machines only.
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r "$pinned"
"$dir/bin/python" -c 'import dynamo.replay, dynamo.frontend'
cp "$pinned" "$dir/requirements.txt"
