//! The requests of a run by type, as the checks look at them.

use std::collections::BTreeMap;

use tare_model::study::Study;
use tare_model::trial::{RequestType, TrialRecord};

use crate::distribution::completed;

/// The requests of one arm in one case.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub case: &'a str,
    pub arm: &'a str,
    /// In order of blocks, and of iterations within them.
    pub iterations: Vec<Iteration<'a>>,
}

/// The requests of one iteration.
#[derive(Debug)]
pub(super) struct Iteration<'a> {
    /// Block, from 1.
    pub block: u32,
    /// Iteration in the block, from 1.
    pub number: u32,
    pub types: &'a [RequestType],
    /// Counts of the same window.
    pub counts: &'a BTreeMap<String, u64>,
    /// Time that was measured, seconds; 0 where it is not known.
    pub window_s: f64,
}

/// One request type over several iterations.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    pub requests: f64,
    pub bytes: f64,
    pub validation_errors: f64,
    pub target: Option<f64>,
}

impl Sum {
    /// Mean bytes of a request; `None` where there was none.
    pub(super) fn bytes_each(&self) -> Option<f64> {
        (self.requests > 0.0).then(|| self.bytes / self.requests)
    }
}

impl<'a> Table<'a> {
    /// By type, over all iterations.
    pub(super) fn sums(&self) -> BTreeMap<&'a str, Sum> {
        let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
        for own in self.iterations.iter().flat_map(|iteration| iteration.types) {
            let sum = sums.entry(own.name.as_str()).or_default();
            sum.requests += own.requests as f64;
            sum.bytes += own.bytes as f64;
            sum.validation_errors += own.validation_errors as f64;
            sum.target = own.target.or(sum.target);
        }
        sums
    }
}

/// The tables of a run: of a search those of its iterations at the load that held, else that of the measured window.
pub(super) fn of<'a>(study: &'a Study, trials: &'a [TrialRecord]) -> Vec<Table<'a>> {
    let mut tables = Vec::new();
    for case in &study.cases {
        for arm in &study.arms {
            let mut own: Vec<&TrialRecord> =
                trials.iter().filter(|own| own.planned.case == case.id && own.planned.arm == arm.id).collect();
            own.sort_by_key(|record| record.planned.block);
            let iterations: Vec<Iteration<'_>> = own.into_iter().flat_map(iterations).collect();
            if !iterations.is_empty() {
                tables.push(Table { case: &case.id, arm: &arm.id, iterations });
            }
        }
    }
    tables
}

fn iterations(record: &TrialRecord) -> Vec<Iteration<'_>> {
    let Some(measurement) = completed(record) else { return Vec::new() };
    let block = record.planned.block;
    let length = |window: (u64, u64)| window.1.saturating_sub(window.0) as f64 / 1e9;
    if let Some(search) = &measurement.search {
        let with_requests = (1..).zip(search.iterations()).filter(|(_, probe)| !probe.requests.is_empty());
        let iteration = |(number, probe): (u32, &'_ tare_model::capacity::Probe)| (number, length(probe.window_ns));
        return with_requests
            .map(|(number, probe)| {
                let (number, window_s) = iteration((number, probe));
                Iteration { block, number, types: &probe.requests, counts: &probe.counts, window_s }
            })
            .collect();
    }
    if measurement.requests.is_empty() {
        return Vec::new();
    }
    let window_s = record.measured_s().unwrap_or(0.0);
    vec![Iteration { block, number: 1, types: &measurement.requests, counts: &measurement.counts, window_s }]
}
