//! What all threads counted, put together.

use tare_model::Histogram;
use tare_model::drive::DriveResult;
use tare_model::social::SocialDone;
use tare_model::trial::Step;

use super::engine::{Common, Counts, PARTS};
use super::user::Tally as Operations;
use crate::supervise::Watched;
use crate::tally::Total;
use crate::usage::run_delay_ns;

/// The result of a run that used so much more memory than before, bytes.
pub(super) fn result(
    common: &Common<'_>,
    counts: Vec<Counts>,
    watched: Watched,
    memory: u64,
    granted: Vec<(String, String)>,
) -> DriveResult {
    let threads = counts.len() as u32;
    let (mut total, mut operations) = (Total::default(), Vec::with_capacity(counts.len()));
    let mut parts: [Histogram; PARTS.len()] = Default::default();
    let mut done = SocialDone::default();
    for counted in counts {
        done.connections += counted.connections;
        for (sum, part) in parts.iter_mut().zip(counted.parts) {
            sum.merge(&part.into_histogram());
        }
        total.add(counted.tally);
        operations.push(counted.operations);
    }
    (done.instances, done.faults) = Operations::merge(common.world, operations);
    done.memory_per_user_bytes = memory / u64::from(common.spec.load.connections()).max(1);
    let mut used = total.cpu;
    used.add(watched.cpu);
    let timeline = &common.timeline;
    let step = |(name, times): (&str, Histogram)| Step { name: name.to_owned(), within: true, times };
    DriveResult {
        steady_start_ns: timeline.steady_start,
        steady_end_ns: timeline.steady_end,
        operations: total.operations,
        answered_total: total.answered,
        bytes_to_guest: total.to_guest,
        bytes_from_guest: total.from_guest,
        bytes_to_guest_total: total.to_guest_total,
        bytes_from_guest_total: total.from_guest_total,
        errors: total.errors.into_iter().collect(),
        lost: 0,
        unfinished: total.unfinished,
        response: total.response,
        service: total.service,
        lateness: total.lateness,
        backlog_max: 0,
        intervals: watched.intervals,
        cpu_user_ns: used.cpu.user_ns,
        cpu_system_ns: used.cpu.system_ns,
        run_delay_ns: run_delay_ns().map(|_| used.run_delay_ns),
        threads: threads + 1,
        granted,
        verified: true,
        steps: PARTS.into_iter().zip(parts).map(step).collect(),
        store: None,
        java: None,
        web: None,
        social: Some(done),
    }
}
