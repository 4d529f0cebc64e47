//! One trial: one arm, one case, fresh instances, from provisioning to teardown.

mod aggressors;
mod busy;
mod calibrate;
mod capacity;
mod collect;
mod conditions;
mod cpu_target;
mod density;
mod drive;
mod driving;
mod governed;
mod judge;
mod maker;
mod members;
mod provision;
mod recipe;
mod set;
mod starts;
mod target;
mod turns;
mod warm;

use std::collections::BTreeMap;
use std::time::Instant;

use tare_model::deviation::Deviation;
use tare_model::guest::ParityRow;
use tare_model::kvm;
use tare_model::load::{LoadModel, Phases};
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::plan::PlannedTrial;
use tare_model::sample::{CpuAccount, Sample};
use tare_model::study::{Arm, Case, CaseLoad};
use tare_model::trial::{Flag, Measurement, Outcome, Phase, TrialRecord};
use tare_model::turns::TrialTurns;
use tare_model::{count, flag};
use tare_platform::{Comparable, Guest, Platform};
use tare_probe::ProbeData;
use tare_record::JournalEvent;
use tare_workload::{Calibration, Data, Driven, DriverSite, UnitOfWork, WorkSite, Workload};

use crate::bench::Bench;
use crate::cancel::Cancel;
use crate::governors;
use crate::host_counters::Telling;
use crate::neighbours::{self, BusyLoops};
use crate::offered_load::Offered;
use crate::text::{fit, last};
use crate::time_limits::timeout;

use drive::Ready;
use governed::{Governed, Standing};
use target::{Given, Target, end_clients, named, note_hosts};
use turns::OwnTurns;

pub use calibrate::calibrate;
pub use set::run as run_in_turns;

/// What one trial is.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// Which trial of the plan.
    pub planned: &'a PlannedTrial,
    /// Its case.
    pub case: &'a Case,
    /// What provides its guests.
    pub platform: &'a dyn Platform,
    /// What runs in them.
    pub workload: &'a dyn Workload,
    /// Data that the measured guests are given, and what they use.
    pub data: Option<&'a Data>,
    /// The load that was found for each guest before the first trial.
    pub load: Option<&'a Calibration>,
    /// Where its load is a share of a capacity: which.
    pub offered: Option<&'a Offered>,
}

/// Why a trial did not complete: where, and in which words.
pub struct Stop {
    /// The phase.
    pub phase: Phase,
    /// What was tried, why it failed and the remedy.
    pub reason: String,
}

/// What a trial gathers on its way; whatever is there when it stops is recorded.
#[derive(Default)]
struct Gathered {
    /// The measured guests, and after them the others.
    guests: Vec<Box<dyn Guest>>,
    /// How many are measured.
    targets: usize,
    busy: Vec<BusyLoops>,
    parity: Vec<ParityRow>,
    starts: starts::Starts,
    idle_memory_bytes: Option<u64>,
    cpu: Option<CpuAccount>,
    window_ns: Option<(u64, u64)>,
    /// When it is its arm's turn; `None`: all the time.
    own_turns: Option<OwnTurns>,
    turns: Option<TrialTurns>,
    samples: Vec<Sample>,
    flags: Vec<Flag>,
    /// What the workload does otherwise than the published one.
    deviations: Vec<Deviation>,
    facts: BTreeMap<String, String>,
    load_s: f64,
    /// The wish to stop what is being done.
    halt: Cancel,
    /// The guests, for whoever governs the host's memory.
    standing: Standing,
}

impl Gathered {
    fn flag(&mut self, kind: &str, detail: String) {
        self.flags.push(Flag { kind: kind.to_owned(), detail });
    }

    /// The measured guests.
    fn measured(&self) -> &[Box<dyn Guest>] {
        self.guests.get(..self.targets).unwrap_or_default()
    }
}

/// One trial under way, or one try of a search.
#[derive(Clone, Copy)]
struct Trial<'a> {
    bench: &'a Bench<'a>,
    task: Task<'a>,
    planned: &'a PlannedTrial,
    case: &'a Case,
    /// What each driver offers, until a search says what else.
    load: LoadModel,
    /// For how long.
    phases: Phases,
    /// Which try of a search it is, from 1; 0: the trial itself.
    number: u32,
}

/// Runs a trial to its end, whatever happens, and takes away all that it made. A failure is in the
/// record, with the phase and the reason; what a teardown left behind is a flag there.
pub fn run(bench: &Bench<'_>, task: Task<'_>) -> TrialRecord {
    let mut running = Running::new(bench, task, &bench.cancel.clone());
    let Running { trial, gathered, .. } = &mut running;
    let (governed, attempted) = match trial.govern(&gathered.standing) {
        Ok(governed) => {
            let attempted = trial.attempt(&governed, gathered);
            (Some(governed), attempted)
        }
        Err(stop) => (None, Err(stop)),
    };
    let torn_down = trial.tear_down(gathered);
    if let Some(governed) = governed {
        trial.release(governed, gathered);
    }
    running.record(attempted, torn_down)
}

/// A trial from its first act to its record.
struct Running<'a> {
    trial: Trial<'a>,
    gathered: Gathered,
    /// What tells of the host under the guests.
    telling: Telling,
    started_at: String,
    began: Instant,
}

impl<'a> Running<'a> {
    /// A trial that stops when `halt` says so.
    fn new(bench: &'a Bench<'a>, task: Task<'a>, halt: &Cancel) -> Self {
        let mut gathered = Gathered { halt: halt.clone(), ..Gathered::default() };
        if let Comparable::No(reason) = task.platform.comparable() {
            gathered.flags.push(Flag { kind: flag::NOT_COMPARABLE.into(), detail: reason });
        }
        let (started_at, began) = (jiff::Timestamp::now().to_string(), Instant::now());
        let telling = Telling::start(task.platform, bench.run_id);
        Self { trial: Trial::new(bench, task), gathered, telling, started_at, began }
    }

    /// What came of it.
    fn record(self, attempted: Result<Outcome, Stop>, torn_down: Result<(), Stop>) -> TrialRecord {
        let Self { trial, mut gathered, telling, started_at, began } = self;
        gathered.take_in(telling);
        let Trial { task, planned, .. } = trial;
        let outcome = match (attempted, torn_down) {
            (Ok(outcome), Ok(())) => outcome,
            // The figures stand: what failed came after them. The next trial waits for a clean host.
            (Ok(outcome), Err(stop)) => {
                gathered.flags.push(Flag { kind: "teardown".into(), detail: stop.reason });
                outcome
            }
            (Err(stop), _) => Outcome::Failed { phase: stop.phase, reason: stop.reason },
        };
        tracing::debug!(
            trial = planned.index,
            wall_s = began.elapsed().as_secs_f64(),
            load_s = gathered.load_s,
            "ended"
        );
        let mut metrics = metrics(&task);
        if let Outcome::Completed(measurement) = &outcome {
            let per = match task.workload.unit_of_work() {
                UnitOfWork::Operation => "an operation",
                UnitOfWork::Byte => "a MB",
            };
            let condition = task.case.schedule.condition();
            metrics.extend(condition.map(|own| aggressors::specs(own.work)).unwrap_or_default());
            // Only of guests of KVM's.
            metrics.extend(kvm::specs(per).into_iter().filter(|spec| measurement.metrics.contains_key(&spec.id)));
        }
        TrialRecord {
            planned: planned.clone(),
            started_at,
            wall_s: began.elapsed().as_secs_f64(),
            load_s: gathered.load_s,
            outcome,
            metrics,
            parity: gathered.parity,
            cpu: gathered.cpu,
            window_ns: gathered.window_ns,
            turns: gathered.turns,
            samples: gathered.samples,
            flags: gathered.flags,
            deviations: gathered.deviations,
            facts: gathered.facts,
        }
    }
}

/// The record of a trial that could not begin.
pub fn not_begun(task: &Task<'_>, stop: Stop) -> TrialRecord {
    TrialRecord {
        planned: task.planned.clone(),
        started_at: jiff::Timestamp::now().to_string(),
        wall_s: 0.0,
        load_s: 0.0,
        outcome: Outcome::Failed { phase: stop.phase, reason: stop.reason },
        metrics: metrics(task),
        parity: Vec::new(),
        cpu: None,
        window_ns: None,
        turns: None,
        samples: Vec::new(),
        flags: Vec::new(),
        deviations: Vec::new(),
        facts: BTreeMap::new(),
    }
}

/// The metrics of a workload and those that every trial has.
fn metrics(task: &Task<'_>) -> Vec<MetricSpec> {
    let mut metrics = judge::metrics(task);
    let (demand, per) = match task.workload.unit_of_work() {
        UnitOfWork::Operation => (Unit::CpuSecondsPerOperation, "an operation"),
        UnitOfWork::Byte => (Unit::CpuSecondsPerByte, "a byte"),
    };
    let mean = if task.case.load.most_guests() > 1 || task.case.load.is_density() { ", mean of guests" } else { "" };
    let mut add = |id, label: &str, unit| metrics.push(MetricSpec::new(id, label, unit, Better::Lower));
    add(common::SERVICE_DEMAND, &format!("service demand, CPU of the SUT {per}"), demand);
    add(common::START_TIME, &format!("guest start{mean}"), Unit::Seconds);
    for (id, part) in common::START_PARTS.into_iter().zip(["firmware", "kernel", "agent"]) {
        add(id, &format!("guest start, {part}{mean}"), Unit::Seconds);
    }
    add(common::IDLE_MEMORY, &format!("memory, idle{mean}"), Unit::Bytes);
    add(common::GUEST_CPU, "share of the guests' CPUs that were busy", Unit::Share);
    if task.data.is_some_and(Data::to_guests) {
        let disk = |what| format!("disk {what} {per}, whole host");
        add(common::DISK_WRITE, &disk("writes"), Unit::Bytes);
        add(common::DISK_READ, &disk("reads"), Unit::Bytes);
    }
    metrics
}

impl<'a> Trial<'a> {
    /// With the load that was found for it, or the largest that its case may come to.
    fn new(bench: &'a Bench<'a>, task: Task<'a>) -> Self {
        let Task { planned, case, offered, .. } = task;
        let load = offered.map_or_else(|| case.load.largest(), |offered| offered.load);
        Self { bench, task, planned, case, load, phases: case.phases, number: 0 }
    }

    /// Tells everyone that a phase begins; stops the trial if the user wishes to stop.
    fn enter(&self, phase: Phase) -> Result<(), Stop> {
        tracing::debug!(trial = self.planned.index, arm = self.planned.arm, case = self.planned.case, %phase);
        self.bench.observer.phase_entered(self.planned, phase);
        let event = JournalEvent::PhaseEntered { index: self.planned.index, phase };
        self.bench.book.write(&event).map_err(|error| Stop { phase, reason: error.to_string() })?;
        match self.bench.cancel.reason() {
            Some(reason) => Err(Stop { phase, reason: format!("stopped by {reason}") }),
            None => Ok(()),
        }
    }

    /// Whether its guests' memory is merged.
    fn merges(&self) -> bool {
        self.arm().is_some_and(|arm| arm.host_memory.merging.is_some())
    }

    /// Whether its guests' balloons are sized.
    fn balloons(&self) -> bool {
        self.arm().is_some_and(|arm| arm.host_memory.ballooning.is_some())
    }

    /// What the names of its guests have after their first letter: no two of a run are called the same.
    fn stem(&self) -> String {
        match self.number {
            0 => self.planned.index.to_string(),
            number => format!("{}y{number}", self.planned.index),
        }
    }

    fn arm(&self) -> Option<&Arm> {
        self.bench.plan.study.arms.iter().find(|arm| arm.id == self.planned.arm)
    }

    /// Sets the host's memory as the arm asks.
    fn govern(&self, standing: &Standing) -> Result<Governed, Stop> {
        let wanted = self.arm().map(|arm| arm.host_memory).unwrap_or_default();
        let stop_merging = wanted.merging.is_none() && self.bench.plan.study.merges();
        // Who came after this run began was not seen then.
        governors::none_beside_arm(self.bench.run_id, &self.bench.host.kernel(), &wanted, stop_merging)
            .map_err(|error| Stop { phase: Phase::Provision, reason: error.to_string() })?;
        Governed::start(&*self.bench.host, &wanted, stop_merging, standing, self.bench.site.ledger)
            .map_err(|reason| Stop { phase: Phase::Provision, reason })
    }

    /// Puts the host's memory back as it was found. What is not stays on the list of what must be taken away, so that no
    /// further trial is started.
    fn release(&self, governed: Governed, gathered: &mut Gathered) {
        gathered.facts.extend(governed.facts());
        if let Err(reason) = governed.end() {
            gathered.flag("host-memory", reason);
        }
        if self.case.load.is_density()
            && let Err(error) = tare_lab::limit_run(self.bench.run_id, None)
            && tare_lab::Cgroup::unavailable().is_none()
        {
            gathered.flag("teardown", error.to_string());
        }
    }

    /// What all its guests are given alike; `guests` of them stand.
    fn given(&self, guests: usize) -> Given {
        Given {
            load: self.load,
            instances: self.case.instances.max(1),
            rate_per_s: self.task.load.map(|load| load.rate_per_s),
            merge: self.merges(),
            slowed_permille: self.bench.plan.study.slowed_permille(&self.task.planned.arm),
            timeout: timeout(guests),
        }
    }

    /// All phases up to the figures.
    fn attempt(&self, governed: &Governed, gathered: &mut Gathered) -> Result<Outcome, Stop> {
        if let Some(load) = self.task.load {
            gathered.facts.insert("offered rate".to_owned(), format!("{:.1} operations/s a guest", load.rate_per_s));
            let alone = format!("{:.1} % of the guest's CPUs", load.cpu_share * 100.0);
            gathered.facts.insert("CPU of one guest alone".to_owned(), alone);
        }
        match &self.case.load {
            CaseLoad::Density { spec, .. } => self.ascend(spec, governed, gathered),
            CaseLoad::Capacity(spec) => self.search(spec, gathered),
            CaseLoad::CpuTarget { target, .. } => self.meet_cpu_target(target, gathered),
            CaseLoad::Fixed { .. } | CaseLoad::ShareOf { .. } => self.measure(gathered),
        }
    }

    /// One load, in a given number of guests.
    fn measure(&self, gathered: &mut Gathered) -> Result<Outcome, Stop> {
        let figures = self.at_once(gathered)?;
        Ok(self.outcome(figures, gathered))
    }

    /// The outcome of one load, by its figures and why these must not be used, if so.
    fn outcome(&self, (mut measurement, wrong): (Measurement, Option<String>), gathered: &mut Gathered) -> Outcome {
        if let Some(offered) = self.task.offered {
            gathered.facts.insert("load".to_owned(), offered.words.clone());
            let load = offered.load.number() * f64::from(self.case.load.guests().drivers.max(1));
            measurement.counts.insert(count::OFFERED_LOAD_MAX.to_owned(), load.round() as u64);
        }
        match wrong {
            Some(reason) => Outcome::Invalid { reason },
            None => Outcome::Completed(measurement),
        }
    }

    /// A given number of guests, from provisioning to their figures, and why these must not be used, if so.
    fn at_once(&self, gathered: &mut Gathered) -> Result<(Measurement, Option<String>), Stop> {
        let targets = self.set_up(gathered)?;

        self.enter(Phase::Prepare)?;
        let drivers: Vec<Vec<DriverSite<'_>>> = targets.iter().map(Target::drivers).collect();
        let maker = self.maker();
        let sites = self.sites(&targets, &drivers, maker.as_ref());
        let mut prepared = self.prepare(&sites, gathered)?;

        self.enter(Phase::Drive)?;
        let driven = self.drive(&mut prepared, &sites, gathered)?;
        let figures = self.figures(&mut prepared, &sites, driven, gathered)?;
        self.end_drivers(targets, gathered);
        Ok(figures)
    }

    /// What was driven, verified and put together with what was probed; and why it must not be used, if so.
    fn figures(
        &self,
        prepared: &mut [Ready],
        sites: &[WorkSite<'_>],
        (mut driven, probed): (Vec<Driven>, ProbeData),
        gathered: &mut Gathered,
    ) -> Result<(Measurement, Option<String>), Stop> {
        self.enter(Phase::Verify)?;
        let wrong = self.verify(prepared, sites, &mut driven, gathered)?;

        self.enter(Phase::Collect)?;
        let idle = neighbours::still_busy(&gathered.guests, &gathered.busy);
        let (driven, seen) = self.combine(driven)?;
        let measurement = self.collect(driven, probed, gathered);
        Ok((measurement, wrong.or(seen).or(idle)))
    }

    /// The measured guests with their drivers, and what keeps the host busy beside them.
    fn set_up(&self, gathered: &mut Gathered) -> Result<Vec<Target>, Stop> {
        let targets = self.stand_up(gathered)?;
        self.enter(Phase::Neighbours)?;
        self.make_busy(gathered, true).map_err(|reason| Stop { phase: Phase::Neighbours, reason })?;
        Ok(targets)
    }

    /// The measured guests with their drivers.
    fn stand_up(&self, gathered: &mut Gathered) -> Result<Vec<Target>, Stop> {
        self.enter(Phase::Provision)?;
        self.provision(gathered)?;

        self.enter(Phase::Connect)?;
        let targets = self.connect(gathered)?;

        self.enter(Phase::Parity)?;
        self.check_parity(gathered);
        Ok(targets)
    }

    /// Ends the agents of the drivers, and of what the guests use.
    fn end_drivers(&self, targets: Vec<Target>, gathered: &mut Gathered) {
        note_hosts(&targets, gathered);
        end_clients(targets, gathered);
    }

    /// Why something ended in a phase, with all that is known.
    fn stop(&self, phase: Phase, guest: usize, error: &dyn std::fmt::Display, gathered: &Gathered) -> Stop {
        Stop { phase, reason: self.explain(guest, error, gathered) }
    }

    /// An error with all that the guest said about it, and the user's wish to stop in its place if that is
    /// why things ended. Where there are several, the guest is named, and the end of what the others said is quoted.
    fn explain(&self, guest: usize, error: &dyn std::fmt::Display, gathered: &Gathered) -> String {
        if let Some(reason) = self.bench.cancel.reason() {
            return format!("stopped by {reason}");
        }
        let mut text = fit(&error.to_string());
        let Some(own) = gathered.measured().get(guest) else { return text };
        if let Some(how) = own.link().ended() {
            text.push_str(&format!("; the guest's agent: {how}"));
        }
        let said = own.diagnostics();
        if !said.trim().is_empty() {
            text.push_str(&format!("; the guest said: {}", fit(said.trim())));
        }
        for (n, other) in gathered.measured().iter().enumerate().filter(|(n, _)| *n != guest) {
            let (ended, said) = (other.link().ended(), other.diagnostics());
            let how = ended.map(|how| format!("its agent: {how}"));
            let said = Some(said.trim()).filter(|said| !said.is_empty()).map(|said| format!("it said: {}", last(said)));
            let parts: Vec<String> = how.into_iter().chain(said).collect();
            if !parts.is_empty() {
                text.push_str(&format!("; guest {}: {}", n + 1, parts.join(", ")));
            }
        }
        match gathered.targets {
            0 | 1 => text,
            all => format!("{}: {text}", named(guest, all, &own.spec().name)),
        }
    }

    /// Takes all guests away, all at once, and tells of every one that did not go.
    fn tear_down(&self, gathered: &mut Gathered) -> Result<(), Stop> {
        // Also when the journal cannot be written and when the user wishes to stop: hence no `enter`.
        self.bench.observer.phase_entered(self.planned, Phase::Teardown);
        let event = JournalEvent::PhaseEntered { index: self.planned.index, phase: Phase::Teardown };
        let written = self.bench.book.write(&event).map_err(|error| error.to_string());
        let mut failures = neighbours::destroy(&mut gathered.guests);
        failures.extend(written.err());
        if failures.is_empty() { Ok(()) } else { Err(Stop { phase: Phase::Teardown, reason: failures.join("; ") }) }
    }
}
