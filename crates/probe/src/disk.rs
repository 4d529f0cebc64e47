//! Which disk holds a file.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The disk that holds `path`, or that it is where it is a block device, by its name in `/sys/block`: what [`crate::HostConfig::disks`] wants. `None` for what is
/// in memory or on the network, for file systems over several disks, and where the
/// kernel does not count that disk in `/proc/diskstats`.
pub fn disk_of(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    let device = if found.file_type().is_block_device() { found.rdev() } else { found.dev() };
    let link = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let place: PathBuf = std::fs::canonicalize(link).ok()?;
    // A partition is a directory in that of its disk.
    let disk = if place.join("partition").exists() { place.parent()? } else { &place };
    let name = disk.file_name()?.to_str()?;
    let counted = std::fs::read_to_string("/proc/diskstats").ok()?;
    counted.lines().any(|line| line.split_whitespace().nth(2) == Some(name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_memory_is_on_no_disk_and_a_disk_is_one_of_this_host() {
        assert_eq!(disk_of(Path::new("/proc/self/stat")), None);
        match disk_of(Path::new("/")) {
            Some(disk) => {
                assert!(Path::new("/sys/block").join(&disk).exists(), "{disk}");
                let device = Path::new("/dev").join(&disk);
                assert!(!device.exists() || disk_of(&device) == Some(disk));
            }
            None => eprintln!("SKIPPED: the root file system is on no single disk"),
        }
    }
}
