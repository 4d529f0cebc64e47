//! What can be wrong with an answer.

use std::fmt;

use rustix::io::Errno;

/// What was wrong with an answer, in the words that it is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Such as `marker`, `timeout`.
    Kind(&'static str),
    /// A status that was not asked for.
    Status(u16),
}

/// No answer came in time.
pub(crate) const TIMEOUT: Fault = Fault::Kind("timeout");
/// A download of which nothing came any more when the run was over.
pub(crate) const UNFINISHED: Fault = Fault::Kind("unfinished");

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => f.write_str(kind),
            Self::Status(status) => write!(f, "status {status}"),
        }
    }
}

/// The other end closed the connection before it had answered.
pub(crate) const CLOSED: Fault = Fault::Kind("closed");
/// What came is no answer of HTTP/1.1, or more than one.
pub(crate) const BROKEN: Fault = Fault::Kind("http");

/// An answer goes on and on.
pub(crate) const ENDLESS: Fault = Fault::Kind("endless");
/// The other end does not keep to TLS.
pub(crate) const TLS: Fault = Fault::Kind("tls");

/// The kind of fault that an errno is.
pub(crate) fn fault_of(errno: Errno) -> Fault {
    Fault::Kind(match errno {
        Errno::CONNREFUSED => "refused",
        Errno::CONNRESET | Errno::PIPE => "closed",
        Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH => "unreachable",
        Errno::ADDRNOTAVAIL => "no free local port",
        Errno::MFILE | Errno::NFILE => "too many open files",
        _ => "network",
    })
}
