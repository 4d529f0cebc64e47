//! Load at one number of guests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tare_memory::cost::Cost;
use tare_model::density::{Level, StopKind, TileGuest, metric};
use tare_model::histogram::{self, Percentile};
use tare_model::merging::{MergeCounters, SavedFrom};
use tare_model::sample::{CpuAccount, Sample, Source};
use tare_model::trial::{Flag, Incomplete, Measurement, Part, Phase};
use tare_workload::{DriverSite, WorkSite};

use super::add::STALE;
use super::host::Carrier;
use super::watch::{Reading, at, nearest};
use super::{Ascending, WAIT_EVERY};
use crate::remote_guests::WORKING;
use crate::text::fit;
use crate::trial::judge::{Figures, missed};
use crate::trial::target::{Target, target_name};
use crate::trial::{Gathered, Stop};

/// How long the host may take to come to rest after it was seen to run towards harm.
const CALM_WITHIN: Duration = Duration::from_secs(60);
/// The samples of so many guests are kept, or of one tile where that has more, beside those of the host and the driver.
const GUESTS_SAMPLED: usize = 4;
/// Columns of the host's CPUs in which they do not work; time that was stolen is in neither.
const IDLE: [&str; 2] = ["idle", "iowait"];

/// What was gathered of one level apart from all others.
#[derive(Default)]
pub(super) struct Apart {
    pub(super) samples: Vec<Sample>,
    flags: Vec<Flag>,
    pub(super) facts: BTreeMap<String, String>,
    pub(super) cpu: Option<CpuAccount>,
    pub(super) window_ns: Option<(u64, u64)>,
    load_s: f64,
}

impl Apart {
    /// Puts what was gathered so far aside, or back.
    fn swap(&mut self, gathered: &mut Gathered) {
        std::mem::swap(&mut self.samples, &mut gathered.samples);
        std::mem::swap(&mut self.flags, &mut gathered.flags);
        std::mem::swap(&mut self.facts, &mut gathered.facts);
        std::mem::swap(&mut self.cpu, &mut gathered.cpu);
        std::mem::swap(&mut self.window_ns, &mut gathered.window_ns);
        std::mem::swap(&mut self.load_s, &mut gathered.load_s);
    }
}

/// The largest number of guests that held, or the last that was measured if none did.
pub(super) struct Best {
    pub(super) guests: u32,
    pub(super) held: bool,
    pub(super) measurement: Measurement,
    pub(super) apart: Apart,
}

/// A level that was driven to its end.
struct Seen {
    measurement: Measurement,
    window_ns: (u64, u64),
    work: f64,
    /// Why the work was not right.
    wrong: Option<String>,
    costs: Vec<Cost>,
    host_cpu: Option<f64>,
    /// Seconds that a guest which was added for this level took to start, mean.
    started_s: Option<f64>,
}

impl Ascending<'_> {
    /// Waits until memory has settled, offers load to all guests that stand, and notes what was seen. Whether more can be
    /// measured in these guests.
    ///
    /// # Errors
    /// When the user wishes to stop, or the journal cannot be written.
    pub(super) fn offer(&mut self, gathered: &mut Gathered) -> Result<bool, Stop> {
        let settled_after_s = self.settle()?;
        self.rest()?;
        self.calm()?;
        let mut apart = Apart::default();
        apart.swap(gathered);
        gathered.halt = self.arm(None);
        self.under_load(true);
        self.tell(true);
        let driven = self.drive(gathered);
        self.under_load(false);
        let fired = self.disarm();
        apart.swap(gathered);
        gathered.load_s += apart.load_s;
        if let Some(reason) = self.trial.bench.cancel.reason() {
            return Err(Stop { phase: Phase::Drive, reason: format!("stopped by {reason}") });
        }
        let mut level = Level { guests: self.standing(), settled_after_s, ..Level::default() };
        self.keep_flags(std::mem::take(&mut apart.flags));
        let (why, more) = match driven {
            Err(stop) => (Some(fired.unwrap_or((StopKind::Killed, stop.reason))), false),
            Ok(seen) => {
                let incomplete = self.fill(&mut level, &seen);
                let wrong = seen.wrong.clone().map(|reason| (StopKind::Wrong, reason));
                let figures = Figures { metrics: &level.metrics, incomplete: &incomplete };
                let missed = || missed(&self.trial.task, &figures).map(|missed| (StopKind::Qos, missed.why));
                let ended = fired.or(wrong);
                let more = ended.is_none();
                let why = ended.or_else(missed);
                self.keep_best(why.is_none(), &level, seen.measurement, apart);
                (why, more)
            }
        };
        if let Some(why) = why {
            let why = (why.0, fit(&why.1));
            (level.failed, level.cause) = (Some(why.1.clone()), Some(why.0));
            self.stop(why);
        }
        self.levels.push(level);
        self.tell(false);
        Ok(more)
    }

    /// Waits until merging and ballooning have settled, at most as long as the case allows: seconds since the last guest was ready.
    fn settle(&self) -> Result<Option<f64>, Stop> {
        if self.governed.makes_room().is_none() {
            return Ok(None);
        }
        let began = Instant::now();
        loop {
            if self.changed.elapsed() >= STALE && self.governed.settled() {
                return Ok(Some(self.changed.elapsed().as_secs_f64()));
            }
            if began.elapsed() >= self.spec.settle.duration() {
                return Ok(None);
            }
            self.wait(Phase::Drive, WAIT_EVERY)?;
        }
    }

    fn rest(&self) -> Result<(), Stop> {
        let began = Instant::now();
        while let Some(left) = self.spec.rest.duration().checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            self.wait(Phase::Drive, left.min(Duration::from_secs(1)))?;
        }
        Ok(())
    }

    /// After the host was seen to run towards harm: waits until it does no longer. A host that does not come to rest is
    /// found out by the level itself.
    fn calm(&self) -> Result<(), Stop> {
        let Some(carrier) = self.carrier.as_ref().filter(|_| self.stopped.is_some()) else { return Ok(()) };
        let (began, mut base) = (Instant::now(), carrier.memory.now());
        loop {
            self.wait(Phase::Drive, WAIT_EVERY)?;
            let now = carrier.memory.now();
            let calm = match (&base, &now) {
                (Ok(base), Ok(now)) => carrier.guard.check(base, now).is_none(),
                _ => false,
            };
            if calm || began.elapsed() >= CALM_WITHIN {
                return Ok(());
            }
            base = now;
        }
    }

    /// Drives all guests through the phases once.
    fn drive(&mut self, gathered: &mut Gathered) -> Result<Seen, Stop> {
        let trial = self.trial;
        trial.enter(Phase::Drive)?;
        let given = trial.given(self.targets.len());
        let drivers: Vec<Vec<DriverSite<'_>>> = self.targets.iter().map(Target::drivers).collect();
        let sites: Vec<WorkSite<'_>> =
            self.targets.iter().zip(&drivers).filter_map(|(target, drivers)| target.site(drivers, &given)).collect();
        let (mut driven, probed) = trial.drive(&mut self.prepared, &sites, gathered)?;
        self.under_load(false);
        let costs = costs(trial, gathered);
        trial.enter(Phase::Verify)?;
        let wrong = trial.verify(&mut self.prepared, &sites, &mut driven, gathered)?;
        let (driven, seen) = trial.combine(driven)?;
        let (window_ns, work) = (driven.window_ns, driven.work);
        // What this host's CPUs did says nothing of guests that another carries.
        let host_cpu = self.carrier.as_ref().and_then(|_| host_cpu(&probed.samples, window_ns));
        let measurement = trial.collect(driven, probed, gathered);
        Ok(Seen {
            measurement,
            window_ns,
            work,
            wrong: wrong.or(seen),
            costs,
            host_cpu,
            started_s: self.started_s(gathered),
        })
    }

    /// How long those guests took to start that the last level had not, mean; nothing where the search went down.
    fn started_s(&self, gathered: &Gathered) -> Option<f64> {
        let before = self.levels.last().map_or(0, |level| level.guests as usize);
        let added = gathered.measured().get(before..)?;
        let sum: f64 = added.iter().map(|guest| guest.start_time_s()).sum();
        (!added.is_empty()).then(|| sum / added.len() as f64)
    }

    /// What a level tells, from what was seen; returns what its figures leave out.
    fn fill(&self, level: &mut Level, seen: &Seen) -> BTreeMap<String, Incomplete> {
        let guests = f64::from(level.guests);
        let window_s = seen.window_ns.1.saturating_sub(seen.window_ns.0) as f64 / 1e9;
        level.window_ns = seen.window_ns;
        level.metrics.clone_from(&seen.measurement.metrics);
        level.response = seen.measurement.histograms.get(histogram::RESPONSE).cloned().unwrap_or_default();
        level.parts = seen.measurement.parts.clone();
        if level.parts.is_empty() {
            level.parts.push(Part {
                guest: 1,
                driver: None,
                metrics: seen.measurement.metrics.clone(),
                instance: None,
            });
        }
        let mut add = |id: &str, value: Option<f64>| {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                level.metrics.entry(id.to_owned()).or_insert(value);
            }
        };
        add(metric::OPERATIONS, (window_s > 0.0).then(|| seen.work / window_s));
        let (p99, mut incomplete) = (level.response.percentile(0.99), seen.measurement.incomplete.clone());
        if p99 == Percentile::NotReached {
            let completed_only = level.response.completed().quantile(0.99).map(|ns| ns / 1e9);
            let own = Incomplete { missing: level.response.missing(), completed_only };
            incomplete.entry(metric::RESPONSE_P99.to_owned()).or_insert(own);
        }
        add(metric::RESPONSE_P99, p99.value().map(|ns| ns / 1e9));
        add(metric::HOST_CPU, seen.host_cpu);
        add(metric::ADDED_START, seen.started_s);
        if let Some(carrier) = &self.carrier {
            let readings = carrier.watch.readings();
            let end = nearest(&readings, seen.window_ns.1);
            let merged = end.and_then(|end| end.merge);
            let saved = merged.into_iter().flat_map(|merge| merging(carrier, &merge, &readings, seen.window_ns));
            let all = self.memory_of(carrier, level.guests, end).into_iter().chain(saved);
            all.for_each(|(id, value)| add(id, value));
            level.merge = merged.unwrap_or_default();
        }
        add(metric::BALLOONED, self.governed.balloons().and_then(|done| done.taken_bytes).map(|bytes| bytes as f64));
        if !seen.costs.is_empty() {
            let mean =
                |of: fn(&Cost) -> u64| Some(seen.costs.iter().map(of).sum::<u64>() as f64 / seen.costs.len() as f64);
            add(metric::GUEST_UNIQUE, mean(|cost| cost.unique_bytes));
            add(metric::GUEST_SHARED, mean(|cost| cost.shared_bytes));
        }
        let operations = level.metrics.get(metric::OPERATIONS).copied();
        level.metrics.extend(operations.map(|all| (metric::PER_GUEST.to_owned(), all / guests)));
        level.saved_from = together(&seen.costs);
        self.fill_shares(level);
        incomplete
    }

    /// What was promised of the host's memory, and what so many guests took of it, by the last reading of a window.
    fn memory_of(&self, carrier: &Carrier, guests: u32, end: Option<Reading>) -> [(&'static str, Option<f64>); 4] {
        let promised = self.promised_bytes() as f64;
        let taken = end.map(|end| carrier.start.available_bytes as f64 - end.available_bytes as f64);
        [
            (metric::PROMISED, Some(promised)),
            (metric::OVERCOMMIT, Some(promised / carrier.start.total_bytes as f64)),
            (metric::AVAILABLE, end.map(|end| end.available_bytes as f64)),
            (metric::GUEST_COST, taken.map(|taken| taken / f64::from(guests))),
        ]
    }

    /// What each member of a tile still does of what it did with one tile on the host, where that was measured.
    fn fill_shares(&self, level: &mut Level) {
        for TileGuest { name, .. } in &self.spec.tile {
            let id = metric::member(name, metric::MEMBER_WORK);
            let single = self.levels.iter().find(|one| one.guests == self.unit() && one.worked());
            let single = if level.guests == self.unit() { Some(&*level) } else { single };
            let figures = single.and_then(|single| single.metrics.get(&id)).zip(level.metrics.get(&id));
            let share = figures.map(|(single, now)| now / single).filter(|share| share.is_finite());
            level.metrics.extend(share.map(|share| (metric::member(name, metric::MEMBER_SHARE), share)));
        }
    }

    /// Keeps the figures and samples of the largest number that held, or else of the last.
    fn keep_best(&mut self, held: bool, level: &Level, mut measurement: Measurement, mut apart: Apart) {
        let better =
            self.best.as_ref().is_none_or(|best| (held, level.guests) > (best.held, best.guests) || !best.held);
        if !better {
            return;
        }
        measurement.metrics.extend(level.metrics.clone());
        let sampled = GUESTS_SAMPLED.max(self.unit() as usize);
        apart.samples.retain(|sample| is_kept(&sample.source, sampled));
        self.best = Some(Best { guests: level.guests, held, measurement, apart });
    }

    /// Adds what is to be known of this level to what is known of others: one of a kind is enough.
    fn keep_flags(&mut self, flags: Vec<Flag>) {
        let guests = self.standing();
        for flag in flags {
            match self.flags.iter_mut().find(|(kind, ..)| *kind == flag.kind) {
                Some((_, levels, _)) if levels.contains(&guests) => {}
                Some((_, levels, _)) => levels.push(guests),
                None => self.flags.push((flag.kind, vec![guests], flag.detail)),
            }
        }
    }
}

/// What merging had saved at the end of a window, and the CPU that it took.
fn merging(
    carrier: &Carrier,
    merge: &MergeCounters,
    readings: &[Reading],
    window_ns: (u64, u64),
) -> [(&'static str, Option<f64>); 4] {
    let cpu = |at_ns| at(readings, at_ns, |reading: &Reading| reading.merge.map(|merge| merge.scanner_cpu_s));
    let (first, last) = (cpu(window_ns.0), cpu(window_ns.1));
    let window_s = window_ns.1.saturating_sub(window_ns.0) as f64 / 1e9;
    let since_start = last.map(|last| (last - carrier.watch.scanner_cpu_at_start_s()).max(0.0));
    [
        (metric::SAVED, Some(merge.saved(rustix::param::page_size() as u64).0 as f64)),
        (metric::PROFIT, Some(merge.profit_bytes as f64)),
        (metric::SCANNER_CPU, first.zip(last).map(|(first, last)| (last - first).max(0.0) / window_s)),
        (metric::SCANNER_CPU_S, since_start),
    ]
}

/// What each guest takes of the host's memory; empty where one of them has no group of its own.
fn costs(trial: &crate::trial::Trial<'_>, gathered: &Gathered) -> Vec<Cost> {
    let one = |guest: &dyn tare_platform::Guest| {
        let pids = tare_lab::processes_in(&guest.groups());
        let cost = (!pids.is_empty()).then(|| trial.bench.host.cost(&pids))?;
        cost.inspect_err(|why| tracing::debug!(why, "what a guest takes could not be measured")).ok()
    };
    gathered.measured().iter().map(|guest| one(&**guest)).collect::<Option<Vec<_>>>().unwrap_or_default()
}

fn together(costs: &[Cost]) -> SavedFrom {
    costs.iter().fold(SavedFrom::default(), |all, cost| SavedFrom {
        zero_bytes: all.zero_bytes + cost.saved.zero_bytes,
        code_bytes: all.code_bytes + cost.saved.code_bytes,
        data_bytes: all.data_bytes + cost.saved.data_bytes,
        unknown_bytes: all.unknown_bytes + cost.saved.unknown_bytes,
    })
}

/// Busy share of all CPUs of the host in a window, what was stolen left out of both.
fn host_cpu(samples: &[Sample], window: (u64, u64)) -> Option<f64> {
    let host: Vec<Sample> = samples.iter().filter(|sample| sample.source == Source::Host).cloned().collect();
    let gain = |column: &&str| tare_probe::gain(&host, &Source::Host, &format!("cpu_{column}_s"), window);
    let sum = |columns: &[&str]| columns.iter().map(gain).sum::<Option<f64>>();
    let (busy, idle) = (sum(&WORKING)?, sum(&IDLE)?);
    (busy + idle > 0.0).then(|| busy / (busy + idle))
}

/// Whether samples from there are kept: the host's, the driver's and those of the first guests. What all the others show is in
/// the levels.
fn is_kept(source: &Source, sampled: usize) -> bool {
    match source {
        Source::Host | Source::Client | Source::UserCommand | Source::Hypervisor => true,
        Source::Guest(name) | Source::InGuest(name) => (0..sampled).any(|n| target_name(n) == *name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_cpus_are_busy_or_idle_and_never_stolen() {
        let sample = |column: &str, at_ns, value| Sample {
            at_ns,
            source: Source::Host,
            series: format!("cpu_{column}_s"),
            value,
        };
        let mut samples = Vec::new();
        for (column, gain) in [("user", 1.0), ("idle", 2.0), ("iowait", 1.0), ("steal", 9.0)] {
            samples.extend([sample(column, 0, 5.0), sample(column, 10, 5.0 + gain)]);
        }
        assert_eq!(host_cpu(&samples, (0, 10)), None, "columns are missing");
        for column in ["nice", "system", "irq", "softirq"] {
            samples.extend([sample(column, 0, 1.0), sample(column, 10, 1.0)]);
        }
        assert_eq!(host_cpu(&samples, (0, 10)), Some(0.25));
    }

    #[test]
    fn samples_of_the_first_guests_are_kept() {
        assert!(is_kept(&Source::Host, 4) && is_kept(&Source::Guest("target".into()), 4));
        assert!(is_kept(&Source::InGuest("target-4".into()), 4) && !is_kept(&Source::InGuest("target-5".into()), 4));
        assert!(is_kept(&Source::InGuest("target-5".into()), 5), "a whole tile");
    }
}
