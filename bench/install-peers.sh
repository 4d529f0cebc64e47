#!/usr/bin/env bash
# Installs the peers that the drivers are measured against: netperf, iperf3, wrk and nginx, on Debian or Ubuntu, as root.
#
# netperf's licence puts it in Debian's non-free component. That component is enabled through a sources file
# of its own, which `install-peers.sh --remove-source` takes away again; nothing else of apt's set-up is touched.
set -eu
# shellcheck source=scripts/apt.sh
. "$(dirname "$0")/../scripts/apt.sh"

source_file=/etc/apt/sources.list.d/tare-bench-nonfree.sources

if [ "${1:-}" = "--remove-source" ]; then
    rm -f "$source_file"
    exit 0
fi

# quietly PACKAGE...: installs packages that start a server on every address; a policy file keeps them from starting at all.
quietly() {
    policy=/usr/sbin/policy-rc.d
    made_policy=no
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        made_policy=yes
    fi
    status=0
    apt_get install -y --no-install-recommends "$@" || status=$?
    [ "$made_policy" = no ] || rm -f "$policy"
    [ "$status" = 0 ] || exit "$status"
}

if ! command -v netperf >/dev/null; then
    . /etc/os-release
    case "$ID" in
        debian)
            cat >"$source_file" <<SOURCE
Types: deb
URIs: http://deb.debian.org/debian
Suites: $VERSION_CODENAME
Components: non-free
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCE
            ;;
        ubuntu) ;; # multiverse is enabled by default
        *)
            echo "install-peers.sh: $ID is not Debian or Ubuntu; install netperf >= 2.7 and iperf3 by hand" >&2
            exit 1
            ;;
    esac
    apt_get update
    quietly netperf
fi
command -v iperf3 >/dev/null || apt_get install -y iperf3
command -v wrk >/dev/null || apt_get install -y --no-install-recommends wrk
[ -x /usr/sbin/nginx ] || quietly nginx-light

netperf -V | head -n 1
iperf3 --version | head -n 1
wrk -v 2>&1 | head -n 1
/usr/sbin/nginx -v 2>&1
