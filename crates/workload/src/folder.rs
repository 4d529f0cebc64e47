//! Folders of this host.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes on the disk of all that is in a directory.
pub(crate) fn bytes_in(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let seen = path.symlink_metadata()?;
        bytes += seen.blocks() * 512;
        if seen.is_dir() {
            bytes += bytes_in(&path)?;
        }
    }
    Ok(bytes)
}
