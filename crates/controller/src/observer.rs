//! What a run tells while it goes on.

use tare_model::capacity::ProbePurpose;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::precision::Judged;
use tare_model::trial::{Phase, TrialRecord};

/// How far the scale-up of guests is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleUpNow {
    /// Guests that stand.
    pub guests: u32,
    /// Most that may be tried.
    pub most: u32,
    /// Whether load is offered.
    pub load: bool,
    /// Memory of the host that is available, bytes; `None` where the guests are elsewhere.
    pub available_bytes: Option<u64>,
    /// Saved by merging, bytes.
    pub saved_bytes: u64,
}

/// A load that is tried in a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryNow {
    /// Which try of the search it is, from 1.
    pub number: u32,
    /// Tries that the search takes at most.
    pub at_most: u32,
    /// The load in words, such as `120 clients`.
    pub load: String,
    /// What for.
    pub purpose: ProbePurpose,
    /// The largest load that has held so far and was not refuted, or else that was too small to be judged, in words.
    pub held: Option<String>,
    /// The smallest that did not hold, in words.
    pub missed: Option<String>,
}

/// A load that is offered while the one is looked for at which the guests' CPUs are busy to a share.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuSearchNow {
    /// Which load of the trial it is, from 1.
    pub number: u32,
    /// Loads that are tried at most, the measurement not counted.
    pub at_most: u32,
    /// The load in words, such as `120 clients`.
    pub load: String,
    /// The share that is asked, 0 to 1.
    pub target: f64,
    /// Whether it is the measurement.
    pub measured: bool,
    /// The share that it took, 0 to 1; `None` while it is under way.
    pub took: Option<f64>,
}

/// Sees a run as it happens. Calls come from the thread that runs trials and must not block it.
pub trait Observer {
    /// The run begins (or goes on): this many trials of the plan were done already.
    fn run_began(&self, _plan: &Plan, _done: u32) {}
    /// A trial begins.
    fn trial_began(&self, _trial: &PlannedTrial) {}
    /// A trial enters a phase.
    fn phase_entered(&self, _trial: &PlannedTrial, _phase: Phase) {}
    /// Guests are added in a trial, or driven. Called several times a second.
    fn ascending(&self, _trial: &PlannedTrial, _now: &ScaleUpNow) {}
    /// A load is tried next, in instances that are not made yet.
    fn trying(&self, _trial: &PlannedTrial, _now: &TryNow) {}
    /// It was tried, and what was made for it is gone. `failed`: why it did not hold, if it did not; a try whose work was wrong, or that
    /// broke off, is then repeated once.
    fn tried(&self, _trial: &PlannedTrial, _now: &TryNow, _failed: Option<&str>) {}
    /// A load is offered in guests that stand (`took` is `None`), or was.
    fn cpu_search(&self, _trial: &PlannedTrial, _now: &CpuSearchNow) {}
    /// A trial is over and in the run folder.
    fn trial_ended(&self, _record: &TrialRecord) {}
    /// So many whole blocks of a case are recorded: how narrow its intervals are, whether it ends, and how many it is likely to take.
    fn judged(&self, _case: &str, _judged: &Judged) {}
    /// Something the user should know now, such as a dead run that was cleaned up.
    fn note(&self, _text: &str) {}
}

/// Sees and says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {}
