//! What a program of tests printed, counted.
//!
//! A test that needs what the machine does not have prints `SKIPPED: reason` and returns; the test runner then calls it
//! passed. Here it counts as skipped, so that a green run cannot hide what was not tested. A program that died counts as one
//! failure. A test may start its own program again, in other namespaces, and the output of that run stands among its
//! own: the last result counts, and what stands before the closing lists names no failed test.

use std::collections::BTreeMap;

/// What a skipped test prints, alone on a line, before the reason.
const MARK: &str = "SKIPPED: ";

/// The tests of one program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many passed; skipped ones are not among them.
    pub passed: usize,
    /// How many failed; a program that died counts as one more.
    pub failed: usize,
    /// Skipped and ignored ones with their reasons.
    pub skipped: Vec<(String, String)>,
    /// Names of those that failed.
    pub failing: Vec<String>,
    /// What the program printed, without the output of tests that passed.
    pub shown: String,
}

impl Outcome {
    /// Reads all that a program printed. `succeeded`: its exit code was 0.
    pub fn read(output: &str, succeeded: bool) -> Self {
        let lines: Vec<&str> = output.lines().collect();
        let at = |wanted: &str, from: usize| {
            lines.iter().skip(from).position(|line| *line == wanted).map_or(lines.len(), |found| from + found)
        };
        let result = lines.iter().rev().find_map(|line| line.strip_prefix("test result: "));
        // The lists at the end: outputs of those that passed, their names, outputs of those that failed, their names.
        let successes = at("successes:", 0);
        let failures = at("failures:", if successes == lines.len() { 0 } else { successes });
        let before = &lines[..successes.min(failures)];
        let mut skipped = ignored(before);
        let skips = skips(&lines[successes.min(failures)..failures]);
        let passed = result.map_or(0, |counts| count(counts, "passed")).saturating_sub(skips.len());
        skipped.extend(skips);
        let failed = result.map_or(0, |counts| count(counts, "failed"));
        let died = usize::from(result.is_none() || (!succeeded && failed == 0));
        let mut failing = listed(&lines[failures..]);
        if failures == lines.len() {
            failing = before.iter().filter_map(|line| verdict(line, "FAILED")).map(str::to_owned).collect();
        }
        let uninteresting = |line: &&&str| line.is_empty() || verdict(line, "ok").is_some();
        let shown = before.iter().chain(&lines[failures..]).filter(|line| !uninteresting(line));
        let shown = shown.map(|line| format!("{line}\n")).collect();
        Self { passed, failed: failed + died, skipped: skipped.into_iter().collect(), failing, shown }
    }
}

/// The name in `test a::b ... ok`.
fn verdict<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.strip_prefix("test ")?.strip_suffix(word)?.strip_suffix(" ... ")
}

/// Names and reasons of `test a ... ignored, takes an hour`. By name: a test that starts its program again is listed once.
fn ignored(lines: &[&str]) -> BTreeMap<String, String> {
    let ignored = lines.iter().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... ignored"));
    ignored
        .map(|(test, why)| (test.to_owned(), why.strip_prefix(", ").unwrap_or("ignored, without a reason").to_owned()))
        .collect()
}

/// Names and first reasons of the tests whose outputs have the mark.
fn skips(lines: &[&str]) -> BTreeMap<String, String> {
    let mut skips = BTreeMap::new();
    let mut test = "";
    for line in lines {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            test = name;
        } else if let Some(reason) = line.strip_prefix(MARK) {
            skips.entry(test.to_owned()).or_insert_with(|| reason.to_owned());
        }
    }
    skips
}

/// The names in the last list, which closes a program with failed tests.
fn listed(lines: &[&str]) -> Vec<String> {
    let list = lines.iter().rposition(|line| *line == "failures:").map_or(lines.len(), |at| at + 1);
    lines[list..].iter().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

/// The number before a word in `ok. 3 passed; 0 failed; ...`.
fn count(counts: &str, word: &str) -> usize {
    let words: Vec<&str> = counts.split([' ', ';', '.']).filter(|part| !part.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSING: &str = "
running 3 tests
test a ... ok
test b ... ok
test c ... ignored, takes an hour

successes:

---- a stdout ----
SKIPPED: no cgroup controllers
SKIPPED: and not root

successes:
    a
    b

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    const FAILING: &str = "
running 2 tests
test x ... FAILED
test y ... ok

successes:

---- y stdout ----
why y is well

successes:
    y

failures:

---- x stdout ----
SKIPPED: half of it
thread 'x' panicked

failures:
    x

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    fn counts(outcome: &Outcome) -> (usize, usize, usize) {
        (outcome.passed, outcome.failed, outcome.skipped.len())
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one_and_counts_once() {
        let outcome = Outcome::read(PASSING, true);
        assert_eq!(counts(&outcome), (1, 0, 2));
        let pair = |test: &str, why: &str| (test.to_owned(), why.to_owned());
        assert_eq!(
            outcome.skipped,
            [pair("a", "no cgroup controllers"), pair("c", "takes an hour")]
                .into_iter()
                .rev()
                .collect::<BTreeMap<_, _>>()
                .into_iter()
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_failing_tests_print_is_shown_and_what_passing_ones_print_is_not() {
        let outcome = Outcome::read(FAILING, false);
        assert_eq!(counts(&outcome), (1, 1, 0), "a test that failed was not skipped");
        assert_eq!(outcome.failing, ["x"]);
        assert!(outcome.shown.contains("panicked") && !outcome.shown.contains("why y is well"), "{}", outcome.shown);
    }

    #[test]
    fn a_program_that_dies_is_a_failure() {
        let dead = "running 1 test\n";
        assert_eq!(counts(&Outcome::read(dead, false)), (0, 1, 0));
        assert_eq!(counts(&Outcome::read(dead, true)), (0, 1, 0), "one without a result has tested nothing");
        assert_eq!(counts(&Outcome::read(PASSING, false)), (1, 1, 2));
    }

    #[test]
    fn a_test_that_starts_its_program_again_counts_once() {
        let inner = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored;\n";
        let outcome = Outcome::read(&format!("{inner}{PASSING}"), true);
        assert_eq!(counts(&outcome), (1, 0, 2));
        let inner =
            inner.replace("... ok", "... FAILED").replace("ok. 1 passed; 0 failed", "FAILED. 0 passed; 1 failed");
        assert_eq!(Outcome::read(&format!("{inner}{FAILING}"), false).failing, ["x"]);
    }

    #[test]
    fn a_script_names_its_failed_tests_as_they_fail() {
        let script = "test p ... FAILED\nno such file\ntest q ... ignored, there is no mvn\ntest result: FAILED. 4 passed; 1 failed; 1 ignored\n";
        let outcome = Outcome::read(script, false);
        assert_eq!((counts(&outcome), outcome.failing.as_slice()), ((4, 1, 1), ["p".to_owned()].as_slice()));
        assert!(outcome.shown.contains("no such file"));
    }
}
