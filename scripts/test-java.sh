#!/usr/bin/env bash
# Runs the tests of all modules of jvm/, and reports them as cargo's test programs do, for `cargo xtask test` to count.
#
# They run in a copy in target/jvm, so that the sources stay clean.
set -euo pipefail
cd "$(dirname "$0")/.."

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target_dir/jvm

# Maven takes the JDK of JAVA_HOME, else the one in PATH.
if ! command -v mvn >/dev/null 2>&1 || ! command -v "${JAVA_HOME:+$JAVA_HOME/bin/}javac" >/dev/null 2>&1; then
    echo "test jvm ... ignored, Maven or a JDK is not here: scripts/java.sh installs both, or says how"
    echo "test result: ok. 0 passed; 0 failed; 1 ignored"
    exit
fi

rm -rf "$work"
mkdir -p "$work"
cp -r jvm/. "$work"
code=0
# A module that fails does not keep the others from being tested. Tables of the social application are made with what lies
# beside their loader.
TARE_SOURCES=$PWD mvn --batch-mode --no-transfer-progress --quiet --fail-at-end --file "$work/pom.xml" test >"$work/said" 2>&1 || code=$?

# sum WORD: of all reports, the first element of which is <testsuite ... tests="5" errors="0" skipped="0" failures="0">.
sum() {
    find "$work" -path '*/surefire-reports/TEST-*.xml' -exec grep --no-filename --max-count=1 "^<testsuite " {} + |
        sed -n "s/.* $1=\"\([0-9]*\)\".*/\1/p" | awk '{ all += $1 } END { print all + 0 }'
}
tests=$(sum tests) failed=$(($(sum failures) + $(sum errors))) skipped=$(sum skipped)
# Sources that do not compile have no report, and a machine that dies has an incomplete one.
if ((code != 0 && failed == 0)); then
    failed=1
    tests=$((tests + 1))
elif ((code == 0 && tests == 0)); then
    echo "test-java: Maven found no test in jvm" >&2
    failed=1 tests=1 code=1
fi
# Maven's launcher may colour, whatever its options are, and end without a new line.
((code == 0)) || { sed 's/\x1b\[[0-9;]*m//g' "$work/said" && echo; }
# Each with its reason: <testcase name="..." classname="..."> is followed by <skipped message="..."> or <skipped>...
if ((skipped > 0)); then
    find "$work" -path '*/surefire-reports/TEST-*.xml' -exec cat {} + | awk '
        /<testcase / { name = $0; sub(/.* classname="/, "", name); sub(/".*/, "", name)
                       test = $0; sub(/.*<testcase name="/, "", test); sub(/".*/, "", test) }
        /<skipped/ { why = $0
                     if (/message="/) { sub(/.*message="/, "", why); sub(/".*/, "", why) }
                     else { sub(/.*<skipped[^>]*>/, "", why); sub(/^<!\[CDATA\[/, "", why) }
                     sub(/^[A-Za-z0-9_.]*: /, "", why); sub(/^Assumption failed: /, "", why)
                     print "test " name "." test " ... ignored, " why }'
fi
verdict=ok
((failed == 0)) || verdict=FAILED
echo "test result: $verdict. $((tests - failed - skipped)) passed; $failed failed; $skipped ignored"
exit "$code"
