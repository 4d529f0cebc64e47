#!/usr/bin/env bash
# Builds the disk of an ordinary host: a Debian with systemd, pure cgroup version 2, KVM and what tare's platforms need.
#
#   scripts/test-host-disk.sh bookworm|trixie [arm64]
#
# Prints the folder with disk.raw, vmlinuz, initrd and key. It is built once for each content of this script, release of
# Debian and architecture, into the cache; tare itself is not in it. Needs root, mmdebstrap and e2fsprogs; on a machine of
# another architecture also qemu-user-static. A host for arm64 has containers alone.
set -euo pipefail
umask 022
suite=${1:?usage: test-host-disk.sh bookworm|trixie [arm64]}
arch=${2:-amd64}
case $arch in
amd64) name=$suite ;;
arm64) name=arm64-$suite ;;
*) echo "test-host-disk: unknown architecture '$arch': amd64 or arm64" >&2 && exit 2 ;;
esac

say() { printf 'hosts: %s\n' "$*" >&2; }

cache=${XDG_CACHE_HOME:-$HOME/.cache}/tare/hosts
content=$(sha256sum <"$0" | cut -c1-16)
folder=$cache/$name-$content
if [[ -f $folder/disk.raw && -f $folder/key ]]; then
    echo "$folder"
    exit
fi

# The mirror that this machine's own apt uses, where it is a Debian.
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep -E '/debian/?$' | head -n1 || true)
mirror=${mirror:-http://deb.debian.org/debian}

packages=(
    # The system
    systemd systemd-sysv dbus dbus-user-session udev libpam-systemd "linux-image-$arch" initramfs-tools lz4 zstd openssh-server
    iproute2 nftables apparmor e2fsprogs kmod procps ca-certificates netbase iputils-ping psmisc strace file less
    sudo pciutils ethtool adduser uidmap
    # What runs guests
    runc crun
)
if [[ $arch == amd64 ]]; then
    packages+=(qemu-system-x86 qemu-utils lxc systemd-container libvirt-daemon-system libvirt-clients
        docker.io podman)
    # Debian 12 ships the file server of machines with QEMU, and Docker's command with its daemon.
    [[ $suite == bookworm ]] || packages+=(virtiofsd docker-cli)
fi

# Programs of another architecture are run by QEMU. Where the system does not do so already, the kernel learns how in a mount of
# this script's own, and forgets it with the last such mount, however this script ends.
runs_it=/proc/sys/fs/binfmt_misc/qemu-aarch64
if [[ $arch != "$(dpkg --print-architecture)" && ! -e $runs_it ]]; then
    [[ -n ${TARE_OWN_MOUNTS:-} ]] || TARE_OWN_MOUNTS=yes exec unshare --mount --propagation private "$0" "$@"
    mount -t binfmt_misc none "${runs_it%/*}"
    # A header of 64 bits, little-endian, executable or shared, machine 183. F: the emulator is opened here, not in the new root.
    magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    [[ -e $runs_it ]] || printf '%s' ":qemu-aarch64:M::$magic:$mask:/usr/bin/qemu-aarch64-static:F" >"${runs_it%/*}/register"
fi

mkdir -p "$cache"
# Older contents are of no use any more, and neither is what a script left that was killed.
find "$cache" -maxdepth 1 -name '.build-*' -mmin +60 -exec rm -rf --one-file-system {} +
find "$cache" -maxdepth 1 -name "$name-*" ! -name "$name-$content" -exec rm -rf {} +
work=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
# mmdebstrap's helper programs are other users.
chmod 755 "$work"
root=$work/root

say "building a Debian $suite for $arch (most of a minute, several where QEMU runs its programs; once)"
# The kernel's modules that boot it are named: what this machine has says nothing about the host to be emulated.
modules='mkdir -p "$1/etc/initramfs-tools/conf.d"
printf "MODULES=list\nCOMPRESS=lz4\n" >"$1/etc/initramfs-tools/conf.d/modules"
printf "virtio_pci\nvirtio_blk\next4\n" >"$1/etc/initramfs-tools/modules"'
mmdebstrap --quiet --mode=root --variant=minbase --architectures="$arch" \
    --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Check-Date "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --essential-hook="$modules" \
    --include="$(IFS=,; echo "${packages[*]}")" \
    "$suite" "$root" "deb $mirror $suite main" >&2

echo tarehost >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 tarehost\n' >"$root/etc/hosts"
echo '/dev/vda / ext4 defaults,errors=remount-ro 0 1' >"$root/etc/fstab"
printf '[Match]\nName=eth0\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/10-eth0.network"
ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/"
# It reaches no name server: there is no network behind it.
rm -f "$root/etc/resolv.conf"
: >"$root/etc/resolv.conf"
printf 'PermitRootLogin prohibit-password\nUseDNS no\n' >"$root/etc/ssh/sshd_config.d/host.conf"
# What a machine some 20 times slower would do for minutes.
for timer in apt-daily apt-daily-upgrade man-db e2scrub_all fstrim dpkg-db-backup; do
    ln -sf /dev/null "$root/etc/systemd/system/$timer.timer"
done
# libvirt is started by its socket, as on any Debian; the guests of its own are none of ours.
rm -f "$root/etc/systemd/system/multi-user.target.wants/libvirt-guests.service"
# So are Docker's daemon and containerd, which would take their part of each boot.
rm -f "$root"/etc/systemd/system/multi-user.target.wants/{docker,containerd}.service

# A user as on any host: by KVM's group it may run machines.
chroot "$root" useradd --create-home --shell /bin/bash --groups kvm someone
ssh-keygen -q -t ed25519 -N '' -C tarehost -f "$work/key"
for home in root home/someone; do
    install -d -m 700 "$root/$home/.ssh"
    install -m 600 "$work/key.pub" "$root/$home/.ssh/authorized_keys"
done
chroot "$root" chown -R someone:someone /home/someone/.ssh

cp "$root"/boot/vmlinuz-* "$work/vmlinuz"
cp "$root"/boot/initrd.img-* "$work/initrd"
truncate -s 10G "$work/disk.raw"
/sbin/mke2fs -q -F -t ext4 -O ^has_journal -E lazy_itable_init=1 -d "$root" "$work/disk.raw"
rm -rf "$root"
mv -T "$work" "$folder"
trap - EXIT
chmod 700 "$folder"
say "$(du -sh "$folder" | cut -f1) in $folder"
echo "$folder"
