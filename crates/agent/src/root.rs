//! The root file system of a guest, built in the guest's own mount namespace.
//!
//! An overlay of a tree shows one file system; missing mount points are made in the overlay. Of the host's root that is one file
//! system. What else holds the host's files (a `/home` or `/var` of its own) is overlaid as well, each on its place; views of the
//! kernel (`/proc`, `/sys`, `/dev`) are made anew; `/run` and `/tmp` are whatever the root file system itself holds there.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount as mount_at, mount_bind, mount_bind_recursive, mount_change,
    mount_move, mount_remount, unmount,
};
use tare_wire::launch::{PrivateMount, Root, Shown, Upper};

use crate::error::{EnterError, during};
use crate::{fstab, sys};

/// Device files that every guest gets.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Directories that something is mounted on in guests, or that programs which start guests want to see, with their modes.
const MOUNT_POINTS: [(&str, u32); 7] =
    [("dev", 0o755), ("etc", 0o755), ("proc", 0o755), ("run", 0o755), ("sys", 0o755), ("tmp", 0o1777), ("usr", 0o755)];

/// Cuts this mount namespace off: nothing mounted here is seen on the host, nor the other way round.
pub fn make_private() -> Result<(), EnterError> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(during("make all mounts private"))
}

/// Makes one private mount.
pub fn mount(wanted: &PrivateMount) -> Result<(), EnterError> {
    match wanted {
        PrivateMount::Overlay { lower, at, upper } => layered(lower, at, upper),
        PrivateMount::Bind { from, at } => {
            mount_bind(from, at).map_err(during(format!("bind {} to {}", from.display(), at.display())))
        }
        PrivateMount::HostReadOnly { at } => host_read_only(at),
        PrivateMount::ReadOnly { from, at } => {
            let what = || format!("show {} at {}, read-only", from.display(), at.display());
            mount_bind(from, at).map_err(during(what()))?;
            sys::make_read_only(at).map_err(during(what()))
        }
        PrivateMount::Hide { at } => unmount(at, UnmountFlags::DETACH)
            .map_err(during(format!("hide the mount {} from the program", at.display()))),
    }
}

/// Binds the host's root and its other file systems to `at`, then closes all of them to writing at once. The host's own
/// mounts stay as they are: read-only is what a mount is, not what the file system is.
fn host_read_only(at: &Path) -> Result<(), EnterError> {
    let what = |from: &Path| format!("show {} below {}", from.display(), at.display());
    // Read before anything is added to it.
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").map_err(during("read /proc/self/mountinfo"))?;
    match mount_bind("/", at) {
        // In a user namespace what is mounted below the root is locked to it: nobody may look under it.
        Err(rustix::io::Errno::INVAL) if !is_initial_user_namespace() => return covered(&mountinfo, at),
        bound => bound.map_err(during(what(Path::new("/"))))?,
    }
    for mount in fstab::parse_mountinfo(&mountinfo).iter().filter(|mount| mount.holds_files()) {
        let Ok(inside) = mount.at.strip_prefix("/") else { continue };
        let here = at.join(inside);
        // Not there: it is mounted inside something that is not shown.
        if here.is_dir() {
            mount_bind(&mount.at, &here).map_err(during(what(&mount.at)))?;
        }
    }
    sys::make_read_only(at).map_err(during(format!("make {} read-only", at.display())))
}

/// The same where only all mounts together can be shown: those that are not to be seen have an empty directory over them.
fn covered(mountinfo: &str, at: &Path) -> Result<(), EnterError> {
    mount_bind_recursive("/", at).map_err(during(format!("show / below {}", at.display())))?;
    let mut hidden: Vec<PathBuf> = Vec::new();
    for mount in fstab::parse_mountinfo(mountinfo).iter().filter(|mount| !mount.holds_files()) {
        let Ok(inside) = mount.at.strip_prefix("/") else { continue };
        let here = at.join(inside);
        let is_root = inside.as_os_str().is_empty();
        if is_root || hidden.iter().any(|hidden| here.starts_with(hidden)) || !here.is_dir() {
            continue;
        }
        mount_tmpfs(&here, c"mode=0755,size=4k")?;
        hidden.push(here);
    }
    sys::make_read_only(at).map_err(during(format!("make {} read-only", at.display())))
}

/// Changes to a new root and leaves the old one behind; `shown` of the host's directories are bound in it. `own_cgroups`:
/// the process is in a control group namespace of its own, so the control groups can be shown inside.
pub fn change(wanted: &Root, shown: &[Shown], own_cgroups: bool) -> Result<(), EnterError> {
    // Opened first: the new root is built on a place that may hide them.
    let shown = shown.iter().map(|shown| Ok((open_shown(shown)?, shown))).collect::<Result<Vec<_>, _>>()?;
    let new = match wanted {
        Root::Overlay { lower, upper } => {
            let at = place_for_root(lower, upper)?;
            layered(lower, &at, upper)?;
            at
        }
        Root::Directory(directory) => {
            // pivot_root wants a mount point.
            mount_bind(directory, directory)
                .map_err(during(format!("bind the root directory {}", directory.display())))?;
            directory.clone()
        }
    };
    for (from, shown) in &shown {
        show(from, &new, shown)?;
    }
    views_of_the_kernel(&new, own_cgroups)?;
    pivot(&new)
}

fn open_shown(Shown { from, .. }: &Shown) -> Result<OwnedFd, EnterError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(from, flags, Mode::empty()).map_err(during(format!("open the directory {}", from.display())))
}

/// Binds an open directory in the new root.
fn show(from: &OwnedFd, root: &Path, Shown { at, read_only, .. }: &Shown) -> Result<(), EnterError> {
    let here = root.join(at.strip_prefix("/").unwrap_or(at));
    make_directory(&here)?;
    // The link leads to what was opened, whatever is mounted over its name by now.
    mount_bind(format!("/proc/self/fd/{}", from.as_raw_fd()), &here)
        .map_err(during(format!("show a directory of the host's at {}", at.display())))?;
    if !read_only {
        return Ok(());
    }
    // The host's own mount stays as it is: read-only is what this one is.
    sys::make_read_only(&here).map_err(during(format!("close {} to writing", at.display())))
}

/// Where the new root is mounted while it is built.
fn place_for_root(lower: &Path, upper: &Upper) -> Result<PathBuf, EnterError> {
    match upper {
        Upper::Disk(directory) => Ok(directory.join("merged")),
        // Anything that is there to mount on, and does not hide the tree, will do: with the old root all of it is left behind.
        Upper::Memory => {
            let lower = fs::canonicalize(lower).map_err(during(format!("find {}", lower.display())))?;
            let free = |place: &PathBuf| place.is_dir() && !lower.starts_with(place);
            ["/tmp", "/run", "/mnt"].map(PathBuf::from).into_iter().find(free).ok_or_else(|| EnterError {
                what: "find a place for the overlay".into(),
                source: io::Error::new(io::ErrorKind::NotFound, "neither /tmp nor /run nor /mnt is a directory"),
            })
        }
    }
}

/// Where the writes of overlays go: below it a pair of directories for each.
struct Layers {
    base: PathBuf,
}

impl Layers {
    fn pair(&self, name: &str) -> Result<(PathBuf, PathBuf), EnterError> {
        let pair = (self.base.join("upper").join(name), self.base.join("work").join(name));
        make_directory(&pair.0)?;
        make_directory(&pair.1)?;
        Ok(pair)
    }
}

/// Mounts `lower`, seen through an overlay, on `at`.
fn layered(lower: &Path, at: &Path, upper: &Upper) -> Result<(), EnterError> {
    let layers = match upper {
        Upper::Disk(directory) => Layers { base: directory.clone() },
        Upper::Memory => {
            mount_tmpfs(at, c"mode=0755")?;
            Layers { base: at.to_owned() }
        }
    };
    let merged = layers.base.join("merged");
    make_directory(&merged)?;
    let whole_host = lower == Path::new("/");
    match overlay(lower, &merged, &layers, "root") {
        Ok(()) if whole_host => overlay_other_file_systems(&merged, &layers)?,
        Ok(()) => mount_points(&merged)?,
        // In a user namespace the mounts below the root are locked to it, and an overlay would uncover
        // what they hide: the kernel refuses. So the root is composed from its directories.
        Err(error)
            if error.source.kind() == io::ErrorKind::InvalidInput && whole_host && !is_initial_user_namespace() =>
        {
            compose(&merged, &layers)?;
        }
        Err(error) => return Err(error),
    }
    if merged == at {
        return Ok(());
    }
    mount_move(&merged, at).map_err(during(format!("move the overlay to {}", at.display())))
}

/// Makes the directories that guests need in a root that may have nothing at all. What is there stays as it is.
fn mount_points(root: &Path) -> Result<(), EnterError> {
    for (name, mode) in MOUNT_POINTS {
        let (at, failed) = (root.join(name), format!("make /{name} in the guest's root"));
        match fs::create_dir(&at) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Whatever is masked out of the modes of new files here.
            made => made
                .and_then(|()| fs::set_permissions(&at, fs::Permissions::from_mode(mode)))
                .map_err(during(failed))?,
        }
    }
    Ok(())
}

/// Mounts an overlay of `lower` on `at`.
fn overlay(lower: &Path, at: &Path, layers: &Layers, name: &str) -> Result<(), EnterError> {
    let (upper, work) = layers.pair(name)?;
    let what = format!("mount an overlay of {} on {}", lower.display(), at.display());
    let mut options = b"lowerdir=".to_vec();
    for (key, path) in [("", lower), (",upperdir=", &upper), (",workdir=", &work)] {
        options.extend_from_slice(key.as_bytes());
        options.extend(path.as_os_str().as_bytes().iter().flat_map(|&byte| {
            // The overlay's own separators are escaped by a backslash.
            let escape = if matches!(byte, b',' | b':' | b'\\') { Some(b'\\') } else { None };
            escape.into_iter().chain([byte])
        }));
    }
    if !is_initial_user_namespace() {
        // trusted.* attributes are for the host's root alone; the overlay keeps its notes in user.*.
        options.extend_from_slice(b",userxattr");
    }
    let options = CString::new(options).map_err(during(what.as_str()))?;
    mount_at("overlay", at, "overlay", MountFlags::empty(), options.as_c_str()).map_err(during(what))
}

fn is_initial_user_namespace() -> bool {
    // The initial namespace maps all of the ids onto themselves (user_namespaces(7)).
    fs::read_to_string("/proc/self/uid_map").map_or(true, |map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// Overlays each further file system that holds files of the host's on its place.
fn overlay_other_file_systems(root: &Path, layers: &Layers) -> Result<(), EnterError> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").map_err(during("read /proc/self/mountinfo"))?;
    for (number, mount) in fstab::parse_mountinfo(&mountinfo).iter().filter(|m| m.holds_files()).enumerate() {
        let Ok(inside) = mount.at.strip_prefix("/") else { continue };
        let at = root.join(inside);
        // Not there in the overlay: it is mounted inside something that the guest does not see.
        if at.is_dir() && !at.starts_with(&layers.base) {
            overlay(&mount.at, &at, layers, &format!("mount{number}"))?;
        }
    }
    Ok(())
}

/// Builds a root from the host's top directories: each as an overlay where the kernel allows it, or
/// bound read-only where something else is mounted below it.
fn compose(at: &Path, layers: &Layers) -> Result<(), EnterError> {
    mount_tmpfs(at, c"mode=0755")?;
    for entry in fs::read_dir("/").map_err(during("list /"))? {
        let entry = entry.map_err(during("list /"))?;
        let (host, name) = (entry.path(), entry.file_name());
        let here = at.join(&name);
        let kind = entry.file_type().map_err(during(format!("look at {}", host.display())))?;
        if kind.is_symlink() {
            let target = fs::read_link(&host).map_err(during(format!("read the link {}", host.display())))?;
            symlink(target, &here).map_err(during(format!("make the link {}", here.display())))?;
        } else if kind.is_dir() {
            compose_directory(&host, &here, layers)?;
        }
    }
    Ok(())
}

fn compose_directory(host: &Path, here: &Path, layers: &Layers) -> Result<(), EnterError> {
    make_directory(here)?;
    let name = host.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    match name.as_str() {
        "proc" | "sys" | "dev" => return Ok(()),
        "tmp" | "run" => {
            return mount_tmpfs(here, if name == "tmp" { c"mode=1777" } else { c"mode=0755" });
        }
        _ => {}
    }
    // What this user may not enter is empty in the guest.
    if fs::read_dir(host).is_err() {
        return Ok(());
    }
    if overlay(host, here, layers, &name).is_err() {
        mount_bind_recursive(host, here).map_err(during(format!("bind {} into the guest", host.display())))?;
        sys::make_read_only(here).map_err(during(format!("make {} read-only in the guest", host.display())))?;
    }
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), EnterError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(during(format!("make the directory {}", path.display())))
}

fn mount_tmpfs(at: &Path, options: &std::ffi::CStr) -> Result<(), EnterError> {
    mount_at("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)
        .map_err(during(format!("mount a tmpfs on {}", at.display())))
}

/// `/proc`, `/sys` (read-only), `/dev` and, in a control group namespace, `/sys/fs/cgroup`.
fn views_of_the_kernel(root: &Path, own_cgroups: bool) -> Result<(), EnterError> {
    let no_surprise = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let proc = root.join("proc");
    make_directory(&proc)?;
    mount_at("proc", &proc, "proc", no_surprise, None).map_err(during("mount /proc"))?;
    let sys = root.join("sys");
    make_directory(&sys)?;
    if mount_at("sysfs", &sys, "sysfs", no_surprise | MountFlags::RDONLY, None).is_err() {
        // A user namespace that does not own the network namespace may not mount it anew.
        mount_bind_recursive("/sys", &sys).map_err(during("bind /sys"))?;
        sys::make_read_only(&sys).map_err(during("make /sys read-only"))?;
    } else if own_cgroups {
        show_cgroups(&sys.join("fs/cgroup"))?;
    }
    devices(&root.join("dev"))
}

/// Shows the guest its own control groups, as programs that size themselves by them expect.
fn show_cgroups(at: &Path) -> Result<(), EnterError> {
    let groups = fs::read_to_string("/proc/self/cgroup").map_err(during("read /proc/self/cgroup"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let hierarchies: Vec<(String, bool)> = parse_hierarchies(&groups);
    if hierarchies.iter().all(|(_, v2)| *v2) {
        // A user namespace may be refused; the guest then sees no control groups.
        let _ = mount_at("cgroup2", at, "cgroup2", flags | MountFlags::RDONLY, None);
        return Ok(());
    }
    mount_tmpfs(at, c"mode=0755")?;
    for (name, v2) in hierarchies {
        let place = at.join(if v2 { "unified" } else { name.trim_start_matches("name=") });
        make_directory(&place)?;
        let kind = if v2 { "cgroup2" } else { "cgroup" };
        let options = CString::new(name).map_err(during("name a control group hierarchy"))?;
        // As above.
        let _ =
            mount_at(kind, &place, kind, flags | MountFlags::RDONLY, if v2 { None } else { Some(options.as_c_str()) });
    }
    mount_remount(at, flags | MountFlags::RDONLY | MountFlags::BIND, "")
        .map_err(during("make /sys/fs/cgroup read-only"))
}

/// `/proc/self/cgroup` (cgroups(7)): `number:controllers:path`; number 0 is version 2.
fn parse_hierarchies(text: &str) -> Vec<(String, bool)> {
    let lines = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        Some((fields.next()?, fields.next()?))
    });
    lines.map(|(number, controllers)| (controllers.to_owned(), number == "0")).collect()
}

/// A small `/dev` of the guest's own. Device files are the host's, bound: making some is forbidden in
/// a user namespace, and binding works everywhere.
fn devices(dev: &Path) -> Result<(), EnterError> {
    make_directory(dev)?;
    mount_at("tmpfs", dev, "tmpfs", MountFlags::NOSUID, c"mode=0755").map_err(during("mount a tmpfs on /dev"))?;
    for name in DEVICES {
        let (host, here) = (Path::new("/dev").join(name), dev.join(name));
        if host.exists() {
            fs::File::create(&here).map_err(during(format!("make /dev/{name}")))?;
            mount_bind(&host, &here).map_err(during(format!("bind /dev/{name}")))?;
        }
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, dev.join(name)).map_err(during(format!("make the link /dev/{name}")))?;
    }
    make_directory(&dev.join("shm"))?;
    mount_tmpfs(&dev.join("shm"), c"mode=1777")?;
    make_directory(&dev.join("pts"))?;
    let no_exec = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount_at("devpts", dev.join("pts"), "devpts", no_exec, c"newinstance,ptmxmode=0666,mode=0620")
        .map_err(during("mount /dev/pts"))
}

/// Makes `new` the root, and takes the old one and all its mounts away from this namespace.
fn pivot(new: &Path) -> Result<(), EnterError> {
    let what = || format!("make {} the root", new.display());
    rustix::process::chdir(new).map_err(during(what()))?;
    // The old root ends up stacked on the new one, and is taken off (pivot_root(2), NOTES).
    rustix::process::pivot_root(".", ".").map_err(during(what()))?;
    unmount(".", UnmountFlags::DETACH).map_err(during("take the old root away"))?;
    rustix::process::chdir("/").map_err(during("go to the new root"))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_distinguished_by_version() {
        let hybrid = parse_hierarchies("9:name=systemd:/\n4:memory:/a:b\n0::/\n");
        assert_eq!(hybrid, [("name=systemd".into(), false), ("memory".into(), false), (String::new(), true)]);
    }
}
