#!/usr/bin/env bash
# What an agent costs the controller: CPU and memory of the controller's own process in runs of one trial with few agents and with many.
# usage: bench/agents.sh [AGENTS...]          multiples of 4; default: 12 100 1000
#
# Platform and workload are `null`: agents that are nothing but agents, with a load of a few empty operations a second. A quarter of them are
# guests, which also sample themselves, the others their drivers. A round runs every number once, in an order that changes from round to
# round, and once with 4 agents: what is above that, over the agents above 4, is the cost of an agent. CPU is user and system time of the
# controller's process, all of the run, without its children; memory is its peak (VmHWM), and of an agent RSS and PSS under load, the median of all.
# Cost is linear where that of an agent, among the most, is at most 1.5 times that among a hundred.
# ROUNDS (5) and SECONDS_EACH (3, of load) are environment variables.
set -euo pipefail
ROUNDS=${ROUNDS:-5}
SECONDS_EACH=${SECONDS_EACH:-3}
bar=1.5
least=4
drivers=3 # of each guest
# shellcheck source=bench/programs.sh
. "$(dirname "$0")/programs.sh"
[ $# -gt 0 ] || set -- 12 100 1000
for agents in "$@"; do
    if ((agents % (1 + drivers) || agents <= least)); then
        echo "$agents is no multiple of $((1 + drivers)) above $least" >&2
        exit 2
    fi
done
ticks=$(getconf CLK_TCK)
work=$(mktemp -d)
tare=
cleanup() {
    trap '' INT TERM
    if [ -n "$tare" ]; then
        kill -TERM "$tare" 2>/dev/null || true
        wait "$tare" || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# study AGENTS
study() {
    cat <<STUDY
schema = 1
name = "agents"
question = "What do $1 agents cost the controller?"
baseline = "null"
blocks = 1
schedule = "trials"
noise-floor = false
[arms.null]
platform = "null"
[guest]
cpus = 1
memory = "16MiB"
[lab]
sample-interval = "1s"
[phases]
warm-up = "5s"
steady-state = "${SECONDS_EACH}s"
[cases.idle]
workload = "null"
guests = $(($1 / (1 + drivers)))
drivers = $drivers
load = { open = { rate = "5/s", connections = 1, arrivals = "uniform" } }
STUDY
}

# weigh AGENTS: RSS and PSS of the median agent in $weight, KiB, where all are there; open files of the controller in $files.
weigh() {
    local agents open of
    mapfile -t agents < <(pgrep -P "$tare" -x tare-agent)
    [ "${#agents[@]}" = "$1" ] || return 0
    agents=("${agents[@]/#//proc/}")
    of=$(awk '/^Rss:/ { rss = $2 } /^Pss:/ { print rss, $2 }' "${agents[@]/%//smaps_rollup}" 2>/dev/null) || return 0
    weight="$(cut -d' ' -f1 <<<"$of" | sort -n | sed -n "$((($1 + 1) / 2))p") $(cut -d' ' -f2 <<<"$of" | sort -n | sed -n "$((($1 + 1) / 2))p")"
    open=("/proc/$tare/fd/"*)
    files=${#open[@]}
}

# run AGENTS ROUND
run() {
    local out=$work/run-$1-$2 stat name value cpu=0 peak=0 threads=0 now last=0 began=$SECONDS ended=0 journal
    weight=''
    files=0
    study "$1" >"$work/study.toml"
    # In a session of its own: of Ctrl-C it hears from this script alone, and a second signal would end it at once.
    setsid "$TARE" run "$work/study.toml" --out "$out" >"$work/said" 2>&1 &
    tare=$!
    # The last look before the end is what counts: 50 ms at most are not seen.
    while read -r stat 2>/dev/null <"/proc/$tare/stat"; do
        # shellcheck disable=SC2206
        stat=(${stat##*) })
        cpu=$((stat[11] + stat[12]))
        while read -r name value _; do
            case $name in
                VmHWM:) peak=$value ;;
                Threads:) threads=$((value > threads ? value : threads)) ;;
            esac
        done 2>/dev/null <"/proc/$tare/status" || true
        now=$SECONDS
        if ((now > last)); then
            last=$now
            journal=$(cat "$out/journal.jsonl" 2>/dev/null) || true
            [[ $journal != *'"drive"'* ]] || weigh "$1"
        fi
        sleep 0.05
    done
    wait "$tare" || ended=$?
    tare=
    if [ "$ended" != 0 ]; then
        cat "$work/said" >&2
        exit 1
    fi
    [ -n "$weight" ] || { echo "there never were $1 agents at one time" >&2; exit 1; }
    rm -rf "$out"
    echo "$1 $2 $cpu $peak $threads $files $weight $((SECONDS - began))" >>"$work/results"
}

for round in $(seq "$ROUNDS"); do
    order=("$least" "$@")
    for ((at = 0; at < ${#order[@]}; at++)); do
        run "${order[(at + round) % ${#order[@]}]}" "$round"
    done
done

awk -v ticks="$ticks" -v least="$least" -v rounds="$ROUNDS" -v bar="$bar" '
    function median(list, n,    i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    # The median over rounds of a column; where `of` is 1, of what an agent takes of it above the fewest.
    function middle(agents, column, of,    r, list) {
        for (r = 1; r <= rounds; r++) {
            list[r] = seen[agents, r, column]
            if (of) list[r] = (list[r] - seen[least, r, column]) / (agents - least)
        }
        return median(list, rounds)
    }
    {
        if (!($1 in known)) { known[$1]; numbers[++n] = $1 }
        for (column = 3; column <= NF; column++) seen[$1, $2, column] = $column
    }
    END {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && numbers[j - 1] > numbers[j]; j--) {
            t = numbers[j]; numbers[j] = numbers[j - 1]; numbers[j - 1] = t
        }
        printf "%d rounds, medians; CPU and memory an agent: above those of the run with %d\n", rounds, least
        format = "%7s %9s %12s %11s %13s %8s %7s %12s %12s %8s\n"
        printf format, "agents", "CPU, s", "an agent, ms", "peak, MiB", "an agent, KiB", "threads", "files", "its RSS, KiB", "its PSS, KiB", "run, s"
        for (i = 1; i <= n; i++) {
            a = numbers[i]
            each = a > least
            cpu[a] = each ? middle(a, 3, 1) / ticks * 1e3 : 0
            memory[a] = each ? middle(a, 4, 1) : 0
            printf format, a, sprintf("%.2f", middle(a, 3) / ticks), each ? sprintf("%.2f", cpu[a]) : "-", sprintf("%.1f", middle(a, 4) / 1024),
                each ? sprintf("%.1f", memory[a]) : "-", middle(a, 5), middle(a, 6), middle(a, 7), middle(a, 8), middle(a, 9)
        }
        most = numbers[n]
        if (!(100 in known) || most == 100) exit
        ratios["CPU"] = cpu[most] / cpu[100]
        ratios["memory"] = memory[most] / memory[100]
        for (what in ratios) {
            met = ratios[what] <= bar
            printf "%s of an agent among %d to that among 100: %.2f (bar %s) %s\n", what, most, ratios[what], bar, met ? "met" : "MISSED"
            if (!met) missed = 1
        }
        exit missed
    }' "$work/results"
