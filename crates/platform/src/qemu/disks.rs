//! The guest's disks: what they come from, the clones that it writes to, and how they are attached.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tare_model::Refusal;

use super::command::escaped;
use super::network::on;
use super::options::{Aio, Cache, DataDisk, DiskFormat, Initiator, Options};
use super::qmp::DiskMade;
use super::{directories, disk_probe};
use crate::machine::target::{self, Unit};
use crate::machine::volume::Part;
use crate::numbered::for_number;
use crate::program::find;

impl Aio {
    /// As QEMU names it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Native => "native",
            Self::IoUring => "io_uring",
        }
    }
}

/// What is missing on this host for the disks, checked without running QEMU.
pub(super) fn look(options: &Options) -> Result<(), Refusal> {
    let base = options.image.look()?;
    let makes = |data: &DataDisk| data.size.is_some() || data.overwrite || data.format == DiskFormat::Qcow2;
    let makes = options.disks().any(|(_, disk)| makes(disk));
    if (base || makes) && find("qemu-img").is_none() {
        return Err(Refusal::new("clones of disks need qemu-img, and it is not here", "apt-get install qemu-utils"));
    }
    directories::look(options)?;
    for (part, disk) in options.disks() {
        if find("mke2fs").is_none() {
            return Err(Refusal::new("data disks need mke2fs, and it is not here", "apt-get install e2fsprogs"));
        }
        iscsi_refusal(options, disk)?;
        // That of the first guest; those of others are looked at where it is known how many there are.
        let device = disk.device.as_deref().map(|device| device_of(device, 1));
        device.map_or(Ok(()), |device| free_device(part, &device).map(drop))?;
    }
    Ok(())
}

/// The block device, or directory, of the guest with this number.
pub(super) fn device_of(named: &Path, number: u32) -> PathBuf {
    PathBuf::from(for_number(&named.to_string_lossy(), number))
}

/// What is missing in this host's QEMU for the disks. QEMU is run to find out.
pub(super) fn check(options: &Options) -> Result<(), Refusal> {
    if options.image.base()?.is_some() {
        disk_probe::reads_files(options, &directories::usual(), options.disk.cache, options.disk.aio)?;
    }
    for (_, disk) in options.disks() {
        if disk.iscsi.is_some_and(|initiator| initiator == Initiator::Hypervisor || disk.san.is_some()) {
            disk_probe::speaks_iscsi(&options.program, options.machine.name())?;
        }
        let place = disk.directory.as_deref().map_or_else(directories::usual, |directory| device_of(directory, 1));
        disk_probe::reads_files(options, &place, disk.cache, disk.aio)?;
    }
    Ok(())
}

/// What is missing on this host for a disk on an iSCSI target, checked without running QEMU.
fn iscsi_refusal(options: &Options, data: &DataDisk) -> Result<(), Refusal> {
    let Some(initiator) = data.iscsi else { return Ok(()) };
    if let (None, Some(refusal)) = (&data.san, target::refusal()) {
        return Err(refusal);
    }
    if initiator == Initiator::Hypervisor {
        return Ok(());
    }
    target::guest_refusal(&options.image, options.kernel.as_deref())
}

/// Whether a block device is there and nobody uses it. The kernel itself is asked: it grants exclusive use only of what
/// is not mounted anywhere, no swap and no part of another device. It stays exclusive as long as what is given is open.
pub(super) fn free_device(part: Part, path: &Path) -> Result<File, Refusal> {
    let unmet = |why: &str, remedy: &str| Refusal::new(format!("the {} {} {why}", part.disk(), path.display()), remedy);
    let seen = path.metadata().map_err(|error| unmet(&format!("is not there: {error}"), "Check its path"))?;
    if !seen.file_type().is_block_device() {
        return Err(unmet("is no block device", "For a disk in a file write a `size` in place of `device`"));
    }
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let opened = OpenOptions::new().read(true).write(true).custom_flags(exclusive).open(path);
    opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::ResourceBusy => unmet(
            "is in use (mounted, swap, or part of another device)",
            "Unmount it: the guest would destroy what is there",
        ),
        _ => unmet(&format!("cannot be opened: {error}"), "Run as root"),
    })
}

/// What a disk is to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Store {
    /// A file or block device.
    Path(PathBuf),
    /// A unit that QEMU logs in to.
    Unit(Unit),
}

/// What is asked of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub made: DiskMade,
    /// How its file is read and written; none where it is no file.
    pub aio: Option<Aio>,
}

/// How one disk is attached.
pub(super) struct Attached<'a> {
    /// Its name within QEMU.
    pub id: &'a str,
    pub store: Store,
    /// Its serial number, by which the guest finds it.
    pub serial: Option<&'a str>,
    pub format: DiskFormat,
    pub cache: Cache,
    pub aio: Aio,
    pub iothread: bool,
    /// Whether the guest may only read it.
    pub read_only: bool,
    /// Whether the machine boots from it.
    pub boots: bool,
}

impl<'a> Attached<'a> {
    /// The root disk's clone.
    pub(super) fn root(options: &Options, clone: PathBuf) -> Self {
        let disk = options.disk;
        let (format, cache, aio, iothread) = (disk.clone, disk.cache, disk.aio, disk.iothread);
        let store = Store::Path(clone);
        Self { id: "root", store, serial: None, format, cache, aio, iothread, read_only: false, boots: true }
    }

    /// The disk for a part of the data.
    pub(super) fn data(part: Part, data: &DataDisk, store: Store) -> Self {
        let format = if data.device.is_some() { DiskFormat::Raw } else { data.format };
        let (cache, aio, iothread) = (data.cache, data.aio, data.iothread);
        let serial = Some(part.serial());
        Self { id: part.name(), store, serial, format, cache, aio, iothread, read_only: false, boots: false }
    }

    /// What sets up an image of one's own.
    pub(super) fn seed(path: PathBuf) -> Attached<'static> {
        let (cache, aio) = (Cache::Writeback, Aio::Threads);
        Attached {
            id: "seed",
            store: Store::Path(path),
            serial: None,
            format: DiskFormat::Raw,
            cache,
            aio,
            iothread: false,
            read_only: true,
            boots: false,
        }
    }

    /// What is asked of it, to be compared with what QEMU says that it has.
    pub(super) fn asked(&self) -> Asked {
        let made = DiskMade {
            node: self.id.to_owned(),
            driver: self.format.name().to_owned(),
            direct: self.cache == Cache::None,
            no_flush: self.cache == Cache::Unsafe,
            write_back: self.cache != Cache::Writethrough,
        };
        let aio = matches!(self.store, Store::Path(_)).then_some(self.aio);
        Asked { made, aio }
    }

    /// QEMU's words for it. The formats are always said: QEMU guesses none.
    pub(super) fn words(&self, bus: &str) -> Vec<String> {
        let id = self.id;
        let format = self.format.name();
        let (direct, ignore) = (on(self.cache == Cache::None), on(self.cache == Cache::Unsafe));
        let read_only = on(self.read_only);
        let node = format!(
            "driver={format},node-name={id},read-only={read_only},cache.direct={direct},cache.no-flush={ignore},{}",
            self.file_words()
        );
        let mut device = format!("virtio-blk-{bus},drive={id},write-cache={}", on(self.cache != Cache::Writethrough));
        let mut words = Vec::new();
        if self.iothread {
            words.extend(["-object".to_owned(), format!("iothread,id={id}-io")]);
            device.push_str(&format!(",iothread={id}-io"));
        }
        if self.boots {
            device.push_str(",bootindex=1");
        }
        if let Some(serial) = self.serial {
            device.push_str(&format!(",serial={serial}"));
        }
        words.extend(["-blockdev", &node, "-device", &device].map(str::to_owned));
        words
    }

    /// What is below the format.
    fn file_words(&self) -> String {
        let path = match &self.store {
            Store::Path(path) => path,
            Store::Unit(unit) => return unit.words(),
        };
        let is_device = path.metadata().is_ok_and(|seen| seen.file_type().is_block_device());
        let driver = if is_device { "host_device" } else { "file" };
        format!("file.driver={driver},file.filename={},file.aio={}", escaped(path), self.aio.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_free_block_device_is_passed_through() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let said = |path: &Path| free_device(Part::Data, path).unwrap_err().reason;
        assert!(said(file.path()).contains("no block device"));
        assert!(said(Path::new("/dev/null")).contains("no block device"));
        assert!(said(Path::new("/dev/no-such")).contains("not there"));
    }

    #[test]
    fn a_unit_is_named_to_qemu() {
        let unit = Unit {
            portal: "198.18.1.0:3260".parse().unwrap(),
            target: "iqn.x:g".into(),
            lun: 1,
            initiator: "iqn.x:i".into(),
            queue: None,
        };
        let words = Attached::data(Part::Data, &DataDisk::default(), Store::Unit(unit)).words("pci").join(" ");
        assert!(words.contains("file.driver=iscsi,file.transport=tcp,file.portal=198.18.1.0:3260"), "{words}");
        assert!(words.contains("file.lun=1") && words.contains("serial=tare-data"), "{words}");
        let log = Attached::data(Part::Log, &DataDisk::default(), Store::Path("/x".into())).words("pci").join(" ");
        assert!(log.contains("node-name=log") && log.contains("drive=log") && log.contains("serial=tare-log"), "{log}");
    }

    #[test]
    fn settings_of_a_disk_reach_it() {
        let disk = |cache, aio| {
            let path = PathBuf::from("/x,y");
            let attached = Attached { cache, aio, iothread: true, ..Attached::seed(path) };
            Attached { read_only: false, ..attached }.words("pci").join(" ")
        };
        let none = disk(Cache::None, Aio::IoUring);
        assert!(none.contains("cache.direct=on") && none.contains("aio=io_uring") && none.contains("/x,,y"), "{none}");
        assert!(none.contains("iothread,id=seed-io") && none.contains(",iothread=seed-io"), "{none}");
        assert!(disk(Cache::Writethrough, Aio::Threads).contains("write-cache=off"));
        assert!(disk(Cache::Unsafe, Aio::Threads).contains("no-flush=on"));
        assert!(disk(Cache::Writeback, Aio::Threads).contains("cache.direct=off,cache.no-flush=off"));
    }
}
