//! Tests that failed are tried once more, alone: on a shared machine some fail by chance.
//!
//! What passes at its second try is named, so that nobody takes it for sound. Many failures are no chance, and a program that died
//! without its result is none either: those get no second try.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::say;
use crate::tally::Tally;

/// More failed tests than this are tried no second time.
pub const AT_MOST: usize = 5;

/// The failed tests of one test program.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    /// What chooses the program among those of the workspace, as arguments of `cargo test`: `--test e2e`.
    pub target: Vec<String>,
    /// The tests' names.
    pub tests: Vec<String>,
}

impl Failed {
    /// Reads what cargo prints after a program with failed tests, `None` where it says something else.
    pub fn read(line: &str, tests: &[String]) -> Option<Self> {
        let arguments = line.strip_prefix("error: test failed, to rerun pass `")?.strip_suffix('`')?;
        // Without the package: cargo would build it anew, with the features that it alone needs.
        let target = arguments.split(' ').skip_while(|word| *word != "--test" && *word != "--lib" && *word != "--bin");
        let failed = Self { target: target.map(str::to_owned).collect(), tests: tests.to_vec() };
        (!failed.target.is_empty() && !tests.is_empty()).then_some(failed)
    }

    /// Runs them again, keeps the output with that of the first try, and returns whether all passed.
    ///
    /// # Errors
    /// When cargo cannot be started or read.
    pub fn passes_now(&self, log: &Path, kept: &mut File) -> Result<bool, Error> {
        say(&format!("\nsecond try: {}: {}\n", self.target.join(" "), self.tests.join(", ")))?;
        let cannot_run = |error| Error::Read("cargo test".into(), error);
        let mut command = Command::new("cargo");
        command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(&self.target);
        command.args(["--", "--show-output", "--exact"]).args(&self.tests);
        let mut cargo = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(cannot_run)?;
        let mut tally = Tally::default();
        if let Some(output) = cargo.stdout.take() {
            tally.read(output, log, kept)?;
        }
        // A test that is skipped this time has not passed.
        Ok(cargo.wait().map_err(cannot_run)?.success() && tally.passed() >= self.tests.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_chosen_without_its_package_and_one_that_died_is_not_tried_again() {
        let tests = ["a::b".to_owned()];
        let target = |line: &str| Failed::read(line, &tests).map(|failed| failed.target.join(" "));
        assert_eq!(target("error: test failed, to rerun pass `-p tare --test e2e`").as_deref(), Some("--test e2e"));
        assert_eq!(target("error: test failed, to rerun pass `-p tare-lab --lib`").as_deref(), Some("--lib"));
        assert_eq!(target("error: 2 targets failed:"), None);
        assert_eq!(Failed::read("error: test failed, to rerun pass `-p tare --test e2e`", &[]), None);
    }
}
