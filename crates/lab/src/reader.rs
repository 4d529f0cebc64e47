//! A process that reads what strangers made, without root's rights: in namespaces of its own in which only the named paths
//! exist, as nobody.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change, move_mount,
    open_tree, unmount,
};
use rustix::process::{DumpableBehavior, Gid, Resource, Rlimit, Uid, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::error::{LabError, Result};
use crate::sys;

/// The user and the group that may do nothing (nobody and nogroup of every distribution).
const NOBODY: u32 = 65_534;
/// The directory for temporary files, in the new root.
const TEMPORARY: &str = "/.tmp";
/// Most links that one path may lead through, as the kernel has it.
const LINKS_MAX: u32 = 40;
/// What the process keeps: reading and replacing files whatever their owner. CAP_DAC_READ_SEARCH would let it open files outside
/// of its mounts by their handles (open_by_handle_at(2)); this one does not.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// A path that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    path: PathBuf,
    access: Access,
}

/// What is done with a named path. Of two names of one path the later kind stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    Read,
    Run,
    Write,
}

impl NamedPath {
    /// A file or folder that is only read.
    pub fn read(path: &Path) -> Self {
        Self { path: path.to_owned(), access: Access::Read }
    }

    /// A folder of the system's, of which programs are run too.
    pub fn run(path: &Path) -> Self {
        Self { path: path.to_owned(), access: Access::Run }
    }

    /// A folder in which files are written.
    pub fn written(path: &Path) -> Self {
        Self { path: path.to_owned(), access: Access::Write }
    }

    /// The path, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder that is made, if it is not there yet: then the nearest folder above it that is there is written.
    pub fn made(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let there = absolute.ancestors().find(|above| above.exists());
        Self::written(there.unwrap_or(path))
    }
}

/// Confines this process to the named paths, for good. It gets mount, network, IPC and UTS namespaces of its own. Only the
/// named paths are in them, under the same names, and an empty directory for temporary files; what is only read is mounted
/// read-only. The process becomes nobody and keeps CAP_DAC_OVERRIDE, so that folders of any owner and mode are read. What it
/// writes belongs to the owner of the folder that is written.
///
/// Paths that are missing stay missing. `/proc`, `/dev` and `/etc` are gone. Every descriptor above standard error is closed.
///
/// Call it as root, first thing in `main`, while the process has one thread and no file open.
///
/// # Errors
/// When the kernel refuses a step. The paths can be used all the same, with the rights that are left.
pub fn confine_reader(named: &[NamedPath]) -> Result<()> {
    sys::close_inherited().map_err(|e| refused("close inherited descriptors", e))?;
    let directory = std::env::current_dir().ok();
    let owner =
        named.iter().find(|named| named.access == Access::Write).and_then(|named| fs::metadata(&named.path).ok());
    let owner = owner.map(|found| (found.uid(), found.gid()));
    sys::unshare(sys::Unshare::Reader).map_err(|e| refused("make namespaces for reading", e))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(|e| refused("make the mounts of the new namespace private", e))?;
    let trees = trees(named)?;
    enter_root(named, trees, directory.as_deref())?;
    drop_rights(owner)
}

fn refused(tried: impl Into<String>, source: impl Into<std::io::Error>) -> LabError {
    let remedy = "Start tare as a user who is not root and may read the folder, or where root may make namespaces";
    LabError::System { tried: tried.into(), source: source.into(), remedy: remedy.to_owned() }
}

/// The mount of each path that is there, not attached anywhere yet, by its canonical path.
fn trees(named: &[NamedPath]) -> Result<BTreeMap<PathBuf, OwnedFd>> {
    let mut all: BTreeMap<PathBuf, Access> = BTreeMap::new();
    for named in named {
        if let Ok(path) = fs::canonicalize(&named.path) {
            let access = all.entry(path).or_insert(named.access);
            *access = named.access.max(*access);
        }
    }
    let tree = |(path, access): (PathBuf, Access)| {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(CWD, &path, flags).map_err(|e| refused(format!("take {}", path.display()), e))?;
        sys::restrict_mount(&tree, access != Access::Write, access == Access::Run)
            .map_err(|e| refused(format!("restrict {}", path.display()), e))?;
        Ok((path, tree))
    };
    all.into_iter().map(tree).collect()
}

/// Makes a root of the mounts alone and enters it.
fn enter_root(named: &[NamedPath], trees: BTreeMap<PathBuf, OwnedFd>, directory: Option<&Path>) -> Result<()> {
    let base = directory.unwrap_or(Path::new("/"));
    let mut way = BTreeMap::new();
    let paths = directory.into_iter().chain(named.iter().map(|named| named.path.as_path()));
    paths.for_each(|path| lead_to(&mut way, &base.join(path)));
    // Any directory does: what it covers is gone from here in a moment.
    let place = ["/tmp", "/run", "/mnt", "/var"].map(Path::new).into_iter().find(|place| place.is_dir());
    let place = place.ok_or_else(|| refused("find a place for a new root", Errno::NOENT))?;
    mount_memory(place, c"mode=0755,size=1m")?;
    let entered = furnish(place, &way, trees).and_then(|()| pivot(place));
    if entered.is_err() {
        // What is named may lie below the place: it must be there for whoever goes on without a root of his own.
        let _ = unmount(place, UnmountFlags::DETACH);
    } else {
        sys::set_temporary_directory(TEMPORARY);
    }
    let back = directory.map_or(Ok(()), std::env::set_current_dir);
    entered.and(back.map_err(|e| refused(format!("go back to {}", base.display()), e)))
}

fn mount_memory(at: &Path, options: &std::ffi::CStr) -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", at, "tmpfs", flags, options).map_err(|e| refused(format!("mount a tmpfs on {}", at.display()), e))
}

/// Fills a new root: what leads to what is named, then the mounts.
fn furnish(place: &Path, way: &BTreeMap<PathBuf, Step>, trees: BTreeMap<PathBuf, OwnedFd>) -> Result<()> {
    let inside = |path: &Path| place.join(path.strip_prefix("/").unwrap_or(path));
    // In the order of their names: what is outside comes before what is inside it.
    for (path, step) in way {
        let at = inside(path);
        let made = match step {
            Step::Directory => fs::create_dir(&at),
            Step::File => fs::File::create_new(&at).map(drop),
            Step::Link(target) => symlink(target, &at),
        };
        made.map_err(|e| refused(format!("make {} in the new root", path.display()), e))?;
    }
    let temporary = inside(Path::new(TEMPORARY));
    fs::create_dir(&temporary).map_err(|e| refused("make a directory for temporary files", e))?;
    mount_memory(&temporary, c"mode=0700,size=2g,nr_inodes=1k,uid=65534,gid=65534")?;
    for (path, tree) in trees {
        move_mount(&tree, "", CWD, inside(&path), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(|e| refused(format!("show {}", path.display()), e))?;
    }
    Ok(())
}

/// What is at a place on the way to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Directory,
    /// Anything else that has no name of another.
    File,
    /// A link to this.
    Link(PathBuf),
}

/// Notes all that an absolute path leads through, as the kernel would follow it, with what is at its end. Where the path ends before
/// that, so does the way.
fn lead_to(way: &mut BTreeMap<PathBuf, Step>, path: &Path) {
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<VecDeque<_>>();
    let (mut ahead, mut reached, mut links) = (parts(path), PathBuf::from("/"), 0);
    while let Some(part) = ahead.pop_front() {
        if part == "/" {
            reached = PathBuf::from("/");
            continue;
        }
        if part == ".." {
            reached.pop();
            continue;
        }
        let next = reached.join(&part);
        let Ok(found) = fs::symlink_metadata(&next) else { return };
        let step = match fs::read_link(&next) {
            Ok(target) => Step::Link(target),
            Err(_) if found.is_dir() => Step::Directory,
            Err(_) => Step::File,
        };
        way.insert(next.clone(), step.clone());
        match step {
            Step::Directory => reached = next,
            Step::File => return,
            Step::Link(_) if links == LINKS_MAX => return,
            Step::Link(target) => {
                links += 1;
                let mut longer = parts(&target);
                longer.append(&mut ahead);
                ahead = longer;
            }
        }
    }
}

/// Makes what is mounted on a place the root, and lets go of the old one.
fn pivot(place: &Path) -> Result<()> {
    std::env::set_current_dir(place).map_err(|e| refused("go to the new root", e))?;
    let root = rustix::fs::open(".", rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC, rustix::fs::Mode::empty())
        .map_err(|e| refused("open the new root", e))?;
    sys::restrict_mount(&root, true, false).or_else(|e| {
        // The root may be a folder that was named, and then is restricted as far as is right.
        if e.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(refused("make the new root read-only", e)) }
    })?;
    rustix::process::pivot_root(".", ".").map_err(|e| refused("change to the new root", e))?;
    unmount(".", UnmountFlags::DETACH).map_err(|e| refused("let go of the old root", e))
}

/// Becomes nobody, for good.
fn drop_rights(owner: Option<(u32, u32)>) -> Result<()> {
    let during = |e: Errno| refused("give up root's rights", e);
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).map_err(during)?;
    set_keep_capabilities(true).map_err(during)?;
    for bit in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            // The kernel knows no more.
            Err(Errno::INVAL) => break,
            other => other.map_err(during)?,
        }
    }
    set_thread_groups(&[]).map_err(during)?;
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_res_gid(gid, gid, gid).map_err(during)?;
    set_thread_res_uid(uid, uid, uid).map_err(during)?;
    if let Some((uid, gid)) = owner {
        // New files belong to whom the folder belongs to. Who the process is for all else does not change.
        hold(KEPT | CapabilitySet::SETUID | CapabilitySet::SETGID).map_err(during)?;
        sys::own_new_files(uid, gid);
    }
    hold(KEPT).map_err(during)?;
    set_no_new_privs(true).map_err(during)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(during)
}

/// Holds these capabilities and no other.
fn hold(set: CapabilitySet) -> rustix::io::Result<()> {
    set_capabilities(None, CapabilitySets { effective: set, permitted: set, inheritable: CapabilitySet::empty() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_path_is_that_of_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(base.join("real/deep")).unwrap();
        fs::write(base.join("real/file"), "").unwrap();
        symlink(base.join("real"), base.join("absolute")).unwrap();
        symlink("absolute/deep/..", base.join("relative")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        let way = |path: &str| {
            let mut way = BTreeMap::new();
            lead_to(&mut way, &base.join(path));
            way.retain(|path, _| path.starts_with(&base) && *path != base);
            way.into_iter().map(|(path, step)| (path.strip_prefix(&base).unwrap().to_owned(), step)).collect::<Vec<_>>()
        };
        let link = |name: &str, target: PathBuf| (PathBuf::from(name), Step::Link(target));
        let directory = |name: &str| (PathBuf::from(name), Step::Directory);
        let expected = vec![
            link("absolute", base.join("real")),
            directory("real"),
            directory("real/deep"),
            (PathBuf::from("real/file"), Step::File),
            link("relative", "absolute/deep/..".into()),
        ];
        assert_eq!(way("relative/file"), expected);
        assert_eq!(way("real/none/deep"), [directory("real")]);
        assert_eq!(way("loop/x"), [link("loop", "loop".into())]);
    }

    #[test]
    fn a_folder_that_is_to_be_made_is_written_from_the_nearest_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let made = NamedPath::made(&folder.path().join("a/b"));
        assert_eq!(made, NamedPath::written(folder.path()));
    }
}
