//! A trial that looks for the load at which the guests' CPUs are busy to a share, and measures there: one provisioning and one set-up of
//! the workload, which is then driven once for each load that is tried and once more for the measurement.

use tare_model::count;
use tare_model::cpu_target::{CpuSearch, CpuSearchStep, CpuTarget};
use tare_model::metric::common;
use tare_model::trial::{Measurement, Outcome, Phase};
use tare_record::JournalEvent;
use tare_workload::{Driven, DriverSite};

use super::busy::{Account, spread};
use super::drive::{Ready, end_work};
use super::target::Target;
use super::{Gathered, Stop, Trial};
use crate::capacity::words;
use crate::cpu_target::{Next, Search, percent};
use crate::neighbours;
use crate::observer::CpuSearchNow;
use crate::remote_guests::OWN_ACCOUNT;

/// A search under way, in guests that stand.
struct TargetTrial<'t> {
    trial: &'t Trial<'t>,
    spec: &'t CpuTarget,
    search: Search,
    targets: &'t [Target],
    drivers: &'t [Vec<DriverSite<'t>>],
    prepared: Vec<Ready>,
    steps: Vec<CpuSearchStep>,
}

/// What a load showed while it was looked for.
struct Stepped {
    step: CpuSearchStep,
    /// Why the work was wrong.
    wrong: Option<String>,
    /// Why its figures must not be used, such as too few operations for a percentile. Of a step only the share is used, so that
    /// this is reported and has no other effect.
    unfit: Option<String>,
}

/// Why nothing was measured, or why that must not be used.
struct NotHeld(String);

/// What a measurement came to.
#[expect(clippy::large_enum_variant, reason = "there are a few of a trial, one at a time")]
enum Measured {
    /// The share was held, or the work was wrong.
    Ended(Result<Measurement, NotHeld>),
    /// The share was further off than it may be: the load, its share, and the reason in words.
    Off(f64, f64, String),
}

impl Trial<'_> {
    /// Looks for the load, and measures at it.
    pub(super) fn meet_cpu_target(&self, spec: &CpuTarget, gathered: &mut Gathered) -> Result<Outcome, Stop> {
        let targets = self.set_up(gathered)?;
        self.enter(Phase::Prepare)?;
        match self.account(gathered) {
            Some(Account::Host) => {}
            Some(Account::Guests(_)) => {
                let (name, whose) = OWN_ACCOUNT;
                gathered.facts.insert(name.to_owned(), whose.to_owned());
            }
            None => {
                let reason = "`cpu-target` asks for a share of the guests' CPUs, and a guest of this arm has no control group of its own in \
                              which the host would count its CPU. Use a platform with one, or offer a fixed `load`";
                return Err(Stop { phase: Phase::Prepare, reason: reason.to_owned() });
            }
        }
        let drivers: Vec<Vec<DriverSite<'_>>> = targets.iter().map(Target::drivers).collect();
        let sites = self.sites(&targets, &drivers, None);
        let mut prepared = self.prepare(&sites, gathered)?;
        prepared.iter_mut().for_each(|ready| ready.stay());
        let search = Search::new(spec, self.case.instances);
        let steps = Vec::new();
        let mut running =
            TargetTrial { trial: self, spec, search, targets: &targets, drivers: &drivers, prepared, steps };
        let ended = running.go(gathered);
        let steps = std::mem::take(&mut running.steps);
        if ended.is_ok() {
            end_work(&mut running.prepared, &sites);
        }
        drop(running);
        let outcome = match ended {
            Ok(Ok(measurement)) => Outcome::Completed(measurement),
            Ok(Err(NotHeld(reason))) => {
                tell_steps(spec, &steps, gathered);
                Outcome::Invalid { reason }
            }
            Err(stop) => {
                tell_steps(spec, &steps, gathered);
                return Err(stop);
            }
        };
        self.end_drivers(targets, gathered);
        Ok(outcome)
    }
}

/// What was tried, where there are no figures to hold it.
fn tell_steps(spec: &CpuTarget, steps: &[CpuSearchStep], gathered: &mut Gathered) {
    for (number, step) in (1..).zip(steps) {
        let (load, took) = (words(spec.kind, step.load), percent(step.share));
        let row = format!("{load} took {took} of the guests' CPUs at {:.2} operations/s", step.operations_per_s);
        gathered.facts.insert(format!("step {number:02}"), row);
    }
}

impl TargetTrial<'_> {
    /// Tries one load after the other, and measures at the one that is found.
    fn go(&mut self, gathered: &mut Gathered) -> Result<Result<Measurement, NotHeld>, Stop> {
        loop {
            match self.search.next() {
                Next::Try(load) => {
                    if let Err(wrong) = self.step(load, gathered)? {
                        return Ok(Err(wrong));
                    }
                }
                Next::Measure(load) => match self.measured(load, gathered)? {
                    Measured::Ended(ended) => return Ok(ended),
                    // One more reading of what that load takes, and a long one. Which load is measured at is decided by the CPU alone, never by
                    // what is compared, so that to go on favours nobody.
                    Measured::Off(load, share, reason) => {
                        self.search.record(load, share);
                        if self.search.tries() >= self.spec.steps {
                            return Ok(Err(NotHeld(reason)));
                        }
                    }
                },
                Next::GiveUp(why) => return Ok(Err(NotHeld(why))),
            }
        }
    }

    /// Offers a load for a step, and notes what it took.
    fn step(&mut self, load: f64, gathered: &mut Gathered) -> Result<Result<(), NotHeld>, Stop> {
        let number = self.search.tries() + 1;
        let phases = self.spec.phases(&self.trial.phases, number);
        let trial = Trial { load: self.spec.kind.at(load), phases, number, ..*self.trial };
        self.begin(number, load)?;
        self.tell(number, load, false, None);
        // What a step shows is in its figures; all else is that of the measurement.
        let (samples, flags, load_s) = (gathered.samples.len(), gathered.flags.len(), gathered.load_s);
        let facts = gathered.facts.clone();
        let stepped = self.offer(&trial, load, gathered);
        gathered.samples.truncate(samples);
        gathered.flags.truncate(flags);
        gathered.facts = facts;
        gathered.load_s += load_s;
        let Stepped { step, wrong, unfit } = stepped?;
        let fact = unfit.map(|why| (format!("step {number:02}, its own figures"), why));
        gathered.facts.extend(fact);
        self.search.record(load, step.share);
        self.tell(number, load, false, Some(step.share));
        self.steps.push(step);
        let load = words(self.spec.kind, load);
        Ok(wrong.map_or(Ok(()), |why| Err(NotHeld(format!("the work of step {number}, at {load}, was wrong: {why}")))))
    }

    /// Drives the guests once, with the load and the phases of this trial.
    fn offer(&mut self, trial: &Trial<'_>, load: f64, gathered: &mut Gathered) -> Result<Stepped, Stop> {
        let sites = trial.sites(self.targets, self.drivers, None);
        trial.enter(Phase::Drive)?;
        let (mut driven, probed) = trial.drive(&mut self.prepared, &sites, gathered)?;
        trial.enter(Phase::Verify)?;
        let mut unfit: Vec<String> = driven.iter_mut().filter_map(|one| one.invalid.take()).collect();
        let wrong = trial.verify(&mut self.prepared, &sites, &mut driven, gathered)?;
        let (driven, seen) = trial.combine(driven)?;
        unfit.extend(seen);
        let unfit = (!unfit.is_empty()).then(|| unfit.join("; "));
        let share = trial.busy(&probed.samples, gathered).share(driven.window_ns);
        let step = step_of(load, share.ok_or_else(not_counted)?, &driven);
        // Nothing at all is wrong however little is asked.
        let wrong = wrong.or_else(|| unfit.clone().filter(|_| driven.work <= 0.0));
        Ok(Stepped { step, wrong, unfit })
    }

    /// Measures at a load; what was gathered of a measurement whose share was off is left out.
    fn measured(&mut self, load: f64, gathered: &mut Gathered) -> Result<Measured, Stop> {
        let (samples, flags) = (gathered.samples.len(), gathered.flags.len());
        let (facts, cpu, window_ns) = (gathered.facts.clone(), gathered.cpu, gathered.window_ns);
        let measured = self.measure(load, gathered)?;
        if matches!(measured, Measured::Off(..)) && self.search.tries() + 1 < self.spec.steps {
            gathered.samples.truncate(samples);
            gathered.flags.truncate(flags);
            (gathered.facts, gathered.cpu, gathered.window_ns) = (facts, cpu, window_ns);
        }
        Ok(measured)
    }

    /// Measures at a load for as long as the case asks.
    fn measure(&mut self, load: f64, gathered: &mut Gathered) -> Result<Measured, Stop> {
        let number = self.search.tries() + 1;
        self.begin(number, load)?;
        self.tell(number, load, true, None);
        let trial = Trial { load: self.spec.kind.at(load), ..*self.trial };
        let sites = trial.sites(self.targets, self.drivers, None);
        trial.enter(Phase::Drive)?;
        let before_s = gathered.load_s;
        let driven = trial.drive(&mut self.prepared, &sites, gathered);
        gathered.load_s += before_s;
        let (mut driven, probed) = driven?;
        trial.enter(Phase::Verify)?;
        let wrong = trial.verify(&mut self.prepared, &sites, &mut driven, gathered)?;
        trial.enter(Phase::Collect)?;
        let idle = neighbours::still_busy(&gathered.guests, &gathered.busy);
        let (driven, seen) = trial.combine(driven)?;
        let window_ns = driven.window_ns;
        let mut step = step_of(load, 0.0, &driven);
        let mut measurement = trial.collect(driven, probed, gathered);
        step.share = measurement.metrics.get(common::GUEST_CPU).copied().ok_or_else(not_counted)?;
        self.tell(number, load, true, Some(step.share));
        self.steps.push(step);
        let course = trial.busy(&gathered.samples, gathered).course(window_ns);
        let (words, took) = (words(self.spec.kind, load), percent(step.share));
        gathered
            .facts
            .insert("load".to_owned(), format!("{words}, found for {} of the guests' CPUs", percent(self.spec.share)));
        if let Some(wrong) = wrong.or(seen).or(idle) {
            return Ok(Measured::Ended(Err(NotHeld(wrong))));
        }
        let held = CpuSearch {
            target: self.spec.share,
            tolerance: self.spec.tolerance,
            steps: self.steps.clone(),
            load,
            share: step.share,
            spread: spread(&course),
            course,
        };
        if (held.share - held.target).abs() > held.tolerance {
            return Ok(Measured::Off(load, held.share, off(&held, &words, &took)));
        }
        let of_all = load * f64::from(self.trial.case.load.guests().drivers.max(1));
        measurement.counts.insert(count::OFFERED_LOAD_MAX.to_owned(), of_all.round() as u64);
        measurement.cpu_search = Some(held);
        Ok(Measured::Ended(Ok(measurement)))
    }

    /// Writes to the journal that a load is offered next.
    fn begin(&self, number: u32, load: f64) -> Result<(), Stop> {
        let event = JournalEvent::TryStarted { index: self.trial.planned.index, number, load };
        self.trial.bench.book.write(&event).map_err(|error| Stop { phase: Phase::Drive, reason: error.to_string() })
    }

    /// Tells whoever watches the run what is tried, or what it took.
    fn tell(&self, number: u32, load: f64, measured: bool, took: Option<f64>) {
        let load = words(self.spec.kind, load);
        let now = CpuSearchNow { number, at_most: self.spec.steps, load, target: self.spec.share, measured, took };
        self.trial.bench.observer.cpu_search(self.trial.planned, &now);
    }
}

/// Why a measurement must not be used whose share is too far off.
fn off(held: &CpuSearch, load: &str, took: &str) -> String {
    let (asked, points) = (percent(held.target), held.tolerance * 100.0);
    let spread = held.spread.map_or_else(String::new, |spread| format!(", with a spread of {}", percent(spread)));
    let before = held.steps.iter().rev().nth(1).map_or_else(String::new, |last| {
        format!("; the last of {} steps before it took {}", held.steps.len() - 1, percent(last.share))
    });
    format!(
        "{took} of the guests' CPUs were busy in the measured window, at {load}{spread}, and {asked} are asked, within {points} points{before}. \
         A longer `step` sees more, a longer `warm-up` comes to rest, and a wider `tolerance` allows more"
    )
}

/// A load that was offered, with what came of it.
fn step_of(load: f64, share: f64, driven: &Driven) -> CpuSearchStep {
    let window_s = driven.window_ns.1.saturating_sub(driven.window_ns.0) as f64 / 1e9;
    let operations = driven.measurement.counts.get(count::OPERATIONS).map_or(driven.work, |count| *count as f64);
    CpuSearchStep { load, share, operations_per_s: if window_s > 0.0 { operations / window_s } else { 0.0 }, window_s }
}

fn not_counted() -> Stop {
    let reason = "the CPU of the guests was not sampled over the whole window, so that nothing can be said of their share. \
                  See whether the host was overloaded, or ask for a longer `step` and `steady-state`";
    Stop { phase: Phase::Collect, reason: reason.to_owned() }
}
