//! The largest load that meets its objectives: what is tried, and what was seen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::load::LoadModel;
use crate::metric::{Better, MetricSpec, Unit};
use crate::sample::CpuAccount;
use crate::trial::{Flag, RequestType};

/// A case that looks for the largest load at which all its objectives are met. One trial is one such search; each load is
/// tried in a fresh instance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CapacitySpec {
    /// The first load, in clients of a closed loop, or arrivals a second of an open one.
    pub from: f64,
    /// The largest load that is tried.
    pub most: f64,
    /// The search ends when the smallest load that missed an objective is at most so much larger than the largest that held
    /// (0.05: 5 %), or the next client.
    pub precision: f64,
    /// Times that a load must hold, each in a fresh instance, to be reported; at least 2: one may be luck.
    pub iterations: u32,
}

/// A case that is offered a share of the capacity that another case found on the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadShare {
    /// The other case, which has a [`CapacitySpec`].
    pub case: String,
    /// The share, above 0.
    pub share: f64,
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

/// Load at so many clients, or so many arrivals a second.
pub fn load_of(model: &LoadModel, load: f64) -> LoadModel {
    match *model {
        LoadModel::Closed { think_time, .. } => {
            // Searches keep to whole clients, and to fewer than 32 bits of them.
            LoadModel::Closed { clients: load.round().clamp(1.0, f64::from(u32::MAX)) as u32, think_time }
        }
        LoadModel::Open { arrivals, connections, .. } => {
            LoadModel::Open { rate: crate::Rate(load), arrivals, connections }
        }
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
    /// The kind of what is told in `failed`.
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
}

/// Ids of the metrics that a search yields.
pub mod metric {
    /// The largest load that held in all iterations: clients, or arrivals a second.
    pub const CAPACITY: &str = "capacity";
}

/// The primary metric of a search over this kind of load.
pub fn metric_spec(load: &LoadModel) -> MetricSpec {
    let (label, unit) = match load {
        LoadModel::Closed { .. } => ("capacity: most simultaneous clients that meet every objective", Unit::Count),
        LoadModel::Open { .. } => ("capacity: most arrivals that meet every objective", Unit::OperationsPerSecond),
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

    #[test]
    fn iterations_are_those_of_the_load_that_held() {
        let probe = |load, failed: Option<&str>| Probe { load, failed: failed.map(Into::into), ..Probe::default() };
        let probes = vec![probe(10.0, None), probe(20.0, Some("x")), probe(15.0, None), probe(15.0, None)];
        let search = CapacitySearch { held: 15.0, probes, ..CapacitySearch::default() };
        assert_eq!(search.iterations().count(), 2);
    }
}
