//! How many guests the host carries, from the scale-ups of a case.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::density::{CoursePoint, DensitySpec, Level, ScaleUp, StopKind, metric};
use tare_model::findings::{ArmDensity, DensityFindings, Estimate, LevelFindings, MetricFindings, Thresholds, Verdict};
use tare_model::merging::SavedFrom;
use tare_model::metric::Unit;
use tare_model::plan::Plan;
use tare_model::study::{Arm, Case, CaseLoad};
use tare_model::trial::TrialRecord;

use crate::distribution::completed;
use crate::held::{self, Ends, Ground, Tried};
use crate::threshold::Seen;
use crate::{estimate, fit, words};

/// Metrics of a scale-up that are compared between arms: how many guests or tiles held, and what guests did together. All others are
/// those of a number of guests, which is another on each arm.
pub(crate) const COMPARED: [&str; 3] = [metric::HELD, metric::TILES_HELD, metric::OPERATIONS];

/// Most points of a course that are kept for drawing.
const COURSE_POINTS_MAX: usize = 400;

/// The case's scale-ups by arm, in the order of the study; `None` where the case adds no guests, or no trial of it completed.
pub(crate) fn of_case<'a>(
    plan: &Plan,
    case: &Case,
    arms: impl Iterator<Item = (&'a Arm, &'a [&'a TrialRecord])>,
) -> Option<DensityFindings> {
    let CaseLoad::Density { spec, .. } = &case.load else { return None };
    let all: Vec<(&Arm, &[&TrialRecord])> = arms.filter(|(_, trials)| scale_ups(trials).next().is_some()).collect();
    let offered = all.iter().flat_map(|(_, trials)| scale_ups(trials));
    let offered = offered.filter_map(|(_, scale_up)| scale_up.offered_per_guest_per_s).next();
    let fits = match plan.study.published {
        Some(_) => vec![None; all.len()],
        None => {
            let tried = |(arm, trials): &(&'a Arm, &'a [&'a TrialRecord])| {
                let seen = scale_ups(trials).map(|(block, scale_up)| seen(block, scale_up)).collect();
                Tried { arm: &arm.id, seen, unit: Some(f64::from(spec.unit())) }
            };
            held::thresholds(&all.iter().map(tried).collect::<Vec<_>>(), &plan.study.baseline)
        }
    };
    let arms: Vec<ArmDensity> =
        all.into_iter().zip(fits).filter_map(|((arm, trials), fit)| of_arm(&arm.id, trials, fit)).collect();
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

/// What one scale-up shows of the number that its instance holds: at least what held, and less than what did not, or than one guest or tile more
/// where no more could be added. At the end of the list nothing bounds it above.
fn seen(block: u32, scale_up: &ScaleUp) -> Seen {
    let held = scale_up.held();
    let missed = scale_up.levels.iter().filter(|level| level.failed.is_some() && level.guests > held);
    let next = held + (scale_up.tile.len() as u32).max(1);
    let above = match missed.map(|level| level.guests).min() {
        Some(missed) => f64::from(missed).ln(),
        None if scale_up.stopped.kind == StopKind::End => f64::INFINITY,
        None => f64::from(next).ln(),
    };
    Seen { block, low: f64::from(held).ln(), high: above }
}

/// The middle one, or the lower of the two.
fn middle(held: &[(u32, u32)]) -> Option<u32> {
    let mut all: Vec<u32> = held.iter().map(|(_, held)| *held).collect();
    all.sort_unstable();
    all.get(all.len().checked_sub(1)? / 2).copied()
}

/// One arm's scale-ups by block.
fn of_arm(arm: &str, trials: &[&TrialRecord], fit: Option<Thresholds>) -> Option<ArmDensity> {
    let scale_ups: Vec<(u32, &ScaleUp)> = scale_ups(trials).collect();
    let held_blocks: Vec<(u32, u32)> = scale_ups.iter().map(|(block, scale_up)| (*block, scale_up.held())).collect();
    let held = fit.as_ref().map_or_else(|| middle(&held_blocks), |fit| Some(fit.half.value as u32))?;
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
        fit,
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

/// Puts the number that half of the scale-ups hold in the place of what the blocks held, and the ratios of these numbers into comparisons.
pub(crate) fn put_in(found: &DensityFindings, number: &mut MetricFindings) {
    let of = |id: &str| found.arms.iter().find(|arm| arm.arm == id);
    let tiles = number.spec.id == metric::TILES_HELD;
    for own in &mut number.arms {
        let Some((arm, fit)) = of(&own.arm).and_then(|arm| Some((arm, arm.fit.as_ref()?))) else { continue };
        let unit = if tiles { f64::from(unit(arm)) } else { 1.0 };
        let Estimate { value, low, high, .. } = fit.half;
        let (low, high) = (low.map(|low| low / unit), high.map(|high| high / unit));
        own.estimate = Estimate { value: value / unit, low, high, ..fit.half.clone() };
    }
    held::put_in(&mut number.comparisons, |arm| of(arm)?.fit.as_ref()?.against.clone());
}

/// Judges the comparisons of the numbers that arms hold.
pub(crate) fn qualify(plan: &Plan, found: &DensityFindings, number: &mut MetricFindings) {
    let of = |id: &str| found.arms.iter().find(|arm| arm.arm == id);
    for comparison in number.comparisons.iter_mut().filter(|own| own.verdict != Verdict::NotComparable) {
        let Some((arm, base)) = of(&comparison.arm).zip(of(&comparison.baseline)) else { continue };
        let ground = Ground {
            arm: ends(arm),
            base: ends(base),
            label: label(plan, &base.arm),
            published: plan.study.published.is_some(),
            verb: "carries",
            capped: "came to the end of the series",
        };
        let tail = held::judge(comparison, &ground);
        comparison.sentence = format!("{}{tail}", head(plan, found, (arm, base)));
    }
}

fn ends(arm: &ArmDensity) -> Ends {
    match &arm.fit {
        Some(fit) => Ends { none_held: fit.none_held, all_held: fit.all_held },
        None => Ends { none_held: arm.held == 0, all_held: arm.end_of_series && arm.held > 0 },
    }
}

/// How many guests the host carries with an arm, and with the baseline.
fn head(plan: &Plan, found: &DensityFindings, (arm, base): (&ArmDensity, &ArmDensity)) -> String {
    // Guests of a tile are of sizes of their own.
    let size = match arm.tile.len() {
        0 | 1 => format!(" of {}", words::value(found.guest_memory_bytes as f64, &Unit::Bytes)),
        _ => String::new(),
    };
    let ratio = if found.host_memory_bytes == 0 || arm.held == 0 || arm.is_elsewhere() {
        String::new()
    } else {
        format!(", {:.1} times the host's memory", promised(found, arm) / found.host_memory_bytes as f64)
    };
    let single = plan.study.published.is_some() || arm.held_blocks.len().min(base.held_blocks.len()) < 2;
    let carry = if single { "carries" } else { "half of the scale-ups carry" };
    format!(
        "{}: {carry} {}{size}{ratio}{}, and {} {}{}",
        label(plan, &arm.arm),
        guests(arm),
        why(arm),
        label(plan, &base.arm),
        guests(base),
        why(base)
    )
}

fn label<'a>(plan: &'a Plan, id: &'a str) -> &'a str {
    plan.study.arms.iter().find(|arm| arm.id == id).map_or(id, |arm| arm.label.as_str())
}

/// Memory promised to the guests that held, bytes: as the level tells it, else by the size of a guest.
fn promised(found: &DensityFindings, arm: &ArmDensity) -> f64 {
    let level = arm.levels.iter().find(|level| level.guests == arm.held);
    let reported = level.and_then(|level| level.metrics.get(metric::PROMISED)).map(|promised| promised.value);
    reported.unwrap_or_else(|| f64::from(arm.held) * found.guest_memory_bytes as f64)
}

/// Guests that are added at a time.
fn unit(arm: &ArmDensity) -> u32 {
    (arm.tile.len() as u32).max(1)
}

fn guests(arm: &ArmDensity) -> String {
    let bound = if ends(arm).all_held { "at least " } else { "" };
    let tile = unit(arm);
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
         series. A trial's metrics are those of the largest \
         number that held in it. This number differs between arms, so only the number itself and the operations of all \
         guests together are compared; the tables by number of guests compare equal numbers. Figures of a number at \
         which an objective was missed are shown. Those of a number at which a guest was lost or its work was wrong \
         are not. Numbers of one scale-up are iterations of one instance: intervals at each come from the blocks."
            .to_owned(),
        format!(
            "The number given for an arm is the one that half of its scale-ups hold. Each block has one scale-up, which bounds what its \
             instance holds: at least the largest number that held, and less than the smallest that did not, or than one \
             more where no more could be added. At the end of the series nothing bounds it above. To these bounds is fitted {}. \
             The number that 95 of 100 scale-ups hold is that of the same fit.",
            held::METHOD
        ),
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
