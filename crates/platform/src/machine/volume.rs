//! The data of a machine's guest as a disk of its own: a clone of the disk that was made once of the gold copy.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tare_image::{Disk, ImageError};
use tare_lab::RUN_VARIABLE;
use tare_model::ByteSize;
use tare_model::guest::ParityRow;

use super::target::Unit;
use crate::builder::GuestBuilder;
use crate::data::Gold;
use crate::error::{PlatformError, Result};
use crate::parity;
use crate::program::{self, find};
use crate::restore::{self, Deadline, RestoreError};

/// As what a guest sees a disk with its data.
pub(crate) const VIRTIO_BLK: &str = "virtio-blk disk";

/// What a disk of a guest's holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its data, with their log where that has no disk of its own.
    Data,
    /// The log alone.
    Log,
}

impl Part {
    /// Its name, also of the disk's file and within a machine.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
        }
    }

    /// The disk, for people.
    pub(crate) const fn disk(self) -> &'static str {
        match self {
            Self::Data => "data disk",
            Self::Log => "log disk",
        }
    }

    /// The option of a machine's that says what it is.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::Data => "data-disk",
            Self::Log => "log-disk",
        }
    }

    /// Serial number of the disk, by which the guest finds it: names follow the order in which disks are found.
    pub(crate) const fn serial(self) -> &'static str {
        match self {
            Self::Data => "tare-data",
            Self::Log => "tare-log",
        }
    }

    /// Where it is mounted in the guest, unless that is written.
    pub(crate) const fn mount(self) -> &'static str {
        match self {
            Self::Data => "/data",
            Self::Log => "/log",
        }
    }
}

/// Bytes of a sector, as `stat` counts what a file takes up.
const SECTOR: u64 = 512;

/// Bytes a second below which a device is given up.
const SLOWEST: u64 = 2 << 20;

/// Devices and units of the user's that guests have now.
static TAKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// One guest's right to a device or unit of the user's: two that write to the same would each destroy the other's data.
#[derive(Debug)]
pub(crate) struct Claim {
    what: String,
    /// A device that the kernel keeps from everybody who wants it for himself, such as `mount`, as long as it is open so.
    _exclusive: Option<File>,
}

impl Claim {
    /// Takes it, if no other guest has it.
    pub(crate) fn new(builder: &GuestBuilder<'_>, what: &str, exclusive: Option<File>) -> Result<Self> {
        if TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned()) {
            return Ok(Self { what: what.to_owned(), _exclusive: exclusive });
        }
        let remedy = "Give each guest its own: `{guest}` in the name stands for the guest's number, 1, 2, ..";
        Err(builder.failed(&format!("give the guest {what}"), "another guest has it".into(), remedy))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.what);
    }
}

/// What a guest writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A copy, byte for byte; shares blocks with the gold image where the file system can.
    Raw,
    /// A qcow2 file over the gold image.
    Qcow2,
}

/// A restored disk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Restored {
    /// The file.
    pub path: PathBuf,
    /// Seconds that it took, until it was on the disk and out of the page cache.
    pub seconds: f64,
    /// How it was made, for people.
    pub by: &'static str,
    /// What it is, for people, such as `raw file on ext4 of the host`.
    pub what: String,
}

/// The disk that clones are made of, with the gold copy in it: made when it is asked for the first time. It has room for
/// what the data ask for, or the size that is written.
pub(crate) fn gold(builder: &mut GuestBuilder<'_>, data: Gold<'_>, written: Option<ByteSize>) -> Result<Disk> {
    if let Some(size) = written.filter(|size| size.0 < data.size.0) {
        let why = format!("the disk has {size} and the workload's data need {}", restore::human(data.size.0));
        return Err(builder.failed("restore the data", why, "Write a larger `size` of the disk, or leave it out"));
    }
    let size = bytes(data.size, written);
    builder.aside(|builder| {
        let mark = (RUN_VARIABLE, builder.site.run_id);
        tare_image::gold_image(data.gold, size, mark).map_err(|error| image_error(builder, error))
    })
}

/// Bytes of the disk for data of this size, unless another size is written.
pub(crate) fn bytes(data: ByteSize, written: Option<ByteSize>) -> u64 {
    written.map_or_else(|| with_file_system(data.0), |size| size.0)
}

/// The message for a device on which the data do not fit.
pub(crate) fn too_small(there: u64, needed: u64) -> String {
    format!("it has {} MiB and the data need {} MiB", there >> 20, needed.div_ceil(1 << 20))
}

/// Bytes of a disk whose file system has room for so many: beside them it keeps a journal and tables of inodes. Nothing of
/// it takes up room before it is written.
fn with_file_system(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 32).saturating_add(128 << 20)
}

/// Makes the guest's own disk for a part in a directory of the guest's own; `grown` is what its content may grow to. None of it is
/// left in the page cache.
pub(crate) fn restore(
    builder: &mut GuestBuilder<'_>,
    (part, grown): (Part, ByteSize),
    gold: &Disk,
    form: Form,
    folder: &Path,
) -> Result<Restored> {
    builder.aside(|builder| {
        let (path, began) = (folder.join(part.name()), Instant::now());
        let failed = |error: RestoreError| builder.failed("restore the data", error.to_string(), error.remedy());
        let bytes = std::fs::metadata(&gold.path).map_or(gold.virtual_size, |seen| sectors(&seen) * SECTOR);
        // A guest whose disk cannot grow any more stands still.
        let shares = || form == Form::Qcow2 || restore::clones(&gold.path, folder);
        restore::room(folder, bytes.max(grown.0), || if shares() { bytes } else { 0 }).map_err(failed)?;
        let by = match form {
            Form::Raw => restore::file(&gold.path, &path, Deadline::of(bytes)).map_err(failed)?.words(),
            Form::Qcow2 => {
                let made = tare_image::overlay(gold, &path).and_then(|()| {
                    tare_image::make_cold(&path)?;
                    tare_image::make_cold(&gold.path)
                });
                made.map_err(|error| image_error(builder, error))?;
                "laid over the gold image (qcow2)"
            }
        };
        let kind = if form == Form::Raw { "raw file" } else { "qcow2 file over a raw one" };
        let what = format!("{kind} on {} of the host", restore::file_system(folder));
        Ok(Restored { path, seconds: began.elapsed().as_secs_f64(), by, what })
    })
}

/// What the gold image is written over.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Onto<'a> {
    /// A block device of the user's.
    Device(&'a Path),
    /// A unit of his storage server's, which lets in those whose names it knows.
    Unit(&'a Unit),
}

/// Writes the whole of the gold image over what is the user's. What was there is lost. Gives the seconds that it took.
pub(crate) fn overwrite(builder: &mut GuestBuilder<'_>, gold: &Disk, onto: Onto<'_>) -> Result<f64> {
    builder.aside(|builder| {
        let began = Instant::now();
        let named = match onto {
            Onto::Device(device) => device.display().to_string(),
            Onto::Unit(unit) => format!("unit {} of {} at {}", unit.lun, unit.target, unit.portal),
        };
        let tried = format!("restore the data onto {named}");
        let failed = |why: String| builder.failed(&tried, why, "Is it there, large enough and in nobody's use?");
        let program = find("qemu-img").ok_or_else(|| failed("there is no qemu-img".into()))?;
        let mut command = Command::new(program);
        // Holes of the image are written as zeroes: what was there before may be anything.
        command.args(["convert", "-n", "-q", "-t", "none", "-f", "raw"]);
        match onto {
            Onto::Device(device) => command.args(["-O", "raw"]).arg(&gold.path).arg(device),
            Onto::Unit(unit) => {
                let words = format!("driver=raw,{}", unit.words());
                command.arg("--target-image-opts").arg(&gold.path).arg(words)
            }
        };
        command.env(RUN_VARIABLE, builder.site.run_id);
        let limit = Duration::from_secs(60 + gold.virtual_size / SLOWEST);
        let ran = program::run(&mut command, limit).map_err(|error| failed(error.to_string()))?;
        if !ran.success {
            return Err(failed(ran.output.trim().to_owned()));
        }
        tare_image::make_cold(&gold.path).map_err(|error| image_error(builder, error))?;
        Ok(began.elapsed().as_secs_f64())
    })
}

/// The row for a disk whose flushes are ignored. The study asked for it, but the disks of the other arms are different.
pub(crate) fn flushes_ignored(part: Part) -> ParityRow {
    let note =
        "cache = \"unsafe\": what a database has committed is lost with the host, and its figures hold nowhere else";
    parity::row(format!("flushes of the {}", part.disk()), "reach the disk", Some("ignored".into()), note)
}

fn sectors(seen: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(seen)
}

/// An error of an image as one of the guest.
pub(crate) fn image_error(builder: &GuestBuilder<'_>, error: ImageError) -> PlatformError {
    builder.failed(&error.tried, error.why, &error.remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_one_guest_at_a_time() {
        let claim = |what: &str| TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned());
        assert!(claim("test: a unit"));
        assert!(!claim("test: a unit"));
        drop(Claim { what: "test: a unit".into(), _exclusive: None });
        assert!(claim("test: a unit"));
    }
}
