//! What can go wrong before a driver or a server runs. What goes wrong during a run is counted by
//! reason in its result.

use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;

/// Why a driver or a server could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The specification asks for something that cannot be.
    #[error("the load cannot be driven: {what}; {remedy}")]
    Invalid {
        /// What is wrong with it.
        what: String,
        /// What to change.
        remedy: &'static str,
    },
    /// No socket could be bound and listened on.
    #[error("cannot listen on {address}: {source}; check that this address belongs to an interface of the guest")]
    Listen {
        /// The address that was tried.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A server could not be reached.
    #[error(
        "cannot connect to {target}: {source}; check that the server runs and that the network between driver and guest is up"
    )]
    Connect {
        /// The server's address.
        target: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The application in the guest cannot be driven. Its workload has the type of the error.
    #[error(transparent)]
    Application(Box<dyn std::error::Error + Send + Sync>),
    /// Something answers at the address, but it is no server of tare's.
    #[error("{target} is not a server of this tare: {got}; check which program listens there")]
    NotOurs {
        /// The server's address.
        target: SocketAddr,
        /// What it did.
        got: String,
    },
    /// The server is ours but serves something else.
    #[error("the server at {target} refuses this load: {reason}; start server and driver from the same study")]
    Refused {
        /// The server's address.
        target: SocketAddr,
        /// Its reason.
        reason: String,
    },
    /// The kernel refused a socket setting.
    #[error("cannot set {option} to {value}: {source}; {remedy}")]
    Option {
        /// The setting.
        option: &'static str,
        /// The value asked for.
        value: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A resource of the operating system was refused.
    #[error("cannot {what}: {source}; raise the limit (ulimit -n, -u, memory) or use fewer connections")]
    Resource {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A thread of the driver ended abnormally: a defect of tare.
    #[error("a driver thread ended abnormally; this is a defect of tare, please report it with the study file")]
    Thread,
    /// A busy loop got another result than every machine must get.
    #[error(
        "a busy loop computed wrong: its result was not the one that every machine gets; do not trust what this machine computes (memory, processor, or the emulation of one)"
    )]
    Wrong,
    /// The measured window had begun before the driver could.
    #[error(
        "the measured window began {late_ns} ns before the driver was asked to start; this host is too busy for its controller: leave it a CPU, or give the load a warm-up"
    )]
    Late {
        /// How long ago, nanoseconds.
        late_ns: u64,
    },
    /// Nobody here does a task of this kind.
    #[error("this agent has no {role} `{kind}`; use the agent that came with this tare")]
    Unknown {
        /// `driver`, `server` or `call`.
        role: &'static str,
        /// What was asked for.
        kind: String,
    },
    /// What was sent for a kind of task is none.
    #[error(transparent)]
    Packed(#[from] tare_model::packed::PackError),
    /// The run was cancelled from outside.
    #[error("the run was cancelled")]
    Cancelled,
}

impl DriverError {
    pub(crate) fn application(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Application(Box::new(error))
    }

    pub(crate) fn invalid(what: impl Into<String>, remedy: &'static str) -> Self {
        Self::Invalid { what: what.into(), remedy }
    }

    pub(crate) fn resource(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |source| Self::Resource { what, source: source.into() }
    }
}

/// Why an operation failed, in the words that errors are counted under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Short and the same for the same cause, so that it can be counted.
    pub reason: String,
    /// Whether the connection is of no more use.
    pub fatal: bool,
}

impl Failure {
    pub fn fatal(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), fatal: true }
    }

    pub fn passing(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), fatal: false }
    }

    /// The peer closed the connection in the middle of an operation.
    pub fn closed() -> Self {
        Self::fatal("connection closed by the other end")
    }
}

/// The reason that an errno is counted under.
pub(crate) fn reason_of(errno: Errno) -> String {
    match errno {
        Errno::CONNRESET => "connection reset".to_owned(),
        Errno::PIPE => "connection closed by the other end".to_owned(),
        Errno::CONNREFUSED => "connection refused".to_owned(),
        Errno::TIMEDOUT => "connection timed out".to_owned(),
        Errno::ADDRNOTAVAIL => "no free local port".to_owned(),
        other => io::Error::from(other).to_string(),
    }
}
