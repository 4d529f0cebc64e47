//! What one thread counts, and what all of them tell together.

use tare_model::trial::RequestType;

use super::compile::Site;
use crate::session::engine::Ended;
use crate::session::requests::{self, Counts, Faults, Verdict};

/// Counts of one thread.
#[derive(Debug)]
pub(crate) struct Tally {
    types: Vec<Counts>,
    faults: Faults,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(site: &Site) -> Self {
        Self { types: site.types.iter().map(|_| Counts::new()).collect(), faults: Faults::default() }
    }

    /// Counts a request for a state, judged by the site's objectives. One with a fault has failed however soon it came. Outside the
    /// measured window only the fault is counted.
    pub fn record(&mut self, site: &Site, state: u16, done: &Ended, in_window: bool) {
        self.faults.count(done);
        if in_window {
            let counted_as = site.states[usize::from(state)].counted_as;
            self.types[usize::from(counted_as)].count(done, judge(site, state, done));
        }
    }

    /// Counts a request that was due in the measured window and did not end in it, if it has failed: what a server answers too late, or
    /// never, is not overlooked because the window was over meanwhile. A download is judged only where it has come to an end.
    pub fn record_late(&mut self, site: &Site, state: u16, done: &Ended) {
        let judged = !done.cut || done.fault.is_some() || !site.is_download(state);
        let failed = judged && judge(site, state, done) == Verdict::Failed;
        self.record(site, state, done, failed);
    }

    /// What all threads counted together: by request type in the site's order, and faults of all phases by kind.
    pub fn merge(site: &Site, tallies: impl IntoIterator<Item = Self>) -> (Vec<RequestType>, Vec<(String, u64)>) {
        let mut types: Vec<Vec<Counts>> = site.types.iter().map(|_| Vec::new()).collect();
        let mut faults = Faults::default();
        for tally in tallies {
            types.iter_mut().zip(tally.types).for_each(|(all, counts)| all.push(counts));
            faults.add(tally.faults);
        }
        let merged = site.types.iter().zip(types).map(|(kind, counts)| {
            let kind = RequestType { name: kind.name.clone(), target: kind.target, ..RequestType::default() };
            requests::merge(kind, counts.into_iter())
        });
        (merged.collect(), faults.named())
    }
}

/// Pages and files by their response time, downloads by their byte rate over the response time.
fn judge(site: &Site, state: u16, done: &Ended) -> Verdict {
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
