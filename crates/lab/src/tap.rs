//! Places on the lab's network for guests with a network card of their own: a tap on the bridge.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use rtnetlink::LinkUnspec;

use crate::addresses::{BRIDGE, Hosts, hardware_address};
use crate::error::{LabError, Result};
use crate::lab::Lab;
use crate::name::{check_guest, run_group};
use crate::netlink::{Links, Netlink};
use crate::netns::{NetNs, scratch};
use crate::sys;

/// Most queues of a tap (MAX_TAP_QUEUES of the kernel's tun driver).
const MAX_QUEUES: u32 = 256;

/// An address on the lab's network, and the names that go with it, for a guest that brings its own link.
#[derive(Debug)]
pub struct Place {
    /// The guest's address.
    pub address: IpAddr,
    /// Length of the network's prefix.
    pub prefix: u8,
    /// Hardware address of the guest's network card, as `02:74:67:00:01:00`. It follows from the address.
    pub mac: String,
    /// Name of the bridge's port, in the namespace `sut`.
    pub link: String,
    host: u32,
    hosts: Arc<Mutex<Hosts>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).give_back(self.host);
    }
}

/// A tap that is a port of the lab's bridge. The guest's end is the program that opens it.
#[derive(Debug)]
pub struct Tap {
    place: Place,
    sut: NetNs,
}

impl Lab {
    /// Takes an address out of the lab's network.
    ///
    /// # Errors
    /// When the name is no guest's, or all addresses are in use.
    pub fn reserve(&self, guest: &str) -> Result<Place> {
        check_guest(guest)?;
        let host = self.take_host(guest)?;
        let mac: Vec<String> = hardware_address(b'g', host).iter().map(|byte| format!("{byte:02x}")).collect();
        let hosts = Arc::clone(&self.hosts);
        let (address, prefix) = (self.network.address(host), self.network.prefix);
        Ok(Place { address, prefix, mac: mac.join(":"), link: format!("p{host}"), host, hosts })
    }

    /// Makes a tap in the namespace `sut`, as a port of the bridge, that stays until it is detached or the
    /// namespace goes. A program in `sut` opens it by its name ([`Tap::link`]), with as many queues as said.
    ///
    /// # Errors
    /// When the kernel has no tun driver, or refuses.
    pub fn tap(&self, guest: &str, queues: u32) -> Result<Tap> {
        if !(1..=MAX_QUEUES).contains(&queues) {
            return Err(LabError::Unavailable {
                tried: format!("make a tap of {queues} queues for guest {guest}"),
                why: format!("a tap has 1 to {MAX_QUEUES} queues"),
                remedy: "Ask for fewer".into(),
            });
        }
        let place = self.reserve(guest)?;
        self.sut().run(|| {
            sys::make_tap(&place.link, queues > 1).map_err(|e| {
                LabError::feature(format!("make the tap {} through /dev/net/tun", place.link), e, "tun")
            })?;
            let netlink = Netlink::new()?;
            let links = netlink.open()?;
            netlink.wait(self.enlist(&links, &place))
        })??;
        Ok(Tap { place, sut: self.sut().try_clone()? })
    }

    /// Takes a link that another program made, in the namespace `from` (usually the host's own), into the lab: it is
    /// moved to `sut`, renamed, and made a port of the bridge. A tap may be moved while a guest has it open.
    ///
    /// # Errors
    /// When there is no such link, or the kernel refuses.
    pub fn adopt(&self, place: Place, from: &NetNs, name: &str) -> Result<Tap> {
        scratch("tare-adopt", || {
            let netlink = Netlink::new()?;
            from.enter_here()?;
            let outside = netlink.open()?;
            self.sut().enter_here()?;
            let inside = netlink.open()?;
            netlink.wait(async {
                let link = outside.get(name).await?;
                let there = LinkUnspec::new_with_index(link.index)
                    .down()
                    .name(place.link.clone())
                    .setns_by_fd(self.sut().fd().as_raw_fd())
                    .build();
                outside.change(&format!("move link {name} into the lab"), there).await?;
                self.enlist(&inside, &place).await
            })
        })??;
        Ok(Tap { place, sut: self.sut().try_clone()? })
    }

    /// Makes a link of the namespace `sut` a port of the bridge.
    async fn enlist(&self, links: &Links, place: &Place) -> Result<()> {
        let bridge = links.get(BRIDGE).await?;
        let port = LinkUnspec::new_with_name(&place.link)
            .mtu(self.config().mtu)
            .alias(run_group(&self.config().run_id))
            .address(hardware_address(b'p', place.host))
            .controller(bridge.index)
            .up()
            .build();
        links.change(&format!("make link {} a port of the lab's bridge", place.link), port).await
    }
}

impl Tap {
    /// Where the guest is on the lab's network.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Name of the tap, in the namespace `sut`.
    pub fn link(&self) -> &str {
        &self.place.link
    }

    /// The namespace that the tap is in.
    pub fn netns(&self) -> &NetNs {
        &self.sut
    }

    /// Deletes the tap. No error when it is gone already.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn detach(self) -> Result<()> {
        self.sut.run(|| {
            let netlink = Netlink::new()?;
            let links = netlink.open()?;
            netlink.wait(links.remove(&self.place.link))
        })?
    }

    /// Frames that the tap has dropped or found in error so far, both ways together. What the guest itself dropped
    /// is not in it.
    ///
    /// # Errors
    /// When it is gone.
    pub fn drops(&self) -> Result<u64> {
        self.sut.run(|| {
            let netlink = Netlink::new()?;
            let links = netlink.open()?;
            Ok(netlink.wait(links.get(&self.place.link))?.lost)
        })?
    }
}
