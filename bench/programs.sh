# shellcheck shell=bash
# What is set here is used by those that source it.
# shellcheck disable=SC2034
# The programs under test, for benches of the whole tool: sourced, not run. TARE and TARE_AGENT name others than those of `make build`.
bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$bench/../target}
TARE=${TARE:-$target/release/tare}
export TARE_AGENT=${TARE_AGENT:-$(dirname "$TARE")/tare-agent}
if [ ! -x "$TARE" ] || [ ! -x "$TARE_AGENT" ]; then
    echo "no $TARE or no $TARE_AGENT beside it; build both with: make build" >&2
    exit 1
fi
