//! What neighbours do to a guest in the turns of each condition, and what came of it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use tare_model::aggressor::{Aggressor, Means};
use tare_model::drive::{BusyDone, BusyStretch, BusyWork};
use tare_model::guest::GuestSpec;
use tare_model::metric::{Better, MetricSpec, Unit, isolation};
use tare_model::trial::{Flag, Measurement};
use tare_model::turns::TurnSpec;
use tare_model::{count, flag};
use tare_platform::Guest;
use tare_wire::{Link, Reply, Request, WireError};

use super::turns::wait_until;
use crate::time_limits::TIMEOUT;

/// How long the thread sleeps at a time that sees whether the host answers.
const SLEEP: Duration = Duration::from_millis(5);

/// A turn of a condition: start and end, nanoseconds, and which condition, from 0.
pub(super) type Window = (u64, u64, usize);

/// The neighbours of a guest that meets one condition after another.
pub(super) struct Aggressors {
    neighbours: Vec<Neighbour>,
    conditions: Vec<Option<Aggressor>>,
    seen: Mutex<Vec<Seen>>,
}

struct Neighbour {
    name: String,
    link: Arc<Link>,
    /// By condition, the number of what it does, in its agent.
    busy: Vec<Option<u64>>,
}

/// What came of one condition.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// By neighbour.
    achieved: Vec<Achieved>,
    /// What the system refused them.
    refused: u64,
    /// Turns of neighbours that were gone already.
    missed: u64,
    /// How a neighbour ended in one of these turns.
    ended: Option<String>,
    /// Why a neighbour did not do what it was asked.
    failed: Option<String>,
    /// Longest time by which a thread of the controller woke up too late.
    delay_ns: u64,
}

/// What one neighbour achieved in all turns of a condition.
#[derive(Debug, Clone, Copy, Default)]
struct Achieved {
    iterations: u64,
    /// For how long; of several threads the mean.
    ns: f64,
}

impl Achieved {
    fn add(&mut self, done: &BusyDone) {
        self.iterations = done.loops.iter().fold(self.iterations, |sum, one| sum.saturating_add(one.iterations));
        let ns: u64 = done.loops.iter().map(|one| one.to_ns.saturating_sub(one.from_ns)).sum();
        self.ns += ns as f64 / (done.loops.len() as f64).max(1.0);
    }

    fn per_s(self) -> f64 {
        if self.ns > 0.0 { self.iterations as f64 * 1e9 / self.ns } else { 0.0 }
    }
}

impl Aggressors {
    /// Has neighbours get ready for what each condition asks of them. Then they stand still. `to`: the host that they may send to.
    ///
    /// # Errors
    /// What a neighbour could not do.
    pub(super) fn prepare(
        guests: &[Box<dyn Guest>],
        conditions: Vec<Option<Aggressor>>,
        to: Option<IpAddr>,
    ) -> Result<Self, String> {
        let neighbours = guests.iter().map(|guest| Neighbour::prepare(guest.link(), guest.spec(), (&conditions, to)));
        let neighbours = neighbours.collect::<Result<Vec<_>, _>>()?;
        let seen = Seen { achieved: vec![Achieved::default(); neighbours.len()], ..Seen::default() };
        let seen = Mutex::new(vec![seen; conditions.len()]);
        Ok(Self { neighbours, conditions, seen })
    }

    /// Starts the threads that have neighbours work in their turns and see whether the host answers. They end after the last turn, or soon
    /// after `done` is set.
    pub(super) fn spawn<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        (windows, spec): (&'s [Window], TurnSpec),
        done: &'s AtomicBool,
    ) {
        for at in 0..self.neighbours.len() {
            scope.spawn(move || self.work(at, windows, spec, done));
        }
        scope.spawn(move || self.watch(windows, done));
    }

    /// A value is never left half-written under this lock.
    fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has one neighbour work in all turns of conditions that want it.
    fn work(&self, at: usize, windows: &[Window], spec: TurnSpec, done: &AtomicBool) {
        let Some(neighbour) = self.neighbours.get(at) else { return };
        let mut gone = false;
        for &(from, to, condition) in windows {
            let Some(busy) = neighbour.busy.get(condition).copied().flatten() else { continue };
            if !wait_until(from.saturating_sub(spec.gap.ns), done) {
                return;
            }
            let ran = if gone { None } else { Some(neighbour.run(busy, from + spec.warm_up.ns, to)) };
            let mut all = self.lock();
            let Some(seen) = all.get_mut(condition) else { continue };
            match ran {
                None => seen.missed += 1,
                Some(Ok(ran)) => {
                    seen.refused = seen.refused.saturating_add(ran.refused);
                    seen.achieved.iter_mut().skip(at).take(1).for_each(|own| own.add(&ran));
                }
                Some(Err(NotDone::Ended(how))) => {
                    gone = true;
                    seen.ended.get_or_insert(format!("{}: {how}", neighbour.name));
                }
                Some(Err(NotDone::Failed(why))) => {
                    seen.failed.get_or_insert(format!("{}: {why}", neighbour.name));
                }
            }
        }
    }

    /// Sees how late a thread wakes up that sleeps for some milliseconds at a time.
    fn watch(&self, windows: &[Window], done: &AtomicBool) {
        let end = windows.iter().map(|window| window.1).max().unwrap_or_default();
        while !done.load(Ordering::Relaxed) {
            let due = tare_probe::now_ns() + SLEEP.as_nanos() as u64;
            std::thread::sleep(SLEEP);
            let now = tare_probe::now_ns();
            // Whoever had the turn when it was due.
            let own = windows.iter().find(|(from, to, _)| (*from..*to).contains(&due));
            if let Some(&(.., condition)) = own
                && let Some(seen) = self.lock().get_mut(condition)
            {
                seen.delay_ns = seen.delay_ns.max(now.saturating_sub(due));
            }
            if now > end {
                return;
            }
        }
    }

    /// Adds what came of a condition to its trial's figures, and what a reader must know of it to the flags; why the figures must not be
    /// used, if so.
    pub(super) fn put_in(
        &self,
        condition: usize,
        measurement: &mut Measurement,
        flags: &mut Vec<Flag>,
    ) -> Option<String> {
        let seen = self.lock().get(condition).cloned()?;
        measurement.metrics.insert(isolation::HOST_DELAY.to_owned(), seen.delay_ns as f64 / 1e9);
        self.conditions.get(condition).copied().flatten()?;
        let achieved = seen.achieved.iter().map(|own| own.per_s()).sum();
        measurement.metrics.insert(isolation::WORK.to_owned(), achieved);
        measurement.counts.insert(count::AGGRESSOR_REFUSED.to_owned(), seen.refused);
        if let Some(how) = &seen.ended {
            measurement.counts.insert(count::AGGRESSOR_ENDED.to_owned(), 1);
            flags.push(Flag {
                kind: flag::AGGRESSOR_ENDED.to_owned(),
                detail: format!("a neighbour ended in its turn: {how}"),
            });
        }
        if let Some(why) = seen.failed {
            return Some(format!("a neighbour did not do what it was asked: {why}"));
        }
        (seen.missed > 0 && seen.ended.is_none()).then(|| {
            let turns = seen.missed;
            format!("a neighbour was gone in {turns} of its turns: it had ended in a turn of another condition of this guest")
        })
    }
}

/// Why a neighbour did not work through its turn.
enum NotDone {
    /// Its agent is gone.
    Ended(String),
    /// It refused, or answered something else.
    Failed(String),
}

impl Neighbour {
    fn prepare(
        link: &Arc<Link>,
        spec: &GuestSpec,
        (conditions, to): (&[Option<Aggressor>], Option<IpAddr>),
    ) -> Result<Self, String> {
        let means = Means { memory_bytes: spec.size.memory.0, to };
        let mut neighbour = Self { name: spec.name.clone(), link: Arc::clone(link), busy: Vec::new() };
        for condition in conditions {
            let busy = condition.map(|aggressor| neighbour.ready(aggressor, spec.size.cpus, means)).transpose();
            neighbour.busy.push(busy.map_err(|why| format!("{}: {why}", spec.name))?);
        }
        Ok(neighbour)
    }

    /// The number of what it is to do, which it does not do yet.
    fn ready(&self, aggressor: Aggressor, threads: u32, means: Means) -> Result<u64, String> {
        let work = aggressor.work(means);
        // These begin at once, and stand still after their first stretch.
        let begins = matches!(work, BusyWork::Spin | BusyWork::Mixed);
        let busy = match self.link.call(Request::Busy { threads, work }, TIMEOUT) {
            Ok(Reply::BusyStarted { busy, .. }) => busy,
            Ok(_) => return Err("it answered something else".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if begins {
            let ran = self.link.call(Request::RunBusy { busy, stretch: BusyStretch::default() }, TIMEOUT);
            ran.map_err(|error| error.to_string())?;
        }
        Ok(busy)
    }

    /// Works from now to a moment; what it does before `counts_from` does not count.
    fn run(&self, busy: u64, counts_from: u64, to: u64) -> Result<BusyDone, NotDone> {
        let now = tare_probe::now_ns();
        let for_ns = to.saturating_sub(now);
        let stretch = BusyStretch { warm_up_ns: counts_from.saturating_sub(now), for_ns, ..BusyStretch::default() };
        let ended = || self.link.ended();
        match self.link.call(Request::RunBusy { busy, stretch }, TIMEOUT + Duration::from_nanos(for_ns)) {
            Ok(Reply::BusyRan(done)) => Ok(done),
            Ok(_) => Err(NotDone::Failed("it answered something else".to_owned())),
            Err(WireError::Refused { reason, .. }) => Err(NotDone::Failed(reason)),
            Err(error) => {
                Err(NotDone::Ended(ended().map_or_else(|| error.to_string(), |how| format!("its agent: {how}"))))
            }
        }
    }
}

/// The metrics that conditions have beside those of their workload; `None` where neighbours do nothing.
pub(super) fn specs(aggressor: Option<Aggressor>) -> Vec<MetricSpec> {
    let delay = "longest delay of a thread on the host";
    let delay = MetricSpec::new(isolation::HOST_DELAY, delay, Unit::Seconds, Better::Lower);
    let achieved = aggressor.map(|aggressor| {
        let unit = Unit::Other(format!("{}/s", aggressor.unit()));
        MetricSpec::new(isolation::WORK, "what the neighbours achieved", unit, Better::Higher)
    });
    std::iter::once(delay).chain(achieved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::drive::BusyCount;

    fn aggressors(seen: Seen) -> Aggressors {
        let conditions = vec![None, Some(Aggressor::Spin)];
        Aggressors { neighbours: Vec::new(), conditions, seen: Mutex::new(vec![Seen::default(), seen]) }
    }

    fn put_in(condition: usize, seen: Seen) -> (Measurement, Vec<Flag>, Option<String>) {
        let (mut measurement, mut flags) = (Measurement::default(), Vec::new());
        let wrong = aggressors(seen).put_in(condition, &mut measurement, &mut flags);
        (measurement, flags, wrong)
    }

    #[test]
    fn what_neighbours_achieve_is_the_sum_of_their_rates_over_all_turns() {
        let loops = vec![
            BusyCount { iterations: 30, from_ns: 0, to_ns: 10 },
            BusyCount { iterations: 10, from_ns: 5, to_ns: 35 },
        ];
        let done = BusyDone { loops, ..BusyDone::default() };
        let mut one = Achieved::default();
        one.add(&done);
        one.add(&done);
        // 80 in twice 20 ns.
        assert!((one.per_s() - 2e9).abs() < 1.0, "{one:?}");
        let seen = Seen { achieved: vec![one, one, Achieved::default()], delay_ns: 3_000_000, ..Seen::default() };
        let (measurement, flags, wrong) = put_in(1, seen);
        assert!((measurement.metrics[isolation::WORK] - 4e9).abs() < 1.0);
        assert!((measurement.metrics[isolation::HOST_DELAY] - 0.003).abs() < 1e-9);
        assert_eq!((flags.len(), wrong), (0, None));
        let (alone, ..) = put_in(0, Seen::default());
        assert!(!alone.metrics.contains_key(isolation::WORK), "nobody worked: {alone:?}");
    }

    #[test]
    fn a_neighbour_that_ends_in_its_turn_is_flagged_and_spoils_the_turns_of_others_alone() {
        let ended = Seen { ended: Some("n1: killed".to_owned()), missed: 3, ..Seen::default() };
        let (measurement, flags, wrong) = put_in(1, ended);
        assert_eq!((measurement.counts[count::AGGRESSOR_ENDED], wrong), (1, None));
        assert!(flags[0].kind == flag::AGGRESSOR_ENDED && flags[0].detail.contains("killed"), "{flags:?}");
        let (_, flags, wrong) = put_in(1, Seen { missed: 3, ..Seen::default() });
        assert!(flags.is_empty() && wrong.is_some_and(|why| why.contains("gone in 3 of its turns")));
    }
}
