//! How many guests the host carries, from the scale-ups of a case.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::density::{CoursePoint, DensitySpec, Level, ScaleUp, StopKind, metric};
use tare_model::findings::{ArmDensity, Comparison, DensityFindings, LevelFindings, Verdict};
use tare_model::merging::SavedFrom;
use tare_model::metric::Unit;
use tare_model::plan::Plan;
use tare_model::study::{Arm, Case, CaseLoad};
use tare_model::trial::TrialRecord;

use crate::distribution::completed;
use crate::{estimate, fit, words};

/// Metrics of a scale-up that are compared between arms: how many guests held, and what they did together. All others are
/// those of a number of guests, which is another on each arm.
pub(crate) const COMPARED: [&str; 2] = [metric::HELD, metric::OPERATIONS];

/// Most points of a course that are kept for drawing.
const COURSE_POINTS_MAX: usize = 400;

/// The case's scale-ups by arm, in the order of the study; `None` where the case adds no guests, or no trial of it completed.
pub(crate) fn of_case<'a>(
    case: &Case,
    arms: impl Iterator<Item = (&'a Arm, &'a [&'a TrialRecord])>,
) -> Option<DensityFindings> {
    let CaseLoad::Density { spec, .. } = &case.load else { return None };
    let (mut found, mut offered) = (Vec::new(), None);
    for (arm, trials) in arms {
        offered = offered.or_else(|| scale_ups(trials).find_map(|(_, scale_up)| scale_up.offered_per_guest_per_s));
        found.extend(of_arm(&arm.id, trials));
    }
    let arms: Vec<ArmDensity> = found;
    let ratio = |level: &LevelFindings| {
        let of = |id: &str| level.metrics.get(id).map(|found| found.value);
        of(metric::PROMISED).zip(of(metric::OVERCOMMIT)).filter(|(_, ratio)| *ratio > 0.0)
    };
    let host =
        arms.iter().flat_map(|arm| &arm.levels).find_map(ratio).map_or(0.0, |(promised, ratio)| promised / ratio);
    let found = DensityFindings {
        guest_memory_bytes: guest_memory(case, spec),
        host_memory_bytes: host.round() as u64,
        offered_per_guest_per_s: offered,
        arms,
    };
    (!found.arms.is_empty()).then_some(found)
}

/// Memory promised to a guest, bytes; the mean of a tile's guests, which are of sizes of their own.
fn guest_memory(case: &Case, DensitySpec { tile, .. }: &DensitySpec) -> u64 {
    let together = tile.iter().map(|guest| guest.size.memory.0).fold(0, u64::saturating_add);
    if tile.is_empty() { case.guest.memory.0 } else { together / tile.len() as u64 }
}

/// (block, scale-up) of the completed trials.
fn scale_ups<'a>(trials: &[&'a TrialRecord]) -> impl Iterator<Item = (u32, &'a ScaleUp)> {
    trials.iter().filter_map(|record| Some((record.planned.block, completed(record)?.scale_up.as_ref()?)))
}

/// One arm's scale-ups by block.
fn of_arm(arm: &str, trials: &[&TrialRecord]) -> Option<ArmDensity> {
    let scale_ups: Vec<(u32, &ScaleUp)> = scale_ups(trials).collect();
    let held_blocks: Vec<(u32, u32)> = scale_ups.iter().map(|(block, scale_up)| (*block, scale_up.held())).collect();
    let held = held_blocks.iter().map(|(_, held)| *held).min()?;
    let stopped = scale_ups.iter().map(|(block, scale_up)| {
        let stop = &scale_up.stopped;
        (*block, stop.guests, stop_in_words(stop.kind).to_owned(), stop.detail.clone())
    });
    let points: Vec<(f64, f64)> = scale_ups
        .iter()
        .flat_map(|(_, scale_up)| &scale_up.levels)
        .filter(|level| level.worked())
        .filter_map(|level| Some((f64::from(level.guests), *level.metrics.get(metric::OPERATIONS)?)))
        .collect();
    Some(ArmDensity {
        arm: arm.to_owned(),
        held,
        end_of_series: scale_ups.iter().all(|(_, scale_up)| scale_up.stopped.kind == StopKind::End),
        stopped: stopped.collect(),
        levels: levels(&scale_ups),
        course: course(&scale_ups),
        models: fit::models(&points),
        held_blocks,
        tile: scale_ups
            .iter()
            .map(|(_, scale_up)| &scale_up.tile)
            .find(|tile| !tile.is_empty())
            .cloned()
            .unwrap_or_default(),
    })
}

fn levels(scale_ups: &[(u32, &ScaleUp)]) -> Vec<LevelFindings> {
    let all = || scale_ups.iter().flat_map(|(_, scale_up)| &scale_up.levels);
    let numbers: BTreeSet<u32> = all().map(|level| level.guests).collect();
    let one = |guests: u32| {
        let own: Vec<&Level> = all().filter(|level| level.guests == guests).collect();
        let with_figures: Vec<&&Level> = own.iter().filter(|level| level.worked()).collect();
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
fn course(scale_ups: &[(u32, &ScaleUp)]) -> Vec<CoursePoint> {
    let mut order: Vec<(u32, u32, &ScaleUp)> =
        scale_ups.iter().map(|(block, scale_up)| (scale_up.held(), *block, *scale_up)).collect();
    order.sort_by_key(|(held, block, _)| (*held, *block));
    let Some((.., middle)) = order.get(order.len().saturating_sub(1) / 2) else { return Vec::new() };
    let every = middle.course.len().div_ceil(COURSE_POINTS_MAX).max(1);
    let last = middle.course.len().saturating_sub(1);
    let kept = middle.course.iter().enumerate().filter(|(n, _)| n % every == 0 || *n == last);
    kept.map(|(_, point)| *point).collect()
}

/// Why a scale-up ended, for people.
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
    let of = |id: &str| found.arms.iter().find(|arm| arm.arm == id);
    let (arm, base) = (of(&comparison.arm)?, of(&comparison.baseline)?);
    // Guests of a tile are of sizes of their own.
    let size = match arm.tile.len() {
        0 | 1 => format!(" of {}", words::value(found.guest_memory_bytes as f64, &Unit::Bytes)),
        _ => String::new(),
    };
    let ratio = if found.host_memory_bytes == 0 || arm.held == 0 {
        String::new()
    } else {
        format!(", {:.1} times the host's memory", promised(found, arm) / found.host_memory_bytes as f64)
    };
    let blocks = match (arm.held_blocks.len().min(base.held_blocks.len()) < 2, plan.study.published.is_some()) {
        (true, true) => "; published once",
        (true, false) => "; from a single block",
        _ => "",
    };
    let times = times(arm, base);
    Some(format!(
        "{}: carries {}{size}{ratio}{}, and {} {}{}{times}{blocks}",
        label(plan, &arm.arm),
        guests(arm),
        why(arm),
        label(plan, &base.arm),
        guests(base),
        why(base)
    ))
}

fn label<'a>(plan: &'a Plan, id: &'a str) -> &'a str {
    plan.study.arms.iter().find(|arm| arm.id == id).map_or(id, |arm| arm.label.as_str())
}

/// How many times as many guests as on the baseline, where that can be said.
fn times(arm: &ArmDensity, base: &ArmDensity) -> String {
    if let Some(why) = bounded(arm, base) {
        return format!(": {why}");
    }
    match (arm.held, base.held) {
        (0, _) | (_, 0) => String::new(),
        (a, b) if a == b => ": as many".to_owned(),
        (a, b) => {
            let bound = match (arm.end_of_series, base.end_of_series) {
                (true, false) => "at least ",
                (false, true) => "at most ",
                _ => "",
            };
            format!(": {bound}{:.1}x as many", f64::from(a) / f64::from(b))
        }
    }
}

/// Why two arms cannot be distinguished, where the series ended on both before the host was full; `None` otherwise.
fn bounded(arm: &ArmDensity, base: &ArmDensity) -> Option<&'static str> {
    (arm.end_of_series && base.end_of_series && arm.held == base.held)
        .then_some("cannot say which carries more, because the series ended before either was full")
}

/// Takes back what was said of an arm that came, like the baseline, to the end of the series: equal numbers show nothing there.
pub(crate) fn qualify(plan: &Plan, found: &DensityFindings, comparisons: &mut [Comparison]) {
    let of = |id: &str| found.arms.iter().find(|arm| arm.arm == id);
    for comparison in comparisons {
        let both = of(&comparison.arm).zip(of(&comparison.baseline));
        let Some(why) = both.and_then(|(arm, base)| bounded(arm, base)) else { continue };
        if !matches!(comparison.verdict, Verdict::NotComparable | Verdict::NoiseFloor | Verdict::CannotSay) {
            comparison.sentence = format!("{}: {why}", label(plan, &comparison.arm));
            (comparison.verdict, comparison.detectable) = (Verdict::CannotSay, None);
        }
    }
}

/// Memory promised to the guests that held, bytes: as the level tells it, else by the size of a guest.
fn promised(found: &DensityFindings, arm: &ArmDensity) -> f64 {
    let level = arm.levels.iter().find(|level| level.guests == arm.held);
    let reported = level.and_then(|level| level.metrics.get(metric::PROMISED)).map(|promised| promised.value);
    reported.unwrap_or_else(|| f64::from(arm.held) * found.guest_memory_bytes as f64)
}

fn guests(arm: &ArmDensity) -> String {
    let bound = if arm.end_of_series && arm.held > 0 { "at least " } else { "" };
    let tile = arm.tile.len() as u32;
    if tile > 1 && arm.held > 0 {
        let tiles = arm.held / tile;
        return format!("{bound}{tiles} {} of {tile} guests", if tiles == 1 { "tile" } else { "tiles" });
    }
    match arm.held {
        0 => "no guest".to_owned(),
        1 => format!("{bound}1 guest"),
        held => format!("{bound}{held} guests"),
    }
}

/// ` (stopped by memory)`, with every reason that one of its scale-ups had.
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
    let declared = match (&study.published, study.trust_domain.as_deref()) {
        // Whether others declared one nobody here knows.
        (Some(_), _) => String::new(),
        (None, domain) => format!(" Declared here: {}.", domain.unwrap_or("none was declared")),
    };
    Some(format!(
        "Memory was merged across guests on {}. A guest that shares merged memory can find out by timing what the \
         memory of others contains; published attacks also changed it (deduplication side channels, Flip Feng Shui, \
         CAIN). Merge only within one trust domain.{declared}",
        merging.join("; ")
    ))
}

/// What is said of the method where guests were added.
pub(crate) fn method(plan: &Plan) -> Vec<String> {
    if !plan.study.cases.iter().any(|case| case.load.is_density()) {
        return Vec::new();
    }
    vec![
        "A trial of a density case is one scale-up: guests are added one at a time, in one instance. A guest is added \
         when the memory that it touches at once fits above the reserve or, where memory is merged, when merging has \
         made room. At each number of the series all guests are driven through the phases of the case. A number held \
         when every guest worked to the end, its work added up, and every objective was met. The scale-up ends before \
         the reserve is touched, when the host swaps or waits for memory, when a guest is lost, and at the end of the \
         series. The number given for an arm is the smallest of its blocks. A trial's metrics are those of the largest \
         number that held in it. This number differs between arms, so only the number itself and the operations of all \
         guests together are compared; the tables by number of guests compare equal numbers. Figures of a number at \
         which an objective was missed are shown. Those of a number at which a guest was lost or its work was wrong \
         are not. Numbers of one scale-up are iterations of one instance: intervals at each come from the blocks."
            .to_owned(),
        "Merging has settled when savings grew by less than a hundredth over two whole passes of the kernel's scanner. \
         Saved memory is pages_sharing and merged empty pages times the size of a page, before the kernel's own \
         bookkeeping; the profit is after it, as the kernel computes it. The unique memory of a guest is what no other \
         process maps; the shared part is its proportional share of the rest."
            .to_owned(),
        "Where four numbers of guests or more were measured, two models of total operations a second against guests \
         are fitted by least squares on all blocks' figures: the capped line min(a N, c), whose knee is c/a guests, \
         and the universal scalability law lambda N / (1 + sigma (N-1) + kappa N (N-1)), whose knee is where it is \
         largest. A knee is reported where it lies within what was measured and, of the line, at least a twentieth of \
         the operations would be missing without it. The one with the smaller residual comes first; neither is \
         extrapolated beyond the largest number that was measured."
            .to_owned(),
    ]
}
