//! The guest's disks: what they come from, the clones that it writes to, and how they are attached.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tare_image::{DebianSpec, Disk, Format, ImageError};

use super::Lack;
use super::command::escaped;
use super::network::on;
use super::options::{Aio, Cache, DataDisk, DebianImage, DiskFormat, Image, Options};

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
    let makes = options.data_disk.as_ref().is_some_and(|data| data.size.is_some());
    if (base.is_some() || makes) && crate::program::find("qemu-img").is_none() {
        return Err(Lack::new("clones of disks need qemu-img, and it is not here", "apt-get install qemu-utils"));
    }
    options.data_disk.as_ref().and_then(|data| data.device.as_deref()).map_or(Ok(()), free_device)
}

/// Whether a block device is there and nobody uses it. The kernel itself is asked: it grants exclusive use only of what
/// is not mounted anywhere, no swap and no part of another device.
pub(super) fn free_device(path: &Path) -> Result<(), Lack> {
    let lack = |why: &str, remedy: &str| Lack::new(format!("the data disk {} {why}", path.display()), remedy);
    let seen = path.metadata().map_err(|error| lack(&format!("is not there: {error}"), "Check its path"))?;
    if !seen.file_type().is_block_device() {
        return Err(lack("is no block device", "For a disk in a file write a `size` in place of `device`"));
    }
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let opened = OpenOptions::new().read(true).write(true).custom_flags(exclusive).open(path);
    opened.map(drop).map_err(|error| match error.kind() {
        std::io::ErrorKind::ResourceBusy => lack(
            "is in use (mounted, swap, or part of another device)",
            "Unmount it: the guest would destroy what is there",
        ),
        _ => lack(&format!("cannot be opened: {error}"), "Run as root"),
    })
}

/// How one disk is attached.
pub(super) struct Attached<'a> {
    /// Its name within QEMU.
    pub id: &'a str,
    pub path: PathBuf,
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
        Self { id: "root", path: clone, format, cache, aio, iothread, read_only: false, boots: true }
    }

    /// The data disk, at its path.
    pub(super) fn data(data: &DataDisk, path: PathBuf) -> Self {
        let format = if data.device.is_some() { DiskFormat::Raw } else { data.format };
        let (cache, aio, iothread) = (data.cache, data.aio, data.iothread);
        Self { id: "data", path, format, cache, aio, iothread, read_only: false, boots: false }
    }

    /// What sets up an image of one's own.
    pub(super) fn seed(path: PathBuf) -> Attached<'static> {
        let (cache, aio) = (Cache::Writeback, Aio::Threads);
        Attached {
            id: "seed",
            path,
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
        let is_device = self.path.metadata().is_ok_and(|seen| seen.file_type().is_block_device());
        let driver = if is_device { "host_device" } else { "file" };
        let aio = match self.aio {
            Aio::Threads => "threads",
            Aio::Native => "native",
            Aio::IoUring => "io_uring",
        };
        let (direct, ignore) = (on(self.cache == Cache::None), on(self.cache == Cache::Unsafe));
        let read_only = on(self.read_only);
        let node = format!(
            "driver={format},node-name={id},read-only={read_only},cache.direct={direct},cache.no-flush={ignore},\
             file.driver={driver},file.filename={},file.aio={aio}",
            escaped(&self.path)
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
        words.extend(["-blockdev", &node, "-device", &device].map(str::to_owned));
        words
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
