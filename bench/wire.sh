#!/usr/bin/env bash
# What a wire costs a driver: the same study with its lab on a network card, by a bridge and by a macvlan for each guest, and in the lab that needs
# none. The driver is on this host in all.
# usage: bench/wire.sh
#
# The card is one end of a veth pair whose other end is in a bridge, in a network namespace of the bench's own. A round is a run of each, in
# an order that changes from round to round; a ratio is the median of the ratios within rounds. The bar: 0.97 of the rates without a wire.
set -euo pipefail
ROUNDS=${ROUNDS:-7}
SECONDS_EACH=${SECONDS_EACH:-3}
BAR=0.97
# shellcheck source=bench/programs.sh
. "$(dirname "$0")/programs.sh"
if [ -z "${TARE_BENCH_APART:-}" ]; then
    TARE_BENCH_APART=1 exec unshare --net "$0" "$@"
fi
ip link set lo up
ip link add switch type bridge forward_delay 0
ip link set switch up
ip link add card0 type veth peer name port0
ip link set port0 master switch up
ip link set card0 up
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

study() {
    cat <<STUDY
schema = 1
name = "wire"
question = "What does a wire cost the driver?"
baseline = "native"
blocks = 1
noise-floor = false
[arms.native]
platform = "native"
[guest]
cpus = 1
memory = "256MiB"
[phases]
warm-up = "500ms"
steady-state = "${SECONDS_EACH}s"
[cases.rr]
workload = "rr"
parameters = { request = "128B", response = "128B" }
[cases.receive]
workload = "stream"
parameters = { direction = "receive" }
[cases.send]
workload = "stream"
parameters = { direction = "send" }
STUDY
}
study >"$work/without.toml"
{
    study
    printf '[lab]\nwire = { interface = "card0", addresses = "203.0.113.100-203.0.113.120/24" }\n'
} >"$work/with.toml"
sed 's|/24" }|/24", attach = "macvlan" }|' "$work/with.toml" >"$work/macvlan.toml"

# Rates of a run: case, rate. One client makes as many exchanges as fit one after the other.
rates() {
    awk -F, '$6 > 0 && $3 == "throughput_bits_per_s" { print $1, $6 }
             $6 > 0 && $1 == "rr" && $3 == "response_time_mean_s" { print $1, 1 / $6 }' "$work/$1/trials.csv"
}
one() {
    rm -rf "${work:?}/$1"
    "$TARE" run "$work/$1.toml" --alongside --out "$work/$1" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
    rates "$1" | sed "s/^/$2 $1 /" >>"$work/rates"
}
for round in $(seq "$ROUNDS"); do
    order="without with macvlan"
    [ $((round % 2)) -eq 0 ] && order="macvlan with without"
    for side in $order; do one "$side" "$round"; done
done

awk -v bar="$BAR" '
    { rate[$1, $2, $3] = $4; names[$3] = 1; if ($1 > rounds) rounds = $1 }
    END {
        printf "%-28s %10s\n", "rate, on a wire to without", "ratio"
        split("with macvlan", sides, " ")
        for (name in names) for (side in sides) {
            n = 0
            for (i = 1; i <= rounds; i++)
                if (rate[i, "without", name] > 0 && rate[i, sides[side], name] > 0)
                    ratio[++n] = rate[i, sides[side], name] / rate[i, "without", name]
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && ratio[j] < ratio[j - 1]; j--) { t = ratio[j]; ratio[j] = ratio[j - 1]; ratio[j - 1] = t }
            if (n == 0) continue
            seen++
            median = n % 2 ? ratio[(n + 1) / 2] : (ratio[n / 2] + ratio[n / 2 + 1]) / 2
            by = sides[side] == "with" ? "bridge" : "macvlan"
            printf "%-28s %10.3f   %.3f to %.3f, %d rounds\n", name " by " by, median, ratio[1], ratio[n], n
            if (median < bar) missed = 1
        }
        if (!seen) { print "no rate was found"; exit 2 }
        if (missed) { printf "the bar of %s is missed\n", bar; exit 1 }
    }' "$work/rates"
