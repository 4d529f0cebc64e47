#!/usr/bin/env bash
# Filling a store against `pgbench -i`: megabytes a second and the server's CPU a megabyte, in one run, in turn, on one
# throw-away server.
# usage: bench/load.sh
#
# ROUNDS (5), SIZE of the store (100MB), SCALE of pgbench (10), CONNECTIONS of the store's load (2), PGBIN and OPTIONS of the
# server (such as "-c wal_level=minimal -c max_wal_senders=0") are environment variables. Both make their tables in a database
# of their own, with primary keys and statistics; the store's load makes 13 indexes more, two of them of full text, and three
# foreign keys, all in its time. Sizes are the server's own after the load, the CPU that of all its processes.
set -euo pipefail

ROUNDS=${ROUNDS:-5}
SIZE=${SIZE:-100MB}
SCALE=${SCALE:-10}
CONNECTIONS=${CONNECTIONS:-2}
OPTIONS=${OPTIONS:-}
bench=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$bench/../target}
DRIVER=${DRIVER:-$target/release/examples/store_load}
PGBIN=${PGBIN:-$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)}
if [ ! -x "$DRIVER" ] || [ ! -x "$PGBIN/pgbench" ]; then
    echo "needs PostgreSQL with pgbench, and: cargo build --release -p tare-driver --example store_load" >&2
    exit 1
fi

# A server does not run as root.
as_nobody=()
work=$(mktemp -d)
chmod 755 "$work"
if [ "$EUID" -eq 0 ]; then
    as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    chown 65534:65534 "$work"
fi
stop() {
    "${as_nobody[@]}" "$PGBIN/pg_ctl" -D "$work/data" -m immediate -w stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap stop EXIT
cd /
"${as_nobody[@]}" "$PGBIN/initdb" --no-sync -A trust -U bench --encoding=UTF8 --locale=C -D "$work/data" >/dev/null
for port in $(shuf -i 20000-29999 -n 5); do
    "${as_nobody[@]}" "$PGBIN/pg_ctl" -D "$work/data" -l "$work/log" -w start \
        -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c log_statement_stats=on $OPTIONS" >/dev/null && break
done
export PGHOST=127.0.0.1 PGPORT=$port PGUSER=bench
"$PGBIN/postgres" --version

# megabytes FUNCTION: what the tables of the database take.
megabytes() {
    "$PGBIN/psql" -d contest -Atc "SELECT round(sum($1(oid)) / 1e6, 1) FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
}

# Seconds of CPU of the server, those of its processes that have ended included.
server_cpu() {
    local parent
    parent=$(head -n 1 "$work/data/postmaster.pid")
    cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^\([0-9]*\) (.*) /\1 /' | awk -v parent="$parent" -v hz="$(getconf CLK_TCK)" '
        $1 == parent { ticks += $13 + $14 + $15 + $16 }
        $3 == parent { ticks += $13 + $14 }
        END { printf "%.2f", ticks / hz }'
}

# Seconds of CPU of the COPY statements alone, by the server's own account.
copy_cpu() {
    awk '
        match($0, /[0-9.]+ s user, [0-9.]+ s system, /) { split(substr($0, RSTART), part, " "); cpu = part[1] + part[4] }
        match($0, /STATEMENT:  (COPY|copy) /) { sum += cpu }
        END { printf "%.3f", sum }' "$work/log"
}

# Seconds until the last row was there, as the program itself tells: of the store's load those of indexes that were made meanwhile
# are in it, of pgbench's neither the tables' creation nor vacuum nor keys.
rows_seconds() {
    case $1 in
    store) awk 'NF == 3 { seconds = $2 } END { print seconds }' "$work/said" ;;
    pgbench) sed -n 's/.*client-side generate \([0-9.]*\) s.*/\1/p' "$work/said" ;;
    esac
}

# contest NAME: what it takes in an empty database, and what it made:
# NAME SECONDS TABLES WITH-INDEXES SERVER-CPU COPY-CPU SECONDS-OF-ROWS.
contest() {
    local began ended cpu
    "$PGBIN/psql" -qd postgres -c "DROP DATABASE IF EXISTS contest" -c "CREATE DATABASE contest" -c CHECKPOINT 2>/dev/null
    : >"$work/log"
    cpu=$(server_cpu)
    began=$EPOCHREALTIME
    case $1 in
    store) "$DRIVER" --address "127.0.0.1:$port" --user bench --database contest --size "$SIZE" --connections "$CONNECTIONS" ;;
    pgbench) "$PGBIN/pgbench" -i -q -s "$SCALE" contest ;;
    esac >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
    ended=$EPOCHREALTIME
    echo "$1 $(awk -v a="$began" -v b="$ended" 'BEGIN { print b - a }') $(megabytes pg_table_size) \
$(megabytes pg_total_relation_size) $(awk -v a="$cpu" -v b="$(server_cpu)" 'BEGIN { print b - a }') $(copy_cpu) $(rows_seconds "$1")"
}

for round in $(seq "$ROUNDS"); do
    order="store pgbench"
    [ $((round % 2)) -eq 0 ] && order="pgbench store"
    for name in $order; do
        echo "$round $(contest "$name")"
    done
done | tee "$work/results"

# Ratios within rounds, and their medians.
awk '
    { rate[$1, $2, "tables"] = $4 / $3; rate[$1, $2, "all"] = $5 / $3; rate[$1, $2, "rows"] = $4 / $8; rounds = $1 > rounds ? $1 : rounds
      cpu[$1, $2, "rows"] = 1000 * $7 / $4; cpu[$1, $2, "all"] = 1000 * $6 / $5 }
    function median(what,    n, i, j, t, v) {
        n = split(what, v, " ")
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (v[j] + 0 < v[i] + 0) { t = v[i]; v[i] = v[j]; v[j] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    function show(says, unit, digits, figures, kind,    r, ours, theirs, ratio, form) {
        for (r = 1; r <= rounds; r++) {
            ours = ours " " figures[r, "store", kind]; theirs = theirs " " figures[r, "pgbench", kind]
            ratio = ratio " " figures[r, "store", kind] / figures[r, "pgbench", kind]
        }
        form = "%." digits "f " unit
        printf "%s: store " form ", pgbench -i " form ", ratio %.2f\n", says, median(ours), median(theirs), median(ratio)
    }
    END {
        show("tables, until the last row", "MB/s", 1, rate, "rows")
        show("tables, in the time of all", "MB/s", 1, rate, "tables")
        show("all that is made, a second", "MB/s", 1, rate, "all")
        show("server CPU, rows alone, without an index", "ms/MB", 2, cpu, "rows")
        show("server CPU, all that is made", "ms/MB", 2, cpu, "all")
    }' "$work/results"
