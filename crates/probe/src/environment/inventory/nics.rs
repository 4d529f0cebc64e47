//! Network cards.

use std::io;

use tare_model::environment::HardwareTable;

use super::pci::Bus;
use super::{UNREPORTED, View, fit, none, reported, table};
use crate::Ethtool;
use crate::environment::redact::REDACTED;
use crate::ethtool::{OfMost, Offload, Queues};

const PATH: &str = "sys/class/net";
const COLUMNS: [&str; 11] = [
    "Card",
    "Model",
    "Driver",
    "Firmware",
    "Speed",
    "MTU (B)",
    "Offloads on",
    "Rings (in / out)",
    "Queues",
    "PCIe link",
    "NUMA node",
];

/// One link, of a device or not, as name and value.
pub(super) fn card(view: &View<'_>, pci: &Bus, ethtool: Option<&Ethtool>, name: &str) -> Vec<(String, String)> {
    let values = row(view, pci, ethtool, name);
    let named = COLUMNS.iter().zip(values).filter(|(_, value)| value != UNREPORTED);
    named.map(|(column, value)| (column.to_lowercase(), value)).collect()
}

/// The cards: links that are a device's. Those of tare's lab, bridges and the like are none.
pub(super) fn nics(view: &View<'_>, pci: &Bus, ethtool: &Result<Ethtool, String>) -> HardwareTable {
    const TITLE: &str = "Network cards";
    let names = match view.devices(PATH) {
        Ok(names) => names,
        Err(why) => return none(TITLE, &COLUMNS, why),
    };
    let mut cards = table(TITLE, &COLUMNS);
    let real = names.iter().filter(|name| view.exists(&format!("{PATH}/{name}/device")));
    cards.rows = real.map(|name| row(view, pci, ethtool.as_ref().ok(), name)).collect();
    match (cards.rows.is_empty(), ethtool) {
        (true, _) => cards.notes.push(format!("None is listed (/{PATH}).")),
        (false, Ok(_)) => cards.notes.push(pci.source()),
        (false, Err(why)) => {
            cards.notes.push(pci.source());
            cards.notes.push(format!("Drivers were not asked for firmware, offloads, rings and queues: {why}."));
        }
    }
    cards
}

fn row(view: &View<'_>, pci: &Bus, ethtool: Option<&Ethtool>, name: &str) -> Vec<String> {
    let link = format!("{PATH}/{name}");
    let place = view.target(&format!("{link}/device"));
    let device = place.as_deref().and_then(|path| pci.above(path));
    let model = match device {
        Some(device) => pci.model(device),
        None => view
            .target_name(&format!("{link}/device/subsystem"))
            .map_or_else(|| UNREPORTED.to_owned(), |bus| format!("not on PCI: {bus}")),
    };
    let (driver, firmware) = driver(view, ethtool, name);
    vec![
        shown(name),
        model,
        driver,
        firmware,
        speed(view, &link),
        view.cell(&format!("{link}/mtu")),
        ethtool.map_or_else(|| UNREPORTED.to_owned(), |ethtool| offloads(ethtool, name)),
        asked(ethtool, |ethtool| ethtool.rings(name).map(|[rx, tx]| format!("{} / {}", of_most(rx), of_most(tx)))),
        asked(ethtool, |ethtool| ethtool.queues(name).map(queues)),
        device.map_or_else(|| UNREPORTED.to_owned(), |device| device.link(view)),
        device.map_or_else(|| UNREPORTED.to_owned(), |device| device.node(view)),
    ]
}

/// A name without the MAC address that systemd gives to cards that it knows by nothing else.
fn shown(name: &str) -> String {
    let address = name.get(3..).is_some_and(|rest| rest.len() == 12 && rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if address { format!("{}{REDACTED}", &name[..3]) } else { fit(name) }
}

/// Driver with its version, and the card's firmware.
fn driver(view: &View<'_>, ethtool: Option<&Ethtool>, name: &str) -> (String, String) {
    match ethtool.map(|ethtool| ethtool.driver(name)) {
        Some(Ok(driver)) => (reported(&format!("{} {}", driver.name, driver.version)), reported(&driver.firmware)),
        failed => {
            let driver = view.target_name(&format!("{PATH}/{name}/device/driver"));
            let firmware = failed.and_then(Result::err).map_or_else(|| UNREPORTED.to_owned(), |error| refused(&error));
            (driver.unwrap_or_else(|| UNREPORTED.to_owned()), firmware)
        }
    }
}

/// Speed and duplex. Virtual cards have none; the kernel refuses to tell that of a link that is down.
fn speed(view: &View<'_>, link: &str) -> String {
    let state = view.value(&format!("{link}/operstate"));
    match view.number::<i64>(&format!("{link}/speed")) {
        Some(speed) if speed > 0 => {
            let duplex = view.value(&format!("{link}/duplex")).filter(|duplex| duplex != "unknown");
            let duplex = duplex.map(|duplex| format!(", {duplex} duplex")).unwrap_or_default();
            format!("{speed} Mbit/s{duplex}")
        }
        _ if state.as_deref() == Some("down") => "link is down".to_owned(),
        _ => UNREPORTED.to_owned(),
    }
}

fn offloads(ethtool: &Ethtool, name: &str) -> String {
    let mut on = Vec::new();
    for offload in Offload::ALL {
        match ethtool.offload(name, offload) {
            Ok(true) => on.push(offload.name()),
            Ok(false) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return refused(&error),
            // The driver does not have it.
            Err(_) => {}
        }
    }
    if on.is_empty() { "none".to_owned() } else { on.join(" ") }
}

fn asked(ethtool: Option<&Ethtool>, ask: impl Fn(&Ethtool) -> io::Result<String>) -> String {
    let Some(ethtool) = ethtool else { return UNREPORTED.to_owned() };
    ask(ethtool).unwrap_or_else(|error| refused(&error))
}

/// Why a driver does not answer.
fn refused(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => UNREPORTED.to_owned(),
        Some(libc::ENODEV) => "not in this network namespace".to_owned(),
        _ => super::reason(error),
    }
}

fn of_most(OfMost { now, most }: OfMost) -> String {
    if most == 0 { now.to_string() } else { format!("{now} of {most}") }
}

fn queues(queues: Queues) -> String {
    let named = [("combined", queues.combined), ("in", queues.receive), ("out", queues.transmit)];
    let there = named.into_iter().filter(|(_, count)| count.now > 0 || count.most > 0);
    let words: Vec<String> = there.map(|(name, count)| format!("{} {name}", of_most(count))).collect();
    if words.is_empty() { UNREPORTED.to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_mac_address_is_not_shown() {
        assert_eq!(shown("enx525400abcdef"), "enx(redacted)");
        assert_eq!(shown("enp3s0f0"), "enp3s0f0");
        assert_eq!(shown("wlx0123456789ab"), "wlx(redacted)");
        assert_eq!(shown("eth0"), "eth0");
    }

    #[test]
    fn queues_and_rings_are_written_with_their_limits() {
        let of = |now, most| OfMost { now, most };
        let all = Queues { receive: of(0, 0), transmit: of(0, 0), combined: of(8, 63) };
        assert_eq!(queues(all), "8 of 63 combined");
        let apart = Queues { receive: of(4, 8), transmit: of(2, 8), combined: of(0, 0) };
        assert_eq!(queues(apart), "4 of 8 in, 2 of 8 out");
        assert_eq!(refused(&io::Error::from_raw_os_error(libc::EOPNOTSUPP)), UNREPORTED);
    }
}
