#!/usr/bin/env bash
# Builds target/release/tare and, beside it, target/release/tare-agent: one static program that runs in any guest.
set -euo pipefail
cd "$(dirname "$0")/.."

target_dir=${CARGO_TARGET_DIR:-target}

# The first compiles all that the two programs are made of; the second only links it once more, statically. The agent resolves no names
# and loads no modules, so a static C library takes nothing from it.
cargo build --release --package tare --bin tare
cargo rustc --release --package tare --bin agent -- -C target-feature=+crt-static -C strip=symbols

built=$target_dir/release/agent
if LC_ALL=C readelf --program-headers "$built" | grep -q INTERP; then
    echo "build: $built asks for a dynamic loader, so it would not start in every guest" >&2
    exit 1
fi

# By renaming: the file may be in use by a run, and writing into it would fail.
beside=$target_dir/release/tare-agent
if ! cmp -s "$built" "$beside"; then
    cp "$built" "$beside.new"
    mv "$beside.new" "$beside"
fi
