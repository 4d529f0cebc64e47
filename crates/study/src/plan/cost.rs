//! What a run will take: time, memory, disk.

use tare_model::plan::Cost;
use tare_model::start::made_together;
use tare_model::study::{Arm, Case, CaseLoad, Condition, Study};
use tare_model::units::{ByteSize, Span};

use super::human::asked;
use super::{PlanRefusal, capacity, cpu_target, density, sets};
use crate::catalog::Catalog;
use crate::host::HostFacts;

/// Around each trial besides starting guests: the check of parity and of the neighbours, fetching the samples,
/// tearing down, writing the record.
const AROUND_TRIAL: Span = Span::from_millis(100);
/// Bytes of a trial's record without samples: outcome, metrics, parity, and three histograms of a few thousand cells.
const RECORD_BYTES: u64 = 64 << 10;
/// Bytes of one sample of one source: some 30 series of about 64 bytes in the store.
const SAMPLE_BYTES: u64 = 30 * 64;
/// Sources sampled beside the guests: the host and the client.
const OTHER_SOURCES: u64 = 2;
/// Bytes that a guest writes to its own layer: the agent, its log, what a run leaves in /tmp.
pub(super) const LAYER_BYTES: u64 = 16 << 20;
/// Bytes of what a guest contributed at one number of guests.
const PART_BYTES: u64 = 512;
/// Bytes of the host's memory at one moment of a scale-up; there is one a second.
const COURSE_BYTES: u64 = 96;

/// Bytes of the record of one load that a search tries, without samples: its figures, its response times, and those of some
/// fifteen request types, each a few hundred bins of 20 bytes.
const TRY_BYTES: u64 = 192 << 10;

/// What the trials of one case in one block take.
#[derive(Default)]
struct Taken {
    measuring: u64,
    around: u64,
    /// Samples of one source at one moment.
    samples: u64,
    /// Bytes of the record beside samples and what every trial has.
    others: u64,
}

impl Taken {
    fn plus(self, other: Self) -> Self {
        Self {
            measuring: self.measuring.saturating_add(other.measuring),
            around: self.around.saturating_add(other.around),
            samples: self.samples.saturating_add(other.samples),
            others: self.others.saturating_add(other.others),
        }
    }

    fn times(self, times: u64) -> Self {
        Self {
            measuring: self.measuring.saturating_mul(times),
            around: self.around.saturating_mul(times),
            samples: self.samples.saturating_mul(times),
            others: self.others.saturating_mul(times),
        }
    }
}

/// What a study takes, as far as it is known before it runs: with guests that are added, if each scale-up goes to its end; with
/// searches, the time that they likely take, and the disk of the longest.
pub(super) fn cost(study: &Study, host: &HostFacts, catalog: &dyn Catalog) -> Cost {
    let each = |case: &Case| {
        let sets = sets::together(study, case, host);
        let alone = study.arms.iter().filter(|arm| sets.iter().flatten().all(|member| member.id != arm.id));
        let trials = alone.map(|arm| trial(study, case, arm, catalog));
        trials.chain(sets.iter().map(|members| set(study, case, members, catalog))).fold(Taken::default(), Taken::plus)
    };
    let blocks = u64::from(study.most_blocks());
    let Taken { measuring, around, samples, others } =
        study.cases.iter().map(each).fold(Taken::default(), Taken::plus).times(blocks);
    let of_case = |case: &Case| study.arms.len() as u64 + u64::from(case.schedule.pairs()) - 1;
    let trials = blocks * study.cases.iter().map(of_case).sum::<u64>();
    let record = (trials * RECORD_BYTES).saturating_add(samples.saturating_mul(SAMPLE_BYTES)).saturating_add(others);
    let at_once = |case: &Case| sets::at_once(study, case, host, catalog);
    let most_guests = study.cases.iter().map(|case| guests(case, at_once(case))).max();
    // A guest's layer goes with its trial or its set, so only those of one are there at a time.
    let files = whole_mebibytes(record.saturating_add(most_guests.unwrap_or(0) * LAYER_BYTES));
    let data = super::disk::data(study, host, catalog);
    let data = data.kept().saturating_add(data.restored());
    Cost {
        measuring: Span { ns: measuring },
        around: Span { ns: around },
        memory: ByteSize(
            study.cases.iter().map(|case| promised(case, at_once(case), made(study, case, host))).max().unwrap_or(0),
        ),
        disk: ByteSize(files.saturating_add(data)),
    }
}

/// What a trial takes that is one of the conditions of a guest, of which the first is charged with making that.
fn of_condition(study: &Study, case: &Case, condition: &Condition, arm: &Arm, catalog: &dyn Catalog) -> Taken {
    let total = condition.turns.total(&case.phases, 1);
    let conditions = study.cases.iter().filter(|other| other.family() == case.family()).count() as u64;
    let first = if condition.work.is_none() { guests(case, 1) } else { 0 };
    let starts = catalog.start_estimate(&arm.platform).ns.saturating_mul(first);
    Taken {
        measuring: total.ns,
        around: AROUND_TRIAL.ns.saturating_add(starts).saturating_add(catalog.traits(&case.into()).set_up.ns),
        // Each keeps what was sampled in the turns of all.
        samples: samples(study, case, total).saturating_mul(conditions),
        others: 0,
    }
}

/// What a trial that runs by itself takes.
fn trial(study: &Study, case: &Case, arm: &Arm, catalog: &dyn Catalog) -> Taken {
    if let Some(condition) = case.schedule.condition() {
        return of_condition(study, case, condition, arm, catalog);
    }
    let (likely, most) = capacity::tries(case);
    let load = case.phases.total().ns.saturating_mul(density::levels(case));
    let load = load.saturating_add(cpu_target::searching(case).ns);
    let starts = catalog.start_estimate(&arm.platform).ns.saturating_mul(guests(case, 1));
    let waits = starts.saturating_add(density::waits(case, arm).ns);
    // All guests of a trial are set up at one time.
    let set_up = catalog.traits(&case.into()).set_up.ns;
    let around = AROUND_TRIAL.ns.saturating_add(waits).saturating_add(set_up);
    let tries = if case.load.is_capacity() { most * TRY_BYTES } else { 0 };
    Taken {
        measuring: load.saturating_mul(likely),
        around: around.saturating_mul(likely),
        // Of a search those of one try are kept.
        samples: samples(study, case, case.phases.total()),
        others: scale_up(case, load.saturating_add(waits)).saturating_add(tries),
    }
}

/// What the trials take that run together, in turns: each has its starts and its set-up, and one set of neighbours serves all.
fn set(study: &Study, case: &Case, members: &[&Arm], catalog: &dyn Catalog) -> Taken {
    let Some(turns) = case.schedule.turns().filter(|_| !members.is_empty()) else { return Taken::default() };
    let arms = members.len() as u64;
    let start = |arm: &Arm| catalog.start_estimate(&arm.platform).ns;
    let starts = members.iter().map(|arm| start(arm).saturating_mul(u64::from(case.load.most_guests()))).sum::<u64>();
    let first = members.iter().find(|arm| arm.id == study.baseline).map_or(0, |arm| start(arm));
    // What is taken from a pool is made again in its turn, which is reckoned as long as a start from nothing.
    let pools =
        members.iter().map(|arm| start(arm).saturating_mul(if case.made > 0 { arm.start.pool().into() } else { 0 }));
    let starts = starts.saturating_add(pools.sum::<u64>()).saturating_add(first.saturating_mul(neighbours(case)));
    let each = AROUND_TRIAL.ns.saturating_add(catalog.traits(&case.into()).set_up.ns);
    let total = turns.total(&case.phases, u32::try_from(arms).unwrap_or(u32::MAX));
    Taken {
        measuring: total.ns,
        around: starts.saturating_add(each.saturating_mul(arms)),
        samples: samples(study, case, total).saturating_mul(arms),
        others: 0,
    }
}

/// Samples that a trial keeps of a load of this length. Measured guests are sampled twice: from the host and from inside.
fn samples(study: &Study, case: &Case, load: Span) -> u64 {
    let taken = 1 + load.ns / study.lab.sample_interval.ns.max(1);
    taken.saturating_mul(guests(case, 1) + u64::from(case.load.most_guests()) + OTHER_SOURCES)
}

/// Bytes of the record of a scale-up of so many nanoseconds.
fn scale_up(case: &Case, ns: u64) -> u64 {
    if !case.load.is_density() {
        return 0;
    }
    let levels = density::levels(case).saturating_mul(RECORD_BYTES + u64::from(case.load.most_guests()) * PART_BYTES);
    levels.saturating_add(ns / Span::from_secs(1).ns * COURSE_BYTES)
}

/// Guests at one time, measured on so many arms, and others.
pub(super) fn guests(case: &Case, arms: u64) -> u64 {
    u64::from(case.load.most_guests()).saturating_mul(arms).saturating_add(neighbours(case))
}

/// Guests beside the measured ones.
fn neighbours(case: &Case) -> u64 {
    case.neighbours.map_or(0, |neighbours| u64::from(neighbours.count))
}

/// Rounded up: an estimate to the byte would be a lie.
pub(super) const fn whole_mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20).saturating_mul(1 << 20)
}

/// Guests that a case's workload makes, at most so many at one time where its arms are alive as they are on this host.
pub(super) fn made(study: &Study, case: &Case, host: &HostFacts) -> u64 {
    let sets = sets::together(study, case, host);
    let of = |set: &Vec<&Arm>| made_together(case.made, set.iter().map(|arm| arm.start));
    sets.iter().map(of).max().unwrap_or(0).max(made_alone(study, case))
}

/// The same of the arm that has most, alone.
fn made_alone(study: &Study, case: &Case) -> u64 {
    study.arms.iter().map(|arm| made_together(case.made, std::iter::once(arm.start))).max().unwrap_or(0)
}

/// Bytes promised to the guests of a case at one time, measured on so many arms, with so many that its workload makes.
pub(super) fn promised(case: &Case, arms: u64, made: u64) -> u64 {
    let neighbours = case.neighbours.map_or(0, |n| n.guest.memory.0.saturating_mul(u64::from(n.count)));
    let measured = match &case.load {
        CaseLoad::Density { spec, .. } => spec.promised(case.guest.memory).0,
        load => case.guest.memory.0.saturating_mul(load.guests().count.into()),
    };
    let made = case.guest.memory.0.saturating_mul(made);
    measured.saturating_mul(arms).saturating_add(neighbours).saturating_add(made)
}

/// The case that promises most, if it promises more than the host has. A case that adds guests may: it ends before the
/// host's memory does.
pub(super) fn memory_refusal(study: &Study, host: &HostFacts) -> Option<PlanRefusal> {
    // Arms take turns only where all that are alive at one time fit.
    let promised = |case: &Case| promised(case, 1, made_alone(study, case));
    let case = study.cases.iter().filter(|case| !case.load.is_density()).max_by_key(|case| promised(case))?;
    let need = ByteSize(promised(case));
    if need <= host.memory_available {
        return None;
    }
    let target = match case.load.guests().count {
        1 => format!("{} for the measured guest", asked(case.guest.memory)),
        several => format!("{} for each of {several} measured guests", asked(case.guest.memory)),
    };
    let parts = case.neighbours.map_or_else(
        || target.clone(),
        |n| format!("{target} and {} for each of {} neighbours", asked(n.guest.memory), n.count),
    );
    let parts = match case.made {
        0 => parts,
        made => {
            let pool = study.arms.iter().max_by_key(|arm| arm.start.pool()).filter(|arm| arm.start.pool() > made);
            let whose = pool.map_or_else(
                || format!("{made} that the workload makes"),
                |arm| format!("{} in the pool of `{}`", arm.start.pool(), arm.id),
            );
            format!("{parts}, and {} for each of {whose}", asked(case.guest.memory))
        }
    };
    Some(PlanRefusal::Memory { case: case.id.clone(), need, parts, available: host.memory_available })
}
