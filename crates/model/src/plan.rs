//! A plan: the study expanded into trials, ordered, costed and hashed.

use serde::{Deserialize, Serialize};

use crate::layout::Layout;
use crate::study::Study;
use crate::units::{ByteSize, Span};

/// Newest schema of `plan.json` that this tare reads.
pub const PLAN_SCHEMA: u32 = 1;

/// Every trial of a study in the order in which it will run, and what the run will cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Schema number.
    pub schema: u32,
    /// The study, as checked. Cases that ask for turns for which this host has no room have the schedule with which they run.
    pub study: Study,
    /// SHA-256 of the study as checked and of the order that follows from it, hexadecimal: two runs are of the same plan
    /// when this is the same.
    pub hash: String,
    /// The CPUs as placed on this host.
    pub cpus: CpuPlacement,
    /// The trials, in order.
    pub trials: Vec<PlannedTrial>,
    /// Trials that run together, in turns, by their index, in order: the arms of one block and case, or the conditions of one victim in one
    /// block on one arm. Every other trial runs by itself.
    pub sets: Vec<Vec<u32>>,
    /// What stands beside the guests, and what their data lie on.
    pub layout: Layout,
    /// What the run will take.
    pub cost: Cost,
    /// What differs on this host from what the study asks, each in a sentence. The report repeats them.
    pub differences: Vec<String>,
    /// Arms of the study that this host cannot run and that are left out, as the study allows. The differences name
    /// them too; `study` holds only the arms that remain.
    pub left_out: Vec<LeftOut>,
}

impl Plan {
    /// The trials in the order in which they run: those of a set together, each other one by itself.
    pub fn steps(&self) -> Vec<&[PlannedTrial]> {
        let (mut steps, mut sets, mut at) = (Vec::new(), self.sets.iter().peekable(), 0);
        while let Some(trial) = self.trials.get(at) {
            let set = sets.next_if(|set| set.first() == Some(&trial.index));
            let end = at + set.map_or(1, |set| set.len().max(1));
            steps.push(self.trials.get(at..end).unwrap_or_default());
            at = end;
        }
        steps
    }

    /// The block of the study to which a trial belongs, from 1. Cases in pairs have several blocks of their own for each.
    pub fn study_block(&self, trial: &PlannedTrial) -> u32 {
        trial.block.saturating_sub(1) / self.pairs(&trial.case) + 1
    }

    /// Blocks of its own that a case has for each block of the study.
    pub fn pairs(&self, case: &str) -> u32 {
        self.study.cases.iter().find(|own| own.id == case).map_or(1, |own| own.schedule.pairs())
    }
}

/// An arm that is not measured on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Arm id.
    pub arm: String,
    /// Its name for people.
    pub label: String,
    /// Why its platform cannot be used.
    pub reason: String,
    /// What would help.
    pub remedy: String,
}

/// CPUs of the host as the plan uses them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlacement {
    /// The driver's CPUs; empty means any.
    pub client: Vec<u32>,
    /// The guests' CPUs; empty means any.
    pub guests: Vec<u32>,
    /// How this came about, in words.
    pub note: String,
}

impl CpuPlacement {
    /// Whether driver and guests have CPUs of their own: only then what the guests cost can be distinguished from what the
    /// driver does.
    pub fn are_separate(&self) -> bool {
        let Self { client, guests, .. } = self;
        !client.is_empty() && !guests.is_empty() && !client.iter().any(|cpu| guests.contains(cpu))
    }
}

/// One trial to be run: one arm, one case, one fresh instance, in one block.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedTrial {
    /// Position in the run, from 0.
    pub index: u32,
    /// Block of its case, from 1. Arms are compared within it.
    pub block: u32,
    /// Case id.
    pub case: String,
    /// Arm id.
    pub arm: String,
}

/// What a run will take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Time in the phases of all trials.
    pub measuring: Span,
    /// Time around them, estimated from the platforms' known start times.
    pub around: Span,
    /// Most memory promised to guests at one time.
    pub memory: ByteSize,
    /// Disk that the run folder and the guests will need at most.
    pub disk: ByteSize,
}
