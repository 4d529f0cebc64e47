//! What it means for a run that some of its machines are not this host's guests.

use tare_model::study::{Arm, ClientHost, Study};

use crate::catalog::Catalog;

/// How such a run differs from one that is all on this host, each in a sentence.
pub(super) fn differences(study: &Study, catalog: &dyn Catalog) -> Vec<String> {
    let (outside, inside): (Vec<&Arm>, Vec<&Arm>) =
        study.arms.iter().partition(|arm| catalog.reaches_outside(&arm.platform, &arm.options));
    let mut all = Vec::new();
    if !outside.is_empty() {
        all.push(format!(
            "{} not made by tare: CPUs and memory are what the machine has, the lab's settings do not reach there, and no \
             service demand is reported",
            named(&outside)
        ));
    }
    if !outside.is_empty() && !inside.is_empty() {
        all.push(format!(
            "{} reached over a network that was there before the run, and {} over the lab's inside this host: a difference \
             between them is also one of these networks",
            named(&outside),
            named(&inside)
        ));
    }
    if !outside.is_empty() && study.cases.iter().any(|case| case.schedule.turns().is_some()) {
        all.push(format!(
            "{} driven in turns: CPU by a machine's own kernel is that of the whole block, turns of other arms included, and what the \
             machine does in these is not seen",
            named(&outside)
        ));
    }
    if let ClientHost::Machine { .. } = study.client {
        all.push(
            "load comes from a machine of its own: the placement of CPUs on this host does not concern the driver"
                .to_owned(),
        );
    }
    all
}

/// Whether every guest is a machine that exists already, so that nothing is promised to guests on this host.
pub(super) fn all_outside(study: &Study, catalog: &dyn Catalog) -> bool {
    !study.arms.is_empty() && study.arms.iter().all(|arm| catalog.reaches_outside(&arm.platform, &arm.options))
}

fn named(arms: &[&Arm]) -> String {
    let ids: Vec<String> = arms.iter().map(|arm| format!("`{}`", arm.id)).collect();
    format!("{} {}", ids.join(", "), if ids.len() == 1 { "is" } else { "are" })
}
