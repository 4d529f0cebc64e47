#!/usr/bin/env bash
# One file of 1 KiB from nginx on 32 connections, plain and over TLS, against wrk: client CPU a request, all of the process. Then
# 10,000 users who think for 5 s on average: memory of the driver a user, and how late its timers are.
# `tare` checks the length and the marker of every body; `tare-unchecked` looks at none, as wrk does.
# usage: bench/web.sh [plain|tls|thinking]...
# A placement is several words or none, so it stands unquoted.
# shellcheck disable=SC2086
DRIVER=${DRIVER:-${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/release/examples/http}
if [ ! -x "$DRIVER" ]; then
    echo "no $DRIVER; build it: cargo build --release -p tare-driver --example http" >&2
    exit 1
fi
DRIVER=$(realpath "$DRIVER")
export DRIVER
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin need wrk nginx openssl taskset

bytes=1024
path=/files/one.bin
sessions=${SESSIONS:-10000}
ulimit -n "$(ulimit -Hn)"
mkdir -p "$work/www/files"
"$DRIVER" --url "http://127.0.0.1$path" --bytes $bytes --print-file >"$work/www$path"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
    -keyout "$work/key.pem" -out "$work/certificate.pem" 2>/dev/null
certificate=$(openssl x509 -in "$work/certificate.pem" -outform der | sha256sum | cut -c 1-64)

# nginx_on PIN: starts nginx as this script's own, with one process that serves, and waits until it does.
nginx_on() {
    cat >"$work/nginx.conf" <<CONF
daemon off;
master_process off;
pid $work/nginx.pid;
error_log $work/nginx.log;
events { worker_connections 19000; multi_accept on; }
http {
    access_log off;
    client_body_temp_path $work/body;
    keepalive_requests 1000000000;
    keepalive_timeout 600;
    open_file_cache max=100;
    sendfile on;
    tcp_nopush on;
    ssl_certificate $work/certificate.pem;
    ssl_certificate_key $work/key.pem;
    server {
        listen 127.0.0.1:8080 backlog=4096;
        listen 127.0.0.1:8443 ssl backlog=4096;
        root $work/www;
    }
}
CONF
    PATH=$PATH:/usr/sbin $1 nginx -e "$work/nginx.log" -p "$work" -c "$work/nginx.conf" &
    server=$!
    pids+=("$server")
    listening 8443
}

nginx_off() {
    kill "$server"
    wait "$server" 2>/dev/null || true
}

ours() { # NAME ROUND PIN URL [OPTIONS]
    local name=$1 round=$2 pin=$3 url=$4
    shift 4
    timed $pin "$DRIVER" --url "$url" --duration "$SECONDS_EACH" "$@"
    grep -q '"errors":\[\]' <<<"$output" || { echo "errors: $output" >&2; exit 1; }
    note "$name" "$round" "$(field rate)" "$cpu" "$(field answered)"
}

theirs() { # NAME ROUND PIN URL
    timed $3 wrk -t1 -c32 -d"$SECONDS_EACH"s "$4"
    if grep -qE 'Non-2xx|Socket errors' <<<"$output"; then echo "errors: $output" >&2; exit 1; fi
    local requests rate
    requests=$(sed -n 's/ *\([0-9]*\) requests in.*/\1/p' <<<"$output")
    rate=$(sed -n 's/Requests\/sec: *//p' <<<"$output")
    note "$1" "$2" "$rate" "$cpu" "$requests"
}

busy() { # KIND URL
    local placement round pin
    for placement in unpinned separate; do
        pin=
        [ "$placement" = unpinned ] || pin="taskset -c 0"
        nginx_on "${pin/0/1}"
        for round in $(seq "$ROUNDS"); do
            # Who goes first changes from round to round.
            ((round % 2)) && theirs wrk "$round" "$pin" "$2"
            ours tare "$round" "$pin" "$2" --bytes $bytes
            before ours "$round" "$pin" "$2" --bytes $bytes
            ours tare-unchecked "$round" "$pin" "$2"
            ((round % 2)) || theirs wrk "$round" "$pin" "$2"
        done
        nginx_off
        summary "$1, 32 connections, $bytes bytes, $placement" "requests/s" "us/request" wrk
    done
}

thinking() { # NAME URL SESSIONS [OPTIONS]
    local name=$1 url=$2 count=$3
    shift 3
    timed "$DRIVER" --url "$url" --bytes $bytes --sessions "$count" --ramp 10 --duration 10 "$@"
    grep -q '"errors":\[\]' <<<"$output" || { echo "errors: $output" >&2; exit 1; }
    printf '%-22s %8d %14d %12.1f %12.1f %12d\n' "$name" "$count" "$(field session_bytes)" "$(field late_p50_us)" \
        "$(field late_p99_us)" "$(field connections)"
}

[[ $# -gt 0 ]] || set -- plain tls thinking
for kind in "$@"; do
    case $kind in
        plain) busy plain "http://127.0.0.1:8080$path" ;;
        tls) busy TLS "https://127.0.0.1:8443$path" ;;
        thinking)
            nginx_on ""
            echo "## users who think for 5 s on average"
            printf '%-22s %8s %14s %12s %12s %12s\n' "" users "bytes a user" "late us p50" p99 connections
            for round in $(seq "${THINKING_ROUNDS:-3}"); do
                thinking plain "http://127.0.0.1:8080$path" "$sessions"
                thinking tls "https://127.0.0.1:8443$path" "$sessions" --certificate "$certificate"
                # Two connections each; half as many users for the limit of open files.
                thinking plain-two "http://127.0.0.1:8080$path" $((sessions / 2 - 500)) --per-user 2
                thinking tls-two "https://127.0.0.1:8443$path" $((sessions / 2 - 500)) --certificate "$certificate" --per-user 2
            done
            nginx_off
            ;;
        *) echo "usage: bench/web.sh [plain|tls|thinking]..." >&2; exit 2 ;;
    esac
done
