//! The whole of a guest's use, and an orderly end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tare_lab::{Resource, disk_path};
use tare_model::guest::ParityRow;
use tare_wire::{Request, WireError, copy_in, copy_out};

use super::{Broken, Ground, hold, is_lab_address, skip};
use crate::Guest;

/// Length of the file that is copied in and out: a dozen parts, the last of them not full.
const FILE_BYTES: usize = 3_000_000;

impl Ground<'_> {
    pub(super) fn serves(&self) -> Result<(), Broken> {
        let mut guest = self.start("server")?;
        hold(guest.start_time_s() > 0.0, || "the start took no time".into())?;
        self.is_at_parity(&*guest)?;
        hold(!self.is_in_lab() || is_lab_address(guest.address()), || {
            format!("its address {} is none of the lab's", guest.address())
        })?;
        let ran = self.exec(&*guest, &["true"])?;
        hold(ran.code == Some(0), || format!("`true` ended with {ran:?}"))?;
        let ran = self.exec(&*guest, &["sh", "-c", "echo out; echo err >&2; exit 3"])?;
        hold(ran.code == Some(3) && ran.stdout == b"out\n" && ran.stderr == b"err\n", || {
            format!("a command that prints and fails ended with {ran:?}")
        })?;
        self.writes_to_disk(&*guest)?;
        self.copies(&*guest)?;
        self.prints_without_end(&*guest)?;
        self.exchanges(&*guest)?;
        self.receives_on_its_own_cpus(&*guest)?;
        guest.destroy().map_err(|error| error.to_string())?;
        guest.destroy().map_err(|error| format!("destroyed twice: {error}"))?;
        self.is_clean("after an orderly end")
    }

    /// It has what was asked, and is in its control group. A platform that sets no limits says so.
    fn is_at_parity(&self, guest: &dyn Guest) -> Result<(), Broken> {
        let rows = guest.parity();
        if !self.expect.limits || self.host.limits_unavailable.is_some() {
            let silent = rows.iter().find(|row| !row.equal && row.note.is_empty());
            return silent.map_or(Ok(()), |row| Err(format!("not granted as asked, and not said why: {row:?}")));
        }
        hold(rows.len() >= 4, || format!("parity has only {} rows", rows.len()))?;
        // Processes are limited where this host can.
        let missing = |row: &&ParityRow| row.resource == "process limit" && row.granted.is_none();
        if let Some(row) = rows.iter().find(|row| !row.equal && !missing(row)) {
            return Err(format!("not granted as asked: {row:?}"));
        }
        let groups = guest.groups();
        hold(!groups.is_empty() && groups.iter().all(|group| group.is_dir()), || {
            format!("its control groups {groups:?} are not there")
        })?;
        hold(groups.iter().any(|group| has_process(group, 3)), || {
            "no process of the guest is in its control group".into()
        })
    }

    /// What a guest with a place on disk writes is there, and nowhere in memory.
    fn writes_to_disk(&self, guest: &dyn Guest) -> Result<(), Broken> {
        let disk = disk_path(&self.run_id);
        for resource in self.notebook.open() {
            let Resource::Directory { path } = resource else { continue };
            if !path.starts_with(&disk) {
                continue;
            }
            tare_lab::check_on_disk(&path).map_err(|error| error.to_string())?;
            let before = bytes_below(&path);
            // Ends up as a directory in an overlay, or as blocks in a guest's own disk.
            let write = "mkdir /tare-written && i=0 && while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done > /tare-written/file && { sync /tare-written/file || sync; }";
            let ran = self.exec(guest, &["sh", "-c", write])?;
            hold(ran.code == Some(0), || format!("it cannot write: {ran:?}"))?;
            hold(bytes_below(&path) > before, || format!("what it wrote is not in {}", path.display()))?;
        }
        Ok(())
    }

    /// A file goes in and comes out again, the same to the byte, with its permissions, and not when it is too large.
    fn copies(&self, guest: &dyn Guest) -> Result<(), Broken> {
        // A script that ends before the noise behind it: to be run, it must have the permission.
        let mut bytes = b"#!/bin/sh\nexit 9\n".to_vec();
        bytes.extend(noise(FILE_BYTES - bytes.len()));
        let (remote, local) = (format!("/tmp/{}-copied", self.run_id), self.state.join("copied"));
        let timeout = self.expect.timeout.max(Duration::from_secs(30));
        let reason = |error: WireError| error.to_string();
        for (mode, outcome) in [(0o755, Some(9)), (0o644, None)] {
            let sent = copy_in(guest.link(), &mut bytes.as_slice(), &remote, mode, timeout).map_err(reason)?;
            hold(sent == bytes.len() as u64, || format!("only {sent} bytes were copied in"))?;
            // By its name alone: a shell would run what may not be run.
            let ran = self.exec(guest, &[&remote]).ok().and_then(|ran| ran.code);
            hold(ran == outcome, || format!("copied in with mode {mode:o}, running it gave {ran:?}"))?;
        }
        let length = bytes.len() as u64;
        let too_large = copy_out(guest.link(), &remote, &local, length - 1, timeout);
        hold(matches!(too_large, Err(WireError::TooLarge { .. })), || format!("a limit was not kept: {too_large:?}"))?;
        hold(!local.exists(), || "a file that was too large was kept".into())?;
        copy_out(guest.link(), &remote, &local, length, timeout).map_err(reason)?;
        let back = std::fs::read(&local).map_err(|error| error.to_string())?;
        hold(back == bytes, || format!("what came out differs: {} bytes of {length}", back.len()))?;
        std::fs::remove_file(&local).map_err(|error| error.to_string())?;
        // Where the guest sees this host's own files, it is on the host.
        let ran = self.exec(guest, &["rm", &remote])?;
        hold(ran.code == Some(0), || format!("what was copied in cannot be removed: {ran:?}"))
    }
}

impl Ground<'_> {
    /// What a guest prints is taken from it, so that it does not wait, and only the end of it is kept.
    fn prints_without_end(&self, guest: &dyn Guest) -> Result<(), Broken> {
        let lines = self.expect.printed_bytes.div_ceil(LINE_BYTES);
        // To where the agent itself, which is the shell's parent, says what is wrong.
        let script = format!(
            "exec 3>/proc/$PPID/fd/2 || exit; s=0123456789abcde; for i in 1 2 3 4 5 6 7 8; do s=$s$s; done; i=0; while [ $i -lt {lines} ]; do echo $s >&3; i=$((i+1)); done; exit 5"
        );
        let before = resident_bytes();
        let ran = self.exec(guest, &["sh", "-c", &script])?;
        if ran.code != Some(5) && !ran.timed_out {
            let why = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
            skip(&format!("a guest that prints without end: its agent's standard error cannot be opened ({why})"));
            return Ok(());
        }
        hold(!ran.timed_out, || format!("printing {} bytes was never done", self.expect.printed_bytes))?;
        let grown = resident_bytes().saturating_sub(before);
        hold(grown < MAY_GROW_BYTES, || format!("we grew by {grown} bytes with what it printed"))?;
        let kept = guest.diagnostics().len() as u64;
        hold(kept < MAY_GROW_BYTES / 16, || format!("{kept} bytes of what it printed were kept"))?;
        self.ask(guest, Request::Clock).map(drop)
    }
}

/// A line that a guest prints in [`Ground::prints_without_end`]: 15 bytes doubled eight times, and its end.
const LINE_BYTES: u64 = 15 * 256 + 1;
/// Less than a guest prints, more than the allocator may keep of what was there for a moment.
const MAY_GROW_BYTES: u64 = 16 << 20;

/// Memory of this process, bytes (proc(5), statm, in pages).
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default();
    pages * rustix::param::page_size() as u64
}

/// Whether a process is in the group or in one below it.
fn has_process(group: &Path, depth: u32) -> bool {
    std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|processes| !processes.trim().is_empty())
        || (depth > 0 && entries(group).into_iter().any(|path| path.is_dir() && has_process(&path, depth - 1)))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// What the files below a directory take on the disk, in bytes, and one for each name.
fn bytes_below(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let of = |path: PathBuf| {
        let Ok(metadata) = path.symlink_metadata() else { return 0 };
        let below = if metadata.is_dir() { bytes_below(&path) } else { 0 };
        1 + metadata.blocks() * 512 + below
    };
    entries(directory).into_iter().map(of).sum()
}

/// Bytes without a pattern, the same every time (xorshift64 by Marsaglia, 2003).
pub(super) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x7461_7265_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}
