//! What all threads counted, put together.

use crate::web::spec::{WebDone, WebDrive};
use tare_model::drive::DriveResult;

use super::engine::{Common, Counts};
use super::site::Tally as Types;
use crate::supervise::Watched;
use crate::tally::Total;
use crate::{DriverError, outcome};

/// The result of a run that used so much more memory than before, bytes.
pub(super) fn result(
    common: &Common<'_>,
    counts: Vec<Counts>,
    watched: Watched,
    memory: u64,
    granted: Vec<(String, String)>,
) -> Result<DriveResult, DriverError> {
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
    let timeline = &common.timeline;
    let backlog_max = common.arrivals.map_or(0, |s| s.backlog.most(timeline.steady_start, timeline.load_end));
    let measured = outcome::result(timeline, total, watched, threads, granted);
    let measured = DriveResult { backlog_max, verified: true, ..measured };
    Ok(measured.with_outcome::<WebDrive>(&done)?)
}
