//! What the neighbours of a measured guest do to it.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::busy::BusyWork;

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
    /// Starts processes.
    Fork,
    /// Takes memory up to its limit, and gives it back.
    MemoryGrowth,
    /// Fills the page cache.
    PageCache,
    /// Keeps the disk writing.
    DiskWrite,
    /// Sends datagrams to where the load comes from.
    NetSend,
}

/// What a neighbour is given to work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Means {
    /// Memory promised to its guest, bytes.
    pub memory_bytes: u64,
    /// The host that it may send to; `None`: its own.
    pub to: Option<IpAddr>,
}

/// Where what is sent goes: nobody answers there (discard, RFC 863).
const PORT: u16 = 9;
/// Where files are made in a guest: on its disk, where it has one.
const DIRECTORY: &str = "/var/tmp";

impl Aggressor {
    /// All of them, the mildest first.
    pub const ALL: [Self; 10] = [
        Self::Polite,
        Self::Spin,
        Self::Cache,
        Self::MemoryStream,
        Self::Syscalls,
        Self::Fork,
        Self::MemoryGrowth,
        Self::PageCache,
        Self::DiskWrite,
        Self::NetSend,
    ];

    /// As a study writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Polite => "polite",
            Self::Spin => "spin",
            Self::Cache => "cache",
            Self::MemoryStream => "memory-stream",
            Self::Syscalls => "syscalls",
            Self::Fork => "fork",
            Self::MemoryGrowth => "memory-growth",
            Self::PageCache => "page-cache",
            Self::DiskWrite => "disk-write",
            Self::NetSend => "net-send",
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
            Self::Fork => "starts processes",
            Self::MemoryGrowth => "takes memory up to its limit",
            Self::PageCache => "fills the page cache",
            Self::DiskWrite => "writes to the disk and syncs",
            Self::NetSend => "sends datagrams",
        }
    }

    /// What its agent is asked to do.
    pub fn work(self, means: Means) -> BusyWork {
        let Means { memory_bytes, to } = means;
        let directory = || DIRECTORY.to_owned();
        match self {
            Self::Polite => BusyWork::Polite,
            Self::Spin => BusyWork::Spin,
            Self::Cache => BusyWork::Cache { memory_bytes },
            Self::MemoryStream => BusyWork::MemoryStream { memory_bytes },
            Self::Syscalls => BusyWork::Syscalls,
            Self::Fork => BusyWork::Fork,
            Self::MemoryGrowth => BusyWork::MemoryGrowth { memory_bytes },
            Self::PageCache => BusyWork::PageCache { directory: directory(), memory_bytes },
            Self::DiskWrite => BusyWork::DiskWrite { directory: directory() },
            Self::NetSend => BusyWork::NetSend { to: (to.unwrap_or(Ipv4Addr::LOCALHOST.into()), PORT).into() },
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
