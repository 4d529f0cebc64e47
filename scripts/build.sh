#!/usr/bin/env bash
# Builds target/release/tare and, beside it, target/release/tare-agent: one static program that runs in any guest.
set -euo pipefail
cd "$(dirname "$0")/.."

target_dir=${CARGO_TARGET_DIR:-target}
machine=$(uname -m)

# Beside the agent: each of the two ends with a program that one CPU alone can link.
cargo build --release --package tare &
tare=$!

# Linked against musl where that target is installed, else statically against glibc: the agent resolves no names
# and loads no modules, so nothing is lost. Naming the target also keeps these flags from build scripts.
target=$machine-unknown-linux-musl
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$target ]]; then
    target=$machine-unknown-linux-gnu
    export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
fi
code=0
cargo build --profile agent --target "$target" --package tare-agent || code=$?
wait "$tare" || code=$?
((code == 0)) || exit "$code"

built=$target_dir/$target/agent/tare-agent
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
