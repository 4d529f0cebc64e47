//! What every drive tells, from what its threads counted.

use tare_model::drive::DriveResult;

use crate::supervise::Watched;
use crate::tally::Total;
use crate::timeline::Timeline;
use crate::usage::run_delay_ns;

/// The result of so many threads and the one that watched them. What only some kinds of drive tell is left empty.
pub(crate) fn result(
    timeline: &Timeline,
    total: Total,
    watched: Watched,
    threads: u32,
    granted: Vec<(String, String)>,
) -> DriveResult {
    let mut used = total.cpu;
    used.add(watched.cpu);
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
        lost: total.lost,
        unfinished: total.unfinished,
        response: total.response,
        service: total.service,
        lateness: total.lateness,
        intervals: watched.intervals,
        cpu_user_ns: used.cpu.user_ns,
        cpu_system_ns: used.cpu.system_ns,
        run_delay_ns: run_delay_ns().map(|_| used.run_delay_ns),
        threads: threads + 1,
        granted,
        verified: total.unverified == 0,
        ..DriveResult::default()
    }
}
