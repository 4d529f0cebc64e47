//! Places on the lab's network for guests with a network card of their own: a tap on the bridge, or a macvtap over a card.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rtnetlink::LinkUnspec;
use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mknodat, open};
use rustix::mount::{MountFlags, mount};

use crate::addresses::{BRIDGE, Hosts, hardware_address};
use crate::attach::Card;
use crate::error::{LabError, Result};
use crate::lab::Lab;
use crate::name::{check_guest, run_group};
use crate::netlink::{Links, Netlink};
use crate::netns::{NetNs, scratch};
use crate::{steer, sys};

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

/// A tap that is a port of the lab's bridge or is over a card. The guest's end is the program that opens it.
#[derive(Debug)]
pub struct Tap {
    place: Place,
    sut: NetNs,
    /// The device of a tap over a card, which has no name by which it could be opened.
    device: Option<OwnedFd>,
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

    /// Makes a tap in the namespace `sut`, as a port of the bridge or over the card of the wire, that stays until it is detached or the
    /// namespace goes. A program in `sut` opens it by its name ([`Tap::link`]), with as many queues as said; one over a card is opened by
    /// its device ([`Tap::device`]), with one queue.
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
        if let Some(card) = self.over() {
            return self.tap_over(card, place);
        }
        self.sut().run(|| {
            sys::make_tap(&place.link, queues > 1).map_err(|e| {
                LabError::feature(format!("make the tap {} through /dev/net/tun", place.link), e, "tun")
            })?;
            let netlink = Netlink::new()?;
            let links = netlink.open()?;
            netlink.wait(self.enlist(&links, &place))
        })??;
        Ok(Tap { place, sut: self.sut().try_clone()?, device: None })
    }

    fn tap_over(&self, card: &Card, place: Place) -> Result<Tap> {
        let sut = self.sut().try_clone()?;
        let device = scratch("tare-macvtap", || {
            let netlink = Netlink::new()?;
            card.host.enter_here()?;
            let outside = netlink.open()?;
            netlink.wait(card.macvtap(
                &outside,
                &self.config().links(),
                &sut,
                (&place.link, place.host, place.address),
            ))?;
            sut.enter_here()?;
            device_here(&place.link)
                .map_err(|error| LabError::system(format!("find the device of the macvtap {}", place.link), error))
        })??;
        Ok(Tap { place, sut, device: Some(device) })
    }

    /// Takes a link that another program made, in the namespace `from` (usually the host's own), into the lab: it is
    /// moved to `sut`, renamed, and made a port of the bridge. A tap may be moved while a guest has it open.
    ///
    /// # Errors
    /// When there is no such link, or the kernel refuses.
    pub fn adopt(&self, place: Place, from: &NetNs, name: &str) -> Result<Tap> {
        if let Some(card) = self.over() {
            return Err(LabError::Refused {
                tried: format!("attach link {name} to the card {}", card.interface),
                why: "only links that tare makes can be over the card".into(),
                remedy: "Write `attach = \"bridge\"` in `wire` of `[lab]`".into(),
            });
        }
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
        Ok(Tap { place, sut: self.sut().try_clone()?, device: None })
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

    /// A path by which a program that this process starts opens a tap over a card, while this value lives: `/proc/PID/fd/N`. `None` of
    /// one that is opened by its name.
    pub fn device(&self) -> Option<PathBuf> {
        let device = self.device.as_ref()?;
        Some(PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), device.as_raw_fd())))
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

/// The device of a macvtap of the namespace that this thread is in, found and not opened: each opening is a queue. For scratch threads only.
///
/// Its name in `/dev` follows from the number of the link, which other namespaces have too, and may be missing. So the device is made anew, in
/// a file system that this thread alone sees.
fn device_here(link: &str) -> io::Result<OwnedFd> {
    steer::mount_sysfs_here()?;
    let folder = PathBuf::from(format!("/sys/class/net/{link}/macvtap"));
    let tap = fs::read_dir(folder)?.next().ok_or(io::ErrorKind::NotFound)??.path();
    let number = fs::read_to_string(tap.join("dev"))?;
    let (major, minor) = device_number(&number).ok_or(io::ErrorKind::InvalidData)?;
    mount("tmpfs", "/sys", "tmpfs", MountFlags::NOSUID | MountFlags::NOEXEC, None)?;
    let at = "/sys/tap";
    mknodat(CWD, at, FileType::CharacterDevice, Mode::RUSR | Mode::WUSR, makedev(major, minor))?;
    Ok(open(at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// A device as sysfs writes it: `246:1`.
fn device_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
