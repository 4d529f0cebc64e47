//! Whether the data of guests have a place on the disks that the options say, found out before any of them is made.

use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tare_image::DATA_FILESYSTEM;
use tare_model::Refusal;

use super::disks::free_device;
use super::options::{DataDisk, DiskFormat, Options};
use crate::DataWanted;
use crate::machine::volume::{self, for_number, is_each_guests};
use crate::program::find;
use crate::restore::human;

/// The block device of the guest with this number.
pub(super) fn device_of(device: &Path, number: u32) -> PathBuf {
    PathBuf::from(for_number(&device.to_string_lossy(), number))
}

/// Whether guests that stand at one time can be given such data.
pub(super) fn data_refusal(options: &Options, wanted: DataWanted) -> Result<(), Refusal> {
    let disk = options.data_disk.clone().unwrap_or_default();
    if wanted.size.0 > 0 {
        has_place(&disk, wanted)?;
    }
    one_each(options, &disk, wanted.guests)?;
    for number in 1..=wanted.guests {
        if let Some(vfio) = &options.network.vfio {
            vfio.of(number).usable(Path::new("/sys"))?;
        }
        if let Some(device) = &disk.device {
            let device = device_of(device, number);
            let there = free_device(&device)?.seek(SeekFrom::End(0)).unwrap_or_default();
            let needed = if wanted.size.0 > 0 { volume::bytes(wanted.size, disk.size) } else { 0 };
            if there < needed {
                let reason = format!("the data disk {}: {}", device.display(), volume::too_small(there, needed));
                return Err(Refusal::new(reason, "Name a larger one, or ask for less data"));
            }
        }
    }
    Ok(())
}

/// Whether several guests have one each of what only one can have.
fn one_each(options: &Options, disk: &DataDisk, guests: u32) -> Result<(), Refusal> {
    let device = disk.device.as_deref().map(Path::to_string_lossy);
    let card = options.network.vfio.as_ref().map(|vfio| vfio.device.as_str());
    let unit = disk.san.as_ref().map(|san| san.target.as_str());
    let mut names = [device.as_deref(), card, unit].into_iter().flatten();
    match names.find(|name| guests > 1 && !is_each_guests(name)) {
        Some(name) => Err(Refusal::new(
            format!("{guests} guests stand at one time, and only one of them can have {name}"),
            "Name one for each: `{guest}` in the name stands for the guest's number, 1, 2, ..",
        )),
        None => Ok(()),
    }
}

/// Whether a disk is one on which data of this size can be.
fn has_place(disk: &DataDisk, wanted: DataWanted) -> Result<(), Refusal> {
    if find("mke2fs").is_none() {
        return Err(Refusal::new(
            "disks with data are made by mke2fs, and it is not here",
            "apt-get install e2fsprogs",
        ));
    }
    if disk.filesystem != DATA_FILESYSTEM {
        let reason = format!("data of a workload lie on {DATA_FILESYSTEM}, and the data disk has {}", disk.filesystem);
        return Err(Refusal::new(reason, "Leave `filesystem` of the data disk out"));
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
            let reason = format!("the data disk has {size} and the workload's data need {}", human(wanted.size.0));
            Err(Refusal::new(reason, "Write a larger `size` of the data disk, or leave it out"))
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
        let options: Options = crate::options::read(options).unwrap();
        let found = data_refusal(&options, DataWanted { guests, size: ByteSize(size) });
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
}
