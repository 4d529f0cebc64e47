//! A trial that is one search for the largest load that meets the case's objectives: each load is tried in instances that are
//! made for it, taken away after it, and seen to be gone before the next.

use std::collections::BTreeMap;

use tare_lab::Resource;
use tare_model::capacity::{CapacitySearch, CapacitySpec, Probe, ProbeCause, metric};
use tare_model::trial::{Measurement, Outcome, Phase};
use tare_model::{count, histogram};
use tare_record::JournalEvent;

use super::judge::{Figures, missed};
use super::{Gathered, Stop, Trial};
use crate::capacity::{self, Found, Search, Try, words};
use crate::cleanliness::left_of_try;
use crate::observer::TryNow;
use crate::text::fit;

/// A try that was driven to its end.
struct Tried {
    outcome: capacity::Outcome,
    /// Where it stopped, if it did not run to its end.
    stopped: Option<Phase>,
    measurement: Measurement,
    /// What was gathered of it; its guests are gone.
    gathered: Gathered,
}

/// A search under way.
struct Searching<'t> {
    trial: &'t Trial<'t>,
    spec: CapacitySpec,
    search: Search,
    probes: Vec<Probe>,
    /// The last try of each load that holds so far, by place in `probes`.
    held: BTreeMap<usize, Tried>,
    /// The last phase in which a try stopped.
    stopped: Option<Phase>,
    /// What was there before the first try, and is after the last.
    around: Vec<Resource>,
}

impl Trial<'_> {
    /// Searches the load of a case.
    pub(super) fn search(&self, spec: &CapacitySpec, gathered: &mut Gathered) -> Result<Outcome, Stop> {
        let search = Search::new(spec);
        let around = self.bench.book.held();
        let (probes, held) = (Vec::new(), BTreeMap::new());
        let mut searching = Searching { trial: self, spec: *spec, search, probes, held, stopped: None, around };
        let ended = searching.go(gathered);
        // What was seen is reported, however the search ended.
        if ended.is_err() {
            searching.tell_tries(gathered);
        }
        ended?;
        Ok(searching.outcome(gathered))
    }
}

impl Searching<'_> {
    /// Tries one load after the other.
    fn go(&mut self, gathered: &mut Gathered) -> Result<(), Stop> {
        while let Some(next) = self.search.next() {
            let number = self.search.tries() + 1;
            let tried = self.try_once(next, number, gathered)?;
            self.note(next, number, tried)?;
        }
        Ok(())
    }

    /// Tries a load in fresh instances, which are gone when this returns.
    ///
    /// # Errors
    /// When something of it stayed, the journal cannot be written, or the user wishes to stop.
    fn try_once(&self, next: Try, number: u32, gathered: &mut Gathered) -> Result<Tried, Stop> {
        let Trial { bench, planned, .. } = *self.trial;
        let event = JournalEvent::TryStarted { index: planned.index, number, load: next.load };
        bench.book.write(&event).map_err(|error| Stop { phase: Phase::Provision, reason: error.to_string() })?;
        self.tell(next, number, None);
        let trial = Trial { load: self.spec.of_each(next.load), number, ..*self.trial };
        let (halt, standing) = (bench.cancel.clone(), gathered.standing.clone());
        let mut own = Gathered { halt, standing, ..Gathered::default() };
        let attempted = trial.at_once(&mut own);
        let torn_down = trial.tear_down(&mut own);
        gathered.load_s += own.load_s;
        let left = match torn_down {
            Ok(()) => left_of_try(bench.run_id, bench.book, &self.around),
            Err(stop) => Some(stop.reason),
        };
        if let Some(left) = left {
            // They are tried again when the trial is taken away.
            gathered.guests.append(&mut own.guests);
            let reason = format!("after try {number} the host was not clean: {left}");
            return Err(Stop { phase: Phase::Teardown, reason });
        }
        own.guests.clear();
        own.standing.set(Vec::new(), 0);
        if let Some(reason) = bench.cancel.reason() {
            let phase = attempted.err().map_or(Phase::Teardown, |stop| stop.phase);
            return Err(Stop { phase, reason: format!("stopped by {reason}") });
        }
        let (outcome, stopped, measurement) = match attempted {
            Err(stop) => {
                let reason = format!("in {}: {}", stop.phase, fit(&stop.reason));
                (capacity::Outcome::Failed(reason), Some(stop.phase), Measurement::default())
            }
            Ok((measurement, Some(wrong))) => (capacity::Outcome::Invalid(fit(&wrong)), None, measurement),
            Ok((measurement, None)) => {
                let outcome = match missed(&trial.task, &Figures::of(&measurement)) {
                    None => capacity::Outcome::Held,
                    Some(missed) if missed.measured => capacity::Outcome::Missed(missed.why),
                    Some(missed) if served(&measurement.counts) => {
                        capacity::Outcome::TooFew(format!("there were too few operations: {}", missed.why))
                    }
                    Some(missed) => capacity::Outcome::Missed(missed.why),
                };
                (outcome, None, measurement)
            }
        };
        Ok(Tried { outcome, stopped, measurement, gathered: own })
    }

    /// Takes down what a try showed, and tells the search.
    ///
    /// # Errors
    /// When not even the first load of all could be offered, twice: that is no matter of load.
    fn note(&mut self, next: Try, number: u32, tried: Tried) -> Result<(), Stop> {
        let (held, _) = self.search.bounds();
        let probe = probe(next, &tried, held.is_some());
        self.search.record(tried.outcome.clone());
        self.tell(next, number, Some(in_words(&probe).as_deref()));
        let hopeless = self.probes.len() == 1
            && [self.stopped, tried.stopped].iter().all(|stopped| stopped.is_some_and(|phase| phase < Phase::Drive));
        self.stopped = tried.stopped.or(self.stopped);
        self.probes.push(probe);
        if let (true, Some(phase)) = (hopeless, tried.stopped) {
            let reason = self.probes.last().and_then(|probe| probe.failed.clone()).unwrap_or_default();
            return Err(Stop {
                phase,
                reason: format!("the first load of all could not even be offered, twice: {reason}"),
            });
        }
        let (best, _) = self.search.bounds();
        let probes = &self.probes;
        if tried.outcome == capacity::Outcome::Held {
            self.held.retain(|at, _| probes.get(*at).is_some_and(|own| !same(own.load, next.load)));
            self.held.insert(probes.len() - 1, tried);
        }
        // What was refuted is needed no longer.
        self.held.retain(|at, _| best.zip(probes.get(*at)).is_some_and(|(best, own)| own.load <= best));
        Ok(())
    }

    /// Tells whoever watches the run what is tried, and what came of it.
    fn tell(&self, next: Try, number: u32, outcome: Option<Option<&str>>) {
        let Trial { bench, planned, .. } = *self.trial;
        let (held, missed) = (self.search.floor(), self.search.bounds().1);
        let load = words(self.spec.kind, next.load);
        let in_words = |load| words(self.spec.kind, load);
        let (held, missed) = (held.map(in_words), missed.map(in_words));
        let at_most = self.search.at_most();
        let now = TryNow { number, at_most, load, purpose: next.purpose, held, missed };
        match outcome {
            None => bench.observer.trying(planned, &now),
            Some(failed) => bench.observer.tried(planned, &now, failed),
        }
    }

    /// What became of each try, where there are no figures to hold them.
    fn tell_tries(&self, gathered: &mut Gathered) {
        for (number, probe) in (1..).zip(&self.probes) {
            let became = in_words(probe).map_or_else(|| "held".to_owned(), |why| format!("did not hold: {why}"));
            let row = format!("{} {became}", words(self.spec.kind, probe.load));
            gathered.facts.insert(format!("try {number:03}"), row);
        }
    }

    /// The trial's outcome: the figures of the last iteration at the load that held, with the whole search. Where no load
    /// held there are no figures, for a failure is never a zero; the facts list what was tried.
    fn outcome(mut self, gathered: &mut Gathered) -> Outcome {
        let Found { held, missed, ended, cut_short } = self.search.end();
        gathered.facts.insert("the search ended".to_owned(), ended.clone());
        let best = self.held.keys().copied().rfind(|at| self.probes.get(*at).is_some_and(|own| same(own.load, held)));
        let Some(tried) = best.and_then(|at| self.held.remove(&at)) else {
            self.tell_tries(gathered);
            return self.none(ended);
        };
        let own = tried.gathered;
        gathered.parity = own.parity;
        gathered.cpu = own.cpu;
        gathered.window_ns = own.window_ns;
        gathered.samples = own.samples;
        gathered.flags.extend(own.flags);
        gathered.deviations = own.deviations;
        gathered.facts.extend(own.facts);
        if let Some(why) = cut_short {
            gathered.flag("search-cut-short", why);
        }
        if let Some(why) = missed.and_then(|missed| self.broken(missed)) {
            gathered.flag("bound-by-failure", why);
        }
        let mut measurement = tried.measurement;
        measurement.metrics.insert(metric::CAPACITY.to_owned(), held);
        measurement.search = Some(CapacitySearch { held, missed, probes: self.probes, ended });
        Outcome::Completed(measurement)
    }

    /// What a reader must know of the smallest load that did not hold: whether something else was in the way than an objective.
    fn broken(&self, missed: f64) -> Option<String> {
        let probe = self.probes.iter().rfind(|probe| same(probe.load, missed) && probe.failed.is_some())?;
        let load = words(self.spec.kind, missed);
        let why = probe.failed.as_deref().unwrap_or_default();
        match probe.cause? {
            ProbeCause::Qos | ProbeCause::TooFew => None,
            ProbeCause::Invalid => Some(format!("at {load} no objective was missed, its work was wrong, twice: {why}")),
            ProbeCause::Failed => Some(format!("at {load} no objective was missed, it broke off, twice: {why}")),
        }
    }

    /// The outcome of a search that found nothing.
    fn none(&self, ended: String) -> Outcome {
        let reason = format!("no load met the objectives, in {} tries: {ended}", self.probes.len());
        let lowest = self.probes.iter().min_by(|one, other| one.load.total_cmp(&other.load));
        match (lowest.and_then(|lowest| lowest.cause), self.stopped) {
            (Some(ProbeCause::Failed), Some(phase)) => Outcome::Failed { phase, reason },
            _ => Outcome::Invalid { reason },
        }
    }
}

/// Why a try did not hold, in words that tell what kind of reason it is.
fn in_words(probe: &Probe) -> Option<String> {
    let why = probe.failed.as_ref()?;
    Some(match probe.cause {
        Some(ProbeCause::Invalid) => format!("its work was wrong: {why}"),
        Some(ProbeCause::Failed) => format!("it broke off {why}"),
        Some(ProbeCause::Qos | ProbeCause::TooFew) | None => why.clone(),
    })
}

/// Whether most of what was begun was done: a percentile without a figure then had too few operations, and not a server that
/// was overwhelmed.
fn served(counts: &BTreeMap<String, u64>) -> bool {
    let not_done = |name: &str| count::reason(name).is_some() || count::MISSING.contains(&name);
    let bad = counts.iter().filter(|(name, _)| not_done(name)).map(|(_, count)| *count).fold(0, u64::saturating_add);
    counts.get(count::OPERATIONS).is_some_and(|&done| done > bad)
}

/// Whether two loads of the grid are one.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// What a try showed, as it is recorded. `held`: whether a smaller load has held, which had operations enough.
fn probe(next: Try, tried: &Tried, held: bool) -> Probe {
    let (failed, cause) = match &tried.outcome {
        capacity::Outcome::Held => (None, None),
        capacity::Outcome::TooFew(why) if !held => (Some(why.clone()), Some(ProbeCause::TooFew)),
        capacity::Outcome::Missed(why) | capacity::Outcome::TooFew(why) => (Some(why.clone()), Some(ProbeCause::Qos)),
        capacity::Outcome::Invalid(why) => (Some(why.clone()), Some(ProbeCause::Invalid)),
        capacity::Outcome::Failed(why) => (Some(why.clone()), Some(ProbeCause::Failed)),
    };
    let Tried { measurement, gathered, .. } = tried;
    Probe {
        load: next.load,
        purpose: next.purpose,
        failed,
        cause,
        window_ns: gathered.window_ns.unwrap_or_default(),
        metrics: measurement.metrics.clone(),
        counts: measurement.counts.clone(),
        response: measurement.histograms.get(histogram::RESPONSE).cloned().unwrap_or_default(),
        requests: measurement.requests.clone(),
        cpu: gathered.cpu,
        flags: gathered.flags.clone(),
    }
}
