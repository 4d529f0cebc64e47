//! How a link is made between a network namespace and the lab's network.

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkMessage, MacVlanMode, MacVtapMode};
use rtnetlink::{LinkMacVlan, LinkMacVtap, LinkUnspec, LinkVeth};

use crate::addresses::{BRIDGE, GUEST_LINK, Network, hardware_address};
use crate::error::Result;
use crate::netlink::{Links, Netlink};
use crate::netns::NetNs;
use crate::offload::Offloads;
use crate::sysctl;

/// The kernel's module of links over a card.
pub(crate) const MACVLAN: &str = "macvlan";
/// The same of machines' links.
const MACVTAP: &str = "macvtap";

/// What all links of a lab have alike.
#[derive(Debug, Clone)]
pub(crate) struct LinkSettings<'a> {
    /// Bytes.
    pub(crate) mtu: u32,
    /// Whether segments beyond the MTU may pass.
    pub(crate) offloads: bool,
    pub(crate) congestion_control: Option<&'a str>,
    /// The run, as it is found by.
    pub(crate) alias: String,
}

/// A network card of the host.
#[derive(Debug)]
pub(crate) struct Card {
    /// The host's namespace, where the card is.
    pub(crate) host: NetNs,
    pub(crate) index: u32,
    pub(crate) interface: String,
}

/// What links lead to, and how they are made.
pub(crate) struct Trunk<'a> {
    pub(crate) settings: &'a LinkSettings<'a>,
    pub(crate) network: &'a Network,
    /// The namespace of the bridge.
    pub(crate) sut: &'a NetNs,
    /// The card that links are made over; `None`: they lead to the bridge.
    pub(crate) card: Option<&'a Card>,
}

impl Trunk<'_> {
    /// On a scratch thread: makes a namespace, or takes the one that is there, whose `eth0` leads to the lab's network. `port` names the
    /// bridge's end, where there is one.
    pub(crate) fn join(&self, netlink: &Netlink, there: Option<NetNs>, (port, host): (&str, u32)) -> Result<NetNs> {
        let netns = match there {
            Some(netns) => netns.enter_here().map(|()| netns)?,
            None => NetNs::unshare_here()?,
        };
        sysctl::prepare_namespace(self.settings.congestion_control)?;
        let (mut inside, offloads) = (netlink.open()?, Offloads::open()?);
        let address = self.network.address(host);
        match self.card {
            None => {
                self.sut.enter_here()?;
                let (mut outside, outside_offloads) = (netlink.open()?, Offloads::open()?);
                netlink.wait(async {
                    let pair = veth(self.settings, port, outside.get(BRIDGE).await?.index, &netns, host);
                    outside.add(&format!("make link {port} for {address}"), "veth", pair).await?;
                    self.finish(&mut inside, address).await?;
                    offloads.set(GUEST_LINK, self.settings.offloads)?;
                    outside_offloads.set(port, self.settings.offloads)?;
                    outside.wait_until(port, "forwarding", |link| link.carrier && link.forwarding == Some(true)).await
                })?;
            }
            Some(card) => {
                // Its offloads follow from the card's, and from what a macvlan always has.
                card.host.enter_here()?;
                let outside = netlink.open()?;
                netlink.wait(async {
                    let own = macvlan(self.settings, card, GUEST_LINK, &netns, hardware_address(b'g', host));
                    outside.add(&card.tried(MACVLAN, address), MACVLAN, own).await?;
                    self.finish(&mut inside, address).await
                })?;
            }
        }
        Ok(netns)
    }

    /// The guest's end, until it works.
    async fn finish(&self, inside: &mut Links, address: IpAddr) -> Result<()> {
        inside.up("lo").await?;
        let link = inside.get(GUEST_LINK).await?;
        inside.address(link.index, address, self.network.prefix).await?;
        inside.up(GUEST_LINK).await?;
        inside.wait_until(GUEST_LINK, "operating", |link| link.carrier && link.operating).await.map(drop)
    }
}

impl Card {
    fn tried(&self, kind: &str, address: IpAddr) -> String {
        format!("put a {kind} for {address} over {}", self.interface)
    }

    /// Makes a macvtap over the card in the namespace `sut`. It hears what is sent to the guest's hardware address.
    pub(crate) async fn macvtap(
        &self,
        outside: &Links,
        settings: &LinkSettings<'_>,
        sut: &NetNs,
        (link, host, address): (&str, u32, IpAddr),
    ) -> Result<()> {
        let own = LinkMacVtap::new(link, self.index, MacVtapMode::Bridge)
            .mtu(settings.mtu)
            .alias(settings.alias.as_str())
            .address(hardware_address(b'g', host))
            .up()
            .setns_by_fd(sut.fd().as_raw_fd())
            .build();
        outside.add(&self.tried(MACVTAP, address), MACVTAP, own).await
    }
}

/// A macvlan over a card, made right inside the namespace that it is for.
pub(crate) fn macvlan(
    settings: &LinkSettings<'_>,
    card: &Card,
    name: &str,
    netns: &NetNs,
    hardware: Vec<u8>,
) -> LinkMessage {
    LinkMacVlan::new(name, card.index, MacVlanMode::Bridge)
        .mtu(settings.mtu)
        .alias(settings.alias.as_str())
        .address(hardware)
        .setns_by_fd(netns.fd().as_raw_fd())
        .build()
}

/// A veth whose one end is a port of the bridge, and whose other end is made right inside the guest's namespace.
fn veth(settings: &LinkSettings<'_>, port: &str, bridge: u32, netns: &NetNs, host: u32) -> LinkMessage {
    let inner = LinkUnspec::new_with_name(GUEST_LINK)
        .mtu(settings.mtu)
        .alias(settings.alias.as_str())
        .address(hardware_address(b'g', host))
        .setns_by_fd(netns.fd().as_raw_fd())
        .build();
    LinkVeth::new(port, GUEST_LINK)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(inner)))
        .mtu(settings.mtu)
        .alias(settings.alias.as_str())
        .address(hardware_address(b'p', host))
        .controller(bridge)
        .up()
        .build()
}
