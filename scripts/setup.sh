#!/usr/bin/env bash
# Installs what is missing, and says nothing when nothing is.
#
#   scripts/setup.sh             to build tare
#   scripts/setup.sh platforms   and to have every platform that can be had here
#   scripts/setup.sh test        and to run all of its tests
#   scripts/setup.sh dist        and to build static programs, for TARGET_ARCH (default: this machine's), and to list what is in them
#   scripts/setup.sh check       and to run all checks of .ci/run
#
# As root on Debian or Ubuntu it installs; anywhere else it prints the commands and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/apt.sh
. scripts/apt.sh

purpose=${1:-build}
case $purpose in
build | platforms | test | dist | check) ;;
*) echo "setup: unknown purpose '$purpose': build, platforms, test, dist or check" >&2 && exit 2 ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

apt_fresh=
# The lists of a new machine may be empty, so they are fetched, once.
apt_refresh() {
    [[ -z $apt_fresh && $EUID -eq 0 ]] || return 0
    apt_fresh=yes
    apt_get update || say "apt-get update failed; going on with the present lists"
}

# Whether the distribution has a package of that name.
apt_has() {
    apt_refresh
    [[ -n $(apt-cache madison "$1" 2>/dev/null) ]]
}

# install_packages required|optional PACKAGE...: optional ones are left out with a word when they cannot be had.
install_packages() {
    local need=$1 package wanted=()
    shift
    if ! has apt-get; then
        say "this is not Debian or Ubuntu: install by hand what Debian calls: $*"
        [[ $need == optional ]]
        return
    fi
    if [[ $EUID -ne 0 ]]; then
        say "not root; run this once, then make again: sudo apt-get install -y $*"
        [[ $need == optional ]]
        return
    fi
    for package in "$@"; do
        if [[ $need == required ]] || apt_has "$package"; then
            wanted+=("$package")
        else
            say "$package is not available here; the tests that need it will be skipped"
        fi
    done
    [[ ${#wanted[@]} -gt 0 ]] || return 0
    apt_refresh
    say "installing ${wanted[*]}"
    apt_get install -y --no-install-recommends "${wanted[@]}"
}

# The workspace's rust-version, such as 1.95.
wanted_rust() { sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml; }

rust_is_new_enough() {
    local have
    # `rustc` may be a proxy of rustup without a toolchain behind it.
    have=$(rustc --version 2>/dev/null | cut -d' ' -f2) || return 1
    [[ -n $have && $(printf '%s\n' "$(wanted_rust)" "$have" | sort -V | head -n1) == "$(wanted_rust)" ]]
}

setup_rust() {
    rust_is_new_enough && has cargo && return
    if ! has rustup && has apt-get && apt_has rustup; then
        # Debian 13 and Ubuntu 24.04 package rustup; the compilers they package are too old.
        install_packages required rustup
    fi
    if ! has rustup; then
        say "tare needs Rust $(wanted_rust) or newer, and this system packages neither that nor rustup."
        say "Install rustup as https://rustup.rs says, open a new shell, then make again."
        exit 1
    fi
    say "installing Rust $(wanted_rust)"
    rustup toolchain install "$(wanted_rust)" --profile minimal --component rustfmt,clippy >&2
    rustup default >/dev/null 2>&1 || rustup default "$(wanted_rust)" >&2
    if ! rust_is_new_enough; then
        say "the active toolchain is older than $(wanted_rust); run: rustup default $(wanted_rust)"
        exit 1
    fi
}

# musl, for `tare` as a static program; for another machine than this one, a compiler and musl's headers as well.
setup_dist() {
    has xz || install_packages required xz-utils
    has cargo-cyclonedx || cargo install --quiet --locked --version 0.5.9 cargo-cyclonedx >&2
    # shellcheck source=scripts/cross.sh
    . scripts/cross.sh
    if has rustup && ! rustup target list --installed | grep -qx "$target"; then
        say "adding the target $target"
        rustup target add "$target" >&2
    fi
    if [[ -z $foreign ]]; then
        has musl-gcc || install_packages required musl-tools
        return
    fi
    # The linker is asked for libdl, which is empty in glibc as it is in musl.
    local packages=("gcc-${arch/_/-}-linux-gnu" "libc6-dev-$foreign-cross")
    if has apt-get; then
        mapfile -t packages < <(absent "${packages[@]}")
    elif has "$arch-linux-gnu-gcc"; then
        packages=()
    fi
    [[ ${#packages[@]} -eq 0 ]] || install_packages required "${packages[@]}"
    [[ ! -d $headers ]] || return 0
    has apt-get || {
        say "this is not Debian or Ubuntu: unpack musl's headers for $arch to $headers/usr/include/$arch-linux-musl"
        exit 1
    }
    # apt keeps what it knows of the other architecture in a folder of its own: this system is not made to have two.
    local work apt
    mkdir -p "${headers%/*}"
    work=$(mktemp -d "$headers-XXXXXX")
    apt=(-o "APT::Architecture=$foreign" -o "APT::Architectures=$foreign" -o "Dir::State::lists=$work/lists"
        -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    say "fetching musl's headers for $arch"
    apt_get "${apt[@]}" update
    (cd "$work" && apt_get "${apt[@]}" download musl-dev && dpkg-deb --extract musl-dev_*.deb root)
    mv -T "$work/root" "$headers"
    rm -rf "$work"
}

# absent PACKAGE...: prints those of the packages that are not installed.
absent() {
    local package
    for package in "$@"; do
        dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done
}

# Services that come with a package are not started by its installation: tare, and its tests, start what they
# need by themselves and in places of their own.
without_starting() {
    local policy=/usr/sbin/policy-rc.d
    if [[ $EUID -ne 0 || -e $policy ]]; then
        "$@"
        return
    fi
    # Gone however this script ends: left behind it would keep services of others from being started, too.
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    local code=0
    "$@" || code=$?
    rm -f "$policy"
    trap - EXIT
    return "$code"
}

# What guests are made with: runtimes, hypervisors, containers, image tools; and the kernel and sandbox that no
# package of the distribution provides as they are needed.
setup_platforms() {
    local machine wanted=(runc crun docker.io podman lxc systemd-container bubblewrap libvirt-daemon-system libvirt-daemon-driver-lxc
        mmdebstrap qemu-utils e2fsprogs tgt open-iscsi qemu-block-extra redis-server memcached)
    machine=$(uname -m)
    case $machine in
    aarch64) wanted+=(qemu-system-arm) ;;
    *) wanted+=(qemu-system-x86) ;;
    esac
    has apt-get || {
        say "this is not Debian or Ubuntu: \`tare doctor\` tells which platforms are missing, and what they need"
        return
    }
    # Newer releases package the file server of virtual machines by itself; older ones ship it with QEMU.
    ! apt_has_cached virtiofsd || wanted+=(virtiofsd)
    # Newer releases package the program of that engine apart from its daemon.
    ! apt_has_cached docker-cli || wanted+=(docker-cli)
    # Another maker's package of that daemon stays as it is: the two exclude each other.
    has containerd || wanted+=(containerd)
    mapfile -t wanted < <(absent "${wanted[@]}")
    local had_target='' had_daemon='' had_redis='' had_memcached=''
    ! has tgtd || had_target=yes
    ! has dockerd || had_daemon=yes
    ! has redis-server || had_redis=yes
    ! has memcached || had_memcached=yes
    [[ ${#wanted[@]} -eq 0 ]] || without_starting install_packages optional "${wanted[@]}"
    # Guests need the program, not a service that would listen on every address from the next start of this machine on.
    [[ -n $had_target || $EUID -ne 0 ]] || systemctl disable tgt.service >/dev/null 2>&1 || true
    # Nor one that would change the packet filter: it is there for `systemctl start docker`.
    [[ -n $had_daemon || $EUID -ne 0 ]] || systemctl disable docker.service docker.socket >/dev/null 2>&1 || true
    # Nor key-value servers of this host's own: guests start theirs.
    [[ -n $had_redis || $EUID -ne 0 ]] || systemctl disable redis-server.service >/dev/null 2>&1 || true
    [[ -n $had_memcached || $EUID -ne 0 ]] || systemctl disable memcached.service >/dev/null 2>&1 || true
    scripts/platforms-kernel.sh || say "without a kernel for guests, virtual machines boot only images of your own"
    scripts/platforms-gvisor.sh || say "runsc is not installed; its arms will be left out"
    scripts/postgres.sh || say "without a PostgreSQL for guests, order entry needs one that is installed (postgres = \"DIRECTORY\")"
    local workload
    for workload in java web social; do
        scripts/bundle.sh "$workload" || say "without its application and runtime, studies of the workload $workload do not run"
    done
}

# As apt_has, without fetching the lists for it.
apt_has_cached() { [[ -n $(apt-cache madison "$1" 2>/dev/null) ]]; }

# A browser for the report's tests, a server for those of hosts elsewhere, one that stands before the web application; what checks and makes packages.
setup_tests() {
    local missing=() had_server=yes had_web=yes
    has chromium || has chromium-browser || has google-chrome || missing+=(chromium)
    has sshd || [[ -x /usr/sbin/sshd ]] || {
        missing+=(openssh-server)
        had_server=
    }
    has ssh || missing+=(openssh-client)
    has nginx || [[ -x /usr/sbin/nginx ]] || {
        missing+=(nginx-light)
        had_web=
    }
    has lintian || missing+=(lintian)
    has rpmbuild || missing+=(rpm)
    # The system's, whichever comes first in the search path: figures are recomputed with them.
    /usr/bin/python3 -I -c 'import numpy, scipy' 2>/dev/null || missing+=(python3-numpy python3-scipy)
    [[ ${#missing[@]} -eq 0 ]] || without_starting install_packages optional "${missing[@]}"
    # The tests need the program, not a service that would listen from the next start of this machine on.
    [[ -n $had_server || $EUID -ne 0 ]] || systemctl disable ssh.service ssh.socket >/dev/null 2>&1 || true
    [[ -n $had_web || $EUID -ne 0 ]] || systemctl disable nginx.service >/dev/null 2>&1 || true
    # Machines of vSphere are tested against its simulator.
    scripts/vsphere.sh || say "without govc and vcsim, the tests of machines of vSphere are skipped"
}

# Linters: the programs that .ci/tools.txt pins, in an environment of their own.
setup_checks() {
    local tools=${TARE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tare/tools}
    if has rustup; then
        cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt >&2
        cargo clippy --version >/dev/null 2>&1 || rustup component add clippy >&2
    fi
    has git || install_packages required git
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages required python3 python3-venv
    has shellcheck || install_packages required shellcheck
    cmp -s .ci/tools.txt "$tools/installed.txt" && return
    say "installing the linters of .ci/tools.txt"
    python3 -m venv --clear "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
        --requirement .ci/tools.txt
    cp .ci/tools.txt "$tools/installed.txt"
}

# The linker, and the compiler of the SQLite that is built in.
has cc || install_packages required build-essential
setup_rust
case $purpose in platforms | test | check) setup_platforms ;; esac
case $purpose in test | check) setup_tests ;; esac
[[ $purpose != dist ]] || setup_dist
[[ $purpose != check ]] || setup_checks
