#!/usr/bin/env bash
# Makes target/deb/tare_VERSION_ARCH.deb of what `make build` built. Needs dpkg-deb, which every Debian has.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/package.sh
. scripts/package.sh

target_dir=${CARGO_TARGET_DIR:-target}
work=$target_dir/deb
root=$work/root
arch=$(dpkg --print-architecture)

rm -rf "$root"
lay_out "$root"

maintainer='The tare authors <tare@localhost>'
documents=$root/usr/share/doc/tare
cat >"$documents/copyright" <<COPYRIGHT
Copyright: 2026 The tare authors
License: Apache-2.0

On Debian systems the text of the Apache License, version 2.0, is in
/usr/share/common-licenses/Apache-2.0.
COPYRIGHT
printf 'tare (%s) unstable; urgency=medium\n\n  * What changed is in CHANGELOG.md, beside this file.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$documents/changelog.gz"
install -d "$root/usr/share/lintian/overrides"
cat >"$root/usr/share/lintian/overrides/tare" <<OVERRIDES
# The project has no address of its own yet.
tare: bogus-mail-host Maintainer tare@localhost
tare: bogus-mail-host-in-debian-changelog tare@localhost (for version $version) [usr/share/doc/tare/changelog.gz:1]
# One static program that runs in any guest: it needs no library.
tare: shared-library-lacks-prerequisites [usr/lib/tare/tare-agent]
OVERRIDES

# The newest symbol version that the program asks of glibc; the agent is static.
glibc=$(LC_ALL=C readelf --version-info "$target_dir/release/tare" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n1)

install -d "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: tare
Version: $version
Architecture: $arch
Maintainer: $maintainer
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
# Seconds in place of half a minute, for a sixth more bytes.
dpkg-deb -Zgzip --build --root-owner-group "$root" "$work/tare_${version}_$arch.deb" >/dev/null
echo "$work/tare_${version}_$arch.deb"
