//! The search for the load at which the guests' CPUs are busy to a share: which load is tried next, by what those before it have
//! taken. Nothing is measured here.
//!
//! The first load is the study's, the second follows by proportion. From then on a line is fitted to all pairs of load and share (least
//! squares; pairs far from the share that is asked weigh less, and the origin counts a little, so that two loads that are close to one another
//! do not make a line of mere noise), and the load at which it meets the share is tried, within the bracket of the largest load that took
//! less and the smallest that took more, as by regula falsi. A load whose share is near enough ends the search; the load that
//! is measured at is then where the line meets the share: each reading has noise of its own, and the line less.

use std::ops::RangeInclusive;

use tare_model::capacity::in_digits;
use tare_model::cpu_target::CpuTarget;

use crate::capacity::words;

/// A load is near enough when its share is off by so much of the tolerance: the rest is for what changes until it is measured.
const NEAR: f64 = 0.5;
/// No load is more than so many times the largest before it: what lies beyond is not known.
const FURTHEST: f64 = 2.0;
/// A pair that is so far from the share that is asked (0.15: 15 points) weighs half as much as one that is there.
const HALF_WEIGHT: f64 = 0.15;
/// Weight of the origin: no load takes no CPU, or little.
const ORIGIN: f64 = 0.1;
/// A line may go so far beyond the load that ended the search, a part of that load.
const BEYOND: f64 = 0.1;
/// Within a bracket, the next load is at least so much of it away from its ends.
const INSIDE: f64 = 0.05;
/// A share below which nothing was seen to be at work: what is idle takes that, too.
const NOTHING: f64 = 1e-4;
/// Smallest arrivals a second that are tried, as a part of the first.
const LEAST: f64 = 1e-3;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This load is tried.
    Try(f64),
    /// This load is the one: it is measured at.
    Measure(f64),
    /// There is no such load, or it was not found: why, with the figures.
    GiveUp(String),
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    spec: CpuTarget,
    bounds: RangeInclusive<f64>,
    /// Load and share of each try, in order.
    tried: Vec<(f64, f64)>,
}

impl Search {
    /// A search for a load of which each of so many instances has a client at least.
    pub fn new(spec: &CpuTarget, instances: u32) -> Self {
        let least = if spec.kind.is_closed() { f64::from(instances.max(1)) } else { spec.from * LEAST };
        Self { spec: *spec, bounds: least..=spec.most.max(least), tried: Vec::new() }
    }

    /// Loads that were tried.
    pub fn tries(&self) -> u32 {
        u32::try_from(self.tried.len()).unwrap_or(u32::MAX)
    }

    /// Takes note of the share that a load has taken.
    pub fn record(&mut self, load: f64, share: f64) {
        self.tried.push((load, share));
    }

    /// What is to be done next.
    pub fn next(&self) -> Next {
        let Some(&(load, share)) = self.tried.last() else { return Next::Try(self.whole(self.spec.from)) };
        if self.off(share) <= self.spec.tolerance * NEAR {
            return Next::Measure(self.refined(load));
        }
        if let Some(end) = self.ended() {
            return end;
        }
        match self.following(load, share) {
            Some(next) => Next::Try(next),
            // It was tried: what its neighbours take is known, and it is the nearest.
            None => self.again().map_or_else(|| self.nearest(), Next::Try),
        }
    }

    /// An end of the bracket that was not among the last two readings: what it took may have changed since, as virtual machines warm up.
    fn again(&self) -> Option<f64> {
        let (low, high) = self.bracket();
        let last = self.tried.get(self.tried.len().saturating_sub(2)..).unwrap_or_default();
        [low?, high?].into_iter().find(|end| last.iter().all(|(load, _)| !same(*load, *end)))
    }

    /// How far a share is from the one that is asked.
    fn off(&self, share: f64) -> f64 {
        (share - self.spec.share).abs()
    }

    /// The end of the search where its bounds or its steps are reached.
    fn ended(&self) -> Option<Next> {
        let &(load, share) = self.tried.last()?;
        let (least, most) = (*self.bounds.start(), *self.bounds.end());
        let at_end = (same(load, most) && share < self.spec.share) || (same(load, least) && share > self.spec.share);
        if at_end && self.off(share) <= self.spec.tolerance {
            return Some(Next::Measure(load));
        }
        if same(load, most) && share < self.spec.share {
            let (load, took, asked) = (self.words(load), percent(share), percent(self.spec.share));
            return Some(Next::GiveUp(format!(
                "even {load}, the most that `cpu-target.most` allows, took {took} of the guests' CPUs and not {asked}. \
                 Write a larger `most`, a smaller `share`, or give the guest fewer CPUs"
            )));
        }
        if same(load, least) && share > self.spec.share {
            let (load, took, asked) = (self.words(load), percent(share), percent(self.spec.share));
            return Some(Next::GiveUp(format!(
                "{load}, the least that can be offered, took {took} of the guests' CPUs already and not {asked}. \
                 Write a larger `share`, or give the guest more CPUs"
            )));
        }
        (self.tries() >= self.spec.steps).then(|| self.nearest())
    }

    /// The load that came nearest is measured at if it was near at all.
    fn nearest(&self) -> Next {
        let near = self.tried.iter().min_by(|one, other| self.off(one.1).total_cmp(&self.off(other.1)));
        match near {
            Some(&(load, share)) if self.off(share) <= self.spec.tolerance => Next::Measure(self.refined(load)),
            _ => Next::GiveUp(self.not_found()),
        }
    }

    fn not_found(&self) -> String {
        let readings: Vec<String> =
            self.tried.iter().map(|&(load, share)| format!("{} took {}", self.words(load), percent(share))).collect();
        let (asked, points) = (percent(self.spec.share), self.spec.tolerance * 100.0);
        let what = match self.bracket() {
            (Some(low), Some(high)) if self.spec.kind.is_closed() && high - low <= 1.0 + 1e-9 => {
                "between two that are one client apart there is no other; a wider `tolerance`, or clients that each do less"
            }
            _ => "more `steps`, a longer `step` or a wider `tolerance`",
        };
        format!(
            "no load was found at which {asked} of the guests' CPUs are busy, within {points} points, in {} tries: {}. It takes {what}",
            self.tries(),
            readings.join(", ")
        )
    }

    /// The next load after this one; `None` where that and its neighbours were tried.
    fn following(&self, load: f64, share: f64) -> Option<f64> {
        let largest = self.tried.iter().map(|(load, _)| *load).fold(0.0, f64::max);
        let wanted =
            if share < NOTHING { load * FURTHEST } else { self.meets().unwrap_or(load * self.spec.share / share) };
        let wanted = wanted.min(largest * FURTHEST).clamp(*self.bounds.start(), *self.bounds.end());
        let wanted = match self.bracket() {
            (Some(low), Some(high)) => {
                let margin = (high - low) * INSIDE;
                wanted.clamp(low + margin, high - margin)
            }
            // A line that leads back to where it was too little already has the wrong slope.
            (Some(low), None) if wanted <= low => (low * f64::midpoint(1.0, FURTHEST)).min(*self.bounds.end()),
            (None, Some(high)) if wanted >= high => {
                (high * self.spec.share / share.max(self.spec.share)).max(*self.bounds.start())
            }
            _ => wanted,
        };
        let next = self.whole(wanted);
        if !self.is_tried(next) {
            return Some(next);
        }
        // Of whole clients the neighbour on the other side of the share; a rate that was tried is tried again.
        if !self.spec.kind.is_closed() {
            return Some(next);
        }
        let step = if self.taken(next)? < self.spec.share { 1.0 } else { -1.0 };
        let neighbour = (next + step).clamp(*self.bounds.start(), *self.bounds.end());
        (!self.is_tried(neighbour)).then_some(neighbour)
    }

    /// The largest load that took less than is asked, and the smallest that took more. Readings that contradict one another, as noise
    /// and virtual machines that still warm up make them, are no bracket: of such two the older is left out.
    fn bracket(&self) -> (Option<f64>, Option<f64>) {
        let (mut low, mut high): (Option<f64>, Option<f64>) = (None, None);
        for &(load, share) in &self.tried {
            if share < self.spec.share {
                low = Some(low.map_or(load, |low| low.max(load)));
                high = high.filter(|high| *high > load);
            } else {
                high = Some(high.map_or(load, |high| high.min(load)));
                low = low.filter(|low| *low < load);
            }
        }
        (low, high)
    }

    /// Where the line through all pairs meets the share that is asked; `None` where it does not rise.
    fn meets(&self) -> Option<f64> {
        let weight = |share: f64| 1.0 / (1.0 + (self.off(share) / HALF_WEIGHT).powi(2));
        let pairs = self.tried.iter().map(|&(load, share)| (load, share, weight(share)));
        let pairs: Vec<(f64, f64, f64)> = pairs.chain([(0.0, 0.0, ORIGIN * weight(0.0))]).collect();
        let sum = |of: &dyn Fn(&(f64, f64, f64)) -> f64| pairs.iter().map(|pair| pair.2 * of(pair)).sum::<f64>();
        let all = sum(&|_| 1.0);
        let (load, share) = (sum(&|pair| pair.0) / all, sum(&|pair| pair.1) / all);
        let across = sum(&|pair| (pair.0 - load) * (pair.1 - share));
        let along = sum(&|pair| (pair.0 - load).powi(2));
        (across > 0.0 && along > 0.0).then(|| load + (self.spec.share - share) * along / across)
    }

    /// The load to be measured at: where the line meets the share, near the one that ended the search, and within the bracket.
    fn refined(&self, load: f64) -> f64 {
        let met = self.meets().unwrap_or(load).clamp(load * (1.0 - BEYOND), load * (1.0 + BEYOND));
        let met = match self.bracket() {
            (Some(low), _) if met < low => low,
            (_, Some(high)) if met > high => high,
            _ => met,
        };
        self.whole(met.clamp(*self.bounds.start(), *self.bounds.end()))
    }

    /// A load as it can be offered: whole clients, or a rate in five digits.
    fn whole(&self, load: f64) -> f64 {
        let (least, most) = (*self.bounds.start(), *self.bounds.end());
        let load = if self.spec.kind.is_closed() { load.round() } else { in_digits(load) };
        load.clamp(least, most)
    }

    fn is_tried(&self, load: f64) -> bool {
        self.taken(load).is_some()
    }

    /// The share that a load has taken, the mean of its tries.
    fn taken(&self, load: f64) -> Option<f64> {
        let shares: Vec<f64> = self.tried.iter().filter(|(own, _)| same(*own, load)).map(|(_, share)| *share).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    fn words(&self, load: f64) -> String {
        words(self.spec.kind, load)
    }
}

/// Whether two loads are one: rates are in five digits.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= one.abs() * 1e-6
}

/// A share for people.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
#[path = "cpu_target/tests.rs"]
mod tests;
