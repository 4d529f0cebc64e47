//! What every drive tells, from what its threads counted.

use std::collections::BTreeMap;

use tare_model::drive::DriveResult;
use tare_model::turns::TurnsDone;

use crate::supervise::Watched;
use crate::tally::Tally;
use crate::timeline::Timeline;
use crate::usage::run_delay_ns;

/// The result of some threads and the one that watched them. What only some kinds of drive tell is left empty.
pub(crate) fn result(
    timeline: &Timeline,
    tallies: impl ExactSizeIterator<Item = Tally>,
    watched: Watched,
    granted: Vec<(String, String)>,
) -> DriveResult {
    let mut used = watched.cpu;
    let mut turns: Vec<TurnsDone> = Vec::new();
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    let mut result = DriveResult {
        steady_start_ns: timeline.steady_start,
        steady_end_ns: timeline.steady_end,
        intervals: watched.intervals,
        began_ns: (watched.began_ns, watched.began_ns),
        threads: tallies.len() as u32 + 1,
        granted,
        verified: true,
        ..DriveResult::default()
    };
    for tally in tallies {
        result.response.merge(&tally.response.into_histogram());
        result.service.merge(&tally.service.into_histogram());
        result.lateness.merge(&tally.lateness.into_histogram());
        result.operations += tally.operations;
        result.answered_total += tally.answered;
        result.lost += tally.lost;
        result.unfinished += tally.unfinished;
        result.bytes_to_guest += tally.to_guest;
        result.bytes_from_guest += tally.from_guest;
        result.bytes_to_guest_total += tally.to_guest_total;
        result.bytes_from_guest_total += tally.from_guest_total;
        result.verified &= tally.verified;
        for (reason, count) in tally.errors {
            *errors.entry(reason).or_insert(0) += count;
        }
        used.add(tally.cpu);
        turns.extend(tally.turns);
    }
    let whole = || TurnsDone { measured_ns: timeline.measured_ns(), ..TurnsDone::default() };
    result.turns = TurnsDone::together(&turns).or_else(|| timeline.takes_turns().then(whole));
    result.errors = errors.into_iter().collect();
    (result.cpu_user_ns, result.cpu_system_ns) = (used.cpu.user_ns, used.cpu.system_ns);
    result.run_delay_ns = run_delay_ns().map(|_| used.run_delay_ns);
    result
}
