//! Conditions of one guest: from made-up trials with known ratios to the matrix and what is said of it.

use tare_model::aggressor::Aggressor;
use tare_model::findings::{Findings, IsolationCell};
use tare_model::flag;
use tare_model::trial::{Flag, Outcome, Phase, TrialRecord};
use tare_record::testing;

use super::of;

const BLOCKS: u32 = 8;

fn trials() -> Vec<TrialRecord> {
    let plan = testing::conditions_plan(BLOCKS);
    (0..plan.trials.len() as u32).map(|index| testing::conditions_trial(&plan, index)).collect()
}

fn found(trials: &[TrialRecord]) -> Findings {
    of(&testing::conditions_plan(BLOCKS), trials)
}

fn cell<'f>(found: &'f Findings, arm: &str, work: Aggressor) -> &'f IsolationCell {
    let own = found.isolation[0].arms.iter().find(|own| own.arm == arm).unwrap();
    own.cells.iter().find(|cell| cell.work == work).unwrap()
}

#[test]
fn a_known_ratio_is_found_within_the_guest_whatever_the_instance_and_the_block() {
    let found = found(&trials());
    assert_eq!(found.isolation.len(), 1);
    for (arm, work, truth) in [
        ("native", Aggressor::Spin, 2.0),
        ("native", Aggressor::Cache, 1.3),
        ("container", Aggressor::Spin, 1.0),
        ("container", Aggressor::Cache, 1.3),
    ] {
        let own = cell(&found, arm, work);
        let time = own.time.as_ref().unwrap();
        assert!((time.value / truth - 1.0).abs() < 0.02 && time.n == BLOCKS, "{arm} {work:?}: {time:?}");
        assert!(time.low.unwrap() <= truth * 1.01 && time.high.unwrap() >= truth * 0.99, "{arm} {work:?}: {time:?}");
        let speed = own.speed.as_ref().unwrap();
        assert!((speed.value * truth - 1.0).abs() < 0.02, "{arm} {work:?}: {speed:?}");
    }
    let (harmed, spared) = (cell(&found, "native", Aggressor::Spin), cell(&found, "container", Aggressor::Spin));
    assert!(harmed.is_clear() && !harmed.starved && harmed.achieved_share.is_none());
    // There the neighbour has a tenth of what it has natively.
    let share = spared.achieved_share.as_ref().unwrap();
    assert!(spared.starved && (share.value - 0.1).abs() < 0.01, "{share:?}");
    assert!(!cell(&found, "container", Aggressor::Cache).starved);
}

#[test]
fn the_sentences_name_the_worst_neighbour_and_give_no_credit_for_starving_it() {
    let said = found(&trials()).isolation[0].sentences.clone();
    assert!(said[0].starts_with("small requests: \u{201c}spin\u{201d} slows it most, on native: the "), "{said:#?}");
    assert!(said[0].contains(" is 2.0"), "{said:#?}");
    assert!(said[0].contains("3 of 4 pairs"), "{said:#?}");
    assert!(
        said[1].contains("under \u{201c}spin\u{201d}: container isolates best") && said[1].contains("native worst"),
        "{said:#?}"
    );
    assert!(said[1].contains("achieved only 10 %") && said[1].contains("no credit"), "{said:#?}");
    assert_eq!(said.len(), 2, "the layers are alike under the other: {said:#?}");
}

#[test]
fn a_layer_on_which_the_neighbour_does_something_else_isolates_neither_best_nor_worst() {
    let mut all = trials();
    for record in all.iter_mut().filter(|own| own.planned.case == "rr@spin" && own.planned.arm == "container") {
        if let Outcome::Completed(measured) = &mut record.outcome {
            *measured.metrics.get_mut(tare_model::metric::isolation::WORK).unwrap() *= 30.0;
        }
    }
    let said = found(&all).isolation[0].sentences.clone();
    assert!(said.iter().all(|line| !line.contains("isolates best")), "{said:#?}");
}

#[test]
fn conditions_are_compared_with_no_other_arm_and_are_no_answers_of_their_own() {
    let found = found(&trials());
    assert_eq!(found.cases.len(), 3);
    for case in &found.cases {
        assert!(case.metrics.iter().all(|metric| metric.comparisons.is_empty()), "{}", case.id);
        assert!(case.limits.is_empty());
    }
    assert!(found.answer.is_empty(), "{:?}", found.answer);
}

#[test]
fn who_is_lost_counts_against_the_neighbour_in_whose_turn_it_was_and_who_is_contained_does_not() {
    let plan = testing::conditions_plan(BLOCKS);
    let mut all = trials();
    let at = |block: u32, case: &str| {
        plan.trials.iter().position(|own| own.block == block && own.case == case && own.arm == "container").unwrap()
    };
    for case in ["rr@none", "rr@spin", "rr@cache"] {
        let record = &mut all[at(3, case)];
        record.outcome = Outcome::Failed { phase: Phase::Drive, reason: "the guest is gone".to_owned() };
        if case != "rr@cache" {
            let detail = "case `rr@cache` failed".to_owned();
            record.flags.push(Flag { kind: flag::OTHER_ARM_FAILED.to_owned(), detail });
        }
    }
    if let Outcome::Completed(measured) = &mut all[at(4, "rr@spin")].outcome {
        measured.counts.insert(tare_model::count::AGGRESSOR_ENDED.to_owned(), 1);
        measured.counts.insert(tare_model::count::AGGRESSOR_REFUSED.to_owned(), 7);
    }
    let found = found(&all);
    let (cache, spin) = (cell(&found, "container", Aggressor::Cache), cell(&found, "container", Aggressor::Spin));
    assert_eq!((cache.survival.victim_lost, cache.survival.trials), (1, BLOCKS));
    assert_eq!((spin.survival.victim_lost, spin.survival.trials), (0, BLOCKS - 1));
    assert_eq!((spin.survival.contained, spin.survival.refused), (1, 7));
    assert_eq!(cache.time.as_ref().unwrap().n, BLOCKS - 1);
    let said = &found.isolation[0].sentences;
    assert!(
        said.iter().any(|line| line.contains("under \u{201c}cache\u{201d} on container: lost in 1 of 8 trials")),
        "{said:#?}"
    );
}

#[test]
fn without_a_block_nothing_is_said_and_with_one_there_is_no_interval() {
    let none = found(&[]);
    assert!(cell(&none, "native", Aggressor::Spin).time.is_none());
    let one: Vec<TrialRecord> = trials().into_iter().filter(|record| record.planned.block == 1).collect();
    let found = found(&one);
    let own = cell(&found, "native", Aggressor::Spin);
    assert!(own.time.as_ref().is_some_and(|time| time.low.is_none()) && !own.is_clear());
    assert!(found.isolation[0].sentences[0].contains("too few blocks"), "{:?}", found.isolation[0].sentences);
}
