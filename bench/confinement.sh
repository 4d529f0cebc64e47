#!/usr/bin/env bash
# What the filter of system calls costs: the same study with it and without, on arms that share the host's kernel.
# usage: bench/confinement.sh [ARM...]          arms: native (always), container, lxc, nspawn; default: container
#
# Both levels are cases of one run: every block has each case once, in random order, so that what else the machine does hits both
# alike. A ratio is the median over blocks of `default` to `off` within a block. Its interval is the distribution-free one of
# a median, between two of the sorted ratios, at 95 % or a little more.
set -euo pipefail
ROUNDS=${ROUNDS:-20}
SECONDS_EACH=${SECONDS_EACH:-2}
# shellcheck source=bench/programs.sh
. "$(dirname "$0")/programs.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

{
    cat <<STUDY
schema = 1
name = "confinement"
question = "What does the filter of system calls cost?"
baseline = "native"
blocks = $ROUNDS
noise-floor = false
[arms.native]
platform = "native"
STUDY
    for arm in "${@:-container}"; do
        printf '[arms.%s]\nplatform = "%s"\n' "$arm" "$arm"
    done
    cat <<STUDY
[guest]
cpus = 1
memory = "256MiB"
[phases]
warm-up = "300ms"
steady-state = "${SECONDS_EACH}s"
STUDY
    for level in default off; do
        printf '[cases.rr-%s]\nworkload = "rr"\nguest = { seccomp = "%s" }\n' "$level" "$level"
        printf 'parameters = { request = "128B", response = "128B" }\n'
        printf '[cases.cpu-%s]\nworkload = "cpu"\nguest = { seccomp = "%s" }\n' "$level" "$level"
    done
} >"$work/study.toml"
"$TARE" run "$work/study.toml" --out "$work/run" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }

# The number of ratios that the interval leaves out at each end: the largest with at most 2.5 % of a fair coin's throws beyond it.
awk -F, -v rounds="$ROUNDS" '
    function outside(n,    k, p, all) {
        p = 0.5 ^ n; all = p
        for (k = 0; all <= 0.025 && k < n; k++) { p = p * (n - k) / (k + 1); all += p }
        return k
    }
    function report(name,    n, i, j, t, k, low, high, middle) {
        n = 0
        for (i = 0; i < rounds; i++) {
            if ((name, "default", i) in value && (name, "off", i) in value && value[name, "off", i] > 0)
                ratio[++n] = value[name, "default", i] / value[name, "off", i]
        }
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && ratio[j] < ratio[j - 1]; j--) { t = ratio[j]; ratio[j] = ratio[j - 1]; ratio[j - 1] = t }
        if (n == 0) return
        middle = n % 2 ? ratio[(n + 1) / 2] : (ratio[n / 2] + ratio[n / 2 + 1]) / 2
        k = outside(n)
        low = k > 0 ? sprintf("%.3f", ratio[k]) : "-"; high = k > 0 ? sprintf("%.3f", ratio[n + 1 - k]) : "-"
        printf "%-44s %8.3f   %s to %s   %d blocks\n", name, middle, low, high, n
    }
    $1 ~ /^(rr|cpu)-(default|off)$/ {
        split($1, of, "-")
        name = of[1] " " $2 " " $3
        if (!(name in known)) { known[name] = ++names; ordered[names] = name }
        value[name, of[2], $5] = $6
    }
    END {
        printf "%-44s %8s   %s\n", "metric, with the filter to without", "ratio", "interval"
        for (at = 1; at <= names; at++) report(ordered[at])
    }' <(grep -E ',(response_time_(mean|p50)_s|service_demand_cpu_s|start_time_s|chunks_per_s),' \
    "$work/run/trials.csv")
