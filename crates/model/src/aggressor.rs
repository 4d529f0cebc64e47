//! What the neighbours of a measured guest do to it.

use serde::{Deserialize, Serialize};

use crate::drive::BusyWork;

/// What a neighbour does in the turns of a condition, as a study names it. What one iteration of each is says [`BusyWork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggressor {
    /// Works a little, as a neighbour does who does no harm.
    Polite,
    /// Computes all the time, in registers.
    Spin,
    /// Takes the caches.
    Cache,
    /// Takes the bandwidth of memory.
    MemoryStream,
    /// Calls the kernel all the time.
    Syscalls,
}

/// What a neighbour is given to work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Means {
    /// Memory promised to its guest, bytes.
    pub memory_bytes: u64,
}

impl Aggressor {
    /// All of them, the mildest first.
    pub const ALL: [Self; 5] = [Self::Polite, Self::Spin, Self::Cache, Self::MemoryStream, Self::Syscalls];

    /// As a study writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Polite => "polite",
            Self::Spin => "spin",
            Self::Cache => "cache",
            Self::MemoryStream => "memory-stream",
            Self::Syscalls => "syscalls",
        }
    }

    /// What it does, in a few words for people.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Polite => "computes 10 ms of every 100 ms",
            Self::Spin => "computes in registers",
            Self::Cache => "reads and writes all over the caches",
            Self::MemoryStream => "streams through memory",
            Self::Syscalls => "calls the kernel",
        }
    }

    /// What its agent is asked to do.
    pub const fn work(self, means: Means) -> BusyWork {
        let Means { memory_bytes } = means;
        match self {
            Self::Polite => BusyWork::Polite,
            Self::Spin => BusyWork::Spin,
            Self::Cache => BusyWork::Cache { memory_bytes },
            Self::MemoryStream => BusyWork::MemoryStream { memory_bytes },
            Self::Syscalls => BusyWork::Syscalls,
        }
    }

    /// What its iterations are, in the plural.
    pub fn unit(self) -> &'static str {
        self.work(Means::default()).unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_and_an_agent_call_it_the_same() {
        for aggressor in Aggressor::ALL {
            assert_eq!(aggressor.name(), aggressor.work(Means::default()).name());
        }
    }
}
