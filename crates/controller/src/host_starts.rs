//! What is found out before a run about starts that are not from nothing: whether an arm's guests can be stopped, or restored, on this host.

use tare_model::Refusal;
use tare_model::start::Start;
use tare_model::study::Arm;
use tare_platform::Platform;

use crate::registry::{Registry, Shipped};

/// Why an arm's guests cannot be started as the study asks, and what would help; `None`: they can.
pub fn refusal(arm: &Arm, platform: &dyn Platform) -> Option<Refusal> {
    match arm.start {
        Start::Cold => None,
        Start::Snapshot => platform.snapshot_refusal(),
        Start::Pool(_) => platform.pool_refusal().or_else(|| {
            if platform.pauses_by_itself() {
                return None;
            }
            let why = tare_lab::freezing_refusal()?;
            let remedy = "leave `start` out of this arm, or use a host with control groups of version 2 (Linux 5.2)";
            Some(Refusal::new(format!("its guests cannot be stopped where they stand: {why}"), remedy))
        }),
    }
}

/// The same of an arm by itself. Wrong names and options are reported elsewhere.
pub fn cannot_start(arm: &Arm) -> Option<Refusal> {
    if arm.start.is_cold() {
        return None;
    }
    refusal(arm, &*Shipped.platform(&arm.platform, &arm.options).ok()?)
}
