//! Where an image's blobs are: in a directory or in an archive, which is read in place.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Take};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tar::{Archive, EntryType};

use super::{Bad, Found, bad};

/// The most entries that an archive of an image may have: each layer is a few.
const MOST_ENTRIES: usize = 65_536;

/// The largest document, bytes: as registries limit manifests.
const LARGEST_DOCUMENT: u64 = 4 << 20;

/// So many links from one name to the next are followed in an archive.
const MOST_LINKS: usize = 8;

/// An image as the user has it.
pub(super) struct Source {
    pub path: PathBuf,
    /// What is in an archive; nothing for a directory.
    entries: Option<BTreeMap<String, Place>>,
}

enum Place {
    Data { at: u64, size: u64 },
    Link(String),
}

/// A blob's bytes.
pub(super) struct Blob {
    pub reader: Take<File>,
    pub size: u64,
}

impl Source {
    /// Opens a directory, or reads the table of an archive.
    pub(super) fn open(path: &Path) -> Found<Self> {
        let seen = path.metadata().map_err(|error| Bad::new(format!("it is not there: {error}"), "check its path"))?;
        let entries = if seen.is_dir() {
            None
        } else if seen.is_file() {
            Some(table(path, seen.len())?)
        } else {
            return Err(bad("it is neither a directory nor a file"));
        };
        Ok(Self { path: path.to_owned(), entries })
    }

    /// The blob of that name, such as `blobs/sha256/..`; `None` where there is none.
    pub(super) fn blob(&self, name: &str) -> Found<Option<Blob>> {
        let failed =
            |error: std::io::Error| Bad::new(format!("its {name} cannot be read: {error}"), "is it readable for you?");
        let Some(entries) = &self.entries else {
            // Not waited for, should it be a pipe.
            let opened = OpenOptions::new().read(true).custom_flags(libc_nonblock()).open(self.path.join(name));
            let file = match opened {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                other => other.map_err(failed)?,
            };
            let seen = file.metadata().map_err(failed)?;
            if !seen.is_file() {
                return Err(bad(format!("its {name} is no file")));
            }
            return Ok(Some(Blob { reader: file.take(seen.len()), size: seen.len() }));
        };
        let mut name = name;
        for _ in 0..MOST_LINKS {
            match entries.get(name) {
                None => return Ok(None),
                Some(Place::Link(target)) => name = target,
                Some(&Place::Data { at, size }) => {
                    let mut file = File::open(&self.path).map_err(failed)?;
                    file.seek(SeekFrom::Start(at)).map_err(failed)?;
                    return Ok(Some(Blob { reader: file.take(size), size }));
                }
            }
        }
        Err(bad(format!("its {name} is a link that leads to no end")))
    }

    /// The same for what must be there.
    pub(super) fn needed(&self, name: &str) -> Found<Blob> {
        self.blob(name)?.ok_or_else(|| bad(format!("it has no {name}")))
    }

    /// A small file as a whole; `None` where there is none.
    pub(super) fn document(&self, name: &str) -> Found<Option<Vec<u8>>> {
        let Some(blob) = self.blob(name)? else { return Ok(None) };
        if blob.size > LARGEST_DOCUMENT {
            return Err(bad(format!("its {name} has {} bytes, more than any manifest may have", blob.size)));
        }
        let mut bytes = Vec::new();
        let mut reader = blob.reader;
        reader.read_to_end(&mut bytes).map_err(|error| bad(format!("its {name} cannot be read: {error}")))?;
        Ok(Some(bytes))
    }
}

fn libc_nonblock() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

/// What is where in an archive. Its bytes are not read.
fn table(path: &Path, length: u64) -> Found<BTreeMap<String, Place>> {
    let unreadable = |error: std::io::Error| Bad::new(error, "is it readable for you?");
    let no_archive = |error: std::io::Error| bad(format!("it is no tar archive: {error}"));
    let mut file = File::open(path).map_err(unreadable)?;
    let mut magic = Vec::new();
    file.by_ref().take(4).read_to_end(&mut magic).map_err(unreadable)?;
    if magic.starts_with(&[0x1f, 0x8b])
        || magic == [0x28, 0xb5, 0x2f, 0xfd]
        || magic.starts_with(b"BZh")
        || magic == [0xfd, b'7', b'z', b'X']
    {
        return Err(Bad::new(
            "the archive itself is compressed",
            "uncompress it: its layers may be compressed, it may not",
        ));
    }
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let mut found = BTreeMap::new();
    let mut archive = Archive::new(file);
    // Raw: names of archives of images are short, and a long one is not to fill the memory.
    for entry in archive.entries_with_seek().map_err(no_archive)?.raw(true) {
        let entry = entry.map_err(no_archive)?;
        let Some(name) = normal(&entry.path_bytes()) else { continue };
        let place = match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let (at, size) = (entry.raw_file_position(), entry.size());
                if at.checked_add(size).is_none_or(|end| end > length) {
                    return Err(bad(format!("the archive ends within {name}: it is cut off")));
                }
                Place::Data { at, size }
            }
            EntryType::Symlink | EntryType::Link => {
                let target = entry.link_name_bytes().unwrap_or_default();
                let from = if entry.header().entry_type() == EntryType::Link {
                    ""
                } else {
                    name.rsplit_once('/').map_or("", |(folder, _)| folder)
                };
                let Some(target) = normal(format!("{from}/{}", String::from_utf8_lossy(&target)).as_bytes()) else {
                    continue;
                };
                Place::Link(target)
            }
            _ => continue,
        };
        if found.len() >= MOST_ENTRIES {
            return Err(bad(format!("the archive has more than {MOST_ENTRIES} files, as no image has")));
        }
        found.insert(name, place);
    }
    Ok(found)
}

/// A name without `.` and `..`; `None` for one that leads out of the archive or is no text.
fn normal(name: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    for part in std::str::from_utf8(name).ok()?.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/")).filter(|name| !name.is_empty())
}
