#!/usr/bin/env bash
# The store's driver against pgbench: the same statements, prepared, in the same mix, on a PostgreSQL of the bench's own.
# pgbench has each thread serve one client (-j as many as clients) or two threads serve all: both are shown.
#
# CPU and rate are shown for an order; both do the same statements an order (the figure is printed), so the ratios are those a statement, too.
# A placement is several words or none, so it stands unquoted; the arrays are those of lib.sh.
# shellcheck disable=SC2086,SC2054
DRIVER=${DRIVER:-${CARGO_TARGET_DIR:-$(cd "$(dirname "$0")/.." && pwd)/target}/release/examples/bench_store}
export DRIVER
. "$(dirname "$0")/lib.sh"
CLIENTS=${CLIENTS:-20 8}
CUSTOMERS=${CUSTOMERS:-20000}
PRODUCTS=${PRODUCTS:-10000}
POSTGRES=${POSTGRES:-$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)}
PATH=$POSTGRES:$PATH
for program in initdb pg_ctl postgres pgbench psql; do
    command -v "$program" >/dev/null || {
        echo "no $program; install postgresql, or name its bin directory in POSTGRES" >&2
        exit 1
    }
done
port=54329
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

# No waiting for the disk: what is measured are the clients, and the server keeps nothing.
start_server() {
    chmod 711 "$work"
    install -d -o 65534 -g 65534 -m 700 "$work/pg"
    as_nobody initdb -D "$work/pg/data" -U store -A trust --no-sync -E UTF8 --locale=C >"$work/initdb"
    local options="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=500"
    options+=" -c fsync=off -c shared_buffers=512MB -c max_wal_size=4GB -c autovacuum=off"
    as_nobody pg_ctl -D "$work/pg/data" -w -l "$work/pg/log" -o "$options" start >"$work/started"
    psql -q -h 127.0.0.1 -p "$port" -U store -d postgres -c 'CREATE DATABASE store'
}
stop_server() {
    [ ! -e "$work/pg/data/postmaster.pid" ] || as_nobody pg_ctl -D "$work/pg/data" -m immediate stop >/dev/null || true
    cleanup
}
trap stop_server EXIT
cd "$bench_dir"

# script: the order as a script of pgbench. It has no texts to draw, so that words to be looked for are constants (-D), five of each kind.
script() {
    local columns="prod_id, category, title, actor, price, special, common_prod_id" n
    cat <<EOF
\set new random(1, 5)
\if :new > 1
\set user random(1, $CUSTOMERS)
SELECT customer_id AS customer FROM customers WHERE username = 'user' || :user AND password = :password \gset
SELECT p.title, p.actor, linked.title AS linked_title FROM cust_hist h JOIN products p ON p.prod_id = h.prod_id LEFT JOIN products linked ON linked.prod_id = p.common_prod_id WHERE h.customer_id = :customer ORDER BY h.order_id DESC, p.title LIMIT 10
\else
\set first random(100000, 999999)
\set last random(1000000000, 9999999999)
\set street random(100000000000, 9999999999999)
\set zip random(10000, 99999)
\set phone random(1000000000, 9999999999)
\set card random(1000000000000000, 9999999999999999)
\set name random(1000000000000, 9000000000000000000)
\set age random(18, 90)
\set income random(1, 5) * 20000
INSERT INTO customers (first_name, last_name, address1, address2, city, state, zip, country, region, email, phone, card_type, card_number, card_expires, username, password, age, income, gender) VALUES (:first, :last, :street, '', :first, :state, :zip, :country, 1, :last, :phone, 3, :card, :zip, :name, :password, :age, :income, 'F') ON CONFLICT (username) DO NOTHING RETURNING customer_id AS customer \gset
\endif
\set browses random(1, 5)
EOF
    for n in 1 2 3 4 5; do
        cat <<EOF
\if :browses >= $n
\set kind random(1, 3)
\set rows random(1, 9)
\if :kind = 1
\set category random(1, 16)
SELECT $columns FROM products WHERE category = :category AND special = 1 LIMIT :rows::integer
\elif :kind = 2
SELECT $columns FROM products WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', :actor$n) LIMIT :rows::integer
\else
SELECT $columns FROM products WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', :title$n) LIMIT :rows::integer
\endif
\endif
EOF
    done
    echo '\set lines random(1, 9)'
    for n in 1 2 3 4 5 6 7 8 9; do
        cat <<EOF
\if :lines >= $n
\set product$n random(1, $PRODUCTS + 9 * ($PRODUCTS / 10000))
\set product$n case when :product$n <= $PRODUCTS then :product$n else ((:product$n - $PRODUCTS - 1) / 9 + 1) * 10000 end
\set quantity$n random(1, 3)
SELECT price FROM products WHERE prod_id = :product$n
\endif
EOF
    done
    cat <<EOF
\set net random(1000, 30000)
\set tax :net / 12
\set total :net + :tax
BEGIN
INSERT INTO orders (order_date, customer_id, net_amount, tax, total_amount) VALUES (current_date, :customer, :net, :tax, :total) RETURNING order_id AS order_id \gset
EOF
    for n in 1 2 3 4 5 6 7 8 9; do
        cat <<EOF
\if :lines >= $n
UPDATE inventory SET quan_in_stock = quan_in_stock - :quantity$n, sales = sales + :quantity$n WHERE prod_id = :product$n AND quan_in_stock >= :quantity$n
INSERT INTO orderlines (order_id, line, prod_id, quantity, order_date) VALUES (:order_id, $n, :product$n, :quantity$n, current_date)
INSERT INTO cust_hist (customer_id, order_id, prod_id) VALUES (:customer, :order_id, :product$n)
\endif
EOF
    done
    echo COMMIT
}

words=(-D password=password -D state=NY -D country=US)
n=0
for word in Alder Anchor Lantern Maple Winter; do words+=(-D "title$((++n))=$word"); done

run_pgbench() { # NAME ROUND CLIENTS THREADS
    timed pgbench -n -h 127.0.0.1 -p "$port" -U store -M prepared -f "$work/order.sql" "${words[@]}" -c "$3" -j "$4" -T "$SECONDS_EACH" store
    local orders rate
    orders=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$output")
    rate=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$output")
    note "$1" "$2" "$rate" "$cpu" "$orders"
}

run_tare() { # NAME ROUND CLIENTS
    timed "$DRIVER" --address "127.0.0.1:$port" --customers "$CUSTOMERS" --products "$PRODUCTS" drive \
        --clients "$3" --seconds "$SECONDS_EACH" --seed "$2"
    note "$1" "$2" "$(field rate)" "$cpu" "$(field operations)"
    statements=$(field statements_per_order)
}

start_server
"$DRIVER" --address "127.0.0.1:$port" --customers "$CUSTOMERS" --products "$PRODUCTS" load >"$work/loaded"
# Actors that are in the store and some that are not, as random names are.
for n in 1 2 3 4 5; do
    actor=$(psql -qAt -h 127.0.0.1 -p "$port" -U store -d store -c "SELECT actor FROM products ORDER BY prod_id OFFSET $((n * 7)) LIMIT 1")
    ((n <= 1)) || actor="${actor%% *} $(psql -qAt -h 127.0.0.1 -p "$port" -U store -d store \
        -c "SELECT split_part(actor, ' ', 2) FROM products ORDER BY prod_id OFFSET $((n * 11)) LIMIT 1")"
    words+=(-D "actor$n=$actor")
done
# A statement ends where its line does.
script | sed -E '/^[A-Z]/{/gset$/!s/$/;/}' >"$work/order.sql"
chmod 644 "$work/order.sql"

for clients in $CLIENTS; do
    for round in $(seq "$ROUNDS"); do
        if ((round % 2)); then
            run_pgbench "pgbench_-j$clients" "$round" "$clients" "$clients"
            run_tare tare "$round" "$clients"
            before run_tare "$round" "$clients"
            run_pgbench pgbench_-j2 "$round" "$clients" 2
        else
            run_pgbench pgbench_-j2 "$round" "$clients" 2
            before run_tare "$round" "$clients"
            run_tare tare "$round" "$clients"
            run_pgbench "pgbench_-j$clients" "$round" "$clients" "$clients"
        fi
    done
    cp "$results" "$work/kept"
    for reference in "pgbench_-j$clients" pgbench_-j2; do
        cp "$work/kept" "$results"
        summary "orders, $clients connections, $statements statements each" "orders/s" "us/order" "$reference"
    done
    # pgbench says so when a statement fails; the driver's rollbacks are in its own figures.
    if [ -s "$work/err" ]; then cat "$work/err"; fi
done

# What 400 clients that think cost in memory.
timed "$DRIVER" --address "127.0.0.1:$port" --customers "$CUSTOMERS" --products "$PRODUCTS" drive \
    --clients 400 --think 2 --warm-up 2 --seconds 4
echo "400 clients that think 2 s: $(field rate) orders/s, $(field resident_mb) MB resident"
