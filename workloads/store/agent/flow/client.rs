//! One client: an order after the other, on a connection that is made again when it is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::store::spec::StoreDone;

use crate::clock::{now_ns, sleep_until};
use crate::control::Breaker;
use crate::error::Failure;
use crate::operation::{CUT_OFF, Done, Operation, Worker};
use crate::pg::{Connection, PgError};
use crate::store::data::draw::Key;
use crate::tally::Tally;

use super::desk::Desk;
use super::plan::{Browse, Dice, Plan};
use super::purchase::{Bought, Cart, DEADLOCK, Failed, purchase};
use super::steps::{Laps, Step};
use super::{Fleet, connect};

/// Longest pause before a purchase is tried again after a deadlock, as published.
const DEADLOCK_PAUSE_NS: u64 = 1_000_000_000;
/// Pause between two tries to connect again.
const RECONNECT_PAUSE_NS: u64 = 100_000_000;
/// Longest wait for the network to answer one such try: nobody can end it earlier.
const TRY_AT_MOST: Duration = Duration::from_millis(500);
/// At most so many errors are counted by code and text; the others are counted by code alone.
const REASONS_MAX: usize = 40;
/// Sets the draws of new customers apart from all that is drawn for tables.
const NEW_CUSTOMERS: u64 = 1_000;

/// A client of a store.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    fleet: &'a Fleet,
    worker: &'a Worker<'a>,
    breaker: &'a Breaker,
    /// `None` once it was lost for good.
    desk: Option<Desk<'a>>,
    plan: Plan,
    /// Decides about orders and thinking.
    dice: Dice,
    /// Decides about pauses, so that orders stay the same whatever the server does.
    pauses: Dice,
    laps: Laps,
    /// How many names of new customers were tried.
    names: u64,
    failures: u32,
    done: StoreDone,
    errors: BTreeMap<String, u64>,
    /// The words that errors were counted under so far.
    reasons: BTreeSet<String>,
    /// The last order was rolled back; the statements that it took.
    last: (bool, u64),
}

impl<'a> Client<'a> {
    pub fn new(fleet: &'a Fleet, worker: &'a Worker<'a>, breaker: &'a Breaker, connection: Connection) -> Self {
        let seed = fleet.seed;
        Self {
            fleet,
            worker,
            breaker,
            desk: Some(Desk::new(connection, &fleet.book)),
            plan: Plan::default(),
            dice: Dice::of(seed, worker.index),
            pauses: Dice::of(!seed, worker.index),
            laps: Laps::default(),
            names: 0,
            failures: 0,
            done: StoreDone::default(),
            errors: BTreeMap::new(),
            reasons: BTreeSet::new(),
            last: (false, 0),
        }
    }

    /// Adds its errors to what the loop has counted, and returns what was done.
    pub fn settle(self, tally: &mut Tally) -> StoreDone {
        for (reason, count) in self.errors {
            *tally.errors.entry(reason).or_insert(0) += count;
        }
        self.done
    }

    /// One order, from login to commit.
    fn order(&mut self) -> Result<(), PgError> {
        self.laps.start();
        self.plan.draw(&self.fleet.drive, &mut self.dice);
        let Some(desk) = &mut self.desk else { return Err(PgError::broken("no connection")) };
        let socket = desk.connection.socket();
        let Some(_armed) = self.breaker.guard(socket.as_fd()) else { return Err(PgError::broken(CUT_OFF)) };
        let answered = desk.answered;
        let customer = match self.plan.customer {
            Some(number) => desk.log_in(number)?,
            None => {
                let mut names = Names { fleet: self.fleet, worker: self.worker, tried: &mut self.names };
                names.register(desk, &mut self.done)?
            }
        };
        self.laps.lap(if self.plan.customer.is_some() { Step::LogIn } else { Step::NewCustomer });
        for &(browse, rows) in &self.plan.browses {
            desk.browse(browse, rows)?;
            self.laps.lap(match browse {
                Browse::Category(_) => Step::ByCategory,
                Browse::Actor(..) => Step::ByActor,
                Browse::Title(_) => Step::ByTitle,
            });
        }
        let mut net_cents = 0;
        for item in self.plan.items() {
            net_cents += desk.price(item.product)? * item.quantity as u64;
        }
        self.laps.lap(Step::ReadPrices);
        let cart = Cart { customer, items: self.plan.items(), net_cents };
        let mut buyer = Buyer { worker: self.worker, pauses: &mut self.pauses, done: &mut self.done };
        let bought = buyer.buy(desk, &cart, &mut self.laps)?;
        self.last = (bought == Bought::Short, desk.answered - answered);
        match bought {
            Bought::Short => self.done.rolled_back_total += 1,
            Bought::Committed(number) => {
                self.done.orders += 1;
                self.done.order_ids += number;
                self.done.total_cents += cart.total_cents();
                self.done.lines += cart.items.len() as u64;
                self.done.quantity += cart.quantity();
            }
        }
        Ok(())
    }

    /// Counts a failure and sees to it that the next order has a connection.
    #[cold]
    fn failed(&mut self, error: &PgError) -> Failure {
        let reason = self.reason(error);
        let control = self.worker.control;
        if control.cut.load(Ordering::Relaxed) {
            self.cut_off();
            return Failure::fatal(reason);
        }
        self.failures += 1;
        if self.failures > self.fleet.drive.failures_max {
            self.done.gave_up += 1;
            return Failure::fatal(reason);
        }
        if error.broken {
            self.desk = None;
            if let Err(last) = self.reconnect() {
                // At the end of a run nobody waits for a server any more, and the loop says only that it was cut off.
                let ended = control.stop.load(Ordering::Relaxed);
                let why = if ended { reason.clone() } else { self.reason(&last) };
                *self.errors.entry(why).or_insert(0) += 1;
                self.done.gave_up += u32::from(!ended);
                return Failure::fatal(reason);
            }
            self.done.reconnects += 1;
        }
        Failure::passing(reason)
    }

    /// In a closed loop the time that an order had taken by the end of the run is in the response times; so are its steps in theirs.
    #[cold]
    fn cut_off(&mut self) {
        self.laps.lap(Step::CutOff);
        if self.fleet.closed && self.worker.record && self.worker.timeline.measures(self.laps.began()) {
            self.laps.record(&self.fleet.steps);
        }
    }

    /// The words that an error is counted under: its code and the first line of its text.
    fn reason(&mut self, error: &PgError) -> String {
        let code = match &error.sqlstate {
            Some(code) => code.as_str(),
            // As PostgreSQL names it: connection_failure.
            None if error.broken => "08006",
            None => "store",
        };
        let text: String = error.message.lines().next().unwrap_or_default().chars().take(120).collect();
        let reason = format!("{code} {text}");
        if self.reasons.len() < REASONS_MAX {
            self.reasons.insert(reason.clone());
        }
        if self.reasons.contains(&reason) { reason } else { code.to_owned() }
    }

    /// Connects again, within the time that is allowed for it.
    fn reconnect(&mut self) -> Result<(), PgError> {
        let stop = &self.worker.control.stop;
        let until = now_ns().saturating_add(self.fleet.drive.connect_timeout_ns);
        loop {
            let left = Duration::from_nanos(until.saturating_sub(now_ns()));
            let failed = match self.attempt(left) {
                Ok(connection) => {
                    self.desk = Some(Desk::new(connection, &self.fleet.book));
                    return Ok(());
                }
                Err(failed) => failed,
            };
            let again = now_ns() + RECONNECT_PAUSE_NS;
            if again >= until || !sleep_until(again, stop) {
                return Err(failed);
            }
        }
    }

    fn attempt(&self, left: Duration) -> Result<Connection, PgError> {
        let server = self.fleet.server(self.worker.index);
        let within = (left.min(TRY_AT_MOST), left);
        connect::connect(&server, &self.fleet.socket, &self.fleet.book, within, self.breaker)
    }
}

/// Buys until it is done, or fails by more than a deadlock.
struct Buyer<'a> {
    worker: &'a Worker<'a>,
    pauses: &'a mut Dice,
    done: &'a mut StoreDone,
}

impl Buyer<'_> {
    fn buy(&mut self, desk: &mut Desk<'_>, cart: &Cart<'_>, laps: &mut Laps) -> Result<Bought, PgError> {
        loop {
            let mark = laps.mark();
            let Failed { error, doubt } = match purchase(desk, cart, laps) {
                Ok(bought) => return Ok(bought),
                Err(failed) => failed,
            };
            if error.broken || !error.is(DEADLOCK) {
                match doubt {
                    Some(0) => self.done.unnumbered.push((u64::from(cart.customer.unsigned_abs()), cart.total_cents())),
                    doubt => self.done.in_doubt.extend(doubt),
                }
                return Err(error);
            }
            self.done.deadlock_retries += 1;
            let (began, pause) = (now_ns(), self.pauses.below(DEADLOCK_PAUSE_NS));
            // In turns it passes in the client's own.
            let over = self.worker.timeline.after(began, pause);
            if !sleep_until(over, &self.worker.control.stop) {
                return Err(PgError::broken(CUT_OFF));
            }
            laps.rest(over.saturating_sub(began + pause));
            laps.lap_since(mark, Step::Deadlock);
        }
    }
}

/// Names of new customers, which those of other clients and drivers never meet.
struct Names<'a> {
    fleet: &'a Fleet,
    worker: &'a Worker<'a>,
    tried: &'a mut u64,
}

impl Names<'_> {
    /// Registers a new customer under the next name that is not taken.
    fn register(&mut self, desk: &mut Desk<'_>, done: &mut StoreDone) -> Result<i32, PgError> {
        loop {
            let offset = u64::from(self.worker.index) + *self.tried * u64::from(self.worker.of.max(1));
            let name = self.fleet.drive.new_user_from + offset;
            *self.tried += 1;
            match desk.register(name, &mut Key::new(self.fleet.seed, NEW_CUSTOMERS).row(name)) {
                Ok(Some(customer)) => {
                    done.new_customers += 1;
                    return Ok(customer);
                }
                // Taken, as by an earlier run on the same data.
                Ok(None) => done.name_retries += 1,
                Err(error) => {
                    done.customers_in_doubt += u64::from(error.broken);
                    return Err(error);
                }
            }
        }
    }
}

impl Operation for &mut Client<'_> {
    fn perform(&mut self) -> Result<Done, Failure> {
        match self.order() {
            Ok(()) => Ok(Done::Answered),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn untimed_ns(&self) -> u64 {
        self.laps.untimed()
    }

    fn rested_ns(&self) -> u64 {
        self.laps.rested()
    }

    /// Uniform, from nothing to twice the mean.
    fn think_ns(&mut self, mean_ns: u64) -> u64 {
        self.dice.below(mean_ns.saturating_mul(2))
    }

    fn counts(&mut self) {
        let (rolled_back, statements) = self.last;
        self.done.rolled_back += u64::from(rolled_back);
        self.done.statements += statements;
        if self.worker.record {
            self.laps.record(&self.fleet.steps);
        }
    }
}
