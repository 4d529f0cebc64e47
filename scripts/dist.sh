#!/usr/bin/env bash
# Makes what is published of a version, in target/dist:
#
#   tare-VERSION-linux-ARCH         one static file for any Linux of that architecture: it unpacks tare and its agent into
#                                   tare's cache when it is first started (crates/launcher)
#   tare-agent-VERSION-linux-ARCH   the agent by itself, for hosts that tare of another architecture reaches
#   tare-VERSION.cdx.json           what it is made of (SBOM, CycloneDX)
#   SHA256SUMS
#
#   scripts/dist.sh [ARCH...]       for x86_64 and aarch64, or for those named
#
# Needs what `scripts/setup.sh dist` installs. The same tree and the same compilers make the same files, whatever the folder.
set -euo pipefail
cd "$(dirname "$0")/.."

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
dist=$target_dir/dist
export CARGO_TARGET_DIR=$target_dir
# shellcheck source=scripts/package.sh
. scripts/package.sh
# A release that is not one file of at most so many bytes is a mistake.
at_most=15000000
rm -rf "$dist"
mkdir -p "$dist"

# static FILE: fails where a program asks for a dynamic loader.
static() {
    ! LC_ALL=C readelf --program-headers "$1" | grep -q INTERP || {
        echo "dist: $1 asks for a dynamic loader, so it would not start on every host" >&2
        exit 1
    }
}

# build ARCH: the two programs of one architecture.
build() (
    TARGET_ARCH=$1
    # shellcheck source=scripts/cross.sh
    . scripts/cross.sh
    use_musl
    # Paths of this machine are in no program, whether Rust or C wrote them there.
    local cargo_home=${CARGO_HOME:-$HOME/.cargo} c_flags=CFLAGS_${target//-/_} sysroot
    sysroot=$(rustc --print sysroot)
    export RUSTFLAGS="--remap-path-prefix=$PWD=tare --remap-path-prefix=$cargo_home=cargo --remap-path-prefix=$sysroot=rust"
    export "$c_flags=${!c_flags-} -ffile-prefix-map=$cargo_home=cargo -ffile-prefix-map=$target_dir=target"
    cargo build --release --locked --target "$target" --package tare --package tare-launcher
    local built=$target_dir/$target/release agent=$dist/tare-agent-$version-linux-$1 program=$dist/tare-$version-linux-$1 parts=$dist/parts
    mkdir "$parts"
    for part in tare agent tare-launcher; do
        static "$built/$part"
        "${OBJCOPY:-objcopy}" --strip-all "$built/$part" "$parts/$part"
    done
    cp "$parts/agent" "$agent"
    echo "$version-$(cat "$parts/tare" "$parts/agent" | sha256sum | head -c 16)" >"$parts/name"
    xz -9 --keep "$parts/tare" "$parts/agent"
    # What crates/launcher reads. The kernel does not load these sections.
    "${OBJCOPY:-objcopy}" --add-section ".tare.name=$parts/name" --add-section ".tare.program=$parts/tare.xz" \
        --add-section ".tare.agent=$parts/agent.xz" "$parts/tare-launcher" "$program"
    rm -r "$parts"
    (($(stat --format=%s "$program") <= at_most)) || {
        echo "dist: $program has more than $at_most bytes" >&2
        exit 1
    }
    echo "$program"
)

[[ $# -gt 0 ]] || set -- x86_64 aarch64
for arch; do build "$arch"; done
sbom=tare-$version.cdx
cargo cyclonedx --quiet --format json --manifest-path crates/tare/Cargo.toml --target all --override-filename "$sbom"
mv "crates/tare/$sbom.json" "$dist/"
find crates xtask -name "$sbom.json" -delete
(cd "$dist" && sha256sum -- * >SHA256SUMS)
echo "$dist"
