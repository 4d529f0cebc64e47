//! The addresses of a lab and the names of its links, and which addresses are in use.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use tare_model::units::AddressRange;

/// The bridge, in `sut`.
pub(crate) const BRIDGE: &str = "tare0";
/// The link of every namespace that is attached to the bridge.
pub(crate) const GUEST_LINK: &str = "eth0";

/// Which addresses a lab has, and for whom. Hosts are numbered from the network's own address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Network {
    /// The network's own address.
    base: u32,
    /// Length of its prefix.
    pub(crate) prefix: u8,
    /// The driver of this host.
    pub(crate) client: u32,
    /// Programs in `sut` that need an address of their own there.
    pub(crate) sut: u32,
    guests: RangeInclusive<u32>,
}

impl Network {
    /// A lab without a way out: 198.18.0.1 is the client, guests follow from 198.18.1.0 on. RFC 2544 sets 198.18.0.0/15 aside for
    /// measuring: no such address is routed anywhere.
    pub(crate) fn own() -> Self {
        let base = u32::from_be_bytes([198, 18, 0, 0]);
        Self { base, prefix: 15, client: 1, sut: 2, guests: 256..=(1 << 17) - 2 }
    }

    /// A lab on a wire: the first of the range is the client, the second for programs in `sut`, the others are guests'. The range has
    /// three at least.
    pub(crate) fn on_wire(range: &AddressRange) -> Self {
        let base = range.network();
        let (first, last) = (range.first.to_bits() - base, range.last.to_bits() - base);
        Self { base, prefix: range.prefix, client: first, sut: first + 1, guests: first + 2..=last }
    }

    pub(crate) fn address(&self, host: u32) -> IpAddr {
        IpAddr::V4(self.address_v4(host))
    }

    fn address_v4(&self, host: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + host)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Ipv4Addr> {
        [self.client, self.sut].into_iter().chain(self.guests.clone()).map(|host| self.address_v4(host))
    }
}

/// The host parts of guests' addresses in use. Given out in turn, so that a guest does not meet connections
/// in TIME_WAIT of the one before it.
#[derive(Debug)]
pub(crate) struct Hosts {
    guests: RangeInclusive<u32>,
    used: BTreeSet<u32>,
    next: u32,
}

impl Hosts {
    pub(crate) fn of(network: &Network) -> Self {
        Self { guests: network.guests.clone(), used: BTreeSet::new(), next: 0 }
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        let (first, last) = (*self.guests.start(), *self.guests.end());
        let span = last - first + 1;
        let host = (0..span).map(|i| first + (self.next + i) % span).find(|h| !self.used.contains(h))?;
        self.next = (host - first + 1) % span;
        self.used.insert(host);
        Some(host)
    }

    pub(crate) fn give_back(&mut self, host: u32) {
        self.used.remove(&host);
    }
}

/// A locally administered hardware address that follows from the IP address, so that a peer's ARP
/// entry can never be wrong about which guest has an address.
pub(crate) fn hardware_address(kind: u8, host: u32) -> Vec<u8> {
    let [_, a, b, c] = host.to_be_bytes();
    vec![0x02, b't', kind, a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_given_in_turn_and_never_twice_at_a_time() {
        let network = Network::own();
        let (first, last) = (256, (1 << 17) - 2);
        let mut hosts = Hosts::of(&network);
        let (a, b) = (hosts.take().unwrap(), hosts.take().unwrap());
        assert_eq!((a, b), (first, first + 1));
        hosts.give_back(a);
        assert_eq!(hosts.take(), Some(b + 1), "an address came back at once");
        hosts.next = last - first;
        assert_eq!(hosts.take(), Some(last));
        assert_eq!(hosts.take(), Some(a), "after the last comes the first that is free");
        assert_eq!(hosts.take(), Some(b + 2), "one in use was given out");
        assert_eq!(network.address(last).to_string(), "198.19.255.254");
    }

    #[test]
    fn on_a_wire_all_addresses_are_those_of_the_range() {
        let network = Network::on_wire(&"10.1.2.250-10.1.3.2/16".parse().unwrap());
        let all: Vec<String> = network.all().map(|address| address.to_string()).collect();
        assert_eq!(all.len(), 9);
        assert_eq!((all[0].as_str(), all[8].as_str()), ("10.1.2.250", "10.1.3.2"));
        let mut hosts = Hosts::of(&network);
        let given: Vec<String> =
            std::iter::from_fn(|| hosts.take()).map(|host| network.address(host).to_string()).collect();
        assert_eq!(given, all[2..]);
    }
}
