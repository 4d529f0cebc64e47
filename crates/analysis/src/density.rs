//! How many guests the host carries, from the ascents of a case.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::density::{Ascent, CoursePoint, Level, StopKind, metric};
use tare_model::findings::{ArmDensity, Comparison, DensityFindings, LevelFindings, Verdict};
use tare_model::merging::SavedFrom;
use tare_model::metric::Unit;
use tare_model::plan::Plan;
use tare_model::study::{Arm, Case};
use tare_model::trial::TrialRecord;

use crate::distribution::completed;
use crate::{estimate, fit, words};

/// Most points of a course that are kept for drawing.
const COURSE_POINTS_MAX: usize = 400;

/// The case's ascents by arm, in the order of the study; `None` where the case adds no guests, or no trial of it completed.
pub(crate) fn of_case<'a>(
    case: &Case,
    arms: impl Iterator<Item = (&'a Arm, &'a [&'a TrialRecord])>,
) -> Option<DensityFindings> {
    case.density.as_ref()?;
    let arms: Vec<ArmDensity> = arms.filter_map(|(arm, trials)| of_arm(&arm.id, trials)).collect();
    let ratio = |level: &LevelFindings| {
        let of = |id: &str| level.metrics.get(id).map(|found| found.value);
        of(metric::PROMISED).zip(of(metric::OVERCOMMIT)).filter(|(_, ratio)| *ratio > 0.0)
    };
    let host =
        arms.iter().flat_map(|arm| &arm.levels).find_map(ratio).map_or(0.0, |(promised, ratio)| promised / ratio);
    let found =
        DensityFindings { guest_memory_bytes: case.guest.memory.0, host_memory_bytes: host.round() as u64, arms };
    (!found.arms.is_empty()).then_some(found)
}

/// One arm's ascents by block.
fn of_arm(arm: &str, trials: &[&TrialRecord]) -> Option<ArmDensity> {
    let told = trials.iter().filter_map(|record| Some((record.planned.block, completed(record)?.ascent.as_ref()?)));
    let ascents: Vec<(u32, &Ascent)> = told.collect();
    let held_blocks: Vec<(u32, u32)> = ascents.iter().map(|(block, ascent)| (*block, ascent.held())).collect();
    let held = held_blocks.iter().map(|(_, held)| *held).min()?;
    let stopped = ascents.iter().map(|(block, ascent)| {
        let stop = &ascent.stopped;
        (*block, stop.guests, stop_in_words(stop.kind).to_owned(), stop.detail.clone())
    });
    let points: Vec<(f64, f64)> = ascents
        .iter()
        .flat_map(|(_, ascent)| &ascent.levels)
        .filter(|level| worked(level))
        .filter_map(|level| Some((f64::from(level.guests), *level.metrics.get(metric::OPERATIONS)?)))
        .collect();
    Some(ArmDensity {
        arm: arm.to_owned(),
        held,
        end_of_series: ascents.iter().all(|(_, ascent)| ascent.stopped.kind == StopKind::End),
        stopped: stopped.collect(),
        levels: levels(&ascents),
        course: course(&ascents),
        models: fit::models(&points),
        held_blocks,
    })
}

/// Whether all guests did their work at that level: their figures count although an objective was missed, and not when a
/// guest was lost, or its work was wrong.
fn worked(level: &Level) -> bool {
    level.failed.is_none() || level.metrics.contains_key(metric::OPERATIONS)
}

fn levels(ascents: &[(u32, &Ascent)]) -> Vec<LevelFindings> {
    let all = || ascents.iter().flat_map(|(_, ascent)| &ascent.levels);
    let numbers: BTreeSet<u32> = all().map(|level| level.guests).collect();
    let one = |guests: u32| {
        let own: Vec<&Level> = all().filter(|level| level.guests == guests).collect();
        let with_figures: Vec<&&Level> = own.iter().filter(|level| worked(level)).collect();
        let ids: BTreeSet<&String> = with_figures.iter().flat_map(|level| level.metrics.keys()).collect();
        let metrics = ids.into_iter().filter_map(|id| {
            let values: Vec<f64> = with_figures.iter().filter_map(|level| level.metrics.get(id).copied()).collect();
            let finite: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
            Some((id.clone(), estimate::of_values(&finite)?))
        });
        LevelFindings {
            guests,
            tried: own.len() as u32,
            held: own.iter().filter(|level| level.failed.is_none()).count() as u32,
            metrics: metrics.collect::<BTreeMap<_, _>>(),
            saved_from: mean_saved(&with_figures),
        }
    };
    numbers.into_iter().map(one).collect()
}

fn mean_saved(levels: &[&&Level]) -> SavedFrom {
    let mean = |of: fn(&SavedFrom) -> u64| {
        let sum: u128 = levels.iter().map(|level| u128::from(of(&level.saved_from))).sum();
        (sum / levels.len().max(1) as u128) as u64
    };
    SavedFrom {
        zero_bytes: mean(|saved| saved.zero_bytes),
        code_bytes: mean(|saved| saved.code_bytes),
        data_bytes: mean(|saved| saved.data_bytes),
        unknown_bytes: mean(|saved| saved.unknown_bytes),
    }
}

/// The course of the block whose held number is in the middle, thinned evenly; its last point is kept.
fn course(ascents: &[(u32, &Ascent)]) -> Vec<CoursePoint> {
    let mut order: Vec<(u32, u32, &Ascent)> =
        ascents.iter().map(|(block, ascent)| (ascent.held(), *block, *ascent)).collect();
    order.sort_by_key(|(held, block, _)| (*held, *block));
    let Some((.., middle)) = order.get(order.len().saturating_sub(1) / 2) else { return Vec::new() };
    let every = middle.course.len().div_ceil(COURSE_POINTS_MAX).max(1);
    let last = middle.course.len().saturating_sub(1);
    let kept = middle.course.iter().enumerate().filter(|(n, _)| n % every == 0 || *n == last);
    kept.map(|(_, point)| *point).collect()
}

/// Why an ascent ended, for people.
pub(crate) const fn stop_in_words(kind: StopKind) -> &'static str {
    match kind {
        StopKind::End => "the end of the series",
        StopKind::Memory => "memory",
        StopKind::Swap => "swapping",
        StopKind::Pressure => "waiting for memory",
        StopKind::Killed => "a guest that was lost",
        StopKind::Start => "a guest that did not start",
        StopKind::Qos => "an objective that was missed",
        StopKind::Wrong => "work that was wrong",
    }
}

/// The answer about one arm: how many guests the host carries with it, and with the baseline. `None` where there is nothing
/// to say about either.
pub(crate) fn sentence(plan: &Plan, found: &DensityFindings, comparison: &Comparison) -> Option<String> {
    if matches!(comparison.verdict, Verdict::NotComparable) {
        return None;
    }
    let label =
        |id: &str| plan.study.arms.iter().find(|arm| arm.id == id).map_or(id.to_owned(), |arm| arm.label.clone());
    let of = |id: &str| found.arms.iter().find(|arm| arm.arm == id);
    let (arm, base) = (of(&comparison.arm)?, of(&comparison.baseline)?);
    let size = words::value(found.guest_memory_bytes as f64, &Unit::Bytes);
    let promised = |held: u32| f64::from(held) * found.guest_memory_bytes as f64 / found.host_memory_bytes as f64;
    let ratio = if found.host_memory_bytes == 0 {
        String::new()
    } else {
        format!(", {:.1} times the host's memory", promised(arm.held))
    };
    let times = match (arm.held, base.held) {
        (a, b) if a == b => "as many".to_owned(),
        (_, 0) => "none".to_owned(),
        (a, b) => {
            let bound = if arm.end_of_series && !base.end_of_series { "at least " } else { "" };
            format!("{bound}{:.1}x as many", f64::from(a) / f64::from(b))
        }
    };
    let blocks = if arm.held_blocks.len().min(base.held_blocks.len()) < 2 { "; from a single block" } else { "" };
    Some(format!(
        "{}: carries {} of {size}{ratio}{}, and {} {}{}: {times}{blocks}",
        label(&arm.arm),
        guests(arm),
        why(arm),
        label(&base.arm),
        guests(base),
        why(base)
    ))
}

fn guests(arm: &ArmDensity) -> String {
    let bound = if arm.end_of_series && arm.held > 0 { "at least " } else { "" };
    match arm.held {
        0 => "no guest".to_owned(),
        1 => format!("{bound}1 guest"),
        held => format!("{bound}{held} guests"),
    }
}

/// ` (stopped by memory)`, with every reason that one of its ascents had.
fn why(arm: &ArmDensity) -> String {
    let reasons: BTreeSet<&str> = arm.stopped.iter().map(|(_, _, kind, _)| kind.as_str()).collect();
    let end = stop_in_words(StopKind::End);
    let said: Vec<&str> = reasons.into_iter().filter(|reason| *reason != end).collect();
    if said.is_empty() { String::new() } else { format!(" (stopped by {})", said.join(", ")) }
}

/// What must be read before any figure of arms that merge memory; `None` without one.
pub(crate) fn warning(plan: &Plan) -> Option<String> {
    let study = &plan.study;
    let merging: Vec<&str> =
        study.arms.iter().filter(|arm| arm.host_memory.merging.is_some()).map(|arm| arm.label.as_str()).collect();
    if merging.is_empty() {
        return None;
    }
    let domain = study.trust_domain.as_deref().unwrap_or("none was declared");
    Some(format!(
        "Memory was merged across guests on {}. Whoever shares merged memory can learn by timing what others hold in theirs, \
         and has been shown to change it (deduplication side channels, Flip Feng Shui, CAIN): merge only within one trust domain. \
         Declared here: {domain}.",
        merging.join("; ")
    ))
}

/// What is said of the method where guests were added.
pub(crate) fn method(plan: &Plan) -> Vec<String> {
    if plan.study.cases.iter().all(|case| case.density.is_none()) {
        return Vec::new();
    }
    vec![
        "A trial of a density case is one ascent: guests are added to one instance one at a time, each when the memory that it touches at once \
         fits above the reserve or, where memory is merged, once merging has made room; at each number of the series all guests are driven through the phases \
         of the case. A number is held when every guest worked to the end, its work added up, and every objective was met. The ascent ends \
         before the reserve is touched, when the host swaps or waits for memory, when a guest is lost, and at the end of the series. The number given \
         for an arm is the least of its blocks'. Numbers of one ascent are iterations of one instance: intervals at each come from the blocks."
            .to_owned(),
        "Merging has settled when savings grew by less than a hundredth over two whole passes of the kernel's scanner. Saved memory is pages_sharing and \
         merged empty pages times the size of a page, before the kernel's own bookkeeping; the profit is after it, as the kernel reckons. \
         The unique memory of a guest is what no other process maps; the shared part is its proportional share of the rest."
            .to_owned(),
        "Two models of total operations a second against guests are fitted by least squares on all blocks' figures: the capped line min(a N, c), whose knee is \
         c/a guests, and the universal scalability law lambda N / (1 + sigma (N-1) + kappa N (N-1)), whose knee is where it is largest. The one with \
         the smaller residual comes first; neither is carried beyond the largest number that was measured."
            .to_owned(),
    ]
}
