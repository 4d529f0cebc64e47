//! For which machine a program was built.

use std::io::Read;
use std::path::Path;

/// Names that `uname -m` may give where a program for this ELF machine runs; the first is what it is called.
/// Numbers from elf.h (EM_*); ARM and RISC-V come in one width here, the one that Linux distributions ship.
const MACHINES: &[(u16, &[&str])] = &[
    (62, &["x86_64"]),
    (183, &["aarch64", "arm64"]),
    (3, &["i686", "i586", "i386", "x86_64"]),
    (40, &["armv7l", "armv8l", "armv6l"]),
    (243, &["riscv64"]),
    (21, &["ppc64le", "ppc64"]),
    (22, &["s390x"]),
];

/// The names of the machines that the program runs on, as `uname -m` gives them.
///
/// # Errors
/// When it cannot be read or is no program of a known machine.
pub(super) fn of_program(program: &Path) -> Result<&'static [&'static str], String> {
    let mut header = [0; 20];
    std::fs::File::open(program)
        .and_then(|mut file| file.read_exact(&mut header))
        .map_err(|error| format!("{} cannot be read: {error}", program.display()))?;
    of_header(&header).ok_or_else(|| format!("{} is no Linux program of a machine that tare knows", program.display()))
}

fn of_header(header: &[u8; 20]) -> Option<&'static [&'static str]> {
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    // Byte 5: 1 for little-endian, 2 for big-endian. Bytes 18 and 19: the machine.
    let pair = [header[18], header[19]];
    let machine = if header[5] == 2 { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) };
    MACHINES.iter().find(|(number, _)| *number == machine).map(|(_, names)| *names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_a_program_is_read_from_its_header() {
        let mut header = [0; 20];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[18] = 183;
        assert_eq!(of_header(&header).unwrap()[0], "aarch64");
        header[5] = 2;
        header[18..].copy_from_slice(&[0, 22]);
        assert_eq!(of_header(&header).unwrap()[0], "s390x");
        assert!(of_header(b"#!/bin/sh\nexit 0\n   ").is_none());
        let here = rustix::system::uname().machine().to_string_lossy().into_owned();
        assert!(of_program(&std::env::current_exe().unwrap()).unwrap().contains(&here.as_str()));
    }
}
