//! The agent inside a program of tare's that is a single file.
//!
//! `make dist` adds the agent, compressed, as a section of its own to the program's file. The kernel does not load it. A run needs the agent
//! as a file, so it is unpacked once into tare's cache, under a name that tells its contents.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use elf::ElfStream;
use elf::endian::AnyEndian;
use flate2::read::GzDecoder;

use crate::cache::{Key, beside, cache_directory, publish};
use crate::error::{ImageError, Result, reading, writing};

/// The section's name; scripts/dist.sh gives it.
const SECTION: &str = ".tare.agent";

/// Folder of unpacked agents: a directory for each.
const AGENTS: &str = "agent";

/// Most bytes of an agent: three times what it has, against a damaged file.
const AT_MOST: u64 = 24 << 20;

/// The agent that the program at `path` has inside it, unpacked into the cache; `None` where it has none.
///
/// # Errors
/// When the program cannot be read, or the agent cannot be unpacked or written.
pub fn packed_agent(path: &Path) -> Result<Option<PathBuf>> {
    unpacked(path, &cache_directory().join(AGENTS))
}

fn unpacked(path: &Path, folder: &Path) -> Result<Option<PathBuf>> {
    let Some(packed) = section(path)? else { return Ok(None) };
    let mut key = Key::default();
    key.add(&packed);
    let place = folder.join(key.name());
    let agent = place.join("tare-agent");
    if is_ours(&agent) {
        return Ok(Some(agent));
    }
    fs::create_dir_all(&place).map_err(writing(&place))?;
    let mut file = beside(&agent)?;
    let mut bytes = GzDecoder::new(&packed[..]).take(AT_MOST);
    io::copy(&mut bytes, &mut file).map_err(|why| damaged(path, &why.to_string()))?;
    file.as_file().set_permissions(Permissions::from_mode(0o755)).map_err(writing(&agent))?;
    publish(file, &agent)?;
    Ok(Some(agent))
}

/// Whether an earlier run of this user's, or of root's, put it there: nobody else's program is started.
fn is_ours(agent: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    agent.symlink_metadata().is_ok_and(|seen| seen.is_file() && [own, 0].contains(&seen.uid()))
}

/// The section's bytes, still compressed.
fn section(path: &Path) -> Result<Option<Vec<u8>>> {
    let file = File::open(path).map_err(reading(path))?;
    let parsed = |error: elf::ParseError| damaged(path, &error.to_string());
    let mut program = ElfStream::<AnyEndian, _>::open_stream(file).map_err(parsed)?;
    let Some(header) = program.section_header_by_name(SECTION).map_err(parsed)?.copied() else { return Ok(None) };
    Ok(Some(program.section_data(&header).map_err(parsed)?.0.to_vec()))
}

fn damaged(path: &Path, why: &str) -> ImageError {
    let tried = format!("unpack the agent from {}", path.display());
    ImageError::new(tried, why, "copy the program anew and check its SHA-256, or say where an agent is by TARE_AGENT")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::Command;

    /// This test's own program with `bytes` as its agent, as scripts/dist.sh does it; `None` without objcopy.
    fn packed(folder: &Path, bytes: &[u8]) -> Option<PathBuf> {
        let (section, program) = (folder.join("agent.gz"), folder.join("program"));
        let mut file = flate2::write::GzEncoder::new(File::create(&section).unwrap(), flate2::Compression::best());
        file.write_all(bytes).unwrap();
        file.finish().unwrap();
        let mut objcopy = Command::new(crate::find_program("objcopy")?);
        objcopy.arg("--add-section").arg(format!("{SECTION}={}", section.display()));
        assert!(objcopy.arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap().success());
        Some(program)
    }

    #[test]
    fn the_agent_is_unpacked_once_and_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let Some(program) = packed(place.path(), b"an agent") else {
            println!("SKIPPED: there is no objcopy here (apt-get install binutils)");
            return;
        };
        let folder = place.path().join("cache");
        let agent = unpacked(&program, &folder).unwrap().unwrap();
        assert_eq!(fs::read(&agent).unwrap(), b"an agent");
        assert_eq!(agent.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        let first = agent.metadata().unwrap().ino();
        assert_eq!(unpacked(&program, &folder).unwrap().as_ref(), Some(&agent));
        assert_eq!(agent.metadata().unwrap().ino(), first, "it was not written again");
        fs::remove_file(&agent).unwrap();
        std::os::unix::fs::symlink(&program, &agent).unwrap();
        unpacked(&program, &folder).unwrap();
        assert_eq!(fs::read(&agent).unwrap(), b"an agent", "a link in its place is no agent");
    }

    #[test]
    fn a_program_without_an_agent_has_none_and_what_is_no_program_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        assert_eq!(unpacked(&own, place.path()).unwrap(), None);
        let text = place.path().join("text");
        fs::write(&text, "no program").unwrap();
        let error = unpacked(&text, place.path()).unwrap_err().to_string();
        assert!(error.contains("TARE_AGENT"), "{error}");
    }
}
