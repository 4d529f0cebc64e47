//! Devices of the PCI bus, and their names.

use std::path::Path;

use tare_model::environment::HardwareTable;

use super::{UNREPORTED, View, none, table};

const PATH: &str = "sys/bus/pci/devices";
/// Where distributions keep the list of names (https://pci-ids.ucw.cz).
const NAMES: [&str; 3] = ["usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids", "usr/share/pci.ids"];
/// Most bytes of that list: it has about 1.5 MiB.
const NAMES_BYTES: u64 = 8 << 20;

/// The devices of the bus by their addresses, and the list of names where the host has one.
pub(super) struct Bus {
    /// `Err`: why there is none, as a sentence.
    devices: Result<Vec<Device>, String>,
    names: Option<Names>,
}

/// One device.
#[derive(Debug, Clone)]
pub(super) struct Device {
    /// Such as `0000:03:00.0`.
    pub address: String,
    /// Base class, subclass and interface, a byte each.
    class: u32,
    vendor: u16,
    device: u16,
    /// Vendor and number of the card that the chip is on, where they are others.
    card: Option<(u16, u16)>,
}

impl Bus {
    pub(super) fn read(view: &View<'_>) -> Self {
        let devices =
            view.devices(PATH).map(|names| names.iter().filter_map(|name| Device::read(view, name)).collect());
        let names = NAMES.into_iter().find_map(|path| {
            let text = view.bytes(path, NAMES_BYTES).ok()?;
            Some(Names { path, text: String::from_utf8_lossy(&text).into_owned() })
        });
        Self { devices, names }
    }

    /// The device whose directory this is in or under.
    pub(super) fn above(&self, path: &Path) -> Option<&Device> {
        let devices = self.devices.as_deref().unwrap_or_default();
        address_above(path).and_then(|address| devices.iter().find(|device| device.address == address))
    }

    /// Model of a device: names where they are known, and ids.
    pub(super) fn model(&self, device: &Device) -> String {
        let ids = format!("{:04x}:{:04x}", device.vendor, device.device);
        let name = self.names.as_ref().and_then(|names| names.device(device));
        let mut model = name.map_or_else(|| ids.clone(), |name| format!("{name} ({ids})"));
        if let Some((vendor, number)) = device.card {
            let ids = format!("{vendor:04x}:{number:04x}");
            let name = self.names.as_ref().and_then(|names| names.card(device));
            model.push_str(&name.map_or_else(|| format!(", card {ids}"), |name| format!(", card {name} ({ids})")));
        }
        super::fit(&model)
    }

    /// Where the names are from, in a sentence.
    pub(super) fn source(&self) -> String {
        match &self.names {
            Some(names) => format!("Names are from /{}.", names.path),
            None => "Ids alone: this host has no list of PCI names (pci.ids).".to_owned(),
        }
    }

    /// The controllers of storage (base class 01).
    pub(super) fn storage_controllers(&self, view: &View<'_>) -> HardwareTable {
        const TITLE: &str = "Storage controllers";
        const COLUMNS: [&str; 7] = ["Address", "Kind", "Model", "Driver", "Firmware", "PCIe link", "NUMA node"];
        const STORAGE: u32 = 0x01;
        let devices = match &self.devices {
            Ok(devices) => devices,
            Err(why) => return none(TITLE, &COLUMNS, why),
        };
        let mut controllers = table(TITLE, &COLUMNS);
        for device in devices.iter().filter(|device| device.class >> 16 == STORAGE) {
            controllers.rows.push(vec![
                device.address.clone(),
                kind(device.class),
                self.model(device),
                device.driver(view),
                device.firmware(view).unwrap_or_else(|| UNREPORTED.to_owned()),
                device.link(view),
                device.node(view),
            ]);
        }
        controllers.notes.push(match controllers.rows.is_empty() {
            true => "None on the PCI bus.".to_owned(),
            false => self.source(),
        });
        controllers
    }
}

/// The last address of a device of the bus in a path of sysfs.
pub(super) fn address_above(path: &Path) -> Option<&str> {
    path.iter().rev().filter_map(|name| name.to_str()).find(|name| is_address(name))
}

/// Whether a name is of the form `0000:03:00.0`: domain, bus, device, function.
fn is_address(name: &str) -> bool {
    let hex = |text: &str, least: usize, most: usize| {
        (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match name.split([':', '.']).collect::<Vec<_>>()[..] {
        [domain, bus, device, function] => {
            hex(domain, 4, 8) && hex(bus, 2, 2) && hex(device, 2, 2) && hex(function, 1, 1)
        }
        _ => false,
    }
}

/// What kind of storage controller a class says (PCI Code and ID Assignment, 1.1).
fn kind(class: u32) -> String {
    match class >> 8 & 0xff {
        0x00 => "SCSI".to_owned(),
        0x01 => "IDE".to_owned(),
        0x04 => "RAID".to_owned(),
        0x05 => "ATA".to_owned(),
        0x06 => "SATA".to_owned(),
        0x07 => "SAS".to_owned(),
        0x08 => "NVMe".to_owned(),
        0x80 => "other".to_owned(),
        subclass => format!("class 01{subclass:02x}"),
    }
}

impl Device {
    fn read(view: &View<'_>, address: &str) -> Option<Self> {
        if !is_address(address) {
            return None;
        }
        let id = |file: &str| {
            let text = view.value(&format!("{PATH}/{address}/{file}"))?;
            u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        };
        let short = |file: &str| id(file).and_then(|id| u16::try_from(id).ok());
        let (class, vendor, device) = (id("class")? & 0xff_ffff, short("vendor")?, short("device")?);
        let card = short("subsystem_vendor").zip(short("subsystem_device"));
        let card = card.filter(|card| *card != (0, 0) && *card != (vendor, device));
        Some(Self { address: address.to_owned(), class, vendor, device, card })
    }

    /// Driver and version of its module, where that has one.
    fn driver(&self, view: &View<'_>) -> String {
        let driver = format!("{PATH}/{}/driver", self.address);
        let Some(name) = view.target_name(&driver) else { return "none".to_owned() };
        match view.value(&format!("{driver}/module/version")) {
            Some(version) => format!("{name} {version}"),
            None => name,
        }
    }

    /// Firmware of a controller, as drivers of SCSI hosts tell it: each calls it something else.
    fn firmware(&self, view: &View<'_>) -> Option<String> {
        const FILES: [&str; 5] = ["version_fw", "firmware_revision", "fw_version", "fwrev", "firmware_rev"];
        let own = format!("{PATH}/{}", self.address);
        let hosts = view.devices(&own).ok()?.into_iter().filter(|name| name.starts_with("host"));
        let mut hosts = hosts.map(|host| format!("{own}/{host}/scsi_host/{host}"));
        hosts.find_map(|host| FILES.iter().find_map(|file| view.value(&format!("{host}/{file}"))))
    }

    /// Speed and width of its link to the bus.
    pub(super) fn link(&self, view: &View<'_>) -> String {
        let read = |file: &str| view.value(&format!("{PATH}/{}/{file}", self.address));
        let of = |speed: Option<String>, width: Option<String>| {
            let (speed, width) = (speed?, width?.parse::<u32>().ok().filter(|width| *width > 0)?);
            let speed = speed.trim_end_matches(" PCIe").to_owned();
            (!speed.starts_with("Unknown")).then(|| format!("{speed} x{width}"))
        };
        let now = of(read("current_link_speed"), read("current_link_width"));
        let most = of(read("max_link_speed"), read("max_link_width"));
        match (now, most) {
            (Some(now), Some(most)) if now != most => format!("{now} of {most}"),
            (Some(now), _) => now,
            (None, _) => UNREPORTED.to_owned(),
        }
    }

    /// The NUMA node that it is at.
    pub(super) fn node(&self, view: &View<'_>) -> String {
        match view.number::<i32>(&format!("{PATH}/{}/numa_node", self.address)) {
            Some(node) if node >= 0 => node.to_string(),
            _ => UNREPORTED.to_owned(),
        }
    }
}

/// The list of names: vendors at the beginning of a line, their devices after one tab, cards after two.
struct Names {
    path: &'static str,
    text: String,
}

impl Names {
    fn device(&self, device: &Device) -> Option<String> {
        let vendor = self.vendor(device.vendor)?;
        let name = devices_of(vendor).find_map(|line| named(line, "\t", device.device))?;
        Some(format!("{} {name}", vendor.lines().next()?.get(4..)?.trim()))
    }

    fn card(&self, device: &Device) -> Option<String> {
        let (vendor, number) = device.card?;
        let lines = devices_of(self.vendor(device.vendor)?);
        let mut own = lines.skip_while(|line| named(line, "\t", device.device).is_none()).skip(1);
        let wanted = format!("\t\t{vendor:04x} {number:04x}");
        let mut cards = own.by_ref().take_while(|line| line.starts_with("\t\t"));
        cards.find_map(|line| Some(line.strip_prefix(&wanted)?.trim().to_owned()))
    }

    /// The lines of a vendor, its own first.
    fn vendor(&self, vendor: u16) -> Option<&str> {
        let wanted = format!("{vendor:04x} ");
        let at = if self.text.starts_with(&wanted) { 0 } else { self.text.find(&format!("\n{wanted}"))? + 1 };
        self.text.get(at..)
    }
}

/// The indented lines after the first.
fn devices_of(vendor: &str) -> impl Iterator<Item = &str> {
    vendor.lines().skip(1).take_while(|line| line.starts_with(['\t', '#']))
}

/// The name in a line of the list, if the line has this indent and number.
fn named<'a>(line: &'a str, indent: &str, number: u16) -> Option<&'a str> {
    Some(line.strip_prefix(indent)?.strip_prefix(&format!("{number:04x} "))?.trim())
}
