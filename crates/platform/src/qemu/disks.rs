//! The guest's disks: what they come from, the clones that it writes to, and how they are attached.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tare_image::{DebianSpec, Disk, Format, ImageError, Kernel};

use super::Lack;
use super::command::escaped;
use super::network::on;
use super::options::{Aio, Cache, DataDisk, DebianImage, DiskFormat, Image, Initiator, Options};
use crate::machine::target::{self, Unit};
use crate::machine::volume::{SERIAL, for_guest};
use crate::program::{find, run};

/// How long QEMU may take to tell what it has.
const ASKED: Duration = Duration::from_secs(10);

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

impl From<DiskFormat> for Format {
    fn from(format: DiskFormat) -> Self {
        match format {
            DiskFormat::Raw => Self::Raw,
            DiskFormat::Qcow2 => Self::Qcow2,
        }
    }
}

impl From<ImageError> for Lack {
    fn from(error: ImageError) -> Self {
        Self::new(format!("cannot {}: {}", error.tried, error.why), error.remedy)
    }
}

impl From<&DebianImage> for DebianSpec {
    fn from(image: &DebianImage) -> Self {
        Self { suite: image.suite.clone(), packages: image.packages.clone() }
    }
}

/// The image that root disks are cloned from; none where the root is the host's.
///
/// # Errors
/// When it is not there, or not what it is said to be.
pub(super) fn base(image: &Image) -> Result<Option<Disk>, Lack> {
    match image {
        Image::Host => Ok(None),
        Image::File(file) => Ok(Some(tare_image::inspect(&file.path, file.format.into())?)),
        Image::Debian(debian) => match tare_image::debian_find(&debian.into())? {
            Some(disk) => Ok(Some(disk)),
            None => {
                let with = debian.packages.join(",");
                let with = if with.is_empty() { String::new() } else { format!(" --packages {with}") };
                Err(Lack::new("this Debian image is not built yet", format!("Run `tare image build debian{with}`")))
            }
        },
    }
}

/// What this host lacks for the disks.
pub(super) fn lack(options: &Options) -> Result<(), Lack> {
    let base = base(&options.image)?;
    let data = options.data_disk.as_ref();
    let makes = data.is_some_and(|data| data.size.is_some() || data.overwrite || data.format == DiskFormat::Qcow2);
    if (base.is_some() || makes) && find("qemu-img").is_none() {
        return Err(Lack::new("clones of disks need qemu-img, and it is not here", "apt-get install qemu-utils"));
    }
    let Some(data) = data else { return Ok(()) };
    if find("mke2fs").is_none() {
        return Err(Lack::new("data disks need mke2fs, and it is not here", "apt-get install e2fsprogs"));
    }
    iscsi_lack(options, data)?;
    // One with a guest's name in it is looked at when the guest is made.
    let device = data.device.as_deref().filter(|path| for_guest(&path.to_string_lossy(), "") == path.to_string_lossy());
    device.map_or(Ok(()), |device| free_device(device).map(drop))
}

/// What this host lacks for a disk on an iSCSI target.
fn iscsi_lack(options: &Options, data: &DataDisk) -> Result<(), Lack> {
    let Some(initiator) = data.iscsi else { return Ok(()) };
    if let (None, Some((reason, remedy))) = (&data.san, target::lack()) {
        return Err(Lack::new(reason, remedy));
    }
    if initiator == Initiator::Hypervisor || data.san.is_some() {
        speaks_iscsi(&options.program, options.machine.name())?;
    }
    if initiator == Initiator::Hypervisor {
        return Ok(());
    }
    if options.image == Image::Host && find("iscsistart").is_none() {
        let reason = "the guest logs in with iscsistart, and the host's root, which is the guest's, has none";
        return Err(Lack::new(reason, "apt-get install open-iscsi"));
    }
    match options.image {
        Image::File(_) => Ok(()),
        _ => Ok(Kernel::find(options.kernel.as_deref())?.check_iscsi()?),
    }
}

/// Whether QEMU has its own initiator: distributions have it in a package of its own.
fn speaks_iscsi(program: &str, machine: &str) -> Result<(), Lack> {
    let remedy = "Debian and Ubuntu have it in the package qemu-block-extra";
    let Some(path) = find(program) else { return Err(Lack::new(format!("there is no {program}"), remedy)) };
    let mut command = Command::new(path);
    // It is to fail: nobody serves a target on this port. What it fails at is told.
    let node = "driver=iscsi,node-name=x,transport=tcp,portal=127.0.0.1:1,target=iqn.2026-01.invalid:none,lun=0";
    command.args(["-M", machine, "-nodefaults", "-display", "none", "-S", "-blockdev", node]);
    match run(&mut command, ASKED) {
        Ok(ran)
            if !["unknown driver", "does not accept"].iter().any(|word| ran.output.to_lowercase().contains(word)) =>
        {
            Ok(())
        }
        Ok(_) => Err(Lack::new(format!("{program} has no initiator for iSCSI"), remedy)),
        Err(error) => Err(Lack::new(format!("{program} does not tell whether it has an initiator: {error}"), remedy)),
    }
}

/// Whether a block device is there and nobody uses it. The kernel itself is asked: it grants exclusive use only of what
/// is not mounted anywhere, no swap and no part of another device. It stays exclusive as long as what is given is open.
pub(super) fn free_device(path: &Path) -> Result<File, Lack> {
    let lack = |why: &str, remedy: &str| Lack::new(format!("the data disk {} {why}", path.display()), remedy);
    let seen = path.metadata().map_err(|error| lack(&format!("is not there: {error}"), "Check its path"))?;
    if !seen.file_type().is_block_device() {
        return Err(lack("is no block device", "For a disk in a file write a `size` in place of `device`"));
    }
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let opened = OpenOptions::new().read(true).write(true).custom_flags(exclusive).open(path);
    opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::ResourceBusy => lack(
            "is in use (mounted, swap, or part of another device)",
            "Unmount it: the guest would destroy what is there",
        ),
        _ => lack(&format!("cannot be opened: {error}"), "Run as root"),
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

    /// The data disk.
    pub(super) fn data(data: &DataDisk, store: Store) -> Self {
        let format = if data.device.is_some() { DiskFormat::Raw } else { data.format };
        let (cache, aio, iothread) = (data.cache, data.aio, data.iothread);
        let serial = Some(SERIAL);
        Self { id: "data", store, serial, format, cache, aio, iothread, read_only: false, boots: false }
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

    /// QEMU's words for it. The formats are always said: QEMU guesses none.
    pub(super) fn words(&self, bus: &str) -> Vec<String> {
        let id = self.id;
        let format = if self.format == DiskFormat::Raw { "raw" } else { "qcow2" };
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
            Store::Unit(unit) => {
                let Unit { portal, target, lun, initiator } = unit;
                return format!(
                    "file.driver=iscsi,file.transport=tcp,file.portal={portal},file.target={target},file.lun={lun},\
                     file.initiator-name={initiator}"
                );
            }
        };
        let is_device = path.metadata().is_ok_and(|seen| seen.file_type().is_block_device());
        let driver = if is_device { "host_device" } else { "file" };
        format!("file.driver={driver},file.filename={},file.aio={}", escaped(path), self.aio.name())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_free_block_device_is_passed_through() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let said = |path: &Path| free_device(path).unwrap_err().reason;
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
        };
        let words = Attached::data(&DataDisk::default(), Store::Unit(unit)).words("pci").join(" ");
        assert!(words.contains("file.driver=iscsi,file.transport=tcp,file.portal=198.18.1.0:3260"), "{words}");
        assert!(words.contains("file.lun=1") && words.contains("serial=tare-data"), "{words}");
    }

    #[test]
    fn an_initiator_that_is_not_there_is_missed() {
        // A program that knows no such driver; and one that does not run.
        let said = speaks_iscsi("false", "q35");
        assert!(said.is_ok(), "what it cannot tell is told when the guest is made: {said:?}");
        assert!(speaks_iscsi("no-such-qemu", "q35").unwrap_err().reason.contains("no-such-qemu"));
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
