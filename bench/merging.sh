#!/usr/bin/env bash
# Rules of merging beside each other on the same memory: tare's own, the published script's, ksmtuned's and the kernel's advisor.
# usage: bench/merging.sh [RULE...], as `bench_merging` has them. KSM is the whole host's: nothing else may merge meanwhile.
#
# Each rule in turn gets new processes with the same content: a third of their memory empty, a third alike, a third of their
# own. The rules see a host that is short of memory, with most of it held by somebody else, and nothing is driven there.
set -euo pipefail
ROUNDS=${ROUNDS:-3}
PROCESSES=${PROCESSES:-6}
MEGABYTES=${MEGABYTES:-256}
REST=${REST:-20}
bench=$(cd "$(dirname "$0")" && pwd)
DRIVER=${DRIVER:-${CARGO_TARGET_DIR:-$bench/../target}/release/examples/bench_merging}
if [ ! -x "$DRIVER" ]; then
    echo "no $DRIVER; build it: cargo build --release -p tare-memory --example bench_merging" >&2
    exit 1
fi
if [ ! -w /sys/kernel/mm/ksm/run ]; then
    echo "/sys/kernel/mm/ksm/run cannot be written: KSM and root are needed" >&2
    exit 1
fi

# The bench puts back what each rule found. This is for one that is killed. The advisor first, for while it is on, pages are its own.
settings=(advisor_mode pages_to_scan sleep_millisecs use_zero_pages advisor_target_scan_time advisor_max_cpu run)
declare -A found
for name in "${settings[@]}"; do
    [ ! -e "/sys/kernel/mm/ksm/$name" ] || found[$name]=$(sed 's/.*\[\(.*\)\].*/\1/' "/sys/kernel/mm/ksm/$name")
done
put_back() {
    local name
    for name in "${settings[@]}"; do
        [ -z "${found[$name]:-}" ] || echo "${found[$name]}" >"/sys/kernel/mm/ksm/$name" 2>/dev/null || true
    done
}
trap put_back EXIT
trap 'exit 130' INT TERM

"$DRIVER" --rounds "$ROUNDS" --processes "$PROCESSES" --megabytes "$MEGABYTES" --rest "$REST" "$@"
