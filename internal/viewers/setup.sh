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
exec 9>"$dir/lock"
flock 9 # several tests may want the tools at the same time

browser=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
if [ -z "$browser" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "installing chromium" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get -o DPkg::Lock::Timeout=300 update -qq >&2
	apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2
	browser=$(command -v chromium || true)
fi
if ! command -v "$browser" >/dev/null; then
	echo "no browser${browser:+ at $browser}: install chromium, or name one with CHROMIUM" >&2
	exit 1
fi
echo "$browser" >"$dir/browser"

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
