//! Disks that the guest reaches over its own network card: the kernel's iSCSI initiator, logged in by open-iscsi's
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
    for disk in &config.iscsi {
        modules.load("iscsi")?;
        modules.load(&format!("filesystem-{}", disk.filesystem))?;
    }
    Ok(())
}

/// Logs in to each target and mounts the disks. The root is the guest's own already: the program is there.
pub(super) fn attach(config: &GuestConfig) -> Result<()> {
    for (number, disk) in config.iscsi.iter().enumerate() {
        let session = |disk: &IscsiDisk| (disk.address, disk.port, disk.target.clone());
        if !config.iscsi.iter().take(number).any(|other| session(other) == session(disk)) {
            log_in(disk)?;
        }
        let device = wait_until(|| of_session(disk)).ok_or_else(|| InitError {
            tried: format!("find the disk of the iSCSI target {}", disk.target),
            why: format!("its logical unit {} did not appear", disk.lun),
        })?;
        root::mount_device(&disk.filesystem, &device, &Path::new("/").join(&disk.mount))?;
    }
    Ok(())
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
    if let Some((depth, commands)) = disk.queue {
        let queue = [format!("node.session.queue_depth={depth}"), format!("node.session.cmds_max={commands}")];
        command.args(queue.iter().flat_map(|setting| ["-P", setting.as_str()]));
    }
    // What it says goes to the console.
    let ended = command.env_clear().env("PATH", PATH).stdin(Stdio::null()).status().map_err(during(tried()))?;
    if ended.success() {
        return Ok(());
    }
    Err(InitError { tried: tried(), why: format!("{PROGRAM} failed ({ended}); what it said is above") })
}

/// The device file of a logical unit that came by the session with its target.
fn of_session(unit: &IscsiDisk) -> Option<PathBuf> {
    let disks = fs::read_dir("/sys/block").ok()?.filter_map(io::Result::ok);
    let found = disks.into_iter().find(|disk| {
        let device = fs::canonicalize(disk.path().join("device"));
        let session = device.ok().and_then(|device| session_of(&device, unit.lun));
        session.is_some_and(|session| {
            let target = fs::read_to_string(format!("/sys/class/iscsi_session/{session}/targetname"));
            target.is_ok_and(|target| target.trim() == unit.target)
        })
    })?;
    // Its name is there before it can be used.
    Some(Path::new("/dev").join(found.file_name())).filter(|device| fs::File::open(device).is_ok())
}

/// The session that a SCSI device came by, where its place in sysfs is that of a logical unit of one: `.../session1/.../2:0:0:LUN`.
fn session_of(device: &Path, lun: u32) -> Option<String> {
    let number = device.file_name().and_then(|name| name.to_str()?.rsplit(':').next()?.parse::<u32>().ok());
    let session = device.iter().map(|part| part.to_string_lossy()).find(|part| part.starts_with("session"))?;
    (number == Some(lun)).then(|| session.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_sessions_are_distinguished_from_other_disks() {
        let unit = Path::new("/sys/devices/platform/host2/session1/target2:0:0/2:0:0:1");
        assert_eq!((session_of(unit, 1).as_deref(), session_of(unit, 0)), (Some("session1"), None));
        assert_eq!(session_of(Path::new("/sys/devices/pci0000:00/host2/target2:0:0/2:0:0:1"), 1), None);
    }
}
