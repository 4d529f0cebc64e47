//! Disks that are made: clones of an image, and empty ones for data.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::disk::{Disk, Format};
use crate::error::{ImageError, Result, writing};
use crate::program;

const PACKAGE: &str = "qemu-utils";

/// An overlay is a header: it takes some 20 ms. Much more means that the host is in trouble.
const OVERLAY_LIMIT: Duration = Duration::from_secs(20);

/// Copies and file systems may be of gigabytes.
const COPY_LIMIT: Duration = Duration::from_secs(600);

/// The smallest data disk, bytes: an ext4 with a journal.
const SMALLEST: u64 = 4 << 20;

/// A path inside a qcow2 file, where a colon would begin a protocol and a leading dash an option.
fn named(path: &Path) -> Result<OsString> {
    let absolute = std::path::absolute(path).map_err(writing(path))?;
    Ok(absolute.into_os_string())
}

/// A clone of a disk: a qcow2 file of its own for all that is written, over the disk, which is only read and has to
/// stay where it is. Takes some 20 ms whatever the size.
///
/// # Errors
/// When there is something at `at` already, or `qemu-img` is missing or fails.
pub fn overlay(base: &Disk, at: &Path) -> Result<()> {
    let tried = format!("make a clone of {} at {}", base.path.display(), at.display());
    let mut command = Command::new(program::find("qemu-img", PACKAGE)?);
    command.args(["create", "-q", "-f", "qcow2", "-F", base.format.name(), "-b"]);
    command.arg(named(&base.path)?).arg(fresh(at)?);
    made(at, program::run(&mut command, &tried, OVERLAY_LIMIT).map(drop))
}

/// A whole copy of a disk, raw: shares blocks where the file system can, else is written with its holes kept.
///
/// # Errors
/// When there is something at `at` already, or the copy cannot be written.
pub fn raw_copy(base: &Disk, at: &Path) -> Result<()> {
    if base.format == Format::Raw && shared(&base.path, at)? {
        return Ok(());
    }
    let tried = format!("copy {} to {}", base.path.display(), at.display());
    let mut command = Command::new(program::find("qemu-img", PACKAGE)?);
    command.args(["convert", "-q", "-f", base.format.name(), "-O", "raw"]);
    command.arg(named(&base.path)?).arg(fresh(at)?);
    made(at, program::run(&mut command, &tried, COPY_LIMIT).map(drop))
}

/// Copies by sharing blocks (FICLONE); tells whether the file system can.
fn shared(from: &Path, to: &Path) -> Result<bool> {
    let Ok(source) = File::open(from) else { return Ok(false) };
    let target = File::create_new(to).map_err(writing(to))?;
    if rustix::fs::ioctl_ficlone(&target, &source).is_ok() {
        return Ok(true);
    }
    fs::remove_file(to).map_err(writing(to))?;
    Ok(false)
}

/// An empty disk of `size` bytes with a file system, for data. It takes room only as it is written.
///
/// # Errors
/// When it is too small, the file system is none that `mke2fs` makes, there is something at `at` already, or a program
/// is missing or fails.
pub fn blank(size: u64, filesystem: &str, at: &Path, format: Format) -> Result<()> {
    let tried = format!("make a disk with {filesystem} at {}", at.display());
    if !matches!(filesystem, "ext2" | "ext3" | "ext4") {
        return Err(ImageError::new(tried, "only ext2, ext3 and ext4 are made", "choose one of these"));
    }
    if size < SMALLEST || !size.is_multiple_of(4096) {
        let why = format!("{size} bytes are less than 4 MiB, or no whole number of blocks of 4096 bytes");
        return Err(ImageError::new(tried, why, "choose another size"));
    }
    let raw = match format {
        Format::Raw => fresh(at)?,
        Format::Qcow2 => fresh(&at.with_extension("making"))?,
    };
    let done = fill(size, filesystem, raw.as_ref(), &tried).and_then(|()| match format {
        Format::Raw => Ok(()),
        Format::Qcow2 => {
            let base = Disk { path: raw.clone().into(), format: Format::Raw, virtual_size: size };
            converted(&base, at, &tried)
        }
    });
    if format == Format::Qcow2 {
        // It may not even have been made.
        let _ = fs::remove_file(&raw);
    }
    made(at, done)
}

fn fill(size: u64, filesystem: &str, raw: &Path, tried: &str) -> Result<()> {
    let file = File::create_new(raw).map_err(writing(raw))?;
    file.set_len(size).map_err(writing(raw))?;
    let mut command = Command::new(program::find("mke2fs", "e2fsprogs")?);
    // What is left to be written while it is mounted is written while it is measured.
    command.args(["-q", "-F", "-t", filesystem, "-E", "lazy_itable_init=0,lazy_journal_init=0"]).arg(raw);
    program::run(&mut command, tried, COPY_LIMIT).map(drop)
}

fn converted(base: &Disk, at: &Path, tried: &str) -> Result<()> {
    let mut command = Command::new(program::find("qemu-img", PACKAGE)?);
    command.args(["convert", "-q", "-f", "raw", "-O", "qcow2"]).arg(&base.path).arg(fresh(at)?);
    program::run(&mut command, tried, COPY_LIMIT).map(drop)
}

/// A place where nothing is: programs would write over it, and follow a link that somebody put there.
fn fresh(at: &Path) -> Result<OsString> {
    match at.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => named(at),
        Err(error) => Err(writing(at)(error)),
        Ok(_) => {
            Err(ImageError::new(format!("write {}", at.display()), "there is something already", "remove it first"))
        }
    }
}

/// Half a disk is none.
fn made(at: &Path, done: Result<()>) -> Result<()> {
    if done.is_err() {
        let _ = fs::remove_file(at);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::inspect;
    use std::os::unix::fs::MetadataExt;

    fn skipped() -> bool {
        let missing = [("qemu-img", PACKAGE), ("mke2fs", "e2fsprogs")]
            .into_iter()
            .find_map(|(name, package)| program::find(name, package).err());
        missing.inspect(|error| eprintln!("SKIPPED: {error}")).is_some()
    }

    #[test]
    fn empty_disks_have_a_file_system_and_take_no_room() {
        if skipped() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = place.path().join("data disk.img");
        blank(256 << 20, "ext4", &at, Format::Raw).unwrap();
        let disk = inspect(&at, Format::Raw).unwrap();
        assert_eq!(disk.virtual_size, 256 << 20);
        assert_eq!(fs::read(&at).unwrap()[0x438..0x43a], [0x53, 0xef], "the mark of ext4");
        assert!(fs::metadata(&at).unwrap().blocks() * 512 < 64 << 20, "it is full of holes");

        let grown = place.path().join("data.qcow2");
        blank(256 << 20, "ext4", &grown, Format::Qcow2).unwrap();
        assert_eq!(inspect(&grown, Format::Qcow2).unwrap().virtual_size, 256 << 20);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "nothing else is left");

        assert!(blank(256 << 20, "ext4", &at, Format::Raw).unwrap_err().to_string().contains("already"));
        assert!(at.exists());
        assert!(blank(1000, "ext4", &place.path().join("x"), Format::Raw).is_err());
        assert!(blank(256 << 20, "ntfs", &place.path().join("x"), Format::Raw).is_err());
        assert!(!place.path().join("x").exists());
    }

    #[test]
    fn clones_hold_what_their_base_holds() {
        if skipped() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let mut content = vec![0; 4 << 20];
        content[1 << 20] = 7;
        fs::write(at("base"), &content).unwrap();
        let base = inspect(&at("base"), Format::Raw).unwrap();
        overlay(&base, &at("clone")).unwrap();
        let clone = Disk { path: at("clone"), format: Format::Qcow2, virtual_size: base.virtual_size };
        raw_copy(&clone, &at("copy of clone")).unwrap();
        raw_copy(&base, &at("copy")).unwrap();
        for copy in ["copy", "copy of clone"] {
            assert!(fs::read(at(copy)).unwrap() == content, "{copy}");
        }
        assert!(overlay(&base, &at("clone")).unwrap_err().to_string().contains("already"));
        let gone = Disk { path: at("gone"), ..base };
        assert!(overlay(&gone, &at("other")).is_err());
        assert!(!at("other").exists());
    }
}
