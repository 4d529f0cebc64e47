//! What all threads counted, put together.

use std::collections::BTreeMap;

use tare_model::drive::DriveResult;
use tare_model::web::WebDone;

use super::engine::{Common, Counts};
use super::site::Tally as Types;
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
    let (mut total, mut types) = (Total::default(), Vec::with_capacity(counts.len()));
    let mut done = WebDone { sessions_most: common.crowd.most(), ..WebDone::default() };
    for counted in counts {
        done.sessions_began += counted.began;
        done.exchanges += counted.exchanges;
        done.not_modified += counted.not_modified;
        done.connections += counted.connections;
        done.reconnected += counted.reconnected;
        done.handshakes_full += counted.full;
        done.handshakes_resumed += counted.resumed;
        done.overruns += counted.overruns;
        total.add(counted.tally);
        types.push(counted.types);
    }
    (done.types, done.faults) = Types::merge(common.site, types);
    done.memory_per_session_bytes = memory / done.sessions_most.max(1);
    let mut used = total.cpu;
    used.add(watched.cpu);
    let timeline = &common.timeline;
    let backlog_max = common.arrivals.map_or(0, |s| s.backlog.most(timeline.steady_start, timeline.load_end));
    let errors: BTreeMap<String, u64> = total.errors;
    DriveResult {
        steady_start_ns: timeline.steady_start,
        steady_end_ns: timeline.steady_end,
        operations: total.operations,
        answered_total: total.answered,
        bytes_to_guest: total.to_guest,
        bytes_from_guest: total.from_guest,
        bytes_to_guest_total: total.to_guest_total,
        bytes_from_guest_total: total.from_guest_total,
        errors: errors.into_iter().collect(),
        lost: 0,
        unfinished: total.unfinished,
        response: total.response,
        service: total.service,
        lateness: total.lateness,
        backlog_max,
        intervals: watched.intervals,
        cpu_user_ns: used.cpu.user_ns,
        cpu_system_ns: used.cpu.system_ns,
        run_delay_ns: run_delay_ns().map(|_| used.run_delay_ns),
        threads: threads + 1,
        granted,
        verified: true,
        steps: Vec::new(),
        store: None,
        java: None,
        web: Some(done),
        social: None,
    }
}
