//! How long what is not load may take: an agent's answer, and a scale-up or a search as a whole.

use std::collections::BTreeMap;
use std::time::Duration;

use tare_model::density::DensitySpec;
use tare_model::plan::Plan;
use tare_model::study::{Case, CaseLoad};
use tare_workload::Workload;

/// How long an agent may take for anything that is not load. A guest on a saturated host answers late.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// So many guests are answered for within [`TIMEOUT`]; more are given more, in proportion.
const GUESTS_AT_ONCE: usize = 4;

/// How long an agent of one of so many guests may take for anything that is not load: they share the host's CPUs.
pub fn timeout(guests: usize) -> Duration {
    let times = guests.div_ceil(GUESTS_AT_ONCE).max(1);
    TIMEOUT * u32::try_from(times).unwrap_or(u32::MAX)
}

/// How long an agent may live: its trial's load at its longest, and all that is waited for around it. Agents of a search live for
/// one of its tries.
pub fn lifetime(plan: &Plan, workloads: &BTreeMap<String, Box<dyn Workload>>) -> Duration {
    let arms = u32::try_from(plan.study.arms.len()).unwrap_or(u32::MAX);
    let phases = plan.study.cases.iter().map(|case| match case.schedule.any_turns() {
        Some(turns) => turns.total(&case.phases, case.schedule.condition().map_or(arms, |_| conditions(plan, case))),
        None => case.phases.total(),
    });
    let commands = plan.study.cases.iter().filter_map(|case| {
        let longest = workloads.get(&case.id)?.traits_in(case).longest?;
        let commands = case.schedule.turns().and_then(|turns| turns.commands);
        let times = commands.map_or(1, |commands| u64::from(commands) * u64::from(arms));
        Some(tare_model::Span { ns: longest.ns.saturating_mul(times) })
    });
    let load = phases.chain(commands).max().unwrap_or_default();
    let scale_up = plan.study.cases.iter().map(longest).max().unwrap_or_default();
    load.duration() * 2 + scale_up + TIMEOUT * 10 + Duration::from_secs(3600)
}

/// Conditions that share the guest of a case.
fn conditions(plan: &Plan, case: &Case) -> u32 {
    let family = plan.study.cases.iter().filter(|other| other.family() == case.family());
    u32::try_from(family.count()).unwrap_or(u32::MAX)
}

/// The longest that the scale-up of a case, or the search for its load in guests that stand, may take, if everything takes as long as it
/// may; zero for a case without one.
pub fn longest(case: &Case) -> Duration {
    match &case.load {
        CaseLoad::Density { spec, .. } => longest_scale_up(spec, case.phases.total().duration()),
        // Each load is connected, driven and verified by itself.
        CaseLoad::CpuTarget { target, guests } => {
            let around = timeout(guests.count as usize) * 4 * target.steps;
            target.searching(&case.phases, target.steps).duration() + around
        }
        CaseLoad::Fixed { .. } | CaseLoad::Capacity(_) | CaseLoad::ShareOf { .. } => Duration::ZERO,
    }
}

fn longest_scale_up(spec: &DensitySpec, phases: Duration) -> Duration {
    let guests = spec.most_guests();
    let timeout = timeout(guests as usize);
    let settle = spec.settle.duration();
    // Each guest is waited for and asked a few times; so is each level.
    let level = settle + spec.rest.duration() + phases + timeout * 4;
    // A search may go down and up again.
    (settle + timeout * 4) * guests.saturating_mul(2) + level * spec.guests.levels_at_most()
}

#[cfg(test)]
mod tests {
    use tare_model::Span;
    use tare_model::density::{GuestSeries, TileGuest};
    use tare_model::guest::GuestSize;
    use tare_model::units::ByteSize;

    use super::*;

    #[test]
    fn a_scale_up_is_given_the_time_of_all_its_guests_and_levels() {
        let (guests, settle) = (GuestSeries::Listed(vec![1, 4, 8]), Span::from_secs(120));
        let spec =
            DensitySpec { guests, tile: Vec::new(), reserve: None, settle, rest: Span::from_secs(5), pressure: 0.4 };
        // Eight guests are asked with twice the timeout of four.
        let guest = 120 + 4 * 60;
        let level = 120 + 5 + 10 + 4 * 60;
        let longest = longest_scale_up(&spec, Duration::from_secs(10));
        assert_eq!(longest, Duration::from_secs(16 * guest + 3 * level));
        let member = |name: &str| TileGuest { name: name.into(), size: GuestSize { cpus: 1, memory: ByteSize(1) } };
        let tiles = DensitySpec { guests: GuestSeries::Listed(vec![4]), tile: vec![member("a"), member("b")], ..spec };
        let tiles = longest_scale_up(&tiles, Duration::from_secs(10));
        assert_eq!(tiles, Duration::from_secs(16 * guest + level), "four tiles of two guests are eight");
    }
}
