//! Scale-ups: from made-up runs to findings, answers and warnings.

use std::collections::BTreeMap;

use tare_model::density::{
    CoursePoint, DensitySpec, GuestSeries, Level, ScaleUp, StopKind, Stopped, TileGuest, metric,
};
use tare_model::findings::{GateOutcome, Verdict};
use tare_model::guest::GuestSize;
use tare_model::merging::{HostMemory, MergeRule, Merging, SavedFrom};
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::plan::Plan;
use tare_model::study::CaseLoad;
use tare_model::trial::{Outcome, TrialRecord};
use tare_model::{ByteSize, Span};
use tare_record::testing;

use super::of;

const GIB: u64 = 1 << 30;

/// The study of density with a second arm that merges.
fn plan(blocks: u32) -> Plan {
    let mut plan = testing::plan(blocks);
    let study = &mut plan.study;
    study.arms.iter_mut().for_each(|arm| arm.replica_of = None);
    let rule = MergeRule::Tare { free_goal: 0.2, max_cpu: 0.7 };
    study.arms[1].host_memory =
        HostMemory { merging: Some(Merging { rule, zero_pages: false }), ..HostMemory::default() };
    study.trust_domain = Some("one team's guests".into());
    let case = &mut study.cases[0];
    case.guest.memory = ByteSize(3 * GIB);
    let spec = DensitySpec {
        tile: Vec::new(),
        guests: GuestSeries::Listed(vec![1, 4, 8, 16, 32]),
        reserve: None,
        settle: Span::from_secs(60),
        rest: Span::ZERO,
        pressure: 0.4,
    };
    case.load = CaseLoad::Density { load: case.load.largest(), spec };
    plan
}

fn level(guests: u32, operations: f64) -> Level {
    let metrics = BTreeMap::from([
        (metric::OPERATIONS.to_owned(), operations),
        (metric::PROMISED.to_owned(), f64::from(guests) * 3.0 * GIB as f64),
        (metric::OVERCOMMIT.to_owned(), f64::from(guests) * 3.0 / 24.0),
    ]);
    let saved_from = SavedFrom { zero_bytes: u64::from(guests) * GIB, ..SavedFrom::default() };
    Level { guests, metrics, saved_from, ..Level::default() }
}

/// A trial that ascended to the last of `levels`.
fn ascended(plan: &Plan, index: u32, levels: &[u32], kind: StopKind) -> TrialRecord {
    let mut record = testing::trial(plan, index);
    let noise = 1.0 + 0.01 * testing::noise(u64::from(index));
    let levels: Vec<Level> =
        levels.iter().map(|&guests| level(guests, (f64::from(guests) * 1_000.0).min(9_000.0) * noise)).collect();
    let last = levels.last().map_or(0, |level| level.guests);
    let stopped = Stopped { kind, guests: last, detail: "2.1 GiB are available".into() };
    let course =
        (0..1_000).map(|s| CoursePoint { at_s: f64::from(s), guests: last.min(s / 10), ..CoursePoint::default() });
    let scale_up =
        ScaleUp { levels, stopped, course: course.collect(), offered_per_guest_per_s: Some(1_000.0), tile: Vec::new() };
    record.metrics = vec![MetricSpec::new(metric::HELD, "guests that held", Unit::Count, Better::Higher).primary()];
    let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
    m.metrics = BTreeMap::from([(metric::HELD.to_owned(), f64::from(scale_up.held()))]);
    m.scale_up = Some(scale_up);
    record
}

fn trials(plan: &Plan, fewer: Option<u32>) -> Vec<TrialRecord> {
    let of = |index: u32| match plan.trials[index as usize].arm.as_str() {
        "container" if fewer.map(|block| block + 1) == Some(plan.trials[index as usize].block) => {
            ascended(plan, index, &[1, 4, 8, 16, 29], StopKind::Memory)
        }
        "container" => ascended(plan, index, &[1, 4, 8, 16, 32], StopKind::End),
        _ => ascended(plan, index, &[1, 4, 7], StopKind::Memory),
    };
    (0..plan.trials.len() as u32).map(of).collect()
}

#[test]
fn the_answer_is_how_many_guests_and_how_many_times_as_many() {
    let plan = plan(3);
    let found = of(&plan, &trials(&plan, None));
    let answer = &found.answer[0];
    let said = "container: half of the scale-ups carry at least 32 guests of 3.00 GiB, 4.0 times the host's memory, and native 7 \
                guests (stopped by memory): at least 4.6 times as many (95 % interval from ";
    assert!(answer.sentence.starts_with(said), "{}", answer.sentence);
    assert_eq!(answer.verdict, Verdict::Better);
    assert_eq!(answer.sentence, found.cases[0].metrics[0].comparisons[0].sentence, "there is one sentence");
    let same = found.answer.iter().find(|answer| answer.arm == "native-again").unwrap();
    assert!(same.verdict == Verdict::NoDifferenceSeen && same.sentence.contains("no difference detected"), "{same:?}");
    assert!(
        found.warnings[0].contains("merged across guests on container") && found.warnings[0].contains("one team's")
    );
    assert!(found.method.iter().any(|paragraph| paragraph.contains("one scale-up")));
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<tare_model::findings::Findings>(&text).unwrap(), found);
}

#[test]
fn a_gate_judges_numbers_of_guests_by_the_interval_of_their_fitted_ratio() {
    let mut plan = plan(3);
    plan.study.baseline = "container".to_owned();
    let found = of(&plan, &trials(&plan, None));
    let at = |limit: f64| crate::gated(&found, limit).swap_remove(0);
    let own = at(0.0);
    assert_eq!((own.arm.as_str(), own.verdict, own.outcome), ("native", Verdict::Worse, GateOutcome::Worse), "{own:?}");
    let bound = 1.0 - own.ratio.as_ref().unwrap().high.unwrap();
    let beyond = at(bound + 0.01);
    assert_eq!(beyond.outcome, GateOutcome::Unsure, "{beyond:?}");
    let near = at(bound - 0.001);
    // Two comparisons share the error probability: beside its end the interval alone is not enough.
    assert_eq!(near.outcome, GateOutcome::Unsure, "{near:?}");
    assert!(near.p_worse.unwrap() > 0.05 && near.reason.contains("so many comparisons"), "{near:?}");
}

#[test]
fn an_arm_whose_host_is_not_seen_is_given_no_share_of_this_hosts_memory() {
    let plan = plan(3);
    let mut trials = trials(&plan, None);
    for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        for level in m.scale_up.iter_mut().flat_map(|scale_up| scale_up.levels.iter_mut()) {
            level.metrics.retain(|id, _| id == metric::OPERATIONS);
        }
    }
    let found = of(&plan, &trials);
    let said = &found.answer[0].sentence;
    let start = "container: half of the scale-ups carry at least 32 guests of 3.00 GiB, and native 7 guests";
    assert!(said.starts_with(start), "{said}");
    let arms = &found.cases[0].density.as_ref().unwrap().arms;
    let elsewhere: Vec<&str> = arms.iter().filter(|arm| arm.is_elsewhere()).map(|arm| arm.arm.as_str()).collect();
    assert_eq!(elsewhere, ["container"]);
}

#[test]
fn held_is_what_half_of_the_scale_ups_hold_and_levels_are_estimated_over_blocks() {
    let plan = plan(3);
    let found = of(&plan, &trials(&plan, Some(1)));
    let density = found.cases[0].density.as_ref().unwrap();
    assert_eq!((density.guest_memory_bytes, density.host_memory_bytes), (3 * GIB, 24 * GIB));
    let merged = density.arms.iter().find(|arm| arm.arm == "container").unwrap();
    let fit = merged.fit.as_ref().unwrap();
    assert!(
        (30..=34).contains(&merged.held) && !merged.end_of_series && !fit.all_held,
        "not the least of the blocks: {fit:?}"
    );
    assert_eq!((f64::from(merged.held), fit.tries, fit.half.value.fract()), (fit.half.value, 3, 0.0));
    assert_eq!(merged.held_blocks, [(1, 32), (2, 29), (3, 32)]);
    let at = |guests: u32| merged.levels.iter().find(|level| level.guests == guests).unwrap();
    assert_eq!((at(32).tried, at(32).held, at(16).tried), (2, 2, 3));
    let operations = &at(16).metrics[metric::OPERATIONS];
    assert!(operations.n == 3 && operations.low.is_some() && (operations.value / 9_000.0 - 1.0).abs() < 0.02);
    assert_eq!(at(8).saved_from.zero_bytes, 8 * GIB);
    let model = &merged.models[0];
    assert_eq!(model.name, "capped line");
    assert!((model.knee.unwrap() - 9.0).abs() < 0.5, "{model:?}");
    assert!(merged.course.len() <= 401 && merged.course.last().unwrap().at_s == 999.0);
    let sentence = &found.answer[0].sentence;
    assert!(sentence.contains(&format!("half of the scale-ups carry {} guests", merged.held)), "{sentence}");
    assert!(sentence.contains("(stopped by memory)"), "{sentence}");
}

#[test]
fn a_level_that_failed_is_tried_and_not_held_and_one_block_says_so() {
    let plan = plan(1);
    let mut trials = trials(&plan, None);
    for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        let scale_up = m.scale_up.as_mut().unwrap();
        let last = scale_up.levels.last_mut().unwrap();
        // The window was over when it was lost, so there are figures; and the number before it missed an objective.
        (last.failed, last.cause) = (Some("guest 3 was killed for memory".into()), Some(StopKind::Killed));
        let before = scale_up.levels.iter_mut().rev().nth(1).unwrap();
        (before.failed, before.cause) = (Some("too slow".into()), Some(StopKind::Qos));
        scale_up.stopped.kind = StopKind::Killed;
        m.metrics.insert(metric::HELD.to_owned(), f64::from(scale_up.held()));
    }
    let found = of(&plan, &trials);
    let density = found.cases[0].density.as_ref().unwrap();
    let merged = density.arms.iter().find(|arm| arm.arm == "container").unwrap();
    let last = merged.levels.last().unwrap();
    assert_eq!((merged.held, last.guests, last.tried, last.held), (8, 32, 1, 0));
    assert!(last.metrics.is_empty() && last.saved_from == SavedFrom::default(), "a lost guest's figures are none");
    let missed = &merged.levels[merged.levels.len() - 2];
    assert!(missed.guests == 16 && missed.held == 0 && missed.metrics.contains_key(metric::OPERATIONS), "{missed:?}");
    let sentence = &found.answer.iter().find(|answer| answer.arm == "container").unwrap().sentence;
    assert!(
        sentence.contains("a guest that was lost")
            && sentence.ends_with(", from a single block, so there is no interval"),
        "{sentence}"
    );
    assert!(sentence.starts_with("container: carries 8 guests"), "{sentence}");
}

/// All trials of a study, each with the same numbers of guests on an arm.
fn alike(plan: &Plan, levels: impl Fn(&str) -> (&'static [u32], StopKind)) -> Vec<TrialRecord> {
    let of = |index: u32| {
        let (levels, kind) = levels(&plan.trials[index as usize].arm);
        ascended(plan, index, levels, kind)
    };
    (0..plan.trials.len() as u32).map(of).collect()
}

#[test]
fn where_the_series_ends_first_nobody_carries_as_many() {
    let plan = plan(3);
    let found = of(&plan, &alike(&plan, |_| (&[1, 4, 8], StopKind::End)));
    let answer = found.answer.iter().find(|answer| answer.arm == "container").unwrap();
    assert_eq!(answer.verdict, Verdict::CannotSay, "equal, because nobody asked for more");
    assert!(
        answer.sentence.ends_with(": cannot say which carries more, because both came to the end of the series"),
        "{}",
        answer.sentence
    );
    let comparison = &found.cases[0].metrics[0].comparisons[0];
    assert_eq!(comparison.sentence, answer.sentence);

    let full = of(&plan, &alike(&plan, |_| (&[1, 4, 8], StopKind::Memory)));
    let answer = full.answer.iter().find(|answer| answer.arm == "container").unwrap();
    assert!(
        answer.verdict == Verdict::NoDifferenceSeen && answer.sentence.contains("1.00 times as many"),
        "{answer:?}"
    );
    let comparison = full.cases[0].metrics[0].comparisons.iter().find(|c| c.arm == "container").unwrap();
    assert!(
        comparison.detectable.is_some_and(|size| size > 0.05),
        "one guest more of eight is not resolved: {comparison:?}"
    );
}

#[test]
fn the_sentence_says_what_the_verdict_says() {
    let plan = plan(3);
    let of_block = |index: u32| {
        let planned = &plan.trials[index as usize];
        let (low, high): (&[u32], &[u32]) = (&[1, 2], &[1, 4, 8]);
        let levels = if planned.arm == "native" || planned.block == 2 { low } else { high };
        ascended(&plan, index, levels, StopKind::Memory)
    };
    let found = of(&plan, &(0..plan.trials.len() as u32).map(of_block).collect::<Vec<_>>());
    let answer = found.answer.iter().find(|answer| answer.arm == "container").unwrap();
    assert_eq!(answer.verdict, Verdict::TooNoisy);
    assert!(answer.sentence.contains(": too noisy to tell; only "), "{}", answer.sentence);
}

#[test]
fn an_arm_that_carries_none_is_no_multiple() {
    let plan = plan(3);
    let none =
        |arm: &str| if arm == "container" { (&[][..], StopKind::Memory) } else { (&[1, 4][..], StopKind::Memory) };
    let found = of(&plan, &alike(&plan, none));
    let answer = found.answer.iter().find(|answer| answer.arm == "container").unwrap();
    assert_eq!(
        answer.sentence,
        "container: half of the scale-ups carry no guest of 3.00 GiB (stopped by memory), and native 4 guests (stopped by memory)"
    );
}

#[test]
fn figures_of_different_numbers_of_guests_are_not_compared() {
    let plan = plan(3);
    let mut trials = trials(&plan, None);
    for record in &mut trials {
        let metric = |id| MetricSpec::new(id, id, Unit::OperationsPerSecond, Better::Higher);
        record.metrics.extend([metric(metric::OPERATIONS), metric(metric::PER_GUEST)]);
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        let last = m.scale_up.as_ref().unwrap().levels.last().unwrap();
        let all = last.metrics[metric::OPERATIONS];
        let each = all / f64::from(last.guests);
        m.metrics.extend([(metric::OPERATIONS.to_owned(), all), (metric::PER_GUEST.to_owned(), each)]);
    }
    let found = of(&plan, &trials);
    let case = &found.cases[0];
    let of = |id: &str| case.metrics.iter().find(|metric| metric.spec.id == id).unwrap();
    assert!(!of(metric::HELD).comparisons.is_empty() && !of(metric::OPERATIONS).comparisons.is_empty());
    assert!(of(metric::PER_GUEST).comparisons.is_empty() && of(metric::PER_GUEST).arms.len() == 3);
    let account = case.accounts.iter().find(|account| account.arm == "native").unwrap();
    assert_eq!(account.offered_per_s, Some(7_000.0), "seven guests held, and each was offered a thousand");
    assert_eq!(case.density.as_ref().unwrap().offered_per_guest_per_s, Some(1_000.0));
}

#[test]
fn guests_that_are_added_by_tiles_are_reported_in_tiles() {
    let plan = plan(2);
    let mut trials = trials(&plan, None);
    for record in &mut trials {
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        let scale_up = m.scale_up.as_mut().unwrap();
        scale_up.tile = ["shop", "forum", "mail", "build"].map(str::to_owned).to_vec();
        scale_up.levels.retain(|level| level.guests % 4 == 0);
    }
    let findings = of(&plan, &trials);
    let density = findings.cases[0].density.as_ref().unwrap();
    assert!(density.arms.iter().all(|arm| arm.tile.len() == 4 && arm.tile[0] == "shop"));
    let said = &findings.answer[0].sentence;
    assert!(
        said.contains("half of the scale-ups carry at least 8 tiles of 4 guests, 4.0 times the host's memory, and"),
        "{said}"
    );
    assert!(said.contains("1 tile of 4 guests (stopped by memory)"), "{said}");
}

#[test]
fn guests_of_tiles_are_of_their_own_sizes_and_not_of_the_cases() {
    let mut plan = plan(2);
    let gib = |gib: u64| GuestSize { cpus: 1, memory: ByteSize(gib * GIB) };
    let guest = |name: &str, size| TileGuest { name: name.to_owned(), size };
    for (sizes, mean, said) in
        [(&[1, 2, 3, 6][..], 3 << 30, "8 tiles of 4 guests, "), (&[1], 1 << 30, "32 guests of 1.00 GiB, ")]
    {
        let case = &mut plan.study.cases[0];
        case.guest = gib(64);
        let tile: Vec<TileGuest> = (1..).zip(sizes).map(|(n, size)| guest(&format!("g{n}"), gib(*size))).collect();
        let CaseLoad::Density { spec, .. } = &mut case.load else { panic!("{:?}", case.load) };
        spec.tile.clone_from(&tile);
        let mut trials = trials(&plan, None);
        for record in &mut trials {
            let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
            let scale_up = m.scale_up.as_mut().unwrap();
            scale_up.tile = tile.iter().map(|guest| guest.name.clone()).collect();
            scale_up.levels.retain(|level| level.guests % 4 == 0);
        }
        let findings = of(&plan, &trials);
        assert_eq!(findings.cases[0].density.as_ref().unwrap().guest_memory_bytes, mean);
        let sentence = &findings.answer[0].sentence;
        assert!(sentence.contains(said) && !sentence.contains("64.0 GiB"), "{sentence}");
    }
}
