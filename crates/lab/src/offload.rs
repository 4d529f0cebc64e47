//! Segmentation offloads of a link, switched and read back.

use tare_probe::{Ethtool, Offload};

use crate::error::{LabError, Result};

/// A socket that queries and configures the links of one namespace.
pub(crate) struct Offloads(Ethtool);

impl Offloads {
    /// Opens the socket in the namespace that this thread is in.
    pub(crate) fn open() -> Result<Self> {
        Ethtool::open().map(Self).map_err(|e| LabError::system("open a socket for ethtool", e))
    }

    /// Sets a link's offloads. On: segmentation offload (TSO, GSO), so that a bulk sender's segments of up to
    /// 64 KiB cross the link uncut; GRO stays as the kernel made it (off on a veth: uncut segments need no
    /// merging, and switching it on moves reception into NAPI). Off: all three, so that each packet is at most an MTU.
    pub(crate) fn set(&self, link: &str, on: bool) -> Result<()> {
        let switched: &[Offload] =
            if on { &[Offload::Tso, Offload::Gso] } else { &[Offload::Tso, Offload::Gso, Offload::Gro] };
        for offload in switched {
            let name = offload.name();
            let tried = || format!("switch {name} of link {link} {}", if on { "on" } else { "off" });
            self.0.set_offload(link, *offload, on).map_err(|e| LabError::system(tried(), e))?;
            let granted = self.0.offload(link, *offload).map_err(|e| LabError::system(tried(), e))?;
            if granted != on {
                return Err(LabError::Unavailable {
                    tried: tried(),
                    why: format!("it reads back as {}", if granted { "on" } else { "off" }),
                    remedy: "Leave offloads as they are in the study".into(),
                });
            }
        }
        Ok(())
    }

    /// A link's offloads in words, such as `tso on, gso on, gro off`.
    pub(crate) fn describe(&self, link: &str) -> String {
        let one = |offload: Offload| match self.0.offload(link, offload) {
            Ok(on) => format!("{} {}", offload.name(), if on { "on" } else { "off" }),
            Err(e) => format!("{} unknown ({e})", offload.name()),
        };
        [Offload::Tso, Offload::Gso, Offload::Gro].map(one).join(", ")
    }
}
