//! Runs set against runs: what is refused, what has a verdict, and how often a verdict is false, by simulation with fixed seeds.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::environment::{HardwareTable, Machine};
use tare_model::findings::{Compared, Findings, RunComparison, RunComparisonRow, Standing, Verdict};
use tare_model::load::LoadModel;
use tare_model::trial::{Flag, Outcome, TrialRecord};
use tare_model::units::Span;
use tare_record::testing;

use super::of;
use crate::estimate::{ALPHA, POWER, TwoSamples};
use crate::{CompareError, Side, compare, power};

/// Findings of a run of four blocks, its trials changed by `change`.
fn run(id: &str, change: impl Fn(&mut TrialRecord)) -> Findings {
    let plan = testing::plan(4);
    let mut trials: Vec<_> = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    trials.iter_mut().for_each(change);
    let mut found = of(&plan, &trials);
    found.run.id = id.to_owned();
    found
}

/// The same run under another id, every value and effect of its container times `times`.
fn like(run: &Findings, id: &str, times: f64) -> Findings {
    let mut other = run.clone();
    other.run.id = id.to_owned();
    for metric in other.cases.iter_mut().flat_map(|case| &mut case.metrics) {
        metric.arms.iter_mut().filter(|own| own.arm == "container").for_each(|own| own.estimate.value *= times);
        metric.comparisons.iter_mut().filter(|own| own.arm == "container").for_each(|own| own.ratio.value *= times);
    }
    other
}

/// Runs whose container takes so many times as long.
fn runs(run: &Findings, side: &str, times: &[f64]) -> Vec<Findings> {
    times.iter().enumerate().map(|(at, times)| like(run, &format!("{side}{at}"), *times)).collect()
}

fn set(before: &[Findings], after: &[Findings]) -> Result<RunComparison, CompareError> {
    compare(&Side { label: "before", runs: before, names: &[] }, &Side { label: "after", runs: after, names: &[] })
}

fn answers(compared: &RunComparison) -> Vec<&RunComparisonRow> {
    compared.rows.iter().filter(|row| matches!(row.comparison.standing, Standing::Primary { .. })).collect()
}

const SPREAD: [f64; 3] = [0.998, 1.0, 1.002];

#[test]
fn one_run_on_a_side_yields_figures_and_no_verdict_at_all() {
    let first = run("a", |_| ());
    // The second run's host is a fifth slower: a difference of any size.
    let second = run("b", |record| {
        if let Outcome::Completed(m) = &mut record.outcome {
            *m.metrics.get_mut("response_time_p50_s").unwrap() *= 1.2;
        }
    });
    for (before, after) in [(vec![first.clone()], vec![second]), (vec![first.clone()], runs(&first, "b", &SPREAD))] {
        let compared = set(&before, &after).unwrap();
        assert!(compared.withheld.as_ref().is_some_and(|why| why.contains("one run on a side")), "{compared:?}");
        assert!(!compared.rows.is_empty());
        for row in &compared.rows {
            assert_eq!(row.comparison.verdict, Verdict::CannotSay, "{row:?}");
            assert_eq!((row.comparison.ends(), row.comparison.p_equal), (None, None), "{row:?}");
        }
        let value = compared.rows.iter().find(|row| row.arm == "native").unwrap();
        assert!(value.before.value > 0.0 && value.after.value > 0.0);
    }
}

#[test]
fn several_runs_of_each_side_answer_in_the_effects_of_primary_metrics_and_all_else_is_a_lead_at_most() {
    let base = run("a", |_| ());
    let slower = SPREAD.map(|own| own * 1.2);
    let compared = set(&runs(&base, "a", &SPREAD), &runs(&base, "b", &slower)).unwrap();
    assert_eq!(compared.withheld, None);
    let [answer] = answers(&compared)[..] else { panic!("{compared:?}") };
    assert_eq!((answer.arm.as_str(), answer.metric.as_str()), ("container", "response_time_p50_s"));
    assert_eq!((answer.compared, answer.comparison.verdict), (Compared::Effect, Verdict::Worse));
    assert!((answer.comparison.ratio.value - 1.2).abs() < 1e-9 && answer.comparison.ratio.n == 6);
    let said = "container over native now has a longer response time (median) than the first runs: +20.0 % [";
    assert!(answer.comparison.sentence.starts_with(said), "{}", answer.comparison.sentence);
    let others = compared.rows.iter().filter(|row| !matches!(row.comparison.standing, Standing::Primary { .. }));
    let (mut leads, mut same) = (0, 0);
    for row in others {
        match row.comparison.verdict {
            Verdict::Lead => leads += 1,
            Verdict::NoDifferenceSeen => same += 1,
            Verdict::CannotSay => assert_eq!(row.comparison.ratio.n, 0, "a metric of zero: {row:?}"),
            other => panic!("{other:?}: {row:?}"),
        }
    }
    assert!(leads > 0 && same > 0, "the container's values moved, the others' did not");
    let faster = set(&runs(&base, "b", &slower), &runs(&base, "a", &SPREAD)).unwrap();
    assert_eq!(answers(&faster)[0].comparison.verdict, Verdict::Better);
}

#[test]
fn what_runs_of_such_a_spread_detect_is_said_and_a_wide_interval_is_too_noisy() {
    let base = run("a", |_| ());
    let compared = set(&runs(&base, "a", &SPREAD), &runs(&base, "b", &[0.999, 1.0, 1.001])).unwrap();
    let own = &answers(&compared)[0].comparison;
    assert_eq!(own.verdict, Verdict::NoDifferenceSeen);
    assert!(own.sentence.ends_with("or more is detected, 4 times in 5"), "{}", own.sentence);
    assert!(own.detectable.is_some_and(|size| (0.002..0.02).contains(&size)), "{:?}", own.detectable);
    let wide = [0.5, 1.0, 2.0];
    let compared = set(&runs(&base, "a", &wide), &runs(&base, "b", &wide)).unwrap();
    assert_eq!(answers(&compared)[0].comparison.verdict, Verdict::TooNoisy);
}

#[test]
fn a_margin_of_the_study_makes_equal_runs_equivalent() {
    let mut base = run("a", |_| ());
    base.plan.study.margin = Some(0.02);
    let (before, mut after) = (runs(&base, "a", &SPREAD), runs(&base, "b", &SPREAD));
    assert_eq!(answers(&set(&before, &after).unwrap())[0].comparison.verdict, Verdict::Equivalent);
    after[0].plan.study.margin = None;
    let compared = set(&before, &after).unwrap();
    assert_eq!(answers(&compared)[0].comparison.verdict, Verdict::NoDifferenceSeen);
    assert!(compared.differences.iter().any(|own| own.starts_with("Margin: 0.02 in the first runs")), "{compared:?}");
}

#[test]
fn a_figure_that_a_run_has_not_or_that_its_own_analysis_withholds_has_no_verdict() {
    let base = run("a", |_| ());
    let (before, after) = (runs(&base, "a", &SPREAD), runs(&base, "b", &SPREAD.map(|own| own * 1.2)));
    let verdict = |after: &[Findings]| {
        let compared = set(&before, after).unwrap();
        let own = answers(&compared)[0].comparison.clone();
        (own.verdict, own.withheld.unwrap_or_default())
    };
    assert_eq!(verdict(&after).0, Verdict::Worse);
    let mut missing = after.clone();
    missing[1].cases[0].metrics[0].comparisons.clear();
    assert_eq!(verdict(&missing), (Verdict::CannotSay, "1 of 6 runs have no such figure".to_owned()));
    let mut limited = after.clone();
    limited[2].cases[0].metrics[0].comparisons[0].driver_limited.baseline = 3;
    let (own, why) = verdict(&limited);
    assert!(own == Verdict::CannotSay && why.starts_with("in b2, the driver was at its limit in 3 of 4"), "{why}");
    let mut broken = after;
    broken[0].audit.push(AuditEntry {
        check: AuditCheck::Mix,
        outcome: AuditOutcome::Broken,
        case: String::new(),
        arms: vec!["container".to_owned()],
        detail: "another mix.".to_owned(),
        consequence: String::new(),
    });
    let compared = set(&before, &broken).unwrap();
    let values = compared.rows.iter().filter(|row| row.arm == "container" && row.compared == Compared::Value);
    assert!(values.clone().count() > 0);
    for row in values.filter(|row| row.comparison.ratio.n > 0) {
        assert_eq!(row.comparison.withheld.as_deref(), Some("in b0, another mix"));
    }
}

#[test]
fn runs_whose_plans_differ_in_what_figures_depend_on_are_refused() {
    let base = run("a", |_| ());
    let before = runs(&base, "a", &SPREAD);
    let with = |change: &dyn Fn(&mut Findings)| {
        let mut after = runs(&base, "b", &SPREAD);
        after.iter_mut().for_each(change);
        set(&before, &after)
    };
    type Change = (&'static str, fn(&mut Findings));
    let refused: [Change; 6] = [
        ("guest", |run| run.plan.study.cases[0].guest.cpus += 1),
        ("phases", |run| run.plan.study.cases[0].phases.steady_state.ns *= 2),
        ("workload", |run| run.plan.study.cases[0].workload = "cpu".to_owned()),
        ("load", |run| {
            let load = LoadModel::Closed { clients: 2, think_time: Span::ZERO };
            run.plan.study.cases[0].load = load.into();
        }),
        ("scale", |run| run.plan.study.scale = 0.5),
        ("baseline native", |run| run.plan.study.arms[0].platform = "oci".to_owned()),
    ];
    for (what, change) in refused {
        let error = with(&change).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, CompareError::OtherPlan { .. }) && said.contains(what), "{what}: {said}");
        assert!(said.contains("arms of one study"), "{said}");
    }
    let listed: [Change; 6] = [
        ("Seed: ", |run| run.plan.study.seed += 9),
        ("Blocks: ", |run| run.plan.study.blocks += 2),
        ("Arm container has another platform or other options", |run| run.plan.study.arms[1].platform = "oci".into()),
        ("Disks, sda: not known in", |run| {
            run.environment.hardware.push(disks());
        }),
        ("client: Disks, sda", |run| {
            let machine = Machine { name: "client".to_owned(), hardware: vec![disks()], ..Machine::default() };
            run.environment.machines.push(machine);
        }),
        ("another in the second runs", |run| run.environment.sections[0].facts[0].1 = "another".to_owned()),
    ];
    for (what, change) in listed {
        let compared = with(&change).unwrap();
        assert!(compared.differences.len() == 1 && compared.differences[0].contains(what), "{what}: {compared:?}");
    }
    assert_eq!(with(&|_| ()).unwrap().differences, Vec::<String>::new());
    assert!(matches!(with(&|run| run.cases[0].id = "other".into()), Err(CompareError::NothingInCommon { .. })));
}

fn disks() -> HardwareTable {
    let row = ["sda", "a disk", "mq-deadline"].map(str::to_owned).to_vec();
    HardwareTable { title: "Disks".to_owned(), rows: vec![row], ..HardwareTable::default() }
}

#[test]
fn runs_of_one_side_repeat_one_study_and_a_copy_is_no_repeat() {
    let base = run("a", |_| ());
    let (before, after) = (runs(&base, "a", &SPREAD), runs(&base, "b", &SPREAD));
    let mut mixed = after.clone();
    mixed[1].plan.study.arms[1].platform = "oci".to_owned();
    let error = set(&before, &mixed).unwrap_err();
    assert!(matches!(&error, CompareError::Mixed { other, .. } if other == "b1"), "{error}");
    mixed[1] = after[0].clone();
    assert_eq!(set(&before, &mixed).unwrap_err(), CompareError::Twice { run: "b0".to_owned() });
    assert!(matches!(set(&before, &before), Err(CompareError::Twice { .. })), "on both sides");
    assert!(set(&before[..1], &before[..1]).is_ok(), "a run beside itself has no verdict");
    assert!(matches!(set(&[], &after), Err(CompareError::NothingInCommon { .. })));
}

#[test]
fn an_emulated_arm_is_compared_by_value_under_its_marked_name_and_never_with_a_real_one() {
    let mark = |arm: &'static str| {
        run("a", move |record| {
            if record.planned.arm == arm {
                record.flags.push(Flag { kind: "not-comparable".into(), detail: "emulated: no KVM".into() });
            }
        })
    };
    let (real, emulated) = (run("a", |_| ()), mark("container"));
    let compared = set(&runs(&emulated, "a", &SPREAD), &runs(&emulated, "b", &SPREAD)).unwrap();
    let rows: Vec<_> = compared.rows.iter().filter(|row| row.arm == "container").collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.compared == Compared::Value), "no effect");
    assert!(rows.iter().all(|row| row.arm_label == "container (emulated)"), "{rows:?}");
    for (a, b) in [(&real, &emulated), (&emulated, &real)] {
        let compared = set(&runs(a, "a", &SPREAD), &runs(b, "b", &SPREAD)).unwrap();
        let rows: Vec<_> = compared.rows.iter().filter(|row| row.arm == "container").collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| row.compared == Compared::Value));
        for row in rows {
            assert_eq!((row.comparison.verdict, row.comparison.ratio.n), (Verdict::NotComparable, 0), "{row:?}");
            assert_eq!(row.arm_label, "container (emulated)");
        }
    }
    let baseline = mark("native");
    let one = std::slice::from_ref(&baseline);
    let compared = set(one, one).unwrap();
    assert!(compared.rows.iter().filter(|row| row.arm == "native").all(|row| row.arm_label == "native (emulated)"));
}

/// What a run's logarithm moves by.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Exponential: a floor, and now and then much more.
    Skewed,
}

/// Share of comparisons of so many runs a side that are called different, where runs differ by 1 % and nothing else. Blocks within a run
/// differ little, so that each run's own interval is narrow.
fn called_different((m, n): (usize, usize), noise: Noise, times: u32) -> f64 {
    let base = run("a", |_| ());
    let mut rng = StdRng::seed_from_u64((m * 1000 + n) as u64);
    let mut side = |name: &str, runs_of_side: usize| {
        let drawn: Vec<f64> = (0..runs_of_side)
            .map(|_| {
                let own: f64 = match noise {
                    Noise::Normal => StandardNormal.sample(&mut rng),
                    Noise::Skewed => Exp1.sample(&mut rng),
                };
                (0.01 * own).exp()
            })
            .collect();
        runs(&base, name, &drawn)
    };
    let mut called = 0;
    for _ in 0..times {
        let compared = set(&side("a", m), &side("b", n)).unwrap();
        called += answers(&compared)
            .iter()
            .filter(|row| matches!(row.comparison.verdict, Verdict::Better | Verdict::Worse))
            .count();
    }
    called as f64 / f64::from(times)
}

/// Share of pairs of runs of so many blocks that the blocks alone call different: runs differ by 1 %, blocks of a run by 0.5 %.
fn called_different_by_blocks(blocks: usize, times: u32) -> f64 {
    let mut rng = StdRng::seed_from_u64(blocks as u64);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let mut run = || {
        let own = 0.01 * normal();
        (0..blocks).map(|_| own + 0.005 * normal()).collect::<Vec<f64>>()
    };
    let called = (0..times).filter(|_| {
        let (from, to) = (run(), run());
        TwoSamples { from: &from, to: &to, comparisons: 1 }.p_zero().is_some_and(|p| p <= ALPHA)
    });
    called.count() as f64 / f64::from(times)
}

#[test]
fn runs_that_differ_by_themselves_are_seldom_called_different_and_their_blocks_would_be_often() {
    const TIMES: u32 = 300;
    for blocks in [6, 20] {
        let share = called_different_by_blocks(blocks, TIMES);
        assert!(share > 0.35, "{blocks} blocks: {share}");
    }
    for sides in [(3, 3), (5, 5)] {
        let share = called_different(sides, Noise::Normal, TIMES);
        // 3 standard errors.
        assert!(share <= 0.05 + 0.038, "{sides:?}: {share}");
    }
}

/// Prints the table of ADR 0004: `cargo test --release -p tare-analysis false_verdicts_of_runs -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
#[allow(clippy::print_stdout, reason = "its output is the table")]
fn false_verdicts_of_runs_set_against_runs() {
    for blocks in [6, 20] {
        let share = called_different_by_blocks(blocks, 4000);
        println!("one run a side, by its {blocks} blocks: {:.1} % called different", share * 100.0);
    }
    for noise in [Noise::Normal, Noise::Skewed] {
        for sides in [(2, 2), (2, 5), (3, 3), (4, 4), (5, 5), (10, 10)] {
            let share = called_different(sides, noise, 4000);
            println!("{sides:?} runs, {noise:?}: {:.1} % called different", share * 100.0);
            // Four standard errors. Welch's t of two runs against five holds its level less well.
            let level = if sides.0 == sides.1 { 0.05 } else { 0.07 };
            assert!(share <= level + 0.014, "{sides:?} {noise:?}: {share}");
        }
    }
}

#[test]
fn what_is_said_to_be_detected_is_detected_four_times_in_five() {
    let mut rng = StdRng::seed_from_u64(77);
    let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| StandardNormal.sample(&mut rng)).collect() };
    for (m, n, comparisons) in [(3, 3, 1), (5, 5, 1), (5, 5, 4), (12, 12, 1)] {
        const TIMES: u32 = 1500;
        let mut seen = 0;
        for _ in 0..TIMES {
            let (before, other) = (draw(m), draw(n));
            let size = power::detectable_shift(TwoSamples { from: &before, to: &other, comparisons }).unwrap();
            let (from, to) = (draw(m), draw(n).iter().map(|own| own + size).collect::<Vec<_>>());
            let two = TwoSamples { from: &from, to: &to, comparisons };
            seen += u32::from(two.p_zero().unwrap() * f64::from(comparisons) <= ALPHA);
        }
        let share = f64::from(seen) / f64::from(TIMES);
        assert!((share - POWER).abs() < 0.04, "{m} and {n}, {comparisons}: {share}");
    }
}
