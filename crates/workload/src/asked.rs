//! An agent that is asked on behalf of a workload.

use std::time::Duration;

use tare_model::packed::Task;
use tare_model::sql::{SqlFailure, SqlRows, SqlServer, SqlSpec};
use tare_wire::{ExecResult, ExecSpec, Link, Reply, Request, copy_in};

use crate::sql_refusal::refused;
use crate::{Failure, WorkSite, WorkloadError};

pub(crate) use crate::unprivileged::NOBODY;
/// Of a command's output so much is kept, from its end.
const OUTPUT_BYTES: u64 = 64 << 10;
/// Of what a command said so much is shown.
const SHOWN_BYTES: usize = 1500;

/// A pause between two looks at something that takes its time, seconds, ...
const PAUSE_S: &str = "0.2";
/// ... and the longest that it may take.
const PAUSE_AT_MOST: Duration = Duration::from_secs(20);

/// An agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The way to it.
    pub link: &'a Link,
    /// Which it is, for errors.
    pub side: &'static str,
    /// How long it may take beyond what it is asked to do.
    pub timeout: Duration,
}

impl Asked<'_> {
    fn ask(&self, request: Request, longest: Duration) -> Result<Reply, WorkloadError> {
        let agent = |source| WorkloadError::Agent { side: self.side, source };
        self.link.call(request, longest + self.timeout).map_err(agent)
    }

    fn perform<T: Task>(&self, task: &T, longest: Duration) -> Result<T::Outcome, WorkloadError> {
        let agent = |source| WorkloadError::Agent { side: self.side, source };
        self.link.perform(task, longest + self.timeout).map_err(agent)
    }

    /// Has statements run one after another on one connection; what the server refuses is an answer.
    pub fn try_sql(
        &self,
        server: &SqlServer,
        statements: &[&str],
        longest: Duration,
    ) -> Result<Result<Vec<SqlRows>, SqlFailure>, WorkloadError> {
        let statements: Vec<String> = statements.iter().map(|&statement| statement.to_owned()).collect();
        let asked = statements.len();
        let spec = SqlSpec { server: server.clone(), statements, timeout_ns: ns(longest) };
        match self.perform(&spec, longest)? {
            Ok(rows) if rows.len() != asked => Err(WorkSite::unexpected(self.side, SqlSpec::KIND)),
            answer => Ok(answer),
        }
    }

    /// The same where a refusal ends it.
    pub fn sql(
        &self,
        tried: &str,
        server: &SqlServer,
        statements: &[&str],
        longest: Duration,
    ) -> Result<Vec<SqlRows>, WorkloadError> {
        let answered = self.try_sql(server, statements, longest)?;
        answered.map_err(|failure| refused(tried, server, &failure).into())
    }

    /// Has a database do a task to its end; what the server refuses is an error.
    pub fn database<T, D>(&self, task: &T, server: &SqlServer, longest: Duration) -> Result<D, WorkloadError>
    where
        T: Task<Outcome = Result<D, SqlFailure>>,
    {
        let done = self.perform(task, longest)?;
        done.map_err(|failure| refused(T::KIND, server, &failure).into())
    }

    /// Runs a command to its end, as nobody or as the agent itself.
    pub fn run(&self, argv: &[&str], user: Option<(u32, u32)>, longest: Duration) -> Result<ExecResult, WorkloadError> {
        let spec = ExecSpec {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            // Messages that are looked at are to be in one language everywhere.
            env: vec![("LC_ALL".to_owned(), "C".to_owned())],
            // One that everybody may enter.
            directory: Some("/".to_owned()),
            user,
            timeout_ns: ns(longest),
            output_limit_bytes: OUTPUT_BYTES,
        };
        match self.ask(Request::Exec(spec), longest)? {
            Reply::Executed(result) => Ok(result),
            _ => Err(WorkSite::unexpected(self.side, "run a command")),
        }
    }

    /// A short pause that the agent makes, which ends it when somebody wishes to stop.
    pub fn pause(&self) -> Result<(), WorkloadError> {
        self.run(&["sleep", PAUSE_S], None, PAUSE_AT_MOST).map(drop)
    }

    /// Runs a script of the shell's, whose words are `$1`, `$2` and so on; what it printed. Not to end well is an error.
    pub fn script(
        &self,
        tried: &str,
        script: &str,
        words: &[&str],
        user: Option<(u32, u32)>,
        longest: Duration,
    ) -> Result<String, WorkloadError> {
        let argv: Vec<&str> = ["sh", "-c", script, "tare"].into_iter().chain(words.iter().copied()).collect();
        let ran = self.run(&argv, user, longest)?;
        if ran.code == Some(0) {
            return Ok(tail(&ran.stdout));
        }
        let why = failure(&ran);
        Err(Failure::new(tried, why, "see what it says; something may be missing in the guest's image").into())
    }

    /// Writes a file where the agent is.
    pub fn put(&self, path: &str, text: &str, longest: Duration) -> Result<(), WorkloadError> {
        self.put_from(path, &mut text.as_bytes(), longest)
    }

    /// Writes a file, from anything that can be read, where the agent is. Everybody may read it.
    pub fn put_from(&self, path: &str, from: &mut dyn std::io::Read, longest: Duration) -> Result<(), WorkloadError> {
        let agent = |source| WorkloadError::Agent { side: self.side, source };
        copy_in(self.link, from, path, 0o644, longest + self.timeout).map(drop).map_err(agent)
    }

    /// Reads a short file where the agent is.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, WorkloadError> {
        let part = Request::GetFile { path: path.to_owned(), offset: 0, limit_bytes: OUTPUT_BYTES };
        match self.ask(part, Duration::ZERO)? {
            Reply::File { bytes, .. } => Ok(bytes),
            _ => Err(WorkSite::unexpected(self.side, "read a file")),
        }
    }
}

fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// How a command failed, for people.
pub(crate) fn failure(ran: &ExecResult) -> String {
    let how = match (ran.timed_out, ran.code, ran.signal) {
        (true, ..) => "it took too long and was killed".to_owned(),
        (_, Some(code), _) => format!("it ended with code {code}"),
        (_, None, Some(signal)) => format!("it was killed by signal {signal} (9 is often the memory limit)"),
        (_, None, None) => "it ended in no known way".to_owned(),
    };
    let said = [tail(&ran.stderr), tail(&ran.stdout)].into_iter().filter(|text| !text.is_empty());
    let said: Vec<String> = said.collect();
    if said.is_empty() { how } else { format!("{how} and said: {}", said.join("; ")) }
}

/// The end of an output, short enough to be shown.
pub(crate) fn tail(output: &[u8]) -> String {
    let from = output.len().saturating_sub(SHOWN_BYTES);
    String::from_utf8_lossy(&output[from..]).trim().to_owned()
}

/// The first cell of a statement's rows.
pub(crate) fn cell(rows: &SqlRows) -> Option<&str> {
    rows.rows.first()?.first()?.as_deref()
}
