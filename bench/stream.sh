#!/usr/bin/env bash
# Bulk transfer on one connection: sendfile against iperf3 -Z (which is sendfile too) and netperf TCP_SENDFILE,
# all with the same congestion control and 256 KiB a call, once unpinned and once with the client on CPU 0 and
# the server on CPU 1. CPU is that of the sending client, microseconds a MB.
#
# Where the file lies matters more than who sends it: a file on disk may sit in large folios of the page
# cache, of which the kernel makes fewer, longer fragments than of the single pages of a file in memory.
# tare sends from memory, so that the guest's file system is no part of the figure, and lays that memory in
# huge pages where it may. The peers run both ways: "memory" is the like setting, "disk" is what they do
# when nobody asks. tare-write copies every byte into the kernel; no peer here does, so compare it to none.
# A placement is several words or none, so it stands unquoted.
# shellcheck disable=SC2086,SC2054
. "$(dirname "$0")/lib.sh"
need netperf netserver iperf3 taskset

CHUNK=${CHUNK:-262144}
# netperf wants a file larger than four calls' worth; our window is made as large.
WINDOW=$((CHUNK * 4))
dd if=/dev/urandom of="$work/fill" bs="$WINDOW" count=1 status=none
mkdir "$work/memory"
mount -t tmpfs tmpfs "$work/memory"
cp "$work/fill" "$work/memory/fill"

ours() { # NAME ROUND PIN OPTIONS...
    local name=$1 round=$2 pin=$3
    shift 3
    timed $pin "$DRIVER" drive stream --target "$address" --seconds "$SECONDS_EACH" --chunk "$CHUNK" --window "$WINDOW" "$@"
    grep -q '"verified":true' <<<"$output" || { echo "not verified: $output" >&2; exit 1; }
    note "$name" "$round" "$(field gbit_s)" "$cpu" "$(awk -v g="$(field gbit_s)" -v s="$SECONDS_EACH" 'BEGIN { print g * s * 125 }')"
}

netperf_sendfile() { # NAME ROUND PIN
    local file=$work/memory/fill
    [ "$1" != netperf-disk ] || file=$work/fill
    timed $3 netperf -H 127.0.0.1 -p "$netperf_port" -t TCP_SENDFILE -F "$file" -l "$SECONDS_EACH" -P 0 -- -m "$CHUNK"
    local gbit
    gbit=$(awk 'NF >= 5 { print $5 / 1000 }' <<<"$output" | head -n 1)
    note "$1" "$2" "$gbit" "$cpu" "$(awk -v g="$gbit" -v s="$SECONDS_EACH" 'BEGIN { print g * s * 125 }')"
}

iperf3_zerocopy() { # NAME ROUND PIN
    local folder=$work/memory
    [ "$1" != iperf3-disk ] || folder=$work
    timed $3 env TMPDIR="$folder" iperf3 -c 127.0.0.1 -p "$iperf_port" -Z -l "$CHUNK" -t "$SECONDS_EACH" -J
    local gbit
    gbit=$(awk '/"sum_received"/ { on = 1 } on && /"bits_per_second"/ { gsub(/[^0-9.e+]/, "", $2); print $2 / 1e9; exit }' <<<"$output")
    note "$1" "$2" "$gbit" "$cpu" "$(awk -v g="$gbit" -v s="$SECONDS_EACH" 'BEGIN { print g * s * 125 }')"
}

netperf_port=12870 iperf_port=12880
for placement in unpinned separate; do
    client='' server=''
    [ "$placement" = unpinned ] || client="taskset -c 0" server="taskset -c 1"
    netperf_port=$((netperf_port + 1)) iperf_port=$((iperf_port + 1))
    $server netserver -D -L 127.0.0.1 -p "$netperf_port" >/dev/null 2>&1 &
    pids+=($!)
    $server iperf3 -s -B 127.0.0.1 -p "$iperf_port" >/dev/null 2>&1 &
    pids+=($!)
    serve "$server" stream --chunk "$CHUNK" --window "$WINDOW"
    listening "$netperf_port"
    listening "$iperf_port"
    for round in $(seq "$ROUNDS"); do
        # Who goes first changes from round to round.
        contestants=("ours tare-sendfile" "iperf3_zerocopy iperf3-memory" "netperf_sendfile netperf-memory" "ours tare-write"
            "netperf_sendfile netperf-disk" "iperf3_zerocopy iperf3-disk")
        for i in 0 1 2 3 4 5; do
            set -- ${contestants[$(((i + round) % 6))]}
            extra=()
            [ "$2" != tare-write ] || extra=(--write)
            $1 "$2" "$round" "$client" "${extra[@]}"
            [ "$2" != tare-sendfile ] || before ours "$round" "$client"
        done
    done
    for reference in iperf3-memory netperf-memory; do
        cp "$results" "$work/keep"
        summary "bulk, $placement" "Gbit/s" "us/MB" $reference
        cp "$work/keep" "$results"
    done
    : >"$results"
done
