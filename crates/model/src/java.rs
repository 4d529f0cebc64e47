//! The Java application: how its load is driven, what it tells, and what a guest does with its memory.
//!
//! `docs/reference/java.md` has the protocol between the driver and the application.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a guest does with the memory that it was promised, beside what the application touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuestMemory {
    /// Nothing: it touches what it uses, as Linux does.
    #[default]
    Lazy,
    /// Its system writes zeros to all of it at start, as the published guests' did.
    Zeroed,
    /// Filled with data that are the same in every guest.
    FilledSame,
    /// Filled with data of its own in every guest.
    FilledDistinct,
}

impl GuestMemory {
    /// Whether all promised memory is touched.
    pub const fn is_touched(self) -> bool {
        !matches!(self, Self::Lazy)
    }
}

/// Memory that an agent is to hold, written to once, beside what others in the guest use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldSpec {
    /// Memory promised to the guest. What is held shrinks, and never grows again, so that it and the largest resident
    /// size of the commands that this agent started stay `room_bytes` below this.
    pub promised_bytes: u64,
    /// Memory that is left free for what the guest's system and the growth of its programs take at once.
    pub room_bytes: u64,
    /// What is written. `Lazy` holds nothing.
    pub fill: GuestMemory,
    /// Seed of distinct data: another one in each guest.
    pub seed: u64,
}

/// What a driver tells the application.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JavaDrive {
    /// Longest wait for the application to take the connection and to answer, nanoseconds.
    pub timeout_ns: u64,
    /// How often the driver asks how many operations are done, nanoseconds.
    pub ask_every_ns: u64,
}

/// What the application tells after a run of load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JavaDone {
    /// Operations by transaction in all phases since the application started.
    pub transactions: BTreeMap<String, u64>,
    /// Data groups, each with a thread.
    pub groups: u32,
    /// Live heap after a collection at start, bytes, of all groups.
    pub live_heap_bytes: u64,
    /// Heap in use, bytes.
    pub heap_used_bytes: u64,
    /// Heap that the virtual machine holds, bytes.
    pub heap_committed_bytes: u64,
    /// Allocated by the threads of the groups since the application started, bytes.
    pub allocated_bytes: u64,
    /// Collections of garbage since it started, and how long they took, milliseconds.
    pub collections: u64,
    /// See `collections`.
    pub collection_ms: u64,
    /// CPU of the whole process since it started, nanoseconds, as the virtual machine tells it.
    pub cpu_ns: u64,
    /// What does not add up; `None`: everything does.
    pub wrong: Option<String>,
}
