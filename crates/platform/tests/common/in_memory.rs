//! A file system in memory of a test's own.

use std::path::PathBuf;
use std::process::Command;

/// A directory that is such a file system; it is unmounted when it is dropped.
pub struct InMemory(pub PathBuf);

impl InMemory {
    /// Makes the directory; `None` where nothing can be mounted.
    pub fn at(place: PathBuf) -> Option<Self> {
        std::fs::create_dir(&place).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=2g,mode=755", "tare"]).arg(&place).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(place))
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
