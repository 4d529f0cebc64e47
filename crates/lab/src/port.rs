//! A guest's place on the lab's network.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::addresses::{GUEST_LINK, Hosts};
use crate::error::Result;
use crate::netlink::Netlink;
use crate::netns::NetNs;

/// A namespace with `eth0` in it, linked to the lab's bridge or to a card.
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
    /// The namespace of the bridge and the name of its end; `None`: the link leads to a card of the host.
    pub(crate) bridge: Option<(NetNs, String)>,
    pub(crate) host: u32,
    pub(crate) hosts: Arc<Mutex<Hosts>>,
}

impl Port {
    /// Name of the link inside the namespace.
    pub const LINK: &'static str = GUEST_LINK;

    /// The bridge's end, its name and its namespace. `None` where the link leads to a card of the host.
    pub fn bridge_end(&self) -> Option<(&str, &NetNs)> {
        self.bridge.as_ref().map(|(netns, link)| (link.as_str(), netns))
    }

    /// Deletes the link; both ends go. No error when it is gone already.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn detach(self) -> Result<()> {
        let (link, netns) = self.bridge_end().unwrap_or((GUEST_LINK, &self.netns));
        netns.run(|| {
            let netlink = Netlink::new()?;
            let links = netlink.open()?;
            netlink.wait(links.remove(link))
        })?
    }

    /// Frames that the ends of the link have dropped or found in error so far, both ways together.
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
        let beyond = self.bridge_end().map(|(link, netns)| lost(netns, link)).transpose()?;
        Ok(lost(&self.netns, GUEST_LINK)? + beyond.unwrap_or_default())
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).give_back(self.host);
    }
}
