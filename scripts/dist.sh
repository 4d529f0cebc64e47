#!/usr/bin/env bash
# Makes what is published of a version, in target/dist:
#
#   tare-VERSION-linux-ARCH         one static program with its agent inside, which runs on any Linux of that architecture
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
    cargo build --profile dist --locked --target "$target" --package tare
    local built=$target_dir/$target/dist agent=$dist/tare-agent-$version-linux-$1 program=$dist/tare-$version-linux-$1
    static "$built/tare"
    static "$built/agent"
    cp "$built/agent" "$agent"
    gzip -9n <"$agent" >"$dist/agent.gz"
    # What crates/image/src/packed.rs reads. The kernel does not load the section.
    "${OBJCOPY:-objcopy}" --add-section ".tare.agent=$dist/agent.gz" "$built/tare" "$program"
    rm "$dist/agent.gz"
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
