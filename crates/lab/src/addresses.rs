//! The addresses of a lab, and which of them are in use.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// The link of every namespace that is attached to the bridge.
pub(crate) const GUEST_LINK: &str = "eth0";
/// RFC 2544 sets 198.18.0.0/15 aside for measuring: no such address is routed anywhere.
pub(crate) const PREFIX: u8 = 15;
const NETWORK: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// The client is 198.18.0.1; guests follow from 198.18.1.0 on.
pub(crate) const CLIENT_HOST: u32 = 1;
/// Programs in `sut` that need an address of their own there.
pub(crate) const SUT_HOST: u32 = 2;
const FIRST_GUEST_HOST: u32 = 256;
const LAST_GUEST_HOST: u32 = (1 << (32 - PREFIX as u32)) - 2;

/// The host parts of addresses in use. Given out in turn, so that a guest does not meet connections
/// in TIME_WAIT of the one before it.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    used: BTreeSet<u32>,
    next: u32,
}

impl Hosts {
    pub(crate) fn take(&mut self) -> Option<u32> {
        let span = LAST_GUEST_HOST - FIRST_GUEST_HOST + 1;
        let host = (0..span).map(|i| FIRST_GUEST_HOST + (self.next + i) % span).find(|h| !self.used.contains(h))?;
        self.next = (host - FIRST_GUEST_HOST + 1) % span;
        self.used.insert(host);
        Some(host)
    }

    pub(crate) fn give_back(&mut self, host: u32) {
        self.used.remove(&host);
    }
}

pub(crate) fn address(host: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(NETWORK + host))
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
        let mut hosts = Hosts::default();
        let (a, b) = (hosts.take().unwrap(), hosts.take().unwrap());
        assert_eq!((a, b), (FIRST_GUEST_HOST, FIRST_GUEST_HOST + 1));
        hosts.give_back(a);
        assert_eq!(hosts.take(), Some(b + 1), "an address came back at once");
        hosts.next = LAST_GUEST_HOST - FIRST_GUEST_HOST;
        assert_eq!(hosts.take(), Some(LAST_GUEST_HOST));
        assert_eq!(hosts.take(), Some(a), "after the last comes the first that is free");
        assert_eq!(hosts.take(), Some(b + 2), "one in use was given out");
        assert_eq!(address(LAST_GUEST_HOST).to_string(), "198.19.255.254");
    }
}
