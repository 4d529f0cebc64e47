//! The messages themselves. Changing any of them means raising [`crate::PROTOCOL`].

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tare_model::drive::{BusyDone, BusyStretch, BusyWork, DriveResult, DriveSpec, ServeReport};
use tare_model::environment::Machine;
use tare_model::hold::HoldSpec;
use tare_model::packed::Packed;
use tare_model::sample::Sample;
use tare_model::token::Token;

/// A request with the number that its answer will carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToAgent {
    /// Number, unique on this channel.
    pub id: u64,
    /// The request.
    pub request: Request,
}

/// An answer. Answers may come in another order than the requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FromAgent {
    /// Number of the request.
    pub id: u64,
    /// The answer, or why there is none.
    pub result: Result<Reply, String>,
}

/// What the controller asks of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Who are you? Must come first: it sets how long the agent may live.
    Hello {
        /// Nanoseconds after which the agent ends by itself, whatever happens.
        lifetime_ns: u64,
    },
    /// What does the guest look like from inside?
    Facts,
    /// What is the machine made of, and how is it set up? Of machines whose host is not the controller's.
    Describe {
        /// Whether what names it is left out.
        redact: bool,
    },
    /// What is your clock?
    Clock,
    /// Start a server.
    Serve {
        /// Which.
        task: Packed,
        /// Address to listen on; the kernel chooses the port.
        bind: IpAddr,
        /// Whose connections are accepted, where that is one machine alone.
        from: Option<IpAddr>,
    },
    /// Stop a server.
    StopServe {
        /// Its number.
        server: u64,
    },
    /// Open all connections of a driver, and offer nothing yet. Its start is not looked at.
    PrepareDrive(Box<DriveSpec>),
    /// Run a prepared driver to its end.
    StartDrive {
        /// Its number.
        drive: u64,
        /// When its first phase starts, CLOCK_MONOTONIC of the agent, nanoseconds; 0 means at once.
        start_at_ns: u64,
    },
    /// End all drivers, stop busy loops and kill all commands early. Lasts: those that are asked for later end at once too.
    Cancel,
    /// Start busy loops. Aggressors only begin with the first `RunBusy`.
    Busy {
        /// Threads.
        threads: u32,
        /// What each of them does.
        work: BusyWork,
    },
    /// How far have the busy loops come?
    BusyIterations {
        /// Their number.
        busy: u64,
    },
    /// Stop busy loops.
    StopBusy {
        /// Their number.
        busy: u64,
    },
    /// Run a command.
    Exec(ExecSpec),
    /// Start a command and leave it running. It ends with the agent at the latest, and is killed with all its children when
    /// its timeout is over, which is its longest life here.
    Start(ExecSpec),
    /// What has a started command said and done so far? Also of one that has ended by itself.
    Look {
        /// Its number.
        command: u64,
    },
    /// End a started command with its process group: by SIGTERM, after 5 s by SIGKILL. Its number is then forgotten.
    End {
        /// Its number.
        command: u64,
    },
    /// Hold memory beside what is started in the guest, until the agent ends. Only once. Writing takes some seconds a GiB, and
    /// more where the host has to find the memory first.
    Hold(HoldSpec),
    /// How much memory is held? None before a `Hold` was answered.
    Held,
    /// Do what a workload asks of its part in the agent.
    Call(Packed),
    /// Write a part of a file, in order. The file is put in its place, whole, by the last part; until then it is
    /// beside it under another name.
    PutFile {
        /// Where the file is to be; its directory is there already.
        path: String,
        /// Its permissions, the lowest nine bits.
        mode: u32,
        /// Where in the file the part begins, bytes; the first part begins anew.
        offset: u64,
        /// The part, at most [`crate::CHUNK_BYTES`].
        #[serde(with = "tare_model::bytes")]
        bytes: Vec<u8>,
        /// Whether it is the last.
        last: bool,
    },
    /// Read a part of a file.
    GetFile {
        /// The file.
        path: String,
        /// Where in the file the part begins, bytes.
        offset: u64,
        /// At most so many bytes, and at most [`crate::CHUNK_BYTES`].
        limit_bytes: u64,
    },
    /// Ask a web server for one page, by HTTP/1.0 and without TLS: what is asked seldom and never measured.
    Fetch {
        /// Where it listens.
        address: SocketAddr,
        /// Path and query, beginning with `/`.
        path: String,
        /// All of it may take so long, nanoseconds.
        timeout_ns: u64,
        /// Longest body, bytes.
        limit_bytes: u64,
    },
    /// Begin to sample inside the guest.
    StartSampling {
        /// Name of the guest in the samples.
        guest: String,
        /// Interval, nanoseconds.
        interval_ns: u64,
    },
    /// End sampling and hand over the samples.
    StopSampling,
    /// End.
    Bye,
    /// Have busy loops compute for a while and then stand still until they are asked again. The answer comes when all of them do.
    RunBusy {
        /// Their number.
        busy: u64,
        /// How long.
        stretch: BusyStretch,
    },
    /// From now on, let into tare's own servers only who shows this token, and show it to them.
    Admit {
        /// The token.
        token: Token,
    },
    /// Keep this secret, in memory and nowhere else, in place of an earlier one.
    Keep {
        /// The secret.
        secret: Token,
    },
    /// What secret do you keep? Whoever knows it had this agent's memory, or is it.
    Kept,
}

impl Request {
    /// Name for error messages, as in "the agent could not NAME".
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "say hello",
            Self::Facts => "tell its facts",
            Self::Describe { .. } => "describe its machine",
            Self::Clock => "tell its clock",
            Self::Serve { .. } => "start a server",
            Self::StopServe { .. } => "stop a server",
            Self::PrepareDrive(_) => "connect the driver",
            Self::StartDrive { .. } => "drive load",
            Self::Cancel => "cancel its work",
            Self::Busy { .. } => "start busy loops",
            Self::BusyIterations { .. } => "count busy iterations",
            Self::StopBusy { .. } => "stop busy loops",
            Self::Exec(_) => "run a command",
            Self::Start(_) => "start a command",
            Self::Look { .. } => "look at a command",
            Self::End { .. } => "end a command",
            Self::Hold(_) => "hold memory",
            Self::Held => "tell the memory that it holds",
            Self::Call(_) => "answer a workload's call",
            Self::PutFile { .. } => "write a file",
            Self::GetFile { .. } => "read a file",
            Self::Fetch { .. } => "fetch a page",
            Self::StartSampling { .. } => "start sampling",
            Self::StopSampling => "stop sampling",
            Self::Bye => "end",
            Self::RunBusy { .. } => "compute for a while",
            Self::Admit { .. } => "take the trial's token",
            Self::Keep { .. } => "keep a secret",
            Self::Kept => "tell the secret that it keeps",
        }
    }
}

/// What an agent answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To `Hello`: version of the agent.
    Hello {
        /// Version of tare that it was built from.
        version: String,
        /// Its process id, as it sees itself.
        pid: u32,
        /// Age of its kernel when it answered, by that kernel's own clock (CLOCK_BOOTTIME), nanoseconds.
        kernel_age_ns: u64,
    },
    /// To `Facts`.
    Facts(AgentFacts),
    /// To `Describe`. It has no name: whoever asks knows what it is in the run.
    Described(Box<Machine>),
    /// To `Clock`: CLOCK_MONOTONIC, nanoseconds.
    Clock {
        /// The reading.
        monotonic_ns: u64,
    },
    /// To `Serve`.
    Serving {
        /// Number of the server.
        server: u64,
        /// Where it listens; it does already.
        address: SocketAddr,
    },
    /// To `StopServe`.
    Served(ServeReport),
    /// To `PrepareDrive`.
    Prepared {
        /// Number of the driver.
        drive: u64,
    },
    /// To `StartDrive`.
    Driven(Box<DriveResult>),
    /// To `Busy`.
    BusyStarted {
        /// Number of the loops.
        busy: u64,
        /// Where those that receive will listen, while they are in a stretch.
        address: Option<SocketAddr>,
    },
    /// To `BusyIterations` and `StopBusy`, unless one of the loops computed wrong: then that is the error.
    BusyIterations {
        /// Iterations of all loops since they were started.
        iterations: u64,
    },
    /// To `Exec`.
    Executed(ExecResult),
    /// To `Start`.
    Started {
        /// Number of the command.
        command: u64,
        /// Its process id, as the agent sees it.
        pid: u32,
    },
    /// To `Look` and `End`: its output so far, and how it ended if it has.
    Looked {
        /// End of its standard output.
        #[serde(with = "tare_model::bytes")]
        stdout: Vec<u8>,
        /// End of its standard error.
        #[serde(with = "tare_model::bytes")]
        stderr: Vec<u8>,
        /// How it ended, with the same output; `None` while it runs.
        ended: Option<ExecResult>,
        /// Largest resident sizes of it and of its children, added up, bytes (`VmHWM`); `None` once it has ended, and where
        /// `/proc` does not tell.
        resident_peak_bytes: Option<u64>,
    },
    /// To `Hold`, once all of it is written, and to `Held`.
    Holding {
        /// Bytes that are held now.
        bytes: u64,
        /// Bytes that were held at first.
        first_bytes: u64,
    },
    /// To `Call`: what came of it, packed.
    Called {
        /// See [`tare_model::packed::unpack_outcome`].
        #[serde(with = "tare_model::bytes")]
        outcome: Vec<u8>,
    },
    /// To `GetFile`.
    File {
        /// The part; empty at the end of the file.
        #[serde(with = "tare_model::bytes")]
        bytes: Vec<u8>,
        /// Length of the file, as its file system tells it: 0 for the files of `/proc`.
        total_bytes: u64,
    },
    /// To `Fetch`: what the server answered, whatever its status is.
    Fetched {
        /// Status.
        status: u16,
        /// The body.
        #[serde(with = "tare_model::bytes")]
        body: Vec<u8>,
    },
    /// To `StopSampling`.
    Samples {
        /// The samples, by the guest's own clock.
        samples: Vec<Sample>,
        /// CPU that sampling took, nanoseconds.
        cpu_ns: u64,
    },
    /// Done, nothing to tell.
    Done,
    /// To `RunBusy`, with the same exception as `BusyIterations`.
    BusyRan(BusyDone),
    /// To `Kept`.
    Keeps {
        /// The secret; `None` where none was given.
        secret: Option<Token>,
    },
}

/// Name of the fact that says how old the kernel of a machine was when user space began in it (CLOCK_BOOTTIME), nanoseconds. Only
/// agents of machines have it.
pub const USER_SPACE_BEGAN: &str = "user space began ns";

/// The fact `balloon` of a guest that gives its host back the pages that it has freed.
pub const BALLOON_REPORTS: &str = "free pages are reported";

/// The guest from inside.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Name and value, such as `kernel release`, `cpus allowed`, `memory total`, `process id`.
    pub facts: Vec<(String, String)>,
}

/// A command to run in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecSpec {
    /// Program and arguments; the program is looked up in PATH.
    pub argv: Vec<String>,
    /// Environment added to the agent's.
    pub env: Vec<(String, String)>,
    /// Working directory.
    pub directory: Option<String>,
    /// User and group that it runs as, by number, without further groups; `None`: the agent's own.
    pub user: Option<(u32, u32)>,
    /// The command and all its children are killed after this long, nanoseconds.
    pub timeout_ns: u64,
    /// Of each output stream, only the last so many bytes are kept.
    pub output_limit_bytes: u64,
}

impl ExecSpec {
    /// A command in the agent's own environment and directory, as its own user.
    pub fn new(argv: &[impl AsRef<str>], timeout: Duration, output_limit_bytes: u64) -> Self {
        Self {
            argv: argv.iter().map(|word| word.as_ref().to_owned()).collect(),
            env: Vec::new(),
            directory: None,
            user: None,
            timeout_ns: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            output_limit_bytes,
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    /// Exit code; `None` when it was killed by a signal.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was killed for taking too long.
    pub timed_out: bool,
    /// Wall time, nanoseconds.
    pub wall_ns: u64,
    /// End of its standard output.
    #[serde(with = "tare_model::bytes")]
    pub stdout: Vec<u8>,
    /// End of its standard error.
    #[serde(with = "tare_model::bytes")]
    pub stderr: Vec<u8>,
    /// Bytes of output that were not kept.
    pub dropped_bytes: u64,
}
