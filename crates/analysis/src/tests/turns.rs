//! Arms in turns: from made-up runs to findings.

use tare_model::findings::Findings;
use tare_model::metric::common;
use tare_model::turns::TurnCount;
use tare_record::testing;

use super::of;

fn sets(blocks: u32, alter: impl Fn(&mut tare_model::turns::TrialTurns)) -> Findings {
    let plan = testing::turns_plan(blocks);
    let mut trials: Vec<_> = (0..3 * blocks).map(|index| testing::turns_trial(&plan, index)).collect();
    trials.iter_mut().filter_map(|record| record.turns.as_mut()).for_each(alter);
    of(&plan, &trials)
}

#[test]
fn a_run_in_turns_says_what_limits_it_and_what_a_rate_is() {
    let found = sets(8, |_| {});
    let case = &found.cases[0];
    let arms: Vec<&str> = case.limits.iter().map(|limits| limits.arm.as_str()).collect();
    assert_eq!(arms, [testing::ARMS[1]], "neither the baseline nor its replica");
    let compared = case.metrics[0].comparisons.iter().find(|compared| compared.arm == testing::ARMS[1]).unwrap();
    assert_eq!(Some(case.limits[0].detectable), compared.detectable);
    assert!(!case.limits[0].of_primary, "turns hold no median");
    let said = |what: &str| found.method.iter().any(|paragraph| paragraph.contains(what));
    assert!(said("Where arms took turns") && said("Kalibera and Jones"));
    assert!(found.flagged.is_empty(), "{:?}", found.flagged);
    assert!(found.unchecked.is_empty(), "{:?}", found.unchecked);
    let achieved = case.accounts[0].achieved_per_s.as_ref().unwrap().value;
    let Some(outcome) = case.timelines[0].series[common::OPERATIONS].first() else { panic!("a rate") };
    assert!((0.5..2.0).contains(&(outcome.1 / 45_000.0)), "{outcome:?} beside {achieved}");
    let few = sets(5, |_| {});
    assert!(few.cases[0].limits.is_empty() && few.method.iter().all(|paragraph| !paragraph.contains("Kalibera")));
}

#[test]
fn turns_that_no_run_has_make_findings_that_can_be_read_again() {
    let most = i64::MAX as u64;
    let all = TurnCount { operations: most, bytes: most, measured_ns: most, response_ns: most };
    let alterations: [fn(&mut tare_model::turns::TrialTurns, TurnCount); 4] = [
        |taken, all| taken.done.counts.iter_mut().for_each(|count| *count = all),
        |taken, all| taken.done.counts.iter_mut().step_by(2).for_each(|count| *count = all),
        |taken, _| (taken.start_ns, taken.turns.arms, taken.turns.spec.turn.ns) = (u64::MAX, u32::MAX, u64::MAX),
        |taken, _| taken.turns.places.clear(),
    ];
    for alter in alterations {
        let found = sets(7, |taken| alter(taken, all));
        let text = serde_json::to_string(&found).unwrap();
        let again: Findings = serde_json::from_str(&text).unwrap();
        assert_eq!(again.cases[0].limits.len(), found.cases[0].limits.len());
    }
}
