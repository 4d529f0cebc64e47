//! Each check on both sides of its limit, and what a broken one does to a verdict.

mod disclosed;

use std::collections::BTreeMap;

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::capacity::{CapacitySearch, Probe, ScoreSpec};
use tare_model::density::{Level, ScaleUp, metric};
use tare_model::findings::{Findings, Verdict};
use tare_model::plan::Plan;
use tare_model::published::{Claim, ClaimKind, PrintedTotal, Published};
use tare_model::trial::{Flag, Measurement, Outcome, Part, RequestType, TrialRecord};
use tare_record::{RunFacts, testing};

use super::entries;

/// Requests of two types: so many, and bytes each.
fn types(requests: u64, bytes: [u64; 2]) -> Vec<RequestType> {
    let one = |name: &str, share: u64, bytes: u64| {
        let requests = requests * share / 100;
        RequestType {
            name: name.to_owned(),
            requests,
            good: requests,
            bytes: requests * bytes,
            response_s: requests as f64 * 0.5,
            target: Some(share as f64 / 100.0),
            ..RequestType::default()
        }
    };
    vec![one("login", 25, bytes[0]), one("view", 75, bytes[1])]
}

fn measurement(record: &mut TrialRecord) -> &mut Measurement {
    match &mut record.outcome {
        Outcome::Completed(measurement) => measurement,
        other => panic!("{other:?}"),
    }
}

/// A run of the small study; `change` gets every trial.
fn run(blocks: u32, change: impl Fn(&mut TrialRecord)) -> (Plan, Vec<TrialRecord>) {
    let plan = testing::plan(blocks);
    let mut trials: Vec<_> = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    trials.iter_mut().for_each(change);
    (plan, trials)
}

/// A run with request types on every arm; `container` gets its own.
fn serving(blocks: u32, ours: &[RequestType], container: &[RequestType]) -> (Plan, Vec<TrialRecord>) {
    run(blocks, |record| {
        let own = if record.planned.arm == "container" { container } else { ours };
        measurement(record).requests = own.to_vec();
    })
}

/// The outcomes of one check, with arms.
fn of(found: &[AuditEntry], check: AuditCheck) -> Vec<(AuditOutcome, &str)> {
    found.iter().filter(|entry| entry.check == check).map(|entry| (entry.outcome, entry.detail.as_str())).collect()
}

fn outcome(plan: &Plan, trials: &[TrialRecord], check: AuditCheck) -> AuditOutcome {
    let found = entries(plan, trials);
    of(&found, check).first().unwrap_or_else(|| panic!("nothing of {check:?} in {found:?}")).0
}

fn findings(plan: &Plan, trials: &[TrialRecord]) -> Findings {
    let facts = RunFacts {
        run_id: "1".into(),
        tare_version: "0".into(),
        finished: true,
        root_hash: String::new(),
        ended: Vec::new(),
    };
    crate::findings(&crate::Run { facts: &facts, plan, environment: &testing::environment(), trials, problems: &[] })
}

#[test]
fn a_run_without_request_types_is_only_asked_whether_it_was_repeated() {
    let (plan, trials) = run(6, |_| {});
    let found = entries(&plan, &trials);
    assert_eq!(
        of(&found, AuditCheck::Repeated),
        [(AuditOutcome::Holds, "every trial completed: at least 6 blocks of every arm in every case.")]
    );
    assert_eq!(found.len(), 1, "{found:?}");
    let before = findings(&plan, &trials);
    assert_eq!(before.cases[0].metrics[0].comparisons[0].verdict, Verdict::Worse);
    let (plan, trials) = run(1, |_| {});
    assert_eq!(outcome(&plan, &trials, AuditCheck::Repeated), AuditOutcome::Reservation);
    let (plan, mut trials) = run(6, |_| {});
    for record in trials.iter_mut().filter(|own| own.planned.arm == "container" && own.planned.block <= 4) {
        record.outcome = tare_model::trial::Outcome::Invalid { reason: "it fell over".to_owned() };
    }
    let found = entries(&plan, &trials);
    assert_eq!(
        of(&found, AuditCheck::Repeated),
        [(AuditOutcome::Reservation, "2 of 6 trials of container completed.")],
        "what was planned is not what was done"
    );
    let comparison = &findings(&plan, &trials).cases[0].metrics[0].comparisons[0];
    assert_eq!((comparison.verdict, comparison.missing), (Verdict::CannotSay, 4));
    assert!(comparison.sentence.contains("4 of 6 blocks have no figure"), "{}", comparison.sentence);
}

#[test]
fn bytes_a_request_are_the_same_work_up_to_a_limit_and_what_chance_may_make() {
    let ours = types(1_000_000, [50_000, 30_000]);
    // 2 % and 0.5 % for chance.
    for (factor, expected) in [
        (1.0, AuditOutcome::Holds),
        (1.022, AuditOutcome::Holds),
        (1.03, AuditOutcome::Broken),
        (0.97, AuditOutcome::Broken),
    ] {
        let bytes = [50_000.0, 30_000.0].map(|bytes| (bytes * factor) as u64);
        let (plan, trials) = serving(2, &ours, &types(1_000_000, bytes));
        assert_eq!(outcome(&plan, &trials, AuditCheck::BytesARequest), expected, "{factor}");
    }
    let (plan, trials) = serving(2, &types(100, [50_000, 30_000]), &types(100, [30_000, 30_000]));
    assert_eq!(outcome(&plan, &trials, AuditCheck::BytesARequest), AuditOutcome::Unknown, "too few requests");
    // One type of little weight: the whole holds, and the type is named.
    let (plan, trials) = serving(2, &types(1_000_000, [1_000, 90_000]), &types(1_000_000, [1_100, 90_000]));
    let found = entries(&plan, &trials);
    let [(outcome, detail)] = of(&found, AuditCheck::BytesARequest)[..] else { panic!("{found:?}") };
    assert!(outcome == AuditOutcome::Reservation && detail.contains("login (1,000 and 1,100 bytes)"), "{detail}");
}

#[test]
fn what_is_not_the_same_work_has_no_verdict_and_says_why() {
    let (plan, trials) = serving(6, &types(1_000_000, [50_000, 36_600]), &types(1_000_000, [35_000, 30_500]));
    let found = findings(&plan, &trials);
    let comparisons = || found.cases.iter().flat_map(|case| &case.metrics).flat_map(|metric| &metric.comparisons);
    for comparison in comparisons() {
        let expected = if comparison.arm == "container" { Verdict::NotComparable } else { Verdict::NoiseFloor };
        assert_eq!(comparison.verdict, expected, "{comparison:?}");
        assert_eq!(comparison.ratio.n == 0, expected == Verdict::NotComparable, "no ratio to show");
    }
    assert!(comparisons().count() > 2);
    let answer = &found.answer[0];
    assert_eq!(answer.verdict, Verdict::NotComparable);
    assert!(
        answer.sentence.starts_with(
            "container: not comparable (a request of the same mix is 40.0 kB on native and 31.6 kB on container"
        ),
        "{}",
        answer.sentence
    );
    assert_eq!(found.audit[0].outcome, AuditOutcome::Broken, "the gravest first");
}

#[test]
fn the_mix_is_compared_with_its_targets_and_between_arms() {
    let ours = types(1_000_000, [1, 1]);
    let shifted = |to: u64| {
        let mut other = ours.clone();
        other[0].requests += to;
        other[0].good += to;
        other[1].requests -= to;
        other[1].good -= to;
        other
    };
    for (to, against_targets, between) in [
        (0, AuditOutcome::Holds, AuditOutcome::Holds),
        (9_000, AuditOutcome::Holds, AuditOutcome::Holds),
        (20_000, AuditOutcome::Reservation, AuditOutcome::Broken),
    ] {
        let (plan, trials) = serving(2, &ours, &shifted(to));
        let found = entries(&plan, &trials);
        let of = |arms: &[&str]| {
            let own = found.iter().find(|entry| entry.check == AuditCheck::Mix && entry.arms == arms);
            own.unwrap_or_else(|| panic!("{found:?}")).outcome
        };
        assert_eq!((of(&["container"]), of(&["native", "container"])), (against_targets, between), "{to}");
    }
    // Both arms differ from the targets alike: this is reported, and no verdict is lost.
    let (plan, trials) = serving(6, &shifted(50_000), &shifted(50_000));
    let found = findings(&plan, &trials);
    assert!(found.audit.iter().all(|entry| entry.outcome != AuditOutcome::Broken), "{:?}", found.audit);
    assert_eq!(found.answer[0].verdict, Verdict::Worse);
}

#[test]
fn few_requests_are_reported_and_wrong_answers_cost_the_verdict() {
    let with = |requests: u64, wrong: u64| {
        let mut own = types(requests, [1, 1]);
        own[1].validation_errors = wrong;
        own
    };
    for (requests, wrong, enough, valid) in [
        (400, 2, AuditOutcome::Holds, AuditOutcome::Holds),
        (396, 0, AuditOutcome::Reservation, AuditOutcome::Holds),
        (400, 3, AuditOutcome::Holds, AuditOutcome::Broken),
    ] {
        let (plan, trials) = serving(2, &types(400, [1, 1]), &with(requests, wrong));
        let found = entries(&plan, &trials);
        let of =
            |check| found.iter().find(|entry| entry.check == check && entry.arms == ["container"]).unwrap().outcome;
        assert_eq!((of(AuditCheck::Enough), of(AuditCheck::Validation)), (enough, valid), "{requests} {wrong}");
    }
}

#[test]
fn a_case_that_sets_limits_of_its_own_is_held_to_those() {
    let mut wrong = types(400, [1, 1]);
    wrong[1].validation_errors = 8;
    let (mut plan, trials) = serving(2, &types(400, [1, 1]), &wrong);
    let of = |plan: &Plan, check| {
        let found = entries(plan, &trials);
        found.iter().find(|entry| entry.check == check && entry.arms == ["container"]).cloned().unwrap()
    };
    assert_eq!(of(&plan, AuditCheck::Validation).outcome, AuditOutcome::Broken);
    assert_eq!(of(&plan, AuditCheck::Enough).outcome, AuditOutcome::Holds);
    for case in &mut plan.study.cases {
        case.parameters = serde_json::json!({"validation-errors-max": 0.02, "least-requests": 101});
    }
    let own = of(&plan, AuditCheck::Validation);
    assert_eq!(own.outcome, AuditOutcome::Holds);
    assert!(own.detail.contains("at most 8 of 400") && own.detail.contains("the study allows 2 %"), "{}", own.detail);
    let own = of(&plan, AuditCheck::Enough);
    assert_eq!(own.outcome, AuditOutcome::Reservation);
    assert!(own.detail.contains("fewer than 101 requests") && own.detail.contains("login (100)"), "{}", own.detail);
    for case in &mut plan.study.cases {
        case.parameters = serde_json::json!({"validation-errors-max": 0.019});
    }
    let own = of(&plan, AuditCheck::Validation);
    assert!(own.outcome == AuditOutcome::Broken && own.detail.contains("where 1.9 % are allowed"), "{}", own.detail);
}

#[test]
fn requests_that_are_neither_good_nor_bad_do_not_add_up() {
    let mut lost = types(1000, [1, 1]);
    lost[1].good -= 1;
    let (plan, trials) = serving(2, &types(1000, [1, 1]), &lost);
    let found = entries(&plan, &trials);
    let (broken, fine): (Vec<_>, Vec<_>) = found
        .iter()
        .filter(|entry| entry.check == AuditCheck::Totals)
        .partition(|entry| entry.outcome == AuditOutcome::Broken);
    assert_eq!((broken.len(), fine.len()), (2, 2), "each block of the container; the other two arms hold");
    assert!(
        broken[0].detail.contains("view, good, tolerable and failed: 750 is printed, but its parts add up to 749"),
        "{}",
        broken[0].detail
    );
}

#[test]
fn conditions_and_the_instrument_are_reported_for_our_own_runs() {
    let part = |guest| Part { guest, driver: Some(1), metrics: BTreeMap::new(), instance: None };
    for (of_container, expected) in [(2, AuditOutcome::Holds), (3, AuditOutcome::Broken)] {
        let (plan, trials) = run(2, |record| {
            let guests = if record.planned.arm == "container" { of_container } else { 2 };
            measurement(record).parts = (1..=guests).map(part).collect();
        });
        assert_eq!(outcome(&plan, &trials, AuditCheck::Conditions), expected);
    }
    for (sessions, expected) in [(1000, AuditOutcome::Holds), (1011, AuditOutcome::Broken)] {
        let (plan, trials) = run(2, |record| {
            let own = if record.planned.arm == "container" { sessions } else { 1000 };
            measurement(record).counts.insert("sessions".into(), own);
        });
        assert_eq!(outcome(&plan, &trials, AuditCheck::Conditions), expected);
    }
    for (on_large_pages, expected) in [([2, 2], AuditOutcome::Holds), ([2, 0], AuditOutcome::Broken)] {
        let (plan, trials) = run(2, |record| {
            let own = on_large_pages[usize::from(record.planned.arm == "container")];
            measurement(record).counts.insert("instances_on_large_pages".into(), own);
        });
        assert_eq!(outcome(&plan, &trials, AuditCheck::Conditions), expected);
    }
    let starved = Flag { kind: "driver-starved".into(), detail: "the driver waited for a CPU".into() };
    let (plan, trials) = run(6, |record| record.flags.push(starved.clone()));
    let found = entries(&plan, &trials);
    let said = "driver-starved in 18 of 18 trials, such as: the driver waited for a CPU.";
    assert_eq!(of(&found, AuditCheck::Instrument)[0], (AuditOutcome::Reservation, said));
    assert_eq!(findings(&plan, &trials).answer[0].verdict, Verdict::Worse, "a reservation takes no verdict");
    // A window of 8 s and one CPU for the driver.
    for (used_s, expected) in [(7, AuditOutcome::Holds), (8, AuditOutcome::Reservation)] {
        let (plan, mut trials) = serving(2, &types(1000, [1, 1]), &types(1000, [1, 1]));
        for record in &mut trials {
            measurement(record).counts.insert("driver_cpu_ns".into(), used_s * 1_000_000_000);
        }
        assert_eq!(outcome(&plan, &trials, AuditCheck::Instrument), expected, "{used_s}");
    }
    let (plan, trials) = serving(2, &types(1000, [1, 1]), &types(1000, [1, 1]));
    assert_eq!(outcome(&plan, &trials, AuditCheck::Instrument), AuditOutcome::Unknown);
}

/// A published study of the small plan: one block, with these totals and claims.
fn published(printed: Vec<PrintedTotal>, claims: Vec<ClaimKind>, change: impl Fn(&mut TrialRecord)) -> Vec<AuditEntry> {
    let (mut plan, trials) = run(1, change);
    let claims = claims.into_iter().map(|kind| Claim { text: "so it says".into(), kind }).collect();
    plan.study.published = Some(Published { printed, claims, ..Published::default() });
    plan.study.score = Some(ScoreSpec { references: vec![("idle".into(), 1000.0)] });
    entries(&plan, &trials)
}

fn held(record: &mut TrialRecord) {
    let probe = Probe { load: 10.0, requests: types(1000, [40_000, 30_000]), ..Probe::default() };
    measurement(record).search = Some(CapacitySearch { held: 10.0, probes: vec![probe], ..CapacitySearch::default() });
}

#[test]
fn printed_totals_hold_to_their_rounding_and_not_beyond() {
    let total = |figure: &str, value, rounding| PrintedTotal {
        case: "idle".into(),
        arm: "native".into(),
        iteration: 1,
        figure: figure.into(),
        value,
        rounding,
        place: None,
    };
    // 32,500 bytes a request, in half a second each.
    for (figure, rounding, good, bad) in [
        ("requests", 0.5, 1000.0, 1001.0),
        ("failed", 0.5, 0.0, 1.0),
        ("bytes_per_request", 0.5, 32_501.0, 32_502.0),
        ("response_s", 0.0005, 0.501, 0.502),
        ("byte_rate", 0.05, 65_000.0, 65_200.0),
        ("login.byte_rate", 0.05, 20_000.0, 20_100.0),
        ("login.requests", 0.5, 250.0, 251.0),
    ] {
        for (value, expected) in [(good, AuditOutcome::Holds), (bad, AuditOutcome::Broken)] {
            let found = published(vec![total(figure, value, rounding)], Vec::new(), held);
            let own = found.iter().find(|entry| entry.check == AuditCheck::Totals && entry.outcome == expected);
            assert!(own.is_some(), "{figure} {value}: {found:?}");
        }
    }
    for figure in ["colour", "login.colour", "nobody.requests"] {
        let found = published(vec![total(figure, 1.0, 0.5)], Vec::new(), held);
        let strange = found.iter().any(|entry| entry.outcome == AuditOutcome::Unknown && entry.detail.contains(figure));
        assert!(strange, "{found:?}");
    }
    // Where the rate of every type is printed, that of all is their sum.
    let rates = |all| {
        vec![
            total("login.byte_rate", 20_000.0, 0.05),
            total("view.byte_rate", 45_000.0, 0.05),
            total("byte_rate", all, 0.05),
        ]
    };
    let broken =
        |all| published(rates(all), Vec::new(), held).iter().any(|entry| entry.outcome == AuditOutcome::Broken);
    assert!(!broken(65_000.1) && broken(65_000.3));
}

#[test]
fn a_percentage_is_looked_for_under_both_bases() {
    let percent = |percent| ClaimKind::Percent {
        case: "idle".into(),
        arm: "container".into(),
        than: "native".into(),
        percent,
        rounding: 0.05,
    };
    let orders = |record: &mut TrialRecord| {
        let value = if record.planned.arm == "container" { 222_048.0 } else { 211_919.0 };
        let primary = record.metrics[0].id.clone();
        measurement(record).metrics.insert(primary, value);
    };
    for (claimed, expected, says) in [
        (4.8, AuditOutcome::Holds, "222,048 against 211,919 is 4.78 % more than native"),
        (4.6, AuditOutcome::Reservation, "4.56 % is of container itself, which was taken as the base"),
        (5.0, AuditOutcome::Broken, "neither is +5 %"),
    ] {
        let found = published(Vec::new(), vec![percent(claimed)], orders);
        let [(outcome, detail)] = of(&found, AuditCheck::Base)[..] else { panic!("{found:?}") };
        assert!(outcome == expected && detail.contains(says), "{claimed}: {detail}");
    }
}

#[test]
fn a_rate_is_looked_for_at_every_number_of_guests() {
    let rate = |guests, per_s| ClaimKind::Rate { case: "idle".into(), arm: "native".into(), guests, per_s };
    let scale_up = |record: &mut TrialRecord| {
        let level = |(guests, rate)| Level {
            guests,
            window_ns: (0, 1_800_000_000_000),
            metrics: BTreeMap::from([(metric::OPERATIONS.to_owned(), rate)]),
            ..Level::default()
        };
        let levels = [(28, 190_191_751.0 / 1800.0), (32, 189_871_385.0 / 1800.0)].map(level).into();
        measurement(record).scale_up = Some(ScaleUp { levels, ..ScaleUp::default() });
    };
    for (claim, expected, says) in [
        (rate(28, 105_662.0), AuditOutcome::Holds, "190,191,751 of 28 guests are of a run of 1,800 s"),
        (rate(32, 105_662.0), AuditOutcome::Reservation, "its 190,191,751 of 28 guests are 105,662.1"),
        (rate(40, 105_662.0), AuditOutcome::Reservation, "no figure of 40 guests, only of 28 and 32"),
        (rate(32, 189_871_385.0), AuditOutcome::Broken, "no other number of guests"),
    ] {
        let found = published(Vec::new(), vec![claim], scale_up);
        let [(outcome, detail)] = of(&found, AuditCheck::PerRun)[..] else { panic!("{found:?}") };
        assert!(outcome == expected && detail.contains(says), "{detail}");
    }
}

#[test]
fn a_score_is_what_its_parts_make_it_and_no_better_than_they_are() {
    let score = |score| vec![ClaimKind::Score { arm: "native".into(), score }];
    let capacity = |record: &mut TrialRecord| {
        let primary = record.metrics[0].id.clone();
        measurement(record).metrics.insert(primary, 2300.0);
    };
    for (claimed, expected) in [(230.4, AuditOutcome::Holds), (231.0, AuditOutcome::Broken)] {
        let found = published(Vec::new(), score(claimed), capacity);
        assert_eq!(of(&found, AuditCheck::Score)[0].0, expected, "{found:?}");
    }
    let (mut plan, trials) = serving(2, &types(1_000_000, [50_000, 30_000]), &types(1_000_000, [30_000, 30_000]));
    plan.study.score = Some(ScoreSpec { references: vec![("idle".into(), 1000.0)] });
    assert_eq!(outcome(&plan, &trials, AuditCheck::Score), AuditOutcome::Reservation);
}

#[test]
fn figures_have_commas_between_thousands() {
    let said =
        [(0.0, 0), (999.0, 0), (1000.0, 0), (-1_234_567.25, 2)].map(|(value, places)| super::figure(value, places));
    assert_eq!(said, ["0", "999", "1,000", "-1,234,567.25"]);
}
