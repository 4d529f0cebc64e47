//! What netlink says about one link, as far as the lab wants to know it.

use rtnetlink::packet_route::link::{
    BridgePortState, InfoBridgePort, InfoPortData, LinkAttribute, LinkInfo, LinkMessage, State,
};

/// One link as the kernel last described it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) alias: Option<String>,
    pub(crate) mtu: u32,
    /// The other end is up.
    pub(crate) carrier: bool,
    /// The kernel's own view: carrier seen and acted upon.
    pub(crate) operating: bool,
    /// A port of a bridge that forwards frames; `None` when it is no port.
    pub(crate) forwarding: Option<bool>,
    /// Frames dropped or in error, either way.
    pub(crate) lost: u64,
}

impl Link {
    pub(crate) fn read(message: &LinkMessage) -> Self {
        let mut link = Self { index: message.header.index, ..Self::default() };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name.clone_from(name),
                LinkAttribute::IfAlias(alias) => link.alias = Some(alias.clone()),
                LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
                LinkAttribute::Carrier(carrier) => link.carrier = *carrier == 1,
                LinkAttribute::OperState(state) => link.operating = *state == State::Up,
                LinkAttribute::Stats64(s) => link.lost = s.rx_dropped + s.tx_dropped + s.rx_errors + s.tx_errors,
                LinkAttribute::LinkInfo(infos) => link.forwarding = infos.iter().find_map(forwarding),
                _ => {}
            }
        }
        link
    }

    /// Its state in words, for an error.
    pub(crate) fn describe(&self) -> String {
        let port = match self.forwarding {
            Some(true) => ", bridge port forwarding",
            Some(false) => ", bridge port not forwarding",
            None => "",
        };
        let not = |yes| if yes { "" } else { "no " };
        format!("{}carrier, {}operation{port}", not(self.carrier), not(self.operating))
    }
}

fn forwarding(info: &LinkInfo) -> Option<bool> {
    let LinkInfo::PortData(InfoPortData::BridgePort(values)) = info else { return None };
    values.iter().find_map(|value| match value {
        InfoBridgePort::State(state) => Some(*state == BridgePortState::Forwarding),
        _ => None,
    })
}
