//! The search for the largest load that meets its objectives, as a state machine: it takes the outcome of a try and returns the next try.
//! It does nothing itself, so that it can be tried against servers that are made up.
//!
//! Loads lie on the grid of [`CapacitySpec::grid`], which goes on below the first load ([`CapacitySpec::below`]). From the first
//! load on they are doubled until one misses; a first load that misses is halved until one holds. Then the distance between the
//! largest that held and the smallest that did not is halved, until they are neighbours on the grid. The load that is left must
//! hold in all its iterations, of which the one in which it was found is the first. One miss refutes it, and the search goes on
//! between the next lower load that has held and it; what had held above a load that was refuted is forgotten. A try whose work
//! was wrong, or that broke off, is repeated once; the second time it counts as a miss. A load that is too small to be judged,
//! such as by a percentile of too few operations, is neither: the search goes on above it, for smaller ones have fewer still.
//!
//! A search takes no more tries than [`CapacitySpec::tries_at_most`]. When only so many are left as it takes to confirm the best
//! load so far, that is done, and the end tells that the distance was not closed.

use std::collections::BTreeMap;

use tare_model::capacity::{CapacitySpec, ProbePurpose, following, lower};
use tare_model::load::LoadKind;

/// What is to be tried next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Try {
    /// The load, in clients or arrivals a second.
    pub load: f64,
    /// What for.
    pub purpose: ProbePurpose,
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All objectives were met.
    Held,
    /// Some were not: which.
    Missed(String),
    /// None was missed, but some cannot be judged, as by a percentile of too few operations: which.
    TooFew(String),
    /// The work was wrong: what.
    Invalid(String),
    /// It did not run to its end: why.
    Failed(String),
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The largest load that held in all its iterations; 0: none did.
    pub held: f64,
    /// The smallest load above it that did not hold; `None`: the largest that may be tried held.
    pub missed: Option<f64>,
    /// How it ended, in a sentence.
    pub ended: String,
    /// Why it ended before the two were neighbours on the grid, in a sentence.
    pub cut_short: Option<String>,
}

/// What helps where loads are too small to be judged.
const LONGER: &str = "Longer phases have more operations, and another objective may need fewer";

/// A load in words.
pub fn words(kind: LoadKind, load: f64) -> String {
    match kind {
        LoadKind::Closed { .. } if (load - 1.0).abs() < 1e-9 => "1 client".to_owned(),
        LoadKind::Closed { .. } => format!("{load:.0} clients"),
        LoadKind::Open { .. } => {
            // Five digits tell neighbours on the finest grid apart.
            let decimals = [10_000.0, 1000.0, 100.0, 10.0, 1.0].iter().filter(|&&from| load < from).count();
            let digits = format!("{load:.decimals$}");
            let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
            format!("{digits} arrivals/s")
        }
    }
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    kind: LoadKind,
    grid: Vec<f64>,
    /// Place of the first load in the grid.
    first: usize,
    iterations: u32,
    at_most: u32,
    tries: u32,
    /// How often a load has held that was not refuted, by its place.
    held: BTreeMap<usize, u32>,
    /// The smallest load that did not hold, and why.
    missed: Option<(usize, String)>,
    /// The largest load that was too small to be judged, and by what.
    few: Option<(usize, String)>,
    now: Option<Now>,
    /// How it ended early.
    cut_short: Option<String>,
    over: bool,
}

/// The load that is being tried.
#[derive(Debug, Clone, Copy)]
struct Now {
    at: usize,
    purpose: ProbePurpose,
    /// Whether it is its second try, because of the first it is not known what it shows.
    again: bool,
    recorded: bool,
}

impl Search {
    /// A search of which nothing is known yet.
    pub fn new(spec: &CapacitySpec) -> Self {
        let mut grid = spec.below();
        let first = grid.len();
        grid.extend(spec.grid());
        Self {
            kind: spec.kind,
            grid,
            first,
            iterations: spec.iterations.max(1),
            at_most: spec.tries_at_most(),
            tries: 0,
            held: BTreeMap::new(),
            missed: None,
            few: None,
            now: None,
            cut_short: None,
            over: false,
        }
    }

    /// Tries so far.
    pub const fn tries(&self) -> u32 {
        self.tries
    }

    /// Tries that it may take in all.
    pub const fn at_most(&self) -> u32 {
        self.at_most
    }

    /// The largest load that has held and was not refuted, and the smallest that did not hold.
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        (self.best().map(|at| self.grid[at]), self.missed.as_ref().map(|(at, _)| self.grid[*at]))
    }

    /// The load above which is searched: the largest that has held, or the largest that was too small to be judged.
    pub fn floor(&self) -> Option<f64> {
        self.lowest().map(|at| self.grid[at])
    }

    /// What is to be tried next; `None`: the search is over.
    pub fn next(&mut self) -> Option<Try> {
        if self.over {
            return None;
        }
        let now = match self.now {
            // Asked twice, it says the same.
            Some(now) if !now.recorded => Some(now),
            Some(now) if now.again && self.left() > 0 => Some(Now { recorded: false, ..now }),
            _ => self.choose().map(|(at, purpose)| Now { at, purpose, again: false, recorded: false }),
        };
        self.now = now;
        self.over = now.is_none();
        now.map(|now| Try { load: self.grid[now.at], purpose: now.purpose })
    }

    /// Tells what came of the try that [`Self::next`] asked for last.
    pub fn record(&mut self, outcome: Outcome) {
        let Some(now) = self.now.filter(|now| !now.recorded) else { return };
        self.tries += 1;
        self.now = Some(Now { recorded: true, again: false, ..now });
        let reason = match outcome {
            Outcome::Held => {
                *self.held.entry(now.at).or_default() += 1;
                return;
            }
            Outcome::Missed(reason) => reason,
            Outcome::TooFew(reason) if self.best().is_none() => {
                self.few = Some((now.at, reason));
                return;
            }
            // A smaller load had enough of them.
            Outcome::TooFew(reason) => reason,
            Outcome::Invalid(_) | Outcome::Failed(_) if !now.again => {
                self.now = Some(Now { recorded: true, again: true, ..now });
                return;
            }
            Outcome::Invalid(reason) => format!("its work was wrong, twice: {reason}"),
            Outcome::Failed(reason) => format!("it did not run to its end, twice: {reason}"),
        };
        // What held above a load that does not was luck.
        self.held.split_off(&now.at);
        self.missed = Some((now.at, reason));
    }

    /// What it came to, as far as it went.
    pub fn end(&self) -> Found {
        let confirmed = self.held.iter().rev().find(|(_, times)| **times >= self.iterations).map(|(at, _)| *at);
        let (held, missed) = (confirmed.map(|at| self.grid[at]), self.missed.as_ref().map(|(at, _)| self.grid[*at]));
        let summary = match held {
            Some(load) => {
                let instances = if self.iterations == 1 { "instance" } else { "instances" };
                let held = format!("{} held in {} {instances}", words(self.kind, load), self.iterations);
                match &self.missed {
                    None => format!("{held}, and more were not to be tried"),
                    Some((at, why)) => format!("{held}; {} did not: {why}", words(self.kind, self.grid[*at])),
                }
            }
            None => self.nothing(),
        };
        let ended = self.cut_short.as_ref().map_or_else(|| summary.clone(), |cut| format!("{summary}. {cut}"));
        Found { held: held.unwrap_or(0.0), missed, ended, cut_short: self.cut_short.clone() }
    }

    /// Why no load was found, in a sentence or two.
    fn nothing(&self) -> String {
        match (&self.missed, &self.few) {
            (Some((0, why)), None) => format!("not even {} held: {why}", self.words_at(0)),
            (Some((at, why)), None) => {
                format!("no load was seen to hold often enough; {} did not: {why}", self.words_at(*at))
            }
            (None, None) => "no load was seen to hold often enough".to_owned(),
            (None, Some((few, why))) => {
                format!("up to {}, which is the largest that was tried, {why}. {LONGER}", self.words_at(*few))
            }
            (Some((at, missed)), Some((few, why))) => {
                let (few, at) = (self.words_at(*few), self.words_at(*at));
                format!("up to {few} {why}; and {at} did not hold: {missed}. {LONGER}")
            }
        }
    }

    fn words_at(&self, at: usize) -> String {
        words(self.kind, self.grid[at])
    }

    /// Place of the largest load that has held and was not refuted.
    fn best(&self) -> Option<usize> {
        self.held.keys().next_back().copied()
    }

    /// Place of the load above which is searched.
    fn lowest(&self) -> Option<usize> {
        self.best().or_else(|| self.few.as_ref().map(|(at, _)| *at))
    }

    const fn left(&self) -> u32 {
        self.at_most.saturating_sub(self.tries)
    }

    /// How often a load must hold yet.
    fn needed(&self, at: usize) -> u32 {
        self.iterations.saturating_sub(self.held.get(&at).copied().unwrap_or(0))
    }

    /// The place to be tried next, and what for.
    fn choose(&mut self) -> Option<(usize, ProbePurpose)> {
        let wanted = self.wanted();
        let (at, _) = wanted?;
        // What is held back for the best load, should this try not hold; without one, for this load, should it hold.
        let needed = self.best().map_or(self.iterations - 1, |best| self.needed(best));
        let closing = self.best() == Some(at);
        if self.left() > needed || (closing && self.left() == needed) {
            return wanted;
        }
        // Too few are left to look further: the largest that can still be confirmed is.
        let open = if closing { "its confirmation" } else { "the distance to the smallest that did not hold" };
        self.cut_short.get_or_insert_with(|| {
            format!("The {} tries that a search may take were too few: {open} was not completed", self.at_most)
        });
        let left = self.left();
        let can = |at: &&usize| (1..=left).contains(&self.needed(**at));
        self.held.keys().rev().find(can).map(|at| (*at, ProbePurpose::Confirm))
    }

    /// The same while there are tries enough.
    fn wanted(&self) -> Option<(usize, ProbePurpose)> {
        let best = self.best();
        let missed = self.missed.as_ref().map(|(at, _)| *at);
        let floor = self.lowest();
        let next = match (floor, missed) {
            (None, None) => Some(self.first),
            (None, Some(missed)) => lower(&self.grid, missed),
            (Some(_), _) => following(&self.grid, floor, missed),
        };
        if let Some(at) = next {
            let closing = floor.is_some() && missed.is_some();
            return Some((at, if closing { ProbePurpose::Bisect } else { ProbePurpose::Bracket }));
        }
        best.filter(|&at| self.needed(at) > 0).map(|at| (at, ProbePurpose::Confirm))
    }
}

#[cfg(test)]
#[path = "capacity/inference.rs"]
mod inference;
#[cfg(test)]
#[path = "capacity/tests.rs"]
mod tests;
