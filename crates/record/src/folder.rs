//! The one way to read and write what lies in a run folder.
//!
//! A folder may come from a stranger. Its files are reached from a descriptor of the folder, by names of a fixed list, and never
//! through a link; only regular files are read, and only up to the size that their kind may have.

use std::ffi::CStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use serde::Serialize;

use crate::error::{RecordError, Result};
use crate::layout;

/// An open run folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder. The path itself may be a link: its user chose it. Nothing inside is followed.
    ///
    /// # Errors
    /// When there is no folder or it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|e| RecordError::io("opening the run folder", path, e.into()))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Makes a folder that only its owner may enter, or opens one that is there and empty.
    ///
    /// # Errors
    /// When it cannot be made, and [`RecordError::NotEmpty`] when something is in it.
    pub fn create(path: &Path) -> Result<Self> {
        make(path).map_err(|e| RecordError::io("making the run folder", path, e))?;
        let folder = Self::open(path)?;
        if !folder.is_empty().map_err(|e| RecordError::io("reading the run folder", path, e))? {
            return Err(RecordError::NotEmpty { dir: path.to_owned() });
        }
        Ok(folder)
    }

    /// The path by which the folder was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file, for messages.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether a file is there.
    ///
    /// # Errors
    /// [`RecordError::NotPlain`] when something is there that is no file of a run.
    pub fn exists(&self, name: &str) -> Result<bool> {
        self.length(name).map(|length| length.is_some())
    }

    /// Length of a file, bytes; `None` when it is not there.
    ///
    /// # Errors
    /// As [`Self::exists`].
    pub fn length(&self, name: &str) -> Result<Option<u64>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => self.checked(name, &stat).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(RecordError::io("looking at", &self.file(name), e.into())),
        }
    }

    /// Bytes that a file has on disk, without its holes; 0 when it is not there.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn bytes_on_disk(&self, name: &str) -> Result<u64> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Blocks of 512 bytes, whatever those of the file system are (stat(2)).
            Ok(stat) => Ok(u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512)),
            Err(Errno::NOENT) => Ok(0),
            Err(e) => Err(RecordError::io("looking at", &self.file(name), e.into())),
        }
    }

    /// Opens a file for reading; `None` when it is not there.
    ///
    /// # Errors
    /// When it cannot be opened, is not a plain file, or is longer than its kind may be.
    pub fn open_file(&self, name: &str) -> Result<Option<File>> {
        // Looked at before it is opened: opening a device can have effects.
        if self.length(name)?.is_none() {
            return Ok(None);
        }
        self.opened("reading", name, OFlags::RDONLY).map(Some)
    }

    /// Reads a file; `None` when it is not there.
    ///
    /// # Errors
    /// As [`Self::open_file`], and when reading fails.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let most = layout::most_bytes(name).unwrap_or_default();
        file.take(most + 1).read_to_end(&mut bytes).map_err(|e| RecordError::io("reading", &self.file(name), e))?;
        // It may grow while it is read.
        if bytes.len() as u64 > most {
            return Err(self.too_long(name, bytes.len() as u64, most));
        }
        Ok(Some(bytes))
    }

    /// Makes a file that is not there yet, for reading and writing.
    ///
    /// # Errors
    /// When it is there, or cannot be made.
    pub fn open_new(&self, name: &str) -> Result<File> {
        self.opened("making", name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a file that is there, for reading and writing.
    ///
    /// # Errors
    /// When it is not there, is not a plain file, or cannot be opened.
    pub fn open_writable(&self, name: &str) -> Result<File> {
        self.length(name)?;
        self.opened("opening", name, OFlags::RDWR)
    }

    /// Adds bytes at the end of a file, which is made if it is not there, and waits for the disk.
    ///
    /// # Errors
    /// When it is not a plain file or cannot be written.
    pub fn append(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.length(name)?;
        let mut file = self.opened("writing", name, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|e| RecordError::io("writing", &self.file(name), e))?;
        self.sync()
    }

    /// Writes a file whole: a reader sees the old one or the new one. A link of that name is replaced, not followed.
    ///
    /// # Errors
    /// When it cannot be written; nothing is left of it then.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let failed = |e: io::Error| RecordError::io("writing", &self.file(name), e);
        let (length, most) = (bytes.len() as u64, self.listed(name)?);
        if length > most {
            // Nobody could read it.
            return Err(self.too_long(name, length, most));
        }
        let (temporary, mut file) = self.temporary(name).map_err(failed)?;
        let written = file
            .write_all(bytes)
            .and_then(|()| self.hand_over(&file))
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(rustix::fs::renameat(&self.fd, &temporary, &self.fd, name)?));
        if let Err(e) = written {
            // What cannot be removed either stays under a name that nothing reads.
            let _ = rustix::fs::unlinkat(&self.fd, &temporary, AtFlags::empty());
            return Err(failed(e));
        }
        self.sync()
    }

    /// Removes a file, or whatever has its name, if it is there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.listed(name)?;
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(RecordError::io("removing", &self.file(name), e.into())),
        }
    }

    /// Waits until the folder's entries are on disk.
    ///
    /// # Errors
    /// When the file system cannot do it.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::fsync(&self.fd).map_err(|e| RecordError::io("writing the folder's entries", &self.path, e.into()))
    }

    /// The path of a file without any link in it, for SQLite, which opens files by path and is forbidden to follow one.
    ///
    /// # Errors
    /// When the path does not lead to this folder any more.
    pub(crate) fn real_path(&self, name: &str) -> Result<PathBuf> {
        self.listed(name)?;
        let failed = |e| RecordError::io("finding", &self.path, e);
        let real = std::fs::canonicalize(&self.path).map_err(failed)?;
        let (now, then) = (rustix::fs::stat(&real), rustix::fs::fstat(&self.fd));
        let (now, then) = (now.map_err(|e| failed(e.into()))?, then.map_err(|e| failed(e.into()))?);
        if (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino) {
            return Err(failed(io::Error::other("another folder took its place")));
        }
        Ok(real.join(name))
    }

    fn is_empty(&self) -> io::Result<bool> {
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let name = entry?;
            let name: &CStr = name.file_name();
            if name != c"." && name != c".." {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Opens a file and looks at what was opened.
    fn opened(&self, doing: &'static str, name: &str, how: OFlags) -> Result<File> {
        self.listed(name)?;
        let path = self.file(name);
        let fd = open_at(&self.fd, name, how).map_err(|e| match e {
            Errno::LOOP => RecordError::NotPlain { file: path.clone(), what: "a symbolic link" },
            e => RecordError::io(doing, &path, e.into()),
        })?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| RecordError::io(doing, &path, e.into()))?;
        self.checked(name, &stat)?;
        let file = File::from(fd);
        if how.contains(OFlags::CREATE) && stat.st_size == 0 {
            self.hand_over(&file).map_err(|e| RecordError::io(doing, &path, e))?;
        }
        Ok(file)
    }

    /// Gives a new file the permissions and, where that is allowed, the owner of its folder.
    fn hand_over(&self, file: &File) -> io::Result<()> {
        let folder = rustix::fs::fstat(&self.fd)?;
        if rustix::process::geteuid().is_root() && folder.st_uid != 0 {
            let owner = (rustix::fs::Uid::from_raw(folder.st_uid), rustix::fs::Gid::from_raw(folder.st_gid));
            // A root without that capability keeps the file; the owner of the folder can still remove it.
            let _ = rustix::fs::fchown(file, Some(owner.0), Some(owner.1));
        }
        let mode = Mode::from_raw_mode(folder.st_mode & 0o044 | 0o600);
        Ok(rustix::fs::fchmod(file, mode)?)
    }

    /// Length of a file that may be read; whatever else it is is refused.
    fn checked(&self, name: &str, stat: &Stat) -> Result<u64> {
        let most = self.listed(name)?;
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_nlink <= 1 => None,
            FileType::RegularFile => Some("a file with several names (a hard link)"),
            FileType::Symlink => Some("a symbolic link"),
            FileType::Directory => Some("a directory"),
            FileType::Fifo => Some("a FIFO"),
            FileType::Socket => Some("a socket"),
            _ => Some("a device"),
        };
        if let Some(what) = what {
            return Err(RecordError::NotPlain { file: self.file(name), what });
        }
        let length = u64::try_from(stat.st_size).unwrap_or_default();
        if length > most {
            return Err(self.too_long(name, length, most));
        }
        Ok(length)
    }

    /// Most bytes that a file of this name may have.
    fn listed(&self, name: &str) -> Result<u64> {
        layout::most_bytes(name).ok_or_else(|| {
            let unknown = io::Error::new(io::ErrorKind::InvalidInput, "a run folder has no file of this name");
            RecordError::io("looking for", &self.file(name), unknown)
        })
    }

    fn too_long(&self, name: &str, length: u64, most: u64) -> RecordError {
        RecordError::TooLong { file: self.file(name), length, most }
    }

    fn temporary(&self, name: &str) -> io::Result<(String, File)> {
        for number in 0..1000 {
            let temporary = format!(".{name}.{}-{number}", std::process::id());
            match open_at(&self.fd, &temporary, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
                Ok(fd) => return Ok((temporary, File::from(fd))),
                Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(io::Error::other("every name for a temporary file is taken"))
    }
}

/// Opens a name, which holds no slash, in a folder. Kernels before 5.6 and some sandboxes have no `openat2`; for a name of one
/// component `O_NOFOLLOW` alone does as much.
fn open_at(folder: &OwnedFd, name: &str, how: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mode = if how.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..16 {
        match rustix::fs::openat2(folder, name, flags, mode, resolve) {
            // A rename elsewhere was in the way.
            Err(Errno::AGAIN) => {}
            Err(Errno::NOSYS | Errno::PERM) => break,
            done => return done,
        }
    }
    rustix::fs::openat(folder, name, flags, mode)
}

/// Makes a folder and those above it that are missing, each on disk when this returns.
fn make(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    for folder in missing.into_iter().rev() {
        let mode = if folder == path { 0o700 } else { 0o777 };
        match DirBuilder::new().mode(mode).create(folder) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        if let Some(parent) = folder.parent() {
            File::open(parent)?.sync_all()?;
        }
    }
    Ok(())
}

/// A value as the file of it is written.
///
/// # Errors
/// When it cannot be JSON.
pub(crate) fn json(file: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|e| RecordError::io("writing JSON", file, std::io::Error::other(e)))?;
    bytes.push(b'\n');
    Ok(bytes)
}
