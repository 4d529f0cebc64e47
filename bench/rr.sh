#!/usr/bin/env bash
# Request and response of 128 and 128 bytes, one connection, against netperf: TCP_RR, UDP_RR and TCP_CRR,
# once unpinned and once with everything on one CPU. CPU is that of the client process, all of it.
# usage: bench/rr.sh [tcp|udp|crr]...
# A placement is several words or none, so it stands unquoted.
# shellcheck disable=SC2086,SC2054
. "$(dirname "$0")/lib.sh"
need netperf netserver taskset

netserver -D -L 127.0.0.1 -p 12865 >/dev/null 2>&1 &
pids+=($!)
listening 12865

declare -A peer=([rr]=TCP_RR [udp]=UDP_RR [crr]=TCP_CRR)

ours() { # NAME ROUND PIN KIND ADDRESS
    timed $3 "$DRIVER" drive "$4" --target "$5" --seconds "$SECONDS_EACH"
    grep -q '"errors":\[\]' <<<"$output" || { echo "errors: $output" >&2; exit 1; }
    note "$1" "$2" "$(field rate)" "$cpu" "$(field operations)"
}

theirs() { # NAME ROUND PIN TEST
    local affinity=()
    [ -z "$3" ] || affinity=(-T 0,0)
    timed $3 netperf "${affinity[@]}" -H 127.0.0.1 -t "$4" -l "$SECONDS_EACH" -P 0 -- -r 128,128
    local rate
    rate=$(head -n 1 <<<"$output" | awk '{ print $NF }')
    note "$1" "$2" "$rate" "$cpu" "$(awk -v r="$rate" -v s="$SECONDS_EACH" 'BEGIN { print r * s }')"
}

[[ $# -gt 0 ]] || set -- rr udp crr
for kind in "$@"; do
    kind=${kind/tcp/rr}
    for placement in unpinned same-cpu; do
        pin=
        [ "$placement" = unpinned ] || pin="taskset -c 0"
        serve "$pin" "$kind"
        for round in $(seq "$ROUNDS"); do
            # Who goes first changes from round to round.
            if ((round % 2)); then
                ours tare "$round" "$pin" "$kind" "$address"
                theirs netperf "$round" "$pin" "${peer[$kind]}"
                before ours "$round" "$pin" "$kind" "$address"
            else
                before ours "$round" "$pin" "$kind" "$address"
                theirs netperf "$round" "$pin" "${peer[$kind]}"
                ours tare "$round" "$pin" "$kind" "$address"
            fi
        done
        summary "${peer[$kind]} 128/128, $placement" "operations/s" "us/operation" netperf
    done
done
