//! Memory that is merged and overcommitted: what the kernel is set to, the rules that govern it, what guests cost, and the
//! reserve that keeps a host out of harm.
//!
//! - [`Kernel`] reads what the kernel counts and is set to, and says why memory cannot be merged.
//! - [`Governor`] notes what it finds, sets the host for an arm, carries out the arm's rule, and puts all back.
//! - [`rules`] are pure: from what is [`Seen`](rules::Seen) to what is [`Set`](rules::Set).
//! - [`ballooning`] sizes the balloons of machines by a policy.
//! - [`Settled`] tells from the counters whether merging has come to its end.
//! - [`host`] is the host's memory and its reserve, [`cost`] what guests take of it.

pub mod ballooning;
pub mod cost;
mod error;
mod governor;
pub mod host;
mod kernel;
pub mod rules;
mod settings;
mod settle;
mod sys;

pub use error::{MemoryError, Result};
pub use governor::{Decision, Governor};
pub use kernel::Kernel;
pub use settings::{AdvisorSettings, Settings};
pub use settle::Settled;
pub use sys::open_to_merging;

/// What all guests of the host take, as whoever made them knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Guests {
    /// Memory that was promised to them, bytes.
    pub promised_bytes: u64,
    /// Virtual sizes of their processes, bytes.
    pub virtual_bytes: u64,
    /// What their processes have resident, merged pages included, bytes.
    pub resident_bytes: u64,
    /// Memory that the next guest waits for, bytes; above 0, merging is in haste.
    pub waiting_bytes: u64,
}
