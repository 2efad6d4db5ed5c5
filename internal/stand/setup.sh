#!/usr/bin/env bash
# Gets what tests of live workers run beside them: the reference with its frontend
# (internal/oracle/setup.sh), unless ORACLE_PYTHON names a Python that has it, and
# etcd and nats-server, built from the sources that servers/go.mod pins. What is
# there already is kept.
# Usage: setup.sh DIR
set -euo pipefail

dir=${1:?usage: setup.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
cd "$(dirname "$0")"

[ -n "${ORACLE_PYTHON:-}" ] || ../oracle/setup.sh "$dir"

if [ -x "$dir/bin/etcd" ] && [ -x "$dir/bin/nats-server" ] && cmp -s servers/go.sum "$dir/servers.sum"; then
	exit 0
fi
echo "building etcd and nats-server in $dir (a minute or two)" >&2
mkdir -p "$dir/bin"
cd servers
export CGO_ENABLED=0 GOFLAGS=-mod=readonly
"${GO:-go}" build -trimpath -ldflags '-s -w' -o "$dir/bin/etcd" go.etcd.io/etcd/server/v3
"${GO:-go}" build -trimpath -ldflags '-s -w' -o "$dir/bin/nats-server" github.com/nats-io/nats-server/v2
cp go.sum "$dir/servers.sum"
