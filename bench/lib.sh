# shellcheck shell=bash
# What is set here is used by those that source it, and a placement is several words or none.
# shellcheck disable=SC2034,SC2086
# Shared by the benches: sourced, not run. Bash.
#
# Every bench interleaves its contestants: one round runs each once, so that what else the machine does
# hits all alike. Judge by the ratios, which are taken within rounds; rates wander with the machine.
set -euo pipefail

ROUNDS=${ROUNDS:-7}
SECONDS_EACH=${SECONDS_EACH:-3}
CONGESTION=${CONGESTION:-cubic reno}
bench_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$bench_dir")
TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
# The program under test: release by default; DRIVER=... names another build, such as the static one that ships.
DRIVER=${DRIVER:-$TARGET_DIR/release/examples/bench_driver}
# An earlier build of the same program, to see whether the new one is slower: it is then one contestant more, and the one to which ratios are taken.
BEFORE=${BEFORE:-}

if [ ! -x "$DRIVER" ]; then
    echo "no $DRIVER; build it: cargo build --release -p tare-driver --example bench_driver" >&2
    exit 1
fi

# All traffic stays in a network namespace of its own (and mounts in a mount namespace), in which the congestion control is set for everyone.
if [ -z "${TARE_BENCH_NAMESPACE:-}" ]; then
    export TARE_BENCH_NAMESPACE=1
    exec unshare --net --mount -- "$0" "$@"
fi
ip link set lo up
# netperf resolves 127.0.0.1 only where some interface has an address that is not loopback.
ip address add 198.18.255.1/32 dev lo
# A namespace may only choose among algorithms that the host allows to all: the first of the list that works.
for algorithm in $CONGESTION; do
    sysctl -qw net.ipv4.tcp_congestion_control="$algorithm" 2>/dev/null && break
done
echo "congestion control: $(cat /proc/sys/net/ipv4/tcp_congestion_control)"

# discard DIRECTORY: takes away what is mounted in it, the innermost first, then itself; never a file of another file system.
# What is mounted there may be the host's root, so with any mount left nothing is removed.
discard() {
    local at
    while read -r at; do
        umount "$at" 2>/dev/null || umount -l "$at" || true
    done < <(awk -v below="$1/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts | tac)
    if awk -v below="$1/" 'index($2, below) == 1 { found = 1 } END { exit !found }' /proc/self/mounts; then
        echo "$1 is left as it is: something is still mounted in it" >&2
        return
    fi
    rm -rf --one-file-system "$1"
}

work=$(mktemp -d)
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    discard "$work"
}
trap cleanup EXIT
results=$work/results

# need PROGRAM...: stops when a peer is missing.
need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || {
            echo "no $program; run bench/install-peers.sh" >&2
            exit 1
        }
    done
}

# listening PORT: waits until something on loopback accepts connections there.
listening() {
    local tries
    for tries in $(seq 500); do
        (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.02
    done
    echo "nothing listens on port $1 after $tries tries" >&2
    exit 1
}

# serve PIN KIND [OPTIONS]: starts our server, leaves its address in $address.
serve() {
    local pin=$1
    shift
    local fifo=$work/in.$BASHPID.$RANDOM
    mkfifo "$fifo"
    $pin "$DRIVER" serve "$@" <"$fifo" >"$fifo.out" &
    pids+=($!)
    exec {hold}>"$fifo" # its standard input ends with this script
    until [ -s "$fifo.out" ]; do sleep 0.02; done
    address=$(head -n 1 "$fifo.out")
}

# timed COMMAND...: runs it; output in $output, CPU seconds of the process (user and system) in $cpu.
timed() {
    local TIMEFORMAT='%U %S'
    { time "$@" >"$work/out" 2>"$work/err"; } 2>"$work/time" || { echo "failed: $*" >&2; cat "$work/out" "$work/err" >&2; exit 1; }
    output=$(cat "$work/out")
    cpu=$(awk '{ print $1 + $2 }' "$work/time")
}

# field NAME: a number from our line of JSON in $output.
field() {
    sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" <<<"$output"
}

# before RUN ROUND ...: the earlier build, if there is one, run by the bench's own function RUN with the arguments that follow.
before() {
    local run=$1
    shift
    [ -z "$BEFORE" ] || DRIVER=$BEFORE $run before "$@"
}

# note CONTESTANT ROUND RATE CPU_SECONDS WORK: one result; WORK is what the CPU is divided by.
note() {
    awk -v n="$1" -v r="$2" -v rate="$3" -v cpu="$4" -v work="$5" \
        'BEGIN { printf "%s %d %.6g %.6g\n", n, r, rate, cpu / work * 1e6 }' >>"$results"
}

# summary TITLE UNIT CPU_UNIT REFERENCE: medians, ranges, and medians of the ratios within rounds.
summary() {
    local reference=${BEFORE:+before}
    reference=${reference:-$4}
    echo "## $1 ($ROUNDS rounds of $SECONDS_EACH s, ratios to $reference)"
    awk -v unit="$2" -v cpu_unit="$3" -v reference="$reference" '
        function median(list, n,    i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
                t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
            }
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        { if (!($1 in seen)) { seen[$1]; order[++names] = $1 }
          rate[$1, $2] = $3; cpu[$1, $2] = $4; if ($2 > rounds) rounds = $2 }
        END {
            printf "%-22s %12s %26s %8s %12s %8s\n", "", unit, "(range)", "ratio", cpu_unit, "ratio"
            for (k = 1; k <= names; k++) {
                name = order[k]; n = 0
                for (r = 1; r <= rounds; r++) if ((name, r) in rate) {
                    n++
                    a[n] = rate[name, r]; b[n] = cpu[name, r]
                    c[n] = rate[name, r] / rate[reference, r]; d[n] = cpu[name, r] / cpu[reference, r]
                }
                m = median(a, n); low = a[1]; high = a[n]
                printf "%-22s %12.5g %26s %8.3f %12.3f %8.3f\n", name, m,
                    sprintf("(%.5g to %.5g)", low, high), median(c, n), median(b, n), median(d, n)
            }
        }' "$results"
    echo
    : >"$results"
}
