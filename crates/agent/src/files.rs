//! Files that the controller writes into the guest and reads from it, in parts.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tare_wire::{CHUNK_BYTES, Reply};

type Answer = Result<Reply, String>;

/// Writes one part beside the file's place; the last part puts the file there, replacing what had its name.
///
/// # Errors
/// Why not, for people. What was written so far is gone then.
pub fn put(path: &str, mode: u32, offset: u64, bytes: &[u8], last: bool) -> Answer {
    let place = Path::new(path);
    let beside = beside(place)?;
    let done = write_part(&beside, offset, bytes).and_then(|()| {
        if last {
            fs::set_permissions(&beside, Permissions::from_mode(mode & 0o777))?;
            fs::rename(&beside, place)?;
        }
        Ok(())
    });
    done.map(|()| Reply::Done).map_err(|error| {
        // It may never have been there.
        let _ = fs::remove_file(&beside);
        format!("cannot write {path}: {error}")
    })
}

/// Where a file is written until it is whole.
fn beside(place: &Path) -> Result<PathBuf, String> {
    let name = place.file_name().ok_or_else(|| format!("cannot write {}: it names no file", place.display()))?;
    Ok(place.with_file_name(format!(".{}.tare-{}", name.to_string_lossy(), std::process::id())))
}

fn write_part(beside: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let mut file = if offset == 0 {
        // One that was left unfinished is begun anew.
        let _ = fs::remove_file(beside);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?
    } else {
        OpenOptions::new().append(true).open(beside)?
    };
    let length = file.metadata()?.len();
    if length != offset {
        let why = format!("a part for byte {offset} came when {length} bytes were there");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    file.write_all(bytes)
}

/// Reads one part of a file.
///
/// # Errors
/// Why not, for people: among others when it is no plain file, for such may block for ever or have no end.
pub fn get(path: &str, offset: u64, limit_bytes: u64) -> Answer {
    let read = || -> io::Result<Reply> {
        // Opening a pipe would otherwise wait for somebody to write to it.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let total_bytes = plain_length(&file)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(limit_bytes.min(CHUNK_BYTES as u64)).read_to_end(&mut bytes)?;
        Ok(Reply::File { bytes, total_bytes })
    };
    read().map_err(|error| format!("cannot read {path}: {error}"))
}

fn plain_length(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok(metadata.len())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_when_its_last_part_has_come_and_not_before() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let name = path.to_str().unwrap();
        put(name, 0o750, 0, b"never finished", false).unwrap();
        put(name, 0o750, 0, b"hello ", false).unwrap();
        assert!(!path.exists());
        put(name, 0o104_750, 6, b"world", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello world");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
        let part = Reply::File { bytes: b"o w".to_vec(), total_bytes: 11 };
        assert_eq!(get(name, 4, 3), Ok(part));
        assert_eq!(get(name, 11, 3), Ok(Reply::File { bytes: Vec::new(), total_bytes: 11 }));
    }

    #[test]
    fn parts_out_of_order_and_places_that_are_none_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let name = path.to_str().unwrap();
        put(name, 0o644, 0, b"abc", false).unwrap();
        let error = put(name, 0o644, 4, b"e", true).unwrap_err();
        assert!(error.contains("byte 4") && error.contains("3 bytes"), "{error}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "what cannot be finished is gone");
        assert!(put("/", 0o644, 0, b"", true).unwrap_err().contains("names no file"));
        assert!(put("/no/such/place/file", 0o644, 0, b"", true).is_err());
        assert!(get("/dev/zero", 0, 10).unwrap_err().contains("no plain file"));
        assert!(get(place.path().to_str().unwrap(), 0, 10).is_err());
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(get(pipe.to_str().unwrap(), 0, 10).unwrap_err().contains("no plain file"));
    }
}
