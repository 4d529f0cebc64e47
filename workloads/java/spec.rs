//! The Java application: how its load is driven, and what it tells.
//!
//! `docs/reference/java.md` has the protocol between the driver and the application.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tare_model::clean::{MOST_ENTRIES, Untrusted};
use tare_model::packed::Task;

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

impl Task for JavaDrive {
    const KIND: &'static str = "java";
    type Outcome = JavaDone;
}

impl Untrusted for JavaDone {
    fn clean(&mut self) {
        let transactions = std::mem::take(&mut self.transactions).into_iter().take(MOST_ENTRIES);
        self.transactions = transactions
            .map(|(mut name, count)| {
                name.clean();
                (name, count)
            })
            .collect();
        self.wrong.clean();
    }
}
