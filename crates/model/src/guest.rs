//! What is asked for a guest, and what the kernel granted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::ByteSize;

/// The size of a guest, the same on every arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GuestSize {
    /// CPUs: the CPU quota, and the virtual CPUs of a virtual machine.
    pub cpus: u32,
    /// Memory: the hard limit, and the memory of a virtual machine.
    pub memory: ByteSize,
}

/// One guest to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSpec {
    /// Name, unique in the run, fit for file names and interfaces: lower case letters, digits, `-`.
    pub name: String,
    /// CPUs and memory.
    pub size: GuestSize,
    /// Host CPUs that the guest may run on; empty means any.
    pub cpu_set: Vec<u32>,
}

/// One line of the parity check: what was asked of a resource and what the kernel granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParityRow {
    /// The resource, such as `cpu quota`.
    pub resource: String,
    /// What was asked, as written for people.
    pub asked: String,
    /// What was read back; `None` when this host cannot grant it (the reason is in `note`).
    pub granted: Option<String>,
    /// Whether what was granted is what was asked.
    pub equal: bool,
    /// Where it was read, or why it could not be.
    pub note: String,
}
