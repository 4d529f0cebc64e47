//! The guest's file systems.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode};
use rustix::mount::{MountFlags, mount as mount_at, mount_move};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::config::{Find, GuestConfig, Root};
use super::modules::Modules;
use super::{InitError, Result, during, wait_until};

/// Where the new root is put together.
const NEW: &str = "/mnt";

/// What of the initial file system is of no use any more, and is memory.
const SPENT: [&str; 5] = ["/init", "/modules", "/modules.load", "/lib", "/lib64"];

const VIEW: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

fn mount(kind: &str, from: &str, at: &Path, flags: MountFlags, options: &str) -> Result<()> {
    let tried = || format!("mount {from} ({kind}) on {}", at.display());
    let options = CString::new(options).map_err(during(tried()))?;
    fs::create_dir_all(at).map_err(during(tried()))?;
    mount_at(from, at, kind, flags, options.as_c_str()).map_err(|error| during(tried())(io::Error::from(error)))
}

/// The kernel's views of itself.
pub(super) fn mount_views() -> Result<()> {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    mount("proc", "proc", Path::new("/proc"), VIEW, "")?;
    mount("sysfs", "sysfs", Path::new("/sys"), VIEW, "")?;
    mount("devtmpfs", "devtmpfs", Path::new("/dev"), MountFlags::NOSUID, "mode=0755")
}

/// Mounts the root that was asked for with the data disks in it, and goes there.
pub(super) fn change(config: &GuestConfig, modules: &mut Modules) -> Result<()> {
    let new = Path::new(NEW);
    match &config.root {
        Root::Virtiofs { tag } => {
            modules.load("overlay")?;
            overlay_of_share(tag, new)?;
        }
        Root::Disk { device, filesystem } => mount_disk(&Find::Device(device.clone()), filesystem, new, modules)?,
        Root::Initrd => {}
    }
    let root = if config.root == Root::Initrd { Path::new("/") } else { new };
    for disk in &config.disks {
        mount_disk(&disk.disk, &disk.filesystem, &root.join(&disk.mount), modules)?;
    }
    if config.root != Root::Initrd {
        for view in ["proc", "sys", "dev"] {
            let (from, at) = (Path::new("/").join(view), new.join(view));
            fs::create_dir_all(&at).map_err(during(format!("make {}", at.display())))?;
            mount_move(&from, &at).map_err(during(format!("move {} to the new root", from.display())))?;
        }
        forget();
        go(new)?;
    }
    finish()
}

/// A root of the host's as nobody can write to it, under an overlay in memory. The share is of what is mounted below it, too.
fn overlay_of_share(tag: &str, at: &Path) -> Result<()> {
    // All of it stays behind, out of the guest's sight, in the initial file system.
    let (lower, layers) = (Path::new("/host"), Path::new("/layers"));
    mount("virtiofs", tag, lower, MountFlags::RDONLY, "")?;
    mount("tmpfs", "tmpfs", layers, MountFlags::empty(), "mode=0755")?;
    for layer in ["upper", "work"] {
        fs::create_dir(layers.join(layer)).map_err(during("make the layers of the overlay"))?;
    }
    let options = "lowerdir=/host,upperdir=/layers/upper,workdir=/layers/work";
    let mount_it = || mount("overlay", "overlay", at, MountFlags::empty(), options);
    // An overlay opens files so that their time of access stays where whoever mounted it may, and the server must then be able
    // to: one that is not the host's root is for its own files alone, and shows those of others as somebody else's.
    let seen = fs::metadata(lower).map_err(during("look at the share"))?;
    if std::os::unix::fs::MetadataExt::uid(&seen) == 0 { mount_it() } else { without_owners_right(mount_it) }
}

/// Does something without the right to act as the owner of all files.
fn without_owners_right(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let tried = "set the right to act as the owner of files aside";
    let failed = |error: rustix::io::Errno| during(tried)(io::Error::from(error));
    let all = capabilities(None).map_err(failed)?;
    let fewer = CapabilitySets { effective: all.effective - CapabilitySet::FOWNER, ..all };
    set_capabilities(None, fewer).map_err(failed)?;
    let done = work();
    set_capabilities(None, all).map_err(failed)?;
    done
}

fn mount_disk(disk: &Find, filesystem: &str, at: &Path, modules: &mut Modules) -> Result<()> {
    modules.load(&format!("filesystem-{filesystem}"))?;
    let device = wait_until(|| match disk {
        Find::Device(device) => Some(device.clone()).filter(|device| is_block_device(device)),
        Find::Serial(serial) => with_serial(serial),
    })
    .ok_or_else(|| InitError {
        tried: match disk {
            Find::Device(device) => format!("find the disk {}", device.display()),
            Find::Serial(serial) => format!("find the disk with the serial number {serial}"),
        },
        why: format!("it did not appear; there is {}", super::modules::devices()),
    })?;
    mount_device(filesystem, &device, at)
}

/// Mounts a device whose file system's driver is loaded.
pub(super) fn mount_device(filesystem: &str, device: &Path, at: &Path) -> Result<()> {
    mount(filesystem, &device.to_string_lossy(), at, MountFlags::NOATIME, "")
}

fn is_block_device(path: &Path) -> bool {
    fs::metadata(path)
        .is_ok_and(|seen| FileType::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&seen)).is_block_device())
}

/// The device file of the virtio disk with that serial number.
fn with_serial(serial: &str) -> Option<PathBuf> {
    let disks = fs::read_dir("/sys/block").ok()?.filter_map(io::Result::ok);
    let ours = |disk: &fs::DirEntry| {
        fs::read_to_string(disk.path().join("serial")).is_ok_and(|text| text.trim_end_matches(['\n', '\0']) == serial)
    };
    let found = disks.into_iter().find(ours)?;
    Some(Path::new("/dev").join(found.file_name())).filter(|device| is_block_device(device))
}

/// Removes from memory what is not needed any more.
fn forget() {
    for path in SPENT.map(Path::new) {
        // What stays costs memory and nothing else.
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// Makes `new` the root. The initial file system cannot be left by pivot_root(2), so it is covered.
fn go(new: &Path) -> Result<()> {
    let tried = || format!("make {} the root", new.display());
    rustix::process::chdir(new).map_err(during(tried()))?;
    mount_move(".", "/").map_err(during(tried()))?;
    rustix::process::chroot(".").map_err(during(tried()))?;
    rustix::process::chdir("/").map_err(during(tried()))
}

/// What every root gets of its own: `/run` and `/tmp` empty, and what is usually in `/dev`.
fn finish() -> Result<()> {
    let own = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", "tmpfs", Path::new("/run"), own, "mode=0755")?;
    mount("tmpfs", "tmpfs", Path::new("/tmp"), own, "mode=1777")?;
    mount("tmpfs", "tmpfs", Path::new("/dev/shm"), own, "mode=1777")?;
    let terminals = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", "devpts", Path::new("/dev/pts"), terminals, "ptmxmode=0666,mode=0620")?;
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        match symlink(target, Path::new("/dev").join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(during(format!("make the link /dev/{name}"))(error));
            }
            _ => {}
        }
    }
    Ok(())
}
