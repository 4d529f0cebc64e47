//! What a workload is given.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::places::{BackendSite, ServicesSite};
use crate::{Baton, Failure, Starter};
use tare_model::Span;
use tare_model::drive::{DriveResult, DriveSpec, SocketOptions};
use tare_model::guest::{CommandDefaults, DataPlace, GuestSize};
use tare_model::load::{LoadModel, Phases};
use tare_model::packed::{PackError, Packed, Task};
use tare_model::turns::Turns;
use tare_wire::{Link, Reply, Request, ServeReport, WireError};

/// One guest and one client, ready.
#[derive(Clone, Copy, Debug)]
pub struct WorkSite<'a> {
    /// The agent in the guest.
    pub guest: &'a Link,
    /// The guest's address, seen from the client.
    pub guest_address: IpAddr,
    /// The address that servers bind to in the guest, mostly the same.
    pub guest_listen: IpAddr,
    /// The agent on the client's side.
    pub client: &'a Link,
    /// Where what the guest asks the driver's side for is served.
    pub backend: BackendSite<'a>,
    /// The clock of the client's machine.
    pub client_clock: &'a dyn Clock,
    /// All drivers of this guest; `client` and `client_clock` are those of the first.
    pub drivers: &'a [DriverSite<'a>],
    /// What the guest uses and what is not measured, such as its database; `None` where the workload asks for none
    /// ([`crate::Workload::services`]) or the guest is not on the lab's network.
    pub services: Option<ServicesSite<'a>>,
    /// What makes further guests like this one; `None` where nobody can, or the workload makes none ([`crate::Traits::made`]).
    pub starter: Option<&'a dyn Starter>,
    /// Which of the trial's guests this is, from 0.
    pub index: u32,
    /// Instances of the application in the guest, at least 1.
    pub instances: u32,
    /// What was asked for the guest.
    pub size: GuestSize,
    /// Where the guest finds the data that [`crate::Workload::set_up_once`] gave it; `None` where there is none or the
    /// platform cannot hand data over.
    pub data: Option<&'a DataPlace>,
    /// What holds for commands of a study's in the guest where the study says nothing else.
    pub commands: Option<&'a CommandDefaults>,
    /// How load is offered.
    pub load: LoadModel,
    /// Operations a second that a calibration found; `None` without one.
    pub rate_per_s: Option<f64>,
    /// Whether the guest's memory may be merged with that of others.
    pub merge: bool,
    /// In a study with a positive control: by how many thousandths the guest's side takes longer over each operation, 0 on arms that
    /// are no control.
    pub slowed_permille: Option<u32>,
    /// How long an agent may take for anything that is not load.
    pub timeout: Duration,
}

/// A driver of a guest.
#[derive(Clone, Copy, Debug)]
pub struct DriverSite<'a> {
    /// Its agent.
    pub client: &'a Link,
    /// The clock of its machine.
    pub clock: &'a dyn Clock,
}

/// What a workload is given before the first trial.
#[derive(Clone, Copy)]
pub struct SetupSite<'a> {
    /// An agent on the controller's host under no limit, in a network of its own or the lab's client's: what listens on
    /// 127.0.0.1 there is reached by itself alone.
    pub here: &'a Link,
    /// An agent where load will come from; may be the same.
    pub client: &'a Link,
    /// A directory on a disk that is kept from run to run, there already.
    pub cache: &'a Path,
    /// Size of the guests.
    pub size: GuestSize,
    /// Guests at one time.
    pub guests: u32,
    /// Instances of the application in each guest, at least 1.
    pub instances: u32,
    /// How long an agent may take for anything that is short by nature.
    pub timeout: Duration,
    /// Tells the user what is going on where that takes a while.
    pub note: &'a (dyn Fn(&str) + Sync),
}

/// How the clock of the client's machine stands to the controller's, both CLOCK_MONOTONIC in nanoseconds.
pub trait Clock: std::fmt::Debug + Sync {
    /// A moment of the controller's by the client's clock. Asked before the load.
    fn theirs(&self, ours_ns: u64) -> u64;

    /// A moment of the client's by the controller's clock. Asked after the load.
    fn ours(&self, theirs_ns: u64) -> u64;

    /// Id of the host whose clock it is; `None`: the controller's own.
    fn host(&self) -> Option<&str> {
        None
    }
}

/// The client runs on the controller's host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SameClock;

impl Clock for SameClock {
    fn theirs(&self, ours_ns: u64) -> u64 {
        ours_ns
    }

    fn ours(&self, theirs_ns: u64) -> u64 {
        theirs_ns
    }
}

/// When load is offered.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The phases.
    pub phases: Phases,
    /// Start of the first phase, CLOCK_MONOTONIC of the controller's host, nanoseconds. Not looked at when
    /// connecting; when driving, 0 means at once.
    pub start_at_ns: u64,
    /// Seed of the driver's randomness.
    pub seed: u64,
    /// Length of an interval of the driver's series, nanoseconds.
    pub interval_ns: u64,
    /// When it is the turn of this trial's arm; `None`: all the time.
    pub turns: Option<Arc<Turns>>,
    /// Where turns are commands: whose turn it is.
    pub baton: Option<Arc<Baton>>,
}

impl Schedule {
    /// From the start of the first phase to the end of the last.
    pub fn total(&self) -> Duration {
        self.turns.as_ref().map_or_else(|| self.phases.total(), |turns| turns.total()).duration()
    }

    /// The stretches of steady state where the first phase, or the first round of turns, starts at a moment: all of it, or what of it
    /// passes in each turn. Start and end of each, nanoseconds.
    pub fn stretches(&self, start_ns: u64) -> Vec<(u64, u64)> {
        let from = self.phases.steady_offset_ns();
        let to = from.saturating_add(self.phases.steady_state.ns);
        let Some(turns) = &self.turns else {
            return vec![(start_ns.saturating_add(from), start_ns.saturating_add(to))];
        };
        let turn = turns.spec.turn.ns;
        let windows = turns.windows(start_ns).zip((0..).map(|index: u64| index.saturating_mul(turn)));
        let own =
            windows.map(|((began, _), first)| (began, from.saturating_sub(first), to.saturating_sub(first).min(turn)));
        own.filter(|(_, from, to)| from < to).map(|(began, from, to)| (began + from, began + to)).collect()
    }
}

/// What a workload adds to the schedule for its driver.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    /// What is done.
    pub task: Packed,
    /// Where the guest's servers listen.
    pub targets: Vec<SocketAddr>,
    /// Socket settings.
    pub socket: SocketOptions,
    /// Whether operations are recorded.
    pub record: bool,
    /// A UDP exchange unanswered for this long is lost.
    pub loss_timeout: Span,
}

/// Longest that a driver takes to open its connections or to say why it cannot: it gives up after 30 s.
const CONNECTING: Duration = Duration::from_secs(35);

/// What can go wrong in a workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The channel to an agent, or the agent itself.
    #[error("{side}: {source}")]
    Agent {
        /// Whose: `guest`, `client`, `services` or `backend`.
        side: &'static str,
        /// What happened.
        source: WireError,
    },
    /// Load was to be offered by a driver that nobody connected.
    #[error("load was to be offered before the driver was connected: a defect of tare, please report it")]
    NotConnected,
    /// What a workload's part in the agent is sent, or sends, is not what it must be.
    #[error(transparent)]
    Packed(#[from] PackError),
    /// The command of the user's did not do what the study says.
    #[error("{0}")]
    Command(String),
    /// The guest has no such program, or may not start it: every further trial would fail so.
    #[error("{0}")]
    NotStarted(String),
    /// Something that the workload tried failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// A member of a tile.
    #[error("{name}: {source}")]
    Member {
        /// Its name.
        name: String,
        /// What happened to it.
        source: Box<Self>,
    },
}

impl WorkloadError {
    /// Whether the guest, or what was to work in it, is gone: as a rule it was killed for want of memory.
    pub fn guest_lost(&self) -> bool {
        match self {
            Self::Failed(failure) => failure.lost,
            Self::Agent { side, source } => {
                *side == "guest" && matches!(source, WireError::Gone { .. } | WireError::Io { .. })
            }
            Self::Member { source, .. } => source.guest_lost(),
            Self::NotConnected | Self::Packed(_) | Self::Command(_) | Self::NotStarted(_) => false,
        }
    }
}

impl WorkSite<'_> {
    /// How the agent that serves what the guest asks the driver's side for came to be gone; `None`: it is there, or it is the first driver's own.
    pub fn backend_lost(&self) -> Option<String> {
        if self.has_backend_apart() { self.backend.link.ended() } else { None }
    }

    /// Whether that is another agent than the first driver's.
    pub fn has_backend_apart(&self) -> bool {
        !std::ptr::eq(self.backend.link, self.client)
    }

    /// Asks the guest's agent.
    pub(crate) fn ask_guest(&self, request: Request) -> Result<Reply, WorkloadError> {
        self.guest.call(request, self.timeout).map_err(|source| WorkloadError::Agent { side: "guest", source })
    }

    /// Has the client's agent open all connections of a driver; returns the driver's number.
    pub(crate) fn connect(&self, drive: Drive, schedule: &Schedule) -> Result<u64, WorkloadError> {
        self.connect_under(self.load, drive, schedule)
    }

    /// The same with another load than the study's.
    pub(crate) fn connect_under(
        &self,
        load: LoadModel,
        drive: Drive,
        schedule: &Schedule,
    ) -> Result<u64, WorkloadError> {
        self.first().connect(load, drive, schedule, CONNECTING + self.timeout)
    }

    /// The same with another load than the study's and a seed of the guest's own; it may take `longest`.
    pub(crate) fn connect_with(
        &self,
        load: LoadModel,
        drive: Drive,
        schedule: &Schedule,
        longest: Duration,
    ) -> Result<u64, WorkloadError> {
        let seed = seed_of(schedule.seed, self.index, 0);
        self.first().connect(load, drive, &Schedule { seed, ..schedule.clone() }, longest)
    }

    /// Has the client's agent drive load through all phases with the driver that [`Self::connect`] gave.
    pub(crate) fn drive(&self, driver: Option<u64>, schedule: &Schedule) -> Result<DriveResult, WorkloadError> {
        let drive = driver.ok_or(WorkloadError::NotConnected)?;
        self.first().drive(drive, schedule, self.timeout)
    }

    /// Has the client's agent drive load with several drivers that [`Self::connect`] gave, all from the same moment; their results, in order.
    pub(crate) fn drive_beside(
        &self,
        drivers: Vec<u64>,
        schedule: &Schedule,
    ) -> Result<Vec<DriveResult>, WorkloadError> {
        let sites = vec![self.first(); drivers.len()];
        side_by_side(&sites, drivers, |driver, drive| driver.drive(drive, schedule, self.timeout))
    }

    fn first(&self) -> DriverSite<'_> {
        DriverSite { client: self.client, clock: self.client_clock }
    }

    /// Has all drivers of the guest open their connections, side by side, each for a drive of its own and with a seed of
    /// its own; their numbers, in order. Each may take `longest`.
    pub(crate) fn connect_all(
        &self,
        drives: Vec<Drive>,
        schedule: &Schedule,
        longest: Duration,
    ) -> Result<Vec<u64>, WorkloadError> {
        let connect = |driver: &DriverSite<'_>, (number, drive): (u64, Drive)| {
            let seed = seed_of(schedule.seed, self.index, number);
            driver.connect(self.load, drive, &Schedule { seed, ..schedule.clone() }, longest)
        };
        side_by_side(self.drivers, (0..).zip(drives), connect)
    }

    /// Has all drivers of the guest drive load through all phases from the same moment; their results, in order.
    /// What is under way at the end may take so much `longer`.
    ///
    /// # Errors
    /// When no driver is connected, and those of the drivers.
    pub(crate) fn drive_all(
        &self,
        drives: Vec<u64>,
        schedule: &Schedule,
        longer: Duration,
    ) -> Result<Vec<DriveResult>, WorkloadError> {
        if drives.is_empty() {
            return Err(WorkloadError::NotConnected);
        }
        let drive = |driver: &DriverSite<'_>, drive| driver.drive(drive, schedule, self.timeout + longer);
        side_by_side(self.drivers, drives, drive)
    }

    /// Has the guest's agent start a server; its number, and where the client finds it.
    pub(crate) fn serve<T: Task>(&self, task: &T) -> Result<(u64, SocketAddr), WorkloadError> {
        match self.ask_guest(Request::Serve { task: Packed::of(task)?, bind: self.guest_listen, from: None })? {
            Reply::Serving { server, address } => Ok((server, SocketAddr::new(self.guest_address, address.port()))),
            _ => Err(Self::unexpected("guest", "start a server")),
        }
    }

    /// Has the guest's agent stop a server; what it saw.
    pub(crate) fn stop_server(&self, server: u64) -> Result<ServeReport, WorkloadError> {
        stop_server(self.guest, "guest", server, self.timeout)
    }

    /// An answer to another question.
    pub(crate) fn unexpected(side: &'static str, request: &'static str) -> WorkloadError {
        WorkloadError::Agent { side, source: WireError::Unexpected { request } }
    }
}

impl DriverSite<'_> {
    /// Has the agent open all connections of a driver; returns the driver's number.
    fn connect(
        &self,
        load: LoadModel,
        drive: Drive,
        schedule: &Schedule,
        timeout: Duration,
    ) -> Result<u64, WorkloadError> {
        let Schedule { phases, start_at_ns, seed, interval_ns, ref turns, .. } = *schedule;
        let turns = turns.as_deref().cloned();
        let Drive { task, targets, socket, record, loss_timeout } = drive;
        let loss_timeout_ns = loss_timeout.ns;
        let spec = DriveSpec {
            task,
            targets,
            load,
            phases,
            turns,
            start_at_ns,
            seed,
            socket,
            record,
            loss_timeout_ns,
            interval_ns,
            token: None,
        };
        match self.client.call(Request::PrepareDrive(Box::new(spec)), timeout) {
            Ok(Reply::Prepared { drive }) => Ok(drive),
            Ok(_) => Err(WorkSite::unexpected("client", "connect the driver")),
            Err(source) => Err(WorkloadError::Agent { side: "client", source }),
        }
    }

    /// Has the agent drive load through all phases with a driver that it has connected.
    fn drive(&self, drive: u64, schedule: &Schedule, timeout: Duration) -> Result<DriveResult, WorkloadError> {
        let timeout = schedule.total() + timeout;
        let start_at_ns = match schedule.start_at_ns {
            0 => 0,
            ours => self.clock.theirs(ours),
        };
        match self.client.call(Request::StartDrive { drive, start_at_ns }, timeout) {
            Ok(Reply::Driven(result)) => Ok(self.by_our_clock(*result)),
            Ok(_) => Err(WorkSite::unexpected("client", "drive load")),
            Err(source) => Err(WorkloadError::Agent { side: "client", source }),
        }
    }

    /// The moments in a driver's result by the controller's clock. Lengths of time stay as the client measured them.
    fn by_our_clock(&self, mut result: DriveResult) -> DriveResult {
        let clock = self.clock;
        let began = |ns: u64| if ns == 0 { 0 } else { clock.ours(ns) };
        result.began_ns = (began(result.began_ns.0), began(result.began_ns.1));
        result.steady_start_ns = clock.ours(result.steady_start_ns);
        result.steady_end_ns = clock.ours(result.steady_end_ns);
        for interval in &mut result.intervals {
            interval.end_ns = clock.ours(interval.end_ns);
        }
        result
    }
}

/// Has an agent stop a server; what it saw.
pub(crate) fn stop_server(
    agent: &Link,
    side: &'static str,
    server: u64,
    timeout: Duration,
) -> Result<ServeReport, WorkloadError> {
    match agent.call(Request::StopServe { server }, timeout) {
        Ok(Reply::Served(seen)) => Ok(seen),
        Ok(_) => Err(WorkSite::unexpected(side, "stop a server")),
        Err(source) => Err(WorkloadError::Agent { side, source }),
    }
}

/// Does something with each driver and what is its own, all at one time; the results in order, or the first error.
fn side_by_side<W: Send, R: Send>(
    drivers: &[DriverSite<'_>],
    work: impl IntoIterator<Item = W>,
    act: impl Fn(&DriverSite<'_>, W) -> Result<R, WorkloadError> + Sync,
) -> Result<Vec<R>, WorkloadError> {
    let act = &act;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            drivers.iter().zip(work).map(|(driver, work)| scope.spawn(move || act(driver, work))).collect();
        // All are waited for, also when an earlier one has failed.
        let ended: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.into_iter().map(|ended| ended.unwrap_or(Err(WorkloadError::NotConnected))).collect()
    })
}

/// Each driver's result with what its kind of driver reports beside it.
pub(crate) fn outcomes<T: Task>(results: Vec<DriveResult>) -> Result<Vec<(DriveResult, T::Outcome)>, WorkloadError> {
    results.into_iter().map(|result| result.outcome::<T>().map(|own| (result, own)).map_err(Into::into)).collect()
}

/// A seed of its own for each driver of each guest: SplitMix64's step, as often as it takes to tell them apart.
fn seed_of(seed: u64, guest: u32, driver: u64) -> u64 {
    let step = |seed: u64, number: u64| {
        let z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    step(step(seed, guest.into()), driver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::turns::{TurnSpec, Waiting};

    #[test]
    fn a_guest_is_lost_when_its_agent_or_its_application_is_gone_and_not_when_the_client_is() {
        let gone = |side| WorkloadError::Agent { side, source: WireError::Gone { reason: "the stream ended".into() } };
        assert!(gone("guest").guest_lost() && !gone("client").guest_lost());
        assert!(!WorkSite::unexpected("guest", "look at a command").guest_lost());
        assert!(!WorkloadError::NotConnected.guest_lost());
    }

    #[test]
    fn steady_state_is_one_stretch_or_one_in_each_turn_that_has_a_part_of_it() {
        let ms = Span::from_millis;
        let phases = Phases { warm_up: ms(10), ..Phases::measuring(ms(35)) };
        let mut schedule = Schedule { phases, start_at_ns: 0, seed: 0, interval_ns: 1, turns: None, baton: None };
        let stretches = |schedule: &Schedule| {
            let all = schedule.stretches(ms(1000).ns);
            all.into_iter().map(|(from, to)| (from / 1_000_000, to / 1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(stretches(&schedule), [(1010, 1045)]);
        let spec = TurnSpec { turn: ms(20), warm_up: ms(0), gap: ms(5), waiting: Waiting::Idle, commands: None };
        schedule.turns = Some(Arc::new(Turns { spec, arms: 2, places: vec![1, 0, 1] }));
        assert_eq!(stretches(&schedule), [(1035, 1045), (1050, 1070), (1125, 1130)]);
    }

    #[test]
    fn every_driver_of_every_guest_has_a_seed_of_its_own() {
        let seeds = (0..4).flat_map(|guest| (0..4).map(move |driver| seed_of(7, guest, driver)));
        let all: std::collections::BTreeSet<u64> = seeds.collect();
        assert_eq!(all.len(), 16);
        assert_eq!(seed_of(7, 1, 2), seed_of(7, 1, 2));
        assert_ne!(seed_of(7, 1, 2), seed_of(8, 1, 2));
    }
}
