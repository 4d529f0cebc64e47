//! A disk that the guest reaches over its own network card: the kernel's iSCSI initiator, logged in by open-iscsi's
//! `iscsistart`, which ends once the session stands. What follows is the kernel's alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::config::{GuestConfig, IscsiDisk};
use super::modules::Modules;
use super::{InitError, PATH, Result, during, root, wait_until};

/// What logs in.
const PROGRAM: &str = "iscsistart";

/// The portal group of the target: programs that serve targets call their first one so.
const PORTAL_GROUP: &str = "1";

/// Nobody is there to log in again, so a target that is slow to answer must not be taken for one that is gone.
const SETTINGS: [&str; 2] = ["node.conn[0].timeo.noop_out_interval=0", "node.conn[0].timeo.noop_out_timeout=0"];

/// Loads the kernel's part while the modules are still there.
pub(super) fn load(config: &GuestConfig, modules: &mut Modules) -> Result<()> {
    let Some(disk) = &config.iscsi else { return Ok(()) };
    modules.load("iscsi")?;
    modules.load(&format!("filesystem-{}", disk.filesystem))
}

/// Logs in and mounts the disk. The root is the guest's own already: the program is there.
pub(super) fn attach(config: &GuestConfig) -> Result<()> {
    let Some(disk) = &config.iscsi else { return Ok(()) };
    log_in(disk)?;
    let device = wait_until(|| of_session(disk.lun)).ok_or_else(|| InitError {
        tried: format!("find the disk of the iSCSI target {}", disk.target),
        why: format!("its logical unit {} did not appear", disk.lun),
    })?;
    root::mount_device(&disk.filesystem, &device, &Path::new("/").join(&disk.mount))
}

fn log_in(disk: &IscsiDisk) -> Result<()> {
    let tried = || format!("log in to the iSCSI target {} at {}:{}", disk.target, disk.address, disk.port);
    let program = PATH.split(':').map(|place| Path::new(place).join(PROGRAM)).find(|path| path.exists());
    let program = program.ok_or_else(|| InitError {
        tried: tried(),
        why: format!("the guest's root has no {PROGRAM}; Debian has it in the package open-iscsi"),
    })?;
    let (address, port) = (disk.address.to_string(), disk.port.to_string());
    let mut command = Command::new(program);
    command.args(["-i", &disk.initiator, "-t", &disk.target, "-g", PORTAL_GROUP, "-a", &address, "-p", &port]);
    command.args(SETTINGS.iter().flat_map(|setting| ["-P", *setting]));
    // What it says goes to the console.
    let ended = command.env_clear().env("PATH", PATH).stdin(Stdio::null()).status().map_err(during(tried()))?;
    if ended.success() {
        return Ok(());
    }
    Err(InitError { tried: tried(), why: format!("{PROGRAM} failed ({ended}); what it said is above") })
}

/// The device file of a logical unit that came by a session.
fn of_session(lun: u32) -> Option<PathBuf> {
    let disks = fs::read_dir("/sys/block").ok()?.filter_map(io::Result::ok);
    let found = disks
        .into_iter()
        .find(|disk| fs::canonicalize(disk.path().join("device")).is_ok_and(|device| is_unit(&device, lun)))?;
    // Its name is there before it can be used.
    Some(Path::new("/dev").join(found.file_name())).filter(|device| fs::File::open(device).is_ok())
}

/// Whether a SCSI device's place in sysfs is that of a logical unit of an iSCSI session: `.../session1/.../2:0:0:LUN`.
fn is_unit(device: &Path, lun: u32) -> bool {
    let by_session = device.iter().any(|part| part.to_string_lossy().starts_with("session"));
    let number = device.file_name().and_then(|name| name.to_str()?.rsplit(':').next()?.parse::<u32>().ok());
    by_session && number == Some(lun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_sessions_are_distinguished_from_other_disks() {
        let unit = Path::new("/sys/devices/platform/host2/session1/target2:0:0/2:0:0:1");
        assert!(is_unit(unit, 1) && !is_unit(unit, 0));
        assert!(!is_unit(Path::new("/sys/devices/pci0000:00/host2/target2:0:0/2:0:0:1"), 1));
    }
}
