#!/usr/bin/env bash
# Fuzzes what reads bytes of strangers: scripts/fuzz.sh [SECONDS [TARGET...]] (default: 60 seconds each, all targets).
#
# Needs cargo-fuzz and a nightly compiler. The targets run without rights on this machine, at the lowest priority, and start
# from fuzz/seeds and what earlier runs found (fuzz/corpus). What fails is kept in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

for tool in "cargo-fuzz:cargo install cargo-fuzz" "rustup:see https://rustup.rs"; do
    command -v "${tool%%:*}" >/dev/null || { echo "fuzz: needs ${tool%%:*} (${tool#*:})" >&2; exit 1; }
done
rustup run nightly rustc --version >/dev/null || { echo "fuzz: needs rustup toolchain install nightly --profile minimal" >&2; exit 1; }

seconds=${1:-60}
shift || true
targets=("$@")
[[ $# -gt 0 ]] || mapfile -t targets < <(cargo +nightly fuzz list)

cargo +nightly fuzz build
host=$(rustc +nightly -vV | sed -n 's/^host: //p')

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
# What unpacks archives must not be able to do harm should it be wrong: it is root of a user namespace that holds only
# itself, and outside nobody, or whoever this is.
harmless=(unshare --user --map-root-user)
if [[ $EUID -eq 0 ]]; then
    harmless=(setpriv --reuid=65534 --regid=65534 --clear-groups "${harmless[@]}")
    chmod 755 "$place"
fi

failed=0
for target in "${targets[@]}"; do
    work=$place/$target
    mkdir -p "$work"/{corpus,seeds,artifacts,tmp} "corpus/$target" "artifacts/$target"
    cp "target/$host/release/$target" "$work/run"
    cp -r "seeds/$target/." "$work/seeds"
    cp -r "corpus/$target/." "$work/corpus"
    [[ $EUID -ne 0 ]] || chown -R 65534:65534 "$work"
    echo "fuzz: $target for $seconds s"
    # Threads that are about to end look like leaks: to libFuzzer after an input, and to the sanitizer when the target ends. A static
    # array of SQLite's is registered twice by its C compiler's sanitizer, which calls it two definitions.
    (cd "$work" && TMPDIR=$work/tmp ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:detect_odr_violation=0 nice -n 19 "${harmless[@]}" timeout --kill-after=10 $((seconds + 120)) ./run \
        -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -detect_leaks=0 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$work/artifacts/" corpus seeds) >"artifacts/$target.log" 2>&1 || failed=1
    cp -r "$work/corpus/." "corpus/$target"
    cp -r "$work/artifacts/." "artifacts/$target"
    grep -E 'cov: ' "artifacts/$target.log" | tail -1 || true
    grep -E '^stat::number_of_executed_units|^Done |ERROR|SUMMARY' "artifacts/$target.log" || true
done
[[ $failed -eq 0 ]] || echo "fuzz: something failed: see fuzz/artifacts" >&2
exit "$failed"
