//! What a program needs beside itself.
//!
//! The agent that ships is static and needs nothing. One that was built for tests asks for the host's loader and
//! libraries; they go into the initial file system with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use elf::ElfBytes;
use elf::abi::PT_INTERP;
use elf::endian::AnyEndian;

use crate::error::{ImageError, Result};
use crate::program;

/// The loader and the libraries of a program, by their places on this host; none of a static one.
pub(crate) fn needed(path: &Path, bytes: &[u8]) -> Result<Vec<PathBuf>> {
    let Some(loader) = loader(bytes).map_err(|why| {
        let tried = format!("put the agent {} into an initial file system", path.display());
        ImageError::new(tried, why, "build it anew (`make build`), or say where it is by TARE_AGENT")
    })?
    else {
        return Ok(Vec::new());
    };
    let mut command = Command::new(&loader);
    command.arg("--list").arg(path);
    let tried = format!("list the libraries of the agent {}", path.display());
    let listed = program::run(&mut command, &tried, Duration::from_secs(10))?;
    let mut files = vec![loader.clone()];
    files.extend(listed.lines().filter_map(library).filter(|library| *library != loader));
    Ok(files)
}

/// A line of the loader's list: `name => /path (address)`; what has no path is the kernel's own.
fn library(line: &str) -> Option<PathBuf> {
    let path = line.split_once("=>")?.1.trim().rsplit_once(" (")?.0;
    path.starts_with('/').then(|| path.into())
}

/// The loader that a program asks for.
fn loader(bytes: &[u8]) -> std::result::Result<Option<PathBuf>, String> {
    let elf = ElfBytes::<AnyEndian>::minimal_parse(bytes).map_err(|_| "it is no program of this system".to_owned())?;
    let segments = elf.segments().ok_or("it has no program headers")?;
    let Some(header) = segments.iter().find(|header| header.p_type == PT_INTERP) else { return Ok(None) };
    let name = elf.segment_data(&header).map_err(|_| "its program headers lie".to_owned())?;
    let name = name.strip_suffix(b"\0").unwrap_or(name);
    let name = std::str::from_utf8(name).map_err(|_| "its loader's name is no text".to_owned())?;
    if name.starts_with('/') { Ok(Some(name.into())) } else { Err("its loader has no absolute path".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_asks_for_is_listed() {
        let own = std::env::current_exe().unwrap();
        let files = needed(&own, &std::fs::read(&own).unwrap()).unwrap();
        assert!(files.iter().all(|file| file.is_file()), "{files:?}");
        let error = needed(Path::new("agent"), b"#!/bin/sh").unwrap_err().to_string();
        assert!(error.contains("no program") && error.contains("TARE_AGENT"), "{error}");
    }

    #[test]
    fn lines_of_the_loader_are_read() {
        assert_eq!(library("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)"), Some("/lib/libc.so.6".into()));
        assert_eq!(library("\tlinux-vdso.so.1 (0x00007f)"), None);
    }
}
