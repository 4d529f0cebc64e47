#!/usr/bin/env bash
# Runs every bench of the drivers against their peers, one after another. ROUNDS and SECONDS_EACH as in README.md.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --package tare-driver --example bench_driver --example http
[[ $EUID -eq 0 ]] || { echo "bench: needs root, for a network namespace of its own" >&2 && exit 1; }
bench/install-peers.sh
for bench in rr stream recording web; do
    bench/$bench.sh
done
# It needs the server's files and a JDK, which the others do not.
if command -v javac >/dev/null && [[ -x ${BUNDLE:-${TARE_CACHE:-/var/cache/tare}/bundle/web}/runtime/bin/java ]]; then
    bench/web-server.sh
else
    echo "bench: web-server.sh is left out; it needs javac and what scripts/bundle.sh web builds" >&2
fi
