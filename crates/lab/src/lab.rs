//! The lab: two namespaces and a bridge, to which guests are attached.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rtnetlink::LinkBridge;
use rtnetlink::packet_route::link::LinkMessage;

use tare_model::guest::ParityRow;
use tare_model::study::Attach;
use tare_model::units::BitRate;

use crate::addresses::{BRIDGE, GUEST_LINK, Hosts, Network, hardware_address};
use crate::attach::{Card, LinkSettings, Trunk};
use crate::error::{LabError, Result};
use crate::name::{check_guest, check_run_id, run_group};
use crate::netlink::Netlink;
use crate::netns::{NetNs, scratch};
use crate::offload::Offloads;
use crate::port::Port;
use crate::wire::{WIRE_PORT, Wire};
use crate::{steer, sysctl};

/// The bridge's end of the client's link.
const CLIENT_PORT: &str = "client0";

/// What a lab is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabConfig {
    /// The run; part of the alias of every link.
    pub run_id: String,
    /// MTU of the bridge and of every link, bytes.
    pub mtu: u32,
    /// Whether links may carry segments beyond the MTU (TSO and GSO on), or TSO, GSO and GRO are all off.
    pub offloads: bool,
    /// Rate to which the client's link is bounded, each way; `None`: not at all.
    pub link_rate: Option<BitRate>,
    /// The wire that the lab is on; `None`: it has no way out of the host.
    pub wire: Option<Wire>,
    /// TCP congestion control of the lab's namespaces; `None` leaves the host's own.
    pub congestion_control: Option<String>,
    /// CPUs that receive what the client sends, as the interrupts of a network card would (RPS); empty leaves it on the
    /// CPU of the sender. See [`Lab::parity`] for what was granted.
    pub guest_cpus: Vec<u32>,
    /// The same for what is sent to the client.
    pub client_cpus: Vec<u32>,
}

impl LabConfig {
    /// A lab with the MTU and offloads of an Ethernet, and all else as the host has it.
    pub fn new(run_id: impl Into<String>) -> Self {
        Self {
            run_id: run_id.into(),
            mtu: 1500,
            offloads: true,
            link_rate: None,
            wire: None,
            congestion_control: None,
            guest_cpus: Vec::new(),
            client_cpus: Vec::new(),
        }
    }

    pub(crate) fn links(&self) -> LinkSettings<'_> {
        LinkSettings {
            mtu: self.mtu,
            offloads: self.offloads,
            congestion_control: self.congestion_control.as_deref(),
            alias: run_group(&self.run_id),
        }
    }
}

/// Two network namespaces, `client` and `sut`, with a bridge in `sut` and the client on it.
/// Addresses are from 198.18.0.0/15 and there is no way out, unless the lab is put on a wire; IPv6 is off. Where guests are attached to
/// the card of a wire directly, a link over the card is in the bridge's place.
///
/// Nothing of it is in the host's own namespace, and all of it goes when this value and the guests'
/// processes are gone, however they went.
#[derive(Debug)]
pub struct Lab {
    config: LabConfig,
    pub(crate) network: Network,
    /// The card of the wire.
    card: Option<Card>,
    client: NetNs,
    sut: NetNs,
    pub(crate) hosts: Arc<Mutex<Hosts>>,
}

impl Lab {
    /// Makes the namespaces, the bridge and the client's link, and waits until frames pass.
    ///
    /// # Errors
    /// When the kernel does not allow namespaces or a setting, or does not have the congestion control; when the wire cannot be had, or
    /// somebody on it has an address of the lab's.
    pub fn create(config: LabConfig) -> Result<Self> {
        check_run_id(&config.run_id)?;
        let network = config.wire.as_ref().map_or_else(Network::own, |wire| Network::on_wire(&wire.addresses));
        let settings = config.links();
        let (sut, client, card) = scratch("tare-lab", || {
            let netlink = Netlink::new()?;
            let host = netlink.open()?;
            let usable = |wire: &Wire| netlink.wait(wire.usable(&host, (&settings, &network)));
            let card = config.wire.as_ref().map(usable).transpose()?;
            let sut = NetNs::unshare_here()?;
            sysctl::prepare_namespace(settings.congestion_control)?;
            let mut links = netlink.open()?;
            netlink.wait(links.up("lo"))?;
            let over = card.as_ref().filter(|_| is_direct(&config));
            if over.is_none() {
                let bridge = bridge(&config, &network, &settings.alias);
                netlink.wait(links.add("make the lab's bridge", "bridge", bridge))?;
                Offloads::open()?.set(BRIDGE, config.offloads)?;
            }
            if let Some((wire, card)) = config.wire.as_ref().zip(card.as_ref()) {
                netlink.wait(wire.join(&host, card, (&mut links, &sut), (&settings, &network)))?;
            }
            let trunk = Trunk { settings: &settings, network: &network, sut: &sut, card: over };
            let client = trunk.join(&netlink, None, (CLIENT_PORT, network.client))?;
            if over.is_none() {
                set_ends(&sut, &client, &config)?;
            }
            Ok((sut, client, card))
        })??;
        let hosts = Arc::new(Mutex::new(Hosts::of(&network)));
        Ok(Self { config, network, card, client, sut, hosts })
    }

    /// The namespace of the load drivers.
    pub fn client(&self) -> &NetNs {
        &self.client
    }

    /// The client's address on the lab's network.
    pub fn client_address(&self) -> IpAddr {
        self.network.address(self.network.client)
    }

    /// The namespace that holds the bridge.
    pub fn sut(&self) -> &NetNs {
        &self.sut
    }

    /// Gives the bridge an address of its own, so that programs in `sut`, such as a hypervisor, reach servers on the
    /// lab's network as guests do. It stays, and is the same at every call. No lab has one that nobody asked for.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn sut_address(&self) -> Result<IpAddr> {
        let (own, prefix) = (self.network.address(self.network.sut), self.network.prefix);
        let given = self.sut.run(|| {
            let netlink = Netlink::new()?;
            let links = netlink.open()?;
            netlink.wait(async { links.address(links.get(BRIDGE).await?.index, own, prefix).await })
        })?;
        match given {
            Err(e) if e.errno() != Some(libc::EEXIST) => Err(e),
            _ => Ok(own),
        }
    }

    /// Makes a namespace for a guest with `eth0` in it, addressed, up, and seen to be forwarded by the
    /// bridge. The name is for messages; the same name may be attached again.
    ///
    /// # Errors
    /// When the kernel refuses, or the link does not come up within 5 s.
    pub fn attach(&self, guest: &str) -> Result<Port> {
        self.attach_in(guest, None)
    }

    /// The same in a namespace that is there already, such as one that another program made for the guest. It must not have
    /// an `eth0` yet. `None` makes one.
    ///
    /// # Errors
    /// As [`Self::attach`].
    pub fn attach_in(&self, guest: &str, netns: Option<NetNs>) -> Result<Port> {
        check_guest(guest)?;
        let host = self.take_host(guest)?;
        let link = format!("p{host}");
        let settings = self.config.links();
        let made = self.sut.try_clone().and_then(|sut| {
            let trunk = Trunk { settings: &settings, network: &self.network, sut: &sut, card: self.over() };
            let netns = scratch("tare-attach", || trunk.join(&Netlink::new()?, netns, (&link, host)))??;
            Ok((netns, self.over().is_none().then_some((sut, link))))
        });
        match made {
            Ok((netns, bridge)) => {
                let hosts = Arc::clone(&self.hosts);
                let (address, prefix) = (self.network.address(host), self.network.prefix);
                Ok(Port { netns, address, prefix, bridge, host, hosts })
            }
            Err(e) => {
                self.hosts.lock().unwrap_or_else(PoisonError::into_inner).give_back(host);
                Err(e)
            }
        }
    }

    /// The card that guests' links are made over; `None`: they lead to the bridge.
    pub(crate) fn over(&self) -> Option<&Card> {
        self.card.as_ref().filter(|_| is_direct(&self.config))
    }

    /// What it was made with.
    pub fn config(&self) -> &LabConfig {
        &self.config
    }

    pub(crate) fn take_host(&self, guest: &str) -> Result<u32> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(|| LabError::Unavailable {
            tried: format!("attach guest {guest}"),
            why: "all addresses of the lab are in use".into(),
            remedy: "On a wire, name a longer range in `wire` of `[lab]`; else detach guests that are gone".into(),
        })
    }

    /// What the link between the client and the guests was asked to be and is: its rate, and which CPUs receive. No row where
    /// nothing was asked.
    pub fn parity(&self) -> Vec<ParityRow> {
        self.rate().into_iter().chain(self.steering()).collect()
    }

    /// The rate of the client's link: what was asked and what the kernel has now, of both ends.
    fn rate(&self) -> Option<ParityRow> {
        let rate = self.config.link_rate?;
        let granted = ends(&self.sut, &self.client, &self.config).map(|(netns, link, _)| {
            netns.run(|| rate_here(link)).and_then(|read| read).map_err(|error| format!("unknown ({error})"))
        });
        let equal = granted.iter().all(|granted| *granted == Ok(Some(rate)));
        let [to_client, to_guests] = granted.map(|granted| match granted {
            Ok(rate) => shown(rate),
            Err(why) => why,
        });
        Some(ParityRow {
            resource: "link rate".into(),
            asked: format!("{rate} each way"),
            granted: Some(format!("to the guests {to_guests}, to the driver {to_client}")),
            equal,
            note: "a token bucket (tbf) at both ends of the driver's link".into(),
        })
    }

    /// Which CPUs receive what passes between the client and the guests: what was asked and what the kernel has now.
    /// `None` where nothing was asked.
    pub fn steering(&self) -> Option<ParityRow> {
        let ends = ends(&self.sut, &self.client, &self.config);
        if ends.iter().all(|(.., cpus)| cpus.is_empty()) {
            return None;
        }
        if let Some(card) = self.over() {
            return Some(card.steering());
        }
        let granted = ends.map(|(netns, link, _)| {
            let read = netns.run(|| steer::mount_sysfs_here().and_then(|()| steer::get(link)));
            read.map_err(|e| e.to_string()).and_then(|cpus| cpus.map_err(|e| e.to_string()))
        });
        let words = |[guests, client]: [String; 2]| format!("guests' side {guests}, driver's side {client}");
        let asked = ends.map(|(.., cpus)| steer::words(cpus));
        let equal = ends.iter().zip(&granted).all(|((.., asked), granted)| granted.as_deref() == Ok(asked));
        let granted = granted.map(|cpus| cpus.map_or_else(|e| format!("unknown ({e})"), |cpus| steer::words(&cpus)));
        let note = "rps_cpus of both ends of the driver's link; where it is refused, the CPU of the sender receives: what a guest's \
                    kernel receives behind a veth then runs on the driver's CPUs and is not in the CPU account, while \
                    that of a machine is";
        let (asked, granted) = (words(asked), Some(words(granted)));
        Some(ParityRow { resource: "receive steering".into(), asked, granted, equal, note: note.into() })
    }

    /// What the lab is, as name and value, all read back from the kernel now. What cannot be read says why.
    pub fn facts(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        let of_sut: &[&str] = match &self.card {
            _ if self.over().is_some() => &[BRIDGE],
            Some(_) => &[BRIDGE, CLIENT_PORT, WIRE_PORT],
            None => &[BRIDGE, CLIENT_PORT],
        };
        for (place, netns, links) in [("client", &self.client, [GUEST_LINK].as_slice()), ("sut", &self.sut, of_sut)] {
            match netns.run(|| facts_here(place, links)) {
                Ok(Ok(here)) => facts.extend(here),
                Ok(Err(e)) | Err(e) => facts.push((format!("lab {place}"), format!("could not be read: {e}"))),
            }
        }
        facts.extend(self.card.iter().flat_map(Card::facts));
        facts
    }
}

fn facts_here(place: &str, links: &[&str]) -> Result<Vec<(String, String)>> {
    let mut facts = Vec::new();
    for name in [
        "net.ipv4.tcp_congestion_control",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.ipv4.ip_forward",
        "net.ipv6.conf.all.disable_ipv6",
    ] {
        let value = sysctl::read(name)?.unwrap_or_else(|| "this kernel has no such setting".into());
        facts.push((format!("{place} {name}"), value));
    }
    let sysfs = steer::mount_sysfs_here();
    let netlink = Netlink::new()?;
    let sockets = (netlink.open()?, Offloads::open()?);
    for name in links {
        let link = netlink.wait(sockets.0.get(name))?;
        facts.push((format!("{place} {name} mtu"), format!("{} B", link.mtu)));
        facts.push((format!("{place} {name} offloads"), sockets.1.describe(name)));
        if *name != BRIDGE {
            let rate = netlink.wait(sockets.0.rate(name)).map_or_else(|e| format!("unknown: {e}"), shown);
            facts.push((format!("{place} {name} rate"), rate));
            let cpus = match &sysfs {
                Ok(()) => steer::get(name).map_or_else(|e| format!("unknown: {e}"), |cpus| steer::words(&cpus)),
                Err(error) => format!("unknown: {error}"),
            };
            facts.push((format!("{place} {name} received on"), cpus));
        }
    }
    Ok(facts)
}

/// Whether guests are attached to the card of the wire, with no bridge in between.
fn is_direct(config: &LabConfig) -> bool {
    config.wire.as_ref().is_some_and(|wire| wire.attach != Attach::Bridge)
}

/// Bounds the rate of the client's link, and steers what passes it and the wire.
fn set_ends(sut: &NetNs, client: &NetNs, config: &LabConfig) -> Result<()> {
    // Where it is refused the lab is made all the same: `steering` reads back what is in force.
    if let Some(rate) = config.link_rate {
        for (netns, link, _) in ends(sut, client, config) {
            netns.run(|| bounded(link, rate))??;
        }
    }
    let wire = config.wire.iter().map(|_| (sut, WIRE_PORT, config.guest_cpus.as_slice()));
    for (netns, link, cpus) in ends(sut, client, config).into_iter().chain(wire) {
        if !cpus.is_empty() {
            let _ = netns.run(|| steer::mount_sysfs_here().and_then(|()| steer::set(link, cpus)));
        }
    }
    Ok(())
}

/// Bounds the rate of what leaves a link of the namespace that this thread is in.
fn bounded(link: &str, rate: BitRate) -> Result<()> {
    let netlink = Netlink::new()?;
    let links = netlink.open()?;
    netlink.wait(links.limit(link, rate))
}

/// The rate to which what leaves a link of the namespace that this thread is in is bounded.
fn rate_here(link: &str) -> Result<Option<BitRate>> {
    let netlink = Netlink::new()?;
    let links = netlink.open()?;
    netlink.wait(links.rate(link))
}

fn shown(rate: Option<BitRate>) -> String {
    rate.map_or_else(|| "not bounded".to_owned(), |rate| rate.to_string())
}

/// No spanning tree and no forward delay: a port forwards as soon as its other end is up. No multicast
/// snooping: its queries would be traffic of their own. An address of its own, or the bridge would take
/// that of a port and change it as guests come and go.
fn bridge(config: &LabConfig, network: &Network, alias: &str) -> LinkMessage {
    // On a wire no two may be the same.
    let host = config.wire.as_ref().map_or(0, |_| network.client);
    LinkBridge::new(BRIDGE)
        .mtu(config.mtu)
        .alias(alias)
        .address(hardware_address(b'b', host))
        .forward_delay(0)
        .mcast_snooping(false)
        .build()
}

/// The two ends of the client's link, each with the CPUs that should receive there. It is the wire between the two sides: what
/// has passed it is bridged and delivered by the CPUs that received it, or by the guest that sends. So the links of the
/// guests, whether veth or tap, need no steering.
fn ends<'a>(sut: &'a NetNs, client: &'a NetNs, config: &'a LabConfig) -> [(&'a NetNs, &'static str, &'a [u32]); 2] {
    [(sut, CLIENT_PORT, &config.guest_cpus), (client, GUEST_LINK, &config.client_cpus)]
}

#[cfg(test)]
mod tests;
