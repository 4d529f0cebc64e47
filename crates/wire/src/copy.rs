//! Files into a guest and out of it, over its link, in parts.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Link, Reply, Request, WireError};

/// Longest part, bytes: far under a frame's limit, so that other requests come between the parts.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Writes all that `reader` gives to a file in the guest, with these permissions (the lowest nine bits of `mode`).
/// The file is there whole or not at all, and replaces what had its name. Returns its length, bytes.
///
/// # Errors
/// When the guest cannot write it, is gone, or the whole takes longer than `timeout`.
pub fn copy_in(
    link: &Link,
    reader: &mut dyn Read,
    remote: &str,
    mode: u32,
    timeout: Duration,
) -> Result<u64, WireError> {
    let deadline = Instant::now() + timeout;
    let mut offset = 0;
    loop {
        let bytes = next_part(reader).map_err(|source| WireError::Local {
            doing: "read what is to become",
            path: remote.to_owned(),
            source,
        })?;
        // A part that is not full is the last; there may be an empty one.
        let (length, last) = (bytes.len(), bytes.len() < CHUNK_BYTES);
        let part = Request::PutFile { path: remote.to_owned(), mode: mode & 0o777, offset, bytes, last };
        match link.call(part, remaining(deadline))? {
            Reply::Done => offset += length as u64,
            _ => return Err(WireError::Unexpected { request: "write a file" }),
        }
        if last {
            return Ok(offset);
        }
    }
}

fn next_part(reader: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(CHUNK_BYTES);
    reader.take(CHUNK_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn remaining(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Copies a file out of the guest to `local`, which is replaced. It is written beside it under another name first, so
/// that it is there whole or not at all, and nothing is written anywhere else, whatever the guest answers. Returns
/// its length, bytes.
///
/// # Errors
/// When the guest cannot read it, is gone, sends more than `limit_bytes`, or the whole takes longer than `timeout`; or
/// when it cannot be written here.
pub fn copy_out(
    link: &Link,
    remote: &str,
    local: &Path,
    limit_bytes: u64,
    timeout: Duration,
) -> Result<u64, WireError> {
    let beside = Beside::create(local)?;
    let length = receive(link, remote, &beside, limit_bytes, timeout)?;
    beside.put_in_place(local)?;
    Ok(length)
}

fn receive(link: &Link, remote: &str, to: &Beside, limit_bytes: u64, timeout: Duration) -> Result<u64, WireError> {
    let deadline = Instant::now() + timeout;
    let too_large = || WireError::TooLarge { path: remote.to_owned(), limit_bytes };
    let mut offset = 0;
    loop {
        // One byte more than allowed is asked for: a file that has it is too large.
        let wanted = (limit_bytes - offset).saturating_add(1).min(CHUNK_BYTES as u64);
        let part = Request::GetFile { path: remote.to_owned(), offset, limit_bytes: wanted };
        let Reply::File { bytes, total_bytes } = link.call(part, remaining(deadline))? else {
            return Err(WireError::Unexpected { request: "read a file" });
        };
        // What the guest says of the length may save a transfer; it is not believed otherwise.
        if total_bytes > limit_bytes || bytes.len() as u64 > limit_bytes - offset {
            return Err(too_large());
        }
        if bytes.is_empty() {
            return Ok(offset);
        }
        if bytes.len() as u64 > wanted {
            return Err(WireError::Unexpected { request: "read a file" });
        }
        (&to.file).write_all(&bytes).map_err(|source| local_error("write", &to.path, source))?;
        offset += bytes.len() as u64;
    }
}

/// A file beside the one that it will replace; gone again unless it does.
struct Beside {
    file: File,
    path: PathBuf,
}

impl Beside {
    fn create(local: &Path) -> Result<Self, WireError> {
        let name = local.file_name().ok_or_else(|| {
            local_error("write", local, std::io::Error::new(std::io::ErrorKind::InvalidInput, "it names no file"))
        })?;
        let path = local.with_file_name(format!(".{}.tare-{}", name.to_string_lossy(), std::process::id()));
        // An earlier process of this number may have left its own.
        let _ = std::fs::remove_file(&path);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path);
        Ok(Self { file: file.map_err(|source| local_error("write", &path, source))?, path })
    }

    fn put_in_place(self, local: &Path) -> Result<(), WireError> {
        std::fs::rename(&self.path, local).map_err(|source| local_error("put in place", local, source))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After it was put in place nothing has this name any longer.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn local_error(doing: &'static str, path: &Path, source: std::io::Error) -> WireError {
    WireError::Local { doing, path: path.display().to_string(), source }
}
