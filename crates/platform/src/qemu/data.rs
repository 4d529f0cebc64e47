//! The guest's disks for data: new and empty, or with what its specification gives it, and the log on one of its own.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tare_image::{DATA_FILESYSTEM, Format, IscsiDisk};
use tare_model::guest::{DataPlace, GuestData, ParityRow};

use super::data_store::{self, Restored};
use super::disks::{Asked, Attached, Store};
use super::options::{Cache, DataDisk, DiskFormat, Initiator, Options};
use crate::builder::{GuestBuilder, Particulars};
use crate::data::Gold;
use crate::error::Result;
use crate::guest_mount;
use crate::machine::own::{self, Which};
use crate::machine::target;
use crate::machine::volume::{self, Claim, Part};
use crate::parity::row;

/// Bytes of a unit that no workload brings data for.
const EMPTY_UNIT: u64 = 64 << 20;

/// The disks for data as far as the guest's making needs them.
#[derive(Default)]
pub(super) struct Data {
    disks: Vec<Made>,
}

/// One of them, made.
struct Made {
    part: Part,
    disk: DataDisk,
    restored: Restored,
    /// Where it is mounted, and the type of its file system.
    mount: Option<String>,
    filesystem: String,
    /// Whether the workload's data are on it.
    holds: bool,
}

/// Makes the disks. `guest` is the guest's address, `folder` its own directory.
pub(super) fn make(builder: &mut GuestBuilder<'_>, options: &Options, folder: &Path, guest: IpAddr) -> Result<Data> {
    let given = builder.spec.data.clone();
    let mut disks: Vec<Made> = match (&given, &options.data_disk) {
        (None, None) => Vec::new(),
        (None, Some(disk)) => match disk.iscsi.is_some() && disk.san.is_none() {
            true => vec![empty_unit(builder, disk, folder)?],
            false => empty(builder, disk)?.into_iter().collect(),
        },
        (Some(given), written) => {
            filled(builder, (written.clone().unwrap_or_default(), options.log_disk.as_ref()), given)?
        }
    };
    serve(builder, &mut disks, folder, guest)?;
    Ok(Data { disks })
}

impl Data {
    /// QEMU's words for those that the guest does not reach by itself.
    pub(super) fn words(&self, bus: &str) -> Vec<String> {
        self.attached().flat_map(|attached| attached.words(bus)).collect()
    }

    /// What these ask for, each with the part that it is for.
    pub(super) fn asked(&self) -> Vec<(Part, Asked)> {
        let parts = self.disks.iter().filter(|made| made.restored.unit.is_none()).map(|made| made.part);
        parts.zip(self.attached().map(|attached| attached.asked())).collect()
    }

    fn attached(&self) -> impl Iterator<Item = Attached<'_>> {
        let by_qemu = self.disks.iter().filter(|made| made.restored.unit.is_none());
        by_qemu.map(|made| Attached::data(made.part, &made.disk, made.restored.store.clone()))
    }

    /// The disks for the agent to mount, where it is the first process.
    pub(super) fn virtio(&self) -> Vec<tare_image::DataDisk> {
        let mounted = self.disks.iter().filter(|made| made.restored.unit.is_none());
        let disk = |made: &Made| {
            let (mount, filesystem) = (made.mount.clone()?, made.filesystem.clone());
            Some(tare_image::DataDisk { device: format!("serial:{}", made.part.serial()), mount, filesystem })
        };
        mounted.filter_map(disk).collect()
    }

    /// Those for it to log in to.
    pub(super) fn iscsi(&self) -> Vec<IscsiDisk> {
        let disk = |made: &Made| {
            let (unit, mount) = made.restored.unit.clone().zip(made.mount.clone())?;
            let target::Unit { portal, target, lun, initiator, queue } = unit;
            Some(IscsiDisk { portal, target, lun, initiator, mount, filesystem: made.filesystem.clone(), queue })
        };
        self.disks.iter().filter_map(disk).collect()
    }

    /// Whether QEMU itself reaches a target on the lab's network.
    pub(super) fn by_qemu_in_lab(&self) -> bool {
        self.disks.iter().any(|made| matches!(made.restored.store, Store::Unit(_)) && made.disk.san.is_none())
    }

    /// Has an image of one's own mount them, reads back what was asked of them inside, and says where the guest finds its data.
    /// What is given is held as long as the guest stands.
    pub(super) fn place(
        self,
        builder: &mut GuestBuilder<'_>,
        own: bool,
        particulars: &mut Particulars,
    ) -> Result<Vec<Claim>> {
        for made in &self.disks {
            if own && (made.holds || made.disk.iscsi.is_some()) {
                made.mount_in_own(builder)?;
            }
            let row = made.queue(builder)?;
            row.into_iter().for_each(|row| builder.note(row));
        }
        let (mut data, mut log) = (None, None);
        for made in self.disks.iter().filter(|made| made.holds) {
            match made.part {
                Part::Data => data = Some(made.place()),
                Part::Log => log = Some(Box::new(made.place())),
            }
        }
        particulars.data = data.map(|place| DataPlace { log, ..place });
        Ok(self.disks.into_iter().filter_map(|made| made.restored.claim).collect())
    }
}

impl Made {
    /// Has an image of one's own mount it.
    fn mount_in_own(&self, builder: &GuestBuilder<'_>) -> Result<()> {
        let Some(at) = &self.mount else { return Ok(()) };
        let which = self.restored.unit.as_ref().map_or(Which::Serial(self.part), Which::Unit);
        own::mount(&*builder.link()?, which, at).map_err(|why| {
            let remedy = "The image needs a shell, ext4, and for iSCSI the package open-iscsi";
            builder.failed(&format!("mount the {} on {at}", self.part.disk()), why, remedy)
        })
    }

    /// The queue that was asked for, and the one that the guest has.
    fn queue(&self, builder: &GuestBuilder<'_>) -> Result<Option<ParityRow>> {
        const LIMIT: Duration = Duration::from_secs(20);
        let (Some(asked), Some(at)) = (self.disk.queue_depth, &self.mount) else { return Ok(None) };
        let granted = guest_mount::commands(&*builder.link()?, at, LIMIT);
        let resource = format!("queue depth of the {}", self.part.disk());
        Ok(Some(row(resource, asked.to_string(), granted, "queue_depth of the SCSI disk, in /sys of the guest")))
    }

    /// Where the guest finds what is on it.
    fn place(&self) -> DataPlace {
        DataPlace {
            path: self.mount.clone().unwrap_or_default(),
            storage: storage(&self.disk, &self.restored),
            on_host: self.restored.on_host.clone(),
            restore_s: self.restored.seconds,
            restored_by: self.restored.by.to_owned(),
            log: None,
        }
    }
}

/// A disk without data of a workload's.
fn empty(builder: &mut GuestBuilder<'_>, disk: &DataDisk) -> Result<Option<Made>> {
    let (store, claim) = match (&disk.device, disk.size) {
        (Some(device), _) => {
            let (device, claim) = data_store::own_device(builder, Part::Data, device)?;
            (device, Some(claim))
        }
        (None, Some(size)) => {
            let at = data_store::folder(builder, disk)?.join(Part::Data.name());
            let made = tare_image::blank(size.0, &disk.filesystem, &at, disk.format.into());
            made.map_err(|error| volume::image_error(builder, error))?;
            (at, None)
        }
        (None, None) => return Ok(None),
    };
    let (mount, filesystem) = (disk.mount(Part::Data).map(str::to_owned), disk.filesystem.clone());
    let restored = Restored { claim, ..Restored::new(store) };
    Ok(Some(Made { part: Part::Data, disk: disk.clone(), restored, mount, filesystem, holds: false }))
}

/// A unit of the lab's target without data of a workload's, so that a guest has the same disk whatever is run in it.
fn empty_unit(builder: &mut GuestBuilder<'_>, disk: &DataDisk, folder: &Path) -> Result<Made> {
    // Beside the sockets: it is small, and what the guest keeps on a disk is elsewhere.
    let at = folder.join("unit");
    let made = tare_image::blank(EMPTY_UNIT, DATA_FILESYSTEM, &at, Format::Raw);
    made.map_err(|error| volume::image_error(builder, error))?;
    Ok(Made { holds: false, ..with_data(Part::Data, disk, Restored::new(at)) })
}

/// The disk of a part with what it holds.
fn with_data(part: Part, disk: &DataDisk, restored: Restored) -> Made {
    let mount = disk.mount_with_data(part).to_owned();
    Made { part, disk: disk.clone(), restored, mount: Some(mount), filesystem: DATA_FILESYSTEM.into(), holds: true }
}

/// The disks with the data that the guest is given, and their log on one of its own where the options say that.
fn filled(
    builder: &mut GuestBuilder<'_>,
    (mut disk, log_disk): (DataDisk, Option<&DataDisk>),
    given: &GuestData,
) -> Result<Vec<Made>> {
    if given.shared && disk.device.is_none() && disk.iscsi.is_none() {
        // Nobody writes to it, so that a copy of its own would only fill the host's disk and page cache.
        disk.format = DiskFormat::Qcow2;
    }
    let log = log_disk.zip(given.log.as_ref());
    let size = if log.is_some() { given.size } else { given.with_log() };
    let restored = data_store::restored(builder, Part::Data, &disk, Gold { gold: &given.gold, size })?;
    let mut disks = vec![with_data(Part::Data, &disk, restored)];
    if let Some((disk, log)) = log {
        let gold = Gold { gold: &log.gold, size: log.size };
        disks.push(with_data(Part::Log, disk, data_store::restored(builder, Part::Log, disk, gold)?));
    }
    Ok(disks)
}

/// Has the lab's target serve the files of the disks that are units of it, to who logs in.
fn serve(builder: &mut GuestBuilder<'_>, disks: &mut [Made], folder: &Path, guest: IpAddr) -> Result<()> {
    let mut units: Vec<&mut Made> =
        disks.iter_mut().filter(|made| made.disk.iscsi.is_some() && made.disk.san.is_none()).collect();
    let Some((initiator, queue)) = units.first().and_then(|made| Some((made.disk.iscsi?, made.disk.queue()))) else {
        return Ok(());
    };
    let file = |made: &&mut Made| Some((made.part, made.restored.on_host.clone()?));
    let files: Vec<(Part, PathBuf)> = units.iter().filter_map(file).collect();
    let client = match initiator {
        Initiator::Guest => guest,
        Initiator::Hypervisor => builder.sut_address()?,
    };
    let served = builder.aside(|builder| target::serve(builder, folder, &files, client, queue))?;
    for (made, unit) in units.iter_mut().zip(served) {
        made.restored.what = format!("unit {} of the lab's iSCSI target (tgt), a {}", unit.lun, made.restored.what);
        made.restored.reached(unit, initiator);
    }
    Ok(())
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
