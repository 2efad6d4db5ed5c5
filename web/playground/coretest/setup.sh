#!/usr/bin/env bash
# Gets the compiler that checks the types of the playground's core, as pinned in
# package-lock.json. What is there already is kept.
# Usage: setup.sh DIR
set -euo pipefail
dir=${1:?usage: setup.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
cd "$(dirname "$0")"
sum=$(cat package.json package-lock.json | cksum)
if [ "$(cat "$dir/node.stamp" 2>/dev/null || true)" != "$sum" ]; then
	cp package.json package-lock.json "$dir"
	(cd "$dir" && npm ci --silent --no-audit --no-fund) >&2
	echo "$sum" >"$dir/node.stamp"
fi
