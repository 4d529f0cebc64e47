//! How the studies of the bars are run: as a user runs them, by a process of their own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tare_controller::Cancel;
use tare_model::findings::Findings;

use crate::args::ProveArguments;
use crate::commands::report;
use crate::exit::{Exit, Failure};
use crate::place;

/// In the short form no run begins after this.
const QUICK: Duration = Duration::from_secs(13 * 60);
/// A run that takes longer is stopped, and killed when it does not stop within the second time.
const LONGEST: Duration = Duration::from_secs(15 * 60);
const GRACE: Duration = Duration::from_secs(60);
/// How often it is looked whether a run has ended, or somebody wishes to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Where the bars run their studies.
pub struct Ground<'a> {
    out: PathBuf,
    cancel: &'a Cancel,
    began: Instant,
    alongside: bool,
    full: bool,
    times: Option<u32>,
}

/// A run that ended.
pub struct Ran {
    /// Its folder.
    pub folder: PathBuf,
    /// Its exit code; `None`: it was killed.
    pub code: Option<i32>,
    /// The file with what it printed.
    pub log: PathBuf,
}

impl<'a> Ground<'a> {
    /// Makes the folder of the proof.
    ///
    /// # Errors
    /// When it is there already, or cannot be made.
    pub fn new(out: &Path, arguments: &ProveArguments, cancel: &'a Cancel) -> Result<Self, Failure> {
        if out.exists() {
            let what = format!("{} is there already; name another folder with --out", out.display());
            return Err(Failure::new(what, Exit::Usage));
        }
        std::fs::create_dir_all(out.join("runs")).map_err(|error| {
            let what = format!("{} cannot be made: {error}; name another folder with --out", out.display());
            Failure::new(what, Exit::Usage)
        })?;
        let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
        let ProveArguments { alongside, full, times, .. } = *arguments;
        Ok(Self { out, cancel, began: Instant::now(), alongside, full, times })
    }

    /// Whether somebody wishes to stop.
    pub fn is_stopped(&self) -> bool {
        self.cancel.reason().is_some()
    }

    /// Whether another run may begin.
    pub fn goes_on(&self) -> bool {
        !self.is_stopped() && (self.full || self.began.elapsed() < QUICK)
    }

    /// The numbers of the runs of one kind, from 1; how many there are in the short form and in the long one.
    pub fn numbered(&self, (short, long): (u32, u32)) -> impl Iterator<Item = u32> {
        1..=self.times.unwrap_or(if self.full { long } else { short })
    }

    /// How long the proof has taken, seconds.
    pub fn wall_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Where the run folders are.
    pub fn runs(&self) -> PathBuf {
        self.out.join("runs")
    }

    /// The folders of all runs so far.
    pub fn folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.runs()).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        folders.sort();
        folders
    }

    /// A run to be: its study is written beside its folder.
    ///
    /// # Errors
    /// When the study cannot be written.
    pub fn study(&self, name: &str, text: &str) -> Result<Run<'_>, Failure> {
        let run = Run { ground: self, name: name.to_owned(), more: Vec::new(), variables: Vec::new() };
        super::put(&run.at("toml"), text)?;
        Ok(run)
    }
}

/// A run to be.
pub struct Run<'a> {
    ground: &'a Ground<'a>,
    name: String,
    more: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Run<'_> {
    /// The same with more words on its command line.
    #[must_use]
    pub fn with(mut self, words: &[&str]) -> Self {
        self.more.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// The same with these variables in its environment.
    #[must_use]
    pub fn given(mut self, variables: Vec<(String, String)>) -> Self {
        self.variables = variables;
        self
    }

    fn at(&self, end: &str) -> PathBuf {
        self.ground.runs().join(format!("{}.{end}", self.name))
    }

    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        self.ground.runs().join(&self.name)
    }

    /// Begins it.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn begin(&self) -> Result<Child, Failure> {
        self.again(false)
    }

    /// Begins it, or goes on with it.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn again(&self, resumes: bool) -> Result<Child, Failure> {
        let failed = |what: &str, error: std::io::Error| Failure::new(format!("{what}: {error}"), Exit::Failure);
        let log = File::options().create(true).append(true).open(self.at("log"));
        let log = log.map_err(|error| failed("what a run prints cannot be kept", error))?;
        let copy = log.try_clone().map_err(|error| failed("what a run prints cannot be kept", error))?;
        let mut command = tare();
        command
            .arg("run")
            .arg(self.at("toml"))
            .arg("--out")
            .arg(self.folder())
            .args(&self.more)
            .envs(self.variables.iter().cloned());
        let beside = self.ground.alongside && !self.more.iter().any(|word| word == "--alongside");
        let flags = [(beside, "--alongside"), (resumes, "--resume")];
        command.args(flags.into_iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag));
        command.stdin(Stdio::null()).stdout(log).stderr(copy);
        command.spawn().map_err(|error| failed("tare could not be started again for a run", error))
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn run(&self) -> Result<Ran, Failure> {
        self.end(self.begin()?)
    }

    /// Waits for its end; a wish to stop is passed on to it.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub fn end(&self, mut child: Child) -> Result<Ran, Failure> {
        let mut passed_on = false;
        let began = Instant::now();
        loop {
            let seen =
                child.try_wait().map_err(|error| Failure::new(format!("a run is lost: {error}"), Exit::Failure))?;
            if let Some(status) = seen {
                return Ok(Ran { folder: self.folder(), code: status.code(), log: self.at("log") });
            }
            let late = began.elapsed() > LONGEST;
            if (late || self.ground.is_stopped()) && !std::mem::replace(&mut passed_on, true) {
                signal(&child, Signal::TERM);
            }
            if began.elapsed() > LONGEST + GRACE {
                signal(&child, Signal::KILL);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// This program once more.
pub fn tare() -> Command {
    let agent = place::agent();
    let mut command = Command::new("/proc/self/exe");
    command.env("TARE_AGENT", std::path::absolute(&agent).unwrap_or(agent)).env("NO_COLOR", "1");
    command
}

/// Signals a child that was not waited for.
pub fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // One that has ended by itself meanwhile needs none.
        let _ = kill_process(pid, signal);
    }
}

impl Ran {
    /// What it found; or why it found nothing, with the last line that it printed.
    pub fn findings(&self) -> Result<Findings, String> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match self.code {
            Some(0 | 3) => {
                report::analysed(&self.folder, false).map_err(|failure| format!("{name}: {}", failure.message))
            }
            code => {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
                let ended = code.map_or_else(|| "was killed".to_owned(), |code| format!("ended with {code}"));
                Err(format!("{name} {ended}: {}", last.trim()))
            }
        }
    }
}
