//! A file of an aggressor's own.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate, fstatvfs, statfs};
use tare_model::random::SplitMix64;

use crate::DriverError;
use crate::memory::Region;

/// Bytes of a block that is written or read at once.
pub(super) const BLOCK: u64 = 1 << 20;

/// Where files are in memory, the part of the guest's memory that a file may take.
pub(super) const PART_OF_MEMORY: u64 = 4;

/// The directory, if a file can be made in it.
///
/// # Errors
/// Why not.
pub(super) fn directory(directory: String) -> Result<PathBuf, DriverError> {
    let directory = PathBuf::from(directory);
    let why = |error| format!("the aggressor can make no file in {}: {error}", directory.display());
    let remedy = "name a directory of the guest's in which its agent may write";
    match nameless(&directory) {
        Ok(_) => Ok(directory),
        Err(error) => Err(DriverError::invalid(why(error), remedy)),
    }
}

/// A new file without a name: it is gone when it is closed, also when the process is killed.
///
/// # Errors
/// The system's.
pub(super) fn nameless(directory: &Path) -> io::Result<File> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".tare-aggressor-{}-{number}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Whole blocks that the file may have: at most so many bytes, and half of what is free on its file system.
///
/// # Errors
/// When that is not even one, and the system's.
pub(super) fn room(file: &File, most_bytes: u64) -> io::Result<u64> {
    let system = fstatvfs(file)?;
    let bytes = most_bytes.min(system.f_bavail.saturating_mul(system.f_frsize) / 2);
    if bytes < BLOCK { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes - bytes % BLOCK) }
}

/// tmpfs and ramfs (include/uapi/linux/magic.h).
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
const OVERLAY: i64 = 0x794c_7630;

/// Whether files in this directory are in memory, which is then the guest's: a file as large as that would end the guest. Of an overlay nobody
/// says inside where its files are. It passes the wish to zero a range on to the file system that is written to, which tmpfs does not grant
/// and those of disks do (fallocate(2)); where it is not granted, files may be in memory.
pub(super) fn is_in_memory(directory: &Path) -> bool {
    match statfs(directory) {
        Ok(system) if system.f_type == OVERLAY => !zeroes_ranges(directory),
        Ok(system) => IN_MEMORY.contains(&system.f_type),
        Err(_) => false,
    }
}

fn zeroes_ranges(directory: &Path) -> bool {
    let zeroed = |file: File| fallocate(file, FallocateFlags::ZERO_RANGE, 0, BLOCK);
    nameless(directory).is_ok_and(|file| zeroed(file).is_ok())
}

/// A block of numbers at random, which no file system and no disk can make smaller.
///
/// # Errors
/// When there is no memory.
pub(super) fn block() -> io::Result<Region> {
    let mut block = Region::map(BLOCK as usize)?;
    let mut random = SplitMix64(BLOCK);
    block.bytes().as_chunks_mut().0.iter_mut().for_each(|word| *word = random.draw().to_ne_bytes());
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_no_name_and_a_size_within_bounds() {
        let folder = std::env::temp_dir();
        let file = nameless(&folder).unwrap();
        let prefix = format!(".tare-aggressor-{}-", std::process::id());
        let named = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().starts_with(&prefix);
        assert!(!fs::read_dir(&folder).unwrap().any(named));
        assert_eq!(room(&file, 5 * BLOCK + 7).unwrap(), 5 * BLOCK);
        assert_eq!(room(&file, BLOCK - 1).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(room(&file, u64::MAX).unwrap() < u64::MAX / 2);
    }

    #[test]
    fn a_directory_in_which_nothing_can_be_made_is_refused() {
        let error = directory("/proc/self".to_owned()).unwrap_err().to_string();
        assert!(error.contains("/proc/self") && error.contains("may write"), "{error}");
        assert!(is_in_memory(Path::new("/dev/shm")) || !Path::new("/dev/shm").exists());
        assert!(!is_in_memory(Path::new("/proc")));
        // What the look at an overlay goes by.
        if is_in_memory(Path::new("/dev/shm")) {
            assert!(!zeroes_ranges(Path::new("/dev/shm")));
        }
        let disk = std::env::current_dir().unwrap();
        if statfs(&disk).unwrap().f_type == 0xef53 {
            assert!(zeroes_ranges(&disk), "ext4 grants it");
        }
    }
}
