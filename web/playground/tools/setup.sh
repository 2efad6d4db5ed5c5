#!/usr/bin/env bash
# Installs what the page is built from, and tested with, into a directory, by
# the versions in package-lock.json. What is there already is kept.
# Usage: setup.sh DIR
set -euo pipefail
dir=${1:?usage: setup.sh DIR}
cd "$(dirname "$0")/.."
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 9>"$dir/lock"
flock 9 # tests of several packages may come at the same time
sum=$(cat package.json package-lock.json | cksum)
if [ ! -f "$dir/stamp" ] || [ "$(cat "$dir/stamp")" != "$sum" ]; then
	if ! command -v npm >/dev/null; then
		echo "no npm: the playground is built with Node, which has it" >&2
		exit 1
	fi
	cp package.json package-lock.json "$dir"
	(cd "$dir" && npm ci --silent --no-audit --no-fund) >&2
	echo "$sum" >"$dir/stamp"
fi
