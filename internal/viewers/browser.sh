#!/usr/bin/env bash
# Says where a browser is: the distribution's, or that which a variable names. It is
# installed if there is none.
# Usage: browser.sh DIR PACKAGE VARIABLE [COMMAND...], with commands that it may have
# besides that of the package's name
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: browser.sh DIR PACKAGE VARIABLE [COMMAND...]" >&2; exit 2; }
dir=$1 package=$2 variable=$3
shift 3
mkdir -p "$dir"
exec 9>"$dir/browser.lock"
flock 9 # tests of several packages may come at the same time

browser=${!variable:-}
for name in "$package" "$@"; do
	browser=${browser:-$(command -v "$name" || true)}
done
if [ -z "$browser" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "installing $package" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get -o DPkg::Lock::Timeout=300 update -qq >&2
	apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$package" fonts-dejavu-core >&2
	browser=$(command -v "$package" || true)
fi
if ! command -v "$browser" >/dev/null; then
	echo "no browser${browser:+ at $browser}: install $package, or name one with $variable" >&2
	exit 1
fi
command -v "$browser"
