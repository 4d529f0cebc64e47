//! A run of a driver: connects, goes through the phases, returns what was measured.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tare_model::drive::{Direction, DriveInterval, DriveKind, DriveResult, DriveSpec, Exchange};
use tare_model::load::LoadModel;

use crate::backlog::Backlog;
use crate::bulk::SendSettings;
use crate::clock::{now_ns, tighten_timers};
use crate::control::{Armed, Breaker, Control, Meter};
use crate::crr::TcpCrr;
use crate::java::{self, Application};
use crate::link::{self, Link};
use crate::null::Null;
use crate::operation::{Operation, Worker};
use crate::payload::Payload;
use crate::schedule::{Dealer, Schedule};
use crate::social::{self, Members};
use crate::store::flow::{self, Client, Fleet};
use crate::stream::Stream;
use crate::supervise::{Watch, Watched};
use crate::tally::{Tally, Total};
use crate::tcp::TcpRr;
use crate::timeline::Timeline;
use crate::udp::UdpRr;
use crate::web::{self, Crowd};
use crate::{DriverError, closed, crew, open, outcome, sockopt, stream};

/// How long after the end of the load a closed loop waits for answers still due.
pub const GRACE_CLOSED_NS: u64 = 1_000_000_000;
/// How long after the end of the load an open loop drains what was due in the measured window, a bulk
/// stream flushes and settles its count, and an order in a store, which may have to be tried again, comes to its end.
pub const GRACE_NS: u64 = 5_000_000_000;
/// Longest wait for one connection to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for all of them.
const CONNECT_ALL_NS: u64 = 30_000_000_000;
/// Stack of a driver's thread; its histograms are on the heap.
const STACK_BYTES: usize = 256 * 1024;
/// Most bytes that fit into a UDP datagram over IPv4.
const DATAGRAM_MAX: u32 = 65_507;

/// Connects, runs at `spec.start_at_ns` and returns what was measured; see [`Prepared::run`].
///
/// # Errors
/// Those of [`prepare`] and of [`Prepared::run`].
pub fn run(
    spec: &DriveSpec,
    progress: &dyn Fn(DriveInterval),
    cancel: &AtomicBool,
) -> Result<DriveResult, DriverError> {
    prepare(spec, cancel)?.run(spec.start_at_ns, progress, cancel)
}

/// A driver whose connections are open and whose servers have answered.
#[derive(Debug)]
pub struct Prepared {
    spec: DriveSpec,
    links: Vec<Link>,
    granted: Vec<(String, String)>,
    /// What the clients of a store share.
    fleet: Option<Fleet>,
    /// One that offers the load to itself; there are no links then.
    application: Option<Application>,
    /// Users of a web site; there are no links then.
    crowd: Option<Crowd>,
    members: Option<Members>,
}

/// Opens every connection and sees each server answer that it serves this load.
///
/// # Errors
/// When the specification is impossible, a server cannot be reached within 5 s, is not ours or serves
/// something else, the kernel refuses a socket setting, or `cancel` is set meanwhile.
pub fn prepare(spec: &DriveSpec, cancel: &AtomicBool) -> Result<Prepared, DriverError> {
    check(spec)?;
    let connections = spec.load.connections();
    if let DriveKind::Store(drive) = &spec.kind {
        let fleet = Fleet::new(spec, drive);
        let connections = fleet.connect(connections, cancel)?;
        let granted = connections.first().map_or_else(Vec::new, |c| sockopt::granted(c.socket().as_fd(), true));
        let links = connections.into_iter().map(|c| Link::Store(Mutex::new(Some(c)))).collect();
        return Ok(Prepared { links, granted, fleet: Some(fleet), ..Prepared::bare(spec) });
    }
    if let DriveKind::Java(drive) = &spec.kind {
        let application = Some(Application::prepare(spec, drive, cancel)?);
        return Ok(Prepared { application, ..Prepared::bare(spec) });
    }
    if let DriveKind::Web(drive) = &spec.kind {
        let crowd = Some(Crowd::prepare(spec, drive, cancel)?);
        return Ok(Prepared { crowd, ..Prepared::bare(spec) });
    }
    if let DriveKind::Social(drive) = &spec.kind {
        let members = Some(Members::prepare(spec, drive, cancel)?);
        return Ok(Prepared { members, ..Prepared::bare(spec) });
    }
    let deadline = now_ns() + CONNECT_ALL_NS;
    let mut links = Vec::with_capacity(connections as usize);
    let mut granted = Vec::new();
    for index in 0..connections {
        if cancel.load(Ordering::Relaxed) {
            return Err(DriverError::Cancelled);
        }
        let left = Duration::from_nanos(deadline.saturating_sub(now_ns())).min(CONNECT_TIMEOUT);
        let target = match spec.kind {
            DriveKind::Null => None,
            _ => Some(spec.targets[index as usize % spec.targets.len()]),
        };
        let link = link::connect(spec, index, target, left, &mut granted)?;
        if let Some(fd) = link.fd().filter(|_| granted.is_empty()) {
            granted = sockopt::granted(fd.as_fd(), !matches!(link, Link::Udp(_)));
        }
        links.push(link);
    }
    let windows = |huge: bool| {
        let lies = |link: &&Link| matches!(link, Link::Bulk { window: Some(window), .. } if window.huge || !huge);
        links.iter().filter(lies).count() as u64
    };
    granted.extend(sockopt::windows(windows(false), windows(true)));
    Ok(Prepared { links, granted, ..Prepared::bare(spec) })
}

/// Refuses what cannot be driven, before anything is opened.
fn check(spec: &DriveSpec) -> Result<(), DriverError> {
    let invalid = |what: &str, remedy| DriverError::invalid(what, remedy);
    let connections = spec.load.connections();
    if connections == 0 {
        return Err(invalid("it has no clients", "ask for at least one"));
    }
    if spec.targets.is_empty() && spec.kind != DriveKind::Null {
        return Err(invalid("it has no server to drive", "name at least one target"));
    }
    if spec.phases.steady_state.ns == 0 {
        return Err(invalid("its steady state is empty", "give steady_state a length"));
    }
    if spec.interval_ns == 0 {
        return Err(invalid("its series has intervals of no length", "give interval_ns a length"));
    }
    if let LoadModel::Open { rate, .. } = spec.load
        && !(rate.0.is_finite() && rate.0 > 0.0)
    {
        return Err(DriverError::invalid(format!("its arrival rate is {rate}"), "give a rate above zero"));
    }
    match spec.kind {
        DriveKind::Null => Ok(()),
        DriveKind::Java(ref drive) => java::check(drive, &spec.load),
        DriveKind::Store(ref drive) => flow::check(drive),
        DriveKind::Web(ref drive) => web::check(drive),
        DriveKind::Social(ref drive) => social::check(spec, drive),
        DriveKind::Rr { exchange, request_bytes, response_bytes, .. } => {
            check_exchange(exchange, request_bytes, response_bytes)?;
            if exchange == Exchange::UdpRr && spec.loss_timeout_ns < 1_000 {
                return Err(invalid("datagrams count as lost at once", "give loss_timeout_ns at least 1000"));
            }
            Ok(())
        }
        DriveKind::Stream { direction, chunk_bytes, window_bytes, .. } => {
            check_bulk(chunk_bytes, window_bytes)?;
            if !matches!(spec.load, LoadModel::Closed { think_time, .. } if think_time.ns == 0) {
                let what = "bulk transfer has no arrivals and no think time";
                return Err(invalid(what, "use a closed loop without think time; its clients are the streams"));
            }
            if direction == Direction::Both && connections < 2 {
                return Err(invalid("one stream cannot flow both ways", "ask for two clients or more"));
            }
            Ok(())
        }
    }
}

/// Refuses sizes that no exchange can have.
pub(crate) fn check_exchange(exchange: Exchange, request: u32, response: u32) -> Result<(), DriverError> {
    if request == 0 || response == 0 {
        return Err(DriverError::invalid("a request or response is empty", "give both at least 1 byte"));
    }
    if exchange == Exchange::UdpRr && request.max(response) > DATAGRAM_MAX {
        let what = format!("{} bytes do not fit into a datagram", request.max(response));
        return Err(DriverError::invalid(what, "stay below 65508 bytes, or use TCP"));
    }
    Ok(())
}

/// Refuses bulk data in pieces of nothing.
pub(crate) fn check_bulk(chunk_bytes: u32, window_bytes: u32) -> Result<(), DriverError> {
    if chunk_bytes == 0 || window_bytes == 0 {
        let what = "bulk data is to be sent in chunks or from a window of 0 bytes";
        return Err(DriverError::invalid(what, "give both at least 1 byte; 256 KiB is a good value"));
    }
    Ok(())
}

/// What all threads of a run borrow.
struct Run<'a> {
    spec: &'a DriveSpec,
    timeline: Timeline,
    control: &'a Control,
    breakers: &'a [Breaker],
    arrivals: Option<&'a open::Shared>,
    fleet: Option<&'a Fleet>,
}

impl Prepared {
    /// Nothing connected yet.
    fn bare(spec: &DriveSpec) -> Self {
        Self {
            spec: spec.clone(),
            links: Vec::new(),
            granted: Vec::new(),
            fleet: None,
            application: None,
            crowd: None,
            members: None,
        }
    }

    /// Runs all phases from `start_at_ns` of CLOCK_MONOTONIC and returns what was measured; 0 means at once. The
    /// measured window is never shifted, because others know it in advance: a driver that starts
    /// too late offers less load before it. `progress` is called on this thread at the end of every interval. Setting `cancel`
    /// ends the run within 0.1 s.
    ///
    /// Errors of operations do not end the run: they are counted by reason over all phases, and a client
    /// whose connection broke stops. The run ends when its last client has, at the latest [`GRACE_CLOSED_NS`]
    /// (closed loop) or [`GRACE_NS`] (open loop, bulk, store) after its last phase.
    ///
    /// # Errors
    /// When threads are refused, the measured window has begun already, or the run was cancelled.
    pub fn run(
        self,
        start_at_ns: u64,
        progress: &dyn Fn(DriveInterval),
        cancel: &AtomicBool,
    ) -> Result<DriveResult, DriverError> {
        tighten_timers();
        let spec = &self.spec;
        let count = self.links.len();
        let timeline = timeline(start_at_ns, spec)?;
        if let Some(application) = self.application {
            return application.run(timeline, progress, cancel);
        }
        if let Some(members) = self.members {
            return members.run(timeline, progress, cancel);
        }
        if let Some(crowd) = self.crowd {
            return crowd.run(timeline, progress, cancel);
        }
        let bulk = matches!(spec.kind, DriveKind::Stream { .. });
        let shared = shared_arrivals(spec, &timeline);
        let long = bulk || shared.is_some() || self.fleet.is_some();
        let grace = if long { GRACE_NS } else { GRACE_CLOSED_NS };
        let control = Control::default();
        let meters: Vec<Meter> = (0..count).map(|_| Meter::default()).collect();
        let breakers: Vec<Breaker> = (0..count).map(|_| Breaker::default()).collect();
        let (arrivals, fleet) = (shared.as_ref(), self.fleet.as_ref());
        let run = Run { spec, timeline, control: &control, breakers: &breakers, arrivals, fleet };
        let watch = Watch {
            timeline,
            cut_at: timeline.load_end.saturating_add(grace),
            interval_ns: spec.interval_ns,
            operation_bytes: operation_bytes(spec).0 + operation_bytes(spec).1,
            control: &control,
            meters: &meters,
            breakers: &breakers,
            arrivals,
            progress,
            cancel,
        };
        let (mut total, watched) = run_threads(&run, &self.links, &meters, &watch)?;
        if watched.cancelled {
            return Err(DriverError::Cancelled);
        }
        let backlog = shared.as_ref().map_or(0, |s| s.backlog.most(timeline.steady_start, timeline.load_end));
        let done = total.store.take();
        if matches!(spec.load, LoadModel::Closed { .. }) {
            // Whoever waits for the answer before asking again is never late: both times are one.
            total.service = total.response.clone();
        }
        let measured = outcome::result(&timeline, total, watched, spec.load.connections(), self.granted);
        let mut result = DriveResult { backlog_max: backlog, ..measured };
        if let Some(fleet) = &self.fleet {
            fleet.tell(done, shared.is_some(), &mut result);
        }
        Ok(result)
    }
}

/// The moments of a run that begins at `start_at_ns`, or now if that is 0.
fn timeline(start_at_ns: u64, spec: &DriveSpec) -> Result<Timeline, DriverError> {
    let now = now_ns();
    let timeline = Timeline::new(if start_at_ns == 0 { now } else { start_at_ns }, &spec.phases);
    match now.saturating_sub(timeline.steady_start) {
        0 => Ok(timeline),
        late_ns => Err(DriverError::Late { late_ns }),
    }
}

fn shared_arrivals(spec: &DriveSpec, timeline: &Timeline) -> Option<open::Shared> {
    let LoadModel::Open { rate, arrivals, connections } = spec.load else { return None };
    let schedule = Schedule::new(rate.0, arrivals, &spec.phases, timeline.start, spec.seed);
    let dealer = Dealer::new(schedule, connections);
    Some(open::Shared { dealer, backlog: Backlog::new(timeline, timeline.load_end.saturating_add(GRACE_NS)) })
}

/// Starts a thread for each link, watches them, and adds up what they bring back.
fn run_threads(
    run: &Run<'_>,
    links: &[Link],
    meters: &[Meter],
    watch: &Watch<'_>,
) -> Result<(Total, Watched), DriverError> {
    let each = links.iter().zip(meters).enumerate();
    let each = each.map(|(index, (link, meter))| move || Ok(work(run, index, link, meter)));
    let (tallies, watched) = crew::run_threads(("drive", STACK_BYTES), run.control, each, watch)?;
    let mut total = Total::default();
    tallies.into_iter().for_each(|tally| total.add(tally));
    Ok((total, watched))
}

/// Counts a thread out however it ends.
pub(crate) struct Alive<'a>(pub &'a Control);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::Release);
    }
}

/// The whole life of one driver thread.
fn work(run: &Run<'_>, index: usize, link: &Link, meter: &Meter) -> Tally {
    let spec = run.spec;
    let worker = Worker {
        index: index as u32,
        of: spec.load.connections(),
        timeline: run.timeline,
        control: run.control,
        meter,
        record: spec.record,
        shared: run.fleet.map(|fleet| &fleet.shared),
        delay_ns: run.fleet.map_or(0, |fleet| fleet.delay_ns(index as u32)),
    };
    let breaker = &run.breakers[index];
    let armed: Option<Armed<'_>> = link.fd().and_then(|fd| breaker.guard(fd.as_fd()));
    let mut tally = match (link, &spec.kind) {
        (Link::Tcp(fd), kind) => looped(TcpRr { fd, payload: payload(kind), _armed: armed }, &worker, run),
        (Link::Udp(fd), kind) => {
            let loss_timeout_ns = spec.loss_timeout_ns;
            looped(UdpRr { fd, payload: payload(kind), loss_timeout_ns, _armed: armed }, &worker, run)
        }
        (Link::Crr(target), kind) => {
            let payload = payload(kind);
            looped(TcpCrr { target: *target, options: &spec.socket, payload, breaker }, &worker, run)
        }
        (Link::Bulk { fd, to_guest, window }, DriveKind::Stream { method, receive, chunk_bytes, window_bytes, .. }) => {
            let send = SendSettings { method: *method, chunk_bytes: *chunk_bytes, window_bytes: *window_bytes };
            stream::run(
                Stream { fd, to_guest: *to_guest, send, window: window.as_ref(), receive: *receive, _armed: armed },
                &worker,
            )
        }
        (Link::Store(connection), _) => {
            let Some(fleet) = run.fleet else { return Tally::new(false) };
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut client = Client::new(fleet, &worker, breaker, connection);
            let mut tally = looped(&mut client, &worker, run);
            client.settle(&mut tally);
            tally
        }
        (Link::Null | Link::Bulk { .. }, _) => looped(Null, &worker, run),
    };
    let (to_guest, from_guest) = operation_bytes(spec);
    tally.to_guest += tally.operations * to_guest;
    tally.from_guest += tally.operations * from_guest;
    tally
}

fn payload(kind: &DriveKind) -> Payload {
    match *kind {
        DriveKind::Rr { request_bytes, response_bytes, wait, .. } => Payload::new(request_bytes, response_bytes, wait),
        DriveKind::Null
        | DriveKind::Store(_)
        | DriveKind::Java(_)
        | DriveKind::Web(_)
        | DriveKind::Social(_)
        | DriveKind::Stream { .. } => Payload::new(1, 1, tare_model::drive::Wait::Block),
    }
}

fn looped<O: Operation>(operation: O, worker: &Worker<'_>, run: &Run<'_>) -> Tally {
    match (&run.spec.load, run.arrivals) {
        (LoadModel::Closed { think_time, .. }, _) => closed::run(operation, worker, think_time.ns),
        (LoadModel::Open { .. }, Some(shared)) => open::run(operation, worker, shared),
        (LoadModel::Open { .. }, None) => Tally::open(false),
    }
}

/// Payload bytes of one operation to and from the guest.
const fn operation_bytes(spec: &DriveSpec) -> (u64, u64) {
    match spec.kind {
        DriveKind::Rr { request_bytes, response_bytes, .. } => (request_bytes as u64, response_bytes as u64),
        DriveKind::Null
        | DriveKind::Store(_)
        | DriveKind::Java(_)
        | DriveKind::Web(_)
        | DriveKind::Social(_)
        | DriveKind::Stream { .. } => (0, 0),
    }
}
