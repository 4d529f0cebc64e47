//! The data of a domain's guest: a virtio disk, or a unit of a target that the guest logs in to.

use std::net::IpAddr;
use std::path::Path;

use tare_image::{DATA_FILESYSTEM, DataDisk, IscsiDisk};
use tare_model::guest::DataPlace;

use super::machine::DiskFile;
use super::options::{Cache, DiskFormat, Io, Options};
use crate::builder::GuestBuilder;
use crate::data::Gold;
use crate::error::Result;
use crate::machine::own::{self, Which};
use crate::machine::target::{self, Unit};
use crate::machine::volume::{self, Part};

/// What the domain's one disk for data holds.
const PART: Part = Part::Data;

/// The data as far as the domain needs them; nothing without any.
#[derive(Default)]
pub(super) struct Data {
    /// The domain's disk.
    pub file: Option<DiskFile>,
    /// The disk for the agent to mount, where the agent is the first process.
    pub disk: Option<DataDisk>,
    pub iscsi: Option<IscsiDisk>,
    place: Option<DataPlace>,
    /// Whether the guest has a kernel of its own and is asked to mount.
    own: bool,
    unit: Option<Unit>,
}

/// Restores the data. `folder` is the guest's own directory, `guest` its address.
pub(super) fn make(builder: &mut GuestBuilder<'_>, options: &Options, folder: &Path, guest: IpAddr) -> Result<Data> {
    let Some(given) = builder.spec.data.clone() else { return Ok(Data::default()) };
    let own = options.image.is_own();
    // The log lies with the data: this platform gives it no disk of its own.
    let whole = Gold { gold: &given.gold, size: given.with_log() };
    let gold = volume::gold(builder, whole, None)?;
    let format = match options.data_disk.format {
        // Nobody writes to what is shared: a copy of its own would only fill the host's disk and page cache.
        DiskFormat::Raw if given.shared && options.data_disk.iscsi.is_none() => DiskFormat::Qcow2,
        written => written,
    };
    let layers = builder.aside(GuestBuilder::layers)?;
    let made = volume::restore(builder, (PART, whole.size), &gold, format.form(), &layers)?;
    let place = |storage: String| {
        let (path, on_host, restored_by) = (PART.mount().to_owned(), Some(made.path.clone()), made.by.to_owned());
        Some(DataPlace { path, storage, on_host, restore_s: made.seconds, restored_by, log: None })
    };
    let (mount, filesystem) = (PART.mount().to_owned(), DATA_FILESYSTEM.to_owned());
    if options.data_disk.iscsi.is_some() {
        let files = [(PART, made.path.clone())];
        let units = builder.aside(|builder| target::serve(builder, folder, &files, guest, None))?;
        let storage = format!(
            "unit of the lab's iSCSI target (tgt), a {}, logged in to by the guest over its own network card",
            made.what
        );
        let unit = units.into_iter().next();
        let iscsi = unit.clone().filter(|_| !own).map(|Unit { portal, target, lun, initiator, queue }| IscsiDisk {
            portal,
            target,
            lun,
            initiator,
            mount,
            filesystem,
            queue,
        });
        return Ok(Data { iscsi, place: place(storage), own, unit, ..Data::default() });
    }
    let storage = format!("virtio-blk, {}{}", made.what, set(options));
    let place = place(storage);
    let file = DiskFile { path: made.path, format: format.name(), read_only: false, serial: Some(PART.serial()) };
    let disk = (!own).then(|| DataDisk { device: format!("serial:{}", PART.serial()), mount, filesystem });
    Ok(Data { file: Some(file), disk, place, own, ..Data::default() })
}

/// What is set of the disk, for people.
fn set(options: &Options) -> String {
    let cache = options.disk.cache.map_or("libvirt's own choice", |cache| match cache {
        Cache::None => "none",
        Cache::Writeback => "writeback",
        Cache::Writethrough => "writethrough",
        Cache::Directsync => "directsync",
        Cache::Unsafe => "unsafe",
    });
    let io = options.disk.io.map_or("libvirt's own choice", |io| match io {
        Io::Threads => "threads",
        Io::Native => "native",
        Io::Uring => "io_uring",
    });
    format!(", cache={cache}, io={io}")
}

impl Data {
    /// Has an image of the user's mount them, and says where they are.
    pub(super) fn place(self, builder: &GuestBuilder<'_>) -> Result<Option<DataPlace>> {
        if self.own && self.place.is_some() {
            let which = self.unit.as_ref().map_or(Which::Serial(PART), Which::Unit);
            own::mount(&*builder.link()?, which, PART.mount()).map_err(|why| {
                let remedy = "The image needs a shell, ext4, and for iSCSI the package open-iscsi";
                builder.failed("mount the data disk", why, remedy)
            })?;
        }
        Ok(self.place)
    }
}
