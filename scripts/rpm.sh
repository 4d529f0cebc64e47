#!/usr/bin/env bash
# Makes target/rpm/tare-VERSION-1.ARCH.rpm of what `make build` built. Needs rpmbuild: on Debian, apt-get install rpm.
#
# The program asks for the glibc of the machine that built it: build on the oldest distribution that is to run it.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/package.sh
. scripts/package.sh
command -v rpmbuild >/dev/null || { echo "rpm: rpmbuild is not installed; on Debian: apt-get install rpm" >&2 && exit 1; }

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target_dir/rpm
root=$work/root

rm -rf "$work"
lay_out "$root"
# Where Fedora keeps licences.
mkdir -p "$root/usr/share/licenses/tare"
mv "$root/usr/share/doc/tare/copyright" "$root/usr/share/licenses/tare/LICENSE"

cat >"$work/tare.spec" <<SPEC
# The programs are built and stripped already.
%global __os_install_post %{nil}
%global debug_package %{nil}
%global _build_id_links none
# Seconds in place of half a minute, for a sixth more bytes.
%global _binary_payload w12.zstdio
Name: tare
Version: $version
Release: 1
Summary: Measure what an isolation layer weighs
License: Apache-2.0
Suggests: (runc or crun)
%description
The same work natively, in containers, sandboxes and virtual machines on your
own hosts, side by side in one study: how much slower, how many fit, how to
size, with confidence intervals and full disclosure in one offline report.
%install
cp -a "$root/." %{buildroot}/
%files
%dir /usr/share/licenses/tare
%dir /usr/share/doc/tare
%license /usr/share/licenses/tare/LICENSE
%doc /usr/share/doc/tare/CHANGELOG.md
/usr/bin/tare
/usr/lib/tare
/usr/share/tare
/usr/share/man/man1/*
/usr/share/bash-completion/completions/tare
/usr/share/zsh/site-functions/_tare
/usr/share/fish/vendor_completions.d/tare.fish
SPEC
rpmbuild --quiet --define "_topdir $work/build" --define "_rpmdir $work" --define 'use_source_date_epoch_as_buildtime 1' \
    --define 'clamp_mtime_to_source_date_epoch 1' --define '_buildhost localhost' --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
    -bb "$work/tare.spec"
ls "$work"/*.rpm
