//! `cpu-target` of a case: the load at which the guests' CPUs are busy to a share.

use tare_model::cpu_target::CpuTarget;
use tare_model::load::LoadModel;
use tare_model::units::Span;

use super::Able;
use super::capacity::{default_from, first_and_most};
use crate::file;

/// The search that a case asks for; each of its guests has so many `instances`.
pub(super) fn target(target: &file::CpuTarget<'_>, model: &LoadModel, instances: u32) -> Option<CpuTarget> {
    let least = |most| match model {
        // Each instance has a client of its own.
        LoadModel::Closed { .. } => default_from(most, model).max(f64::from(instances)).min(most),
        LoadModel::Open { .. } => default_from(most, model),
    };
    let (from, most) = first_and_most(&target.from, &target.most, model, least)?;
    Some(CpuTarget {
        kind: model.kind(),
        share: target.share.value?,
        tolerance: target.tolerance.or(0.02),
        from,
        most,
        step: target.step.or(Span::from_secs(30)),
        steps: target.steps.or(8),
    })
}

/// Reports a workload that cannot be offered one load after another in the same guest.
pub(super) fn can(case: &file::Case<'_>, able: Able<'_>) {
    if case.cpu_target.is_there() && !able.traits.iter().any(|traits| traits.calibrated) {
        let what = "changes load in guests that stand, which {} cannot do";
        able.check(&case.cpu_target, |traits| traits.repeats, what, "it can be had with");
    }
}
