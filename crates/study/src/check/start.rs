//! From what the guests of an arm are started: `start` of an arm.

use serde_json::Value as Json;
use tare_model::load::LoadModel;
use tare_model::start::Start;
use tare_model::study::{Arm, Case, CaseLoad};

use super::Context;
use crate::file;
use crate::language::shape::Or;

/// How an arm's guests are started whose workload makes them, on this platform with these options as far as they are right.
pub(super) fn of_arm(arm: &file::Arm<'_>, context: &Context<'_>, platform: Option<(&str, &Json)>) -> Start {
    let asked = match &arm.start.value {
        Some(Or::Plain(start)) => *start,
        Some(Or::Table(table)) => table.pool.value.map_or(Start::Cold, Start::Pool),
        None => Start::Cold,
    };
    let refusal = platform.and_then(|(name, options)| context.catalog.start_refusal(name, options, asked));
    if let Some(refusal) = refusal {
        arm.start.wrong(&format!("cannot be had with this platform: {}", refusal.reason), refusal.remedy);
        return Start::Cold;
    }
    asked
}

fn is_open(case: &Case) -> bool {
    matches!(case.load, CaseLoad::Fixed { load: LoadModel::Open { .. }, .. })
}

/// Reports arms whose guests are not made from nothing in cases that make none, and pools that are smaller than what is taken from them.
pub(super) fn fit(context: &Context<'_>, arms: &[Arm], cases: &[Case]) {
    for arm in arms.iter().filter(|arm| !arm.start.is_cold() && arm.replica_of.is_none()) {
        let at = context.root.get("arms").get(&arm.id).get("start");
        // A workload that is not known is reported already.
        let known = || cases.iter().filter(|case| !case.workload.is_empty());
        if let Some(case) = known().find(|case| case.made == 0) {
            let what = format!(
                "is of guests that a workload makes, and `{}` of the case `{}` makes none: it measures in guests that stand",
                case.workload, case.id
            );
            let others = context.others("guests are made by", |traits| traits.made > 0);
            at.wrong(&what, format!("leave it out, or that case; such arms go into a study of their own{others}"));
            continue;
        }
        let pool = arm.start.pool();
        if let Some(case) = known().filter(|_| pool > 0).find(|case| is_open(case)) {
            let what = format!(
                "keeps a pool, and the case `{}` has an open loop: filling it again would be in its figures",
                case.id
            );
            at.wrong(&what, "leave the pool out, or that case; write `load = { closed = { clients = 1 } }` in it");
            continue;
        }
        if let Some(case) = known().filter(|_| pool > 0).find(|case| case.made > pool) {
            let what = format!("keeps {pool} guests, and the case `{}` takes {} at one time", case.id, case.made);
            at.wrong(&what, format!("write `start = {{ pool = {} }}`, or let the case take fewer", case.made));
        }
    }
}
