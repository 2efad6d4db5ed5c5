#!/usr/bin/env bash
# Gets what the tests of this package look at pictures with: a browser with what
# drives it, and Perfetto's message definitions. Versions are pinned here, in
# package-lock.json and requirements.txt; the browser is the distribution's, or
# that which CHROMIUM names. What is there already is kept.
# Usage: setup.sh DIR
set -euo pipefail
dir=${1:?usage: setup.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 9>"$dir/lock"
flock 9 # tests of several packages may come at the same time
cd "$(dirname "$0")"

bash browser.sh "$dir" chromium CHROMIUM chromium-browser google-chrome >"$dir/browser"

# fresh NAME FILE... reports whether NAME was installed for files of this
# content; else their sum is what to note when it is.
fresh() {
	local stamp=$dir/$1.stamp
	shift
	sum=$(cat "$@" | cksum)
	[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]
}
if ! fresh node package.json package-lock.json; then
	cp package.json package-lock.json "$dir"
	(cd "$dir" && npm ci --silent --no-audit --no-fund) >&2
	echo "$sum" >"$dir/node.stamp"
fi
if ! fresh python requirements.txt; then
	python3 -m venv --clear "$dir/venv"
	"$dir/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.txt >&2
	echo "$sum" >"$dir/python.stamp"
fi
