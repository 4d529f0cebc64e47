//! `cargo xtask test`: builds all test programs, runs them, and counts their tests.
//!
//! A package's tests are one program, for building one is faster than building many; each of its modules is run by itself, as a program.
//! One program more than there are CPUs runs at once: most of them wait half of their time. Those that measure time, or fill
//! the machine, run after all others, one after the other. The workspace's manifest names them.

mod lanes;
mod outcome;
mod programs;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::say;
use lanes::{Ran, Runner};
use programs::{Program, Settings};

/// Most programs at once, however many CPUs there are: they share one host, and its memory.
const MOST_LANES: usize = 4;
/// More failed tests than this get no second try: they have a cause.
const SECOND_TRIES: usize = 5;
/// So many of the slowest programs are listed.
const SLOWEST: usize = 20;

/// What all programs gave.
#[derive(Debug, Default)]
struct Count {
    passed: usize,
    failed: usize,
    /// Program, test, reason.
    skipped: Vec<(String, String, String)>,
    times: Vec<(Duration, String)>,
    /// Programs with the tests of theirs that failed.
    failing: Vec<(Program, Vec<String>)>,
    /// A line for each program with tests that passed at their second try.
    second_tries: String,
}

/// Builds the test programs and runs those whose names contain one of the words, or all of them. True when tests ran and none failed.
///
/// # Errors
/// When the tests cannot be built or started, when a program that the settings or the words name does not exist, or when
/// the results cannot be written.
pub fn run(root: &Path, words: &[&str]) -> Result<bool, Error> {
    let target = target_folder(root);
    let (log, summary) = (target.join("test.log"), target.join("test.summary"));
    for old in [&log, &summary] {
        let _ = std::fs::remove_file(old);
    }
    let runner = Runner::new(&target)?;
    let settings = Settings::read(root)?;
    let (alone, together) = settings.arrange(programs::build(root, &settings)?, words)?;
    let mut kept = File::create(&log).map_err(|error| Error::Write(log.clone(), error))?;
    let mut count = Count::default();
    let mut take = |ran: Ran| {
        kept.write_all(ran.log().as_bytes()).map_err(|error| Error::Write(log.clone(), error))?;
        say(&ran.to_string())?;
        count.add(ran);
        Ok(())
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    runner.run(together, (cpus + 1).min(MOST_LANES), &mut take)?;
    runner.run(alone, 1, &mut take)?;
    count.try_again(|program, tests| {
        say(&format!("\nsecond try of {}: {}\n", program.name, tests.join(", ")))?;
        let ran = runner.again(program, tests)?;
        kept.write_all(ran.log().as_bytes()).map_err(|error| Error::Write(log.clone(), error))?;
        say(&ran.to_string())?;
        Ok(ran.outcome.failed == 0 && ran.outcome.passed >= tests.len())
    })?;
    say(&count.lists())?;
    let closing = format!("{}{}\n", count.second_tries, count.closing_line());
    say(&closing)?;
    std::fs::write(&summary, closing).map_err(|error| Error::Write(summary.clone(), error))?;
    Ok(count.failed == 0 && count.passed > 0)
}

/// Where cargo builds.
fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

impl Count {
    fn add(&mut self, ran: Ran) {
        let Ran { program, outcome, time, .. } = ran;
        self.passed += outcome.passed;
        self.failed += outcome.failed;
        self.skipped.extend(outcome.skipped.into_iter().map(|(test, why)| (program.name.clone(), test, why)));
        self.times.push((time, program.name.clone()));
        if outcome.failed > 0 {
            self.failing.push((program, outcome.failing));
        }
    }

    /// Tries a few failed tests once more, alone; on a shared machine some fail by chance. Those that pass now are named.
    fn try_again(
        &mut self,
        mut passes_now: impl FnMut(&Program, &[String]) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        if self.failed > SECOND_TRIES {
            return Ok(());
        }
        // A program that died names no test.
        for (program, tests) in
            self.failing.iter().filter(|(program, tests)| program.takes_names() && !tests.is_empty())
        {
            if passes_now(program, tests)? {
                self.passed += tests.len();
                self.failed = self.failed.saturating_sub(tests.len());
                let names = tests.join(", ");
                let _ = writeln!(self.second_tries, "passed at the second try: {}: {names}", program.name);
            }
        }
        Ok(())
    }

    /// The skipped tests with their reasons, and the programs that took longest, a line each.
    fn lists(&self) -> String {
        let mut text = String::from("\n");
        for (program, test, why) in &self.skipped {
            let _ = writeln!(text, "skipped: {program}: {test}: {why}");
        }
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (time, program) in times.iter().take(SLOWEST) {
            let _ = writeln!(text, "{:6.0} s  {program}", time.as_secs_f64());
        }
        let all: Duration = times.iter().map(|(time, _)| *time).sum();
        let _ = writeln!(text, "{:6.0} s  all {} programs, some at once", all.as_secs_f64(), times.len());
        text
    }

    fn closing_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped.len())
    }
}

#[cfg(test)]
mod tests {
    use super::outcome::Outcome;
    use super::*;

    fn counted(failing: &[&str], died: usize) -> Count {
        let failing: Vec<String> = failing.iter().map(|test| (*test).to_owned()).collect();
        let outcome = Outcome { passed: 3, failed: failing.len() + died, failing, ..Outcome::default() };
        let mut count = Count::default();
        count.add(Ran {
            program: Program::of_cargo("lab/lib"),
            outcome,
            time: Duration::from_secs(13),
            text: String::new(),
        });
        count
    }

    #[test]
    fn a_few_failed_tests_get_a_second_try_and_many_do_not() {
        let after = |mut count: Count, passes: bool| {
            count.try_again(|_, _| Ok(passes)).unwrap();
            count.closing_line()
        };
        assert_eq!(after(counted(&["a"], 0), true), "4 passed, 0 failed, 0 skipped");
        assert_eq!(after(counted(&["a"], 0), false), "3 passed, 1 failed, 0 skipped");
        assert_eq!(after(counted(&["a", "b", "c", "d", "e", "f"], 0), true), "3 passed, 6 failed, 0 skipped");
        assert_eq!(
            after(counted(&[], 1), true),
            "3 passed, 1 failed, 0 skipped",
            "a program that died is not tried again"
        );
    }

    #[test]
    fn the_slowest_program_comes_first() {
        let mut count = counted(&[], 0);
        count.times.push((Duration::from_secs(20), "tare/run".into()));
        count.skipped.push(("lab/lib".into(), "a".into(), "no root".into()));
        let expected = "\nskipped: lab/lib: a: no root\n    20 s  tare/run\n    13 s  lab/lib\n    33 s  all 2 programs, some at once\n";
        assert_eq!(count.lists(), expected);
    }
}
