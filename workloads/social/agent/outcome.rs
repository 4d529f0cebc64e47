//! What all threads counted, put together.

use crate::social::spec::{SocialDone, SocialDrive};
use tare_model::Histogram;
use tare_model::drive::DriveResult;
use tare_model::trial::Step;

use super::engine::{Common, Counts, PARTS};
use super::user::Tally as Operations;
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
    let step = |(name, times): (&str, Histogram)| Step { name: name.to_owned(), within: true, times };
    let steps = PARTS.into_iter().zip(parts).map(step).collect();
    let measured = outcome::result(&common.timeline, total, watched, threads, granted);
    let measured = DriveResult { verified: true, steps, ..measured };
    Ok(measured.with_outcome::<SocialDrive>(&done)?)
}
