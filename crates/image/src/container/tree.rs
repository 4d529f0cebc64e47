//! The tree that layers are unpacked into, with the suspicion that strangers' archives deserve.
//!
//! Every path is resolved by the kernel as if the tree were the root of the file system, so no link, `..` or absolute
//! path leads out of it; what is made, is made by its name in an open directory and never through a link.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use tar::Archive;

use super::tar_entry::{Ahead, Described, Kind};
use super::{Bad, Found, bad};

/// How a layer says that something below it is gone: this, and its name.
const WHITEOUT: &[u8] = b".wh.";
/// The name, where it says that a directory has nothing of the layers below.
const OPAQUE: &[u8] = b".wh..opq";

/// The most entries of an image.
const MOST_ENTRIES: u64 = 4_000_000;

/// How deep directories may lie in each other: nothing that removes them holds more open.
const DEEPEST: usize = 400;

/// What helps where the tree cannot be written.
const WRITE: &str = "is the cache on an ordinary file system with room (TARE_CACHE)?";

/// A name in a directory, which is known by its number.
type Name = (u64, OsString);

/// The tree.
pub(super) struct Tree {
    root: OwnedFd,
    /// Whether files belong to whom the image says.
    owners: bool,
    entries: u64,
}

impl Tree {
    /// Opens an empty directory.
    pub(super) fn open(path: &Path, owners: bool) -> Found<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| Bad::new(format!("{}: {error}", path.display()), WRITE))?;
        Ok(Self { root, owners, entries: 0 })
    }

    /// Unpacks a layer over those before it.
    pub(super) fn apply(&mut self, layer: &mut dyn Read) -> Found<()> {
        let broken = |error: io::Error| bad(format!("an archive of its layers cannot be read: {error}"));
        // What this layer has made: its whiteouts are of what lies below it, wherever in it they stand.
        let mut made = HashSet::new();
        let mut ahead = Ahead::default();
        for entry in Archive::new(layer).entries().map_err(broken)?.raw(true) {
            let mut entry = entry.map_err(broken)?;
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                return Err(bad(format!("it has more than {MOST_ENTRIES} files")));
            }
            if ahead.takes(&mut entry)? {
                continue;
            }
            let described = std::mem::take(&mut ahead).describe(&entry)?;
            self.place(&described, &mut entry, &mut made)?;
        }
        Ok(())
    }

    fn place(&self, entry: &Described, data: &mut impl Read, made: &mut HashSet<Name>) -> Found<()> {
        let shown = String::from_utf8_lossy(&entry.path).escape_debug().to_string();
        let refused = |why: &str| bad(format!("its entry {shown} {why}"));
        let failed = |error: Errno| match error {
            Errno::LOOP | Errno::NOTDIR | Errno::NOENT | Errno::EXIST | Errno::NAMETOOLONG | Errno::INVAL => {
                refused(&format!("cannot be made: {error}"))
            }
            error => Bad::new(format!("its entry {shown} cannot be unpacked: {error}"), WRITE),
        };
        let mut parts = parts(&entry.path).ok_or_else(|| refused("leads out of the image"))?;
        let Some(name) = parts.pop() else {
            // The root itself.
            return if entry.kind == Kind::Directory {
                self.finish(self.root.as_fd(), entry).map_err(failed)
            } else {
                Ok(())
            };
        };
        let folder = self.folder(&parts, true).map_err(failed)?;
        let bytes = name.as_bytes();
        if bytes.starts_with(WHITEOUT) {
            return match bytes.strip_prefix(WHITEOUT) {
                Some(b"" | b"." | b"..") => Err(refused("removes what no layer has")),
                gone => take_away(folder.as_fd(), gone.unwrap_or_default(), made).map_err(failed),
            };
        }
        if depth(folder.as_fd()).map_err(failed)? > DEEPEST {
            return Err(refused("lies too deep"));
        }
        if entry.kind == Kind::Special {
            return Ok(());
        }
        let number = rustix::fs::fstat(&folder).map_err(failed)?.st_ino;
        if entry.kind == Kind::HardLink {
            let Some(mut target) = self::parts(&entry.link).filter(|target| !target.is_empty()) else {
                return Err(refused("is a hard link to a file outside"));
            };
            let last = target.pop().unwrap_or_default();
            let missing = |error| match error {
                Errno::NOENT | Errno::PERM => refused("is a hard link to a file that the image does not have"),
                error => failed(error),
            };
            let from = self.folder(&target, false).map_err(missing)?;
            rustix::fs::statat(&from, last, AtFlags::SYMLINK_NOFOLLOW).map_err(missing)?;
            make_room(folder.as_fd(), name, &entry.kind).map_err(failed)?;
            rustix::fs::linkat(&from, last, &folder, name, AtFlags::empty()).map_err(missing)?;
        } else {
            make_room(folder.as_fd(), name, &entry.kind).map_err(failed)?;
            self.make(folder.as_fd(), name, entry, data).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => refused("is cut off"),
                _ => Bad::new(format!("its entry {shown} cannot be unpacked: {error}"), WRITE),
            })?;
        }
        made.insert((number, name.to_owned()));
        Ok(())
    }

    /// Makes a file, a directory or a symbolic link where nothing is, save a directory for a directory.
    fn make(&self, folder: BorrowedFd<'_>, name: &OsStr, entry: &Described, data: &mut impl Read) -> io::Result<()> {
        match entry.kind {
            Kind::Directory => {
                match rustix::fs::mkdirat(folder, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = rustix::fs::openat(folder, name, flags, Mode::empty())?;
                self.finish(made.as_fd(), entry)?;
            }
            Kind::Symlink => {
                rustix::fs::symlinkat(OsStr::from_bytes(&entry.link), folder, name)?;
                if self.owners {
                    let (uid, gid) = owner(entry);
                    rustix::fs::chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
                }
                rustix::fs::utimensat(folder, name, &times(entry), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            _ => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?);
                if io::copy(data, &mut file)? != entry.size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if self.owners {
                    let (uid, gid) = owner(entry);
                    rustix::fs::fchown(&file, Some(uid), Some(gid))?;
                }
                rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode))?;
                if let Some(capability) = entry.capability.as_ref().filter(|_| self.owners) {
                    rustix::fs::fsetxattr(&file, "security.capability", capability, XattrFlags::empty())?;
                }
                rustix::fs::futimens(&file, &times(entry))?;
            }
        }
        Ok(())
    }

    /// Owner and mode of an open directory.
    fn finish(&self, directory: BorrowedFd<'_>, entry: &Described) -> rustix::io::Result<()> {
        // What is opened for its path alone is changed by its name in /proc.
        let name = own_name(directory);
        if self.owners {
            let (uid, gid) = owner(entry);
            rustix::fs::chown(&name, Some(uid), Some(gid))?;
        }
        rustix::fs::chmod(&name, Mode::from_raw_mode(entry.mode))
    }

    /// The directory of these names, as seen from the root of the image; made where it is not there.
    fn folder(&self, parts: &[&OsStr], make: bool) -> rustix::io::Result<OwnedFd> {
        let opened = self.open_folder(parts);
        let (Err(Errno::NOENT), true, Some((last, before))) = (&opened, make, parts.split_last()) else {
            return opened;
        };
        let before = self.folder(before, true)?;
        rustix::fs::mkdirat(&before, *last, Mode::from_raw_mode(0o755))?;
        self.open_folder(parts)
    }

    fn open_folder(&self, parts: &[&OsStr]) -> rustix::io::Result<OwnedFd> {
        let path = if parts.is_empty() { PathBuf::from(".") } else { parts.iter().collect() };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        rustix::fs::openat2(&self.root, path, flags, Mode::empty(), within)
    }
}

/// The names of a path, from the root of the image; `None` where it would lead out of it. A `/` at its beginning is that root.
fn parts(path: &[u8]) -> Option<Vec<&OsStr>> {
    let mut parts = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return None,
            part if part.contains(&0) => return None,
            part => parts.push(OsStr::from_bytes(part)),
        }
    }
    // Each is looked for from the root.
    (parts.len() <= DEEPEST).then_some(parts)
}

fn owner(entry: &Described) -> (Uid, Gid) {
    (Uid::from_raw(entry.owner.0), Gid::from_raw(entry.owner.1))
}

fn times(entry: &Described) -> Timestamps {
    let at = Timespec { tv_sec: entry.mtime, tv_nsec: 0 };
    Timestamps { last_access: at, last_modification: at }
}

fn own_name(open: BorrowedFd<'_>) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()))
}

/// How deep an open directory lies on this host.
fn depth(directory: BorrowedFd<'_>) -> rustix::io::Result<usize> {
    let path = rustix::fs::readlink(own_name(directory), Vec::new())?;
    Ok(path.as_bytes().iter().filter(|&&byte| byte == b'/').count())
}

/// Removes what is in the place of a new entry. A directory stays for a directory.
fn make_room(folder: BorrowedFd<'_>, name: &OsStr, kind: &Kind) -> rustix::io::Result<()> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
        Ok(seen) if FileType::from_raw_mode(seen.st_mode).is_dir() && *kind == Kind::Directory => Ok(()),
        Ok(_) => remove_lower(folder, name, &HashSet::new()).map(drop),
    }
}

/// Does what a whiteout says. Names that are themselves such a name are nobody's but a file system's.
fn take_away(folder: BorrowedFd<'_>, gone: &[u8], made: &HashSet<Name>) -> rustix::io::Result<()> {
    if gone == OPAQUE {
        return remove_below(folder, made);
    }
    if gone.starts_with(WHITEOUT) {
        return Ok(());
    }
    remove_lower(folder, OsStr::from_bytes(gone), made).map(drop)
}

/// Removes a name with all below it, save what is in `made`; whether nothing is left of it.
fn remove_lower(folder: BorrowedFd<'_>, name: &OsStr, made: &HashSet<Name>) -> rustix::io::Result<bool> {
    let keeps =
        if made.is_empty() { false } else { made.contains(&(rustix::fs::fstat(folder)?.st_ino, name.to_owned())) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(directory) => {
            remove_below(directory.as_fd(), made)?;
            if keeps {
                return Ok(false);
            }
            match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
                Ok(()) => Ok(true),
                Err(Errno::NOTEMPTY) => Ok(false),
                Err(error) => Err(error),
            }
        }
        Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTDIR | Errno::LOOP) if keeps => Ok(false),
        Err(Errno::NOTDIR | Errno::LOOP) => rustix::fs::unlinkat(folder, name, AtFlags::empty()).map(|()| true),
        Err(error) => Err(error),
    }
}

/// The same for all that is in a directory.
fn remove_below(directory: BorrowedFd<'_>, made: &HashSet<Name>) -> rustix::io::Result<()> {
    let mut names = Vec::new();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(rustix::fs::openat(directory, ".", flags, Mode::empty())?)? {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    names.into_iter().try_for_each(|name| remove_lower(directory, &name, made).map(drop))
}
