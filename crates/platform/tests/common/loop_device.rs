//! A block device of a test's own.

use std::path::Path;
use std::process::Command;

/// A block device that is a file of ours; gone when it is dropped.
pub struct Loop(pub String);

impl Loop {
    /// `None` where there can be none.
    pub fn of(file: &Path, bytes: u64) -> Option<Self> {
        std::fs::File::create(file).and_then(|file| file.set_len(bytes)).unwrap();
        let said = Command::new("losetup").args(["-f", "--show"]).arg(file).output().ok()?;
        let device = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        (said.status.success() && device.starts_with("/dev/")).then_some(Self(device))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}
