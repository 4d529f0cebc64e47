#!/usr/bin/env bash
# 10,000 users of the social application who think: memory of the driver a user, how late its timers are, and its CPU a request, against an
# application that answers from memory. Both ends have a connection a user, so they are two processes, each with a limit of open files of its own.
# Users join over WARM seconds; their cycles have a mean of CYCLE seconds: 5 is the benchmark's, and 10,000 such users ask for
# 55,000 requests a second, which takes more than two processors at both ends together; with 50 it is a tenth of that.
# USERS, CYCLE, WARM, SECONDS_EACH, ROUNDS and DRIVE_AS (such as "chrt -f 10", where other work is on the machine) are environment variables.
# usage: bench/social.sh
# What runs the driver is several words or none, so it stands unquoted.
# shellcheck disable=SC2086
DRIVER=${DRIVER:-${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/release/examples/social}
if [ ! -x "$DRIVER" ]; then
    echo "no $DRIVER; build it: cargo build --release -p tare-driver --example social" >&2
    exit 1
fi
DRIVER=$(realpath "$DRIVER")
export DRIVER
rounds=${ROUNDS:-3}
seconds=${SECONDS_EACH:-20}
. "$(dirname "$0")/lib.sh"

users=${USERS:-10000}
cycle=${CYCLE:-50}
warm=${WARM:-45}
port=8090
files=$(ulimit -Hn)
if [ "$files" != unlimited ] && [ "$files" -lt $((users + 100)) ]; then
    echo "$users users need as many open files, and the hard limit is $files: raise it (ulimit -Hn), or set USERS" >&2
    exit 1
fi

field() { # NAME: a number of the driver's line
    sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" <<<"$output"
}

${DRIVE_AS:-} "$DRIVER" serve --port $port --users "$users" &
pids+=("$!")
listening $port
echo "## $users users, cycles of $cycle s, joined over $warm s, $seconds s measured, load average $(cut -d' ' -f1-3 /proc/loadavg)"
printf '%8s %12s %12s %14s %12s %12s %12s %12s %12s\n' round operations/s requests/s "bytes a user" "late us p50" p99 "us/request" "response ms" "waited, s"
for round in $(seq "$rounds"); do
    output=$(${DRIVE_AS:-} "$DRIVER" drive --target 127.0.0.1:$port --users "$users" --scale "$users" --warm "$warm" \
        --duration "$seconds" --cycle "$cycle" --names "$round")
    if ! grep -q '"errors":\[\]' <<<"$output"; then echo "errors: $output" >&2; exit 1; fi
    printf '%8d %12.1f %12.1f %14d %12.1f %12.1f %12.2f %12.2f %12.3f\n' "$round" "$(field rate)" \
        "$(awk -v n="$(field requests)" -v s="$seconds" 'BEGIN { print n / s }')" "$(field user_bytes)" "$(field late_p50_us)" \
        "$(field late_p99_us)" "$(awk -v u="$(field user_us)" -v s="$(field system_us)" 'BEGIN { print u + s }')" \
        "$(field response_p50_ms)" "$(field run_delay_s)"
done
