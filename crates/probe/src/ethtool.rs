//! What a network card's driver tells, by ethtool's ioctl.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType};

use crate::sys::{self, Answer, Command};

/// Large receive offload in the flags of a link (`ETH_FLAG_LRO`, linux/ethtool.h).
const LRO: u32 = 1 << 15;

/// An offload that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// The card checks checksums of what it receives.
    ReceiveChecksum,
    /// The card computes checksums of what it sends.
    TransmitChecksum,
    /// The card gathers a frame from several places in memory.
    ScatterGather,
    /// The card cuts segments of TCP.
    Tso,
    /// Segments are cut right before the driver.
    Gso,
    /// Received segments are merged above the driver.
    Gro,
    /// The card merges received segments.
    Lro,
}

impl Offload {
    /// All, in the order in which they are shown.
    pub(crate) const ALL: [Self; 7] = [
        Self::ReceiveChecksum,
        Self::TransmitChecksum,
        Self::ScatterGather,
        Self::Tso,
        Self::Gso,
        Self::Gro,
        Self::Lro,
    ];

    /// Its short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReceiveChecksum => "rx-checksum",
            Self::TransmitChecksum => "tx-checksum",
            Self::ScatterGather => "scatter-gather",
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::Lro => "lro",
        }
    }

    const fn get(self) -> Command {
        match self {
            Self::ReceiveChecksum => Command::GetReceiveChecksum,
            Self::TransmitChecksum => Command::GetTransmitChecksum,
            Self::ScatterGather => Command::GetScatterGather,
            Self::Tso => Command::GetTso,
            Self::Gso => Command::GetGso,
            Self::Gro => Command::GetGro,
            Self::Lro => Command::GetFlags,
        }
    }
}

/// A driver and its card's firmware, each as the driver writes it; empty where it does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Driver {
    pub name: String,
    pub version: String,
    pub firmware: String,
}

/// How many of something there are, and may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfMost {
    pub now: u32,
    pub most: u32,
}

/// Queues of a card: some receive or send alone, some do both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queues {
    pub receive: OfMost,
    pub transmit: OfMost,
    pub combined: OfMost,
}

/// A socket that asks about the links of one network namespace, and switches their offloads.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
}

impl Ethtool {
    /// Opens the socket in the namespace that this thread is in.
    ///
    /// # Errors
    /// The system's: no more descriptors.
    pub fn open() -> io::Result<Self> {
        Ok(Self { socket: rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)? })
    }

    fn ask(&self, link: &str, command: Command, argument: u32) -> io::Result<Answer> {
        sys::ethtool(self.socket.as_fd(), link, command, argument)
    }

    /// Whether an offload of a link is on.
    ///
    /// # Errors
    /// The system's: no such link, or its driver has no such offload.
    pub fn offload(&self, link: &str, offload: Offload) -> io::Result<bool> {
        let answer = self.ask(link, offload.get(), 0)?[1];
        Ok(if offload == Offload::Lro { answer & LRO != 0 } else { answer != 0 })
    }

    /// Switches segmentation ([`Offload::Tso`], [`Offload::Gso`]) or merging ([`Offload::Gro`]).
    ///
    /// # Errors
    /// The system's: no such link, not permitted, not possible with this driver. Of another offload: that it is not switched by tare.
    pub fn set_offload(&self, link: &str, offload: Offload, on: bool) -> io::Result<()> {
        let set = match offload {
            Offload::Tso => Command::SetTso,
            Offload::Gso => Command::SetGso,
            Offload::Gro => Command::SetGro,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        self.ask(link, set, u32::from(on)).map(|_| ())
    }

    pub(crate) fn driver(&self, link: &str) -> io::Result<Driver> {
        self.ask(link, Command::DriverInfo, 0).map(|answer| driver(&answer))
    }

    /// Descriptors in the rings for reception and for sending.
    pub(crate) fn rings(&self, link: &str) -> io::Result<[OfMost; 2]> {
        self.ask(link, Command::Rings, 0).map(|answer| rings(&answer))
    }

    pub(crate) fn queues(&self, link: &str) -> io::Result<Queues> {
        self.ask(link, Command::Channels, 0).map(|answer| queues(&answer))
    }
}

/// Reads `struct ethtool_drvinfo`: after the command, texts of 32 bytes each.
fn driver(answer: &Answer) -> Driver {
    let bytes: Vec<u8> = answer.iter().skip(1).flat_map(|word| word.to_ne_bytes()).collect();
    let text = |number: usize| {
        let field = bytes.chunks(32).nth(number).unwrap_or_default();
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).trim().to_owned()
    };
    Driver { name: text(0), version: text(1), firmware: text(2) }
}

/// Reads `struct ethtool_ringparam`: the four limits (receive, mini, jumbo, transmit), then the four numbers in use.
fn rings(answer: &Answer) -> [OfMost; 2] {
    [OfMost { now: answer[5], most: answer[1] }, OfMost { now: answer[8], most: answer[4] }]
}

/// Reads `struct ethtool_channels`: the four limits (receive, transmit, other, combined), then the four numbers in use.
fn queues(answer: &Answer) -> Queues {
    let of = |field: usize| OfMost { now: answer[field + 4], most: answer[field] };
    Queues { receive: of(1), transmit: of(2), combined: of(4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_read_as_linux_writes_them() {
        let mut bytes = vec![0_u8; 256];
        bytes[4..9].copy_from_slice(b"ixgbe");
        bytes[36..46].copy_from_slice(b"6.1.0-28-a");
        // A text that fills its field has no NUL.
        bytes[68..100].copy_from_slice(&[b'f'; 32]);
        let mut answer = [0; 64];
        for (word, four) in answer.iter_mut().zip(bytes.chunks(4)) {
            *word = u32::from_ne_bytes(four.try_into().unwrap());
        }
        let Driver { name, version, firmware } = driver(&answer);
        assert_eq!((name.as_str(), version.as_str(), firmware), ("ixgbe", "6.1.0-28-a", "f".repeat(32)));
        let mut answer = [0; 64];
        for (number, word) in answer.iter_mut().take(9).enumerate() {
            *word = number as u32;
        }
        assert_eq!(rings(&answer), [OfMost { now: 5, most: 1 }, OfMost { now: 8, most: 4 }]);
        let of = |now, most| OfMost { now, most };
        assert_eq!(queues(&answer), Queues { receive: of(5, 1), transmit: of(6, 2), combined: of(8, 4) });
    }

    #[test]
    fn the_kernel_answers_for_a_link_that_is_there() {
        let ethtool = Ethtool::open().unwrap();
        assert!(ethtool.offload("lo", Offload::Tso).is_ok());
        assert!(ethtool.offload("lo", Offload::Lro).is_ok_and(|on| !on));
        assert!(ethtool.driver("no-such-link").is_err());
        assert!(ethtool.driver("a name longer than a link may have").is_err());
        let refused = ethtool.set_offload("lo", Offload::Lro, true).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
    }
}
