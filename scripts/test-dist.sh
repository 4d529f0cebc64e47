#!/usr/bin/env bash
# Tests the tarball of scripts/tarball.sh in a root that has it and a static busybox, and nothing else: no C library, no package,
# no checkout. Needs root and busybox-static. Not part of `make test`: the programs are built once more for it, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $EUID -ne 0 ]] || ! busybox=$(command -v busybox) || readelf --program-headers "$busybox" | grep -q INTERP; then
    echo "SKIPPED: a root of its own needs root and busybox-static (apt-get install busybox-static)"
    exit
fi
# Only programs for this machine can be tried on it.
unset TARGET_ARCH
tarball=$(scripts/tarball.sh)
echo "     Running scripts/tarball.sh (test_tarball)"
work=$(mktemp -d)
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
# shellcheck source=scripts/counted.sh
. scripts/counted.sh

sum_is_right() {
    (cd "$(dirname "$tarball")" && sha256sum --check --quiet "$(basename "$tarball").sha256")
}

# there LINE: runs a line of shell where that root is the root, in a mount namespace that goes with it.
there() {
    # shellcheck disable=SC2016 # Words of the inner shell.
    unshare --mount --propagation private bash -euc '
        mount --bind "$1" "$1"
        for own in proc sys dev; do mount --rbind "/$own" "$1/$own"; done
        for own in run tmp; do mount -t tmpfs -o mode=755 tmpfs "$1/$own"; done
        cd "$1"
        pivot_root . .
        export PATH=/bin HOME=/srv NO_COLOR=1
        umount -l .
        cd /
        exec /bin/sh -euc "$2"' - "$root" "$1"
}

mkdir -p "$root"/{bin,proc,sys,dev,run,tmp,srv,var/lib,var/tmp,etc,opt/somewhere}
cp "$busybox" "$root/bin/busybox"
for applet in sh tar gzip grep cat ls tee umount; do ln -s busybox "$root/bin/$applet"; done
cp "$tarball" "$root/srv/tare.tar.gz"
cat >"$root/srv/two.toml" <<'STUDY'
schema = 1
name = "two"
question = "Does the static program measure?"
baseline = "native"
blocks = 1
noise-floor = false

[arms.native]
platform = "native"
[arms.container]
platform = "container"

[guest]
cpus = 1
memory = "64MiB"

[phases]
warm-up = "100ms"
steady-state = "500ms"

[cases.rr]
workload = "rr"
parameters = { request = "128B", response = "128B" }
STUDY

starts() {
    there '
        cd /opt/somewhere && tar -xzf /srv/tare.tar.gz
        cd tare-*
        bin/tare --version
        lib/tare/tare-agent --version
        bin/tare plan share/tare/studies/quickstart.toml
        test -s share/man/man1/tare-run.1.gz -a -s share/bash-completion/completions/tare -a -s share/doc/tare/copyright'
}

finds_what_is_missing() {
    there '/opt/somewhere/tare-*/bin/tare doctor >/tmp/said 2>&1 || { cat /tmp/said; exit 1; }
        cat /tmp/said
        grep "one static program, which cannot load" /tmp/said
        grep "Install tare.s package" /tmp/said'
}

measures() {
    there '
        cd /srv
        /opt/somewhere/tare-*/bin/tare run two.toml --out two | tee said
        grep "2 of 2 trials completed" said
        grep "every arm was granted what was asked" said
        left=$(ls -A /run)
        test -z "$left"
        test -s two/report.html'
}

holds the_same_tree_makes_the_same_tarball equal_twice scripts/tarball.sh
holds its_checksum_is_right sum_is_right
holds it_starts_from_where_it_is_unpacked starts
holds doctor_says_what_a_static_program_cannot_do finds_what_is_missing
holds a_study_is_measured_with_nothing_installed measures

close
