#!/usr/bin/env bash
# How often the analysis is wrong, by simulation in full: false verdicts of whole studies of equal arms, coverage of intervals whose width
# ends a case, changes found in histories of equal runs, coverage of fitted capacities. Seeded, so the figures are the same on every machine. CI runs short forms of the same.
set -euo pipefail
cd "$(dirname "$0")/.."

simulate() { cargo test --release --quiet --package "$1" --lib -- --ignored --nocapture --test-threads 1 "${@:2}"; }

simulate tare-analysis false_verdicts_of_whole_studies
simulate tare-analysis precision
simulate tare-analysis history_false_alarms
simulate tare-controller inference
