//! Root file systems from tar archives, unpacked with the suspicion that strangers' archives deserve.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use tar::{Archive, EntryType};

/// Why an archive was not unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// It cannot be read, or what it holds cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is no tar archive.
    #[error("it is no tar archive: {0}. Is it compressed? Uncompress it first")]
    NotTar(io::Error),
    /// Something in it would end up elsewhere.
    #[error("its entry {} {why}: an archive of a file system has no such thing", .entry.display())]
    LeadsOut {
        /// The entry.
        entry: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// The directory into which the archive is unpacked; a second guest of a run finds it there.
pub(super) fn unpacked(archive: &Path, images: &Path) -> Result<PathBuf, ArchiveError> {
    let seen = archive.metadata()?;
    // The same name, size and time of change make the same archive, as make(1) has it.
    let key = format!("{:x}-{:x}-{:x}-{:x}", seen.dev(), seen.ino(), seen.size(), seen.mtime_nsec() ^ seen.mtime());
    let ready = images.join(&key);
    if ready.is_dir() {
        return Ok(ready);
    }
    // Unpacked aside and renamed when complete: what is there under its name is whole.
    let aside = images.join(format!("{key}.{:?}", std::thread::current().id()));
    std::fs::create_dir_all(&aside)?;
    let done = unpack(archive, &aside).and_then(|()| match std::fs::rename(&aside, &ready) {
        // Another guest of this run was faster.
        Err(_) if ready.is_dir() => Ok(()),
        other => Ok(other?),
    });
    if aside.exists() {
        std::fs::remove_dir_all(&aside)?;
    }
    done.map(|()| ready)
}

fn unpack(archive: &Path, into: &Path) -> Result<(), ArchiveError> {
    let mut archive = Archive::new(io::BufReader::with_capacity(1 << 20, File::open(archive)?));
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(true);
    for entry in archive.entries().map_err(ArchiveError::NotTar)? {
        let mut entry = entry.map_err(ArchiveError::NotTar)?;
        let path = entry.path()?.into_owned();
        let leads_out = |why| ArchiveError::LeadsOut { entry: path.clone(), why };
        if !stays_inside(&path) {
            return Err(leads_out("has an absolute path or one with `..`"));
        }
        match entry.header().entry_type() {
            // The guest gets a /dev of its own.
            EntryType::Char | EntryType::Block | EntryType::Fifo => continue,
            EntryType::Link if !entry.link_name()?.is_some_and(|target| stays_inside(&target)) => {
                return Err(leads_out("is a hard link to a file outside"));
            }
            _ => {}
        }
        // Symbolic links may say what they like, as they are followed inside the guest; but nothing is
        // written through one that leads out: unpack_in looks where each path really ends.
        if !entry.unpack_in(into).map_err(|error| explain(error, &path))? {
            return Err(leads_out("leads outside"));
        }
    }
    Ok(())
}

fn explain(error: io::Error, path: &Path) -> ArchiveError {
    // The crate wraps the system's reason in its own words, layer by layer.
    let first: &dyn std::error::Error = &error;
    let layers: Vec<String> =
        std::iter::successors(Some(first), |layer| layer.source()).map(ToString::to_string).collect();
    if layers.iter().any(|layer| layer.contains("outside of destination")) {
        return ArchiveError::LeadsOut {
            entry: path.to_owned(),
            why: "goes through a symbolic link that leads outside",
        };
    }
    ArchiveError::Io(io::Error::new(error.kind(), format!("{}: {}", path.display(), layers.join(": "))))
}

fn stays_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::{Builder, Header};

    /// An archive of entries: path, type, link target.
    fn archive(at: &Path, entries: &[(&str, EntryType, &str)]) {
        let mut builder = Builder::new(File::create(at).unwrap());
        for (path, kind, target) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o755);
            header.set_size(0);
            header.set_uid(rustix::process::getuid().as_raw().into());
            header.set_gid(rustix::process::getgid().as_raw().into());
            header.set_mtime(0);
            // Written by hand, as the crate refuses to write what we want to be refused.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
            header.set_cksum();
            builder.append(&header, io::empty()).unwrap();
        }
        builder.finish().unwrap();
    }

    fn try_out(entries: &[(&str, EntryType, &str)]) -> Result<PathBuf, String> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("x.tar");
        archive(&file, entries);
        let result = unpacked(&file, &place.path().join("images")).map_err(|error| error.to_string());
        if result.is_err() {
            let left: Vec<_> = std::fs::read_dir(place.path().join("images")).unwrap().collect();
            assert!(left.is_empty(), "a refused archive leaves nothing: {left:?}");
        }
        // Keeps the directory for those who look into it.
        std::mem::forget(place);
        result
    }

    #[test]
    fn a_file_system_is_unpacked_once() {
        use EntryType::{Directory, Regular, Symlink};
        let entries = [
            ("usr/", Directory, ""),
            ("usr/tool", Regular, ""),
            ("etc/", Directory, ""),
            ("etc/alt", Symlink, "/usr/tool"),
        ];
        let ready = try_out(&entries).unwrap();
        assert_eq!(std::fs::read_link(ready.join("etc/alt")).unwrap(), Path::new("/usr/tool"));
        let (images, place) = (ready.parent().unwrap(), ready.ancestors().nth(2).unwrap());
        std::fs::write(ready.join("mark"), "").unwrap();
        assert!(unpacked(&place.join("x.tar"), images).unwrap().join("mark").exists());
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn what_leads_out_is_refused() {
        use EntryType::{Link, Regular, Symlink};
        for (entries, word) in [
            (&[("/etc/passwd", Regular, "")][..], "absolute"),
            (&[("a/../../b", Regular, "")], "absolute"),
            (&[("a", Link, "/etc/passwd")], "hard link"),
            (&[("a", Link, "../../etc/passwd")], "hard link"),
            (&[("a", Symlink, "/etc"), ("a/tare-was-here", Regular, "")], "symbolic link"),
            (&[("a", Symlink, "../.."), ("a/tare-was-here", Regular, "")], "symbolic link"),
        ] {
            let error = try_out(entries).unwrap_err();
            assert!(error.contains(word), "{entries:?}: {error}");
        }
        assert!(!Path::new("/etc/tare-was-here").exists());
    }

    #[test]
    fn something_else_is_not_taken_for_an_archive() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("x.tar");
        std::fs::write(&file, vec![0x1f; 4096]).unwrap();
        let error = unpacked(&file, &place.path().join("images")).unwrap_err().to_string();
        assert!(error.contains("compressed"), "{error}");
    }
}
