#!/usr/bin/env bash
# Makes target/tarball/tare-VERSION-linux-ARCH.tar.gz and its SHA-256 beside it: tare as static programs, which run on any Linux
# of that architecture from wherever they are unpacked. Needs what `make build` built and what `scripts/setup.sh tarball` installs.
#
#   TARGET_ARCH=aarch64 scripts/tarball.sh   for another architecture than this machine's: x86_64 or aarch64
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/cross.sh
. scripts/cross.sh

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target_dir/tarball
built=$target_dir/$target

# SQLite asks for a C library's headers, which must be those of the one that it is linked with. What names the compiler is set for
# this build alone: what `make build` built is not built again for it.
(
    use_musl
    cargo build --release --target "$target" --package tare
)

# Not before: it sets the time of the last commit, upon whose change C is compiled again.
# shellcheck source=scripts/package.sh
. scripts/package.sh
name=tare-$version-linux-$arch
mkdir -p "$work/programs"
ln -f "$built/release/tare" "$work/programs/"
ln -f "$built/release/agent" "$work/programs/tare-agent"
for program in "$work"/programs/*; do
    if LC_ALL=C readelf --program-headers "$program" | grep -q INTERP; then
        echo "tarball: $program asks for a dynamic loader, so it would not start on every host" >&2
        exit 1
    fi
done

rm -rf "$work/root" "${work:?}/$name"
PROGRAMS=$work/programs lay_out "$work/root"
mv "$work/root/usr" "$work/$name"
archive=$name.tar.gz
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=ustar -cf - "$name" |
    gzip -9n >"$work/$archive"
rm -rf "$work/root" "$work/programs" "${work:?}/$name"
(cd "$work" && sha256sum "$archive" >"$archive.sha256")
echo "$work/$archive"
