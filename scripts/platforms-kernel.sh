#!/usr/bin/env bash
# Puts a kernel that virtual machines can boot into tare's cache: Debian's linux-image-cloud, unpacked and not installed.
#
#   scripts/platforms-kernel.sh           does nothing when there is one already
#   scripts/platforms-kernel.sh --newest  fetches the newest of the distribution's lists if that is not there yet
set -euo pipefail
# shellcheck source=scripts/apt.sh
. "$(dirname "$0")/apt.sh"

say() { printf 'platforms: %s\n' "$*" >&2; }

# shellcheck source=scripts/cache.sh
. "$(dirname "$0")/cache.sh"
kernel=$cache/kernel

have() {
    local image
    for image in "$kernel"/boot/vmlinuz-*; do
        [[ -f $image && -f $kernel/lib/modules/${image##*/vmlinuz-}/modules.builtin ]] && return
    done
    return 1
}

if [[ ${1:-} != --newest ]] && have; then
    exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    say "this is not Debian or Ubuntu: unpack any kernel with virtio into $kernel/boot/vmlinuz-RELEASE and"
    say "$kernel/lib/modules/RELEASE, or name one in the study: kernel = \"PATH\""
    exit 1
fi

# The package with the kernel is what the one without a version depends on.
machine=$(dpkg --print-architecture)
find_package() {
    local meta
    for meta in "linux-image-cloud-$machine" linux-image-virtual linux-image-kvm; do
        apt-cache depends --important "$meta" 2>/dev/null |
            sed -n 's/^ *|\?Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -n1 | grep . && return
    done
    return 1
}
package=$(find_package) || {
    # The lists of a new machine may be empty.
    [[ $EUID -eq 0 ]] && apt_get update
    package=$(find_package)
} || {
    say "no package of a kernel for virtual machines is available here; run apt-get update, or name a kernel in the"
    say "study: kernel = \"PATH\""
    exit 1
}
release=${package#linux-image-}
if [[ -f $kernel/boot/vmlinuz-$release && -f $kernel/lib/modules/$release/modules.builtin ]]; then
    exit 0
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/.kernel-XXXXXX")
trap 'rm -rf "$work"' EXIT
# Downloads are done by a user of apt's own, who may not enter directories of others.
chmod 755 "$work"
say "fetching $package"
(cd "$work" && apt-get download -qq "$package" 2>"$work/said") || {
    cat "$work/said" >&2
    say "cannot fetch $package"
    exit 1
}
dpkg-deb -x "$work"/*.deb "$work/root"

# Newer distributions have /usr/lib/modules, and keep modules of Ubuntu's in a package of their own.
modules=$work/root/lib/modules/$release
[[ -d $modules ]] || modules=$work/root/usr/lib/modules/$release
if [[ ! -d $modules/kernel ]] && apt-cache show "linux-modules-$release" >/dev/null 2>&1; then
    (cd "$work" && apt-get download -qq "linux-modules-$release" && dpkg-deb -x linux-modules-*.deb "$work/root")
fi
mkdir -p "$kernel/boot" "$kernel/lib/modules"
rm -rf "$kernel/lib/modules/$release"
mv "$modules" "$kernel/lib/modules/$release"
# The image comes last: who sees it finds the modules too.
mv "$work/root/boot/vmlinuz-$release" "$kernel/boot/"
say "kernel $release is in $kernel"
