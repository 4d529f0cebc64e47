//! Landlock: what this process, and all that it starts, may do with files and ports (landlock(7)).

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use tare_wire::confine::{Landlock, landlock_version};

use super::sys::{self, PortRule};
use crate::error::{EnterError, during};

/// Rights on files (linux/landlock.h): run, read a file, list a directory.
const READ: u64 = 1 | 1 << 2 | 1 << 3;
/// Rights that a file itself can have: run, write, read, truncate, commands to a device.
const OF_A_FILE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15;
/// All rights on files, by the version of the interface that has them first: thirteen; moving to another directory; truncating;
/// commands to a device.
const FILES: [(u32, u64); 4] = [(1, (1 << 13) - 1), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15)];
/// Rights on TCP ports, from version 4 on.
const BIND: u64 = 1;
const CONNECT: u64 = 1 << 1;
/// Abstract sockets and signals of processes outside, from version 6 on.
const SCOPES: (u32, u64) = (6, 0b11);

/// What may be made by nobody while the rules are in force.
const FORBIDDEN: &str = "/.tare-landlock";

/// The rules that this process is under.
static RULES: OnceLock<Landlock> = OnceLock::new();

/// Puts this thread, and those that it starts later, under the rules, for good.
///
/// # Errors
/// When the kernel has no Landlock, or an older one than the rules take, or refuses.
pub(super) fn restrict(rules: &Landlock) -> Result<(), EnterError> {
    let version = landlock_version().map_err(during("restrict itself by Landlock"))?;
    let least = rules.least_version();
    if version < least {
        let why = format!("the rules take version {least} of its interface, and this kernel has version {version}");
        return Err(during("restrict itself by Landlock")(io::Error::new(io::ErrorKind::Unsupported, why)));
    }
    let files = FILES.iter().filter(|(since, _)| *since <= version).fold(0, |all, (_, rights)| all | rights);
    let ports = [(BIND, &rules.tcp_bind), (CONNECT, &rules.tcp_connect)];
    let on_ports = ports.iter().filter(|(_, only)| only.is_some()).fold(0, |all, (right, _)| all | right);
    let scopes = if version >= SCOPES.0 { SCOPES.1 } else { 0 };
    let ruleset = sys::landlock_ruleset([files, on_ports, scopes]).map_err(during("make rules of Landlock"))?;
    let allow = |path: &Path, rights: u64| -> io::Result<()> {
        let at = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(()),
            at => at?,
        };
        let is_directory = FileType::from_raw_mode(fstat(&at)?.st_mode).is_dir();
        sys::landlock_allow(ruleset.as_fd(), at.as_fd(), if is_directory { rights } else { rights & OF_A_FILE })
    };
    allow(Path::new("/"), READ).map_err(during("let all be read under Landlock"))?;
    for path in &rules.write {
        allow(path, files).map_err(during(format!("let {} be written under Landlock", path.display())))?;
    }
    for (rights, only) in ports {
        for &port in only.iter().flatten() {
            let rule = PortRule { rights, port: port.into() };
            let ruled = sys::landlock_allow_port(ruleset.as_fd(), &rule);
            ruled.map_err(during(format!("let TCP port {port} be used under Landlock")))?;
        }
    }
    sys::landlock_restrict(ruleset.as_fd()).map_err(during("restrict itself by Landlock"))?;
    // Nobody confines a process twice.
    let _ = RULES.set(rules.clone());
    Ok(())
}

/// Whether the rules are in force, found by trying what they refuse, and the version of the kernel's interface. Nothing without rules.
pub fn facts() -> Vec<(String, String)> {
    let Some(rules) = RULES.get() else { return Vec::new() };
    let version = landlock_version().map_or_else(|error| format!("not known: {error}"), |version| version.to_string());
    let found = match found(rules) {
        Ok(()) => "in force".to_owned(),
        Err(why) => format!("not in force: {why}"),
    };
    vec![("landlock".to_owned(), found), ("landlock version".to_owned(), version)]
}

/// Tries what the rules refuse.
fn found(rules: &Landlock) -> Result<(), String> {
    let made = fs::create_dir(FORBIDDEN);
    if made.is_ok() {
        fs::remove_dir(FORBIDDEN).map_err(|error| format!("{FORBIDDEN} was made and cannot be removed: {error}"))?;
    }
    refused(made, "make a directory in the root")?;
    let here = |port| (Ipv4Addr::LOCALHOST, port);
    if let Some(port) = rules.tcp_bind.as_ref().and_then(|only| first_other_than(only)) {
        refused(TcpListener::bind(here(port)), &format!("bind to TCP port {port}"))?;
    }
    if let Some(port) = rules.tcp_connect.as_ref().and_then(|only| first_other_than(only)) {
        refused(TcpStream::connect(here(port)), &format!("connect to TCP port {port}"))?;
    }
    Ok(())
}

/// A port that is not in the list, and not one of those that only privileged processes bind to.
fn first_other_than(ports: &[u16]) -> Option<u16> {
    (1024..=u16::MAX).find(|port| !ports.contains(port))
}

fn refused<T>(tried: io::Result<T>, what: &str) -> Result<(), String> {
    match tried {
        Ok(_) => Err(format!("it can {what}")),
        // What Landlock answers. The root of a guest is its own, and whoever looks may write there but for that.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(()),
        Err(error) => Err(format!("to {what} is refused otherwise: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_outside_of_the_list_is_found() {
        assert_eq!(first_other_than(&[]), Some(1024));
        assert_eq!(first_other_than(&[0, 1024, 1026]), Some(1025));
    }

    #[test]
    fn only_a_refusal_of_access_counts() {
        let error = |number| Err::<(), _>(io::Error::from_raw_os_error(number));
        assert_eq!(refused(error(libc::EACCES), "x"), Ok(()));
        assert!(refused(Ok(()), "x").unwrap_err().contains("it can x"));
        assert!(refused(error(libc::EROFS), "x").unwrap_err().contains("otherwise"));
    }
}
