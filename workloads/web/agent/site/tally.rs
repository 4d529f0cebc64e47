//! What one thread counts, and what all of them tell together.

use std::collections::BTreeMap;

use tare_model::trial::RequestType;

use super::compile::Site;
use crate::record::Recorder;
use crate::session::fault::{Fault, TIMEOUT, UNFINISHED};

/// A request that is over, with all files that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    /// From the intended start until the last file had come, or until it was given up, nanoseconds.
    pub response_ns: u64,
    /// Bytes that came, heads and embedded files counted.
    pub bytes: u64,
    /// The first thing that was wrong with it, if anything was.
    pub fault: Option<Fault>,
}

/// Counts of one thread.
#[derive(Debug)]
pub(crate) struct Tally {
    types: Vec<Counts>,
    faults: BTreeMap<Fault, u64>,
}

#[derive(Debug)]
struct Counts {
    good: u64,
    tolerable: u64,
    failed: u64,
    validation_errors: u64,
    bytes: u64,
    /// Of those that have a response time.
    response_ns: u64,
    timed: u64,
    times: Recorder,
}

/// How well something was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Tolerable,
    Failed,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(site: &Site) -> Self {
        let nothing = |_| Counts {
            good: 0,
            tolerable: 0,
            failed: 0,
            validation_errors: 0,
            bytes: 0,
            response_ns: 0,
            timed: 0,
            times: Recorder::new(true),
        };
        Self { types: site.types.iter().map(nothing).collect(), faults: BTreeMap::new() }
    }

    /// Counts a request for a state, judged by the site's objectives. One with a fault has failed however soon it came. Outside the
    /// measured window only the fault is counted.
    pub fn record(&mut self, site: &Site, state: u16, done: &Done, in_window: bool) {
        if let Some(fault) = done.fault {
            *self.faults.entry(fault).or_insert(0) += 1;
        }
        if in_window {
            self.count(site, state, done, judge(site, state, done));
        }
    }

    /// Counts a request that was due in the measured window and did not end in it, if it has failed: what a server answers too late, or
    /// never, is not overlooked because the window was over meanwhile. A download is judged only where it has come to an end.
    pub fn record_late(&mut self, site: &Site, state: u16, done: &Done, ended: bool) {
        let judged = ended || done.fault.is_some() || !site.is_download(state);
        let failed = judged && judge(site, state, done) == Verdict::Failed;
        self.record(site, state, done, failed);
    }

    fn count(&mut self, site: &Site, state: u16, done: &Done, verdict: Verdict) {
        let counted_as = site.states[usize::from(state)].counted_as;
        let counts = &mut self.types[usize::from(counted_as)];
        match verdict {
            Verdict::Good => counts.good += 1,
            Verdict::Tolerable => counts.tolerable += 1,
            Verdict::Failed => counts.failed += 1,
        }
        counts.validation_errors += u64::from(done.fault.is_some());
        counts.bytes += done.bytes;
        // Wrong answers have no response time. Time-outs do: at least the time-out.
        if done.fault.is_none_or(|fault| fault == TIMEOUT || fault == UNFINISHED) {
            counts.timed += 1;
            counts.response_ns += done.response_ns;
            counts.times.record(done.response_ns);
        }
    }

    /// What all threads counted together: by request type in the site's order, and faults of all phases by kind.
    pub fn merge(site: &Site, tallies: Vec<Self>) -> (Vec<RequestType>, Vec<(String, u64)>) {
        let mut types: Vec<RequestType> = site
            .types
            .iter()
            .map(|kind| RequestType { name: kind.name.clone(), target: kind.target, ..RequestType::default() })
            .collect();
        let mut timed = vec![(0u128, 0u64); types.len()];
        let mut faults: BTreeMap<Fault, u64> = BTreeMap::new();
        for tally in tallies {
            for (at, counts) in tally.types.into_iter().enumerate() {
                timed[at].0 += u128::from(counts.response_ns);
                timed[at].1 += counts.timed;
                add(&mut types[at], counts);
            }
            for (fault, count) in tally.faults {
                *faults.entry(fault).or_insert(0) += count;
            }
        }
        for (kind, (ns, timed)) in types.iter_mut().zip(timed) {
            // Those without a response time have the mean of the others, so that the sum over the requests is that mean: errors that
            // come soon do not make a server look fast.
            kind.response_s = ns as f64 / 1e9 * kind.requests as f64 / timed.max(1) as f64;
        }
        (types, faults.into_iter().map(|(fault, count)| (fault.to_string(), count)).collect())
    }
}

/// Adds what one thread counted, but the response times, whose sum is kept exact elsewhere until all are there.
fn add(kind: &mut RequestType, counts: Counts) {
    kind.requests += counts.good + counts.tolerable + counts.failed;
    kind.good += counts.good;
    kind.tolerable += counts.tolerable;
    kind.failed += counts.failed;
    kind.validation_errors += counts.validation_errors;
    kind.bytes += counts.bytes;
    kind.times.merge(&counts.times.into_histogram());
}

/// Pages and files by their response time, downloads by their byte rate over the response time.
fn judge(site: &Site, state: u16, done: &Done) -> Verdict {
    let (good, tolerable) = if done.fault.is_some() {
        (false, false)
    } else if site.is_download(state) {
        let (good, tolerable) = site.downloads;
        // As a product: a response time of 0 is infinitely fast.
        let met = |rate: f64| done.bytes as f64 >= rate * done.response_ns as f64 / 1e9;
        (met(good), met(tolerable))
    } else {
        (done.response_ns <= site.pages.good_ns, done.response_ns <= site.pages.tolerable_ns)
    };
    match (good, tolerable) {
        (true, _) => Verdict::Good,
        (false, true) => Verdict::Tolerable,
        (false, false) => Verdict::Failed,
    }
}
