//! Whether the arms of a case take turns.

use tare_model::study::CaseSchedule;
use tare_model::traits::{Traits, TurnTraits};
use tare_model::turns::{TurnSpec, Waiting};

/// Turns where the workload and the load allow them; otherwise trials, with the reason.
pub(super) fn of(traits: Option<&Traits>, fixed: bool, busy_target: bool) -> CaseSchedule {
    let trials = |why: &str| CaseSchedule::Trials { why: why.to_owned() };
    let Some(Traits { turns: Some(turns), .. }) = traits else {
        return trials("the workload is not driven in turns");
    };
    if !fixed {
        return trials("its load is searched for");
    }
    let &TurnTraits { turn, warm_up, gap, freezes, .. } = turns;
    if busy_target && !freezes {
        return trials("its guests are busy also when it is the turn of others, and cannot be stopped");
    }
    let waiting = if busy_target { Waiting::Frozen } else { Waiting::Idle };
    CaseSchedule::Turns(TurnSpec { turn, warm_up, gap, waiting })
}
