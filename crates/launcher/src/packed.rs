//! The programs inside this one.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use elf::ElfStream;
use elf::endian::AnyEndian;
use lzma_rust2::XzReader;

/// The sections that scripts/dist.sh adds: a name that tells the contents of the others, and each program, compressed by xz.
const NAME: &str = ".tare.name";
const PROGRAMS: [(&str, &str); 2] = [(".tare.agent", "tare-agent"), (".tare.program", "tare")];

/// What was tried, why it failed, what helps.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried}: {why}; {remedy}")]
pub struct Error {
    tried: String,
    why: String,
    remedy: &'static str,
}

impl Error {
    pub fn new(tried: String, why: impl ToString, remedy: &'static str) -> Self {
        Self { tried, why: why.to_string(), remedy }
    }
}

/// The file that has programs inside.
pub struct Packed {
    file: ElfStream<AnyEndian, File>,
}

impl Packed {
    /// The file at that place.
    ///
    /// # Errors
    /// When it cannot be read or is no program.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(damaged)?;
        Ok(Self { file: ElfStream::open_stream(file).map_err(damaged)? })
    }

    /// The path of tare, unpacked below that folder with its agent beside it: now, or by an earlier start.
    ///
    /// # Errors
    /// When this file is not whole, or nothing can be written there.
    pub fn unpacked(mut self, folder: &Path) -> Result<PathBuf, Error> {
        let name = String::from_utf8(self.section(NAME)?).map_err(damaged)?;
        let place = folder.join(name.trim());
        private(&place).map_err(|why| {
            let remedy = "name a folder of yours, which others cannot write to, by TARE_CACHE";
            Error::new(format!("use the folder {}", place.display()), why, remedy)
        })?;
        // Tare comes last: where it is, the agent is.
        for (section, program) in PROGRAMS {
            let path = place.join(program);
            if !is_ours(&path) {
                let bytes = self.section(section)?;
                write(&bytes, &path).map_err(|why| {
                    let remedy = "is the file system full, read-only or not yours? Name another folder by TARE_CACHE";
                    Error::new(format!("unpack {}", path.display()), why, remedy)
                })?;
            }
        }
        Ok(place.join("tare"))
    }

    fn section(&mut self, name: &str) -> Result<Vec<u8>, Error> {
        let missing = || damaged(format!("it has no section {name}"));
        let header = *self.file.section_header_by_name(name).map_err(damaged)?.ok_or_else(missing)?;
        Ok(self.file.section_data(&header).map_err(damaged)?.0.to_vec())
    }
}

/// Makes the folder of the programs. Nobody but this user and root may write to it, lest another's program is started.
fn private(place: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(place)?;
    let seen = place.symlink_metadata()?;
    if is_own(&seen) && seen.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other("another user may write to it"))
}

/// Whether it is this user's or root's.
fn is_own(seen: &Metadata) -> bool {
    [rustix::process::geteuid().as_raw(), 0].contains(&seen.uid())
}

/// Whether a program is there that this user or root owns.
fn is_ours(program: &Path) -> bool {
    program.symlink_metadata().is_ok_and(|seen| seen.is_file() && is_own(&seen))
}

/// Unpacks a program to its place, whole or not at all.
fn write(packed: &[u8], path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
    io::copy(&mut XzReader::new(packed, true), &mut file)?;
    file.as_file().set_permissions(Permissions::from_mode(0o755))?;
    file.as_file().sync_all()?;
    // Closed first: a program that is open for writing cannot be started.
    file.into_temp_path().persist(path).map_err(|error| error.error)
}

fn damaged(why: impl ToString) -> Error {
    Error::new("read the programs in this file".to_owned(), why, "copy it anew and compare its SHA-256 with SHA256SUMS")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// This test's own program with two scripts inside, as scripts/dist.sh does it; `None` without the programs for it.
    fn packed(folder: &Path) -> Option<PathBuf> {
        let program = folder.join("one");
        let script = "for part in name agent program; do printf '#!/bin/sh\\necho %s \"$@\"\\n' $part >$part; done; xz -k agent program; echo 1-a >name; \
            objcopy --add-section .tare.name=name --add-section .tare.agent=agent.xz --add-section .tare.program=program.xz \"$0\" one";
        let made =
            Command::new("sh").args(["-ec", script]).arg(std::env::current_exe().unwrap()).current_dir(folder).status();
        made.is_ok_and(|made| made.success()).then_some(program)
    }

    fn said(program: &Path) -> String {
        String::from_utf8(Command::new(program).arg("x").output().unwrap().stdout).unwrap()
    }

    #[test]
    fn both_programs_are_unpacked_once_and_run() {
        let place = tempfile::tempdir().unwrap();
        let Some(one) = packed(place.path()) else {
            println!("SKIPPED: there is no objcopy or no xz here (apt-get install binutils xz-utils)");
            return;
        };
        let cache = place.path().join("cache");
        let unpack = || Packed::open(&one).unwrap().unpacked(&cache).unwrap();
        let tare = unpack();
        assert_eq!(tare, cache.join("1-a/tare"));
        assert_eq!((said(&tare), said(&tare.with_file_name("tare-agent"))), ("program x\n".into(), "agent x\n".into()));
        let first = tare.metadata().unwrap().ino();
        assert_eq!(unpack().metadata().unwrap().ino(), first, "it was not written again");
        fs::remove_file(&tare).unwrap();
        std::os::unix::fs::symlink("/bin/false", &tare).unwrap();
        assert_eq!(said(&unpack()), "program x\n", "a link in its place is not started");
    }

    #[test]
    fn a_file_without_programs_is_reported_with_the_remedy() {
        let place = tempfile::tempdir().unwrap();
        let error = Packed::open(&std::env::current_exe().unwrap()).unwrap().unpacked(place.path()).unwrap_err();
        assert!(error.to_string().contains("no section .tare.name; copy it anew"), "{error}");
        let error = Packed::open(Path::new("/etc/passwd")).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("SHA256SUMS"), "{error}");
    }
}
