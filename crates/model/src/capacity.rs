//! The largest load that meets its objectives: what is tried, and what was seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::flag::Flag;
use crate::load::{LoadKind, LoadModel};
use crate::metric::{Better, MetricSpec, Unit};
use crate::request_type::RequestType;
use crate::sample::CpuAccount;

/// A case that looks for the largest load at which all its objectives are met. One trial is one such search; each load is
/// tried in a fresh instance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CapacitySpec {
    /// The kind of its loads.
    pub kind: LoadKind,
    /// The first load, in clients of a closed loop, or arrivals a second of an open one.
    pub from: f64,
    /// The largest load that is tried.
    pub most: f64,
    /// The search ends when the smallest load that missed an objective is at most so much larger than the largest that held
    /// (0.05: 5 %), or the next client.
    pub precision: f64,
    /// Times that a load must hold, each in a fresh instance, to be reported; at least 2: one may be luck.
    pub iterations: u32,
    /// Drivers among which each load is dealt out evenly.
    pub drivers: u32,
}

impl CapacitySpec {
    /// What each driver offers of a load.
    pub fn of_each(&self, load: f64) -> LoadModel {
        self.kind.at(load / f64::from(self.drivers.max(1)))
    }

    /// The loads that may be tried, ascending: from the first to the largest, each larger than the one before by the precision.
    /// Of a closed loop each driver has the same number of whole clients, so that where the precision is less than one client of each
    /// they are that far apart; of an open one they are in five digits ([`in_digits`]).
    pub fn grid(&self) -> Vec<f64> {
        self.dealt_out(Self::upward)
    }

    /// The loads below the first, ascending, on the same grid: down to one client of each driver, or to a thousandth of the first
    /// arrivals. They are tried where the first load itself does not hold.
    pub fn below(&self) -> Vec<f64> {
        self.dealt_out(Self::downward)
    }

    /// The loads that the search of one driver has, for all drivers: of a closed loop that of its own clients.
    fn dealt_out(&self, loads: fn(&Self) -> Vec<f64>) -> Vec<f64> {
        if !self.kind.is_closed() || self.drivers < 2 {
            return loads(self);
        }
        let drivers = f64::from(self.drivers);
        let from = (self.from / drivers).ceil().max(1.0);
        let each = Self { from, most: (self.most / drivers).floor().max(from), drivers: 1, ..*self };
        loads(&each).into_iter().map(|load| load * drivers).collect()
    }

    fn upward(&self) -> Vec<f64> {
        let whole = self.kind.is_closed();
        let ratio = 1.0 + self.precision;
        let mut loads = vec![if whole { self.from.round().max(1.0) } else { self.from }];
        let next = |steps: usize, last: f64| {
            if whole {
                // 20 * 1.05 may be a hair below 21.
                (last * ratio + 1e-9).floor().max(last + 1.0)
            } else {
                // Not from the last, so that errors of rounding do not add up.
                in_digits(self.from * ratio.powf(steps as f64))
            }
        };
        while let Some(&last) = loads.last() {
            let load = next(loads.len(), last);
            // A hair below the largest is the largest.
            if last >= self.most || load >= self.most * (1.0 - 1e-9) || loads.len() >= MAX_GRID {
                break;
            }
            loads.push(load);
        }
        if loads.last().is_some_and(|&last| last < self.most) {
            loads.push(self.most);
        }
        loads
    }

    fn downward(&self) -> Vec<f64> {
        let whole = self.kind.is_closed();
        let ratio = 1.0 + self.precision;
        let first = if whole { self.from.round().max(1.0) } else { self.from };
        let least = if whole { 1.0 } else { first / LEAST_SHARE };
        let mut loads = Vec::new();
        let mut last = first;
        while last > least * (1.0 + 1e-9) && loads.len() < MAX_GRID {
            // The smallest that is not further from the last than the precision, or one client.
            let open = |steps: usize| in_digits(first / ratio.powf(steps as f64));
            last = if whole { (last / ratio - 1e-9).ceil().min(last - 1.0) } else { open(loads.len() + 1) }.max(least);
            loads.push(last);
        }
        loads.reverse();
        loads
    }

    /// Tries that a search takes without a load that is refuted and without a try that is repeated: the mean over all loads
    /// at which it may end, rounded up.
    pub fn tries_likely(&self) -> u32 {
        let all = self.straight(&self.grid());
        let sum: u64 = all.iter().map(|&tries| u64::from(tries)).sum();
        u32::try_from(sum.div_ceil(all.len().max(1) as u64)).unwrap_or(u32::MAX)
    }

    /// Tries after which a search ends with what it knows, repeats counted: twice the most that one takes whose loads are not refuted,
    /// and the confirmations of two loads more. So each try may be repeated, or several loads be refuted that had held at first.
    pub fn tries_at_most(&self) -> u32 {
        let up = self.straight(&self.grid()).into_iter().max().unwrap_or(0);
        let straight = up.max(self.most_downward());
        straight.saturating_mul(2).saturating_add(self.iterations.saturating_mul(2))
    }

    /// Most tries of a search without luck whose first load does not hold.
    fn most_downward(&self) -> u32 {
        let mut grid = self.below();
        grid.extend(self.grid().first());
        let tries = |misses: usize| {
            let (mut held, mut missed, mut tries) = (None, grid.len() - 1, 1);
            let next = |held: Option<usize>, missed| match held {
                None => lower(&grid, missed),
                Some(_) => following(&grid, held, Some(missed)),
            };
            while let Some(at) = next(held, missed) {
                tries += 1;
                if at < misses {
                    held = Some(at);
                } else {
                    missed = at;
                }
            }
            tries + if held.is_some() { self.iterations.saturating_sub(1) } else { 0 }
        };
        (0..grid.len()).map(tries).max().unwrap_or(1)
    }

    /// Tries of a search without luck, for each load of the grid that may be the smallest to miss, and for none.
    fn straight(&self, grid: &[f64]) -> Vec<u32> {
        let tries = |misses: usize| {
            let (mut held, mut missed, mut tries) = (None, None, 0);
            let mut next = Some(0);
            while let Some(at) = next {
                tries += 1;
                *(if at < misses { &mut held } else { &mut missed }) = Some(at);
                next = following(grid, held, missed);
            }
            tries + if held.is_some() { self.iterations.saturating_sub(1) } else { 0 }
        };
        (0..=grid.len()).map(tries).collect()
    }
}

/// Arrivals are tried down to the first load over this.
const LEAST_SHARE: f64 = 1000.0;

/// Arrivals a second to five digits, as they are reported: neighbours on the finest grid are ten of the last apart.
pub fn in_digits(load: f64) -> f64 {
    if !load.is_normal() {
        return load;
    }
    // Through text, which gives the number that people would write and no other: 0.1 times a power of ten is not always that.
    format!("{load:.4e}").parse().unwrap_or(load)
}

/// Most loads of a grid. The finest precision over nine powers of ten is some 21,000.
const MAX_GRID: usize = 100_000;

/// The place in the grid that a search tries next, of the largest load that held and the smallest that did not: twice the
/// load while nothing has failed, then halfway between the two. `None`: there is none between them, or nothing above.
pub fn following(grid: &[f64], held: Option<usize>, missed: Option<usize>) -> Option<usize> {
    let last = grid.len().checked_sub(1)?;
    match (held, missed) {
        (None, None) => Some(0),
        (Some(held), None) => {
            // The largest load that is at most twice as large: what it takes to overload a server is not to be offered it.
            let twice = grid.partition_point(|&load| load <= grid[held.min(last)] * 2.0 * (1.0 + 1e-9));
            (held < last).then(|| twice.saturating_sub(1).max(held + 1))
        }
        (None, Some(0)) => None,
        // Nothing below has held; the first load of all is where a search must begin again.
        (None, Some(_)) => Some(0),
        (Some(held), Some(missed)) => (missed > held + 1).then(|| held + (missed - held) / 2),
    }
}

/// The place in the grid that a search tries next that knows a load that did not hold and none that did: half that load, or
/// the one before it. `None`: there is nothing below.
pub fn lower(grid: &[f64], missed: usize) -> Option<usize> {
    let below = missed.min(grid.len()).checked_sub(1)?;
    let half = grid.get(missed)? / 2.0;
    Some(grid.partition_point(|&load| load <= half * (1.0 + 1e-9)).saturating_sub(1).min(below))
}

/// A case that is offered a share of the capacity that another case found on the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadShare {
    /// The kind of its load.
    pub kind: LoadKind,
    /// The other case, which has a [`CapacitySpec`].
    pub case: String,
    /// The share, above 0.
    pub share: f64,
    /// The largest load that it may come to. Where it can be, it is that of the other case, so that both are given the same data.
    pub most: f64,
}

/// What a score is made of: 100 times the geometric mean, over cases, of capacity over reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreSpec {
    /// (case, reference capacity), in the order of the study.
    pub references: Vec<(String, f64)>,
}

impl ScoreSpec {
    /// The score of capacities in the order of the references; `None` unless all are there and positive.
    pub fn of(&self, capacities: &[f64]) -> Option<f64> {
        let whole = capacities.len() == self.references.len() && !capacities.is_empty();
        if !whole || capacities.iter().any(|capacity| !(capacity.is_finite() && *capacity > 0.0)) {
            return None;
        }
        let logs =
            capacities.iter().zip(&self.references).map(|(capacity, (_, reference))| (capacity / reference).ln());
        Some(100.0 * (logs.sum::<f64>() / capacities.len() as f64).exp())
    }
}

/// What one search saw.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CapacitySearch {
    /// The largest load that held in all its iterations; 0: not even the first did.
    pub held: f64,
    /// The smallest load above it that did not hold; `None`: the largest that may be tried held.
    pub missed: Option<f64>,
    /// Every load that was tried, in order.
    pub probes: Vec<Probe>,
    /// How it ended, in a sentence.
    pub ended: String,
}

impl CapacitySearch {
    /// The iterations at the load that held, in order.
    pub fn iterations(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| probe.failed.is_none() && (probe.load - self.held).abs() < 1e-9)
    }
}

/// One load, tried once in a fresh instance.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Probe {
    /// The load, in clients or arrivals a second.
    pub load: f64,
    /// What for.
    pub purpose: ProbePurpose,
    /// Why it does not count as held; `None`: it held.
    pub failed: Option<String>,
    /// The kind of the reason in `failed`.
    pub cause: Option<ProbeCause>,
    /// Start and end of the measured window, CLOCK_MONOTONIC nanoseconds; zeros when it was not reached.
    pub window_ns: (u64, u64),
    /// By metric id.
    pub metrics: BTreeMap<String, f64>,
    /// Counts that qualify the figures, as in a measurement.
    pub counts: BTreeMap<String, u64>,
    /// Response times, nanoseconds.
    pub response: Histogram,
    /// By request type, where the workload has them.
    pub requests: Vec<RequestType>,
    /// CPU of the SUT in the window.
    pub cpu: Option<CpuAccount>,
    /// What a reader must know.
    pub flags: Vec<Flag>,
}

/// What a load is tried for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbePurpose {
    /// To find a load that does not hold.
    #[default]
    Bracket,
    /// To halve the distance between one that held and one that did not.
    Bisect,
    /// To see whether it holds again.
    Confirm,
}

/// Why a load does not count as held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeCause {
    /// An objective was missed.
    Qos,
    /// The work was wrong, twice.
    Invalid,
    /// It did not run to its end, twice.
    Failed,
    /// It was too small to be judged, as by a percentile of too few operations: it shows nothing.
    TooFew,
}

/// Ids of the metrics that a search yields.
pub mod metric {
    /// The largest load that held in all iterations: clients, or arrivals a second.
    pub const CAPACITY: &str = "capacity";
}

/// The primary metric of a search over this kind of load.
pub fn metric_spec(kind: LoadKind) -> MetricSpec {
    let (label, unit) = match kind {
        LoadKind::Closed { .. } => ("capacity: most simultaneous clients that meet every objective", Unit::Count),
        LoadKind::Open { .. } => ("capacity: most arrivals that meet every objective", Unit::OperationsPerSecond),
    };
    MetricSpec::new(metric::CAPACITY, label, unit, Better::Higher).primary()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_scores_come_out() {
        let references = [("banking", 120.0), ("ecommerce", 114.0), ("support", 162.0)];
        let spec = ScoreSpec { references: references.map(|(case, of)| (case.to_owned(), of)).to_vec() };
        let score = |capacities: [f64; 3]| spec.of(&capacities).map(f64::round);
        assert_eq!((score([2300.0, 3200.0, 2200.0]), score([2600.0, 4100.0, 2600.0])), (Some(1940.0), Some(2321.0)));
        assert_eq!((spec.of(&[1.0, 2.0]), score([0.0, 1.0, 1.0])), (None, None));
    }

    const CLOSED: LoadKind = LoadKind::Closed { think_time: crate::Span::ZERO };
    const OPEN: LoadKind = LoadKind::Open { arrivals: crate::load::Arrivals::Poisson, connections: 4 };

    /// What rounding two loads to five digits may add to the distance between them.
    const ROUNDED: f64 = 1.0 + 1.1e-4;

    fn spec(kind: LoadKind, from: f64, most: f64, precision: f64) -> CapacitySpec {
        CapacitySpec { kind, from, most, precision, iterations: 3, drivers: 1 }
    }

    #[test]
    fn each_driver_has_as_many_clients_as_the_others() {
        let of = |drivers, from, most| CapacitySpec { drivers, ..spec(CLOSED, from, most, 0.25) };
        let spec = of(11, 20.0, 100.0);
        assert_eq!((spec.grid(), spec.below()), ((2..=9).map(|each| 11.0 * f64::from(each)).collect(), vec![11.0]));
        assert_eq!(spec.of_each(55.0).number(), 5.0);
        assert_eq!(of(11, 3.0, 5.0).grid(), [11.0], "one client of each driver at least");
        let open = CapacitySpec { drivers: 11, ..self::spec(OPEN, 100.0, 130.0, 0.1) };
        assert_eq!(open.grid(), [100.0, 110.0, 121.0, 130.0]);
        assert!((open.of_each(110.0).number() - 10.0).abs() < 1e-9);
        let (likely, most) = (spec.tries_likely(), spec.tries_at_most());
        assert!(likely >= 2 && most >= 2 * likely, "{likely} {most}");
    }

    #[test]
    fn a_grid_is_as_fine_as_the_precision_or_one_client() {
        assert_eq!(spec(CLOSED, 1.0, 8.0, 0.5).grid(), [1.0, 2.0, 3.0, 4.0, 6.0, 8.0]);
        assert_eq!(spec(CLOSED, 20.0, 25.0, 0.05).grid(), [20.0, 21.0, 22.0, 23.0, 24.0, 25.0]);
        assert_eq!(spec(OPEN, 100.0, 130.0, 0.1).grid(), [100.0, 110.0, 121.0, 130.0]);
        assert_eq!(spec(CLOSED, 7.0, 7.0, 0.05).grid(), [7.0]);
        for (kind, from, most, precision) in [
            (CLOSED, 1.0, 60_000.0, 0.001),
            (CLOSED, 50.0, 4000.0, 0.05),
            (OPEN, 0.5, 1e9, 0.001),
            (OPEN, 3.0, 9.0, 1.0),
        ] {
            let grid = spec(kind, from, most, precision).grid();
            assert_eq!((grid.first(), grid.last()), (Some(&from), Some(&most)));
            for pair in grid.windows(2) {
                let one_client = kind == CLOSED && (pair[1] - pair[0] - 1.0).abs() < 1e-9;
                assert!(pair[1] > pair[0] && (one_client || pair[1] <= pair[0] * (1.0 + precision) * ROUNDED));
                assert!(kind == OPEN || pair[1].fract() == 0.0, "whole clients: {pair:?}");
            }
        }
    }

    #[test]
    fn a_search_doubles_until_something_fails_and_then_halves() {
        let grid = spec(CLOSED, 1.0, 100.0, 1.0).grid();
        assert_eq!(grid, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0]);
        assert_eq!((following(&grid, None, None), following(&grid, Some(0), None)), (Some(0), Some(1)));
        assert_eq!((following(&grid, Some(6), None), following(&grid, Some(7), None)), (Some(7), None));
        assert_eq!((following(&grid, Some(2), Some(7)), following(&grid, Some(4), Some(5))), (Some(4), None));
        assert_eq!((following(&grid, None, Some(0)), following(&grid, None, Some(3))), (None, Some(0)));
        let fine = spec(CLOSED, 50.0, 4000.0, 0.05).grid();
        let first = following(&fine, Some(0), None).map(|at| fine[at]);
        assert!(first.is_some_and(|load| (95.0..=100.0).contains(&load)), "{first:?}");
        assert_eq!((following(&[], None, None), following(&[], Some(3), None)), (None, None));
    }

    #[test]
    fn below_the_first_load_the_grid_goes_on_to_one_client_and_a_search_finds_what_holds_there() {
        assert_eq!(spec(CLOSED, 8.0, 9.0, 0.5).below(), [1.0, 2.0, 3.0, 4.0, 6.0]);
        assert_eq!(spec(CLOSED, 1.0, 9.0, 0.5).below(), [0.0; 0]);
        for (kind, from, precision) in [(CLOSED, 5000.0, 0.05), (CLOSED, 60_000.0, 0.01), (OPEN, 0.5, 0.05)] {
            let spec = spec(kind, from, from, precision);
            let mut grid = spec.below();
            grid.push(from);
            assert!(grid[0] == 1.0 || (kind == OPEN && (grid[0] - from / LEAST_SHARE).abs() < 1e-9), "{}", grid[0]);
            for pair in grid.windows(2) {
                let one_client = kind == CLOSED && (pair[1] - pair[0] - 1.0).abs() < 1e-9;
                assert!(pair[1] > pair[0] && (one_client || pair[1] <= pair[0] * (1.0 + precision) * ROUNDED));
            }
            assert_eq!((lower(&grid, 0), lower(&grid, 1)), (None, Some(0)));
            assert!(lower(&grid, grid.len() - 1).is_some_and(|at| grid[at] <= from / 2.0 * (1.0 + 1e-9)));
        }
        // Down to one client and up again, each try repeated, with its confirmations.
        assert!(spec(CLOSED, 5000.0, 5000.0, 0.05).tries_at_most() >= 2 * (13 + 2));
    }

    /// The longest search of all with a repeat of each try, and whether the bound holds it.
    #[test]
    fn the_most_tries_hold_a_search_of_which_each_try_is_repeated() {
        for (kind, from, most, precision) in [
            (CLOSED, 50.0, 4000.0, 0.05),
            (CLOSED, 1.0, 1.0, 0.05),
            (OPEN, 10.0, 1e5, 0.01),
            (CLOSED, 1.0, 60_000.0, 0.001),
        ] {
            let spec = spec(kind, from, most, precision);
            let grid = spec.grid();
            let (likely, bound) = (spec.tries_likely(), spec.tries_at_most());
            let mut longest = 0;
            for capacity in &grid {
                let (mut tries, mut held, mut missed) = (0, None, None);
                while let Some(at) = following(&grid, held, missed) {
                    tries += 2;
                    *(if grid[at] <= *capacity { &mut held } else { &mut missed }) = Some(at);
                }
                assert_eq!(held.map(|at| grid[at]), Some(*capacity), "found to the step");
                longest = longest.max(tries + 2 * (spec.iterations - 1));
            }
            assert!(longest <= bound && likely <= bound / 2, "{longest} of {bound}, {likely} likely");
        }
        let published = spec(CLOSED, 50.0, 4000.0, 0.05);
        assert_eq!((published.tries_likely(), published.tries_at_most()), (11, 32));
    }

    #[test]
    fn iterations_are_those_of_the_load_that_held() {
        let probe = |load, failed: Option<&str>| Probe { load, failed: failed.map(Into::into), ..Probe::default() };
        let probes = vec![probe(10.0, None), probe(20.0, Some("x")), probe(15.0, None), probe(15.0, None)];
        let search = CapacitySearch { held: 15.0, probes, ..CapacitySearch::default() };
        assert_eq!(search.iterations().count(), 2);
    }
}
