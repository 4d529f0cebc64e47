//! Reading files that a study names.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The text of a regular file of at most `most` bytes. A pipe is not waited for, and a device that never ends is not read.
///
/// # Errors
/// When it is none, is longer, or cannot be read.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<String> {
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    file.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {} KiB", most >> 10)));
    }
    Ok(text)
}
