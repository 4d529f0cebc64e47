//! What a disk for data comes from: a file, a block device or a unit of a target, with a gold copy restored on it.

use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tare_image::{DATA_FILESYSTEM, Disk, IscsiQueue};

use super::directories;
use super::disks::{self, Store};
use super::options::{DataDisk, Initiator, San};
use crate::builder::GuestBuilder;
use crate::data::Gold;
use crate::error::Result;
use crate::machine::target::{self, Unit};
use crate::machine::volume::{self, Claim, Form, Onto, Part};
use crate::numbered::for_guest;

/// A restored disk, before it is attached.
pub(super) struct Restored {
    pub store: Store,
    /// The unit that the guest itself logs in to.
    pub unit: Option<Unit>,
    /// What it is, for people.
    pub what: String,
    /// The file or device of the host's that it is.
    pub on_host: Option<PathBuf>,
    /// How it was restored, for people.
    pub by: &'static str,
    /// Seconds that it took.
    pub seconds: f64,
    /// The guest's right to what is the user's.
    pub claim: Option<Claim>,
}

impl Restored {
    /// A file or device that is made anew.
    pub(super) fn new(path: PathBuf) -> Self {
        let on_host = Some(path.clone());
        let (store, what) = (Store::Path(path), String::from("new file"));
        Self { store, unit: None, what, on_host, by: "made anew", seconds: 0.0, claim: None }
    }

    /// Makes it what QEMU has of a unit, or the unit that the guest itself has.
    pub(super) fn reached(&mut self, unit: Unit, initiator: Initiator) {
        (self.store, self.unit) = match initiator {
            Initiator::Hypervisor => (Store::Unit(unit), None),
            Initiator::Guest => (Store::Path(PathBuf::new()), Some(unit)),
        };
    }
}

/// Restores a gold copy for the disk of one part. A disk on the lab's target is the file that it is to serve.
pub(super) fn restored(
    builder: &mut GuestBuilder<'_>,
    part: Part,
    disk: &DataDisk,
    wanted: Gold<'_>,
) -> Result<Restored> {
    let refused = |why: &str, remedy: &str| Err(builder.failed("restore the data", why.into(), remedy));
    if disk.filesystem != DATA_FILESYSTEM {
        let remedy = format!("Leave `filesystem` of the {} out", part.disk());
        return refused("data of a workload lie on ext4", &remedy);
    }
    if disk.device.is_some() && !disk.overwrite {
        let remedy = "Write overwrite = true beside `device` if what is on it may be destroyed";
        return refused("that would overwrite the block device that is named", remedy);
    }
    let gold = volume::gold(builder, wanted, disk.size)?;
    match (disk.iscsi, &disk.san, &disk.device) {
        (Some(initiator), Some(san), _) => on_san(builder, (san, disk.queue()), &gold, initiator),
        (Some(_), None, _) => in_file(builder, (part, wanted), (disk, Form::Raw), &gold),
        (None, _, Some(device)) => on_device(builder, part, device, &gold),
        (None, _, None) => in_file(builder, (part, wanted), (disk, disk.format.form()), &gold),
    }
}

/// The block device of this guest, which must be free, and is nobody else's until the claim is given up.
pub(super) fn own_device(builder: &GuestBuilder<'_>, part: Part, device: &Path) -> Result<(PathBuf, Claim)> {
    let device = PathBuf::from(for_guest(&device.to_string_lossy(), &builder.spec.name));
    match disks::free_device(part, &device) {
        Ok(exclusive) => {
            let claim = Claim::new(builder, &device.to_string_lossy(), Some(exclusive))?;
            Ok((device, claim))
        }
        Err(refusal) => Err(builder.refused(&format!("give the guest its {}", part.disk()), refusal)),
    }
}

/// A directory of the guest's own for a disk that is a file: in the one that is named for it, or where its layers are.
pub(super) fn folder(builder: &mut GuestBuilder<'_>, disk: &DataDisk) -> Result<PathBuf> {
    match &disk.directory {
        None => builder.aside(GuestBuilder::layers),
        Some(directory) => builder.directory_in(&directories::named(directory, None)),
    }
}

fn in_file(
    builder: &mut GuestBuilder<'_>,
    (part, wanted): (Part, Gold<'_>),
    (disk, form): (&DataDisk, Form),
    gold: &Disk,
) -> Result<Restored> {
    let folder = folder(builder, disk)?;
    let mut made = volume::restore(builder, (part, wanted.size), gold, form, &folder)?;
    if let Some(directory) = &disk.directory {
        made.what = format!("{} ({})", made.what, for_guest(&directory.to_string_lossy(), &builder.spec.name));
    }
    Ok(Restored { what: made.what, by: made.by, seconds: made.seconds, ..Restored::new(made.path) })
}

fn on_device(builder: &mut GuestBuilder<'_>, part: Part, device: &Path, gold: &Disk) -> Result<Restored> {
    let (device, claim) = own_device(builder, part, device)?;
    let there = std::fs::File::open(&device).and_then(|mut file| file.seek(SeekFrom::End(0))).unwrap_or_default();
    if there < gold.virtual_size {
        let why = volume::too_small(there, gold.virtual_size);
        return Err(builder.failed(&format!("restore the data onto {}", device.display()), why, "Name a larger one"));
    }
    let seconds = volume::overwrite(builder, gold, Onto::Device(&device))?;
    let what = format!("block device {} of the host", device.display());
    Ok(Restored { what, by: "written over it", seconds, claim: Some(claim), ..Restored::new(device) })
}

/// On a unit of the user's target.
fn on_san(
    builder: &mut GuestBuilder<'_>,
    (san, queue): (&San, Option<IscsiQueue>),
    gold: &Disk,
    initiator: Initiator,
) -> Result<Restored> {
    let guest = &builder.spec.name;
    let unit = Unit {
        portal: san.portal,
        target: for_guest(&san.target, guest),
        lun: san.lun,
        initiator: target::known_initiator(guest),
        queue,
    };
    let what = format!("unit {} of the iSCSI target {} at {}", san.lun, unit.target, san.portal);
    let claim = Some(Claim::new(builder, &what, None)?);
    let seconds = volume::overwrite(builder, gold, Onto::Unit(&unit))?;
    let by = "written over it";
    let mut restored = Restored { what, by, seconds, claim, on_host: None, ..Restored::new(PathBuf::new()) };
    restored.reached(unit, initiator);
    Ok(restored)
}
