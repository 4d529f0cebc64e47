#!/usr/bin/env bash
# Prints the command of a QEMU that emulates a network card with functions (SR-IOV: QEMU 8 or newer): this machine's, or
# that of Debian 13, extracted once into the cache and not installed. Prints nothing where neither can be had.
set -euo pipefail
umask 022

has_card() { "$@" -device igb,help 2>/dev/null | grep -q "^igb options"; }

if has_card qemu-system-x86_64; then
    echo qemu-system-x86_64
    exit
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tare/hosts
tree=$cache/qemu
# Modules of this machine's own QEMU are of another build.
command=(env "QEMU_MODULE_DIR=$tree/usr/lib/x86_64-linux-gnu/qemu" "$tree/usr/lib64/ld-linux-x86-64.so.2" --library-path "$tree/usr/lib/x86_64-linux-gnu:$tree/usr/lib/x86_64-linux-gnu/pulseaudio"
    "$tree/usr/bin/qemu-system-x86_64" -L "$tree/usr/share/qemu" -L "$tree/usr/share/seabios")
if ! has_card "${command[@]}"; then
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep -E '/debian/?$' | head -n1 || true)
    mkdir -p "$cache"
    rm -rf --one-file-system "$tree"
    mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Check-Date "false"' \
        --include=qemu-system-x86 trixie "$tree" "deb ${mirror:-http://deb.debian.org/debian} trixie main" >&2 || exit 0
fi
if has_card "${command[@]}"; then echo "${command[*]}"; fi
