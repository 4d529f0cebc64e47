//! `instances` and `held-out` of a case.

use tare_model::load::LoadModel;
use tare_model::study::Case;

use super::load::NamedLoad;
use super::{Able, Context};
use crate::file;

/// Reports several instances where the workload cannot have them with each of its loads, and a load that has
/// fewer clients than there are instances.
pub(super) fn can(case: &file::Case<'_>, able: Able<'_>, loads: &[NamedLoad]) {
    let Some(instances) = case.instances.value.filter(|count| *count > 1) else { return };
    let what = format!("is {instances}, but {{}} has one instance in a guest");
    able.check(&case.instances, |traits| traits.several_instances, &what, "several can be had with");
    let first = case.cpu_target.value.as_ref().filter(|target| target.from.is_there());
    let first = first.and_then(|target| u32::try_from(target.from.json()?.as_u64()?).ok());
    for load in loads {
        let (all, what) = match load.model {
            LoadModel::Closed { clients, .. } => (clients, "clients"),
            LoadModel::Open { connections, .. } => (connections, "connections"),
        };
        let (all, of) = match first.filter(|from| *from < all) {
            Some(from) => (from, "the first load that is tried".to_owned()),
            None => {
                (all, load.name.as_ref().map_or_else(|| "the load".to_owned(), |name| format!("the load `{name}`")))
            }
        };
        if all < instances {
            let fault = format!("is {instances}, and {of} has {all} {what}: each instance has at least one of its own");
            let help = format!("offer at least {instances} {what}, or ask for fewer instances");
            case.instances.wrong(&fault, help);
        }
    }
}

/// Reports held-out cases that no other case of their workload could predict.
pub(super) fn predicted(context: &Context<'_>, cases: &[Case]) {
    let fitted = |workload: &str| {
        cases.iter().any(|case| {
            !case.held_out && case.workload == workload && !case.load.is_density() && !case.load.is_capacity()
        })
    };
    for case in cases.iter().filter(|case| case.held_out && !case.workload.is_empty() && !fitted(&case.workload)) {
        let workload = &case.workload;
        let what =
            format!("keeps its figures from the models, and no other case with `{workload}` is left to fit them to");
        let help = "leave it out, or add cases of other loads that are not held out";
        context.case(case).get("held-out").wrong(&what, help);
    }
}
