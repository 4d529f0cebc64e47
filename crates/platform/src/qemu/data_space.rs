//! Whether the data of guests have a place on the disks that the options say, found out before any of them is made.

use std::io::{Seek, SeekFrom};
use std::path::Path;

use tare_image::DATA_FILESYSTEM;
use tare_model::Refusal;

use super::directories;
use super::disks::{device_of, free_device};
use super::options::{DataDisk, DiskFormat, Options};
use crate::DataWanted;
use crate::machine::volume::{self, Part};
use crate::numbered::is_each_guests;
use crate::program::find;
use crate::restore::human;

/// Whether guests that stand at one time can be given such data.
pub(super) fn data_refusal(options: &Options, wanted: DataWanted) -> Result<(), Refusal> {
    let data_disk = options.data_disk.clone().unwrap_or_default();
    let disks = match &options.log_disk {
        None => vec![(Part::Data, &data_disk, wanted)],
        Some(log_disk) => {
            let (data, log) = wanted.apart();
            vec![(Part::Data, &data_disk, data), (Part::Log, log_disk, log)]
        }
    };
    for &(part, disk, wanted) in disks.iter().filter(|(.., wanted)| wanted.size.0 > 0) {
        has_place(part, disk, wanted)?;
    }
    directories::have_room(options, wanted)?;
    one_each(options, wanted.guests)?;
    for number in 1..=wanted.guests {
        if let Some(vfio) = &options.network.vfio {
            vfio.of(number).usable(Path::new("/sys"))?;
        }
        for &(part, disk, wanted) in &disks {
            has_device(part, disk, wanted, number)?;
        }
    }
    Ok(())
}

/// Whether the device of the guest with this number is free, and large enough.
fn has_device(part: Part, disk: &DataDisk, wanted: DataWanted, number: u32) -> Result<(), Refusal> {
    let Some(device) = &disk.device else { return Ok(()) };
    let device = device_of(device, number);
    let there = free_device(part, &device)?.seek(SeekFrom::End(0)).unwrap_or_default();
    let needed = if wanted.size.0 > 0 { volume::bytes(wanted.size, disk.size) } else { 0 };
    if there >= needed {
        return Ok(());
    }
    let reason = format!("the {} {}: {}", part.disk(), device.display(), volume::too_small(there, needed));
    Err(Refusal::new(reason, "Name a larger one, or ask for less data"))
}

/// Whether several guests have one each of what only one can have.
fn one_each(options: &Options, guests: u32) -> Result<(), Refusal> {
    let devices = options.disks().filter_map(|(_, disk)| disk.device.as_deref());
    let devices = devices.map(|device| device.to_string_lossy().into_owned());
    let card = options.network.vfio.as_ref().map(|vfio| vfio.device.clone());
    let units = options.disks().filter_map(|(_, disk)| disk.san.as_ref().map(|san| san.target.clone()));
    let mut names = devices.chain(card).chain(units);
    match names.find(|name| guests > 1 && !is_each_guests(name)) {
        Some(name) => Err(Refusal::new(
            format!("{guests} guests stand at one time, and only one of them can have {name}"),
            "Name one for each: `{guest}` in the name stands for the guest's number, 1, 2, ..",
        )),
        None => Ok(()),
    }
}

/// Whether a disk is one on which data of this size can be.
fn has_place(part: Part, disk: &DataDisk, wanted: DataWanted) -> Result<(), Refusal> {
    let noun = part.disk();
    if find("mke2fs").is_none() {
        return Err(Refusal::new(
            "disks with data are made by mke2fs, and it is not here",
            "apt-get install e2fsprogs",
        ));
    }
    if disk.filesystem != DATA_FILESYSTEM {
        let reason = format!("data of a workload lie on {DATA_FILESYSTEM}, and the {noun} has {}", disk.filesystem);
        return Err(Refusal::new(reason, format!("Leave `filesystem` of the {noun} out")));
    }
    if let Some(device) = disk.device.as_deref().filter(|_| !disk.overwrite) {
        let reason = format!("the workload's data would overwrite the block device {}", device.display());
        return Err(Refusal::new(reason, "Write overwrite = true beside `device` if what is on it may be destroyed"));
    }
    if disk.format == DiskFormat::Qcow2 && find("qemu-img").is_none() {
        return Err(Refusal::new("overlays are made by qemu-img, and it is not here", "apt-get install qemu-utils"));
    }
    match disk.size.filter(|size| size.0 < wanted.size.0) {
        Some(size) => {
            let reason = format!("the {noun} has {size} and the workload's data need {}", human(wanted.size.0));
            Err(Refusal::new(reason, format!("Write a larger `size` of the {noun}, or leave it out")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tare_model::ByteSize;

    fn said(options: &Value, guests: u32, size: u64) -> String {
        said_with_log(options, guests, size, 0)
    }

    fn said_with_log(options: &Value, guests: u32, size: u64, log: u64) -> String {
        let options: Options = crate::options::read(options).unwrap();
        let found = data_refusal(&options, DataWanted { guests, size: ByteSize(size), log: ByteSize(log) });
        found.map_or_else(|refusal| refusal.to_string(), |()| String::new())
    }

    #[test]
    fn what_only_one_guest_can_have_is_not_for_two() {
        let disk = |device: &str| json!({"data-disk": {"device": device, "overwrite": true}});
        assert!(said(&disk("/dev/no-such"), 2, 0).contains("only one of them can have /dev/no-such"));
        // Then each is looked at, the first first.
        assert!(said(&disk("/dev/no-such-{guest}"), 2, 0).contains("/dev/no-such-1 is not there"));
        let card = json!({"device": "0000:ff:1f.7", "mac": "02:00:00:00:00:01", "address": "192.0.2.7/24"});
        assert!(said(&json!({"network": {"vfio": card}}), 2, 0).contains("0000:ff:1f.7"));
        assert_eq!(said(&json!({}), 2, 0), "");
    }

    #[test]
    fn data_that_have_no_place_are_reported_with_the_figures() {
        let message = said(&json!({"data-disk": {"size": "64MiB"}}), 1, 256 << 20);
        assert!(message.contains("64MiB") && message.contains("256MiB"), "{message}");
        assert!(said(&json!({"data-disk": {"filesystem": "ext2"}}), 1, 1).contains("ext4"));
        assert!(said(&json!({"data-disk": {"device": "/dev/no-such"}}), 1, 1).contains("overwrite = true"));
        assert_eq!(said(&json!({"data-disk": {"size": "64MiB", "filesystem": "ext2"}}), 1, 0), "");
    }

    #[test]
    fn a_log_has_room_on_its_own_disk_and_the_data_need_none_for_it() {
        let disks = |log: Value| json!({"data-disk": {"size": "64MiB"}, "log-disk": log});
        let (whole, log) = (192 << 20, 128 << 20);
        assert!(said_with_log(&json!({"data-disk": {"size": "64MiB"}}), 1, whole, log).contains("192MiB"));
        assert_eq!(said_with_log(&disks(json!({"size": "128MiB"})), 1, whole, log), "");
        let message = said_with_log(&disks(json!({"size": "32MiB"})), 1, whole, log);
        assert!(message.contains("the log disk has 32MiB") && message.contains("128MiB"), "{message}");
        assert_eq!(said_with_log(&disks(json!({"size": "32MiB"})), 1, 64 << 20, 0), "", "there is no log");
        let two = said_with_log(&disks(json!({"device": "/dev/no-such", "overwrite": true})), 2, whole, log);
        assert!(two.contains("only one of them can have /dev/no-such"), "{two}");
    }
}
