//! The wire that a lab is put on: a network card of the host, which stays where it is.

use std::env;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use rtnetlink::packet_route::link::{LinkMessage, MacVlanMode};
use rtnetlink::{LinkMacVlan, LinkUnspec};
use tare_model::guest::ParityRow;
use tare_model::study::Attach;
use tare_model::units::AddressRange;

use crate::addresses::{BRIDGE, Network, hardware_address};
use crate::arp;
use crate::attach::{Card, LinkSettings, MACVLAN, macvlan};
use crate::error::{LabError, Result};
use crate::netlink::Links;
use crate::netns::NetNs;
use crate::rootless::is_rootless;
use crate::steer;

/// The bridge's port on the wire, in `sut`.
pub(crate) const WIRE_PORT: &str = "wire0";
/// The kernel's table of routes, of the namespace that this thread is in.
const ROUTES: &str = "/proc/thread-self/net/route";
/// How long the macvlan of a lab that has ended may still be there.
const GONE_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether it has gone.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A network card of the host, and the addresses for the lab on its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    /// The card, as the host names it.
    pub interface: String,
    /// Addresses that nobody else uses.
    pub addresses: AddressRange,
    /// How guests are attached to the card.
    pub attach: Attach,
    /// Whether the card may be one that carries the host's own traffic.
    pub cuts_off_host: bool,
}

impl Wire {
    /// Looks at the card. `links` are those of the host's namespace, in which this thread is.
    ///
    /// # Errors
    /// When there is none of that name, it could not carry the lab's frames, or the host would be cut off.
    pub(crate) async fn usable(
        &self,
        links: &Links,
        (settings, network): (&LinkSettings<'_>, &Network),
    ) -> Result<Card> {
        let mtu = settings.mtu;
        let interface = &self.interface;
        let refused = |why: String, remedy: &str| LabError::Refused {
            tried: format!("put the lab on the wire of {interface}"),
            why,
            remedy: remedy.to_owned(),
        };
        if is_rootless() {
            return Err(refused("a network card of the host takes root".into(), "Start tare as root"));
        }
        let Some(card) = links.find(interface).await? else {
            let why = "this host has no such network card".to_owned();
            return Err(refused(why, "`ip link` lists them; correct `wire` of `[lab]`"));
        };
        if !card.carrier || !card.operating {
            let why = format!("it does not work: {}", card.describe());
            return Err(refused(why, &format!("Plug it in, and set it up: `ip link set {interface} up`")));
        }
        if card.mtu < mtu {
            let why = format!("its MTU is {} B, and the lab's is {mtu} B", card.mtu);
            return Err(refused(
                why,
                &format!("Write `mtu = {}` in `[lab]`, or raise it: `ip link set {interface} mtu {mtu}`", card.mtu),
            ));
        }
        if self.attach == Attach::Macvlan && !settings.offloads {
            let why = "a macvlan always segments".to_owned();
            return Err(refused(why, "Leave `offloads` out of `[lab]`, or write `attach = \"bridge\"` in `wire`"));
        }
        let own = links.addresses(card.index).await?;
        if let Some(address) = own.iter().find(|address| network.all().any(|lab| IpAddr::V4(lab) == **address)) {
            let why = format!("{address} is this host's own address on that card");
            return Err(refused(why, "Name a range in `wire` of `[lab]` that nobody uses"));
        }
        if let Some(what) = self.carries(&own)?.filter(|_| !self.cuts_off_host) {
            let then = match self.attach {
                Attach::Bridge => "while a lab is on it the host is not reached over it",
                Attach::Macvlan => "the load would pass beside that",
            };
            let why = format!("it carries {what}, and {then}");
            return Err(refused(why, "Use another card; or, from a console, write `cuts-off-host = true` in `wire`"));
        }
        Ok(Card { host: NetNs::current()?, index: card.index, interface: interface.clone() })
    }

    /// What of the host's own the card carries.
    fn carries(&self, own: &[IpAddr]) -> Result<Option<&'static str>> {
        let routes = fs::read_to_string(ROUTES).map_err(|error| LabError::system(format!("read {ROUTES}"), error))?;
        if has_default_route(&routes, &self.interface) {
            return Ok(Some("the host's default route"));
        }
        let Some(server) = env::var("SSH_CONNECTION").ok().as_deref().and_then(login_server) else { return Ok(None) };
        Ok(own.contains(&server).then_some("the remote login that tare was started over"))
    }

    /// Puts `sut` on the wire, and sees that nobody there has an address of the lab's. `host` are the links of the host's namespace, where
    /// the card is, and `inside` those of `sut`, in which this thread is.
    ///
    /// # Errors
    /// When the kernel refuses, as where something else has the card, or an address is in use.
    pub(crate) async fn join(
        &self,
        host: &Links,
        card: &Card,
        (inside, sut): (&mut Links, &NetNs),
        (settings, network): (&LinkSettings<'_>, &Network),
    ) -> Result<()> {
        let hardware = hardware_address(b'b', network.client);
        match self.attach {
            Attach::Bridge => {
                self.add(host, || {
                    LinkMacVlan::new(WIRE_PORT, card.index, MacVlanMode::Passthrough)
                        .setns_by_fd(sut.fd().as_raw_fd())
                        .build()
                })
                .await?;
                let bridge = inside.get(BRIDGE).await?;
                let port = LinkUnspec::new_with_name(WIRE_PORT)
                    .mtu(settings.mtu)
                    .alias(settings.alias.as_str())
                    .controller(bridge.index)
                    .up()
                    .build();
                inside.change(&format!("make {WIRE_PORT} a port of the lab's bridge"), port).await?;
                inside
                    .wait_until(WIRE_PORT, "forwarding", |link| link.carrier && link.forwarding == Some(true))
                    .await?;
            }
            Attach::Macvlan => {
                self.add(host, || macvlan(settings, card, BRIDGE, sut, hardware.clone())).await?;
                inside.up(BRIDGE).await?;
                inside.wait_until(BRIDGE, "operating", |link| link.carrier && link.operating).await?;
            }
        }
        self.ask(inside.get(BRIDGE).await?.index, &hardware, network)
    }

    /// Makes the first link of a lab over the card.
    async fn add(&self, host: &Links, link: impl Fn() -> LinkMessage) -> Result<()> {
        let tried = format!(
            "put a macvlan over {}; a card that is in a bridge or a bond, or that another lab has, takes none",
            self.interface
        );
        let began = Instant::now();
        // That of a lab that has just ended goes a moment after its namespace.
        while let Err(error) = host.add(&tried, MACVLAN, link()).await {
            if began.elapsed() > GONE_WITHIN || !matches!(error.errno(), Some(libc::EINVAL | libc::EBUSY)) {
                return Err(error);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Sees that nobody on the wire has an address of the lab's. `own` is the hardware address of the link that is asked over.
    fn ask(&self, link: u32, own: &[u8], network: &Network) -> Result<()> {
        let all: Vec<Ipv4Addr> = network.all().collect();
        let tried = format!("ask on the wire of {} who has an address of {}", self.interface, self.addresses);
        let found = arp::in_use(link, own, &all).map_err(|error| LabError::system(tried, error))?;
        match found.iter().next() {
            None => Ok(()),
            Some((address, who)) => Err(LabError::Refused {
                tried: format!("use the addresses {} on the wire of {}", self.addresses, self.interface),
                why: format!("{address} is in use there by {who}{}", and_others(found.len() - 1)),
                remedy: "Name a range in `wire` of `[lab]` that nobody uses".into(),
            }),
        }
    }
}

impl Card {
    /// What the card and its settings are, as name and value.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let read = self.host.run(|| steer::mount_sysfs_here().map(|()| tare_probe::environment::card(&self.interface)));
        match read.and_then(|read| read.map_err(|error| LabError::system("look at the card", error))) {
            Ok(all) => all.into_iter().map(|(name, value)| (format!("card {name}"), value)).collect(),
            Err(error) => vec![("card".to_owned(), format!("could not be read: {error}"))],
        }
    }

    /// Which CPUs receive what comes over the card: its own setting, which is left as it is.
    pub(crate) fn steering(&self) -> ParityRow {
        let read = self.host.run(|| steer::mount_sysfs_here().and_then(|()| steer::get(&self.interface)));
        let granted = match read.map(|read| read.map_err(|error| error.to_string())) {
            Ok(Ok(cpus)) if cpus.is_empty() => "the CPUs of the card's interrupts".to_owned(),
            Ok(Ok(cpus)) => steer::words(&cpus),
            Ok(Err(why)) => format!("unknown ({why})"),
            Err(error) => format!("unknown ({error})"),
        };
        ParityRow {
            resource: "receive steering".into(),
            asked: "as the card has it".into(),
            granted: Some(granted),
            equal: true,
            note: "rps_cpus of the card, which is the host's to set: guests and driver receive on the same CPUs, and what runs there is in \
                   the CPU account of whoever has them"
                .into(),
        }
    }
}

fn and_others(count: usize) -> String {
    if count == 0 { String::new() } else { format!(", and so are {count} others") }
}

/// Whether a card has a default route, by the kernel's table (`/proc/net/route`): destination and mask are 0.
fn has_default_route(table: &str, interface: &str) -> bool {
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.first() == Some(&interface) && fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000")
    })
}

/// The server's address of `SSH_CONNECTION`: client, its port, server, its port.
fn login_server(connection: &str) -> Option<IpAddr> {
    connection.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests;
