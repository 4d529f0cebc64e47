#!/usr/bin/env bash
# Builds govc, the client of vSphere's API, and vcsim, its simulator, for the tests of machines of vSphere, and says nothing where they are
# there. The library that both are made of is pinned, with its checksums, in scripts/vsphere/go.sum.
set -euo pipefail
cd "$(dirname "$0")/vsphere"

# Not among the linters: their folder is cleared when they change.
tools=${XDG_CACHE_HOME:-$HOME/.cache}/tare/vsphere
version=$(sed -n 's/^require github.com\/vmware\/govmomi //p' go.mod)
stamp=$(cat go.mod go.sum ./*/main.go | sha256sum | cut -d' ' -f1)
[[ $(cat "$tools/stamp" 2>/dev/null) != "$stamp" ]] || exit 0

# Where its makers' archive is unpacked, too.
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || {
    echo "vsphere: there is no Go here (https://go.dev/dl); the tests of machines of vSphere will be skipped" >&2
    exit 1
}
echo "vsphere: building govc and vcsim $version" >&2
mkdir -p "$tools"
GOBIN=$tools GOFLAGS=-mod=readonly go install -trimpath \
    -ldflags "-X github.com/vmware/govmomi/cli/flags.BuildVersion=$version" ./govc ./vcsim
echo "$stamp" >"$tools/stamp"
