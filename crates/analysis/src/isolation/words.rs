//! What the matrix of a victim says, in sentences.

use tare_model::findings::{Estimate, IsolationCell, IsolationFindings};
use tare_model::study::Study;

/// Where an interval reaches beyond, the study was too noisy to say that a neighbour does nothing.
const NOISY: f64 = 2.0;

/// A neighbour that achieves so many times what it does on the baseline does another thing: such as to write to memory where it should write to a disk.
const ELSEWHERE: f64 = 2.0;

/// A cell and the name of its arm.
type Named<'a> = (&'a str, &'a IsolationCell);

/// The sentences on a victim: which neighbour slows it most and where; then, for each neighbour of which that can be said, which layer isolates
/// best and which worst.
pub(super) fn sentences(found: &IsolationFindings, study: &Study) -> Vec<String> {
    let label = |arm: &str| study.arms.iter().find(|own| own.id == arm).map_or("", |own| own.label.as_str()).to_owned();
    let labels: Vec<String> = found.arms.iter().map(|own| label(&own.arm)).collect();
    let cells =
        found.arms.iter().zip(&labels).flat_map(|(own, label)| own.cells.iter().map(|cell| (label.as_str(), cell)));
    let cells: Vec<Named<'_>> = cells.filter(|(_, cell)| cell.time.is_some()).collect();
    let mut said: Vec<String> = worst(found, &cells).into_iter().collect();
    let baseline = label(&study.baseline);
    let layers = found.works.iter().filter_map(|work| {
        let own: Vec<Named<'_>> = cells.iter().filter(|(_, cell)| cell.work == *work).copied().collect();
        layers(found, &own, &baseline)
    });
    let before = said.len();
    said.extend(layers);
    if said.len() == before && found.arms.len() > 1 && !cells.is_empty() {
        said.push(format!(
            "{}: no layer can be distinguished from another in how well it isolates: under each neighbour the intervals of all layers overlap.",
            found.label
        ));
    }
    said.extend(lost(found, &labels));
    said
}

fn time(cell: &IsolationCell) -> f64 {
    cell.time.as_ref().map_or(1.0, |time| time.value)
}

/// A ratio with its interval: `1.32 [1.28, 1.37]`.
fn ratio(of: &Estimate) -> String {
    let end = |end: Option<f64>| end.map(|end| format!("{end:.2}"));
    match (end(of.low), end(of.high)) {
        (Some(low), Some(high)) => format!("{:.2} [{low}, {high}]", of.value),
        _ => format!("{:.2}", of.value),
    }
}

fn times(cell: &IsolationCell) -> String {
    cell.time.as_ref().map_or_else(String::new, ratio)
}

/// The neighbour under which the victim is slowest.
fn worst(found: &IsolationFindings, cells: &[Named<'_>]) -> Option<String> {
    if cells.iter().all(|(_, cell)| cell.time.as_ref().is_none_or(|time| time.low.is_none())) {
        return Some(format!("{}: too few blocks completed for any interval.", found.label));
    }
    let harmed = |cell: &IsolationCell| cell.time.as_ref().and_then(|time| time.low).is_some_and(|low| low > 1.0);
    let worst = cells.iter().filter(|(_, cell)| harmed(cell)).max_by(|a, b| time(a.1).total_cmp(&time(b.1)));
    let Some((arm, cell)) = worst else {
        let most = cells.iter().filter_map(|(_, cell)| cell.time.as_ref()?.high).fold(1.0, f64::max);
        return Some(if most > NOISY {
            format!(
                "{}: too noisy to tell: no interval lies above 1, and the widest reaches beyond {NOISY} times the {}.",
                found.label, found.time
            )
        } else {
            format!(
                "{}: no neighbour is seen to slow it: no interval lies above 1, and none reaches beyond {most:.2} times the {}.",
                found.label, found.time
            )
        });
    };
    let clear = cells.iter().filter(|(_, cell)| harmed(cell)).count();
    Some(format!(
        "{}: \u{201c}{}\u{201d} slows it most, on {arm}: the {} is {} times that beside idle neighbours. {clear} of {} pairs of layer and neighbour slow it beyond \
         their interval.",
        found.label,
        cell.work.name(),
        found.time,
        times(cell),
        cells.len()
    ))
}

/// Under one neighbour, the layers that isolate best and worst, where their intervals do not overlap. Layers on which the neighbour does something
/// else are left out.
fn layers(found: &IsolationFindings, cells: &[Named<'_>], baseline: &str) -> Option<String> {
    let elsewhere = |cell: &IsolationCell| cell.achieved_share.as_ref().is_some_and(|share| share.value > ELSEWHERE);
    let (other, cells): (Vec<_>, Vec<_>) = cells.iter().copied().partition(|(_, cell)| elsewhere(cell));
    let best = cells.iter().min_by(|a, b| time(a.1).total_cmp(&time(b.1)))?;
    let worst = cells.iter().max_by(|a, b| time(a.1).total_cmp(&time(b.1)))?;
    let (high, low) = (best.1.time.as_ref()?.high?, worst.1.time.as_ref()?.low?);
    if high >= low {
        return None;
    }
    let starved = match &best.1.achieved_share {
        Some(share) if best.1.starved => format!(
            ", but there the neighbour achieved only {:.0} % of what it does on {baseline}, which is no credit to the layer",
            share.value * 100.0
        ),
        _ => String::new(),
    };
    let other = match &other[..] {
        [] => String::new(),
        other => format!(
            " Left out, for there the neighbour achieves more than {ELSEWHERE} times what it does on {baseline} and so does something else: {}.",
            other.iter().map(|(arm, _)| *arm).collect::<Vec<_>>().join(", ")
        ),
    };
    Some(format!(
        "{} under \u{201c}{}\u{201d}: {} isolates best ({}){starved}, {} worst ({}).{other}",
        found.label,
        best.1.work.name(),
        best.0,
        times(best.1),
        worst.0,
        times(worst.1)
    ))
}

/// Conditions that victims did not come through.
fn lost(found: &IsolationFindings, labels: &[String]) -> Vec<String> {
    let cells = found.arms.iter().zip(labels).flat_map(|(own, label)| own.cells.iter().map(move |cell| (label, cell)));
    let lost = cells.filter(|(_, cell)| cell.survival.victim_lost > 0).map(|(label, cell)| {
        let (lost, trials) = (cell.survival.victim_lost, cell.survival.trials);
        format!(
            "{} under \u{201c}{}\u{201d} on {label}: lost in {lost} of {trials} trials.",
            found.label,
            cell.work.name()
        )
    });
    lost.collect()
}
