#!/usr/bin/env bash
# How much blocks differ where the arms take turns, and where they run one after the other.
# usage: bench/turns.sh [WORKLOAD...]          workloads: rr, receive, send, cpu, kv, store, web, social; default: rr receive send cpu
#
# Two equal arms: native, and native again. Each workload is two cases of one run, `turns` and `trials`, of the same measured time:
# every block has each case once, in random order, so that what else the machine does hits both alike. The figure is the standard
# deviation of a block's log ratio of the two arms, of the primary metric; the last column is turns over trials.
# ROUNDS (blocks, 12) and SECONDS_EACH (measured time of an arm and block, 2) are environment variables.
set -euo pipefail
ROUNDS=${ROUNDS:-12}
SECONDS_EACH=${SECONDS_EACH:-2}
# shellcheck source=bench/programs.sh
. "$(dirname "$0")/programs.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- rr receive send cpu

# Where a Java virtual machine serves: it compiles what runs often first.
jvm_phases="phases = { warm-up = \"8s\", steady-state = \"${SECONDS_EACH}s\" }"$'\n'

# What a case of a workload has besides its schedule.
settings() {
    case $1 in
        rr) printf 'workload = "rr"\nload = { closed = { clients = 1 } }\n' ;;
        receive | send) printf 'workload = "stream"\nparameters = { direction = "%s" }\nload = { closed = { clients = 1 } }\n' "$1" ;;
        cpu) printf 'workload = "cpu"\n' ;;
        kv) printf 'workload = "kv"\nload = { closed = { clients = 4 } }\n' ;;
        store) printf 'workload = "store"\nparameters = { db-size = "10MB" }\nload = { closed = { clients = 4 } }\nguest = { memory = "768MiB" }\n' ;;
        web) # Users who think for 100 ms, not for 10 s, so that seconds show what minutes would.
            sed 's/^think = .*/think = { mean = "100ms", most = "1500ms", granularity = "20ms" }/' \
                "$bench/../workloads/web/host/sites/banking.toml" >"$work/banking.toml"
            printf 'workload = "web-banking"\nparameters = { tables = "%s", receive-rate = "unlimited", file-sessions = 4, heap = "256MiB" }\n' "$work/banking.toml"
            printf 'load = { closed = { clients = 20 } }\nguest = { memory = "768MiB" }\n%s' "$jvm_phases" ;;
        social)
            printf 'workload = "social"\nload = { closed = { clients = 25 } }\nguest = { memory = "1GiB" }\n%s' "$jvm_phases"
            printf 'parameters = { scale-users = 25, java = { heap = "160MiB" }, cycle = { mean = "250ms", most = "1250ms" }, pool = 8, threads = 40 }\n' ;;
        *) echo "unknown workload $1" >&2 && exit 2 ;;
    esac
}

{
    cat <<STUDY
schema = 1
name = "turns"
question = "How much less do blocks differ where the arms take turns?"
baseline = "native"
blocks = $ROUNDS
noise-floor = true
[arms.native]
platform = "native"
[guest]
cpus = 1
memory = "256MiB"
[phases]
warm-up = "500ms"
steady-state = "${SECONDS_EACH}s"
STUDY
    for workload in "$@"; do
        for schedule in turns trials; do
            printf '[cases.%s-%s]\nschedule = "%s"\n' "$workload" "$schedule" "$schedule"
            settings "$workload"
        done
    done
} >"$work/study.toml"
"$TARE" run "$work/study.toml" --out "$work/run" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
[ -z "${KEEP:-}" ] || cp -r "$work/run" "$KEEP"

# The primary metric of a case is the first in trials.csv.
awk -F, -v rounds="$ROUNDS" '
    NR > 1 && !($1 in metric) { metric[$1] = $3 }
    NR > 1 && $3 == metric[$1] && $6 > 0 { value[$1, $2, $5] = $6 }
    function spread(name,    block, n, sum, squares, log_ratio) {
        for (block = 0; block < rounds; block++) {
            if (!((name, "native", block) in value) || !((name, "native-again", block) in value)) continue
            log_ratio = log(value[name, "native-again", block] / value[name, "native", block])
            n++; sum += log_ratio; squares += log_ratio ^ 2
        }
        count = n
        return n > 1 ? sqrt((squares - sum ^ 2 / n) / (n - 1)) : -1
    }
    END {
        printf "%-10s %-28s %12s %12s %8s %s\n", "workload", "metric", "turns", "trials", "ratio", "blocks"
        for (name in metric) {
            if (name !~ /-turns$/) continue
            workload = substr(name, 1, length(name) - 6)
            turns = spread(workload "-turns"); n = count
            trials = spread(workload "-trials")
            printf "%-10s %-28s %10.2f %% %10.2f %% %8.2f %d and %d\n", workload, metric[name], 100 * turns, 100 * trials, turns / trials, n, count
        }
    }' "$work/run/trials.csv" | sort
