use super::*;
use tare_model::metric::Unit;

fn spec() -> MetricSpec {
    MetricSpec::new("p50", "response time, median", Unit::Seconds, Better::Lower)
}

const fn of(spec: &MetricSpec) -> Subject<'_> {
    Subject { spec, arm: "container", baseline: "native" }
}

/// Ratios as a comparison of six planned blocks, or of as many as there are.
fn paired<'a>(spec: &'a MetricSpec, ratios: &[f64]) -> Paired<'a> {
    let pairs: Vec<_> = ratios.iter().enumerate().map(|(block, r)| (block as u32, 20e-6 * r, 20e-6)).collect();
    let planned = (pairs.len() as u32).max(6);
    let ids = ("container", "native");
    let (missing, by_width, replica, margin, role) = (0, false, None, None, Role::Ordinary);
    let driver_limited = DriverLimited::default();
    Paired { of: of(spec), ids, pairs, missing, planned, by_width, replica, margin, driver_limited, role }
}

/// The same as the only one that answers its study.
fn asked(paired: Paired<'_>) -> Comparison {
    let of = paired.of;
    let mut comparison = paired.compare();
    settle_primary(vec![(&mut comparison, of)]);
    comparison
}

fn replica(ratios: &[f64]) -> Comparison {
    Paired { role: Role::Replica, ..paired(&spec(), ratios) }.compare()
}

const THREE_PERCENT: [f64; 6] = [1.022, 1.028, 1.031, 1.031, 1.034, 1.040];

#[test]
fn a_difference_beyond_the_floor_is_said_with_its_interval() {
    let spec = spec();
    let floor = replica(&[1.009, 1.01, 1.011, 1.01, 1.009, 1.01]);
    let worse = asked(Paired { replica: Some(&floor), ..paired(&spec, &THREE_PERCENT) });
    assert_eq!(worse.verdict, Verdict::Worse);
    assert_eq!(worse.sentence, "container has a longer response time (median) than native: +3.1 % [+2.2, +4.0]");
    assert!((worse.ratio.level - 0.96875).abs() < 1e-12, "the attained level is reported");
    let better = asked(paired(&spec, &THREE_PERCENT.map(|r| 1.0 / r)));
    assert_eq!(better.verdict, Verdict::Better);
}

#[test]
fn a_difference_within_the_floor_is_not_called_one_and_the_floor_has_its_interval() {
    let spec = spec();
    let floor = replica(&[1.05, 1.05, 0.97, 1.05, 1.12, 1.05]);
    let within = asked(Paired { replica: Some(&floor), ..paired(&spec, &THREE_PERCENT) });
    assert_eq!(within.verdict, Verdict::WithinFloor);
    assert!(
        within.sentence.ends_with(", but native differs as much from itself (+5.0 % [-3.0, +12.0])"),
        "{}",
        within.sentence
    );
}

#[test]
fn where_no_difference_is_detected_the_detectable_one_is_given() {
    let (spec, equal) = (spec(), [0.99, 1.01, 1.0, 1.005, 0.995, 1.002]);
    let none = asked(paired(&spec, &equal));
    assert_eq!(none.verdict, Verdict::NoDifferenceSeen);
    let detectable = words::size(none.detectable.unwrap());
    assert_eq!(
        none.sentence,
        format!(
            "container, response time (median): no difference from native detected: 0.0 % [-1.0, +1.0]; {detectable} or more is \
             detected, 4 times in 5"
        )
    );
    let floor = replica(&[1.08; 6]);
    let floored = asked(Paired { replica: Some(&floor), ..paired(&spec, &equal) });
    let end = "; 8.0 % or more is detected";
    assert!(floored.sentence.contains(end), "what lies below the floor is not detectable: {}", floored.sentence);
}

#[test]
fn too_few_blocks_and_missing_ratios_say_so() {
    let spec = spec();
    let one = asked(paired(&spec, &[1.1]));
    assert_eq!(
        one.sentence,
        "container, response time (median): +10 % against native, but cannot say whether they differ: only 1 of 6 blocks completed \
         on both"
    );
    let none = asked(paired(&spec, &[]));
    assert_eq!((none.verdict, none.ratio.n), (Verdict::CannotSay, 0));
    let zero = asked(Paired { pairs: vec![(1, 0.0, 1.0), (2, 2.0, 1.0)], ..paired(&spec, &[]) });
    assert!(zero.sentence.contains("block 1 has one of zero"), "{}", zero.sentence);
    let both = asked(Paired { pairs: vec![(0, 0.0, 0.0), (1, 0.0, 0.0)], ..paired(&spec, &[]) });
    assert_eq!(both.verdict, Verdict::NoDifferenceSeen);
    assert!(
        both.sentence.starts_with("container, response time (median): the same as native in every block"),
        "{}",
        both.sentence
    );
    assert!(serde_json::to_string(&zero).unwrap().contains("cannot-say"));
}

#[test]
fn a_study_that_sees_only_large_differences_says_that_it_is_too_noisy() {
    let noisy = asked(paired(&spec(), &[0.6, 1.5, 0.9, 1.3, 0.7, 1.2]));
    assert_eq!(noisy.verdict, Verdict::TooNoisy);
    let size = words::size(noisy.detectable.unwrap());
    let end = format!(
        ": too noisy to tell from native: -4.6 % [-40.0, +50.0]; only {size} or more is detected, 4 times in 5"
    );
    assert!(noisy.sentence.ends_with(&end), "{}", noisy.sentence);
}

#[test]
fn the_floor_is_the_replicas_estimate_whichever_way_round() {
    let ratios = [0.95, 0.97, 0.98, 0.98, 0.99, 1.01];
    let (there, back) = (replica(&ratios), replica(&ratios.map(|r: f64| 1.0 / r)));
    assert_eq!(there.verdict, Verdict::NoiseFloor);
    let (a, b) = (floor_of(&there).unwrap(), floor_of(&back).unwrap());
    assert!((a - b).abs() < 1e-12 && (a - (1.0 / there.ratio.value - 1.0)).abs() < 1e-12, "{a} {b}");
    assert_eq!(floor_of(&replica(&[1.1])), None);
    let odd = Role::NotComparable("emulated".to_owned());
    let apart = Paired { role: odd, ..paired(&spec(), &THREE_PERCENT) }.compare();
    assert_eq!((apart.verdict, apart.ratio.n, apart.blocks.len()), (Verdict::NotComparable, 0, 0));
}

#[test]
fn a_metric_that_does_not_answer_the_study_yields_a_lead() {
    let lead = paired(&spec(), &THREE_PERCENT).compare();
    assert_eq!(lead.verdict, Verdict::Lead);
    assert!(
        lead.sentence.ends_with("than native: +3.1 % [+2.2, +4.0]; a lead: the study does not ask about it"),
        "{}",
        lead.sentence
    );
}

/// Twelve blocks that all say 3 %.
fn clear() -> Vec<f64> {
    (0..12).map(|i| 1.03 + 0.001 * f64::from(i % 5)).collect()
}

#[test]
fn among_many_comparisons_a_weak_difference_is_a_lead_and_a_clear_one_stays() {
    let spec = spec();
    let weak = paired(&spec, &THREE_PERCENT).compare();
    let strong = paired(&spec, &clear()).compare();
    let mut all: Vec<Comparison> = std::iter::repeat_n(weak, 35).chain([strong]).collect();
    settle_primary(all.iter_mut().map(|own| (own, of(&spec))).collect());
    assert_eq!((all[0].verdict, all[35].verdict), (Verdict::Lead, Verdict::Worse));
    let said = "a lead: among 36 comparisons chance shows as much in 100 of 100 studies";
    assert!(all[0].sentence.ends_with(said), "{}", all[0].sentence);
    // Six blocks have no p-value below 3 %.
    let mut few: Vec<Comparison> = vec![paired(&spec, &[0.99, 1.01, 1.0, 1.005, 0.995, 1.002]).compare(); 2];
    settle_primary(few.iter_mut().map(|own| (own, of(&spec))).collect());
    assert!(few[0].sentence.ends_with("; 6 blocks cannot confirm any of 2 comparisons"), "{}", few[0].sentence);
}

#[test]
fn holms_correction_is_that_of_the_textbook() {
    // Holm (1979) as p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") of R has it; what has no p-value counts among the comparisons.
    let corrected = |p: &[f64]| holm(&p.iter().copied().map(Some).collect::<Vec<_>>());
    let found: Vec<f64> = corrected(&[0.01, 0.04, 0.03, 0.005]).into_iter().flatten().collect();
    assert!(found.iter().zip([0.03, 0.06, 0.06, 0.02]).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    assert_eq!(holm(&[Some(0.02), None, None]), [Some(0.06), None, None]);
}

#[test]
fn arms_whose_interval_lies_within_the_margin_are_equivalent_even_if_they_differ_a_little() {
    let (spec, margin) = (spec(), Some(0.05));
    let near = asked(Paired { margin, ..paired(&spec, &clear()) });
    assert_eq!(near.verdict, Verdict::Equivalent);
    assert!(
        near.sentence.starts_with("container has the same response time (median) as native: +3.2 % [+3.")
            && near.sentence.ends_with(", within the margin of 5 %"),
        "{}",
        near.sentence
    );
    assert_eq!(asked(Paired { margin: Some(0.031), ..paired(&spec, &clear()) }).verdict, Verdict::Worse);
    assert_eq!(
        Paired { margin, ..paired(&spec, &clear()) }.compare().verdict,
        Verdict::Lead,
        "for what the study asks alone"
    );
}

#[test]
fn a_driver_at_its_limit_takes_the_verdict_where_it_bounds_the_figure() {
    let spec = spec();
    let limited = |ratios: &[f64], arm, baseline| {
        let driver_limited = DriverLimited { arm, baseline };
        asked(Paired { driver_limited, ..paired(&spec, ratios) })
    };
    let faster = THREE_PERCENT.map(|ratio| 1.0 / ratio);
    let equal = [0.99, 1.01, 1.0, 1.005, 0.995, 1.002];
    for (ratios, arm, baseline, verdict) in [
        (THREE_PERCENT, 3, 3, Verdict::Worse),
        (THREE_PERCENT, 4, 0, Verdict::CannotSay),
        (THREE_PERCENT, 0, 4, Verdict::Worse),
        (faster, 4, 0, Verdict::Better),
        (faster, 0, 4, Verdict::CannotSay),
        (equal, 3, 3, Verdict::NoDifferenceSeen),
        (equal, 4, 0, Verdict::CannotSay),
        (equal, 0, 4, Verdict::CannotSay),
    ] {
        let found = limited(&ratios, arm, baseline);
        assert_eq!(found.verdict, verdict, "{ratios:?} {arm} {baseline}: {}", found.sentence);
    }
    let sentence = limited(&equal, 4, 0).sentence;
    assert!(sentence.contains("the driver was at its limit with container in 4 of 6 blocks"), "{sentence}");
    assert!(limited(&THREE_PERCENT, 0, 4).sentence.contains("], or more: the driver was at its limit"));
}

#[test]
fn blocks_that_failed_count_as_the_worst_possible() {
    let (spec, all) = (spec(), clear());
    let lost =
        |missing: usize| asked(Paired { missing: missing as u32, planned: 12, ..paired(&spec, &all[missing..]) });
    let whole = lost(0);
    let one = lost(1);
    assert_eq!((whole.verdict, one.verdict), (Verdict::Worse, Verdict::Worse));
    assert!(one.ratio.low < whole.ratio.low && one.ratio.high > whole.ratio.high && one.p_equal > whole.p_equal);
    assert!(
        one.sentence.ends_with("; from 11 of 12 blocks, with 1 that failed counted as the worst possible"),
        "{}",
        one.sentence
    );
    let three = lost(3);
    assert_eq!((three.verdict, three.ratio.low), (Verdict::CannotSay, None));
    assert!(three.sentence.contains("3 of 12 blocks have no figure on one of the two"), "{}", three.sentence);
    let not_run = asked(Paired { planned: 12, ..paired(&spec, &all[3..]) });
    assert!(
        not_run.verdict == Verdict::Worse && not_run.sentence.ends_with("; from 9 of 12 blocks"),
        "{}",
        not_run.sentence
    );
}
