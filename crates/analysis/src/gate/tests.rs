use super::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};
use tare_model::findings::DriverLimited;
use tare_model::metric::Unit;
use tare_model::plan::LeftOut;
use tare_model::trial::{Outcome, TrialRecord};
use tare_record::testing;

use crate::comparison::{Paired, Role, Subject, settle_primary, withhold};
use crate::tests::of;

const BLOCKS: u32 = 12;

fn spec(better: Better) -> MetricSpec {
    MetricSpec::new("m", "metric", Unit::Seconds, better).primary()
}

/// A comparison of these ratios, before anything is known of others.
fn compared(better: Better, ratios: &[f64], replica: Option<&Comparison>) -> Comparison {
    let spec = spec(better);
    let paired = Paired {
        of: Subject { spec: &spec, arm: "new", baseline: "old" },
        ids: ("new", "old"),
        pairs: ratios.iter().enumerate().map(|(block, ratio)| (block as u32, *ratio, 1.0)).collect(),
        missing: 0,
        planned: ratios.len() as u32,
        by_width: false,
        replica,
        margin: None,
        driver_limited: DriverLimited::default(),
        role: Role::Ordinary,
    };
    paired.compare()
}

/// The same where it is one of so many that answer their study, the others without a trace of a difference.
fn asked(better: Better, ratios: &[f64], of: u32) -> Comparison {
    let spec = spec(better);
    let mut all = vec![compared(better, ratios, None)];
    all.extend((1..of).map(|_| compared(better, &[1.01, 0.99, 1.01, 0.99, 1.01, 0.99], None)));
    settle_primary(all.iter_mut().map(|own| (own, Subject { spec: &spec, arm: "new", baseline: "old" })).collect());
    all.swap_remove(0)
}

/// What the gate says, beside others that were planned.
fn judged_among(comparison: &Comparison, better: Better, limit: f64, of: usize) -> (GateOutcome, String) {
    let line = Line::of(better, limit);
    let mut p = vec![line.p(comparison, false, false)];
    p.resize(of, Some(1.0));
    line.judge(comparison, limit, holm(&p)[0])
}

fn outcome(better: Better, ratios: &[f64], limit: f64) -> GateOutcome {
    judged_among(&asked(better, ratios, 1), better, limit, 1).0
}

/// Ratios about a centre, none of them more than 0.6 % from it.
fn about(centre: f64) -> Vec<f64> {
    (0..BLOCKS).map(|block| centre * (1.0 + 0.001 * (f64::from(block * 7 % 12) - 5.5))).collect()
}

#[test]
fn the_interval_decides_in_the_direction_that_is_worse() {
    use GateOutcome::{Unsure, Within, Worse};
    // (ratio, limit, of a metric that is better lower, better higher).
    for (ratio, limit, lower, higher) in [
        (1.05, 0.02, Worse, Within),
        (1.05, 0.10, Within, Within),
        (1.05, 0.05, Unsure, Within),
        (0.95, 0.02, Within, Worse),
        (0.95, 0.10, Within, Within),
        (0.95, 0.05, Within, Unsure),
        (1.00, 0.02, Within, Within),
        (1.00, 0.00, Unsure, Unsure),
        (1.05, 0.00, Worse, Within),
        (0.95, 0.00, Within, Worse),
        (2.50, 0.99, Worse, Within),
        (0.005, 0.99, Within, Worse),
    ] {
        assert_eq!(outcome(Better::Lower, &about(ratio), limit), lower, "{ratio}, {limit}, lower");
        assert_eq!(outcome(Better::Higher, &about(ratio), limit), higher, "{ratio}, {limit}, higher");
    }
    assert_eq!(outcome(Better::Lower, &[1.0; 12], 0.0), Within, "what is equal in every block is no worse");
}

#[test]
fn an_interval_that_ends_on_the_limit_proves_nothing_and_reaches_no_further() {
    // Of six blocks the interval goes from the least to the largest.
    let lower = [1.02, 1.03, 1.04, 1.05, 1.06, 1.07];
    let of = |ratios: &[f64], limit| outcome(Better::Lower, ratios, limit);
    assert_eq!(of(&lower, 0.02), GateOutcome::Unsure);
    assert_eq!(of(&lower, 0.0199), GateOutcome::Worse);
    assert_eq!(of(&lower, 0.07), GateOutcome::Within);
    assert_eq!(of(&lower, 0.0699), GateOutcome::Unsure);
    let higher = [0.98, 0.97, 0.96, 0.95, 0.94, 0.93];
    let of = |limit| outcome(Better::Higher, &higher, limit);
    assert_eq!(
        [0.02, 0.0199, 0.07, 0.0699].map(of),
        [GateOutcome::Unsure, GateOutcome::Worse, GateOutcome::Within, GateOutcome::Unsure]
    );
}

#[test]
fn each_reason_why_nothing_can_be_said_is_given() {
    let ratios = about(1.05);
    for (verdict, why) in [
        (Verdict::CannotSay, "2 of 12 blocks have no figure on one of the two"),
        (Verdict::CannotSay, "the driver was at its limit"),
        (Verdict::NotComparable, "requests differ in size"),
    ] {
        let mut withheld = asked(Better::Lower, &ratios, 1);
        withhold(&mut withheld, verdict, why.to_owned());
        let said = judged_among(&withheld, Better::Lower, 0.02, 1);
        assert_eq!(said, (GateOutcome::NoVerdict, why.to_owned()), "though its interval lies beyond the limit");
    }
    let single = asked(Better::Lower, &[1.05], 1);
    assert_eq!(judged_among(&single, Better::Lower, 0.02, 1).0, GateOutcome::NoVerdict);

    let noisy = asked(Better::Lower, &[0.8, 1.3, 0.9, 1.2, 1.0, 1.1, 0.85, 1.25], 1);
    let (outcome, why) = judged_among(&noisy, Better::Lower, 0.02, 1);
    assert_eq!(outcome, GateOutcome::Unsure);
    assert!(why.starts_with("too noisy: the interval reaches beyond 2 %; ") && why.contains("4 times in 5"), "{why}");

    let (spec, floor) = (spec(Better::Lower), compared(Better::Lower, &about(1.06), None));
    let replica = Comparison { standing: Standing::Replica, ..floor };
    let mut within = compared(Better::Lower, &ratios, Some(&replica));
    settle_primary(vec![(&mut within, Subject { spec: &spec, arm: "new", baseline: "old" })]);
    assert_eq!(within.verdict, Verdict::WithinFloor);
    let (outcome, why) = judged_among(&within, Better::Lower, 0.02, 1);
    assert!(outcome == GateOutcome::Unsure && why.contains("the baseline differs as much from itself"), "{why}");
    assert_eq!(judged_among(&within, Better::Lower, 0.2, 1).0, GateOutcome::Within, "what is ruled out is ruled out");
}

#[test]
fn the_correction_for_the_number_of_comparisons_is_that_of_the_findings() {
    // Six blocks: the smallest two-sided probability is 2/64, and of two comparisons 2 * 2/64.
    let six = [1.03, 1.031, 1.032, 1.033, 1.034, 1.035];
    for (of, expected, verdict) in [(1, GateOutcome::Worse, Verdict::Worse), (2, GateOutcome::Unsure, Verdict::Lead)] {
        let comparison = asked(Better::Lower, &six, of);
        let (outcome, why) = judged_among(&comparison, Better::Lower, 0.02, of as usize);
        assert_eq!((outcome, comparison.verdict), (expected, verdict), "{why}");
        assert!(of == 1 || why.contains("chance shows as much in 6 of 100 studies"), "{why}");
    }
}

#[test]
fn a_fitted_ratio_is_judged_by_its_interval() {
    let line = Line::of(Better::Higher, 0.02);
    let ratio = |high: f64| Estimate { value: 0.9, low: Some(0.8), high: Some(high), n: 8, ..Estimate::default() };
    assert!((line.p_of_interval(&ratio(0.98)) - ALPHA).abs() < 1e-9, "5 % where it ends on the line");
    assert!(line.p_of_interval(&ratio(0.95)) < ALPHA && line.p_of_interval(&ratio(0.99)) > ALPHA);
    assert_eq!(line.p_of_interval(&Estimate { high: None, ..ratio(0.9) }), 1.0, "an open end proves nothing");
    assert_eq!(line.p_of_interval(&Estimate { value: 0.99, ..ratio(1.2) }), 1.0);
}

/// Trials of a plan, the container's figures times so much.
fn trials(plan: &tare_model::plan::Plan, times: f64) -> Vec<TrialRecord> {
    let mut all: Vec<TrialRecord> = (0..plan.trials.len() as u32).map(|index| testing::trial(plan, index)).collect();
    for record in all.iter_mut().filter(|record| record.planned.arm == "container") {
        if let Outcome::Completed(measured) = &mut record.outcome {
            *measured.metrics.get_mut("response_time_p50_s").unwrap() *= times;
        }
    }
    all
}

#[test]
fn a_study_is_judged_with_what_is_missing_from_it() {
    let plan = testing::plan(BLOCKS);
    let findings = of(&plan, &trials(&plan, 1.0));
    let all = gated(&findings, 0.02);
    let ids: Vec<&str> = all.iter().map(|own| own.id.as_str()).collect();
    assert_eq!(ids[0], "idle/container/response_time_p50_s");
    assert!(ids.iter().all(|id| !id.contains("native-again")), "the replica answers nothing: {ids:?}");
    assert_eq!((all[0].outcome, all[0].verdict), (GateOutcome::Worse, Verdict::Worse));
    assert!(all[0].p_worse.unwrap() <= ALPHA && all[0].ratio.as_ref().unwrap().low.unwrap() > 1.02);
    assert_eq!(gated(&findings, 0.10)[0].outcome, GateOutcome::Within);

    let without: Vec<TrialRecord> =
        trials(&plan, 1.0).into_iter().filter(|record| record.planned.arm != "container").collect();
    let missing = &gated(&of(&plan, &without), 0.02)[0];
    assert_eq!((missing.outcome, missing.id.as_str()), (GateOutcome::NoVerdict, "idle/container/response_time_p50_s"));
    assert_eq!(gated(&of(&plan, &[]), 0.02)[0].outcome, GateOutcome::NoVerdict);

    let mut short = plan.clone();
    let (reason, remedy) = ("it is not installed".to_owned(), String::new());
    short.left_out.push(LeftOut { arm: "other".to_owned(), label: "other".to_owned(), reason, remedy });
    let all = gated(&of(&short, &trials(&short, 1.0)), 0.02);
    let left = all.last().unwrap();
    assert_eq!((left.id.as_str(), left.outcome), ("other", GateOutcome::NoVerdict));
    assert_eq!(left.reason, "this host cannot run it: it is not installed");
}

fn entry(outcome: GateOutcome) -> GatedComparison {
    GatedComparison { outcome, ..nothing(None, "a") }
}

fn answer(outcomes: &[GateOutcome], doubts: &[GateOutcome]) -> (GateAnswer, String) {
    let run = GatedRun {
        folder: "run".to_owned(),
        study: "s".to_owned(),
        run: "r".to_owned(),
        started_at: String::new(),
        wall_s: 1.0,
        baseline: "old".to_owned(),
        warnings: Vec::new(),
        comparisons: outcomes.iter().map(|outcome| entry(*outcome)).collect(),
    };
    let gate = gate(vec![run], 0.02, doubts);
    (gate.answer, gate.sentence)
}

#[test]
fn the_answer_follows_from_the_outcomes_and_what_was_asked() {
    use GateAnswer::{CannotSay, Pass, Regression};
    use GateOutcome::{NoVerdict, Unsure, Within, Worse};
    let (none, broken, both): (&[_], &[_], &[_]) = (&[], &[NoVerdict], &[Unsure, NoVerdict]);
    for (outcomes, expected) in [
        (&[Within, Within][..], [Pass, Pass, Pass]),
        (&[Within, Unsure], [Pass, Pass, CannotSay]),
        (&[Within, NoVerdict], [Pass, CannotSay, CannotSay]),
        (&[Unsure], [Pass, Pass, CannotSay]),
        (&[NoVerdict, NoVerdict], [CannotSay, CannotSay, CannotSay]),
        (&[Worse, NoVerdict, Unsure], [Regression, Regression, Regression]),
    ] {
        assert_eq!([none, broken, both].map(|doubts| answer(outcomes, doubts).0), expected, "{outcomes:?}");
    }
    let said = answer(&[Worse, Within, Within, Unsure], none).1;
    assert_eq!(
        said,
        "Regression: one of more than 2 % is proven in 1 of 4 comparisons; ruled out in 2; neither proven nor ruled out in 1."
    );
}

#[test]
fn arms_that_are_worse_by_just_the_limit_fail_in_at_most_5_of_100_studies_and_more_is_found() {
    const STUDIES: u32 = 600;
    const COMPARISONS: usize = 8;
    let mut rng = StdRng::seed_from_u64(39);
    let mut share = |truth: f64| {
        let mut failed = 0;
        for _ in 0..STUDIES {
            let mut ratio = || {
                let z: f64 = StandardNormal.sample(&mut rng);
                truth * (0.01 * z).exp()
            };
            let all: Vec<Comparison> = (0..COMPARISONS)
                .map(|_| compared(Better::Lower, &(0..BLOCKS).map(|_| ratio()).collect::<Vec<_>>(), None))
                .collect();
            let line = Line::of(Better::Lower, 0.02);
            let p = holm(&all.iter().map(|own| line.p(own, false, false)).collect::<Vec<_>>());
            let worse = |(own, p): (&Comparison, &Option<f64>)| line.judge(own, 0.02, *p).0 == GateOutcome::Worse;
            failed += u32::from(all.iter().zip(&p).any(worse));
        }
        f64::from(failed) / f64::from(STUDIES)
    };
    // Standard error 0.9 %.
    let (on_it, beyond) = (share(1.02), share(1.04));
    assert!(on_it < 0.077, "{on_it}");
    assert!(beyond > 0.95, "{beyond}");
}
