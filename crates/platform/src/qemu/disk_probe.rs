//! What this host's QEMU can do with disks, found out by asking it to, without a guest.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, ftruncate, open};
use tare_model::Refusal;

use super::network::on;
use super::options::{Aio, Cache, Options};
use crate::program::{find, run};

/// How long QEMU may take to tell what it has.
const ASKED: Duration = Duration::from_secs(10);

/// Name that two disks are given on purpose, since nothing else ends QEMU: the second is refused with this word.
pub(super) const TAKEN: &str = "driver=null-co,node-name=x";
const REFUSED: &str = "Duplicate";

/// What QEMU prints when it does not read as configured, and goes on.
pub(super) const FALLS_BACK: &str = "falling back to thread pool";

/// Bytes of the file that is tried.
const TRIED: u64 = 1 << 20;

/// Whether QEMU has its own initiator: distributions have it in a package of its own.
pub(super) fn speaks_iscsi(program: &str, machine: &str) -> Result<(), Refusal> {
    let remedy = "Debian and Ubuntu have it in the package qemu-block-extra";
    // This must fail: nobody serves a target on this port. QEMU prints where it failed.
    let node = "driver=iscsi,node-name=x,transport=tcp,portal=127.0.0.1:1,target=iqn.2026-01.invalid:none,lun=0";
    let said = said_of(program, machine, &[node], remedy)?.to_lowercase();
    if ["unknown driver", "does not accept"].iter().any(|word| said.contains(word)) {
        return Err(Refusal::new(format!("{program} has no initiator for iSCSI"), remedy));
    }
    Ok(())
}

/// Whether QEMU reads and writes files so in a directory: not every kernel and file system
/// lets it, and where asynchronous calls are refused it goes on with threads and only says so.
pub(super) fn reads_files(options: &Options, place: &Path, cache: Cache, aio: Aio) -> Result<(), Refusal> {
    reads_files_in(place, (&options.program, options.machine.name()), cache, aio)
}

fn reads_files_in(place: &Path, (program, machine): (&str, &str), cache: Cache, aio: Aio) -> Result<(), Refusal> {
    if cache != Cache::None && aio == Aio::Threads {
        return Ok(());
    }
    // It has no name, so nothing is left of it. Where there can be no such file, the guest's start tells.
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(file) = open(place, flags, Mode::RUSR | Mode::WUSR) else { return Ok(()) };
    if ftruncate(&file, TRIED).is_err() {
        return Ok(());
    }
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    let (direct, aio) = (on(cache == Cache::None), aio.name());
    let node = format!("driver=file,node-name=x,filename={},aio={aio},cache.direct={direct}", path.display());
    let remedy = "Write another `aio` or `cache` of the disk, or have it on another file system";
    let said = said_of(program, machine, &[&node, TAKEN], remedy)?;
    let why = said.lines().find(|line| line.contains(FALLS_BACK) || !line.contains(REFUSED));
    let Some(why) = why else { return Ok(()) };
    let reason = format!(
        "{program} cannot read disks in {} with aio={aio} and cache.direct={direct}: {}",
        place.display(),
        why.trim()
    );
    Err(Refusal::new(reason, remedy))
}

/// What QEMU says of disks of which the last cannot be had.
fn said_of(program: &str, machine: &str, nodes: &[&str], remedy: &str) -> Result<String, Refusal> {
    let Some(path) = find(program) else { return Err(Refusal::new(format!("there is no {program}"), remedy)) };
    let mut command = Command::new(path);
    command.args(["-M", machine, "-nodefaults", "-display", "none", "-S"]);
    command.args(nodes.iter().flat_map(|node| ["-blockdev", *node]));
    let ran = run(&mut command, ASKED);
    ran.map(|ran| ran.output)
        .map_err(|error| Refusal::new(format!("{program} does not tell what disks it can have: {error}"), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initiator_that_is_not_there_is_missed() {
        // A program that knows no such driver; and one that does not run.
        let said = speaks_iscsi("false", "q35");
        assert!(said.is_ok(), "what it cannot report here is reported when the guest is made: {said:?}");
        assert!(speaks_iscsi("no-such-qemu", "q35").unwrap_err().reason.contains("no-such-qemu"));
    }

    /// A program in the place of QEMU that says so much.
    fn saying(words: &str, place: &Path) -> String {
        use std::os::unix::fs::PermissionsExt;
        let program = place.join("qemu");
        std::fs::write(&program, format!("#!/bin/sh\necho \"{words}\" >&2\necho 'x: Duplicate nodes' >&2\nexit 1\n"))
            .unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program.display().to_string()
    }

    #[test]
    fn what_qemu_does_instead_of_what_was_asked_is_reported() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let said = |words: &str, aio| {
            let program = saying(words, place.path());
            reads_files_in(place.path(), (&program, "q35"), Cache::None, aio).map_err(|unmet| unmet.reason)
        };
        let fallen = said("warning: Unable to use linux io_uring, falling back to thread pool", Aio::IoUring);
        assert!(fallen.unwrap_err().contains("aio=io_uring"));
        assert!(said("Parameter 'aio' does not accept value 'io_uring'", Aio::IoUring).is_err());
        assert!(said("x: Duplicate nodes with that name", Aio::Native).is_ok());
        let nobody = ("no-such-qemu", "q35");
        assert!(reads_files_in(place.path(), nobody, Cache::Writeback, Aio::Threads).is_ok(), "it is not asked");
        assert!(reads_files_in(place.path(), nobody, Cache::None, Aio::Threads).is_err());
    }

    #[test]
    fn the_real_one_reads_files_of_this_host() {
        const REAL: &str = "qemu-system-x86_64";
        if find(REAL).is_none() {
            println!("SKIPPED: there is no {REAL}");
            return;
        }
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let direct = reads_files_in(place.path(), (REAL, "q35"), Cache::None, Aio::Native);
        let in_memory = tare_lab::is_in_memory(place.path()).unwrap();
        assert!(direct.is_ok() || in_memory, "{direct:?}");
    }
}
