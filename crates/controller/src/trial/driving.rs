//! Load offered to all arms of a set, or to one trial, while one probe samples the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tare_model::fact;
use tare_model::sample::Source;
use tare_model::trial::Phase;
use tare_model::turns::{TurnSpec, TurnsDone, Waiting};
use tare_platform::Reach;
use tare_probe::{HostProbe, ProbeData, ProbeError};
use tare_workload::{Baton, Driven, Schedule, WorkSite, WorkloadError};

use super::aggressors::{Aggressors, Window};
use super::drive::{Ready, cancel, lost_hosts};
use super::target::{source, target_name};
use super::turns::{Freezer, OwnTurns, table};
use super::{Gathered, Stop, Trial, members};
use crate::guest_probe::GuestProbe;
use crate::{parallel, sampling, thread_cpu};

/// From the moment when everything is connected to the start of load: enough for the probes to receive the
/// measured window and for a driver to start its threads.
const LEAD: Duration = Duration::from_millis(5);
/// The least time from that moment to the measured window. A driver that is asked too late fails the trial. On a host whose CPUs
/// others want too, 60 ms were seen to pass before the driver was asked.
const LEAD_TO_WINDOW: Duration = Duration::from_millis(200);
/// Added for each driver beyond the first: their threads are started on the same CPUs.
const LEAD_EACH_FURTHER: Duration = Duration::from_millis(2);

/// How soon it is seen that a guest is not served any more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One trial that is driven.
pub(super) struct Driving<'a, 'd> {
    pub(super) trial: Trial<'a>,
    pub(super) sites: &'d [WorkSite<'d>],
    pub(super) prepared: &'d mut [Ready],
    pub(super) gathered: &'d mut Gathered,
}

/// What a trial's guests came to, and what the probe saw of it.
type Seen = (Vec<Driven>, ProbeData);

/// Offers load to all of them at one time, or to one after another in turns, while the probes sample. For each what its guests came to,
/// and what the probe saw of it.
///
/// With `beside` they are conditions of one guest, which is the first one's, as are its neighbours.
///
/// # Errors
/// The first failure, with whose it was. The others are ended early then.
pub(super) fn together(
    all: &mut [Driving<'_, '_>],
    turns: Option<TurnSpec>,
    beside: Option<&Aggressors>,
) -> Result<Vec<Seen>, (usize, Stop)> {
    // Whose guests are distinguished in the samples.
    let arms = if beside.is_some() { 1 } else { all.len() };
    let mut schedules = schedules(all, turns);
    for (arm, (driving, schedule)) in all.iter_mut().zip(&schedules).enumerate() {
        let connect = |site: &WorkSite<'_>, ready: &mut Ready| ready.connect(site, schedule);
        let Driving { trial, sites, prepared, gathered } = driving;
        let connected = trial.in_each(Phase::Drive, sites, prepared.iter_mut(), gathered, connect);
        connected.map_err(|stop| (arm, stop))?;
    }
    let inside: Vec<Vec<GuestProbe<'_>>> = all.iter().take(arms).map(|driving| probes_inside(driving)).collect();
    let inside = inside.into_iter().chain(std::iter::repeat_with(Vec::new));
    let failed = |error: ProbeError| (0, Stop { phase: Phase::Drive, reason: error.to_string() });
    let probe = start_probe(all, arms).map_err(failed)?;
    let charged: Vec<_> = all.iter().map(|driving| thread_cpu::read(driving.gathered.measured())).collect();
    let began = Instant::now();
    let start_ns = tare_probe::now_ns() + lead(all).as_nanos() as u64;
    let commands = turns.filter(|spec| spec.commands.is_some());
    let baton = commands.map(|spec| Arc::new(Baton::new(start_ns, spec.gap, probe.edge_adder())));
    for (driving, schedule) in all.iter_mut().zip(&mut schedules) {
        schedule.start_at_ns = start_ns;
        schedule.baton.clone_from(&baton);
        let planned = schedule.turns.as_ref().filter(|_| baton.is_none());
        driving.gathered.own_turns = planned.map(|turns| OwnTurns::planned(turns, start_ns));
    }
    if baton.is_none() {
        watch(&probe, all, start_ns);
    }
    let driven = in_turns(all, &schedules, turns, beside);
    let load_s = began.elapsed().as_secs_f64();
    let probed = probe.stop().map_err(failed);
    for ((driving, inside), charged) in all.iter_mut().zip(inside).zip(charged) {
        note(driving, inside, &charged, load_s);
    }
    let (driven, probed) = (driven?, probed?);
    if baton.is_some() {
        note_commands(all, &schedules, &driven);
    }
    let mut driven = driven.into_iter();
    let of = |(arm, driving): (usize, &Driving<'_, '_>)| {
        let own = driven.by_ref().take(driving.sites.len()).collect();
        (own, members::of(&probed, arm % arms, arms))
    };
    Ok(all.iter().enumerate().map(of).collect())
}

/// Notes when each arm ran its commands, which is known only now. Such arms have one guest each.
fn note_commands(all: &mut [Driving<'_, '_>], schedules: &[Schedule], driven: &[Driven]) {
    let windows = driven.iter().map(|own| own.turns.as_ref().map(TurnsDone::commands).unwrap_or_default());
    let windows: Vec<Vec<(u64, u64)>> = windows.collect();
    let every = || windows.iter().flatten();
    let whole =
        (every().map(|own| own.0).min().unwrap_or_default(), every().map(|own| own.1).max().unwrap_or_default());
    for ((driving, schedule), own) in all.iter_mut().zip(schedules).zip(&windows) {
        let turns = schedule.turns.clone();
        driving.gathered.own_turns = turns.map(|turns| OwnTurns::taken(turns, own.clone(), whole));
    }
}

/// When each is driven. All have the same seed, as they have the same load.
fn schedules(all: &[Driving<'_, '_>], turns: Option<TurnSpec>) -> Vec<Schedule> {
    let tables = match (turns, all.first()) {
        (Some(spec), Some(Driving { trial, .. })) => table(spec, all.len(), &trial.phases, trial.seed()),
        _ => Vec::new(),
    };
    let mut tables = tables.into_iter();
    let of = |driving: &Driving<'_, '_>| {
        let (trial, turns) = (driving.trial, tables.next());
        let interval_ns = trial.bench.plan.study.lab.sample_interval.ns;
        Schedule { phases: trial.phases, start_at_ns: 0, seed: trial.seed(), interval_ns, turns, baton: None }
    };
    all.iter().map(of).collect()
}

fn probes_inside<'d>(driving: &Driving<'_, 'd>) -> Vec<GuestProbe<'d>> {
    let interval_ns = driving.trial.bench.plan.study.lab.sample_interval.ns;
    let sites = driving.sites.iter().enumerate();
    sites.map(|(n, site)| GuestProbe::start(site.guest, &target_name(n), interval_ns)).collect()
}

/// How long before its start load is announced.
fn lead(all: &[Driving<'_, '_>]) -> Duration {
    let Some(Driving { trial, .. }) = all.first() else { return LEAD };
    let warm_up = Duration::from_nanos(trial.phases.steady_offset_ns());
    let lead = LEAD.max(LEAD_TO_WINDOW.saturating_sub(warm_up));
    let guests = all.iter().map(|driving| driving.sites.len()).sum::<usize>();
    let drivers = u32::try_from(guests).unwrap_or(u32::MAX).saturating_mul(trial.case.load.guests().drivers);
    lead + LEAD_EACH_FURTHER * drivers.saturating_sub(1) + crate::client::further_lead(trial.bench)
}

/// Has the host's CPU time read at the ends of the measured window and, in turns, wherever the turn changes.
fn watch(probe: &HostProbe, all: &[Driving<'_, '_>], start_ns: u64) {
    let mut edges = Vec::new();
    for Driving { trial, gathered, .. } in all {
        match &gathered.own_turns {
            Some(own) => {
                let ends = own.slots().into_iter().chain(own.measured(&trial.phases));
                edges.extend(ends.flat_map(|(from, to)| [from, to]));
            }
            None => {
                let steady_ns = start_ns + trial.phases.steady_offset_ns();
                probe.add_instants(&[steady_ns, steady_ns + trial.phases.steady_state.ns]);
            }
        }
    }
    probe.add_edges(&edges);
}

/// Drives all guests of all trials, each by its schedule; what each guest came to, trial by trial.
fn in_turns(
    all: &mut [Driving<'_, '_>],
    schedules: &[Schedule],
    turns: Option<TurnSpec>,
    beside: Option<&Aggressors>,
) -> Result<Vec<Driven>, (usize, Stop)> {
    let windows = windows(all);
    let freezer = match turns {
        Some(TurnSpec { waiting: Waiting::Frozen, .. }) => Some(freezer(all)?),
        _ => None,
    };
    let first = all.first().map(|driving| (driving.gathered.halt.clone(), &driving.trial.bench.hopeless));
    let Some((halt, hopeless)) = first else { return Ok(Vec::new()) };
    let done = AtomicBool::new(false);
    let (mut work, mut whose) = (Vec::new(), Vec::new());
    for (arm, Driving { sites, prepared, .. }) in all.iter_mut().enumerate() {
        for (n, (site, ready)) in sites.iter().zip(prepared.iter_mut()).enumerate() {
            work.push(ready);
            whose.push((arm, n, site));
        }
    }
    let drive = |at: usize, ready: &mut Ready| {
        let (arm, _, site) = whose[at];
        let driven = ready.drive(site, &schedules[arm]).map_err(|error| {
            if let WorkloadError::NotStarted(why) = &error {
                let _ = hopeless.set(why.clone());
            }
            error.to_string()
        });
        match site.backend_lost() {
            Some(how) => Err(format!("what serves the guest on the driver's side is gone: {how}")),
            None => driven,
        }
    };
    let driven = std::thread::scope(|scope| {
        if let Some(freezer) = &freezer {
            scope.spawn(|| freezer.run(&done));
        }
        if whose.iter().any(|(.., site)| site.has_backend_apart()) {
            scope.spawn(|| end_unserved(whose.iter().map(|(.., site)| *site).collect(), &done));
        }
        if let Some((aggressors, spec)) = beside.zip(turns) {
            aggressors.spawn(scope, (&windows, spec), &done);
        }
        let driven = parallel::each(&halt, work.into_iter(), drive, |at| {
            // A guest that is stopped cannot hear that it shall end, nor can a thread that waits for its turn.
            done.store(true, Ordering::Relaxed);
            schedules.iter().filter_map(|own| own.baton.as_ref()).for_each(|baton| baton.stop());
            cancel(whose[at].2);
        });
        done.store(true, Ordering::Relaxed);
        driven
    });
    let whose: Vec<(usize, usize)> = whose.into_iter().map(|(arm, n, _)| (arm, n)).collect();
    driven.map_err(|(at, error)| {
        let (arm, n) = whose[at];
        let error = format!("{error}{}", lost_hosts(&all[arm].sites[n]));
        (arm, all[arm].trial.stop(Phase::Drive, n, &error, all[arm].gathered))
    })
}

/// Ends the load of guests that are not served any more: nothing that they are asked for can be right. Returns when all is `done`.
fn end_unserved(mut sites: Vec<&WorkSite<'_>>, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        sites.retain(|site| {
            let lost = site.backend_lost().is_some();
            if lost {
                cancel(site);
            }
            !lost
        });
        std::thread::sleep(LOOK_EVERY);
    }
}

/// When whose turn is, in order of time.
fn windows(all: &[Driving<'_, '_>]) -> Vec<Window> {
    let of = |(at, driving): (usize, &Driving<'_, '_>)| {
        let own = driving.gathered.own_turns.as_ref().map_or(&[][..], OwnTurns::windows);
        own.iter().map(|&(from, to)| (from, to, at)).collect::<Vec<_>>()
    };
    let mut windows: Vec<Window> = all.iter().enumerate().flat_map(of).collect();
    windows.sort_unstable();
    windows
}

fn freezer(all: &[Driving<'_, '_>]) -> Result<Freezer, (usize, Stop)> {
    let arms =
        all.iter().filter_map(|driving| Some((driving.gathered.own_turns.as_ref()?, driving.gathered.measured())));
    Freezer::new(arms).map_err(|(arm, reason)| (arm, Stop { phase: Phase::Drive, reason }))
}

/// Notes what was seen of a trial's guests from inside, and which of their threads took CPU time.
fn note(driving: &mut Driving<'_, '_>, inside: Vec<GuestProbe<'_>>, charged: &[tare_platform::Charge], load_s: f64) {
    let Driving { sites, gathered, .. } = driving;
    gathered.load_s = load_s;
    let now = thread_cpu::read(gathered.measured());
    gathered.facts.extend(thread_cpu::between(charged, &now, load_s));
    for (n, inside) in inside.into_iter().enumerate() {
        let seen = inside.stop(load_s);
        gathered.samples.extend(seen.samples);
        let facts = seen.facts.into_iter().map(|(name, fact)| (fact::of_guest(n as u32 + 1, &name), fact));
        gathered.facts.extend(facts);
        gathered.flags.extend(seen.flag.map(|mut flag| {
            flag.detail = if sites.len() > 1 { format!("guest {}: {}", n + 1, flag.detail) } else { flag.detail };
            flag
        }));
    }
}

/// One probe for all: it reads the CPU time of all guests at one moment.
fn start_probe(all: &[Driving<'_, '_>], arms: usize) -> Result<HostProbe, ProbeError> {
    let mut watched: Vec<sampling::WatchedGuest<'_>> = Vec::new();
    for (arm, driving) in all.iter().enumerate() {
        let (prefix, targets) = (members::prefix(arm, arms), driving.gathered.targets);
        for (n, guest) in driving.gathered.guests.iter().enumerate() {
            let source = match source(n, targets) {
                Source::Guest(name) => Source::Guest(format!("{prefix}{name}")),
                other => other,
            };
            watched.push(sampling::WatchedGuest { source, guest: &**guest, measured: n < targets });
        }
    }
    let is_in_lab = |driving: &&Driving<'_, '_>| driving.trial.task.platform.reach() == Reach::Lab;
    // The disks of machines elsewhere are not this host's.
    let first = all.iter().find(is_in_lab);
    let in_lab = first.is_some();
    let Some(Driving { trial, gathered, .. }) = first.or(all.first()) else {
        return Err(ProbeError::Died);
    };
    let (run_folder, data_disks) = (&trial.bench.book.dir(), trial.data_disks(gathered));
    let watched = sampling::Watched { guests: &watched, in_lab, run_folder, data_disks };
    sampling::start(trial.bench.plan, &trial.bench.site, &watched)
}
