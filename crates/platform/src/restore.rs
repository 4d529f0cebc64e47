//! Restoring files from a gold copy: cloned where the file system can, else copied, with nothing left in the host's page
//! cache. A guest so starts with data that are on the disk and not in memory, and nothing else on the host is disturbed:
//! only the pages of these files are flushed and dropped.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    Advice, AtFlags, CWD, Mode, OFlags, SeekFrom as SparseSeek, StatxFlags, Timespec, Timestamps, copy_file_range,
    fadvise, fchmod, futimens, ioctl_ficlone, statvfs, statx,
};
use rustix::io::Errno;

/// So many bytes are copied before they are flushed and dropped: no more of a large file is ever in memory.
const STEP: u64 = 64 << 20;

/// Bytes that are read at once where the kernel does not copy by itself.
const BUFFER: usize = 1 << 20;

/// Time that restoring may take whatever the size.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes per second below which restoring is given up: a disk that is slower than this hangs, or is no place for a store.
const SLOWEST: u64 = 2 << 20;

/// How a file was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    /// The copy shares the gold copy's blocks until one of them is written.
    Clone,
    /// All bytes were written anew.
    Copy,
}

impl By {
    /// In words for people.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Clone => "cloned (reflink)",
            Self::Copy => "copied",
        }
    }
}

/// Why data could not be restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// The system refused.
    #[error("could not {tried}: {source}")]
    System {
        /// What was tried, as a verb phrase.
        tried: String,
        /// Why it failed.
        source: io::Error,
    },
    /// There is no room for the copy.
    #[error("the copy needs {needed} and {} has {free} free", .place.display())]
    NoRoom {
        /// Bytes that it needs.
        needed: tare_model::ByteSize,
        /// Bytes that are free.
        free: tare_model::ByteSize,
        /// Where it was to be made.
        place: PathBuf,
    },
    /// Something in the gold copy is neither file, directory nor link.
    #[error("{} in the gold copy is neither file, directory nor link", .0.display())]
    Kind(PathBuf),
    /// It took too long.
    #[error("it was not done after {} s, so the disk writes less than {SLOWEST} bytes a second", .0.as_secs())]
    Slow(Duration),
}

impl RestoreError {
    /// What would help.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::NoRoom { .. } => {
                "Make room there, ask for less data, or name another place for the data in the study"
            }
            Self::System { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "Make room there, ask for less data, or name another place for the data in the study"
            }
            Self::System { .. } => "Is the place for the data writable, and the gold copy whole?",
            Self::Kind(_) => "Remove the gold copy, so that it is made anew",
            Self::Slow(_) => "Look at the disk (`iostat -x`), or name another place for the data in the study",
        }
    }
}

/// Adds what was tried to a system error.
pub(crate) fn tried<E: Into<io::Error>>(what: &str, path: &Path) -> impl FnOnce(E) -> RestoreError {
    let tried = format!("{what} {}", path.display());
    |error| RestoreError::System { tried, source: error.into() }
}

/// When restoring is given up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    began: Instant,
    timeout: Duration,
}

impl Deadline {
    /// For so many bytes, from now.
    pub(crate) fn of(bytes: u64) -> Self {
        Self { began: Instant::now(), timeout: TIMEOUT + Duration::from_secs(bytes / SLOWEST) }
    }

    fn check(&self) -> Result<(), RestoreError> {
        if self.began.elapsed() <= self.timeout { Ok(()) } else { Err(RestoreError::Slow(self.timeout)) }
    }
}

/// Restores one file: `copy` must not be there and becomes what `gold` is, with its bytes, holes, owner, mode and times, is
/// flushed to the disk, and of neither is anything left in the page cache.
///
/// # Errors
/// Why not. What was made of the copy by then is still there.
pub(crate) fn file(gold: &Path, copy: &Path, deadline: Deadline) -> Result<By, RestoreError> {
    let no_links = OFlags::NOFOLLOW.bits().cast_signed();
    let from = OpenOptions::new().read(true).custom_flags(no_links).open(gold).map_err(tried("open", gold))?;
    let found = from.metadata().map_err(tried("look at", gold))?;
    if !found.is_file() {
        return Err(RestoreError::Kind(gold.to_owned()));
    }
    let to = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(copy);
    let to = to.map_err(tried("make", copy))?;
    let by = if ioctl_ficlone(&to, &from).is_ok() {
        By::Clone
    } else {
        // Without this file systems such as ext4, tmpfs and xfs of old make it by writing.
        copy_bytes(&from, &to, found.len(), deadline, copy)?;
        By::Copy
    };
    like(&to, &found).map_err(tried("set owner, mode and times of", copy))?;
    to.sync_all().map_err(tried("flush", copy))?;
    // A gold copy that was made just now may not be on the disk yet, and only what is there can be dropped.
    from.sync_data().map_err(tried("flush", gold))?;
    forget(&from, 0, None);
    forget(&to, 0, None);
    Ok(by)
}

/// Refuses data that have no room in a directory when they are as large as they may become, `whole`, bytes; `shared` tells
/// how many of these are not written anew.
///
/// # Errors
/// [`RestoreError::NoRoom`], or that the file system could not be looked at.
pub(crate) fn room(place: &Path, whole: u64, shared: impl FnOnce() -> u64) -> Result<(), RestoreError> {
    let found = statvfs(place).map_err(tried("look at the file system of", place))?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let needed = if free >= whole { whole } else { whole.saturating_sub(shared()) };
    if free >= needed {
        return Ok(());
    }
    let (needed, free) = (human(needed), tare_model::ByteSize(free >> 20 << 20));
    Err(RestoreError::NoRoom { needed, free, place: place.to_owned() })
}

/// So many bytes for people, in whole MiB.
pub(crate) fn human(bytes: u64) -> tare_model::ByteSize {
    tare_model::ByteSize(bytes.div_ceil(1 << 20) << 20)
}

/// Whether a file can be cloned into a directory.
pub(crate) fn clones(gold: &Path, directory: &Path) -> bool {
    let try_out = directory.join(".clone");
    let cloned = File::open(gold).and_then(|from| Ok(ioctl_ficlone(File::create_new(&try_out)?, from)?));
    // Without it there is nothing to remove.
    let _ = std::fs::remove_file(&try_out);
    cloned.is_ok()
}

/// Gives a file or directory the owner, mode and times of another.
pub(crate) fn like(file: &File, found: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (found.uid(), found.gid()) {
        fchown(file, Some(found.uid()), Some(found.gid()))?;
    }
    // After the owner: a change of that one takes away set-user-id.
    fchmod(file, Mode::from_raw_mode(found.mode() & 0o7777))?;
    futimens(file, &times(found))?;
    Ok(())
}

/// The times of what was found.
pub(crate) fn times(found: &Metadata) -> Timestamps {
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    }
}

/// Copies all that is no hole, a step at a time.
fn copy_bytes(from: &File, to: &File, length: u64, deadline: Deadline, copy: &Path) -> Result<(), RestoreError> {
    to.set_len(length).map_err(tried("write", copy))?;
    let mut at = 0;
    while let Some((start, end)) = next_data(from, at, length).map_err(tried("read the gold copy of", copy))? {
        at = start;
        while at < end {
            deadline.check()?;
            let step = (end - at).min(STEP);
            copy_range(from, to, at, step).map_err(tried("write", copy))?;
            if length > STEP {
                to.sync_data().map_err(tried("flush", copy))?;
                forget(from, at, NonZeroU64::new(step));
                forget(to, at, NonZeroU64::new(step));
            }
            at += step;
        }
    }
    Ok(())
}

/// The next run of bytes from `at` on that is no hole.
fn next_data(file: &File, at: u64, length: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= length {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, SparseSeek::Data(at)) {
        Ok(start) => start,
        // Nothing but a hole up to the end.
        Err(Errno::NXIO) => return Ok(None),
        // A file system that knows of no holes.
        Err(Errno::INVAL) => return Ok(Some((at, length))),
        Err(error) => return Err(error.into()),
    };
    let end = rustix::fs::seek(file, SparseSeek::Hole(start))?.min(length);
    Ok((start < end).then_some((start, end)))
}

/// Copies `length` bytes at `at`: by the kernel, or through a buffer where it does not between these two files.
fn copy_range(from: &File, to: &File, at: u64, length: u64) -> io::Result<()> {
    let (mut read_at, mut write_at, end) = (at, at, at + length);
    while write_at < end {
        let wanted = usize::try_from(end - write_at).unwrap_or(usize::MAX);
        match copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), wanted) {
            Ok(1..) | Err(Errno::INTR) => {}
            Ok(0) | Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                return through_buffer(from, to, write_at, end);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn through_buffer(from: &File, mut to: &File, at: u64, end: u64) -> io::Result<()> {
    let mut reader = from;
    reader.seek(SeekFrom::Start(at))?;
    to.seek(SeekFrom::Start(at))?;
    let mut buffer = vec![0; usize::try_from(end - at).unwrap_or(usize::MAX).min(BUFFER)];
    let mut left = end - at;
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        reader.read_exact(&mut buffer[..wanted])?;
        to.write_all(&buffer[..wanted])?;
        left -= wanted as u64;
    }
    Ok(())
}

/// Drops pages that are clean from the page cache.
fn forget(file: &File, at: u64, length: Option<NonZeroU64>) {
    // Only an advice: a file system that keeps its files in memory cannot follow it.
    let _ = fadvise(file, at, length, Advice::DontNeed);
}

/// The kind of file system that a path is on, such as `ext4`, as the table of mounts names it.
pub(crate) fn file_system(path: &Path) -> String {
    let mounted = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok().and_then(|found| {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        kind_of_mount(&mounts, found.stx_mnt_id).map(str::to_owned)
    });
    mounted.unwrap_or_else(|| "a file system".into())
}

/// The kind of the mount of that number (proc_pid_mountinfo(5)): the first word after the lone `-`.
fn kind_of_mount(mountinfo: &str, number: u64) -> Option<&str> {
    let line = mountinfo.lines().find(|line| line.split(' ').next().and_then(|id| id.parse().ok()) == Some(number))?;
    line.split_once(" - ")?.1.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{FileExt, PermissionsExt};
    use std::process::Command;

    /// On a disk, where there is one.
    fn place() -> tempfile::TempDir {
        tempfile::tempdir_in("/var/tmp").unwrap()
    }

    /// Pages of a file that are in memory; `None` where the program that tells is not here.
    fn cached(file: &Path) -> Option<u64> {
        let ran = Command::new("fincore").args(["-b", "-n", "-o", "PAGES"]).arg(file).output().ok()?;
        String::from_utf8(ran.stdout).ok()?.trim().parse().ok()
    }

    #[test]
    fn a_file_is_the_same_and_out_of_memory() {
        let place = place();
        let (gold, copy) = (place.path().join("gold"), place.path().join("copy"));
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        fs::write(&gold, &bytes).unwrap();
        fs::set_permissions(&gold, fs::Permissions::from_mode(0o640)).unwrap();
        let by = file(&gold, &copy, Deadline::of(3_000_000)).unwrap();
        assert!(["copied", "cloned (reflink)"].contains(&by.words()));
        if tare_lab::is_in_memory(place.path()).unwrap() {
            println!("SKIPPED: what is in memory: /var/tmp is");
        } else if let (Some(gold), Some(copy)) = (cached(&gold), cached(&copy)) {
            assert_eq!((gold, copy), (0, 0));
        } else {
            println!("SKIPPED: what is in memory: there is no `fincore`");
        }
        assert_eq!(fs::read(&copy).unwrap(), bytes);
        let (was, is) = (gold.metadata().unwrap(), copy.metadata().unwrap());
        assert_eq!((is.mode(), is.uid(), is.mtime_nsec()), (was.mode(), was.uid(), was.mtime_nsec()));
        let error = file(&gold, &copy, Deadline::of(1)).unwrap_err().to_string();
        assert!(error.contains("exists"), "{error}");
    }

    #[test]
    fn holes_stay_holes() {
        let place = place();
        let (gold, copy) = (place.path().join("gold"), place.path().join("copy"));
        let sparse = File::create(&gold).unwrap();
        sparse.write_all_at(b"begin", 0).unwrap();
        sparse.write_all_at(b"middle", 40 << 20).unwrap();
        sparse.set_len(200 << 20).unwrap();
        file(&gold, &copy, Deadline::of(200 << 20)).unwrap();
        let found = copy.metadata().unwrap();
        assert_eq!(found.len(), 200 << 20);
        assert!(found.blocks() * 512 < 1 << 20, "{} blocks", found.blocks());
        let mut bytes = [0; 6];
        File::open(&copy).unwrap().read_exact_at(&mut bytes, 40 << 20).unwrap();
        assert_eq!(&bytes, b"middle");
    }

    #[test]
    fn what_the_kernel_does_not_copy_goes_through_a_buffer() {
        let place = place();
        let (gold, copy) = (place.path().join("gold"), place.path().join("copy"));
        let bytes: Vec<u8> = (0..2_500_000_u32).map(|n| (n % 241) as u8).collect();
        fs::write(&gold, &bytes).unwrap();
        let to = File::create(&copy).unwrap();
        through_buffer(&File::open(&gold).unwrap(), &to, 0, 1_000).unwrap();
        through_buffer(&File::open(&gold).unwrap(), &to, 1_000, bytes.len() as u64).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), bytes);
    }

    #[test]
    fn what_is_no_file_or_takes_too_long_is_refused() {
        let place = place();
        let (gold, link, copy) = (place.path().join("gold"), place.path().join("link"), place.path().join("copy"));
        fs::write(&gold, [1; 9000]).unwrap();
        std::os::unix::fs::symlink(&gold, &link).unwrap();
        assert!(file(&link, &copy, Deadline::of(1)).is_err());
        assert!(matches!(file(place.path(), &copy, Deadline::of(1)), Err(RestoreError::Kind(_))));
        let late = Deadline { began: Instant::now(), timeout: Duration::ZERO };
        let to = File::create(&copy).unwrap();
        let slow = copy_bytes(&File::open(&gold).unwrap(), &to, 9000, late, &copy).unwrap_err();
        assert!(matches!(slow, RestoreError::Slow(_)) && slow.remedy().contains("disk"), "{slow}");
    }

    #[test]
    fn a_file_system_has_a_name() {
        assert_eq!(file_system(Path::new("/proc")), "proc");
        let table = "25 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n31 25 0:27 / /a - b rw - xfs /dev/sdb rw\n";
        assert_eq!((kind_of_mount(table, 25), kind_of_mount(table, 9)), (Some("ext4"), None));
    }
}
