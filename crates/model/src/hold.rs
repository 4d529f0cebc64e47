//! Memory that a guest's system holds beside what is started in it.

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
