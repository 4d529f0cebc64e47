#!/usr/bin/env bash
# Builds gVisor's runtime, for the platforms that want it. Does nothing when the pinned version is there.
#
# As root it goes to PREFIX/bin (default /usr/local); else to the user's cache, and the path is printed. Optional:
# where it cannot be had, it says why and ends with success.
set -euo pipefail

# The one place where the version is pinned.
version=v0.0.0-20260905035102-160fafc42237

say() { printf 'platforms-gvisor: %s\n' "$*" >&2; }

if [[ $EUID -eq 0 ]]; then
    bin=${PREFIX:-/usr/local}/bin
else
    bin=${XDG_CACHE_HOME:-$HOME/.cache}/tare/bin
fi
runtime=$bin/runsc

for there in "$runtime" "$(command -v runsc || true)"; do
    if [[ -x $there && $("$there" --version 2>/dev/null) == *"$version"* ]]; then
        exit 0
    fi
done
go=$(command -v go || true)
if [[ -z $go && -x /usr/local/go/bin/go ]]; then
    go=/usr/local/go/bin/go
fi
if [[ -z $go ]]; then
    say "there is no Go here to build gVisor with (on Debian: apt-get install golang); its arms will be skipped"
    exit 0
fi

say "building gVisor $version; this takes a minute or two"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The module itself carries no version: without -X it would call itself VERSION_MISSING.
if ! GOBIN=$work GOFLAGS='' CGO_ENABLED=0 "$go" install \
    -ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=$version" "gvisor.dev/gvisor/runsc@$version"; then
    say "it could not be built (see above; it needs Go's module proxy); its arms will be skipped"
    exit 0
fi
install -D -m 755 "$work/runsc" "$runtime"
say "installed $runtime"
if [[ $EUID -ne 0 ]]; then
    say "name it in a study by its path: runtime = \"$runtime\""
fi
