#!/usr/bin/env bash
# Tests the one static program of scripts/dist.sh in a root that has it and a static busybox, and nothing else: no C library, no package,
# no checkout. Needs root and busybox-static. Not part of `make test`: the programs are built once more for it, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $EUID -ne 0 ]] || ! busybox=$(command -v busybox) || readelf --program-headers "$busybox" | grep -q INTERP; then
    echo "SKIPPED: a root of its own needs root and busybox-static (apt-get install busybox-static)"
    exit
fi
# Only programs for this machine can be tried on it.
machine=$(uname -m)
dist=$(scripts/dist.sh "$machine" | tail -n1)
program=$(find "$dist" -name "tare-[0-9]*-linux-$machine")
echo "     Running scripts/dist.sh (test_dist)"
work=$(mktemp -d)
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
# shellcheck source=scripts/counted.sh
. scripts/counted.sh

sums_are_right() {
    (cd "$dist" && sha256sum --check --quiet SHA256SUMS)
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
for applet in sh grep cat ls tee umount; do ln -s busybox "$root/bin/$applet"; done
cp "$program" "$root/opt/somewhere/tare"
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
        cd /srv
        /opt/somewhere/tare --version
        /opt/somewhere/tare plan quickstart
        /opt/somewhere/tare init mine.toml --from response-time
        /opt/somewhere/tare schema | grep -q workload
        /opt/somewhere/tare man /tmp && test -s /tmp/tare-run.1'
}

finds_what_is_missing() {
    there '/opt/somewhere/tare doctor >/tmp/said 2>&1 || { cat /tmp/said; exit 1; }
        cat /tmp/said
        grep "one static program, which cannot load" /tmp/said
        grep "Install tare.s package" /tmp/said'
}

measures() {
    there '
        cd /srv
        /opt/somewhere/tare run two.toml --out two | tee said
        grep "2 of 2 trials completed" said
        grep "every arm was granted what was asked" said
        left=$(ls -A /run)
        test -z "$left"
        test -s two/report.html'
}

lists_what_is_in_it() {
    python3 - "$dist"/*.cdx.json <<'CHECK'
import json, sys
listed = json.load(open(sys.argv[1]))
assert listed["bomFormat"] == "CycloneDX", listed["bomFormat"]
names = {part["name"] for part in listed["components"]}
assert {"serde", "rustls", "tare-driver"} <= names, sorted(names)
CHECK
}

# equal_elsewhere: whether a clone in another folder makes the same program.
equal_elsewhere() {
    git clone --quiet . "$work/clone"
    CARGO_TARGET_DIR=$work/target "$work/clone/scripts/dist.sh" "$machine"
    cmp "$program" "$work/target/dist/$(basename "$program")"
}

holds its_checksums_are_right sums_are_right
holds what_is_in_it_is_listed lists_what_is_in_it
holds it_starts_from_where_it_lies starts
holds doctor_says_what_a_static_program_cannot_do finds_what_is_missing
holds a_study_is_measured_with_nothing_installed measures
holds another_folder_makes_the_same_program equal_elsewhere

close
