//! Reads what `cargo test -- --show-output` says and counts it honestly.
//!
//! A test that finds the machine lacking prints `SKIPPED: reason` and returns; the test runner then calls it
//! passed. Here it counts as skipped, with its reason, so that a green run cannot hide what was not tested.
//! A test program that dies before its result line counts as one failure. A few tests that failed are tried once more.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use crate::error::Error;
use crate::say;
use crate::second_try::{self, Failed};

/// What a skipped test prints, alone on a line, before the reason.
const MARK: &str = "SKIPPED: ";

/// What the script that runs the tests prints where `cargo test` failed, for failed tests or for a program that could not be built.
const CARGO_FAILED: &str = "cargo test failed: ";

/// So many of the slowest programs are named.
const SLOWEST: usize = 20;

/// The count so far, and where in the output the reader is.
#[derive(Debug, Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
    /// Skipped and ignored tests of all programs: program, test, reason.
    skips: Vec<(String, String, String)>,
    /// How many of them cargo calls passed.
    skipped_passes: usize,
    program: String,
    /// A program was started and has not said its result.
    open: bool,
    section: Section,
    test: String,
    /// The failed tests of the present program.
    failing: Vec<String>,
    second_tries: Vec<Failed>,
    /// What passed at its second try, a line for each program.
    by_chance: String,
    /// How long each program ran, in seconds.
    times: Vec<(f64, String)>,
    /// `cargo test` itself failed, and second tries have not made that good.
    broken: bool,
}

/// The part of a test program's output that a line belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Everything outside the other two.
    #[default]
    Running,
    /// The captured output of tests that passed.
    Successes,
    /// The captured output of tests that failed.
    Failures,
}

/// Reads stdin to its end. True when tests ran and none failed.
pub fn run(log: &Path, summary: &Path) -> Result<bool, Error> {
    let cannot_write = |path: &Path| {
        let path = path.to_path_buf();
        move |error| Error::Write(path, error)
    };
    let mut kept = File::create(log).map_err(cannot_write(log))?;
    let mut tally = Tally::default();
    tally.read(io::stdin().lock(), log, &mut kept)?;
    tally.close();
    tally.try_again(|failed| failed.passes_now(log, &mut kept))?;
    say(&tally.skipped_list())?;
    say(&tally.slowest_list())?;
    let closing = format!("{}{}\n", tally.by_chance, tally.closing_line());
    say(&closing)?;
    std::fs::write(summary, closing).map_err(cannot_write(summary))?;
    Ok(tally.holds())
}

impl Tally {
    /// Takes the output of test programs to its end, keeps all of it in `kept`, the file `log`, and shows what is worth showing.
    ///
    /// # Errors
    /// When the output cannot be read, or the file or standard output cannot be written.
    pub fn read(&mut self, output: impl Read, log: &Path, kept: &mut File) -> Result<(), Error> {
        let mut output = BufReader::new(output);
        let mut bytes = Vec::new();
        // Lines as bytes: a test may print what is not UTF-8.
        while output.read_until(b'\n', &mut bytes).map_err(|error| Error::Read("the tests' output".into(), error))? > 0
        {
            kept.write_all(&bytes).map_err(|error| Error::Write(log.to_path_buf(), error))?;
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches(['\n', '\r']);
            if self.line(line) {
                say(&format!("{line}\n"))?;
            }
            bytes.clear();
        }
        Ok(())
    }

    /// Takes one line; true when it is worth showing.
    pub fn line(&mut self, line: &str) -> bool {
        let trimmed = line.trim_start();
        let program = ["Running ", "Doc-tests "].iter().find_map(|start| trimmed.strip_prefix(start));
        if let Some(program) = program.filter(|_| trimmed != line) {
            self.close();
            self.open = true;
            self.failing.clear();
            short(program).clone_into(&mut self.program);
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.result(counts);
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.failing.push(name.to_owned());
        } else if let Some(failed) = Failed::read(line, &self.failing) {
            self.second_tries.push(failed);
        } else if line.starts_with(CARGO_FAILED) {
            self.broken = true;
        } else if line == "successes:" {
            self.section = Section::Successes;
        } else if line == "failures:" {
            self.section = Section::Failures;
        } else if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            name.clone_into(&mut self.test);
        } else if let Some(reason) = line.strip_prefix(MARK) {
            self.skip(reason);
        } else if let Some((test, why)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ignored")) {
            let reason = why.strip_prefix(", ").unwrap_or("ignored, without a reason");
            self.skips.push((self.program.clone(), test.to_owned(), reason.to_owned()));
            return false;
        } else if line.is_empty() || (line.starts_with("test ") && line.ends_with(" ... ok")) {
            return false;
        }
        self.section != Section::Successes
    }

    /// A test may print several reasons: it is still one skipped test.
    fn skip(&mut self, reason: &str) {
        let known = self.skips.last().is_some_and(|(program, test, _)| *program == self.program && *test == self.test);
        if self.section == Section::Successes && !known {
            self.skips.push((self.program.clone(), self.test.clone(), reason.to_owned()));
            self.skipped_passes += 1;
        }
    }

    fn result(&mut self, counts: &str) {
        self.passed += count(counts, "passed");
        self.failed += count(counts, "failed");
        if let Some(seconds) =
            counts.rsplit_once("finished in ").and_then(|(_, time)| time.strip_suffix('s')?.parse().ok())
        {
            self.times.push((seconds, self.program.clone()));
        }
        self.section = Section::Running;
        self.test.clear();
        self.open = false;
    }

    /// Ends the present program: one that gave no result has died.
    pub fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.failed += 1;
            self.section = Section::Running;
        }
    }

    /// Tries a few failed tests once more; those that pass count as passed.
    fn try_again(&mut self, mut passes_now: impl FnMut(&Failed) -> Result<bool, Error>) -> Result<(), Error> {
        if self.second_tries.iter().map(|failed| failed.tests.len()).sum::<usize>() > second_try::AT_MOST {
            return Ok(());
        }
        for failed in std::mem::take(&mut self.second_tries) {
            if passes_now(&failed)? {
                self.passed += failed.tests.len();
                self.failed -= failed.tests.len();
                // All that failed passes now, and nothing else was wrong.
                self.broken &= self.failed > 0;
                self.by_chance += &format!("passed at the second try: {}\n", failed.tests.join(", "));
            }
        }
        Ok(())
    }

    /// How many tests passed, without those that were skipped.
    pub fn passed(&self) -> usize {
        self.passed.saturating_sub(self.skipped_passes)
    }

    /// Whether tests ran and none failed.
    fn holds(&self) -> bool {
        self.failed == 0 && self.passed > 0 && !self.broken
    }

    /// The skipped tests and why, a line each.
    fn skipped_list(&self) -> String {
        self.skips.iter().map(|(program, test, reason)| format!("skipped: {program}: {test}: {reason}\n")).collect()
    }

    /// The programs that took longest, a line each, and the time of all.
    fn slowest_list(&self) -> String {
        let mut times = self.times.clone();
        times.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let all: f64 = times.iter().map(|(seconds, _)| seconds).sum();
        let lines = times.iter().take(SLOWEST).map(|(seconds, program)| format!("{seconds:6.0} s  {program}\n"));
        format!("{}{all:6.0} s  all {} programs\n", lines.collect::<String>(), times.len())
    }

    /// `N passed, N failed, N skipped`; ignored tests count as skipped.
    pub fn closing_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed(), self.failed, self.skips.len())
    }
}

/// `tare_lab` of `unittests src/lib.rs (target/debug/deps/tare_lab-0123)`; of a crate's documentation, its name.
fn short(program: &str) -> &str {
    let file = program.trim_end_matches(')').rsplit(['/', '(']).next().unwrap_or(program);
    file.rsplit_once('-').map_or(file, |(name, _)| name)
}

/// The number before a word in `ok. 3 passed; 0 failed; ...`.
fn count(counts: &str, word: &str) -> usize {
    let mut words = counts.split([' ', ';', '.']).filter(|part| !part.is_empty());
    let mut before = "";
    for part in words.by_ref() {
        if part == word {
            return before.parse().unwrap_or(0);
        }
        before = part;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(output: &str) -> (String, Vec<String>) {
        let mut tally = Tally::default();
        let shown = output.lines().filter(|line| tally.line(line)).map(str::to_owned).collect();
        tally.close();
        (tally.closing_line(), shown)
    }

    const PASSING: &str = "
     Running unittests src/lib.rs (target/debug/deps/tare_lab-1)

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
     Running tests/e2e.rs (target/debug/deps/e2e-2)
test x ... FAILED

failures:

---- x stdout ----
SKIPPED: half of it
thread 'x' panicked

failures:
    x

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn a_skipped_test_is_not_a_passed_one_and_counts_once() {
        assert_eq!(tally(PASSING).0, "1 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn the_list_says_which_tests_and_why() {
        let mut tally = Tally::default();
        PASSING.lines().for_each(|line| {
            tally.line(line);
        });
        let list = "skipped: tare_lab: c: takes an hour\nskipped: tare_lab: a: no cgroup controllers\n";
        assert_eq!(tally.skipped_list(), list);
    }

    #[test]
    fn the_slowest_program_comes_first() {
        let mut tally = Tally::default();
        let slow = FAILING.replace("finished in 0.00s", "finished in 12.60s");
        format!("{PASSING}{slow}").lines().for_each(|line| {
            tally.line(line);
        });
        assert_eq!(tally.slowest_list(), "    13 s  e2e\n     0 s  tare_lab\n    13 s  all 2 programs\n");
    }

    #[test]
    fn what_passing_tests_print_is_hidden_and_what_failing_ones_print_is_shown() {
        let (_, shown) = tally(PASSING);
        assert!(!shown.iter().any(|line| line.contains("SKIPPED") || line.contains("... ok")), "{shown:?}");
        let (closing, shown) = tally(FAILING);
        assert_eq!(closing, "1 passed, 1 failed, 0 skipped", "a test that failed was not skipped");
        assert!(shown.iter().any(|line| line.contains("panicked")), "{shown:?}");
    }

    #[test]
    fn a_program_that_dies_without_a_result_is_a_failure() {
        let dead = "     Running unittests src/main.rs (target/debug/deps/a-1)\nrunning 1 test\n";
        assert_eq!(tally(dead).0, "0 passed, 1 failed, 0 skipped");
        assert_eq!(tally(&format!("{dead}{FAILING}")).0, "1 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn a_few_failed_tests_have_a_second_try_and_many_have_not() {
        let rerun = "error: test failed, to rerun pass `-p tare --test e2e`\n";
        let after = |output: &str, passes: bool| {
            let mut tally = Tally::default();
            output.lines().for_each(|line| {
                tally.line(line);
            });
            tally.close();
            assert!(tally.try_again(|_| Ok(passes)).is_ok());
            (tally.closing_line(), tally.holds())
        };
        let failed = format!("{FAILING}{rerun}cargo test failed: 101\n");
        assert_eq!(after(&failed, true), ("2 passed, 0 failed, 0 skipped".into(), true));
        assert_eq!(after(&failed, false), ("1 passed, 1 failed, 0 skipped".into(), false));
        // A program that could not be built leaves no failed test behind.
        assert!(!after(&format!("{PASSING}cargo test failed: 101\n"), true).1);
        let many = format!("{FAILING}{rerun}").repeat(second_try::AT_MOST + 1);
        assert_eq!(after(&many, true), ("6 passed, 6 failed, 0 skipped".into(), false));
    }

    #[test]
    fn several_programs_add_up() {
        let output =
            format!("{FAILING}{FAILING}   Doc-tests tare_model\ntest result: ok. 5 passed; 0 failed; 0 ignored;\n");
        assert_eq!(tally(&output).0, "7 passed, 2 failed, 0 skipped");
    }
}
