//! Segmentation offloads of a link, switched and read back by ethtool's ioctl.
//!
//! The commands are ETHTOOL_[GS]TSO, [GS]GSO and [GS]GRO of linux/ethtool.h: get and set one number.

use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType};

use crate::error::{LabError, Result};
use crate::sys;

struct Offload {
    name: &'static str,
    get: u32,
    set: u32,
}

const TSO: Offload = Offload { name: "tso", get: 0x1e, set: 0x1f };
const GSO: Offload = Offload { name: "gso", get: 0x23, set: 0x24 };
const GRO: Offload = Offload { name: "gro", get: 0x2b, set: 0x2c };

/// A socket that queries and configures the links of one namespace.
pub(crate) struct Offloads {
    socket: OwnedFd,
}

impl Offloads {
    /// Opens the socket in the namespace that this thread is in.
    pub(crate) fn open() -> Result<Self> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
            .map_err(|e| LabError::system("open a socket for ethtool", e))?;
        Ok(Self { socket })
    }

    /// Sets a link's offloads. On: segmentation offload (TSO, GSO), so that a bulk sender's segments of up to
    /// 64 KiB cross the link uncut; GRO stays as the kernel made it (off on a veth: uncut segments need no
    /// merging, and switching it on moves reception into NAPI). Off: all three, so that each packet is at most an MTU.
    pub(crate) fn set(&self, link: &str, on: bool) -> Result<()> {
        let wanted: &[(Offload, u32)] = if on { &[(TSO, 1), (GSO, 1)] } else { &[(TSO, 0), (GSO, 0), (GRO, 0)] };
        for (offload, value) in wanted {
            let name = offload.name;
            let tried = || format!("switch {name} of link {link} {}", if on { "on" } else { "off" });
            sys::ethtool_value(self.socket.as_fd(), link, offload.set, *value)
                .map_err(|e| LabError::system(tried(), e))?;
            let granted = sys::ethtool_value(self.socket.as_fd(), link, offload.get, 0)
                .map_err(|e| LabError::system(tried(), e))?;
            if granted != *value {
                return Err(LabError::Unavailable {
                    tried: tried(),
                    why: format!("it reads back as {granted}"),
                    remedy: "Leave offloads as they are in the study".into(),
                });
            }
        }
        Ok(())
    }

    /// A link's offloads in words, such as `tso on, gso on, gro off`.
    pub(crate) fn describe(&self, link: &str) -> String {
        let one = |offload: &Offload| match sys::ethtool_value(self.socket.as_fd(), link, offload.get, 0) {
            Ok(0) => format!("{} off", offload.name),
            Ok(_) => format!("{} on", offload.name),
            Err(e) => format!("{} unknown ({e})", offload.name),
        };
        [TSO, GSO, GRO].iter().map(one).collect::<Vec<_>>().join(", ")
    }
}
