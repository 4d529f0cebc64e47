//! What keeps a guest busy beside the drivers: work that proves itself, and aggressors that load one part of a machine as much as they can.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// What busy loops do, over and over. What one iteration is stays the same on every machine, so that iterations
/// a second can be compared.
///
/// All but the first two are aggressors. They work in stretches alone ([`BusyStretch`]) and hold nothing between them: no memory, no
/// process, no file and no socket. What the system refuses them is counted ([`BusyDone::refused`]) and is no failure: a layer that contains
/// them refuses. `memory_bytes` is what the guest was promised; the least of it and of the limits that the guest itself sees holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BusyWork {
    /// A chain of multiplications in registers, no memory. One iteration is one multiplication.
    #[default]
    Spin,
    /// Some of all that programs do: hashing, sorting, floating point, and walking through memory. One iteration is
    /// one whole chunk, whose sizes are stated where it is computed, and whose result is checked.
    Mixed,
    /// Multiplications as in `Spin`, 10 ms of every 100 ms: a neighbour that does no harm. One iteration is one multiplication.
    Polite,
    /// Reads and writes cache lines at random places of twice the memory that the caches hold. One iteration is one line.
    Cache {
        /// Memory promised to the guest, bytes.
        memory_bytes: u64,
    },
    /// The triad of STREAM (McCalpin 1995) over arrays much larger than the caches. One iteration is one byte read or written.
    MemoryStream {
        /// Memory promised to the guest, bytes.
        memory_bytes: u64,
    },
    /// Cheap system calls. One iteration is one call.
    Syscalls,
    /// Memory page by page up to nine tenths of the limit, all of it once more, then given back and begun again. One thread. One iteration is
    /// one page written to.
    MemoryGrowth {
        /// Memory promised to the guest, bytes.
        memory_bytes: u64,
    },
    /// Processes that end at once, few at a time. One iteration is one process.
    Fork,
    /// Blocks of 1 MiB, the disk asked to keep them after every four (fdatasync), round and round in one file. One thread. One iteration is one byte
    /// that the disk has.
    DiskWrite {
        /// Directory in the guest for the file, which has no name there.
        directory: String,
    },
    /// A file larger than the memory written and read again through the page cache, which nobody asks the disk to keep. One thread. One
    /// iteration is one page of 4 KiB.
    PageCache {
        /// Directory in the guest for the file, which has no name there.
        directory: String,
        /// Memory promised to the guest, bytes.
        memory_bytes: u64,
    },
    /// Datagrams of 1,400 bytes (UDP), to whoever listens or nobody. One iteration is one byte handed to the network; what arrives, a receiver
    /// counts.
    NetSend {
        /// Where they go; one host.
        to: SocketAddr,
    },
    /// Takes the datagrams that come. One thread. One iteration is one byte.
    NetReceive {
        /// Address to listen on in each stretch; the system chooses the port, once.
        listen: IpAddr,
    },
}

impl BusyWork {
    /// Its name, as a study has it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Mixed => "mixed",
            Self::Polite => "polite",
            Self::Cache { .. } => "cache",
            Self::MemoryStream { .. } => "memory-stream",
            Self::Syscalls => "syscalls",
            Self::MemoryGrowth { .. } => "memory-growth",
            Self::Fork => "fork",
            Self::DiskWrite { .. } => "disk-write",
            Self::PageCache { .. } => "page-cache",
            Self::NetSend { .. } => "net-send",
            Self::NetReceive { .. } => "net-receive",
        }
    }

    /// What its iterations are.
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Spin | Self::Polite => "multiplications",
            Self::Mixed => "chunks",
            Self::Cache { .. } => "cache lines",
            Self::MemoryStream { .. } | Self::DiskWrite { .. } | Self::NetSend { .. } | Self::NetReceive { .. } => {
                "bytes"
            }
            Self::Syscalls => "calls",
            Self::MemoryGrowth { .. } | Self::PageCache { .. } => "pages",
            Self::Fork => "processes",
        }
    }
}

/// How long busy loops compute before they stand still again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BusyStretch {
    /// What they do so long after the request came does not count, nanoseconds.
    pub warm_up_ns: u64,
    /// So long after the request came they begin their last iteration, nanoseconds. Each does one that counts at least, unless it is refused.
    pub for_ns: u64,
    /// Whether they move their data into other memory first.
    pub renew_memory: bool,
    /// From the end of the warm-up on, how often it is noted how far all of them have come, nanoseconds; 0: never.
    pub note_every_ns: u64,
    /// After each iteration a loop waits so many thousandths of the time that it took: a known difference. The wait counts as its time.
    pub slowed_permille: u32,
}

/// What busy loops did in a stretch. Moments are CLOCK_MONOTONIC of their agent, nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BusyDone {
    /// When the request came.
    pub asked_ns: u64,
    /// When all of them stood still.
    pub ended_ns: u64,
    /// What each of them did.
    pub loops: Vec<BusyCount>,
    /// How far all of them had come since they were started: moment and iterations.
    pub notes: Vec<(u64, u64)>,
    /// How often the system refused what an aggressor asked of it (memory, a process, room on a disk, a datagram), warm-up included; 0 for
    /// other work.
    pub refused: u64,
}

/// What one busy loop did: whole iterations, from the start of the first to the end of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BusyCount {
    /// Iterations that count.
    pub iterations: u64,
    /// Start of the first.
    pub from_ns: u64,
    /// End of the last.
    pub to_ns: u64,
}
