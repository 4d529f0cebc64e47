//! A guest's place on the lab's network.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::addresses::{GUEST_LINK, Hosts};
use crate::error::Result;
use crate::netlink::Netlink;
use crate::netns::NetNs;

/// A namespace with `eth0` in it, linked to the lab's bridge.
///
/// Dropping it lets the namespace go once no process is in it, and the link with it; [`Port::detach`] takes
/// the link away at once.
#[derive(Debug)]
pub struct Port {
    /// The guest's namespace.
    pub netns: NetNs,
    /// The address of `eth0`.
    pub address: IpAddr,
    /// Length of the network's prefix.
    pub prefix: u8,
    pub(crate) sut: NetNs,
    pub(crate) link: String,
    pub(crate) host: u32,
    pub(crate) hosts: Arc<Mutex<Hosts>>,
}

impl Port {
    /// Name of the link inside the namespace.
    pub const LINK: &'static str = GUEST_LINK;

    /// Name of the bridge's end, in the namespace `sut`.
    pub fn bridge_link(&self) -> &str {
        &self.link
    }

    /// The namespace of the bridge's end.
    pub fn bridge_netns(&self) -> &NetNs {
        &self.sut
    }

    /// Deletes the link; both ends go. No error when it is gone already.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn detach(self) -> Result<()> {
        self.sut.run(|| {
            let netlink = Netlink::new()?;
            let links = netlink.open()?;
            netlink.wait(links.remove(&self.link))
        })?
    }

    /// Frames that either end of the link has dropped or found in error so far, both ways together.
    ///
    /// # Errors
    /// When an end is gone.
    pub fn drops(&self) -> Result<u64> {
        let lost = |netns: &NetNs, name: &str| {
            netns.run(|| {
                let netlink = Netlink::new()?;
                let links = netlink.open()?;
                Ok(netlink.wait(links.get(name))?.lost)
            })?
        };
        Ok(lost(&self.netns, GUEST_LINK)? + lost(&self.sut, &self.link)?)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).give_back(self.host);
    }
}
