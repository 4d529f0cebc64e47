//! What is found out about the host's memory before a run: whether it can be merged, and whether a guest fits.

use tare_memory::Kernel;
use tare_model::Refusal;
use tare_model::study::{Arm, Case, CaseLoad, Study};
use tare_model::units::ByteSize;
use tare_platform::{Platform, Reach};
use tare_workload::Workload;

use crate::error::ControllerError;
use crate::host::HostAccess;
use crate::registry::{Registry, Shipped};
use crate::remote_guests;

/// Why an arm cannot be run as the study asks for memory, and what would help; `None`: it can.
pub fn refusal(arm: &Arm, platform: &dyn Platform, study: &Study, host: &dyn HostAccess) -> Option<Refusal> {
    if let Some(case) = study.cases.iter().find(|case| case.load.is_density())
        && platform.reach() == Reach::Outside
        && !remote_guests::are_elsewhere(platform)
    {
        let reason = format!(
            "case `{}` adds guests one by one, and this arm's is the one that has what its options name: a device, or a machine of this host",
            case.id
        );
        return Some(Refusal::new(reason, "use a platform whose guests are on the lab's network"));
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
