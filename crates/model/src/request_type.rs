//! Requests of one type.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// Requests of one type in a measured window, and how they were served.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RequestType {
    /// Name, unique in the workload, such as `login`.
    pub name: String,
    /// Requests that were answered or failed. `good`, `tolerable` and `failed` add up to it.
    pub requests: u64,
    /// Of which met the bound for good.
    pub good: u64,
    /// Of which did not, but met that for tolerable.
    pub tolerable: u64,
    /// Of which met neither, or failed.
    pub failed: u64,
    /// Of which had a wrong answer or none: each is counted in `failed` as well.
    pub validation_errors: u64,
    /// Bytes that came, headers and embedded files counted.
    pub bytes: u64,
    /// Sum of the response times from the intended start, seconds. A request that failed without having been waited for, such as
    /// one that was answered with an error at once, has no time: it counts here with the mean of the others, so that fast errors
    /// flatter no mean.
    pub response_s: f64,
    /// Target share of the type in all requests, 0 to 1, where the workload has one.
    pub target: Option<f64>,
    /// Response times, nanoseconds; empty where only their sum is known.
    pub times: Histogram,
}

impl RequestType {
    /// Adds other requests to these, all but their response times by themselves.
    pub fn add_counts(&mut self, other: &Self) {
        self.requests += other.requests;
        self.good += other.good;
        self.tolerable += other.tolerable;
        self.failed += other.failed;
        self.validation_errors += other.validation_errors;
        self.bytes += other.bytes;
        self.response_s += other.response_s;
    }
}
