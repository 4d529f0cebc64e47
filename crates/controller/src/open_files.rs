//! Room for the open files of a run's controller: every agent takes some.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tare_model::aggressor::Aggressor;
use tare_model::plan::Plan;
use tare_model::study::Case;

/// Files that the controller has open for a guest: the three streams of its agent, its network, its platform's own, and what the probes read of
/// its control groups.
const OF_GUEST: u64 = 24;
/// Files that it has open for a driver's agent, or for one of what guests use.
const OF_AGENT: u64 = 4;
/// Most conditions that a guest may meet: each neighbour's work once, and none.
const MOST_CONDITIONS: u64 = Aggressor::ALL.len() as u64 + 1;
/// What it has open beside.
const OTHERS: u64 = 256;

/// Raises this process's limit of open files (`RLIMIT_NOFILE`, the soft one) as far as the plan needs and as is allowed. Guests of every arm
/// start with the same limits as this process, so that it is raised once, before anything is started, and only for studies that need it.
pub fn make_room(plan: &Plan) {
    let needed = plan.study.cases.iter().map(|case| needed(case, plan.study.arms.len())).max().unwrap_or_default();
    let limit = getrlimit(Resource::Nofile);
    if let Some(current) = raised(limit.current, limit.maximum, needed) {
        // Where it cannot be raised, what needs more says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
}

/// The limit that is to be set; `None` where what holds is enough, or all that is allowed. `None` as a limit is no limit.
fn raised(current: Option<u64>, most: Option<u64>, needed: u64) -> Option<u64> {
    let current = current.filter(|current| *current < needed)?;
    Some(most.map_or(needed, |most| most.min(needed))).filter(|wanted| *wanted > current)
}

/// Files that are open at one time in a trial of a case, or in a block where so many arms take turns.
fn needed(case: &Case, arms: usize) -> u64 {
    let guests = u64::from(case.load.most_guests());
    let neighbours = case.neighbours.map_or(0, |neighbours| neighbours.count.into());
    let beside = u64::from(case.load.guests().drivers) + 1;
    let at_once = if case.schedule.turns().is_some() { arms as u64 } else { 1 };
    // Each condition of a guest has drivers of its own.
    let conditions = if case.schedule.condition().is_some() { MOST_CONDITIONS } else { 1 };
    OTHERS + at_once * ((guests + neighbours) * OF_GUEST + guests * conditions * beside * OF_AGENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::load::{LoadModel, Phases};
    use tare_model::study::{CaseLoad, Guests};
    use tare_model::traits::ANY_SIZE;
    use tare_model::units::Span;

    #[test]
    fn the_limit_is_raised_as_far_as_needed_and_allowed_and_never_lowered() {
        assert_eq!(raised(Some(1024), Some(4096), 1000), None);
        assert_eq!(raised(Some(1024), Some(4096), 3000), Some(3000));
        assert_eq!(raised(Some(1024), Some(4096), 9000), Some(4096));
        assert_eq!(raised(Some(1024), None, 9000), Some(9000));
        assert_eq!((raised(None, None, 9000), raised(Some(4096), Some(4096), 9000)), (None, None));
    }

    #[test]
    fn few_guests_fit_the_usual_limit_and_a_thousand_agents_do_not() {
        let case = |count, drivers| {
            let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
            let load = CaseLoad::Fixed { load, guests: Guests { count, drivers } };
            Case::new("idle", "any", load, Phases::measuring(Span::from_secs(1)), ANY_SIZE)
        };
        assert!(needed(&case(8, 2), 3) <= 1024, "{}", needed(&case(8, 2), 3));
        assert!(needed(&case(250, 3), 1) > 3 * 1000, "each agent has three streams");
    }
}
