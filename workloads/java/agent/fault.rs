//! What can go wrong between the driver and the application.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Most characters of an answer that an error quotes.
const QUOTED: usize = 120;

/// A Java application did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("the application at {target} {fault}; it was last asked `{asked}`; {}", fault.remedy())]
pub struct JavaError {
    /// The application's address.
    pub target: SocketAddr,
    /// What it was asked last.
    pub asked: String,
    /// What it did.
    pub fault: JavaFault,
}

/// What an application did that ends its drive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JavaFault {
    /// No answer in time.
    #[error("did not answer within {0:?}")]
    Silent(Duration),
    /// It ended the connection.
    #[error("closed the connection")]
    Closed,
    /// The connection broke.
    #[error("cannot be talked to any more: {0}")]
    Broken(io::Error),
    /// Another answer than the protocol has.
    #[error("answered `{got}` where {due} was due")]
    Unfit {
        /// Its answer, or the beginning of it.
        got: String,
        /// What should have come.
        due: &'static str,
    },
    /// More than any answer can be.
    #[error("answered more than {limit} {of}")]
    TooLong {
        /// The limit.
        limit: usize,
        /// What is limited.
        of: &'static str,
    },
    /// It says itself that it cannot.
    #[error("refused: {0}")]
    Refused(String),
    /// The load is for another number of data groups.
    #[error("has {groups} data groups, and the load is for {connections}")]
    Groups {
        /// Those of the application, a thread each.
        groups: u32,
        /// Clients or connections of the load.
        connections: u32,
    },
}

impl JavaFault {
    /// An answer that does not fit.
    pub(super) fn unfit(got: &[u8], due: &'static str) -> Self {
        Self::Unfit { got: quoted(got), due }
    }

    /// What may help.
    const fn remedy(&self) -> &'static str {
        match self {
            Self::Silent(_) => {
                "its guest may be short of memory or CPU: look at what the application printed, or offer fewer guests"
            }
            Self::Closed | Self::Broken(_) => {
                "it may have ended or have been killed for memory: look at what it printed and at the guest's memory"
            }
            Self::Unfit { .. } | Self::TooLong { .. } => {
                "check which program listens there, and build the application of this tare again (scripts/bundle.sh java)"
            }
            Self::Refused(_) => "see the reason, and what the application printed",
            Self::Groups { .. } => "give the load as many clients (or connections) as the application has data groups",
        }
    }
}

/// The beginning of an answer, fit to be shown.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let mut shown: String = bytes.escape_ascii().take(QUOTED).map(char::from).collect();
    if bytes.escape_ascii().nth(QUOTED).is_some() {
        shown.push_str("...");
    }
    shown
}
