#!/usr/bin/env bash
# Runs the tests of the Java applications and of what they share, and counts them as cargo's test programs do.
#
# They run in a copy in target/jvm, so that the sources stay clean.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/counted.sh
. scripts/counted.sh

work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/jvm

# Maven takes the JDK of JAVA_HOME, else the one in PATH.
if ! command -v mvn >/dev/null 2>&1 || ! command -v "${JAVA_HOME:+$JAVA_HOME/bin/}javac" >/dev/null 2>&1; then
    ignores "Maven or a JDK is not here: scripts/bundle.sh java installs both, or prints the command" jvm
    close
    exit
fi

rm -rf "$work"
mkdir -p "$work"
# Tests of the social application make its tables with the files of the agent's part.
cp -r --parents jvm workloads/*/app workloads/social/agent/*.sql "$work"
code=0
# A module that fails does not keep the others from being tested.
mvn --batch-mode --no-transfer-progress --quiet --fail-at-end --file "$work/jvm/pom.xml" test >"$work/said" 2>&1 || code=$?

reports() { find "$work" -path '*/surefire-reports/TEST-*.xml' -exec "$@" {} +; }
# sum WORD: of all reports, the first element of which is <testsuite ... tests="5" errors="0" skipped="0" failures="0">.
sum() { reports grep --no-filename --max-count=1 "^<testsuite " | sed -n "s/.* $1=\"\([0-9]*\)\".*/\1/p" | awk '{ all += $1 } END { print all + 0 }'; }

failed=$(($(sum failures) + $(sum errors))) ignored=$(sum skipped)
passed=$(($(sum tests) - failed - ignored))
# Sources that do not compile have no report, and a machine that dies has an incomplete one.
if ((code != 0 && failed == 0)); then
    failed=1
elif ((code == 0 && passed + failed + ignored == 0)); then
    echo "test-java: Maven found no test" >&2
    failed=1
fi
# Maven's launcher may colour, whatever its options are, and end without a new line.
((code == 0)) || { sed 's/\x1b\[[0-9;]*m//g' "$work/said" && echo; }
# Each with its reason: <testcase name="..." classname="..."> is followed by <skipped message="..."> or <skipped>...
if ((ignored > 0)); then
    reports cat | awk '
        /<testcase / { name = $0; sub(/.* classname="/, "", name); sub(/".*/, "", name)
                       test = $0; sub(/.*<testcase name="/, "", test); sub(/".*/, "", test) }
        /<skipped/ { why = $0
                     if (/message="/) { sub(/.*message="/, "", why); sub(/".*/, "", why) }
                     else { sub(/.*<skipped[^>]*>/, "", why); sub(/^<!\[CDATA\[/, "", why) }
                     sub(/^[A-Za-z0-9_.]*: /, "", why); sub(/^Assumption failed: /, "", why)
                     print "test " name "." test " ... ignored, " why }'
fi
close
