//! What is found out about the host's memory before a run: whether it can be merged, and whether a guest fits.

use std::time::Duration;

use tare_memory::Kernel;
use tare_model::Refusal;
use tare_model::density::DensitySpec;
use tare_model::study::{Arm, Case, CaseLoad, Study};
use tare_model::units::ByteSize;
use tare_platform::{Platform, Reach};
use tare_workload::Workload;

use crate::error::ControllerError;
use crate::host::HostAccess;
use crate::registry::{Registry, Shipped};
use crate::trial::timeout;

/// Why an arm cannot be run as the study asks for memory, and what would help; `None`: it can.
pub fn refusal(arm: &Arm, platform: &dyn Platform, study: &Study, host: &dyn HostAccess) -> Option<Refusal> {
    if let Some(case) = study.cases.iter().find(|case| case.load.is_density())
        && platform.reach() == Reach::Outside
    {
        let reason = format!("case `{}` fills the memory of this host, and this arm's guests are elsewhere", case.id);
        return Some(Refusal::new(reason, "use a platform whose guests are on this host"));
    }
    arm.host_memory.merging.and_then(|_| merging_refusal(platform, &host.kernel()))
}

/// Why the memory of an arm's guests cannot be merged on this host, and what would help; `None`: it can. Wrong names and options are
/// reported elsewhere.
pub fn cannot_merge(arm: &Arm) -> Option<Refusal> {
    let platform = Shipped.platform(&arm.platform, &arm.options).ok()?;
    merging_refusal(&*platform, &Kernel::host())
}

/// Why the memory of a platform's guests cannot be merged by this kernel, and what would help; `None`: it can.
pub fn merging_refusal(platform: &dyn Platform, kernel: &Kernel) -> Option<Refusal> {
    let opening = || if platform.asks_for_merging() { None } else { kernel.opening_refusal() };
    platform.merging_refusal().or_else(|| kernel.refusal()).or_else(opening)
}

/// Sees that at least one guest of a case fits above the reserve, where the case adds guests.
///
/// # Errors
/// When none does, with the figures, or when the host's memory cannot be read.
pub fn one_fits(case: &Case, workload: &dyn Workload, host: &dyn HostAccess) -> Result<(), ControllerError> {
    let CaseLoad::Density { spec, .. } = &case.load else { return Ok(()) };
    let now = host.now().map_err(|reason| ControllerError::Host { reason })?;
    let (needed, reserve) = (workload.traits_in(case).touches().0, spec.reserve_on(ByteSize(now.total_bytes)).0);
    if now.fits(needed, reserve) {
        return Ok(());
    }
    Err(ControllerError::NoRoom { case: case.id.clone(), needed, available: now.available_bytes, reserve })
}

/// The longest that the scale-up of a case, or the search for its load in guests that stand, may take, if everything takes as long as it
/// may; zero for a case without one.
pub fn longest(case: &Case) -> Duration {
    match &case.load {
        CaseLoad::Density { spec, .. } => longest_scale_up(spec, case.phases.total().duration()),
        // Each load is connected, driven and verified by itself.
        CaseLoad::CpuTarget { target, guests } => {
            let around = timeout(guests.count as usize) * 4 * target.steps;
            target.searching(&case.phases, target.steps).duration() + around
        }
        CaseLoad::Fixed { .. } | CaseLoad::Capacity(_) | CaseLoad::ShareOf { .. } => Duration::ZERO,
    }
}

fn longest_scale_up(spec: &DensitySpec, phases: Duration) -> Duration {
    let guests = spec.most_guests();
    let timeout = timeout(guests as usize);
    let settle = spec.settle.duration();
    // Each guest is waited for and asked a few times; so is each level.
    let level = settle + spec.rest.duration() + phases + timeout * 4;
    // A search may go down and up again.
    (settle + timeout * 4) * guests.saturating_mul(2) + level * spec.guests.levels_at_most()
}

#[cfg(test)]
mod tests {
    use tare_model::Span;
    use tare_model::density::{GuestSeries, TileGuest};
    use tare_model::guest::GuestSize;

    use super::*;

    #[test]
    fn a_scale_up_is_given_the_time_of_all_its_guests_and_levels() {
        let (guests, settle) = (GuestSeries::Listed(vec![1, 4, 8]), Span::from_secs(120));
        let spec =
            DensitySpec { guests, tile: Vec::new(), reserve: None, settle, rest: Span::from_secs(5), pressure: 0.4 };
        // Eight guests are asked with twice the timeout of four.
        let guest = 120 + 4 * 60;
        let level = 120 + 5 + 10 + 4 * 60;
        let longest = longest_scale_up(&spec, Duration::from_secs(10));
        assert_eq!(longest, Duration::from_secs(16 * guest + 3 * level));
        let member = |name: &str| TileGuest { name: name.into(), size: GuestSize { cpus: 1, memory: ByteSize(1) } };
        let tiles = DensitySpec { guests: GuestSeries::Listed(vec![4]), tile: vec![member("a"), member("b")], ..spec };
        let tiles = longest_scale_up(&tiles, Duration::from_secs(10));
        assert_eq!(tiles, Duration::from_secs(16 * guest + level), "four tiles of two guests are eight");
    }
}
