#!/usr/bin/env bash
# The driver of `kv` beside redis-benchmark, on a redis, and beside memcaslap, on a memcached: the same connections, pipelines, keys and sizes.
# redis-benchmark has one kind of request at a time, so GETs and SETs are run by themselves; memcaslap mixes 90 % GETs with 10 % SETs.
# The driver verifies every answer and records every response time; the peers verify none.
#
#   workloads/kv/bench.sh                                     builds the driver's tests with optimisation and runs them as the driver
#   DRIVER=target/debug/deps/tare_driver-... workloads/kv/bench.sh    with a program that was built before
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ -z ${DRIVER:-} ]]; then
    DRIVER=$(cargo test --release -p tare-driver --lib --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
fi
export DRIVER
# A script that enters a namespace is started again by its own name.
[[ $0 == /* ]] || exec "$PWD/workloads/kv/bench.sh" "$@"
# shellcheck source=bench/lib.sh
. bench/lib.sh
LOADS=${LOADS:-1:1 8:1 50:1 8:16}
BYTES=${BYTES:-100}
need redis-server redis-benchmark memcached memcaslap
ports=(6399 11299)

redis-server --bind 127.0.0.1 --port "${ports[0]}" --save '' --dir / >"$work/redis" &
pids+=($!)
memcached -l 127.0.0.1 -p "${ports[1]}" -u nobody -t 1 -m 256 &
pids+=($!)
for port in "${ports[@]}"; do listening "$port"; done

tare() { # WHAT SERVER CLIENTS DEPTH GETS BYTES
    local port=${ports[0]}
    [[ $2 == redis ]] || port=${ports[1]}
    TARE_KV_BENCH="$1 $2 127.0.0.1:$port $3 $4 $5 $6 $SECONDS_EACH" \
        timed "$DRIVER" --ignored --nocapture --test-threads=1 --exact workloads::kv::tests::bench
}

run_tare() { # ROUND SERVER CLIENTS DEPTH GETS BYTES
    tare drive "${@:2}"
    note tare "$1" "$(field rate)" "$cpu" "$(field operations)"
    last=$(field rate)
}

run_redis_benchmark() { # ROUND CLIENTS DEPTH COMMAND
    local requests
    # It is given a number of requests: about as many as take so long.
    requests=$(awk -v rate="$last" -v s="$SECONDS_EACH" 'BEGIN { printf "%d", rate * s }')
    timed redis-benchmark -h 127.0.0.1 -p "${ports[0]}" -c "$2" -P "$3" -n "$requests" -r 100000 -d "$BYTES" -t "$4" --csv
    note redis-benchmark "$1" "$(sed -n 's/^"[GS]ET","\([0-9.]*\)".*/\1/p' <<<"$output")" "$cpu" "$requests"
}

run_memcaslap() { # ROUND CLIENTS
    timed memcaslap -s "127.0.0.1:${ports[1]}" -c "$2" -T 1 -t "${SECONDS_EACH}s" -F "$work/memcaslap.conf"
    local rate operations
    operations=$(sed -n 's/.*Ops: \([0-9]*\) TPS.*/\1/p' <<<"$output" | tail -n 1)
    rate=$(sed -n 's/.*TPS: \([0-9]*\) .*/\1/p' <<<"$output" | tail -n 1)
    note memcaslap "$1" "$rate" "$cpu" "$operations"
}
printf 'key\n16 16 1\nvalue\n%d %d 1\ncmd\n0 0.1\n1 0.9\n' "$BYTES" "$BYTES" >"$work/memcaslap.conf"

tare fill redis 1 1 0 "$BYTES"
tare fill memcached 1 1 0 "$BYTES"
# What redis-benchmark reads is there, too.
redis-benchmark -h 127.0.0.1 -p "${ports[0]}" -n 500000 -P 64 -r 100000 -d "$BYTES" -t set -q >/dev/null
for load in $LOADS; do
    clients=${load%:*} depth=${load#*:}
    for command in get set; do
        gets=0
        [[ $command == set ]] || gets=100
        last=
        for round in $(seq "$ROUNDS"); do
            if [[ -z $last ]]; then tare drive redis "$clients" "$depth" "$gets" "$BYTES" && last=$(field rate); fi
            if ((round % 2)); then
                run_redis_benchmark "$round" "$clients" "$depth" "$command"
                run_tare "$round" redis "$clients" "$depth" "$gets" "$BYTES"
            else
                run_tare "$round" redis "$clients" "$depth" "$gets" "$BYTES"
                run_redis_benchmark "$round" "$clients" "$depth" "$command"
            fi
        done
        summary "redis, $command only, $clients connections, depth $depth, $BYTES bytes" requests/s us/request redis-benchmark
    done
    ((depth == 1)) || continue
    for round in $(seq "$ROUNDS"); do
        if ((round % 2)); then
            run_memcaslap "$round" "$clients"
            run_tare "$round" memcached "$clients" 1 90 "$BYTES"
        else
            run_tare "$round" memcached "$clients" 1 90 "$BYTES"
            run_memcaslap "$round" "$clients"
        fi
    done
    summary "memcached, 90 % GETs, $clients connections, $BYTES bytes" requests/s us/request memcaslap
done
