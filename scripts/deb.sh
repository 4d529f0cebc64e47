#!/usr/bin/env bash
# Makes target/deb/tare_VERSION_ARCH.deb of what `make build` built. Needs dpkg-deb, which every Debian has.
set -euo pipefail
cd "$(dirname "$0")/.."

target_dir=${CARGO_TARGET_DIR:-target}
work=$target_dir/deb
root=$work/root
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n1)
arch=$(dpkg --print-architecture)

rm -rf "$root"
DESTDIR=$root PREFIX=/usr AGENT_FOLDER=/usr/lib/tare scripts/install.sh >/dev/null
find "$root/usr/share/man" -type f -exec gzip -9n {} +

# The newest symbol version that the program asks of glibc; the agent is static.
glibc=$(LC_ALL=C readelf --version-info "$target_dir/release/tare" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n1)

install -d "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: tare
Version: $version
Architecture: $arch
Maintainer: The tare authors <tare@localhost>
Section: utils
Priority: optional
Depends: libc6 (>= ${glibc#GLIBC_}), libgcc-s1
Suggests: runc | crun
Installed-Size: $(du -sk "$root" | cut -f1)
Description: measure what an isolation layer weighs
 The same work natively, in containers, sandboxes and virtual machines on your
 own hosts, side by side in one study: how much slower, how many fit, how to
 size, with confidence intervals and full disclosure in one offline report.
CONTROL
(cd "$root" && find usr -type f -exec md5sum {} +) >"$root/DEBIAN/md5sums"
dpkg-deb --build --root-owner-group "$root" "$work/tare_${version}_$arch.deb" >/dev/null
echo "$work/tare_${version}_$arch.deb"
