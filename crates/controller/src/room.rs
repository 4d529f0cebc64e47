//! What is found out about the host's memory before a run: whether it can be merged, and whether a guest fits.

use std::time::Duration;

use tare_model::density::{DensitySpec, GuestSeries};
use tare_model::study::{Arm, Case, Study};
use tare_platform::{Platform, Reach};
use tare_workload::Workload;

use crate::error::ControllerError;
use crate::host::HostAccess;
use crate::trial::{patience, reserve};

/// Why an arm cannot be run as the study asks for memory, and what would help; `None`: it can.
pub fn lack(arm: &Arm, platform: &dyn Platform, study: &Study, host: &dyn HostAccess) -> Option<(String, String)> {
    if let Some(case) = study.cases.iter().find(|case| case.density.is_some())
        && platform.reach() == Reach::Outside
    {
        let reason = format!("case `{}` fills the memory of this host, and this arm's guests are elsewhere", case.id);
        return Some((reason, "use a platform whose guests are on this host".to_owned()));
    }
    arm.host_memory.merging.and_then(|_| platform.merging_lack().or_else(|| host.kernel().lack()))
}

/// Sees that at least one guest of a case fits above the reserve, where the case adds guests.
///
/// # Errors
/// When none does, with the figures, or the host's memory cannot be told.
pub fn one_fits(case: &Case, workload: &dyn Workload, host: &dyn HostAccess) -> Result<(), ControllerError> {
    let Some(spec) = &case.density else { return Ok(()) };
    let now = host.now().map_err(|reason| ControllerError::Host { reason })?;
    let (needed, reserve) = (workload.touches(&case.guest).0, reserve(spec, now.total_bytes));
    if now.fits(needed, reserve) {
        return Ok(());
    }
    Err(ControllerError::NoRoom { case: case.id.clone(), needed, available: now.available_bytes, reserve })
}

/// The longest that the ascent of a case may take, if everything takes as long as it may; zero for a case without one.
pub fn longest(case: &Case) -> Duration {
    let Some(spec) = &case.density else { return Duration::ZERO };
    let guests = spec.guests.most();
    let patience = patience(guests as usize);
    let settle = spec.settle.duration();
    // Each guest is waited for and asked a few times; so is each level.
    let level = settle + spec.rest.duration() + case.phases.total().duration() + patience * 4;
    (settle + patience * 4) * added(spec) + level * levels(spec)
}

/// Numbers of guests that are measured at most, the one at which memory ran out included.
fn levels(spec: &DensitySpec) -> u32 {
    let up = u32::try_from(spec.guests.ascent().len()).unwrap_or(u32::MAX);
    up.saturating_add(down(spec)).saturating_add(1)
}

/// Guests that are added at most: a search may go down and up again.
fn added(spec: &DensitySpec) -> u32 {
    spec.guests.most().saturating_mul(2)
}

/// Steps between the last number that held and the first that did not.
fn down(spec: &DensitySpec) -> u32 {
    match spec.guests {
        GuestSeries::Listed(_) => 0,
        GuestSeries::Search { most, .. } => most.max(1).ilog2() + 1,
    }
}

#[cfg(test)]
mod tests {
    use tare_model::Span;

    use super::*;

    #[test]
    fn an_ascent_is_given_the_time_of_all_its_levels() {
        let spec = |guests| DensitySpec {
            guests,
            reserve: None,
            settle: Span::from_secs(120),
            rest: Span::ZERO,
            pressure: 0.4,
        };
        let listed = spec(GuestSeries::Listed(vec![1, 4, 8]));
        assert_eq!((levels(&listed), added(&listed)), (4, 16));
        let search = spec(GuestSeries::Search { from: 1, most: 10 });
        assert_eq!(levels(&search), 6 + 4 + 1, "1, 2, 3, 5, 8, 10, and four between them");
    }
}
