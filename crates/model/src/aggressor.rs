//! What the neighbours of a measured guest do to it.

use serde::{Deserialize, Serialize};

/// What a neighbour does in the turns of a condition, as a study names it. What one iteration of each is says [`crate::drive::BusyWork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggressor {
    /// Multiplications in registers, all the time.
    Spin,
}

impl Aggressor {
    /// All of them, the mildest first.
    pub const ALL: [Self; 1] = [Self::Spin];

    /// As a study writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
        }
    }

    /// What its iterations are, in the plural.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Spin => "multiplications",
        }
    }
}
