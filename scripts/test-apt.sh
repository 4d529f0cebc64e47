#!/usr/bin/env bash
# Tests that scripts/apt.sh waits for another apt, with the real apt-get and folders of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/apt.sh
. scripts/apt.sh
# shellcheck source=scripts/counted.sh
. scripts/counted.sh

work=$(mktemp -d)
holder=
trap '[[ -z $holder ]] || kill "$holder" 2>/dev/null; rm -rf "$work"' EXIT

for program in apt-get python3; do
    command -v "$program" >/dev/null || {
        ignores "there is no $program" another_apt_is_waited_for
        close
        exit
    }
done

# update: lists of no source, in folders of the test's own.
update() {
    apt_get update -o Dir::State::Lists="$work/lists" -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Cache="$work/cache" 2>"$work/answer" || {
        cat "$work/answer"
        return 1
    }
}

# hold SECONDS: has the lock as another apt would, and lets go of it after that.
hold() {
    python3 -c 'import fcntl, sys, time
lock = open(sys.argv[1] + "/lists/lock", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
open(sys.argv[1] + "/held", "w")
time.sleep(float(sys.argv[2]))' "$work" "$1" &
    holder=$!
    until [[ -e $work/held ]]; do sleep 0.1; done
}

mkdir -p "$work/lists/partial" "$work/cache"

holds nothing_is_said_without_another_apt eval 'update && [[ ! -s $work/answer ]]'
hold 3
holds another_apt_is_waited_for eval 'update && grep -q "another apt is at work" "$work/answer"'
wait "$holder"
rm "$work/held"
hold 60
holds a_wait_has_an_end eval '! APT_WAIT_S=2 update && grep -q "Could not get lock" "$work/answer"'

close
