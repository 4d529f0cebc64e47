//! Runs programs of tests, several at once.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::outcome::Outcome;
use super::programs::Program;
use crate::error::Error;

/// How long one program may take. The slowest needs a third of it on two CPUs.
const LIMIT: Duration = Duration::from_mins(15);
/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Starts programs with what they need to know.
#[derive(Debug)]
pub struct Runner {
    /// `tare` and its agent as they ship: end-to-end tests start these, not those of the dev profile.
    shipped: [(&'static str, PathBuf); 2],
    outputs: PathBuf,
}

/// A program that ran.
#[derive(Debug)]
pub struct Ran {
    pub program: Program,
    pub outcome: Outcome,
    pub time: Duration,
    /// All that it printed.
    pub text: String,
}

impl Ran {
    /// What the log keeps of it.
    pub fn log(&self) -> String {
        format!("==> {}, {:.0} s\n{}\n", self.program.name, self.time.as_secs_f64(), self.text)
    }
}

/// A line, and what a reader needs where tests failed.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { passed, failed, skipped, shown, .. } = &self.outcome;
        let verdict = if *failed == 0 { "ok" } else { "FAILED" };
        let (seconds, name, skipped) = (self.time.as_secs_f64(), &self.program.name, skipped.len());
        writeln!(f, "{verdict:6} {seconds:4.0} s  {name}: {passed} passed, {failed} failed, {skipped} skipped")?;
        if *failed == 0 { Ok(()) } else { f.write_str(shown) }
    }
}

impl Runner {
    /// For the programs that `make build` left in the target folder.
    ///
    /// # Errors
    /// When they are not there, or no folder can be made for the outputs.
    pub fn new(target: &Path) -> Result<Self, Error> {
        let shipped = [("TARE_BIN", "tare"), ("TARE_AGENT", "tare-agent")];
        let shipped = shipped.map(|(variable, name)| (variable, target.join("release").join(name)));
        if let Some((_, missing)) = shipped.iter().find(|(_, file)| !file.is_file()) {
            return Err(Error::NotBuilt(missing.clone()));
        }
        let outputs = target.join("tests");
        std::fs::create_dir_all(&outputs).map_err(|error| Error::Write(outputs.clone(), error))?;
        Ok(Self { shipped, outputs })
    }

    /// Runs all programs, so many at once, and hands on each that ended.
    ///
    /// # Errors
    /// When a program cannot be started, or `take` fails; no further program is started then.
    pub fn run(
        &self,
        programs: Vec<Program>,
        lanes: usize,
        mut take: impl FnMut(Ran) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let queue = Mutex::new(VecDeque::from(programs));
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let (sender, ended) = channel();
        thread::scope(|scope| {
            for _ in 0..lanes {
                let sender = sender.clone();
                scope.spawn(move || {
                    while let Some(program) = next() {
                        if sender.send(self.start(&program, &[])).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let outcome = ended.iter().try_for_each(|ran| take(ran?));
            drop(ended);
            outcome
        })
    }

    /// Runs some tests of a program once more.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn again(&self, program: &Program, tests: &[String]) -> Result<Ran, Error> {
        self.start(program, tests)
    }

    fn start(&self, program: &Program, tests: &[String]) -> Result<Ran, Error> {
        let began = Instant::now();
        // To a file: a pipe would stay open as long as anything that a test left behind.
        let output = self.outputs.join(program.name.replace('/', "-"));
        let cannot_write = |error| Error::Write(output.clone(), error);
        let file = File::create(&output).map_err(cannot_write)?;
        let mut command = Command::new(&program.file);
        command.current_dir(&program.folder).envs(self.shipped.iter().map(|(variable, file)| (variable, file)));
        command.env("CARGO_MANIFEST_DIR", &program.folder);
        if program.takes_names() {
            command.arg("--show-output");
            let tests = if tests.is_empty() { &program.tests } else { tests };
            if !tests.is_empty() {
                command.arg("--exact").args(tests);
            }
        }
        command.stdin(Stdio::null()).stderr(file.try_clone().map_err(cannot_write)?).stdout(file);
        let mut child = command.spawn().map_err(|error| Error::Read(program.file.clone(), error))?;
        let status = wait(&mut child).map_err(|error| Error::Read(program.file.clone(), error))?;
        let text = std::fs::read(&output).map_err(|error| Error::Read(output.clone(), error))?;
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if status.is_none() {
            text += &format!("\n{} was ended: it had taken {} min\n", program.name, LIMIT.as_secs() / 60);
        }
        let outcome = Outcome::read(&text, status.is_some_and(|status| status.success()));
        Ok(Ran { program: program.clone(), outcome, time: began.elapsed(), text })
    }
}

/// Waits for the end; `None` when the program had to be killed.
fn wait(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK_EVERY);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}
