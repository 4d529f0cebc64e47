//! One trial: one arm, one case, one fresh instance, from provisioning to teardown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tare_model::guest::{GuestSize, GuestSpec, ParityRow};
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::sample::{CpuAccount, Sample, Source};
use tare_model::study::Case;
use tare_model::trial::{Flag, Measurement, Outcome, Phase, TrialRecord};
use tare_platform::{Comparable, Guest, Platform, Reach, Site};
use tare_probe::{HostProbe, ProbeData, ProbeError};
use tare_record::JournalEvent;
use tare_wire::Request;
use tare_workload::{Driven, DriverSite, Schedule, UnitOfWork, WorkSite, Workload};

use crate::cancel::Cancel;
use crate::client::Client;
use crate::inside::Inside;
use crate::ledger::Book;
use crate::neighbours::{self, BusyLoops};
use crate::observer::Observer;
use crate::told::fit;
use crate::{outside, sampling};

/// How long an agent may take for anything that is not load. A guest on a saturated host answers late.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// From the moment when everything is connected to the start of load: enough for the probes to be told the
/// measured window and for the driver to start its threads.
const LEAD: Duration = Duration::from_millis(5);
/// The same where no warm-up precedes the measured window, of which a late start would cost a part.
const LEAD_WITHOUT_WARM_UP: Duration = Duration::from_millis(50);
/// How long an agent may take to say that it was told to stop.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// Everything that a trial needs and that outlives it.
pub struct Bench<'a> {
    /// Run id.
    pub run_id: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// The run folder.
    pub book: &'a Book,
    /// Where guests keep what must not outlive them.
    pub site: Site<'a>,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// The wish to stop.
    pub cancel: &'a Cancel,
    /// Whether what names the host is left out of the facts.
    pub redact: bool,
    /// The machine that offers load, where that is not this host.
    pub client: Option<&'a dyn Platform>,
    /// Whether some arms are on the lab's network and others are not.
    pub mixed: bool,
}

/// Facts of a guest that may name the host that carries it.
const NAMES_THE_HOST: [&str; 2] = ["host name", "control groups"];

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
    guests: Vec<Box<dyn Guest>>,
    busy: Vec<BusyLoops>,
    parity: Vec<ParityRow>,
    start_time_s: Option<f64>,
    idle_memory_bytes: Option<u64>,
    cpu: Option<CpuAccount>,
    window_ns: Option<(u64, u64)>,
    samples: Vec<Sample>,
    flags: Vec<Flag>,
    facts: BTreeMap<String, String>,
    load_s: f64,
}

impl Gathered {
    fn flag(&mut self, kind: &str, detail: String) {
        self.flags.push(Flag { kind: kind.to_owned(), detail });
    }
}

/// One trial under way.
struct Trial<'a> {
    bench: &'a Bench<'a>,
    planned: &'a PlannedTrial,
    case: &'a Case,
    platform: &'a dyn Platform,
    workload: &'a dyn Workload,
}

/// Runs a trial to its end, whatever happens, and takes away all that it made. A failure is in the
/// record, with the phase and the reason; what a teardown left behind is a flag there.
pub fn run(
    bench: &Bench<'_>,
    planned: &PlannedTrial,
    case: &Case,
    platform: &dyn Platform,
    workload: &dyn Workload,
) -> TrialRecord {
    let trial = Trial { bench, planned, case, platform, workload };
    let started_at = jiff::Timestamp::now().to_string();
    let began = Instant::now();
    let mut gathered = Gathered::default();
    if let Comparable::No(reason) = platform.comparable() {
        gathered.flags.push(Flag { kind: "not-comparable".into(), detail: reason });
    }
    let attempted = trial.attempt(&mut gathered);
    let torn_down = trial.tear_down(&mut gathered);
    let outcome = match (attempted, torn_down) {
        (Ok(outcome), Ok(())) => outcome,
        // The figures stand: what failed came after them. The next trial waits for a clean host.
        (Ok(outcome), Err(stop)) => {
            gathered.flags.push(Flag { kind: "teardown".into(), detail: stop.reason });
            outcome
        }
        (Err(stop), _) => Outcome::Failed { phase: stop.phase, reason: stop.reason },
    };
    tracing::debug!(trial = planned.index, wall_s = began.elapsed().as_secs_f64(), load_s = gathered.load_s, "ended");
    TrialRecord {
        planned: planned.clone(),
        started_at,
        wall_s: began.elapsed().as_secs_f64(),
        load_s: gathered.load_s,
        outcome,
        metrics: metrics(workload),
        parity: gathered.parity,
        cpu: gathered.cpu,
        window_ns: gathered.window_ns,
        samples: gathered.samples,
        flags: gathered.flags,
        facts: gathered.facts,
    }
}

/// The metrics of a workload and those that every trial has.
fn metrics(workload: &dyn Workload) -> Vec<MetricSpec> {
    let mut metrics = workload.metrics();
    let demand = match workload.unit_of_work() {
        UnitOfWork::Operation => Unit::CpuSecondsPerOperation,
        UnitOfWork::Byte => Unit::CpuSecondsPerByte,
    };
    metrics.push(MetricSpec::new(
        common::SERVICE_DEMAND,
        "service demand on the host, kernel threads included",
        demand,
        Better::Lower,
    ));
    metrics.push(MetricSpec::new(
        common::START_TIME,
        "guest start, create to agent ready",
        Unit::Seconds,
        Better::Lower,
    ));
    metrics.push(MetricSpec::new(common::IDLE_MEMORY, "memory of the idle guest", Unit::Bytes, Better::Lower));
    metrics
}

impl Trial<'_> {
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

    fn guest_spec(&self, name: String, size: GuestSize) -> GuestSpec {
        GuestSpec { name, size, cpu_set: self.bench.plan.cpus.guests.clone(), data: None }
    }

    /// All phases up to the figures.
    fn attempt(&self, gathered: &mut Gathered) -> Result<Outcome, Stop> {
        self.enter(Phase::Provision)?;
        let target_spec = self.guest_spec(format!("t{}", self.planned.index), self.case.guest);
        let target = start(self.platform, &self.bench.site, &target_spec)
            .map_err(|reason| Stop { phase: Phase::Provision, reason })?;
        gathered.start_time_s = Some(target.start_time_s());
        let told =
            target.facts().facts.iter().filter(|(name, _)| !self.bench.redact || !NAMES_THE_HOST.contains(&&**name));
        gathered.facts.extend(told.map(|(name, value)| (format!("guest {name}"), value.clone())));
        let link = Arc::clone(target.link());
        let (address, listen) = (target.address(), target.listen());
        gathered.guests.push(target);

        self.enter(Phase::Connect)?;
        link.call(Request::Clock, PATIENCE)
            .map_err(|error| Stop { phase: Phase::Connect, reason: self.explain(&error, gathered) })?;
        self.weigh_idle(gathered);
        let client = self.start_client()?;

        self.enter(Phase::Parity)?;
        self.check_parity(gathered);

        self.enter(Phase::Neighbours)?;
        self.make_busy(gathered).map_err(|reason| Stop { phase: Phase::Neighbours, reason })?;

        self.enter(Phase::Prepare)?;
        let site = WorkSite {
            guest: &link,
            guest_address: address,
            guest_listen: listen,
            client: client.link(),
            client_clock: client.clock(),
            drivers: &[DriverSite { client: client.link(), clock: client.clock() }],
            index: 0,
            size: self.case.guest,
            data: None,
            load: self.case.load,
            patience: PATIENCE,
        };
        let stop = |phase, error: &dyn std::fmt::Display| Stop { phase, reason: self.explain(error, gathered) };
        let mut prepared = self.workload.prepare(&site).map_err(|error| stop(Phase::Prepare, &error))?;

        self.enter(Phase::Drive)?;
        let (mut driven, probed) = self.drive(&mut *prepared, &site, gathered)?;

        self.enter(Phase::Verify)?;
        let wrong = prepared
            .verify(&site, &mut driven)
            .map_err(|error| Stop { phase: Phase::Verify, reason: self.explain(&error, gathered) })?;

        self.enter(Phase::Collect)?;
        let idle = neighbours::still_busy(&gathered.guests, &gathered.busy);
        let invalid = driven.invalid.clone().or(wrong).or(idle);
        let measurement = self.collect(driven, probed, gathered);
        gathered.facts.extend(client.clock_fact().map(|fact| ("driver clock".to_owned(), fact)));
        if let Err(reason) = client.end() {
            gathered.flags.push(Flag { kind: "teardown".into(), detail: reason });
        }
        Ok(match invalid {
            Some(reason) => Outcome::Invalid { reason },
            None => Outcome::Completed(measurement),
        })
    }

    fn start_client(&self) -> Result<Client, Stop> {
        Client::start(self.bench, self.planned.index, self.platform.reach()).map_err(|reason| {
            let reason = format!("the driver's agent: {}", fit(&reason));
            Stop { phase: Phase::Connect, reason }
        })
    }

    /// Notes what the guest takes of the host's memory, before anything was asked of it but whether it is there.
    fn weigh_idle(&self, gathered: &mut Gathered) {
        let groups = gathered.guests.first().map(|target| target.groups()).unwrap_or_default();
        let Some(idle) = crate::idle::read(&groups) else { return };
        gathered.idle_memory_bytes = Some(idle.bytes());
        gathered.facts.extend(idle.facts());
    }

    /// Reads back what was granted; what is not what was asked becomes a flag, never an assumption.
    fn check_parity(&self, gathered: &mut Gathered) {
        let Some(target) = gathered.guests.first() else { return };
        gathered.parity = target.parity();
        let unequal: Vec<String> = gathered
            .parity
            .iter()
            .filter(|row| !row.equal)
            .map(|row| {
                let granted = row.granted.as_deref().unwrap_or("nothing");
                format!("{}: asked {}, granted {granted} ({})", row.resource, row.asked, row.note)
            })
            .collect();
        if !unequal.is_empty() {
            gathered.flags.push(Flag { kind: "parity".into(), detail: unequal.join("; ") });
        }
    }

    /// Starts the neighbours, and busy loops in them and, if the case says so, in the target.
    fn make_busy(&self, gathered: &mut Gathered) -> Result<(), String> {
        if let Some(wanted) = self.case.neighbours {
            let specs: Vec<GuestSpec> = (0..wanted.count)
                .map(|n| self.guest_spec(format!("n{}x{n}", self.planned.index), wanted.guest))
                .collect();
            neighbours::start(self.platform, &self.bench.site, &specs, &mut gathered.guests)?;
        }
        gathered.busy = neighbours::keep_busy(&gathered.guests, usize::from(!self.case.busy_target))?;
        Ok(())
    }

    /// Offers load while the probes sample.
    fn drive(
        &self,
        prepared: &mut dyn tare_workload::Prepared,
        site: &WorkSite<'_>,
        gathered: &mut Gathered,
    ) -> Result<(Driven, ProbeData), Stop> {
        let failed = |reason: String| Stop { phase: Phase::Drive, reason };
        let cancel = || {
            // Both then end their work by themselves and early; that it is cancelled is said by the next phase.
            for agent in [site.client, site.guest] {
                let _ = agent.call(Request::Cancel, CANCEL_PATIENCE);
            }
        };
        let interval_ns = self.bench.plan.study.lab.sample_interval.ns;
        let mut schedule = Schedule { phases: self.case.phases, start_at_ns: 0, seed: self.seed(), interval_ns };
        crate::cancel::guarded(self.bench.cancel, || prepared.connect(site, &schedule), cancel)
            .map_err(|error| failed(self.explain(&error, gathered)))?;
        let inside = Inside::start(site.guest, TARGET, interval_ns);
        let probe = self.start_probe(&gathered.guests).map_err(|error| failed(error.to_string()))?;
        let lead = if self.case.phases.steady_offset_ns() == 0 { LEAD_WITHOUT_WARM_UP } else { LEAD };
        let lead = lead + crate::client::further_lead(self.bench);
        let start_at_ns = tare_probe::now_ns() + lead.as_nanos() as u64;
        schedule.start_at_ns = start_at_ns;
        let steady_ns = start_at_ns + self.case.phases.steady_offset_ns();
        let window = (steady_ns, steady_ns + self.case.phases.steady_state.ns);
        probe.add_instants(&[window.0, window.1]);
        let charged = crate::charges::read(&gathered.guests);
        let began = Instant::now();
        let driven = crate::cancel::guarded(self.bench.cancel, || prepared.drive(site, &schedule), cancel);
        gathered.load_s = began.elapsed().as_secs_f64();
        let charged = crate::charges::between(&charged, &crate::charges::read(&gathered.guests), gathered.load_s);
        gathered.facts.extend(charged);
        let probed = probe.stop().map_err(|error| failed(error.to_string()));
        let seen = inside.stop(gathered.load_s);
        gathered.samples.extend(seen.samples);
        gathered.facts.extend(seen.facts);
        gathered.flags.extend(seen.flag);
        let driven = driven.map_err(|error| failed(self.explain(&error, gathered)))?;
        Ok((driven, probed?))
    }

    fn start_probe(&self, guests: &[Box<dyn Guest>]) -> Result<HostProbe, ProbeError> {
        let guests: Vec<(Source, &dyn Guest)> = guests.iter().enumerate().map(|(n, g)| (source(n), &**g)).collect();
        let in_lab = self.platform.reach() == Reach::Lab;
        sampling::start(self.bench.plan, &self.bench.site, &self.bench.book.dir(), &guests, in_lab)
    }

    /// The same load for every arm of a block, another in every block.
    fn seed(&self) -> u64 {
        self.bench.plan.study.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(u64::from(self.planned.block))
    }

    /// Puts what was driven and what was probed together.
    fn collect(&self, driven: Driven, probed: ProbeData, gathered: &mut Gathered) -> Measurement {
        let window = driven.window_ns;
        let neighbours: Vec<Source> = (1..gathered.guests.len()).map(source).collect();
        let flags = tare_probe::flags(&probed, window);
        if self.platform.reach() == Reach::Outside {
            // What this host's CPUs did is not what the guest cost.
            gathered.flags.extend(outside::flags(flags, self.bench.mixed));
            gathered.facts.extend(outside::facts(&gathered.samples, TARGET, window));
        } else {
            gathered.flags.extend(flags);
            gathered.cpu =
                tare_probe::cpu_account(&probed.samples, window, &self.bench.plan.cpus.guests, &source(0), &neighbours);
            gathered.flags.extend(tare_probe::guest_flags(&probed, window, &source(0), gathered.cpu.as_ref()));
        }
        gathered.samples.extend(probed.samples);
        gathered.samples.extend(driven.samples);
        gathered.window_ns = Some(window);
        gathered.facts.extend(driven.facts);
        gathered.flags.extend(driven.flags);
        self.count_drops(gathered);
        let mut measurement = driven.measurement;
        if let Some(demand) = self.service_demand(gathered.cpu.as_ref(), driven.work) {
            measurement.metrics.insert(common::SERVICE_DEMAND.into(), demand);
        }
        if let Some(start) = gathered.start_time_s {
            measurement.metrics.insert(common::START_TIME.into(), start);
        }
        if let Some(bytes) = gathered.idle_memory_bytes {
            measurement.metrics.insert(common::IDLE_MEMORY.into(), bytes as f64);
        }
        measurement
    }

    fn count_drops(&self, gathered: &mut Gathered) {
        let dropped = gathered.guests.first().and_then(|target| target.drops()).unwrap_or(0);
        if dropped > 0 {
            gathered.flag("drops", format!("{dropped} packets were dropped on the guest's link in the whole trial"));
        }
    }

    /// CPU seconds of the SUT a unit of work. Not told where it cannot be told apart from something else:
    /// from busy loops in the target itself, or from a driver on the same CPUs.
    fn service_demand(&self, account: Option<&CpuAccount>, work: f64) -> Option<f64> {
        let account = account?;
        let cpus = &self.bench.plan.cpus;
        let shared = cpus.guests.is_empty() || cpus.client.iter().any(|cpu| cpus.guests.contains(cpu));
        (!self.case.busy_target && !shared && work > 0.0).then(|| (account.total_s - account.neighbours_s) / work)
    }

    /// An error with all that the guest said about it, and the user's wish to stop in its place if that is
    /// why things ended.
    fn explain(&self, error: &dyn std::fmt::Display, gathered: &Gathered) -> String {
        if let Some(reason) = self.bench.cancel.reason() {
            return format!("stopped by {reason}");
        }
        let mut text = fit(&error.to_string());
        if let Some(target) = gathered.guests.first() {
            if let Some(how) = target.link().ended() {
                text.push_str(&format!("; the guest's agent: {how}"));
            }
            let said = target.diagnostics();
            if !said.trim().is_empty() {
                text.push_str(&format!("; the guest said: {}", fit(said.trim())));
            }
        }
        text
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

/// The measured guest's name in the samples: the same in every trial, so that trials can be laid over one another.
const TARGET: &str = "target";

/// Where the samples of a trial's n-th guest come from; the first is the measured one.
fn source(n: usize) -> Source {
    Source::Guest(if n == 0 { TARGET.to_owned() } else { format!("neighbour-{n}") })
}

/// Starts one guest; an error in words.
fn start(platform: &dyn Platform, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>, String> {
    platform.start(site, spec).map_err(|error| fit(&error.to_string()))
}
