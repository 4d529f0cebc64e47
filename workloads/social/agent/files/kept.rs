//! What users bring, in a folder: `INSTANCE/KIND/ID mod 1000/ID div 10^6/NAME`.
//!
//! A file is written under a name of its own and gets its place when it is whole: whoever asks for it finds nothing, what was there
//! before, or all of it. Nothing is forced to the disk: the store lives no longer than its trial.

use std::io::Error;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::social::spec::StoredFile;
use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::answer::Answer;
use super::computed::content_type;
use crate::{DriverError, net};

/// The folder of a store.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    /// Number of the next file under way.
    next: AtomicU64,
}

/// A file under way: gone when it is dropped before [`keep`](Self::keep).
#[derive(Debug)]
pub struct Draft<'a> {
    folder: &'a Folder,
    name: String,
    /// Where its bytes go.
    pub file: OwnedFd,
    kept: bool,
}

impl Folder {
    /// Opens an empty folder.
    ///
    /// # Errors
    /// When it is not there, no folder, or not empty.
    pub fn open(path: &str) -> Result<Self, DriverError> {
        let invalid = |why: String| {
            DriverError::invalid(format!("the file store cannot use the folder {path}: {why}"), "name an empty folder")
        };
        let fd = fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| invalid(Error::from(errno).to_string()))?;
        let mut entries = std::fs::read_dir(path).map_err(|error| invalid(error.to_string()))?;
        if entries.next().is_some() {
            return Err(invalid("it holds something already".to_owned()));
        }
        Ok(Self { fd, next: AtomicU64::new(0) })
    }

    /// What was uploaded for a person or an event, with its length; `None` where nobody has.
    pub fn find(&self, instance: u32, kind: StoredFile, id: u64) -> Result<Option<(OwnedFd, u64)>, Errno> {
        match fs::openat(&self.fd, place(instance, kind, id), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => {
                let bytes = fs::fstat(&file)?.st_size;
                Ok(Some((file, bytes as u64)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Begins a file.
    pub fn draft(&self) -> Result<Draft<'_>, Errno> {
        let name = format!("under-way-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = fs::openat(&self.fd, &name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Draft { folder: self, name, file, kept: false })
    }
}

impl Draft<'_> {
    /// Gives the file its place. Returns whether it is new there; else it has replaced what was there.
    pub fn keep(mut self, instance: u32, kind: StoredFile, id: u64) -> Result<bool, Errno> {
        let place = place(instance, kind, id);
        let new = match self.rename(&place) {
            Err(Errno::NOENT) => {
                self.make_directories(&place)?;
                self.rename(&place)?
            }
            other => other?,
        };
        self.kept = true;
        Ok(new)
    }

    fn rename(&self, place: &str) -> Result<bool, Errno> {
        let fd = &self.folder.fd;
        match fs::renameat_with(fd, &self.name, fd, place, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => fs::renameat(fd, &self.name, fd, place).map(|()| false),
            // Of file systems that cannot tell: as if it were new.
            Err(Errno::INVAL | Errno::NOSYS) => fs::renameat(fd, &self.name, fd, place).map(|()| true),
            Err(errno) => Err(errno),
        }
    }

    /// Makes what is missing of the directories of a place; others may make them at the same time.
    fn make_directories(&self, place: &str) -> Result<(), Errno> {
        for (at, _) in place.match_indices('/') {
            match fs::mkdirat(&self.folder.fd, &place[..at], Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // A failure shows when the folder is removed at the end of the trial.
            let _ = fs::unlinkat(&self.folder.fd, &self.name, AtFlags::empty());
        }
    }
}

/// Where a file lies in the folder.
fn place(instance: u32, kind: StoredFile, id: u64) -> String {
    let path = kind.path(id);
    // "/person/17.jpg": the kind and the name.
    let (kind, name) = path.trim_start_matches('/').split_once('/').unwrap_or(("", &path));
    format!("{instance}/{kind}/{}/{}/{name}", id % 1_000, id / 1_000_000)
}

/// Sends a file. Returns the bytes sent. One that ends before its length is an error: the client waits for the rest.
pub fn send(fd: BorrowedFd<'_>, file: &OwnedFd, bytes: u64, kind: StoredFile) -> Result<u64, Errno> {
    let mut room = [0; 256];
    let head = Answer::OK.head(content_type(kind), bytes, false, &mut room);
    let more = if bytes > 0 { SendFlags::MORE } else { SendFlags::empty() };
    net::send_full(fd, &room[..head], more)?;
    let mut left = bytes;
    while left > 0 {
        match fs::sendfile(fd, file.as_fd(), None, left as usize) {
            Ok(0) => return Err(Errno::IO),
            Ok(sent) => left -= sent as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(head as u64 + bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_two_levels_of_directories() {
        assert_eq!(place(1, StoredFile::PersonImage, 10_001), "1/person/1/0/10001.jpg");
        assert_eq!(place(12, StoredFile::EventThumbnail, 7_654_321), "12/event/321/7/7654321t.jpg");
        assert_eq!(place(2, StoredFile::EventDocument, 31), "2/event/31/0/31.pdf");
    }
}
