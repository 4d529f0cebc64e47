#!/usr/bin/env bash
# How far apart drivers on several hosts begin: many short trials of one guest that is driven from all of them at once.
# usage: bench/start-skew.sh
#
# Each host is a network namespace with an sshd of its own, and a time namespace, so that its clock is 1,000 s, 2,000 s ... from the
# controller's and has to be asked for, as on a machine of its own. All share the CPUs of this machine, so what they wait for a CPU is in the
# figures; the way to them is as short as a way can be. The first figure of a trial is its fact `drivers began within`, which goes by the
# hosts' own clocks as tare measured them. How wrong that measurement was is known here: the second figure has it added, and so is
# the most that the drivers can have been apart. Either misses its bar when its 99th percentile is not under 2 ms.
# TRIALS (100) and HOSTS (8) are environment variables, and so is HOST_AS: `chrt -f 10` gives the hosts a CPU when they want one, as if the
# machine did nothing else.
set -euo pipefail
TRIALS=${TRIALS:-100}
HOSTS=${HOSTS:-8}
bar_ms=2
apart_s=1000 # between the clocks of two hosts
port=2201
card=card0
PATH=$PATH:/usr/sbin:/sbin
# shellcheck source=bench/programs.sh
. "$(dirname "$0")/programs.sh"
for program in ip unshare nsenter sshd ssh ssh-keygen sqlite3 memcached; do
    command -v "$program" >/dev/null || { echo "no $program here; install it" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "namespaces need root: sudo bench/start-skew.sh" >&2; exit 1; }

# The switch and all cables are in a network namespace of the bench's own.
if [ -z "${TARE_BENCH_NAMESPACE:-}" ]; then
    export TARE_BENCH_NAMESPACE=1
    exec unshare --net -- "$0" "$@"
fi

work=$(mktemp -d)
tare=
pids=()
links=()
cleanup() {
    trap '' INT TERM
    # It takes away what it has on the hosts, so these go after it.
    if [ -n "$tare" ]; then
        kill -TERM "$tare" 2>/dev/null || true
        wait "$tare" || true
    fi
    # With each of these ends the sshd that it waits for. It lets no other signal end it.
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    wait 2>/dev/null
    for link in "${links[@]}"; do ip link del "$link" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# until_it WHAT COMMAND...: waits until it succeeds.
until_it() {
    local what=$1 tries
    shift
    for tries in $(seq 500); do
        "$@" && return
        sleep 0.02
    done
    echo "not there after $tries tries: $what" >&2
    cat "$work"/*.log >&2
    exit 1
}

ours=$(readlink /proc/self/ns/net)
has_own_network() { [ "$(readlink "/proc/$1/ns/net" 2>/dev/null)" != "$ours" ]; }

# host NUMBER: a host beside this one, reached by ssh on 10.99.NUMBER.2 and by its card of the wire on 203.0.113.NUMBER.
host() {
    local number=$1 config=$work/host-$1 pid
    cat >"$config" <<CONF
Port $port
ListenAddress 10.99.$number.2
HostKey $work/host
AuthorizedKeysFile $work/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
CONF
    # shellcheck disable=SC2016
    unshare --net --time --monotonic $((number * apart_s)) --fork --kill-child=TERM sh -c \
        'until [ -e "$1.go" ]; do sleep 0.02; done; exec $2 /usr/sbin/sshd -D -e -f "$1"' host "$config" "${HOST_AS:-}" \
        </dev/null 2>"$config.log" &
    pid=$!
    pids+=("$pid")
    until_it "the namespaces of host $number" has_own_network "$pid"
    links+=("m$number" "w$number")
    ip link add "m$number" type veth peer name admin netns "$pid"
    ip addr add "10.99.$number.1/24" dev "m$number"
    ip link set "m$number" up
    ip link add "w$number" type veth peer name wire netns "$pid"
    ip link set "w$number" master sw up
    nsenter -t "$pid" -n ip link set lo up
    nsenter -t "$pid" -n ip addr add "10.99.$number.2/24" dev admin
    nsenter -t "$pid" -n ip link set admin up
    nsenter -t "$pid" -n ip addr add "203.0.113.$number/24" dev wire
    nsenter -t "$pid" -n ip link set wire up
    : >"$config.go"
    until_it "the sshd of host $number" grep -q listening "$config.log"
}

mkdir -p /run/sshd
ip link set lo up
links+=(sw "$card")
ip link add sw type bridge forward_delay 0
ip link set sw up
ip link add "$card" type veth peer name port0
ip link set port0 master sw up
ip link set "$card" up
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$work/$key"; done

names=
{
    cat <<STUDY
schema = 1
name = "start-skew"
question = "How far apart do drivers on $HOSTS hosts begin?"
baseline = "native"
blocks = $TRIALS
noise-floor = false
[arms.native]
platform = "native"
[guest]
cpus = 1
memory = "128MiB"
[phases]
warm-up = "100ms"
steady-state = "200ms"
[lab]
wire = { interface = "$card", addresses = "203.0.113.100-203.0.113.120/24" }
[cases.start]
workload = "kv"
drivers = $HOSTS
load = { closed = { clients = 1 } }
parameters = { server = "memcached", keys = 1000, memory = "16MiB" }
STUDY
    for number in $(seq "$HOSTS"); do
        host "$number"
        names+="${names:+, }\"client-$number\""
        printf '[hosts.client-%s]\nssh = { host = "10.99.%s.2", address = "203.0.113.%s", port = %s, user = "root", config = "/dev/null", identity = "%s", host-key = "%s" }\n' \
            "$number" "$number" "$number" "$port" "$work/user" "$(cut -d' ' -f1,2 "$work/host.pub")"
    done
    printf '[roles]\ndrivers = [%s]\n' "$names"
} >"$work/study.toml"

# In a session of its own: of Ctrl-C it hears from this script alone, and a second signal would end it at once.
setsid "$TARE" run "$work/study.toml" --out "$work/run" >"$work/said" 2>&1 &
tare=$!
ended=0
wait "$tare" || ended=$?
tare=
if [ "$ended" != 0 ]; then
    cat "$work/said" >&2
    exit 1
fi
[ -z "${KEEP:-}" ] || cp -r "$work/run" "$KEEP"

# Of a trial: how far apart, with 0 in the place of the host, and what the clock of each host was found to be.
sqlite3 -separator '|' "$work/run/results.sqlite" "
    SELECT trial, 0, value FROM facts WHERE name = 'drivers began within'
    UNION ALL
    SELECT trial, substr(name, 22), value FROM facts WHERE name LIKE 'clock of host client-%'" >"$work/facts"
awk -F'|' -v trials="$TRIALS" -v hosts="$HOSTS" -v bar="$bar_ms" -v apart_s="$apart_s" '
    function sorted(list, n,    i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
    }
    # The smallest that so large a part of all does not exceed.
    function quantile(list, n, q,    at) {
        at = int(q * n)
        if (at < q * n) at++
        return list[at < 1 ? 1 : at]
    }
    function row(name, list, n,    p99) {
        sorted(list, n)
        p99 = quantile(list, n, 0.99)
        printf "%-44s %6d %10.3f %10.3f %10.3f %s\n", name, n, quantile(list, n, 0.5), p99, list[n], p99 < bar ? "met" : "MISSED"
        if (p99 >= bar) missed = 1
    }
    $2 == 0 { apart[$1] = $3 + 0; next }
    {
        if (!match($3, /[-+][0-9]+\.[0-9]+ s/)) { print "a clock without an offset: " $0; exit wrong = 2 }
        off = (substr($3, RSTART, RLENGTH) - $2 * apart_s) * 1e3
        if (!($1 in seen) || off < least[$1]) least[$1] = off
        if (!($1 in seen) || off > most[$1]) most[$1] = off
        seen[$1]++
    }
    END {
        if (wrong) exit wrong
        for (trial in apart) {
            if (seen[trial] != hosts) { print "trial " trial " has the clocks of " seen[trial] " hosts"; exit 2 }
            n++
            own[n] = apart[trial]
            clocks[n] = most[trial] - least[trial]
            both[n] = own[n] + clocks[n]
        }
        if (n != trials) { print n + 0 " of " trials " trials have a figure"; exit 2 }
        printf "%d drivers, each on a host of its own; ms; bar: p99 under %d ms\n", hosts, bar
        printf "%-44s %6s %10s %10s %10s\n", "", "trials", "median", "p99", "max"
        row("apart, by their own clocks as measured", own, n)
        row("apart at most, with the error of these", both, n)
        sorted(clocks, n)
        printf "%-44s %6d %10.3f %10.3f %10.3f\n", "the error alone", n, quantile(clocks, n, 0.5), quantile(clocks, n, 0.99), clocks[n]
        exit missed
    }' "$work/facts"
