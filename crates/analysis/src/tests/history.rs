//! Histories: change points against Apache Otava's and by simulation, and which runs make one series.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Exp1, StandardNormal, StudentT};
use serde_json::Value;
use tare_model::environment::{Environment, Section};
use tare_model::findings::{Findings, Verdict};
use tare_model::history::{EffectSeries, History, RunEffects};
use tare_model::load::LoadModel;
use tare_model::plan::Plan;
use tare_model::units::Span;
use tare_record::testing;

use super::of;
use crate::history::{ChangeRule, EQUAL_SERIES_WITH_CHANGE, FEWEST_RUNS, change_points, size as size_of};
use crate::runs::likeness::{depends_on, differs};
use crate::{history, run_effects};

#[test]
fn change_points_are_those_of_otava() {
    let expected: Value = serde_json::from_str(include_str!("../../oracle/change_points.json")).unwrap();
    let (mut series, mut found) = (0, 0);
    for own in expected["series"].as_array().unwrap() {
        let floats = |value: &Value| value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>();
        let values = floats(&own["values"]);
        for by in own["by"].as_array().unwrap() {
            let rule = ChangeRule { window: by["window"].as_u64().unwrap() as usize, p: by["p"].as_f64().unwrap() };
            let changes = change_points(&values, rule);
            let at: Vec<u64> = changes.iter().map(|change| change.at as u64).collect();
            assert_eq!(Value::from(at), by["at"], "{} of {} values by {rule:?}", own["kind"], values.len());
            for (change, theirs) in changes.iter().zip(floats(&by["p_values"])) {
                assert!((change.p - theirs).abs() <= 1e-12 + 1e-6 * theirs, "{} is not {theirs}", change.p);
            }
            // Otava 0.8.0 keeps a p-value that is no longer right after it has removed a point. At the rule in force that decides nothing.
            assert!(rule != ChangeRule::OTAVA || by["otava"] == by["at"], "{} of {} values", own["kind"], values.len());
            (series, found) = (series + 1, found + changes.len());
        }
    }
    assert!(series >= 240 && found >= 300, "{found} changes in {series} series");
}

/// What the logarithm of a run's effect moves by, in its own unit.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Student's t with 3 degrees of freedom.
    Heavy,
    /// Exponential.
    Skewed,
}

fn noise(kind: Noise, n: usize, rng: &mut StdRng) -> Vec<f64> {
    let heavy = StudentT::new(3.0).unwrap();
    let one = |rng: &mut StdRng| match kind {
        Noise::Normal => StandardNormal.sample(rng),
        Noise::Heavy => heavy.sample(rng),
        Noise::Skewed => Exp1.sample(rng),
    };
    (0..n).map(|_| one(rng)).collect()
}

/// Share of series of so many equal runs in which a change is found, and in which one is confirmed.
fn false_alarms(kind: Noise, n: usize, series: u32) -> [f64; 2] {
    let mut rng = StdRng::seed_from_u64(1000 + n as u64);
    let (mut found, mut confirmed) = (0, 0);
    for _ in 0..series {
        let values = noise(kind, n, &mut rng);
        let at: Vec<usize> = change_points(&values, ChangeRule::OTAVA).iter().map(|change| change.at).collect();
        let ends = at.iter().skip(1).copied().chain([n]);
        let starts = std::iter::once(0).chain(at.iter().copied());
        let any = at.iter().zip(starts.zip(ends)).any(|(at, (start, end))| {
            size_of(&values[start..*at], &values[*at..end]).is_some_and(|(.., confirmed)| confirmed)
        });
        (found, confirmed) = (found + u32::from(!at.is_empty()), confirmed + u32::from(any));
    }
    [found, confirmed].map(|count| f64::from(count) / f64::from(series))
}

/// Share of series in which a change of so many standard deviations after `before` runs is found within two runs of its place, once
/// `after` runs have it.
fn detected(size: f64, (before, after): (usize, usize), series: u32) -> f64 {
    let mut rng = StdRng::seed_from_u64(2000 + (before * 100 + after) as u64);
    let found = (0..series).filter(|_| {
        let mut values = noise(Noise::Normal, before + after, &mut rng);
        values[before..].iter_mut().for_each(|value| *value += size);
        change_points(&values, ChangeRule::OTAVA).iter().any(|change| change.at.abs_diff(before) <= 2)
    });
    found.count() as f64 / f64::from(series)
}

/// Of the changes of so many standard deviations that are found, the share whose interval holds their size, and how many were found.
fn coverage(size: f64, (before, after): (usize, usize), series: u32) -> (f64, u32) {
    let mut rng = StdRng::seed_from_u64(3000 + (before * 100 + after) as u64);
    let (mut held, mut found) = (0, 0);
    for _ in 0..series {
        let mut values = noise(Noise::Normal, before + after, &mut rng);
        values[before..].iter_mut().for_each(|value| *value += size);
        let [change] = change_points(&values, ChangeRule::OTAVA)[..] else { continue };
        let (from, to) = values.split_at(change.at);
        let Some((low, high)) = size_of(from, to).unwrap().0.ends else { continue };
        (held, found) = (held + u32::from(low <= size && size <= high), found + 1);
    }
    (f64::from(held) / f64::from(found), found)
}

#[test]
fn equal_runs_seldom_show_a_change_and_large_changes_are_found() {
    for n in [FEWEST_RUNS, 10, 30] {
        let [_, share] = false_alarms(Noise::Normal, n, 1000);
        // Four standard errors.
        let error = (EQUAL_SERIES_WITH_CHANGE / 1000.0).sqrt();
        assert!(share <= EQUAL_SERIES_WITH_CHANGE + 4.0 * error, "{n} runs: {share}");
    }
    assert!(detected(5.0, (15, 10), 200) > 0.9);
}

/// Prints the tables of docs/reference/history.md: `bench/statistics.sh` runs it.
#[test]
#[ignore = "takes minutes"]
#[allow(clippy::print_stdout, reason = "its output is the table")]
fn history_false_alarms() {
    let mut largest = 0.0f64;
    for n in [3, 4, 5, 6, 8, 10, 20, 30, 50, 100] {
        let shares = [Noise::Normal, Noise::Heavy, Noise::Skewed].map(|kind| false_alarms(kind, n, 20_000));
        if (FEWEST_RUNS..=50).contains(&n) {
            largest = shares.iter().map(|[_, confirmed]| *confirmed).fold(largest, f64::max);
        }
        let [normal, heavy, skewed] =
            shares.map(|[found, confirmed]| format!("{:.2} % ({:.2} % confirmed)", found * 100.0, confirmed * 100.0));
        println!("{n} equal runs: {normal}, heavy {heavy}, skewed {skewed} of series with a change");
    }
    for size in [2.0, 3.0, 5.0, 10.0] {
        let found = [2, 3, 4, 5, 8, 12].map(|after| {
            let share = detected(size, (20, after), 2000);
            format!("{after} runs: {:.0} %", share * 100.0)
        });
        println!("a change of {size} standard deviations after 20 runs: {}", found.join(", "));
    }
    for size in [1.5, 2.0, 3.0, 5.0] {
        let (held, found) = coverage(size, (20, 12), 4000);
        println!(
            "its interval, of {size} after 20 runs and with 12: holds it in {:.1} of 100, of {found}",
            held * 100.0
        );
    }
    assert!(largest <= EQUAL_SERIES_WITH_CHANGE, "{largest}");
}

/// A run of four blocks whose container takes `times` as long, and the plan and host changed.
fn run(number: u32, times: f64, change: impl Fn(&mut Findings)) -> RunEffects {
    let plan = testing::plan(4);
    let trials: Vec<_> = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    let mut found = of(&plan, &trials);
    found.run.id = format!("20260102-03{number:02}00-00af");
    found.run.root_hash = format!("{number:064x}");
    found.run.started_at = format!("2026-01-02T03:{number:02}:00Z");
    for metric in found.cases.iter_mut().flat_map(|case| &mut case.metrics) {
        let own = metric.comparisons.iter_mut().filter(|own| own.arm == "container");
        own.for_each(|own| own.ratio.value *= times * (1.0 + 0.001 * testing::noise(number.into())));
    }
    change(&mut found);
    run_effects(&found)
}

fn runs(of: impl IntoIterator<Item = (u32, f64)>) -> Vec<RunEffects> {
    of.into_iter().map(|(number, times)| run(number, times, |_| ())).collect()
}

fn primary(history: &History) -> Vec<&EffectSeries> {
    history.series.iter().filter(|own| own.metric.primary).collect()
}

#[test]
fn a_change_says_between_which_runs_how_large_and_which_way() {
    let mut all = runs((0..10).map(|number| (number, 1.0)));
    all.extend((10..20).map(|number| {
        run(number, 1.05, |found| {
            found.run.tare_version = "0.2.0".to_owned();
            found.plan.study.arms[1].options = "another image".into();
        })
    }));
    // In whatever order they were added.
    all.reverse();
    let found = history(&all);
    let [own] = primary(&found)[..] else { panic!("{:?}", primary(&found)) };
    assert_eq!(
        (own.id.as_str(), own.points.len(), own.host, own.plan),
        ("idle/container/response_time_p50_s", 20, 1, 1)
    );
    let [change] = &own.change_points[..] else { panic!("{:?}", own.change_points) };
    assert_eq!((change.before.as_str(), change.after.as_str()), ("20260102-030900-00af", "20260102-031000-00af"));
    assert_eq!((change.runs_before, change.runs_after, change.verdict), (10, 10, Verdict::Worse));
    let (low, high) = (change.ratio.low.unwrap(), change.ratio.high.unwrap());
    assert!(low < 1.05 && 1.05 < high && high - low < 0.004, "{:?}", change.ratio);
    assert_eq!(change.differences.len(), 2, "{:?}", change.differences);
    assert!(change.differences[0].contains("0, then 0.2.0") && change.differences[1].contains("options"));
    let said = "container over native, response time (median): +4.98 % [+";
    assert!(
        change.sentence.starts_with(said) && change.sentence.contains("(worse) from run 20260102-031000"),
        "{}",
        change.sentence
    );
    assert!(found.runs.is_sorted_by_key(|run| run.started_at.clone()) && found.runs.len() == 20);
    // More throughput is better; less is worse.
    let throughput = found.series.iter().find(|own| own.id == "idle/container/operations_per_s").unwrap();
    assert_eq!((throughput.metric.primary, throughput.change_points[0].verdict), (false, Verdict::Better));
}

#[test]
fn few_runs_and_runs_without_a_verdict_show_no_change() {
    let few = history(&runs([(0, 1.0), (1, 1.0), (2, 2.0), (3, 2.0)]));
    let own = primary(&few)[0];
    assert!(
        own.change_points.is_empty() && own.withheld.as_ref().is_some_and(|why| why.starts_with("4 of the 6 runs"))
    );
    let mut all = runs((0..20).map(|number| (number, if number < 10 { 1.0 } else { 1.05 })));
    let whole = primary(&history(&all))[0].change_points.len();
    for run in all.iter_mut().skip(10) {
        run.effects.iter_mut().for_each(|own| own.fault = Some("the driver was at its limit".to_owned()));
    }
    let limited = history(&all);
    let own = primary(&limited)[0];
    assert_eq!((whole, own.change_points.len(), own.points.len()), (1, 0, 20));
}

#[test]
fn another_host_and_another_plan_begin_a_series_and_another_seed_does_not() {
    let on = |model: &str| {
        let facts = vec![("model".to_owned(), model.to_owned())];
        Environment { sections: vec![Section { title: "CPU".to_owned(), facts }], ..Environment::default() }
    };
    let mut all = runs([(0, 1.0), (1, 1.0)]);
    all.push(run(2, 1.0, |found| found.plan.study.seed = 99));
    all.push(run(3, 1.0, |found| found.environment = on("another")));
    all.push(run(4, 1.0, |found| found.plan.study.cases[0].guest.cpus = 2));
    all.push(run(5, 1.0, |_| ()));
    let found = history(&all);
    let of: Vec<(u32, u32, usize)> = primary(&found).iter().map(|own| (own.host, own.plan, own.points.len())).collect();
    assert_eq!(of, [(1, 1, 4), (2, 1, 1), (1, 2, 1)]);
    let splits: Vec<&str> = primary(&found).iter().filter_map(|own| own.split.as_deref()).collect();
    assert!(splits[0].contains("another host (CPU, model: made up, then another)"), "{splits:?}");
    assert!(splits[1].contains("its plan differs") && splits.len() == 2, "{splits:?}");
    assert_eq!(found.hosts.len(), 2);
}

#[test]
fn what_must_not_be_compared_is_no_series() {
    let found = run(0, 1.0, |_| ());
    assert!(found.effects.iter().all(|own| own.arm == "container"), "the replica is none");
    let none = run(0, 1.0, |found| {
        found.cases[0].metrics[0].comparisons[0].verdict = Verdict::NotComparable;
        found.cases[0].metrics[1].comparisons[0].ratio.n = 0;
    });
    assert_eq!(none.effects.len() + 2, found.effects.len());
}

#[test]
fn a_series_depends_on_what_compare_refuses() {
    let change: [fn(&mut Plan); 9] = [
        |plan| plan.study.scale = 0.5,
        |plan| plan.study.arms[0].options = "other".into(),
        |plan| plan.study.lab.mtu = 9000,
        |plan| plan.study.cases[0].workload = "other".to_owned(),
        |plan| plan.study.cases[0].parameters = "other".into(),
        |plan| plan.study.cases[0].load = LoadModel::Closed { clients: 2, think_time: Span::ZERO }.into(),
        |plan| plan.study.cases[0].phases.warm_up = Span::from_secs(9),
        |plan| plan.study.cases[0].guest.cpus = 8,
        |plan| plan.study.cases[0].instances = 2,
    ];
    let alike: [fn(&mut Plan); 5] = [
        |plan| plan.study.seed = 1,
        |plan| plan.study.blocks = 9,
        |plan| plan.study.arms[1].options = "other".into(),
        |plan| plan.study.lab.sample_interval = Span::from_secs(9),
        |plan| plan.study.cases[0].label = "other".to_owned(),
    ];
    let digest = |plan: &Plan, case| tare_record::digest_of(&depends_on(&plan.study, case));
    let plan = testing::plan(4);
    for (changed, changes) in change.into_iter().map(|own| (own, true)).chain(alike.into_iter().map(|own| (own, false)))
    {
        let mut other = plan.clone();
        changed(&mut other);
        assert_eq!(differs(&plan.study, &other.study).is_some(), changes);
        for case in [None, Some("idle")] {
            assert_eq!(
                digest(&plan, case) != digest(&other, case),
                changes,
                "{:?}",
                differs(&plan.study, &other.study)
            );
        }
    }
}
