# shellcheck shell=bash
# shellcheck disable=SC2154 # `work` is the script's.
# Counts the tests of a script as cargo's test programs do: sourced, not run. `$work` is a folder of the script's, which it removes itself.

passed=0 failed=0 ignored=0

# holds NAME COMMAND...: a test; what the command said is printed where it fails.
holds() {
    local name=$1
    shift
    if "$@" >"$work/said" 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "test $name ... FAILED"
        cat "$work/said"
    fi
}

# ignores WHY NAME...: tests that cannot be run here.
ignores() {
    local why=$1 name
    shift
    for name in "$@"; do
        ignored=$((ignored + 1))
        echo "test $name ... ignored, $why"
    done
}

# equal_twice SCRIPT: whether it makes the same file when it is run again; it prints the file's name.
equal_twice() {
    local file first
    file=$("$1")
    first=$(sha256sum <"$file")
    "$1" >/dev/null
    [[ $(sha256sum <"$file") == "$first" ]]
}

# The closing line; fails where a test did.
close() {
    local verdict=ok
    ((failed == 0)) || verdict=FAILED
    echo "test result: $verdict. $passed passed; $failed failed; $ignored ignored"
    ((failed == 0))
}
