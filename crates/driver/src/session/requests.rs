//! Requests of one type: how many were served how well, and how soon.

use std::collections::BTreeMap;

use tare_model::trial::RequestType;

use super::engine::Ended;
use super::fault::{Fault, TIMEOUT, UNFINISHED};
use crate::record::Recorder;

/// How well something was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Tolerable,
    Failed,
}

/// What one thread counts of a type.
#[derive(Debug)]
pub(crate) struct Counts {
    good: u64,
    tolerable: u64,
    failed: u64,
    validation_errors: u64,
    bytes: u64,
    times: Recorder,
}

impl Counts {
    /// Nothing counted yet.
    pub fn new() -> Self {
        let times = Recorder::new(true);
        Self { good: 0, tolerable: 0, failed: 0, validation_errors: 0, bytes: 0, times }
    }

    /// Counts one.
    pub fn count(&mut self, ended: &Ended, verdict: Verdict) {
        match verdict {
            Verdict::Good => self.good += 1,
            Verdict::Tolerable => self.tolerable += 1,
            Verdict::Failed => self.failed += 1,
        }
        self.validation_errors += u64::from(ended.fault.is_some());
        self.bytes += ended.bytes;
        match ended.fault {
            None if !ended.cut => self.times.record(ended.response_ns),
            // Time-outs take at least the time-out. Wrong answers have no response time.
            None | Some(TIMEOUT | UNFINISHED) => self.times.given_up(ended.response_ns),
            Some(_) => self.times.failed(),
        }
    }
}

/// What all threads counted of a type.
pub(crate) fn merge(mut kind: RequestType, threads: impl Iterator<Item = Counts>) -> RequestType {
    for counts in threads {
        kind.requests += counts.good + counts.tolerable + counts.failed;
        kind.good += counts.good;
        kind.tolerable += counts.tolerable;
        kind.failed += counts.failed;
        kind.validation_errors += counts.validation_errors;
        kind.bytes += counts.bytes;
        kind.times.merge(&counts.times.into_histogram());
    }
    // Those without a response time have the mean of the others, so that the sum over the requests is that mean: errors that come soon do not make a
    // server look fast.
    kind.response_s = kind.times.mean().unwrap_or(0.0) / 1e9 * kind.requests as f64;
    kind
}

/// Faults by kind.
#[derive(Debug, Default)]
pub(crate) struct Faults(BTreeMap<Fault, u64>);

impl Faults {
    /// Counts that of an operation, if it has one.
    pub fn count(&mut self, ended: &Ended) {
        if let Some(fault) = ended.fault {
            *self.0.entry(fault).or_insert(0) += 1;
        }
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: Self) {
        for (fault, count) in other.0 {
            *self.0.entry(fault).or_insert(0) += count;
        }
    }

    /// In the words that they are shown in.
    pub fn named(self) -> Vec<(String, u64)> {
        self.0.into_iter().map(|(fault, count)| (fault.to_string(), count)).collect()
    }
}
