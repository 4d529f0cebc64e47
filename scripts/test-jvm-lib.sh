#!/usr/bin/env bash
# Tests how scripts/jvm-lib.sh starts, asks and ends a server, with programs that stand for one.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'end_server; rm -rf "$work"' EXIT
# shellcheck disable=SC2034 # Used by what follows.
name='test'
# shellcheck source=scripts/jvm-lib.sh
. scripts/jvm-lib.sh
# shellcheck source=scripts/counted.sh
. scripts/counted.sh

# launch PORT SCRIPT: what stands for a server; it notes its number, and its port is its first word.
launch() {
    # shellcheck disable=SC2016,SC2034 # The inner shell's own; used by what follows.
    command=(bash -c 'echo $$ >>"$0.pids"; '"$2" "$work/server" "$1")
}
# It goes on until it is ended.
well='echo "[warning] some flag was deprecated"; echo ready; while :; do sleep 0.1; done'
fine() { [[ $1 -ge 20000 ]]; }
wrong() { return 1; }

# None of those that were started is there any more.
nobody() {
    local pid
    while read -r pid; do
        if kill -0 "$pid" 2>/dev/null; then
            echo "process $pid goes on"
            return 1
        fi
    done <"$work/server.pids"
}

a_warning_before_ready_is_passed_over() { serving fine launch "$well" && nobody; }

a_check_that_fails_leaves_no_server() { ! serving wrong launch "$well" && nobody; }

a_server_that_ends_is_reported() {
    ! serving fine launch 'echo "cannot do it" >&2; exit 1' >"$work/out" && grep --quiet 'cannot do it' "$work/out" &&
        [[ $(wc -l <"$work/server.pids") == 1 ]]
}

a_server_that_says_nothing_is_ended() {
    ! JVM_TIMEOUT_S=1 serving fine launch 'exec sleep 600' >"$work/out" && grep --quiet 'did not say that it was ready' "$work/out" &&
        nobody
}

a_port_that_is_taken_is_tried_another_for() {
    # shellcheck disable=SC2016 # The inner shell's own.
    serving fine launch '[[ $(wc -l <"$0.pids") -ge 3 ]] || { echo "cannot listen on it" >&2; exit 1; }; '"$well" &&
        [[ $(wc -l <"$work/server.pids") == 3 ]] && nobody
}

a_script_that_is_ended_ends_its_server() {
    # shellcheck disable=SC2016 # The inner shell's own.
    (
        trap 'end_server' EXIT
        # shellcheck disable=SC2317 # It is called by its name.
        stay() { touch "$work/stays" && wait "$server"; }
        serving stay launch "$well"
    ) &
    local script=$!
    until [[ -e $work/stays ]] || ! kill -0 "$script" 2>/dev/null; do sleep 0.1; done
    kill "$script"
    wait "$script" || true
    nobody
}

for test in $(declare -F | sed -n 's/^declare -f \(an\{0,1\}_.*\)/\1/p'); do
    : >"$work/server.pids"
    holds "$test" "$test"
done
close
