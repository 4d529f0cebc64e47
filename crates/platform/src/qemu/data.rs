//! The guest's data disk: a new and empty one, or one with the data that its specification gives it.

use std::io::{Seek, SeekFrom};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tare_image::{DATA_FILESYSTEM, Disk, Format, IscsiDisk};
use tare_model::guest::{DataPlace, GuestData};

use super::disks::{self, Asked, Attached, Store};
use super::options::{Cache, DataDisk, DiskFormat, Initiator, Options};
use crate::builder::{GuestBuilder, Particulars};
use crate::error::Result;
use crate::machine::own::{self, Which};
use crate::machine::target::{self, Unit};
use crate::machine::volume::{self, Claim, Form, MOUNT, Onto, SERIAL, for_guest};

/// Bytes of a unit that no workload brings data for.
const EMPTY_UNIT: u64 = 64 << 20;

/// The data disk as far as the guest's making needs it.
#[derive(Default)]
pub(super) struct Data {
    /// QEMU's words for it; none where the guest reaches it by itself.
    pub words: Vec<String>,
    /// What these ask for.
    pub asked: Option<Asked>,
    /// The disk for the agent to mount, where the agent is the first process.
    pub disk: Option<tare_image::DataDisk>,
    pub iscsi: Option<IscsiDisk>,
    /// Whether QEMU itself reaches a target on the lab's network.
    by_qemu_in_lab: bool,
    /// Where the guest finds what it was given.
    place: Option<DataPlace>,
    /// Where it is mounted and what it is, for an image of one's own, whose agent is asked to.
    own: Option<(String, Option<Unit>)>,
    claim: Option<Claim>,
}

/// Makes the disk. `guest` is the guest's address, `folder` its own directory.
pub(super) fn make(builder: &mut GuestBuilder<'_>, options: &Options, folder: &Path, guest: IpAddr) -> Result<Data> {
    let given = builder.spec.data.clone();
    let mut data = match (&given, &options.data_disk) {
        (None, None) => Data::default(),
        (None, Some(disk)) => match disk.iscsi.filter(|_| disk.san.is_none()) {
            Some(initiator) => empty_unit(builder, options, disk, initiator, folder, guest)?,
            None => empty(builder, options, disk)?,
        },
        (Some(given), written) => {
            let mut disk = written.clone().unwrap_or_default();
            if given.shared && disk.device.is_none() && disk.iscsi.is_none() {
                // Nobody writes to it, so that a copy of its own would only fill the host's disk and page cache.
                disk.format = DiskFormat::Qcow2;
            }
            filled(builder, options, &disk, given, folder, guest)?
        }
    };
    if options.image.is_own() {
        // Its own kernel boots, and nobody tells it.
        (data.disk, data.iscsi) = (None, None);
    }
    Ok(data)
}

impl Data {
    /// Whether QEMU itself reaches a target on the lab's network.
    pub(super) fn by_qemu_in_lab(&self) -> bool {
        self.by_qemu_in_lab
    }

    /// Has an image of one's own mount it, and says where the guest finds its data.
    pub(super) fn place(self, builder: &GuestBuilder<'_>, particulars: &mut Particulars) -> Result<Option<Claim>> {
        if let Some((at, unit)) = &self.own {
            let which = unit.as_ref().map_or(Which::Serial, Which::Unit);
            let mounted = builder.link().map(|link| own::mount(&link, which, at))?;
            mounted.map_err(|why| {
                let remedy = "The image needs a shell, ext4, and for iSCSI the package open-iscsi";
                builder.failed(&format!("mount the data disk on {at}"), why, remedy)
            })?;
        }
        particulars.data = self.place;
        Ok(self.claim)
    }
}

/// A disk without data of a workload's.
fn empty(builder: &mut GuestBuilder<'_>, options: &Options, disk: &DataDisk) -> Result<Data> {
    let (store, claim) = match (&disk.device, disk.size) {
        (Some(device), _) => {
            let (device, claim) = own_device(builder, device)?;
            (device, Some(claim))
        }
        (None, Some(size)) => {
            let at = builder.layers()?.join("data");
            let made = tare_image::blank(size.0, &disk.filesystem, &at, disk.format.into());
            made.map_err(|error| volume::image_error(builder, error))?;
            (at, None)
        }
        (None, None) => return Ok(Data::default()),
    };
    let attached = Attached::data(disk, Store::Path(store));
    let (words, asked) = (attached.words(options.machine.bus()), Some(attached.asked()));
    let mounted = disk.mount().map(|mount| agent_disk(mount, &disk.filesystem));
    Ok(Data { words, asked, disk: mounted, claim, ..Data::default() })
}

/// A unit of the lab's target without data of a workload's, so that a guest has the same disk whatever is run in it.
fn empty_unit(
    builder: &mut GuestBuilder<'_>,
    options: &Options,
    disk: &DataDisk,
    initiator: Initiator,
    folder: &Path,
    guest: IpAddr,
) -> Result<Data> {
    // Beside the sockets: it is small, and what the guest keeps on a disk is elsewhere.
    let at = folder.join("unit");
    let made = tare_image::blank(EMPTY_UNIT, DATA_FILESYSTEM, &at, Format::Raw);
    made.map_err(|error| volume::image_error(builder, error))?;
    let unit = serve(builder, &at, initiator, folder, guest)?;
    let (store, unit) = reached(unit, initiator);
    let (what, by) = (String::new(), "made anew");
    let made = Restored { store, unit, what, on_host: Some(at), by, seconds: 0.0, claim: None };
    Ok(Data { place: None, ..attached(options, disk, made) })
}

fn agent_disk(mount: &str, filesystem: &str) -> tare_image::DataDisk {
    let (mount, filesystem) = (mount.to_owned(), filesystem.to_owned());
    tare_image::DataDisk { device: format!("serial:{SERIAL}"), mount, filesystem }
}

/// The block device of this guest, which must be free, and is nobody else's until the claim is given up.
fn own_device(builder: &GuestBuilder<'_>, device: &Path) -> Result<(PathBuf, Claim)> {
    let device = PathBuf::from(for_guest(&device.to_string_lossy(), &builder.spec.name));
    match disks::free_device(&device) {
        Ok(exclusive) => {
            let claim = Claim::new(builder, &device.to_string_lossy(), Some(exclusive))?;
            Ok((device, claim))
        }
        Err(refusal) => Err(builder.refused("give the guest its data disk", refusal)),
    }
}

/// A restored disk, before it is attached.
struct Restored {
    store: Store,
    /// The unit that the guest itself logs in to.
    unit: Option<Unit>,
    what: String,
    /// The file or device of the host's that it is.
    on_host: Option<PathBuf>,
    by: &'static str,
    seconds: f64,
    claim: Option<Claim>,
}

/// A disk with the data that the guest is given.
fn filled(
    builder: &mut GuestBuilder<'_>,
    options: &Options,
    disk: &DataDisk,
    given: &GuestData,
    folder: &Path,
    guest: IpAddr,
) -> Result<Data> {
    let refused = |why: &str, remedy: &str| Err(builder.failed("restore the data", why.into(), remedy));
    if disk.filesystem != DATA_FILESYSTEM {
        return refused("data of a workload lie on ext4", "Leave `filesystem` of the data disk out");
    }
    if disk.device.is_some() && !disk.overwrite {
        let remedy = "Write overwrite = true beside `device` if what is on it may be destroyed";
        return refused("that would overwrite the block device that is named", remedy);
    }
    let gold = volume::gold(builder, given, disk.size)?;
    let restored = match (disk.iscsi, &disk.device) {
        (Some(initiator), _) => on_target(builder, disk, &gold, initiator, folder, guest)?,
        (None, Some(device)) => on_device(builder, device, &gold)?,
        (None, None) => in_file(builder, disk, &gold)?,
    };
    Ok(attached(options, disk, restored))
}

/// How a restored disk comes to the guest.
fn attached(options: &Options, disk: &DataDisk, restored: Restored) -> Data {
    let mount = disk.mount.clone().unwrap_or_else(|| MOUNT.to_owned());
    let storage = storage(disk, &restored);
    let (words, asked, mounted) = match &restored.unit {
        Some(_) => (Vec::new(), None, None),
        None => {
            let attached = Attached::data(disk, restored.store.clone());
            let words = attached.words(options.machine.bus());
            (words, Some(attached.asked()), Some(agent_disk(&mount, DATA_FILESYSTEM)))
        }
    };
    let iscsi = restored.unit.clone().map(|unit| IscsiDisk {
        portal: unit.portal,
        target: unit.target,
        lun: unit.lun,
        initiator: unit.initiator,
        mount: mount.clone(),
        filesystem: DATA_FILESYSTEM.into(),
    });
    let place = DataPlace {
        path: mount.clone(),
        storage,
        on_host: restored.on_host,
        restore_s: restored.seconds,
        restored_by: restored.by.to_owned(),
    };
    Data {
        words,
        asked,
        disk: mounted,
        iscsi,
        by_qemu_in_lab: matches!(restored.store, Store::Unit(_)) && disk.san.is_none(),
        place: Some(place),
        own: options.image.is_own().then_some((mount, restored.unit)),
        claim: restored.claim,
    }
}

fn in_file(builder: &mut GuestBuilder<'_>, disk: &DataDisk, gold: &Disk) -> Result<Restored> {
    let made = volume::restore(builder, gold, disk.format.form())?;
    let (on_host, store, what) = (Some(made.path.clone()), Store::Path(made.path), made.what);
    Ok(Restored { store, unit: None, what, on_host, by: made.by, seconds: made.seconds, claim: None })
}

fn on_device(builder: &mut GuestBuilder<'_>, device: &Path, gold: &Disk) -> Result<Restored> {
    let (device, claim) = own_device(builder, device)?;
    let there = std::fs::File::open(&device).and_then(|mut file| file.seek(SeekFrom::End(0))).unwrap_or_default();
    if there < gold.virtual_size {
        let why = volume::too_small(there, gold.virtual_size);
        return Err(builder.failed(&format!("restore the data onto {}", device.display()), why, "Name a larger one"));
    }
    let seconds = volume::overwrite(builder, gold, Onto::Device(&device))?;
    let what = format!("block device {} of the host", device.display());
    let (on_host, store, by) = (Some(device.clone()), Store::Path(device), "written over it");
    Ok(Restored { store, unit: None, what, on_host, by, seconds, claim: Some(claim) })
}

/// On the lab's target or the user's.
fn on_target(
    builder: &mut GuestBuilder<'_>,
    disk: &DataDisk,
    gold: &Disk,
    initiator: Initiator,
    folder: &Path,
    guest: IpAddr,
) -> Result<Restored> {
    let (unit, what, on_host, by, seconds, claim) = match &disk.san {
        None => {
            let made = volume::restore(builder, gold, Form::Raw)?;
            let unit = serve(builder, &made.path, initiator, folder, guest)?;
            let what = format!("unit of the lab's iSCSI target (tgt), a {}", made.what);
            (unit, what, Some(made.path), made.by, made.seconds, None)
        }
        Some(san) => {
            let (target, initiator) =
                (for_guest(&san.target, &builder.spec.name), target::known_initiator(&builder.spec.name));
            let unit = Unit { portal: san.portal, target, lun: san.lun, initiator };
            let what = format!("unit {} of the iSCSI target {} at {}", san.lun, unit.target, san.portal);
            let claim = Claim::new(builder, &what, None)?;
            let seconds = volume::overwrite(builder, gold, Onto::Unit(&unit))?;
            (unit, what, None, "written over it", seconds, Some(claim))
        }
    };
    let (store, own) = reached(unit, initiator);
    Ok(Restored { store, unit: own, what, on_host, by, seconds, claim })
}

/// Has the lab's target serve a file to who logs in.
fn serve(
    builder: &mut GuestBuilder<'_>,
    file: &Path,
    initiator: Initiator,
    folder: &Path,
    guest: IpAddr,
) -> Result<Unit> {
    let client = match initiator {
        Initiator::Guest => guest,
        Initiator::Hypervisor => builder.sut_address()?,
    };
    builder.aside(|builder| target::serve(builder, folder, file, client))
}

/// The disk that QEMU has of a unit, or the unit that the guest itself has.
fn reached(unit: Unit, initiator: Initiator) -> (Store, Option<Unit>) {
    match initiator {
        Initiator::Hypervisor => (Store::Unit(unit), None),
        Initiator::Guest => (Store::Path(PathBuf::new()), Some(unit)),
    }
}

/// What the data lie on, for people.
fn storage(disk: &DataDisk, restored: &Restored) -> String {
    let cache = match disk.cache {
        Cache::None => "none",
        Cache::Writeback => "writeback",
        Cache::Writethrough => "writethrough",
        Cache::Unsafe => "unsafe",
    };
    let own = if disk.iothread { ", an I/O thread of its own" } else { "" };
    match (&restored.unit, &restored.store) {
        (Some(_), _) => format!("{}, logged in to by the guest over its own network card", restored.what),
        (None, Store::Unit(_)) => {
            format!("virtio-blk, {}, logged in to by QEMU, cache={cache}{own}", restored.what)
        }
        (None, Store::Path(_)) => {
            format!("virtio-blk, {}, cache={cache}, aio={}{own}", restored.what, disk.aio.name())
        }
    }
}
