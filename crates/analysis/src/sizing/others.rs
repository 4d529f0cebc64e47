//! Advice that needs no models of load: guests for a host, from scale-ups, and load for a guest, from searches for its capacity.

use serde::{Deserialize, Serialize};
use tare_model::capacity::metric as capacity;
use tare_model::density::metric;
use tare_model::findings::{ArmDensity, DensityFindings, Estimate, LevelFindings, SizeQuestion};
use tare_model::metric::common;
use tare_model::study::{Case, CaseLoad};
use tare_model::units::ByteSize;

use super::fitted::{ARRIVALS, CLIENTS, number};
use crate::grouped::Figures;
use crate::words;

/// Guests for a host like the one that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestSizing {
    /// Case id.
    pub case: String,
    /// Arm id.
    pub arm: String,
    /// Guests to be put on one host.
    pub guests: u32,
    /// The largest number of guests that was tried and that 95 of 100 scale-ups hold; of figures that others published, those of the middle block.
    pub held: u32,
    /// Blocks that it is made from.
    pub blocks: u32,
    /// By memory alone: `(RAM - host - reserve - shared) / unique`, with the interval of the unique part; `None` where a scale-up did not tell
    /// whose memory it was.
    pub by_memory: Option<Estimate>,
    /// Memory of a guest that no other has, and of all together that they share, bytes, at the largest number.
    pub unique_and_shared: Option<(f64, f64)>,
    /// Hosts for the load in all, in operations a second, where that is asked and each guest's load was fixed.
    pub hosts: Option<u32>,
    /// What ends it, in words.
    pub bound_by: String,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// Load for a guest like the one that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSizing {
    /// Case id.
    pub case: String,
    /// Arm id.
    pub arm: String,
    /// `clients` or `arrivals/s`.
    pub unit: String,
    /// The load at which half of the instances meet the objectives.
    pub capacity: Estimate,
    /// The load to be put on one guest: the lower bound of what 95 of 100 instances hold, less the headroom.
    pub load: f64,
    /// Share of the guest's CPUs at the capacity, 0 to 1.
    pub cpu: Option<Estimate>,
    /// Guests for the load in all.
    pub guests: Option<u32>,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// Guests for a host, by case that adds them and arm.
pub(super) fn guests(figures: &Figures<'_>, question: &SizeQuestion) -> Vec<GuestSizing> {
    let cases = figures.plan.study.cases.iter();
    let found = cases.filter_map(|case| Some((case, figures.case(&case.id)?.density.as_ref()?)));
    found.flat_map(|(case, found)| found.arms.iter().map(move |arm| guest(case, found, arm, question))).collect()
}

fn guest(case: &Case, found: &DensityFindings, arm: &ArmDensity, question: &SizeQuestion) -> GuestSizing {
    let memory = memory(case, found, arm);
    let by_memory = memory.as_ref().map(|(most, ..)| most.clone());
    // A number between two that were tried follows from the fit alone: it is no advice. Nor is one beyond them, however much memory
    // there seems to be.
    let tried = |most: f64| arm.levels.iter().rfind(|own| own.held > 0 && f64::from(own.guests) <= most);
    let held = arm.fit.as_ref().map_or(arm.held, |fit| tried(fit.most.value).map_or(0, |level| level.guests));
    let fits = by_memory.as_ref().map_or(held, |most| held.min(most.value.max(0.0).floor() as u32));
    let tile = arm.tile.len().max(1) as u32;
    let with_headroom = (f64::from(fits) / (1.0 + question.headroom) + 1e-9).floor() as u32;
    let guests = with_headroom / tile * tile;
    let bound_by = match (arm.end_of_series, fits < held) {
        (_, true) => "the host's memory".to_owned(),
        (true, false) => format!("the measured range: more than {} guests were not tried", arm.held),
        (false, false) => ends(arm),
    };
    let mut notes = Vec::new();
    if guests == 0 && held > 0 && fits > 0 {
        let (held, headroom) = (in_tiles(fits, tile), words::percent(question.headroom));
        notes.push(format!(
            "{held} held. With {headroom} of headroom below that, no guest is left: use a smaller headroom or a larger \
             host."
        ));
    }
    if let Some(most) = by_memory.as_ref().filter(|most| most.value.floor() > f64::from(held)) {
        let most = number(most.value.floor());
        notes.push(if held == 0 {
            format!("By memory alone {most} guests would fit, but no number of guests held.")
        } else {
            format!("By memory alone {most} guests would fit, but 95 of 100 scale-ups hold no more than {held}.")
        });
    }
    if tile > 1 {
        notes.push(format!("{tile} guests make one tile: {}.", in_tiles(guests, tile)));
    }
    if question.qos.is_some() {
        notes.push(
            "Guests were added until an objective of the study failed; the objective given here is not judged."
                .to_owned(),
        );
    }
    if question.total_load.is_some() && found.offered_per_guest_per_s.is_none() {
        notes.push(
            "Hosts for the total load are not counted: guests were not offered a fixed number of operations a second."
                .to_owned(),
        );
    }
    let each = found.offered_per_guest_per_s.filter(|_| guests > 0).map(|each| each * f64::from(guests));
    GuestSizing {
        case: case.id.clone(),
        arm: arm.arm.clone(),
        guests,
        held,
        blocks: arm.held_blocks.len() as u32,
        by_memory,
        unique_and_shared: memory.map(|(_, unique, shared)| (unique, shared)),
        hosts: question.total_load.zip(each).map(|(total, each)| (total / each).ceil() as u32),
        bound_by,
        notes,
    }
}

/// Why no more guests were added, each reason once, with the detail of the block that carried the fewest, where there is one.
fn ends(arm: &ArmDensity) -> String {
    let mut stopped: Vec<_> = arm.stopped.iter().collect();
    stopped.sort_by_key(|(block, guests, ..)| (*guests, *block));
    let mut reasons: Vec<(&str, String)> = Vec::new();
    for (_, guests, kind, detail) in stopped {
        if reasons.iter().all(|(known, _)| known != kind) {
            let seen = if detail.is_empty() { String::new() } else { format!(" (with {guests} guests: {detail})") };
            reasons.push((kind, format!("{kind}{seen}")));
        }
    }
    reasons.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ")
}

/// `2 tiles`, or guests where each is added by itself.
fn in_tiles(guests: u32, tile: u32) -> String {
    let (n, one) = if tile > 1 { (guests / tile, "tile") } else { (guests, "guest") };
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// Guests that fit by memory, a guest's unique memory, and what all share: from the largest number of guests at which all was measured.
fn memory(case: &Case, found: &DensityFindings, arm: &ArmDensity) -> Option<(Estimate, f64, f64)> {
    let CaseLoad::Density { spec, .. } = &case.load else { return None };
    let of = |level: &LevelFindings| {
        let value = |id: &str| level.metrics.get(id).cloned();
        Some((
            level.guests,
            value(metric::GUEST_UNIQUE)?,
            value(metric::GUEST_SHARED)?.value,
            value(metric::AVAILABLE)?.value,
        ))
    };
    let (guests, unique, part, available) = arm.levels.iter().rev().filter(|level| level.held > 0).find_map(of)?;
    let shared = part * f64::from(guests);
    let taken = unique.value * f64::from(guests) + shared;
    // What the guests have and what is there beside them: RAM less the host's own.
    let room = available + taken - spec.reserve_on(ByteSize(found.host_memory_bytes)).0 as f64 - shared;
    let most = |unique: f64| (room / unique).max(0.0);
    let usable = unique.value > 0.0 && room.is_finite();
    let method =
        format!("(RAM - host - reserve - shared) / unique, from {guests} guests; interval of the unique memory");
    let estimate = Estimate {
        value: most(unique.value),
        low: unique.high.map(most),
        high: unique.low.filter(|low| *low > 0.0).map(most),
        method,
        ..unique.clone()
    };
    usable.then_some((estimate, unique.value, shared))
}

/// Load for a guest, by case that looks for its capacity and arm.
pub(super) fn loads(figures: &Figures<'_>, question: &SizeQuestion) -> Vec<LoadSizing> {
    let mut all = Vec::new();
    for case in figures.plan.study.cases.iter().filter(|case| case.load.is_capacity()) {
        for arm in &figures.plan.study.arms {
            let capacity = figures.metric(&case.id, &arm.id, capacity::CAPACITY).map(|own| own.estimate.clone());
            if let Some(capacity) = capacity.filter(|own| own.value > 0.0) {
                all.push(load(figures, case, &arm.id, capacity, question));
            }
        }
    }
    all
}

fn load(figures: &Figures<'_>, case: &Case, arm: &str, capacity: Estimate, question: &SizeQuestion) -> LoadSizing {
    let closed = case.load.kind().is_closed();
    let mut own = figures.case(&case.id).into_iter().flat_map(|found| &found.capacity).filter(|own| own.arm == arm);
    let fit = own.next().and_then(|own| own.fit.as_ref());
    let most = fit.map_or(&capacity, |fit| &fit.most);
    let sure = most.low.unwrap_or(most.value).max(0.0) / (1.0 + question.headroom);
    let load = if closed { (sure + 1e-9).floor() } else { sure };
    let capped = fit.is_some_and(|fit| fit.all_held);
    let mut notes = Vec::new();
    if capacity.low.is_none() {
        notes.push("One block: the capacity has no interval.".to_owned());
    }
    if capped {
        notes.push("The largest load that was tried held: higher loads may hold, too, but were not tried.".to_owned());
    }
    if question.qos.is_some() {
        notes.push("The search was for the study's own objectives; the objective given here is not judged.".to_owned());
    }
    if question.headroom > 0.0 {
        let headroom = words::percent(question.headroom);
        notes.push(format!("With {headroom} of headroom below the lower bound of what 95 of 100 instances hold."));
    }
    LoadSizing {
        case: case.id.clone(),
        arm: arm.to_owned(),
        unit: if closed { CLIENTS } else { ARRIVALS }.to_owned(),
        cpu: figures.metric(&case.id, arm, common::GUEST_CPU).map(|own| own.estimate.clone()),
        guests: question.total_load.filter(|_| load > 0.0).map(|total| (total / load).ceil() as u32),
        capacity,
        load,
        notes,
    }
}
