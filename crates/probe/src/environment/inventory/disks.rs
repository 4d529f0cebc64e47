//! Whole disks, and what is made of several.

use std::path::Path;

use tare_model::environment::HardwareTable;

use super::pci::address_above;
use super::{Place, UNREPORTED, View, fit, none, table};

const PATH: &str = "sys/block";
/// Bytes of the unit in which the kernel counts the size of a disk, whatever its sectors are.
const SECTOR: u64 = 512;
/// Most layers of devices that lie on one another.
const LAYERS: u32 = 8;

/// The disks that are devices of their own, and not partitions or made of others.
pub(super) fn disks(view: &View<'_>, places: &[Place]) -> HardwareTable {
    const TITLE: &str = "Disks";
    const COLUMNS: [&str; 12] = [
        "Disk",
        "Model",
        "Firmware",
        "Size",
        "Bus",
        "Controller",
        "Rotational",
        "Scheduler",
        "Requests",
        "Queues",
        "Write cache",
        "Holds",
    ];
    let names = match view.devices(PATH) {
        Ok(names) => names,
        Err(why) => return none(TITLE, &COLUMNS, why),
    };
    let mut disks = table(TITLE, &COLUMNS);
    let real = names.iter().filter(|name| view.exists(&format!("{PATH}/{name}/device")) && bytes(view, name) > 0);
    disks.rows = real.map(|name| row(view, name, places)).collect();
    if disks.rows.is_empty() {
        disks.notes.push(format!("None is listed (/{PATH})."));
    }
    let elsewhere = places.iter().filter(|(_, disk)| disk.is_none());
    disks.notes.extend(elsewhere.map(|(place, _)| {
        format!("The disk under {place} is not known: it is in memory, on the network, or on a file system over several disks.")
    }));
    disks
}

fn row(view: &View<'_>, name: &str, places: &[Place]) -> Vec<String> {
    let disk = format!("{PATH}/{name}");
    let (device, queue) = (format!("{disk}/device"), format!("{disk}/queue"));
    let firmware = ["firmware_rev", "rev"].into_iter().find_map(|file| view.value(&format!("{device}/{file}")));
    let (bus, controller) = bus(view, name);
    vec![
        fit(name),
        model(view, &device),
        firmware.unwrap_or_else(|| UNREPORTED.to_owned()),
        size(view, name),
        bus,
        controller.unwrap_or_else(|| UNREPORTED.to_owned()),
        match view.number::<u8>(&format!("{queue}/rotational")) {
            Some(0) => "no".to_owned(),
            Some(_) => "yes".to_owned(),
            None => UNREPORTED.to_owned(),
        },
        scheduler(view, &queue),
        requests(view, &device, &queue),
        view.names(&format!("{disk}/mq")).map_or_else(|_| UNREPORTED.to_owned(), |queues| queues.len().to_string()),
        view.cell(&format!("{queue}/write_cache")),
        holds(view, name, places),
    ]
}

/// Bytes; zero of a drive without a medium.
fn bytes(view: &View<'_>, name: &str) -> u64 {
    view.number::<u64>(&format!("{PATH}/{name}/size")).unwrap_or(0).saturating_mul(SECTOR)
}

/// In the units of those who sell disks.
fn size(view: &View<'_>, name: &str) -> String {
    match bytes(view, name) {
        0 => UNREPORTED.to_owned(),
        bytes => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// What the device calls itself. The vendor of a paravirtual disk is a number, and no name.
fn model(view: &View<'_>, device: &str) -> String {
    let vendor = view.value(&format!("{device}/vendor")).filter(|vendor| !vendor.starts_with("0x"));
    // Drives behind a SATA link have their true vendor in the model.
    let vendor = vendor.filter(|vendor| vendor != "ATA");
    let words: Vec<String> = vendor.into_iter().chain(view.value(&format!("{device}/model"))).collect();
    if words.is_empty() { UNREPORTED.to_owned() } else { words.join(" ") }
}

/// The scheduler in force, which the kernel puts in brackets.
fn scheduler(view: &View<'_>, queue: &str) -> String {
    let all = view.cell(&format!("{queue}/scheduler"));
    let chosen = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or_else(|| all.clone(), |(chosen, _)| chosen.to_owned())
}

/// How many requests a queue of the kernel's takes, and how many the device takes at a time.
fn requests(view: &View<'_>, device: &str, queue: &str) -> String {
    let kernel = view.cell(&format!("{queue}/nr_requests"));
    match view.value(&format!("{device}/queue_depth")) {
        Some(depth) => format!("{kernel}, device {depth}"),
        None => kernel,
    }
}

/// How the disk is attached, and the PCI address of what it is attached to, read from its place in sysfs.
fn bus(view: &View<'_>, name: &str) -> (String, Option<String>) {
    let disk = format!("{PATH}/{name}");
    let device = format!("{disk}/device");
    if let Some((transport, controller)) = nvme(view, &device) {
        return (format!("NVMe over {transport}"), controller);
    }
    let Some(path) = view.target(&disk) else { return (UNREPORTED.to_owned(), None) };
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    let numbered = |prefix: &str| {
        let digit = |rest: &str| rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        names.iter().any(|name| name.strip_prefix(prefix).is_some_and(digit))
    };
    // A device behind several is of the kind that is nearest to the host.
    let bus = if numbered("usb") {
        "USB"
    } else if numbered("ata") {
        "SATA"
    } else if numbered("session") {
        "iSCSI"
    } else if numbered("rport-") {
        "Fibre Channel"
    } else if numbered("end_device-") || numbered("sas_end_device-") {
        "SAS"
    } else if numbered("virtio") {
        "virtio"
    } else if numbered("vbd-") {
        "Xen"
    } else if numbered("mmc") {
        "MMC"
    } else if numbered("target") {
        "SCSI"
    } else {
        UNREPORTED
    };
    (bus.to_owned(), address_above(&path).map(str::to_owned))
}

/// Transport and controller of a disk of NVMe. With several paths to it, its device is the subsystem, and the controllers are in that.
fn nvme(view: &View<'_>, device: &str) -> Option<(String, Option<String>)> {
    let inside = view.names(device).unwrap_or_default().into_iter().filter(|name| name.starts_with("nvme"));
    let places = std::iter::once(device.to_owned()).chain(inside.map(|name| format!("{device}/{name}")));
    places.into_iter().find_map(|place| {
        let transport = match view.value(&format!("{place}/transport"))?.as_str() {
            "pcie" => "PCIe".to_owned(),
            other => other.to_uppercase(),
        };
        Some((transport, view.target(&place).and_then(|path| address_above(&path).map(str::to_owned))))
    })
}

/// The arrays of md and the devices of the device mapper.
pub(super) fn arrays(view: &View<'_>, places: &[Place]) -> HardwareTable {
    const TITLE: &str = "Arrays and mapped disks";
    const COLUMNS: [&str; 7] = ["Device", "Kind", "Size", "On", "Chunk", "State", "Holds"];
    let names = match view.devices(PATH) {
        Ok(names) => names,
        Err(why) => return none(TITLE, &COLUMNS, why),
    };
    let mut arrays = table(TITLE, &COLUMNS);
    for name in names {
        let own = format!("{PATH}/{name}");
        let is_md = view.exists(&format!("{own}/md"));
        if !is_md && !view.exists(&format!("{own}/dm")) {
            continue;
        }
        let kind = if is_md { md_kind(view, &own) } else { mapped_kind(view, &own) };
        let on = view.names(&format!("{own}/slaves")).unwrap_or_default().join(", ");
        arrays.rows.push(vec![
            fit(&name),
            kind,
            size(view, &name),
            if on.is_empty() { UNREPORTED.to_owned() } else { fit(&on) },
            chunk(view, &own),
            if is_md { md_state(view, &own) } else { suspended(view, &own) },
            holds(view, &name, places),
        ]);
    }
    if arrays.rows.is_empty() {
        arrays.notes.push("None of md or of the device mapper.".to_owned());
    }
    arrays
}

fn md_kind(view: &View<'_>, own: &str) -> String {
    let level = view.cell(&format!("{own}/md/level"));
    let disks = view.number::<u32>(&format!("{own}/md/raid_disks"));
    let degraded = view.number::<u32>(&format!("{own}/md/degraded")).filter(|missing| *missing > 0);
    let disks = disks.map(|disks| format!(" of {disks}")).unwrap_or_default();
    let degraded = degraded.map(|missing| format!(", {missing} missing")).unwrap_or_default();
    format!("md {level}{disks}{degraded}")
}

/// The states between which an array goes back and forth as it is written to are one.
fn md_state(view: &View<'_>, own: &str) -> String {
    match view.cell(&format!("{own}/md/array_state")).as_str() {
        "clean" | "active" | "active-idle" | "write-pending" => "active".to_owned(),
        other => other.to_owned(),
    }
}

/// Who made a mapped device: the beginning of its UUID. The rest of that, and its name, are the user's.
fn mapped_kind(view: &View<'_>, own: &str) -> String {
    let uuid = view.value(&format!("{own}/dm/uuid")).unwrap_or_default();
    // Of a partition: `part1-` before that of its disk.
    let made_by = uuid.split('-').find(|word| !word.starts_with("part")).unwrap_or_default();
    match made_by {
        "LVM" => "LVM",
        "CRYPT" => "encrypted (dm-crypt)",
        "mpath" => "multipath",
        "DMRAID" => "firmware RAID",
        "VDO" => "VDO",
        _ => "device mapper",
    }
    .to_owned()
}

fn chunk(view: &View<'_>, own: &str) -> String {
    match view.number::<u64>(&format!("{own}/md/chunk_size")) {
        Some(0) | None => "none".to_owned(),
        Some(bytes) => format!("{} KiB", bytes / 1024),
    }
}

fn suspended(view: &View<'_>, own: &str) -> String {
    match view.number::<u8>(&format!("{own}/dm/suspended")) {
        Some(0) => "active".to_owned(),
        Some(_) => "suspended".to_owned(),
        None => UNREPORTED.to_owned(),
    }
}

/// What of the run's is on a device.
fn holds(view: &View<'_>, name: &str, places: &[Place]) -> String {
    let on = |disk: &str| disk == name || is_under(view, name, disk, LAYERS);
    let held = places.iter().filter(|(_, disk)| disk.as_deref().is_some_and(on));
    let held: Vec<&str> = held.map(|(place, _)| place.as_str()).collect();
    if held.is_empty() { "nothing of the run's".to_owned() } else { held.join(", ") }
}

/// Whether `name` is a disk that `disk` is made of, itself or by its partitions.
fn is_under(view: &View<'_>, name: &str, disk: &str, layers: u32) -> bool {
    let parts = view.names(&format!("{PATH}/{disk}/slaves")).unwrap_or_default();
    layers > 0
        && parts.iter().any(|part| {
            let whole = whole(view, disk, part);
            whole == name || is_under(view, name, &whole, layers - 1)
        })
}

/// The disk that a part of another is, or is a partition of.
fn whole(view: &View<'_>, disk: &str, part: &str) -> String {
    let link = format!("{PATH}/{disk}/slaves/{part}");
    let partition = view.exists(&format!("{link}/partition"));
    let above = view.target(&link).filter(|_| partition);
    let name = above.as_deref().and_then(Path::parent).and_then(Path::file_name).and_then(|name| name.to_str());
    name.unwrap_or(part).to_owned()
}
