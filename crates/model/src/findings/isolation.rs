//! What a neighbour does to a victim, layer by layer.

use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::aggressor::Aggressor;

/// What neighbours do to one victim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationFindings {
    /// Id of the case as it was written; its conditions are cases.
    pub victim: String,
    /// Name for people.
    pub label: String,
    /// What the ratios of time are of, for people: `response time, 99th percentile`, or `time of a unit of work`.
    pub time: String,
    /// What the ratios of speed are of, for people.
    pub speed: String,
    /// What neighbours did, in the order of the study.
    pub works: Vec<Aggressor>,
    /// One entry an arm, in the order of the study.
    pub arms: Vec<ArmIsolation>,
    /// What follows, the most important first; a sentence each.
    pub sentences: Vec<String>,
}

/// What neighbours do to the victim on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmIsolation {
    /// Arm id.
    pub arm: String,
    /// One entry for each thing that neighbours did, in the order of [`IsolationFindings::works`].
    pub cells: Vec<IsolationCell>,
}

/// What one neighbour does to the victim on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationCell {
    /// Id of the condition's case.
    pub case: String,
    /// What the neighbours did.
    pub work: Aggressor,
    /// Time, over that with the neighbours idle, of the same guest: above 1 the victim is slower. `None` without a block that has both.
    pub time: Option<Estimate>,
    /// The same of operations, or other units of work, in a second: below 1 the victim gets less done. `None` also where time is the inverse of
    /// it.
    pub speed: Option<Estimate>,
    /// What the neighbours achieved in a second of their turns.
    pub achieved_per_s: Option<Estimate>,
    /// That over what the same neighbours achieved on the baseline in the same blocks; `None` on the baseline.
    pub achieved_share: Option<Estimate>,
    /// Whether they achieved much less than on the baseline: that the victim suffers little is then no credit to the layer.
    pub starved: bool,
    /// How neighbours, victim and host came through it.
    pub survival: Survival,
}

/// How all came through the turns of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Survival {
    /// Trials that ran.
    pub trials: u32,
    /// Of which the victim was lost or did wrong work.
    pub victim_lost: u32,
    /// Operations of the victim that failed or did not end, as a share of all that were due.
    pub failed_share: f64,
    /// Trials in which a neighbour ended, such as by the kernel for want of memory, and victim and host went on: it was contained.
    pub contained: u32,
    /// How often the system refused the neighbours something, such as memory or a process.
    pub refused: u64,
    /// Longest delay of a thread of the controller, seconds.
    pub host_delay_max_s: f64,
}

impl IsolationCell {
    /// Whether the interval of the victim's time, or where that has none of its speed, excludes that nothing changed.
    pub fn is_clear(&self) -> bool {
        let own = self.time.as_ref().or(self.speed.as_ref());
        own.is_some_and(|ratio| ratio.low.is_some_and(|low| low > 1.0) || ratio.high.is_some_and(|high| high < 1.0))
    }
}
