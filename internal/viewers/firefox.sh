#!/usr/bin/env bash
# Says where Firefox is: the distribution's, or that which FIREFOX names. It is
# installed if there is none.
# Usage: firefox.sh DIR
set -euo pipefail
dir=${1:?usage: firefox.sh DIR}
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9 # tests of several packages may come at the same time

browser=${FIREFOX:-$(command -v firefox-esr || command -v firefox || true)}
if [ -z "$browser" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "installing firefox-esr" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get -o DPkg::Lock::Timeout=300 update -qq >&2
	apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends firefox-esr fonts-dejavu-core >&2
	browser=$(command -v firefox-esr || true)
fi
if ! command -v "$browser" >/dev/null; then
	echo "no Firefox${browser:+ at $browser}: install firefox-esr, or name one with FIREFOX" >&2
	exit 1
fi
command -v "$browser"
