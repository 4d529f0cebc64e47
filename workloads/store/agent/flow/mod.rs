//! The order flow: what the clients of a store do.
//!
//! An order is: log in (previous purchases and linked titles are shown) or register as a new customer; browse by category, actor and
//! title; fill a cart; read the prices of what is in it, which is not timed; purchase, in one transaction. Its response time is all of
//! that but reading prices. An order that is rolled back because stock is short is an operation like any other; a purchase that ends in a
//! deadlock is tried again after at most a second, and that is part of the response time.
//!
//! A client is a thread with a blocking connection. All durations of a driver's clients go into histograms that they share.

mod book;
mod client;
mod connect;
mod desk;
mod plan;
mod purchase;
mod steps;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::store::spec::{StoreDone, StoreDrive, StoreSize, StoreStatements};
use tare_model::drive::{DriveResult, DriveSpec, SocketOptions};
use tare_model::load::LoadModel;
use tare_model::sql::SqlServer;

use crate::connections::{self, Common, DriverThread};
use crate::control::Breaker;
use crate::course::{Course, Drive, first_target};
use crate::pg::Connection;
use crate::tally::Shared;
use crate::task::Drives;
use crate::{DriverError, sockopt};

use book::Book;
use client::Client;
use plan::Dice;
use steps::StepTimes;

/// Highest number that a key of the store can have.
const KEY_MAX: u64 = i32::MAX as u64;

/// How often somebody looks whether connecting was cancelled.
const CANCEL_LOOK: Duration = Duration::from_millis(20);

/// Clients that are connected, a thread each.
#[derive(Debug)]
struct Clients {
    spec: DriveSpec,
    fleet: Fleet,
    connections: Vec<Connection>,
    granted: Vec<(String, String)>,
}

impl StoreDrive {
    /// The published orders, of clients that all start at once.
    #[must_use]
    pub const fn of(server: SqlServer, size: StoreSize) -> Self {
        Self {
            server,
            size,
            statements: StoreStatements::Prepared,
            new_customers: 0.2,
            searches: 3,
            search_batch: 5,
            line_items: 5,
            start_jitter_ns: 0,
            ramp_rate_per_s: 0.0,
            connect_timeout_ns: 60_000_000_000,
            failures_max: 10,
            new_user_from: 1,
        }
    }
}

impl Drives for StoreDrive {
    /// Connects every client.
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
        first_target(spec)?;
        check(&self)?;
        let fleet = Fleet::new(spec, &self);
        let connections = fleet.connect(spec.load.connections(), cancel)?;
        let granted = connections.first().map_or_else(Vec::new, |c| sockopt::granted(c.socket().as_fd(), true));
        Ok(Box::new(Clients { spec: spec.clone(), fleet, connections, granted }))
    }
}

impl Drive for Clients {
    fn run(self: Box<Self>, course: Course<'_>) -> Result<DriveResult, DriverError> {
        let Self { spec, fleet, connections, granted } = *self;
        // An order that has to be tried again comes to its end.
        let common = Common { spec: &spec, course, operation_bytes: (0, 0), long: true, granted };
        let work = |connection: Connection, thread: &DriverThread<'_>| {
            let thread = thread.sharing(&fleet.shared, fleet.delay_ns(thread.worker.index));
            let mut client = Client::new(&fleet, &thread.worker, thread.breaker, connection);
            let mut tally = thread.offer(&mut client);
            let done = Box::new(client.settle(&mut tally));
            (tally, done)
        };
        let (result, each) = connections::run(common, connections, work)?;
        let mut done = StoreDone::default();
        each.iter().for_each(|own| done.add(own));
        fleet.report(done, result)
    }
}

/// What the clients of a driver share.
#[derive(Debug)]
pub(crate) struct Fleet {
    drive: StoreDrive,
    seed: u64,
    targets: Vec<SocketAddr>,
    socket: SocketOptions,
    book: Book,
    steps: StepTimes,
    /// Whether clients wait for the end of an order before they begin the next.
    closed: bool,
    /// Durations of orders.
    pub shared: Shared,
    start: Start,
}

/// Refuses what no store can be.
fn check(drive: &StoreDrive) -> Result<(), DriverError> {
    let invalid = |what: String, remedy| Err(DriverError::invalid(what, remedy));
    let size = &drive.size;
    if !(0.0..=1.0).contains(&drive.new_customers) {
        return invalid(format!("new customers have a share of {}", drive.new_customers), "give a share from 0 to 1");
    }
    if size.customers == 0 || size.products == 0 || size.customers.max(size.products) > KEY_MAX {
        let what = format!("a store has {} customers and {} products", size.customers, size.products);
        return invalid(what, "give both at least 1 and below 2^31");
    }
    if drive.searches == 0 || drive.search_batch == 0 || drive.line_items == 0 {
        let what = "an order has no browse, a browse no row or an order no line, in the mean";
        return invalid(what.to_owned(), "give searches, rows a search and lines at least 1");
    }
    if !(drive.ramp_rate_per_s.is_finite() && drive.ramp_rate_per_s >= 0.0) {
        let what = format!("clients start at a rate of {} a second", drive.ramp_rate_per_s);
        return invalid(what, "give a rate above zero, or 0 to start all at once");
    }
    if drive.connect_timeout_ns == 0 {
        return invalid("a connection may take no time".to_owned(), "give connect_timeout_ns a length");
    }
    Ok(())
}

impl Fleet {
    /// For a specification that [`check`] let pass.
    fn new(spec: &DriveSpec, drive: &StoreDrive) -> Self {
        Self {
            drive: drive.clone(),
            seed: spec.seed,
            targets: spec.targets.clone(),
            socket: spec.socket.clone(),
            book: Book::new(drive.statements),
            steps: StepTimes::new(),
            closed: matches!(spec.load, LoadModel::Closed { .. }),
            shared: Shared::new(),
            start: Start::new(spec, drive),
        }
    }

    /// The server of a client, which are dealt to the targets in turn.
    fn server(&self, index: u32) -> SqlServer {
        let address = self.targets.get(index as usize % self.targets.len().max(1)).copied();
        SqlServer { address: address.unwrap_or(self.drive.server.address), ..self.drive.server.clone() }
    }

    /// Connects all clients, one after another, each within the time that one may take.
    fn connect(&self, clients: u32, cancel: &AtomicBool) -> Result<Vec<Connection>, DriverError> {
        let breaker = Breaker::default();
        let over = AtomicBool::new(false);
        let watch = || {
            while !over.load(Ordering::Acquire) {
                if cancel.load(Ordering::Relaxed) {
                    return breaker.cut();
                }
                thread::park_timeout(CANCEL_LOOK);
            }
        };
        thread::scope(|scope| {
            // A server may let a login wait for as long as it likes: somebody has to look up meanwhile.
            let watcher = thread::Builder::new().spawn_scoped(scope, watch);
            let watcher = watcher.map_err(|source| DriverError::Resource { what: "start a thread", source })?;
            let connected = (0..clients).map(|index| self.connect_one(index, &breaker)).collect();
            over.store(true, Ordering::Release);
            watcher.thread().unpark();
            if cancel.load(Ordering::Relaxed) { Err(DriverError::Cancelled) } else { connected }
        })
    }

    fn connect_one(&self, index: u32, breaker: &Breaker) -> Result<Connection, DriverError> {
        let server = self.server(index);
        let timeout = Duration::from_nanos(self.drive.connect_timeout_ns);
        connect::connect(&server, &self.socket, &self.book, (timeout, timeout), breaker)
            .map_err(|source| DriverError::application(DatabaseError { server: server.to_string(), source }))
    }

    /// How long after the start of the warm-up a client begins, nanoseconds.
    fn delay_ns(&self, index: u32) -> u64 {
        self.start.delay_ns(index)
    }

    /// Adds to a result what a store's driver has beyond the tallies of its threads: durations, steps and what was done.
    fn report(&self, mut done: StoreDone, mut result: DriveResult) -> Result<DriveResult, DriverError> {
        result.response = self.shared.response.histogram();
        result.service = if self.closed { result.response.clone() } else { self.shared.service.histogram() };
        result.lateness = self.shared.lateness.histogram();
        result.steps = self.steps.measured();
        done.in_doubt.sort_unstable();
        done.ramp = self.start.description.clone();
        Ok(result.with_outcome::<StoreDrive>(&done)?)
    }
}

/// A database could not be used.
#[derive(Debug, thiserror::Error)]
#[error("the store in {server} cannot be driven: {source}")]
struct DatabaseError {
    /// The server, without the password.
    server: String,
    /// What it or the network said, with the remedy where there is one.
    source: crate::pg::PgError,
}

/// When clients start.
#[derive(Debug)]
struct Start {
    seed: u64,
    jitter_ns: u64,
    rate: f64,
    /// By how much both are compressed; 0 without a warm-up.
    factor: f64,
    description: String,
}

impl Start {
    fn new(spec: &DriveSpec, drive: &StoreDrive) -> Self {
        let mut start = Self {
            // Not the seed of the clients' own draws.
            seed: spec.seed.rotate_left(32),
            jitter_ns: drive.start_jitter_ns,
            rate: drive.ramp_rate_per_s,
            factor: 1.0,
            description: "all at once".to_owned(),
        };
        let clients = spec.load.connections();
        let jitter_s = drive.start_jitter_ns as f64 / 1e9;
        let ramp_s = if start.rate > 0.0 { f64::from(clients.saturating_sub(1)) / start.rate } else { 0.0 };
        let (whole_s, warm_s) = (jitter_s + ramp_s, spec.phases.warm_up.as_secs_f64());
        if matches!(spec.load, LoadModel::Open { .. }) {
            start.factor = 0.0;
            start.description = "arrivals set the pace: no jitter and no ramp".to_owned();
        } else if whole_s > 0.0 {
            let pace = format!("{clients} clients at {} a second after a jitter of up to {jitter_s:.1} s", start.rate);
            start.factor = (warm_s / whole_s).min(1.0);
            start.description = match start.factor {
                0.0 => format!("all at once: there is no warm-up for {pace}"),
                factor if factor < 1.0 => {
                    format!("{pace}, {whole_s:.1} s compressed into the warm-up of {warm_s:.1} s")
                }
                _ => format!("{pace}, {whole_s:.1} s in all"),
            };
        }
        start
    }

    fn delay_ns(&self, index: u32) -> u64 {
        if self.factor == 0.0 {
            return 0;
        }
        let jitter = Dice::of(self.seed, index).below(self.jitter_ns) as f64;
        let ramp = if self.rate > 0.0 { f64::from(index) / self.rate * 1e9 } else { 0.0 };
        ((jitter + ramp) * self.factor) as u64
    }
}

#[cfg(test)]
mod tests;
