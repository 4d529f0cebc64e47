//! A store that is driven, and then counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::store::spec::{StoreCounts, StoreDone, StoreDrive};
use tare_model::Span;
use tare_model::drive::SocketOptions;
use tare_model::packed::Packed;
use tare_model::sql::SqlServer;
use tare_model::trial::Flag;

use super::check::disagreement;
use super::deviations::deviations;
use super::figures::{finish, of_guest};
use super::parameters::Parameters;
use super::ready::{Ready, at_client, count, in_guest, leave_server};
use super::watch::{Watched, watch};
use crate::asked::Asked;
use crate::clock::{monotonic_ns, wait_until};
use crate::postgres::server::SHORT;
use crate::site::{Drive, outcomes};
use crate::{Driven, Failure, Prepared, Schedule, WorkSite, WorkloadError};

/// Longest wait for a connection, as published.
const CONNECT_TIMEOUT: Span = Span::from_secs(60);
/// Failures after which a client gives up, as published.
const FAILURES_MAX: u32 = 10;
/// User names of new customers that each driver has for itself: more than it makes in any trial.
const NAMES: u64 = 1_000_000_000;

/// Fact: how long a server that was killed on purpose took until it took connections again.
pub(super) const RECOVERED_IN: &str = "server killed and recovered in";
/// Count: products that the trigger ordered again, all phases.
pub(super) const REORDERED: &str = "products reordered in all phases";

/// A store that is ready, its drivers, and what they did.
pub(super) struct Running {
    parameters: Parameters,
    ready: Ready,
    /// Numbers of the connected drivers.
    drivers: Vec<u64>,
    /// What was done in the last drive, until it is verified.
    done: Option<StoreDone>,
    /// What was done in all that were verified.
    all: StoreDone,
    /// Reorders that were there when it was last counted.
    reorders: u64,
    /// How often drivers were connected.
    connected: u64,
    /// Whether it is driven again after it was verified.
    stays: bool,
}

/// What was done beside the drivers.
enum Beside {
    /// The server was watched.
    Watched(Box<Watched>),
    /// The server was killed, and took connections again after so many seconds.
    Killed(Result<f64, WorkloadError>),
}

impl Running {
    pub fn new(parameters: Parameters, ready: Ready) -> Self {
        let reorders = ready.before.reorders;
        let (drivers, all) = (Vec::new(), StoreDone::default());
        Self { parameters, ready, drivers, done: None, all, reorders, connected: 0, stays: false }
    }

    /// What one driver is asked to do.
    fn drive_of(&self, number: u64) -> Result<Drive, WorkloadError> {
        let asked = &self.parameters;
        let store = StoreDrive {
            server: self.ready.clients.clone(),
            size: asked.size(),
            statements: asked.statements,
            new_customers: asked.new_customers / 100.0,
            searches: asked.searches,
            search_batch: asked.search_batch,
            line_items: asked.line_items,
            start_jitter_ns: asked.start_jitter.ns,
            ramp_rate_per_s: asked.ramp_rate.0,
            connect_timeout_ns: CONNECT_TIMEOUT.ns,
            failures_max: FAILURES_MAX,
            new_user_from: 1 + number * NAMES,
        };
        Ok(Drive {
            task: Packed::of(&store)?,
            targets: vec![self.ready.clients.address],
            socket: SocketOptions::default(),
            record: true,
            loss_timeout: CONNECT_TIMEOUT,
        })
    }

    /// Watches the server over steady state, or kills it in its midst.
    fn beside(&self, site: &WorkSite<'_>, stretches: &[(u64, u64)], stop: &AtomicBool) -> Beside {
        match self.parameters.kill_after {
            Some(after) => {
                let begins = stretches.first().map_or(0, |stretch| stretch.0);
                Beside::Killed(self.kill(site, begins + after.ns, stop))
            }
            None => {
                let ready = &self.ready;
                Beside::Watched(Box::new(watch(ready.asked(site), &ready.own, ready.major, stretches, stop)))
            }
        }
    }

    /// Kills the server at a moment and starts it again; seconds until it took connections.
    fn kill(&self, site: &WorkSite<'_>, moment_ns: u64, stop: &AtomicBool) -> Result<f64, WorkloadError> {
        let Some(server) = &self.ready.started else { return Err(WorkloadError::NotConnected) };
        wait_until(moment_ns, stop);
        if stop.load(Ordering::Relaxed) {
            let why = "the load had ended by then";
            let remedy = "write a `kill-after` shorter than steady state";
            return Err(Failure::new("kill the server in steady state", why, remedy).into());
        }
        let began = Instant::now();
        server.kill(in_guest(site))?;
        server.start(in_guest(site))?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Counts the store. Orders in doubt whose number nobody learned are looked for by customer and amount, and their numbers
    /// added to those in doubt.
    fn count(&self, site: &WorkSite<'_>, done: &mut StoreDone) -> Result<StoreCounts, WorkloadError> {
        let (asked, server, after) = (at_client(site), &self.ready.clients, self.ready.before.last_order);
        let numbered = std::mem::take(&mut done.in_doubt);
        let mut found = find(asked, server, &done.unnumbered, after)?;
        loop {
            done.in_doubt = numbered.iter().chain(&found).copied().collect();
            let counts = count(asked, &self.parameters, server, after, done.in_doubt.clone())?;
            // The server may still be at work on what nobody waits for any more. There is less of it each time.
            let again = find(asked, server, &done.unnumbered, after)?;
            if again.len() <= found.len() {
                return Ok(counts);
            }
            found = again;
        }
    }

    /// Counts the store. A server that died under load, as for want of memory, is started again for that: what was acknowledged must be
    /// there all the same. It then also returns how the server died.
    fn count_or_recover(
        &self,
        site: &WorkSite<'_>,
        done: &mut StoreDone,
    ) -> Result<(StoreCounts, Option<String>), WorkloadError> {
        let given = done.in_doubt.clone();
        let error = match self.count(site, done) {
            Ok(counts) => return Ok((counts, None)),
            Err(error) => error,
        };
        let asked = in_guest(site);
        match &self.ready.started {
            Some(server) if server.is_gone(asked).unwrap_or(false) => {
                let log = server.log_end(asked);
                let seconds = server.restart(asked)?;
                done.in_doubt = given;
                let died = format!(
                    "the server died, and took connections again {seconds:.2} s after it was started anew; its log ended: {log}"
                );
                self.count(site, done).map(|counts| (counts, Some(died)))
            }
            _ => Err(error),
        }
    }

    fn tell_beside(&self, beside: Beside, driven: &mut Driven) -> Result<(), WorkloadError> {
        match (beside, self.parameters.kill_after) {
            (Beside::Watched(watched), _) => watched.tell(driven),
            (Beside::Killed(recovered), after) => {
                let (seconds, after) = (recovered?, after.unwrap_or_default());
                driven.facts.insert(RECOVERED_IN.to_owned(), format!("{seconds:.2} s"));
                let detail = format!(
                    "the server was killed {after} into steady state, as the study asks, and took connections again after \
                     {seconds:.2} s: the figures include that, and the server was not watched"
                );
                driven.flags.push(Flag { kind: "server-killed".to_owned(), detail });
            }
        }
        Ok(())
    }

    /// On a server that exists nothing of a trial that failed is left. Guests are thrown away with all that is in them.
    fn or_leave<T>(&self, site: &WorkSite<'_>, result: Result<T, WorkloadError>) -> Result<T, WorkloadError> {
        if result.is_err() && self.ready.started.is_none() {
            // Why it failed is what matters.
            let _ = self.leave(site);
        }
        result
    }

    /// Ends what was begun for the trial.
    fn leave(&self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        match &self.ready.started {
            Some(server) => server.stop(in_guest(site)),
            None => leave_server(at_client(site), &self.ready.own, &self.parameters),
        }
    }
}

/// Numbers of the new orders of those customers and amounts in cents.
fn find(
    asked: Asked<'_>,
    server: &SqlServer,
    orders: &[(u64, u64)],
    after_order: u64,
) -> Result<Vec<u64>, WorkloadError> {
    if orders.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = orders.iter().map(|(customer, cents)| format!("({customer}, {}.{:02})", cents / 100, cents % 100));
    let statement = format!(
        "SELECT order_id FROM orders WHERE order_id > {after_order} AND (customer_id, total_amount) IN (VALUES {})",
        wanted.collect::<Vec<_>>().join(", ")
    );
    let rows = asked.sql("look for orders in doubt", server, &[&statement], SHORT)?;
    let cells = rows.iter().flat_map(|result| &result.rows).flatten().flatten();
    Ok(cells.filter_map(|number| number.parse().ok()).collect())
}

impl Prepared for Running {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        let steady = schedule.phases.steady_state;
        if let Some(after) = self.parameters.kill_after.filter(|after| after.ns >= steady.ns) {
            let why = format!("steady state ends after {steady}, and `kill-after` is {after}");
            return Err(Failure::new("kill the server in steady state", why, "write a shorter `kill-after`").into());
        }
        // Customers of an earlier drive are there still.
        let drives = (self.connected..)
            .take(site.drivers.len())
            .map(|number| self.drive_of(number))
            .collect::<Result<_, _>>()?;
        self.connected += site.drivers.len() as u64;
        let longest = CONNECT_TIMEOUT.duration() + Duration::from_secs(5) + site.timeout;
        self.drivers = self.or_leave(site, site.connect_all(drives, schedule, longest))?;
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let drivers = std::mem::take(&mut self.drivers);
        let start_ns = if schedule.start_at_ns == 0 { monotonic_ns() } else { schedule.start_at_ns };
        let stretches = schedule.stretches(start_ns);
        let stop = AtomicBool::new(false);
        let (results, beside) = std::thread::scope(|scope| {
            let beside = scope.spawn(|| self.beside(site, &stretches, &stop));
            let results = site.drive_all(drivers, schedule, Duration::ZERO);
            stop.store(true, Ordering::Relaxed);
            (results, beside.join())
        });
        let killed = self.parameters.kill_after.is_some();
        let (mut driven, done) =
            of_guest(self.or_leave(site, results.and_then(outcomes::<StoreDrive>))?, site.index + 1, killed);
        self.done = done;
        driven.facts.extend(self.ready.facts.clone());
        driven.flags.extend(self.ready.flags.clone());
        driven.deviations = deviations(&self.parameters, self.ready.major);
        self.tell_beside(beside.map_err(|_| WorkloadError::NotConnected)?, &mut driven)?;
        finish(&mut driven);
        Ok(driven)
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let Some(done) = self.done.take() else { return Err(WorkSite::unexpected("client", "drive load")) };
        self.all.add(&done);
        // What was in doubt in an earlier drive may have come since.
        let mut done = self.all.clone();
        let began = Instant::now();
        let counted = self.count_or_recover(site, &mut done);
        let (after, died) = self.or_leave(site, counted)?;
        driven.facts.insert("database counted in".to_owned(), format!("{:.2} s", began.elapsed().as_secs_f64()));
        let reorders = after.reorders.saturating_sub(std::mem::replace(&mut self.reorders, after.reorders));
        driven.measurement.counts.insert(REORDERED.to_owned(), reorders);
        let wrong = match (died, disagreement(&self.ready.before, &done, &after)) {
            (Some(died), None) => Some(format!("{died}; every order that was acknowledged is there")),
            (Some(died), Some(wrong)) => Some(format!("{died}; {wrong}")),
            (None, wrong) => wrong,
        };
        // What the database tells comes first: it is the cause, or the worse.
        let wrong = wrong.map(|wrong| match driven.invalid.take() {
            Some(also) => format!("{wrong}; {also}"),
            None => wrong,
        });
        // The work is already counted: a failure is flagged, and the figures stay valid.
        let ended = if self.stays { Ok(()) } else { self.leave(site) };
        if let Err(error) = ended {
            driven.flags.push(Flag { kind: "server-errors".to_owned(), detail: error.to_string() });
        }
        Ok(wrong)
    }

    fn stay(&mut self) {
        self.stays = true;
    }

    fn end(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        self.leave(site)
    }
}
