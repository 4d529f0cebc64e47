//! Searches, request types, resources and scores: from made-up runs to findings, answers and notes.

use std::collections::BTreeMap;

use tare_model::Span;
use tare_model::capacity::{CapacitySearch, CapacitySpec, LoadShare, Probe, ProbeCause, ScoreSpec, metric_spec};
use tare_model::findings::{Answer, Comparison, Findings, Verdict};
use tare_model::histogram::{Bin, Histogram};
use tare_model::load::LoadKind;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::sample::{Sample, Source};
use tare_model::study::{Case, CaseLoad, Guests, QosObjective};
use tare_model::trial::{Outcome, RequestType, TrialRecord};
use tare_record::testing;

use super::of;

const CLOSED: LoadKind = LoadKind::Closed { think_time: Span::ZERO };

/// One case a name that looks for its capacity, two arms.
fn plan(blocks: u32, cases: &[&str]) -> Plan {
    let mut plan = testing::plan(blocks);
    plan.study.arms.truncate(2);
    let spec = CapacitySpec { kind: CLOSED, from: 50.0, most: 5000.0, precision: 0.05, iterations: 2, drivers: 1 };
    let first = Case { load: CaseLoad::Capacity(spec), ..plan.study.cases[0].clone() };
    plan.study.cases =
        cases.iter().map(|id| Case { id: (*id).to_owned(), label: (*id).to_owned(), ..first.clone() }).collect();
    number(&mut plan);
    plan
}

/// Every arm of every case once a block.
fn number(plan: &mut Plan) {
    let study = &plan.study;
    let one = |block: u32| {
        let arms = |case: &str| study.arms.iter().map(|arm| (case.to_owned(), arm.id.clone())).collect::<Vec<_>>();
        let all: Vec<(String, String)> = study.cases.iter().flat_map(|case| arms(&case.id)).collect();
        all.into_iter().map(move |(case, arm)| (block, case, arm))
    };
    let all: Vec<(u32, String, String)> = (1..=study.blocks).flat_map(one).collect();
    let trial = |(index, (block, case, arm)): (usize, (u32, String, String))| PlannedTrial {
        index: index as u32,
        block,
        case,
        arm,
    };
    plan.trials = all.into_iter().enumerate().map(trial).collect();
}

fn probe(load: f64, failed: Option<&str>) -> Probe {
    let cause = failed.map(|_| ProbeCause::Qos);
    let requests = if failed.is_none() { types(load as u64) } else { Vec::new() };
    Probe {
        load,
        failed: failed.map(Into::into),
        cause,
        window_ns: (100_000_000_000, 108_000_000_000),
        requests,
        ..Probe::default()
    }
}

/// Two types: of the second too few for a percentile.
fn types(load: u64) -> Vec<RequestType> {
    let one = |name: &str, requests: u64, good: u64, each_s: f64, bytes: u64| {
        let ns = (each_s * 1e9) as u64;
        let bins = vec![Bin { low: ns, high: ns, count: requests }];
        RequestType {
            name: name.to_owned(),
            requests,
            good,
            tolerable: requests - good,
            bytes: bytes * requests,
            response_s: each_s * requests as f64,
            times: Histogram { bins, min: ns, max: ns, sum: u128::from(ns * requests), ..Histogram::default() },
            ..RequestType::default()
        }
    };
    vec![one("login", load * 10, load * 9, 0.5, 30_000), one("logout", load, load, 1.0, 70_000)]
}

/// A trial that searched and found `held`, the next load up being 5 % higher and missed; `missed` false: nothing was tried above.
fn searched(plan: &Plan, index: u32, held: f64, missed: bool) -> TrialRecord {
    let mut record = testing::trial(plan, index);
    let above = (held.max(50.0) * 1.05).round();
    let miss = Some("95 % of requests were to be good, and 93.1 % were");
    let mut probes = vec![probe(50.0, if held >= 50.0 { None } else { miss })];
    if held > 0.0 {
        probes.extend([probe(held, None), probe(held, None)]);
    }
    if missed {
        probes.insert(1, probe(above, miss));
    }
    let requests = probes.iter().rev().find(|probe| probe.failed.is_none()).map(|probe| probe.requests.clone());
    let rate = MetricSpec::new("operations_per_s", "requests", Unit::OperationsPerSecond, Better::Higher);
    record.metrics = vec![metric_spec(CLOSED), rate];
    let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
    m.metrics = BTreeMap::from([("capacity".to_owned(), held), ("operations_per_s".to_owned(), held / 10.0)]);
    m.requests = requests.unwrap_or_default();
    let missed = missed.then_some(above);
    m.search = Some(CapacitySearch { held, missed, probes, ended: "found".into() });
    record
}

/// A run in which the arms hold these loads, one entry a block and case.
fn run(plan: &Plan, native: &[f64], container: &[f64]) -> Findings {
    let trials: Vec<TrialRecord> = (0..plan.trials.len() as u32)
        .map(|index| {
            let planned = &plan.trials[index as usize];
            let case = plan.study.cases.iter().position(|case| case.id == planned.case).unwrap();
            let at = (planned.block as usize - 1) * plan.study.cases.len() + case;
            searched(plan, index, if planned.arm == "native" { native[at] } else { container[at] }, true)
        })
        .collect();
    of(plan, &trials)
}

fn only(found: &Findings) -> (&Answer, &Comparison) {
    (&found.answer[0], &found.cases[0].metrics[0].comparisons[0])
}

#[test]
fn the_answer_is_what_half_of_the_instances_hold_and_how_many_times_as_many() {
    let found = run(&plan(3, &["banking"]), &[500.0, 520.0, 510.0], &[315.0, 325.0, 320.0]);
    let (answer, comparison) = only(&found);
    assert_eq!((answer.verdict, comparison.verdict), (Verdict::Worse, Verdict::Worse));
    let arm = found.cases[0].capacity.iter().find(|arm| arm.arm == "container").unwrap();
    let fit = arm.fit.as_ref().unwrap();
    let half = found.cases[0].metrics[0].arms.iter().find(|own| own.arm == "container").unwrap();
    assert_eq!(half.estimate, fit.half, "the metric's figure is that of the fit");
    assert!(fit.half.value > 320.0 && fit.half.value < 336.0 && fit.half.n == 3 && fit.tries == 12, "{fit:?}");
    let against = fit.against.as_ref().unwrap();
    assert!(against.p < 0.05 && against.ratio == comparison.ratio, "{against:?}");
    let (low, high) = (comparison.ratio.low.unwrap(), comparison.ratio.high.unwrap());
    assert_eq!(
        answer.sentence,
        format!(
            "On container, half of the instances meet every objective with {:.0} sessions, on native with {:.0}: {:.2} times as \
             many (95 % interval {low:.2} to {high:.2})",
            fit.half.value,
            found.cases[0].capacity[0].fit.as_ref().unwrap().half.value,
            comparison.ratio.value
        )
    );
    assert_eq!(arm.searches.len(), 3);
    let first = &arm.searches[0];
    assert_eq!((first.held, first.missed, first.iterations, first.tried.len()), (315.0, Some(331.0), 2, 4));
    assert!(first.tried[1].1.as_deref().is_some_and(|why| why.contains("93.1 %")) && first.tried[2].1.is_none());
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Findings>(&text).unwrap(), found);
}

#[test]
fn one_block_has_no_interval_and_the_sentence_says_so() {
    let found = run(&plan(1, &["banking"]), &[510.0], &[320.0]);
    let (answer, _) = only(&found);
    assert_eq!(answer.verdict, Verdict::CannotSay);
    assert_eq!(
        answer.sentence,
        "On container, 320 sessions meet every objective, on native 510: 0.63 times as many, from a single block, so there \
         is no interval"
    );
}

#[test]
fn a_difference_within_a_step_of_the_search_is_none() {
    let found = run(&plan(3, &["banking"]), &[500.0, 500.0, 500.0], &[490.0, 490.0, 490.0]);
    let (answer, comparison) = only(&found);
    assert_eq!(answer.verdict, Verdict::NoDifferenceSeen, "{}", answer.sentence);
    assert!(answer.sentence.contains(": no difference detected; "), "{}", answer.sentence);
    assert!(comparison.detectable.is_some_and(|size| size >= 0.02), "{comparison:?}");
    let same = run(&plan(3, &["banking"]), &[500.0; 3], &[500.0; 3]);
    assert_eq!(only(&same).0.verdict, Verdict::NoDifferenceSeen);
    assert!(only(&same).1.ratio.low.is_some_and(|low| low < 0.99), "a step is not known to be of no width");
    assert_eq!(same.cases[0].metrics[1].comparisons.len(), 1, "at equal loads all metrics are compared");
    assert!(same.cases[0].not_measured.is_empty());
}

#[test]
fn tries_that_show_nothing_are_in_no_fit() {
    let plan = plan(2, &["banking"]);
    let tries = |extra: &[(f64, ProbeCause)]| {
        let found = of_all(&plan, |index| {
            let mut record = searched(&plan, index, 500.0, true);
            let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
            let probes = &mut m.search.as_mut().unwrap().probes;
            let odd = extra.iter().map(|(load, cause)| Probe { cause: Some(*cause), ..probe(*load, Some("odd")) });
            probes.splice(0..0, odd);
            record
        });
        found.cases[0].capacity[0].fit.as_ref().unwrap().tries
    };
    let plain = tries(&[]);
    assert_eq!(tries(&[(10.0, ProbeCause::TooFew)]), plain, "too small to be judged");
    assert_eq!(tries(&[(900.0, ProbeCause::Failed)]), plain, "once broken, and not repeated");
    assert_eq!(tries(&[(900.0, ProbeCause::Failed), (900.0, ProbeCause::Invalid)]), plain + 2, "twice, in two blocks");
    assert_eq!(tries(&[(900.0, ProbeCause::Qos)]), plain + 2);
}

#[test]
fn metrics_at_different_loads_are_not_compared_and_it_is_said() {
    let found = run(&plan(3, &["banking"]), &[500.0, 520.0, 510.0], &[315.0, 325.0, 320.0]);
    let case = &found.cases[0];
    assert!(case.metrics[1].comparisons.is_empty() && case.metrics[1].arms.len() == 2);
    assert_eq!(case.not_measured.len(), 1);
    assert!(case.not_measured[0].contains("This load differs between arms"), "{}", case.not_measured[0]);
}

#[test]
fn where_no_load_holds_or_none_misses_nothing_is_made_up() {
    let none = run(&plan(3, &["banking"]), &[510.0; 3], &[0.0; 3]);
    let (answer, comparison) = only(&none);
    assert_eq!((answer.verdict, comparison.ratio.low), (Verdict::Worse, None), "{answer:?}");
    assert!(comparison.ratio.high.is_some_and(|high| high < 0.2), "{comparison:?}");
    let said = "On container, half of the instances meet every objective with not even 50 sessions, on native with 5";
    assert!(answer.sentence.starts_with(said) && !answer.sentence.contains("times"), "{}", answer.sentence);

    let plan = plan(3, &["banking"]);
    let capped = |arms: &[&str]| {
        let of = |index: u32| {
            let arm = plan.trials[index as usize].arm.as_str();
            searched(&plan, index, if arms.contains(&arm) { 5000.0 } else { 400.0 }, !arms.contains(&arm))
        };
        of_all(&plan, of)
    };
    let both = capped(&["native", "container"]);
    assert_eq!(only(&both).0.verdict, Verdict::CannotSay);
    assert!(
        only(&both)
            .0
            .sentence
            .contains("with at least 5,000 sessions, on native with at least 5,000: cannot say which serves more")
    );
    let one = capped(&["native"]);
    assert_eq!(only(&one).0.verdict, Verdict::Worse);
    assert!(
        only(&one)
            .0
            .sentence
            .contains("on native with at least 5,000: at most 0.08 times as many (95 % interval up to 0."),
        "{}",
        only(&one).0.sentence
    );
}

fn of_all(plan: &Plan, make: impl Fn(u32) -> TrialRecord) -> Findings {
    let trials: Vec<TrialRecord> = (0..plan.trials.len() as u32).map(make).collect();
    of(plan, &trials)
}

#[test]
fn the_published_scores_come_out_of_the_published_capacities() {
    let mut plan = plan(1, &["banking", "ecommerce", "support"]);
    let references = [("banking", 120.0), ("ecommerce", 114.0), ("support", 162.0)];
    plan.study.score = Some(ScoreSpec { references: references.map(|(case, of)| (case.to_owned(), of)).to_vec() });
    let found = run(&plan, &[2600.0, 4100.0, 2600.0], &[2300.0, 3200.0, 2200.0]);
    let score = found.score.unwrap();
    let of = |arm: &str| score.arms.iter().find(|(own, _)| own == arm).map(|(_, e)| e.value.round());
    assert_eq!((of("native"), of("container")), (Some(2321.0), Some(1940.0)));
    let (arm, ratio) = &score.ratios[0];
    assert_eq!((arm.as_str(), ratio.n, ratio.low), ("container", 1, None));
    assert!((ratio.value - 1940.0 / 2321.0).abs() < 1e-3);
    let incomplete = run(&plan, &[2600.0, 4100.0, 2600.0], &[2300.0, 0.0, 2200.0]).score.unwrap();
    assert!(incomplete.arms.len() == 1 && incomplete.ratios.is_empty(), "no score without every case");
}

#[test]
fn request_tables_follow_the_published_rules_an_iteration_each() {
    let found = run(&plan(1, &["banking"]), &[500.0], &[300.0]);
    let native = found.cases[0].requests.iter().find(|arm| arm.arm == "native").unwrap();
    assert_eq!(native.iterations.iter().map(|t| (t.block, t.iteration)).collect::<Vec<_>>(), [(1, 1), (1, 2)]);
    let table = &native.iterations[0];
    assert!((table.load - 500.0).abs() < 1e-9 && (table.window_s - 8.0).abs() < 1e-9 && table.met);
    // 5,000 logins of 0.5 s and 30,000 bytes, 500 logouts of 1 s and 70,000 bytes.
    let waited = 2500.0 + 500.0;
    let (login, logout) = (&table.rows[0], &table.rows[1]);
    assert!((login.weighted_byte_rate - 150e6 / waited).abs() < 1e-6);
    assert!((table.total.weighted_byte_rate - (login.weighted_byte_rate + logout.weighted_byte_rate)).abs() < 1e-6);
    assert!((table.total.response_s - waited / 5500.0).abs() < 1e-9, "request-weighted mean");
    assert!((table.total.bytes_per_request - 185e6 / 5500.0).abs() < 1e-6);
    assert_eq!((table.total.counts.requests, table.total.counts.good), (5500, 5000));
    assert!(login.p99_s.is_some() && logout.p99_s.is_none(), "five hundred requests are too few for p99");
    assert!(login.counts.times.is_empty());
}

#[test]
fn a_share_of_a_capacity_is_of_the_baselines_median_and_its_trials_have_one_iteration_each() {
    let mut plan = plan(3, &["banking", "latency"]);
    let case = &mut plan.study.cases[1];
    let share = LoadShare { kind: CLOSED, case: "banking".into(), share: 0.8, most: 5000.0 };
    case.load = CaseLoad::ShareOf { share, guests: Guests::ONE };
    case.qos = vec![QosObjective { metric: "good_share".into(), bound: 0.95 }];
    let held = [500.0, 520.0, 510.0];
    let found = of_all(&plan, |index| {
        let planned = &plan.trials[index as usize];
        if planned.case == "banking" {
            let held = if planned.arm == "native" { held[planned.block as usize - 1] } else { 300.0 };
            return searched(&plan, index, held, true);
        }
        let mut record = testing::trial(&plan, index);
        record.metrics.push(MetricSpec::new("good_share", "good", Unit::Count, Better::Higher));
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        m.requests = types(408);
        m.metrics.insert("good_share".into(), if planned.block == 2 { 0.93 } else { 0.97 });
        record
    });
    let latency = &found.cases[1];
    let tables = &latency.requests[0].iterations;
    assert!(tables.iter().all(|table| (table.load - 408.0).abs() < 1e-9), "80 % of 510");
    assert_eq!(
        tables.iter().map(|t| (t.block, t.iteration, t.met)).collect::<Vec<_>>(),
        [(1, 1, true), (2, 1, false), (3, 1, true)]
    );
    assert!((latency.resources[0].load - 408.0).abs() < 1e-9);
    assert!(found.cases[0].not_measured[0].ends_with("They are compared at equal load in: latency."));
}

#[test]
fn resources_are_means_over_the_windows_that_were_sampled() {
    let plan = plan(1, &["banking"]);
    let found = of_all(&plan, |index| {
        let mut record = searched(&plan, index, 400.0, true);
        let (from, to) = (100_000_000_000u64, 108_000_000_000u64);
        let mut counter = |source: Source, series: &str, gain: f64| {
            for (at_ns, value) in [(from - 1, 1.0), (from, 5.0), (to, 5.0 + gain), (to + 1_000_000, 1e12)] {
                record.samples.push(Sample { at_ns, source: source.clone(), series: series.to_owned(), value });
            }
        };
        for (kind, gain) in [("user", 4.0), ("system", 2.0), ("softirq", 1.0), ("idle", 8.0), ("iowait", 1.0)] {
            counter(Source::Host, &format!("sut_cpu_{kind}_s"), gain);
        }
        counter(Source::InGuest("target".into()), "cpu_user_s", 3.0);
        counter(Source::Host, "nic_target-port_rx_bytes", 8e6);
        counter(Source::Host, "disk_vda_read_s", 0.2);
        counter(Source::Host, "disk_vda_read_requests", 100.0);
        counter(Source::Host, "disk_vdb_write_s", 0.4);
        counter(Source::Host, "disk_vdb_write_requests", 200.0);
        counter(Source::Host, "swap_in_bytes", 4096.0);
        counter(Source::Host, "swap_out_bytes", 0.0);
        counter(Source::Guest("target".into()), "memory_bytes", 1e9);
        record
    });
    let of = &found.cases[0].resources[0];
    let near =
        |value: Option<f64>, wanted: f64| value.is_some_and(|value| (value - wanted).abs() < 1e-6 * wanted.abs());
    assert_eq!(of.host_cpu_shares, Some([0.25, 0.1875, 0.5, 0.0625]));
    assert_eq!(of.inside_cpu_shares, None, "without idle time there is no whole");
    assert!(near(of.network_bits_per_s, 8e6), "8 MB in 8 s: {of:?}");
    assert!(near(of.disk_s, 2e-3) && near(of.memory_bytes, 1e9 + 5.0), "{of:?}");
    assert_eq!(of.swapped_bytes, Some((4096.0, 0.0)));
    assert!(near(of.response_s, 2400.0 / 4400.0) && near(Some(of.load), 400.0), "{of:?}");
    assert!(near(of.host_cpu_cores, 3.2 / 8.0), "the trial's account, where the tries have none");
}
