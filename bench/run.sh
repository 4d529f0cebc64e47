#!/usr/bin/env bash
# Runs every bench of the drivers against their peers, one after another. ROUNDS and SECONDS_EACH as in README.md.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --package tare-driver --example bench_driver
[[ $EUID -eq 0 ]] || { echo "bench: needs root, for a network namespace of its own" >&2 && exit 1; }
bench/install-peers.sh
for bench in rr stream recording; do
    bench/$bench.sh
done
