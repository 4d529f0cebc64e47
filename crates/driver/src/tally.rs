//! What one thread of a run counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use tare_model::turns::TurnsDone;

use crate::record::Recorder;
use crate::times::Times;
use crate::usage::Usage;

/// Counts and durations of one thread in the measured window; errors of the whole run.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Closed loop: durations of operations that ended in the window. Open loop: response times of those due in it.
    pub response: Recorder,
    /// Open loop only.
    pub service: Recorder,
    /// Open loop only.
    pub lateness: Recorder,
    pub operations: u64,
    /// Operations answered in all phases.
    pub answered: u64,
    pub lost: u64,
    pub unfinished: u64,
    pub to_guest: u64,
    pub from_guest: u64,
    /// Bulk: bytes of all phases.
    pub to_guest_total: u64,
    pub from_guest_total: u64,
    pub errors: BTreeMap<String, u64>,
    pub cpu: Usage,
    /// Bulk: the stream ended and both ends counted the same.
    pub verified: bool,
    /// What was done in turns.
    pub turns: Option<TurnsDone>,
}

/// Durations that all threads of a run record together.
#[derive(Debug)]
pub(crate) struct Shared {
    pub response: Arc<Times>,
    pub service: Arc<Times>,
    pub lateness: Arc<Times>,
}

impl Shared {
    pub fn new() -> Self {
        let times = || Arc::new(Times::new());
        Self { response: times(), service: times(), lateness: times() }
    }
}

impl Tally {
    pub fn new(record: bool) -> Self {
        Self {
            response: Recorder::new(record),
            service: Recorder::new(false),
            lateness: Recorder::new(false),
            operations: 0,
            answered: 0,
            lost: 0,
            unfinished: 0,
            to_guest: 0,
            from_guest: 0,
            to_guest_total: 0,
            from_guest_total: 0,
            errors: BTreeMap::new(),
            cpu: Usage::default(),
            verified: true,
            turns: None,
        }
    }

    /// One that has its durations recorded together with those of others.
    pub fn sharing(shared: &Shared, open: bool) -> Self {
        let of = |times, on: bool| if on { Recorder::shared(times) } else { Recorder::new(false) };
        Self {
            response: of(&shared.response, true),
            service: of(&shared.service, open),
            lateness: of(&shared.lateness, open),
            ..Self::new(false)
        }
    }

    pub fn open(record: bool) -> Self {
        Self { service: Recorder::new(record), lateness: Recorder::new(record), ..Self::new(record) }
    }

    pub fn bulk() -> Self {
        Self { verified: false, ..Self::new(false) }
    }

    /// Open loop: an arrival that was due in the window waited so long until it was sent, and was answered so long after that.
    #[inline]
    pub fn answered_after(&mut self, waited: u64, service: u64) {
        self.response.record(waited + service);
        self.service.record(service);
        self.lateness.record(waited);
    }

    /// An operation that was due in the window was given up after so many nanoseconds.
    #[cold]
    pub fn given_up(&mut self, waited_ns: u64) {
        self.response.given_up(waited_ns);
        self.service.failed();
    }

    /// An operation that was due in the window failed.
    #[cold]
    pub fn failed(&mut self) {
        self.response.failed();
        self.service.failed();
    }

    /// Counts a failure by its reason.
    #[cold]
    pub fn error(&mut self, reason: String) {
        *self.errors.entry(reason).or_insert(0) += 1;
    }
}
