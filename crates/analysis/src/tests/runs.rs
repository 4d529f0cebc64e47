//! From made-up runs to findings.

use tare_model::findings::{Comparison, Standing, Verdict};
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::trial::{Flag, Outcome, Phase, TrialRecord};
use tare_record::{RunFolder, testing};

use super::of;
use crate::analyse;

fn whole(blocks: u32) -> (tare_model::plan::Plan, Vec<TrialRecord>) {
    let plan = testing::plan(blocks);
    let trials = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    (plan, trials)
}

#[test]
fn a_slower_arm_is_found_and_said_and_the_floor_is_measured() {
    let (plan, trials) = whole(6);
    let found = of(&plan, &trials);
    let ids: Vec<&str> = found.answer.iter().map(|own| own.id.as_str()).collect();
    let expected = ["idle/container/response_time_p50_s", "idle/container/service_demand_cpu_s"];
    assert_eq!(ids, expected, "the replica is not an answer, and other metrics are none");
    assert_eq!(
        found.answer[1].verdict,
        Verdict::Lead,
        "the CPU time of an operation does not answer, but its effect is clear"
    );
    let answer = &found.answer[0];
    assert_eq!((answer.arm.as_str(), answer.verdict), ("container", Verdict::Worse));
    assert!(
        answer.sentence.starts_with("container has a longer response time (median) than native: +"),
        "{}",
        answer.sentence
    );
    let case = &found.cases[0];
    assert_eq!(case.metrics[0].spec.id, "response_time_p50_s");
    let ratio = &case.metrics[0].comparisons[0];
    assert!((ratio.ratio.value - 1.05).abs() < 0.005 && ratio.ratio.n == 6 && ratio.blocks.len() == 6);
    assert!(ratio.floor.unwrap() > 0.0 && ratio.floor.unwrap() < 0.02);
    assert_eq!(case.metrics[0].comparisons[1].verdict, Verdict::NoiseFloor);
    assert_eq!(case.metrics[1].comparisons[0].verdict, Verdict::Lead, "of a metric that the study does not ask about");
    assert_eq!((case.distributions.len(), case.cpu.len(), case.timelines.len()), (3, 3, 3));
    assert!(
        found.differences.is_empty()
            && found.deviations.is_empty()
            && found.flagged.is_empty()
            && found.not_completed.is_empty()
    );
    assert_eq!(found.run.completed, 18);
    assert!(found.method.iter().any(|p| p.contains("noise floor is what the baseline shows against itself")));
}

#[test]
fn what_the_guest_weighs_answers_with_the_primary_metrics_and_the_largest_effect_comes_first() {
    let (mut plan, mut trials) = whole(12);
    plan.study.margin = Some(0.05);
    let own = [(common::START_TIME, 1.0), (common::IDLE_MEMORY, 3.0), (common::START_KERNEL, 3.0)];
    for record in &mut trials {
        let odd = 1.0 + 1e-3 * f64::from(record.planned.index % 7);
        for (id, factor) in own {
            let factor = if record.planned.arm == "container" { factor } else { 1.0 };
            record.metrics.push(MetricSpec::new(id, id, Unit::Seconds, Better::Lower));
            let Outcome::Completed(measured) = &mut record.outcome else { panic!("it completed") };
            measured.metrics.insert(id.to_owned(), factor * odd);
        }
    }
    let found = of(&plan, &trials);
    let said: Vec<(&str, Option<&str>, Verdict)> =
        found.answer.iter().map(|own| (own.metric.as_str(), own.case.as_deref(), own.verdict)).collect();
    let expected = [
        (common::IDLE_MEMORY, None, Verdict::Worse),
        ("response_time_p50_s", Some("idle"), Verdict::Worse),
        (common::SERVICE_DEMAND, Some("idle"), Verdict::Lead),
        (common::START_TIME, None, Verdict::Equivalent),
    ];
    assert_eq!(said, expected, "the parts of a start stay leads");
    let of_three = |own: &Comparison| matches!(own.standing, Standing::Primary { of: 3, .. });
    let primary = [&found.across[0], &found.across[2], &found.cases[0].metrics[0]];
    assert!(primary.iter().all(|metric| metric.comparisons.iter().any(of_three)), "{:?}", found.across);
    assert!(found.method.iter().any(|own| own.contains("The 3 primary comparisons")), "{:?}", found.method);
}

#[test]
fn where_nothing_can_be_said_the_cause_and_enough_blocks_are() {
    let (plan, mut trials) = whole(12);
    let spread = [0.6, 1.5, 0.9, 1.3, 0.7, 1.2];
    for record in &mut trials {
        let Outcome::Completed(measured) = &mut record.outcome else { panic!("it completed") };
        if record.planned.arm == "container" {
            *measured.metrics.get_mut("response_time_p50_s").unwrap() *= spread[record.planned.block as usize % 6];
        }
    }
    let said = |trials: &[TrialRecord]| {
        let found = of(&plan, trials);
        let own = found.answer.iter().find(|own| own.metric == "response_time_p50_s").unwrap();
        assert_eq!(own.verdict, Verdict::TooNoisy, "{}", own.sentence);
        own.sentence.clone()
    };
    let alone = said(&trials);
    assert!(alone.contains(", 4 times in 5. Its ratio differs by ") && alone.contains(" blocks ("), "{alone}");
    assert!(alone.ends_with(" would detect 10 %") || alone.ends_with(" would detect 20 %"), "{alone}");
    for cpu in trials.iter_mut().filter_map(|record| record.cpu.as_mut()) {
        (cpu.steal_s, cpu.foreign_s) = (0.0, 0.13 * cpu.window_s * f64::from(cpu.cpus));
    }
    let beside = said(&trials);
    assert!(beside.contains(". Other programs used 13 % of the CPUs in its trials; "), "{beside}");
    // Trials that failed are why, and the first of them says how.
    for record in trials.iter_mut().filter(|own| own.planned.arm == "container" && own.planned.block > 0) {
        record.outcome = Outcome::Failed { phase: Phase::Provision, reason: "no image.\nmore".to_owned() };
    }
    let lost = of(&plan, &trials).answer.into_iter().find(|own| own.verdict == Verdict::CannotSay).unwrap();
    assert!(lost.sentence.ends_with(". The first trial without a figure: no image"), "{}", lost.sentence);
}

#[test]
fn a_baseline_that_differs_from_itself_raises_an_alarm_and_one_that_does_not_raises_none() {
    let (plan, mut trials) = whole(12);
    for record in &mut trials {
        let replica = record.planned.arm == testing::ARMS[2];
        let odd = if record.planned.block.is_multiple_of(2) { 0.999 } else { 1.001 };
        let tare_model::trial::Outcome::Completed(measured) = &mut record.outcome else { panic!("it completed") };
        measured.metrics.values_mut().for_each(|value| *value = if replica { 2.0 * odd } else { 2.0 });
    }
    let alarms =
        |trials: &[TrialRecord]| of(&plan, trials).warnings.iter().filter(|own| own.starts_with("A/A alarm: ")).count();
    assert_eq!(alarms(&trials), 0);
    for record in trials.iter_mut().filter(|record| record.planned.arm == testing::ARMS[2]) {
        let tare_model::trial::Outcome::Completed(measured) = &mut record.outcome else { panic!("it completed") };
        measured.metrics.values_mut().for_each(|value| *value *= 1.05);
    }
    assert_eq!(alarms(&trials), 1);
    let warning = &of(&plan, &trials).warnings[0];
    assert!(warning.contains("native differs from itself") && warning.contains(": +5.0 % ["), "{warning}");
}

#[test]
fn the_order_of_the_trials_changes_nothing_and_json_holds_everything() {
    let (plan, mut trials) = whole(4);
    let found = of(&plan, &trials);
    trials.reverse();
    assert_eq!(of(&plan, &trials), found);
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<tare_model::findings::Findings>(&text).unwrap(), found);
}

#[test]
fn trials_without_figures_are_listed_and_never_counted_as_zero() {
    let (plan, mut trials) = whole(6);
    for record in trials.iter_mut().filter(|t| t.planned.arm == "container" && t.planned.block > 1) {
        record.outcome = Outcome::Failed { phase: Phase::Provision, reason: "no image".to_owned() };
    }
    assert_eq!(trials.pop().unwrap().planned.arm, "container");
    let found = of(&plan, &trials);
    assert_eq!(found.answer[0].verdict, Verdict::CannotSay);
    assert!(found.answer[0].sentence.contains("only 1 of 6 blocks completed on both"), "{}", found.answer[0].sentence);
    let hows: Vec<_> = found.not_completed.iter().map(|n| n.how.as_str()).collect();
    assert_eq!(hows.iter().filter(|how| **how == "failed in provision").count(), 4);
    assert_eq!(hows.iter().filter(|how| **how == "not run").count(), 1);
    let none = of(&plan, &[]);
    assert_eq!(none.answer[0].verdict, Verdict::CannotSay);
    assert_eq!((none.run.completed, none.not_completed.len()), (0, 18));
    assert!(serde_json::to_string(&none).is_ok());
}

#[test]
fn values_that_are_not_numbers_cost_their_block_only() {
    let (plan, mut trials) = whole(3);
    let broken = trials.iter_mut().find(|t| t.planned.arm == "container").unwrap();
    if let Outcome::Completed(m) = &mut broken.outcome {
        m.metrics.insert("response_time_p50_s".to_owned(), f64::NAN);
    }
    let found = of(&plan, &trials);
    assert_eq!(found.cases[0].metrics[0].comparisons[0].ratio.n, 2);
    let text = serde_json::to_string(&found).unwrap();
    assert!(serde_json::from_str::<tare_model::findings::Findings>(&text).is_ok());
}

#[test]
fn flags_and_differences_in_what_was_granted_are_reported() {
    let (plan, mut trials) = whole(2);
    trials[4].parity[0].granted = Some("2 CPUs".to_owned());
    trials[3].flags.push(Flag { kind: "not-comparable".to_owned(), detail: "emulated".to_owned() });
    let emulated = trials[3].planned.arm.clone();
    let found = of(&plan, &trials);
    assert!(found.differences.iter().any(|d| d.contains("2 CPUs in block 2")), "{:?}", found.deviations);
    assert_eq!(found.flagged.len(), 1);
    if emulated == "container" {
        assert_eq!(found.answer[0].verdict, Verdict::NotComparable);
    }
}

#[test]
fn a_folder_is_analysed_and_what_is_wrong_with_it_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (plan, trials) = whole(2);
    testing::write_run(dir.path(), &plan, &trials);
    let folder = RunFolder::open(dir.path()).unwrap();
    let found = analyse(&folder).unwrap();
    assert_eq!(found.run.id, testing::RUN_ID);
    assert!(found.run.finished_at.is_some() && found.differences.is_empty());
    folder.write_findings(&found).unwrap();
    assert_eq!(folder.read_findings().unwrap(), Some(found));
    std::fs::write(dir.path().join("study.toml"), "another = true\n").unwrap();
    let found = analyse(&RunFolder::open(dir.path()).unwrap()).unwrap();
    assert!(
        found.differences[0].starts_with("study.toml: is not the file that the run began with"),
        "{:?}",
        found.differences
    );
}

#[test]
fn objectives_are_judged_on_every_arm() {
    let (mut plan, trials) = whole(6);
    plan.study.cases[0].qos =
        vec![tare_model::study::QosObjective { metric: "response_time_p50_s".to_owned(), bound: 20.5e-6 }];
    let judged = of(&plan, &trials).cases[0].objectives.clone();
    let met = |arm: &str| {
        let found = judged.iter().find(|o| o.arm == arm).unwrap();
        (found.blocks.iter().filter(|b| b.2).count(), found.planned)
    };
    assert_eq!((met("native"), met("container"), judged.len()), ((6, 6), (0, 6), 3), "20 us, and 5 % more");
}

#[test]
fn a_metric_that_completed_trials_withhold_is_reported_once_and_not_compared() {
    let (mut plan, mut trials) = whole(6);
    plan.study.cases[0].busy_target = true;
    let demand = tare_model::metric::common::SERVICE_DEMAND;
    for record in &mut trials {
        if let Outcome::Completed(m) = &mut record.outcome {
            m.metrics.remove(demand);
            if record.planned.arm == "container" {
                m.metrics.remove("operations_per_s");
            }
        }
    }
    let found = of(&plan, &trials);
    let case = &found.cases[0];
    assert!(case.metrics.iter().all(|m| m.spec.id != demand));
    let transactions = case.metrics.iter().find(|m| m.spec.id == "operations_per_s").unwrap();
    assert_eq!((transactions.arms.len(), transactions.comparisons.len()), (2, 1), "the replica is still compared");
    assert_eq!(case.not_measured.len(), 2, "{:?}", case.not_measured);
    assert!(case.not_measured.iter().any(|s| s == "Not measured here on container: transactions."));
    assert!(case.not_measured.iter().any(|s| s.contains("busy loops")), "{:?}", case.not_measured);
    assert!(case.metrics.iter().flat_map(|m| &m.comparisons).all(|c| c.verdict != Verdict::CannotSay));
    assert!(case.cpu.iter().all(|cpu| cpu.per_work_s.is_none()));
}

#[test]
fn the_parts_of_a_start_are_missed_on_no_arm_without_a_kernel_of_its_own() {
    let (plan, mut trials) = whole(6);
    let kernel = tare_model::metric::common::START_KERNEL;
    for record in &mut trials {
        record.metrics.push(MetricSpec::new(kernel, "guest start, kernel", Unit::Seconds, Better::Lower));
    }
    let nowhere = of(&plan, &trials).cases[0].clone();
    assert!(nowhere.not_measured.is_empty() && nowhere.metrics.iter().all(|m| m.spec.id != kernel));
    for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
        let Outcome::Completed(m) = &mut record.outcome else { panic!("it completed") };
        m.metrics.insert(kernel.into(), 2.5);
    }
    let case = of(&plan, &trials).cases[0].clone();
    assert!(case.not_measured.is_empty(), "{:?}", case.not_measured);
    let found = case.metrics.iter().find(|m| m.spec.id == kernel).unwrap();
    assert_eq!(found.arms.iter().map(|arm| arm.arm.as_str()).collect::<Vec<_>>(), ["container"]);
}

#[test]
fn a_check_that_was_not_made_is_reported() {
    let (plan, mut trials) = whole(2);
    assert!(of(&plan, &trials).unchecked.is_empty());
    for record in trials.iter_mut().take(2) {
        record.samples.retain(|s| s.source != tare_model::sample::Source::Client);
    }
    let notes = of(&plan, &trials).unchecked;
    assert!(notes[0].contains("not checked in 2 of 6 completed trials: their windows hold 0 intervals"), "{notes:?}");
}
