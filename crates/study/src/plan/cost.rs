//! What a run will take: time, memory, disk.

use tare_model::plan::Cost;
use tare_model::study::{Case, CaseLoad, Study};
use tare_model::units::{ByteSize, Span};

use super::human::asked;
use super::{PlanRefusal, capacity, cpu_target, density};
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
const LAYER_BYTES: u64 = 16 << 20;
/// Bytes of what a guest contributed at one number of guests.
const PART_BYTES: u64 = 512;
/// Bytes of the host's memory at one moment of a scale-up; there is one a second.
const COURSE_BYTES: u64 = 96;

/// Bytes of the record of one load that a search tries, without samples: its figures, its response times, and those of some
/// fifteen request types, each a few hundred bins of 20 bytes.
const TRY_BYTES: u64 = 192 << 10;

/// What a study takes, as far as it is known before it runs: with guests that are added, if each scale-up goes to its end; with
/// searches, the time that they likely take, and the disk of the longest.
pub(super) fn cost(study: &Study, catalog: &dyn Catalog) -> Cost {
    let (mut measuring, mut around, mut samples, mut others) = (0_u64, 0_u64, 0_u64, 0_u64);
    for case in &study.cases {
        let guests = guests(case);
        let (likely, most) = capacity::tries(case);
        // All guests of a trial are set up at one time.
        let set_up = catalog.traits(&case.into()).set_up;
        for arm in &study.arms {
            let load = case.phases.total().ns.saturating_mul(density::levels(case));
            let load = load.saturating_add(cpu_target::searching(case).ns);
            let starts = catalog.start_estimate(&arm.platform).ns.saturating_mul(guests);
            let waits = starts.saturating_add(density::waits(case, arm).ns);
            measuring = measuring.saturating_add(load.saturating_mul(likely));
            around = around.saturating_add(AROUND_TRIAL.ns.saturating_add(waits).saturating_mul(likely));
            around = around.saturating_add(set_up.ns.saturating_mul(likely));
            let taken = 1 + case.phases.total().ns / study.lab.sample_interval.ns.max(1);
            // Measured guests are sampled twice: from the host and from inside.
            let sources = guests + u64::from(case.load.most_guests()) + OTHER_SOURCES;
            // Of a search those of one try are kept.
            samples = samples.saturating_add(taken.saturating_mul(sources));
            others = others.saturating_add(scale_up(case, load.saturating_add(waits)));
            others = others.saturating_add(if case.load.is_capacity() { most * TRY_BYTES } else { 0 });
        }
    }
    let blocks = u64::from(study.blocks);
    let trials = blocks * study.cases.len() as u64 * study.arms.len() as u64;
    let record = (trials * RECORD_BYTES)
        .saturating_add(samples.saturating_mul(blocks).saturating_mul(SAMPLE_BYTES))
        .saturating_add(others.saturating_mul(blocks));
    let most_guests = study.cases.iter().map(guests).max();
    // A guest's layer goes with its trial, so only one trial's are there at a time.
    let files = whole_mebibytes(record.saturating_add(most_guests.unwrap_or(0) * LAYER_BYTES));
    let data = super::disk::data(study, catalog);
    let data = data.kept().saturating_add(data.restored());
    Cost {
        measuring: Span { ns: measuring.saturating_mul(blocks) },
        around: Span { ns: around.saturating_mul(blocks) },
        memory: ByteSize(study.cases.iter().map(promised).max().unwrap_or(0)),
        disk: ByteSize(files.saturating_add(data)),
    }
}

/// Bytes of the record of a scale-up of so many nanoseconds.
fn scale_up(case: &Case, ns: u64) -> u64 {
    if !case.load.is_density() {
        return 0;
    }
    let levels = density::levels(case).saturating_mul(RECORD_BYTES + u64::from(case.load.most_guests()) * PART_BYTES);
    levels.saturating_add(ns / Span::from_secs(1).ns * COURSE_BYTES)
}

/// Guests of a trial, measured and others.
fn guests(case: &Case) -> u64 {
    u64::from(case.load.most_guests()) + case.neighbours.map_or(0, |neighbours| u64::from(neighbours.count))
}

/// Rounded up: an estimate to the byte would be a lie.
pub(super) const fn whole_mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20).saturating_mul(1 << 20)
}

/// Bytes promised to the guests of a case at one time.
fn promised(case: &Case) -> u64 {
    let neighbours = case.neighbours.map_or(0, |n| n.guest.memory.0.saturating_mul(u64::from(n.count)));
    let measured = match &case.load {
        CaseLoad::Density { spec, .. } => spec.promised(case.guest.memory).0,
        load => case.guest.memory.0.saturating_mul(load.guests().count.into()),
    };
    measured.saturating_add(neighbours)
}

/// The case that promises most, if it promises more than the host has. A case that adds guests may: it ends before the
/// host's memory does.
pub(super) fn memory_refusal(study: &Study, host: &HostFacts) -> Option<PlanRefusal> {
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
    Some(PlanRefusal::Memory { case: case.id.clone(), need, parts, available: host.memory_available })
}
