//! What a workload is given.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tare_model::Span;
use tare_model::drive::{DriveKind, DriveResult, DriveSpec, SocketOptions};
use tare_model::load::{LoadModel, Phases};
use tare_wire::{Link, Reply, Request, WireError};

/// One guest and one client, ready.
#[derive(Clone, Copy, Debug)]
pub struct WorkSite<'a> {
    /// The agent in the guest.
    pub guest: &'a Link,
    /// The guest's address, seen from the client; also the address that servers bind to.
    pub guest_address: IpAddr,
    /// The agent on the client's side.
    pub client: &'a Link,
    /// How load is offered.
    pub load: LoadModel,
    /// How long an agent may take for anything that is not load.
    pub patience: Duration,
}

/// When load is offered.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The phases.
    pub phases: Phases,
    /// Start of the first phase, CLOCK_MONOTONIC of the client's host, nanoseconds.
    pub start_at_ns: u64,
    /// Seed of the driver's randomness.
    pub seed: u64,
    /// Length of an interval of the driver's series, nanoseconds.
    pub interval_ns: u64,
}

/// What a workload adds to the schedule for its driver.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    /// What is done.
    pub kind: DriveKind,
    /// Where the guest's servers listen.
    pub targets: Vec<SocketAddr>,
    /// Socket settings.
    pub socket: SocketOptions,
    /// Whether operations are recorded.
    pub record: bool,
    /// A UDP exchange unanswered for this long is lost.
    pub loss_timeout: Span,
}

/// What can go wrong in a workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The channel to an agent, or the agent itself.
    #[error("{side}: {source}")]
    Agent {
        /// `guest` or `client`.
        side: &'static str,
        /// What happened.
        source: WireError,
    },
    /// The command of the user's did not do what the study says.
    #[error("{0}")]
    Command(String),
}

impl WorkSite<'_> {
    /// Asks the guest's agent.
    pub(crate) fn ask_guest(&self, request: Request) -> Result<Reply, WorkloadError> {
        self.guest.call(request, self.patience).map_err(|source| WorkloadError::Agent { side: "guest", source })
    }

    /// Has the client's agent drive load through all phases.
    pub(crate) fn drive(&self, drive: Drive, schedule: &Schedule) -> Result<DriveResult, WorkloadError> {
        let Schedule { phases, start_at_ns, seed, interval_ns } = *schedule;
        let Drive { kind, targets, socket, record, loss_timeout } = drive;
        let loss_timeout_ns = loss_timeout.ns;
        let load = self.load;
        let spec =
            DriveSpec { kind, targets, load, phases, start_at_ns, seed, socket, record, loss_timeout_ns, interval_ns };
        let patience = phases.total().duration() + self.patience;
        match self.client.call(Request::Drive(Box::new(spec)), patience) {
            Ok(Reply::Driven(result)) => Ok(*result),
            Ok(_) => Err(Self::unexpected("client", "drive load")),
            Err(source) => Err(WorkloadError::Agent { side: "client", source }),
        }
    }

    /// An answer to another question.
    pub(crate) fn unexpected(side: &'static str, request: &'static str) -> WorkloadError {
        WorkloadError::Agent { side, source: WireError::Unexpected { request } }
    }
}
