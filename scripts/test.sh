#!/usr/bin/env bash
# Runs all tests and counts them honestly; further arguments go to `cargo test`. Tests of the Java applications and of the
# scripts run with all others, and not where arguments choose among them.
#
# Tests are built in the dev profile, where they build fast and overflow is checked. Those that start tare itself
# take the programs of `make build` through TARE_BIN and TARE_AGENT, so that what is tested end to end is what ships
# and the agent is the static one.
#
# A test that needs what this machine does not have prints `SKIPPED: reason` and returns, which cargo calls passed.
# `cargo xtask tally` reads the captured output, lists those tests with their reasons and counts them as skipped.
# A few tests that failed are tried once more, alone; those that pass then are named. On a shared machine some fail by chance.
# The whole output is kept in target/test.log, the closing line in target/test.summary.
set -euo pipefail
cd "$(dirname "$0")/.."

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export TARE_BIN=$target_dir/release/tare TARE_AGENT=$target_dir/release/tare-agent
# The tally reads plain text.
export CARGO_TERM_COLOR=never

for program in "$TARE_BIN" "$TARE_AGENT"; do
    [[ -x $program ]] || { echo "test: $program is not there: run make build" >&2 && exit 1; }
done

# Built before the pipe is opened: two cargos at once would wait for one another.
cargo build --quiet --package xtask
# A test of the lab starts this example. Lints have looked at the other examples, and no comment holds a test.
cargo build --quiet --workspace --example lab --locked
programs=(--lib --bins --tests)
[[ -z ${*/--locked/} ]] || programs=()
rm -f "$target_dir/test.log" "$target_dir/test.summary"
{
    code=0
    # The tally judges: a few failed tests may pass at a second try, alone.
    cargo test --workspace --no-fail-fast "${programs[@]}" "$@" -- --show-output || echo "cargo test failed: $?"
    if [[ -z ${*/--locked/} ]]; then
        scripts/test-apt.sh || code=$?
        scripts/test-packages.sh || code=$?
        scripts/test-java.sh || code=$?
    fi
    exit "$code"
} 2>&1 </dev/null | "$target_dir/debug/xtask" tally --log "$target_dir/test.log" --summary "$target_dir/test.summary"
