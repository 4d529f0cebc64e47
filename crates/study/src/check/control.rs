//! `slowed-by` of an arm: a positive control. Why: `docs/adr/0038-prove.md`.

use tare_model::load::LoadModel;
use tare_model::study::{Arm, Case, CaseLoad};

use super::Context;
use crate::file;
use crate::language::table::Field;

/// What `slowed-by` of an arm says, thousandths; 0 where it says nothing.
pub(super) fn permille(arm: &file::Arm<'_>) -> u32 {
    let permille = arm.slowed_by.value.map_or(0.0, |share| share * 1000.0);
    if (permille - permille.round()).abs() > 1e-6 || arm.slowed_by.value.is_some() && permille.round() < 1.0 {
        let what = "is no multiple of 0.1 %";
        arm.slowed_by.wrong(what, "write for example `slowed-by = \"2%\"`");
    }
    permille.round() as u32
}

/// Reports a baseline that is slowed, and cases in which no arm can be.
pub(super) fn fit(file: &file::Study<'_>, context: &Context<'_>, (arms, baseline): (&[Arm], &str), cases: &[Case]) {
    let Some(control) = arms.iter().find(|arm| arm.slowed_permille > 0) else { return };
    let slowed = |field: &&Field<'_, file::Arm<'_>>| field.key() == baseline;
    let own = file.arms.value.iter().flatten().find(slowed).and_then(|field| field.value.as_ref());
    if let Some(own) = own.filter(|own| own.slowed_by.is_there()) {
        let what = "slows the baseline, which all arms are held against";
        own.slowed_by.wrong_key(what, "slow another arm: a second one of the same platform");
    }
    for case in cases {
        let asks = format!("the arm `{}` is slowed on purpose (`slowed-by`)", control.id);
        let at = context.case(case);
        if !context.catalog.traits(&case.into()).slowable {
            let how = context.others("slowed can be", |traits| traits.slowable);
            let what = format!("is `{}` as it is set here, and {asks}, which it cannot be", case.workload);
            at.get("workload").wrong(&what, format!("leave `slowed-by` out{how}"));
            continue;
        }
        let refuse = |what: &str, help: &str| at.get("load").wrong(what, help);
        match clients(case) {
            None => refuse(
                &format!("is no closed loop at a fixed load, and {asks}: only there is the share known"),
                "write `load = { closed = { clients = 1 } }`, or leave `slowed-by` out",
            ),
            Some(clients) if clients > case.guest.cpus => refuse(
                &format!(
                    "has more clients than the guest has CPUs, and {asks}: one waits for the other, and the share is unknown"
                ),
                "write as many clients as CPUs, or leave `slowed-by` out",
            ),
            Some(_) => {}
        }
    }
}

/// The clients of a closed loop in which each operation follows the one before it without a pause; `None` of any other load.
fn clients(case: &Case) -> Option<u32> {
    match case.load {
        CaseLoad::Fixed { load: LoadModel::Closed { clients, think_time }, .. } if think_time.ns == 0 => Some(clients),
        _ => None,
    }
}
