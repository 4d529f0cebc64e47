//! What stands beside guests and what their data lie on, as workloads and platforms declare it.

use tare_model::layout::{ArmLayout, CaseLayout, Layout, Work};
use tare_model::study::{Arm, Case, Study};

use crate::catalog::Catalog;

/// Of all cases and arms. Nothing is looked at on the host.
pub(super) fn layout(study: &Study, catalog: &dyn Catalog) -> Layout {
    let of_case = |case: &Case| {
        let work = |work: Work| if study.roles.services.is_some() { work.with_services_host() } else { work };
        let guests = catalog.traits(&case.into()).guests.into_iter().map(|guest| work(guest.work)).collect();
        CaseLayout { case: case.id.clone(), guests }
    };
    let of_arm = |arm: &Arm| {
        let attachment = catalog.attachment(&arm.platform, &arm.options, study.lab.attach())?;
        Some(ArmLayout { arm: arm.id.clone(), attachment })
    };
    Layout { cases: study.cases.iter().map(of_case).collect(), arms: study.arms.iter().filter_map(of_arm).collect() }
}
