#!/usr/bin/env bash
# Installs what is missing, and says nothing when nothing is.
#
#   scripts/setup.sh         to build tare
#   scripts/setup.sh test    and to run all of its tests
#   scripts/setup.sh check   and to run all checks of .ci/run
#
# As root on Debian or Ubuntu it installs; anywhere else it prints the commands and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}
case $purpose in
build | test | check) ;;
*) echo "setup: unknown purpose '$purpose': build, test or check" >&2 && exit 2 ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

apt_fresh=
# The lists of a new machine may be empty, so they are fetched, once.
apt_refresh() {
    [[ -z $apt_fresh && $EUID -eq 0 ]] || return 0
    apt_fresh=yes
    apt-get update -qq >&2 || say "apt-get update failed; going on with the present lists"
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
            say "$package is not to be had here; the tests that need it will be skipped"
        fi
    done
    [[ ${#wanted[@]} -gt 0 ]] || return 0
    apt_refresh
    say "installing ${wanted[*]}"
    # Nobody may be there to answer what a package wants to ask.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null
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

# The agent is one static program. Without this target scripts/build.sh links it statically against glibc.
setup_static_target() {
    local target
    target=$(uname -m)-unknown-linux-musl
    has rustup || return 0
    rustup target list --installed 2>/dev/null | grep -qx "$target" && return
    say "adding the target $target"
    rustup target add "$target" >&2 || say "$target is not to be had; the agent will be linked against glibc"
}

# OCI runtimes for the end-to-end tests, a browser for the report's.
setup_tests() {
    local missing=()
    has runc || missing+=(runc)
    has crun || missing+=(crun)
    has chromium || has chromium-browser || has google-chrome || missing+=(chromium)
    [[ ${#missing[@]} -eq 0 ]] || install_packages optional "${missing[@]}"
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
setup_static_target
[[ $purpose == build ]] || setup_tests
[[ $purpose != check ]] || setup_checks
