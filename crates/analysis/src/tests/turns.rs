//! Arms in turns: from made-up runs to findings.

use tare_model::findings::{Findings, Verdict};
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::precision::{CaseBlocks, WhyEnded, is_spared};
use tare_model::study::{CaseSchedule, Precision, QosObjective};
use tare_model::trial::Outcome;
use tare_model::turns::TurnCount;
use tare_record::testing;

use super::of;
use crate::precision::judge;
use crate::{Side, compare};

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
fn in_pairs_an_arm_is_compared_with_the_baseline_of_its_own_blocks_and_nothing_is_missing() {
    let mut plan = testing::pairs_plan(8);
    plan.study.cases[0].qos = vec![QosObjective { metric: "response_time_p50_s".to_owned(), bound: 1.0 }];
    let mut trials: Vec<_> = (0..32).map(|index| testing::turns_trial(&plan, index)).collect();
    // The host is slower in each later block, for both arms of a pair.
    for record in &mut trials {
        let drift = f64::from(record.planned.block);
        let Outcome::Completed(measured) = &mut record.outcome else { panic!("it completed") };
        measured.metrics.insert(common::IDLE_MEMORY.to_owned(), 1e6 * drift);
        *measured.metrics.get_mut("response_time_p50_s").unwrap() *= drift;
        record.metrics.push(MetricSpec::new(common::IDLE_MEMORY, "memory", Unit::Bytes, Better::Lower));
    }
    let found = of(&plan, &trials);
    assert_eq!((found.run.planned, found.not_completed.len()), (32, 0));
    let case = &found.cases[0];
    let compared = |arm: &str| case.metrics[0].comparisons.iter().find(|compared| compared.arm == arm).unwrap().clone();
    let (container, replica) = (compared(testing::ARMS[1]), compared(testing::ARMS[2]));
    assert_eq!((container.ratio.n, replica.ratio.n), (8, 8));
    assert!((container.ratio.value / 1.05 - 1.0).abs() < 0.01 && (replica.ratio.value - 1.0).abs() < 0.01);
    assert_eq!((container.verdict, replica.verdict), (Verdict::Worse, Verdict::NoiseFloor));
    assert!(container.blocks.iter().all(|(block, _)| !block.is_multiple_of(2)), "{:?}", container.blocks);
    assert!(case.objectives.iter().all(|own| !own.sentence.contains("without a figure")), "{:?}", case.objectives);
    let met = |arm: &str| case.objectives.iter().find(|own| own.arm == arm).map(|own| (own.planned, own.blocks.len()));
    assert_eq!((met(testing::ARMS[0]), met(testing::ARMS[1])), (Some((16, 16)), Some((8, 8))));
    // Over all cases, too, an arm's blocks are beside those of its own pair.
    let memory = found.across.iter().find(|metric| metric.spec.id == common::IDLE_MEMORY).unwrap();
    assert!(memory.comparisons.iter().all(|own| own.ratio.n == 8 && (own.ratio.value - 1.0).abs() < 1e-9));
    // A block of the study takes two sets.
    let [limits] = &case.limits[..] else { panic!("{:?}", case.limits) };
    let set_s = 2.0 * trials[0].wall_s;
    assert_eq!((limits.arm.as_str(), limits.spent.blocks), (testing::ARMS[1], 8));
    assert!((limits.spent.minutes - 8.0 * 2.0 * set_s / 60.0).abs() < 1e-9, "{limits:?}");
    let why = "arms took turns in pairs with the baseline, because this host has room for two of them";
    assert!(found.method.iter().any(|paragraph| paragraph.contains(why)), "{:?}", found.method);
    // Another run in which another amount of memory was free, and one in turns of all together.
    let mut other = found.clone();
    let differs = |other: &Findings| {
        let [a, b] = [&found, other].map(std::slice::from_ref);
        let refused = compare(&Side { label: "a", runs: a, names: &[] }, &Side { label: "b", runs: b, names: &[] });
        refused.is_err_and(|error| error.to_string().contains("case idle has not the same turns"))
    };
    if let CaseSchedule::Pairs { why, .. } = &mut other.plan.study.cases[0].schedule {
        why.push_str(", and no more");
    }
    assert!(!differs(&other));
    other.plan.study.cases[0].schedule = testing::turns_plan(1).study.cases[0].schedule.clone();
    assert!(differs(&other));
    // A trial that is not there is missing where the plan has it, and nowhere else.
    trials.retain(|record| record.planned.index != 1);
    let found = of(&plan, &trials);
    let missing: Vec<_> = found.not_completed.iter().map(|own| (own.block, own.arm.as_str())).collect();
    assert_eq!(missing, [(1, testing::ARMS[1])]);
    let n = |arm: &str| found.cases[0].metrics[0].comparisons.iter().find(|own| own.arm == arm).unwrap().ratio.n;
    assert_eq!((n(testing::ARMS[1]), n(testing::ARMS[2])), (7, 8));
}

#[test]
fn a_case_in_pairs_ends_by_the_intervals_of_whole_blocks_of_the_study() {
    let mut plan = testing::pairs_plan(20);
    plan.study.precision = Some(Precision { at_least: 8, until: 0.02 });
    let trials: Vec<_> = (0..80).map(|index| testing::turns_trial(&plan, index)).collect();
    let judged = |blocks| judge(&plan, "idle", blocks, &trials).unwrap();
    assert_eq!(judged(7).ended, None);
    assert_eq!((judged(8).ended, judged(8).blocks), (Some(WhyEnded::Precise), 8));
    // 8 blocks of the study are 16 of the case: widths do not look at later ones.
    let early: Vec<_> = trials.iter().filter(|record| record.planned.block <= 16).cloned().collect();
    assert_eq!(judge(&plan, "idle", 8, &early), Some(judged(8)));
    let ended = [CaseBlocks { case: "idle".to_owned(), blocks: 8, width: None, why: WhyEnded::Precise }];
    let taken = plan.trials.iter().filter(|planned| !is_spared(&plan, &ended, planned));
    assert_eq!(taken.map(|planned| planned.block).max(), Some(16));
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
