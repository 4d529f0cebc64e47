#!/usr/bin/env bash
# What recording every operation costs: the same driver with its histogram on and off, and the floor of
# the instrument (an operation that does nothing).
# A placement is several words or none, so it stands unquoted.
# shellcheck disable=SC2086,SC2054
. "$(dirname "$0")/lib.sh"
need taskset

run() { # NAME ROUND PIN KIND OPTIONS...
    local name=$1 round=$2 pin=$3
    shift 3
    timed $pin "$DRIVER" drive "$@" --seconds "$SECONDS_EACH"
    note "$name" "$round" "$(field rate)" "$cpu" "$(field operations)"
}

for placement in unpinned same-cpu; do
    pin=
    [ "$placement" = unpinned ] || pin="taskset -c 0"
    serve "$pin" rr
    for round in $(seq "$ROUNDS"); do
        if ((round % 2)); then
            run off "$round" "$pin" rr --target "$address" --no-record
            run on "$round" "$pin" rr --target "$address"
        else
            run on "$round" "$pin" rr --target "$address"
            run off "$round" "$pin" rr --target "$address" --no-record
        fi
    done
    summary "TCP request/response 128/128, recording, $placement" "operations/s" "us/operation" off
done

SECONDS_EACH=1
for round in $(seq "$ROUNDS"); do
    run off "$round" "taskset -c 0" null --no-record
    run on "$round" "taskset -c 0" null
done
summary "an operation that does nothing, recording" "operations/s" "us/operation" off
