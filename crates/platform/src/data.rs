//! Data of guests in directories of the host's: where they lie, and how a whole gold copy is restored there.

use std::fs::{self, DirBuilder, File, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::fs::{Access, AtFlags, CWD, access, statvfs, utimensat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_lab::is_in_memory;
use tare_model::guest::{DataPlace, GuestData};
use tare_model::{ByteSize, Refusal};

use crate::DataWanted;
use crate::restore::{By, Deadline, RestoreError, clones, file, file_system, human, like, room, times, tried};

/// How data come to a guest that is shown the gold copy itself.
pub(crate) const SHOWN: &str = "shown as it is";

/// Files that are restored at the same time: a flush waits for the disk, and several wait together.
const WORKERS: usize = 4;

/// How often a directory is made anew that other guests take away.
const ATTEMPTS: u32 = 10;

/// File systems on which copies may share blocks with what they are copied from.
const SHARES_BLOCKS: [&str; 4] = ["xfs", "btrfs", "bcachefs", "zfs"];

/// The user that a guest's servers run as.
const NOBODY: u32 = 65_534;

/// Where a guest's data lie on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct DataDirectory {
    /// A directory of the host's that is there, such as the mount point of a disk, a LUN or another file system: tare
    /// makes a directory of its own in it for each guest's data, and takes it away again. Data are cloned only from a
    /// gold copy on the same file system, so where that can clone, `TARE_CACHE` may name a directory on it.
    pub directory: PathBuf,
    /// Whether it may be in memory (tmpfs); without this such a directory is refused.
    #[serde(default)]
    pub in_memory: bool,
}

impl DataDirectory {
    /// Looks whether data can lie there, as far as can be seen before a run.
    ///
    /// # Errors
    /// Why they cannot, and the remedy.
    pub(crate) fn look(&self) -> Result<(), Refusal> {
        self.place().map(drop)
    }

    /// The same for guests that see the host's files as they are, so that their servers must get there by themselves.
    ///
    /// # Errors
    /// Why they cannot, and the remedy.
    pub(crate) fn look_as_nobody(&self) -> Result<(), Refusal> {
        let place = self.place()?;
        let Some(closed) = closed_to_nobody(&place) else { return Ok(()) };
        let reason = format!(
            "the directory for the data {} cannot be reached by the guest's servers, which run as nobody: {} is closed to others",
            self.directory.display(),
            closed.display()
        );
        Err(Refusal::new(reason, "Open it with `chmod o+x`, or name another one"))
    }

    /// Why the data of so many guests have no room there; `None` when they have, or where copies may share blocks, so that
    /// nobody can say beforehand. [`Self::look`] reports a directory that cannot be used at all.
    pub(crate) fn refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        let place = self.place().ok()?;
        let found = statvfs(&place).ok()?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let needed = wanted.size.0.saturating_mul(u64::from(wanted.guests));
        if needed <= free || SHARES_BLOCKS.contains(&file_system(&place).as_str()) {
            return None;
        }
        let reason = format!(
            "the data of {} guest(s) take {}, and {} has {} free",
            wanted.guests,
            human(needed),
            self.directory.display(),
            human(free)
        );
        Some(Refusal::new(reason, "Make room there, ask for less data or fewer guests, or name another directory"))
    }

    /// The directory without links on the way.
    ///
    /// # Errors
    /// Why data cannot lie there, and the remedy.
    pub(crate) fn place(&self) -> Result<PathBuf, Refusal> {
        const REMEDY: &str = "Mount the disk, and check the path in the study";
        let refused = |why: &str, remedy: &str| {
            Refusal::new(format!("the directory for the data {} {why}", self.directory.display()), remedy)
        };
        let unusable = |error: &dyn std::fmt::Display| refused(&format!("cannot be used: {error}"), REMEDY);
        let place = self.directory.canonicalize();
        let place = place.map_err(|error| refused(&format!("is not there ({error})"), REMEDY))?;
        if !place.is_dir() {
            return Err(refused("is no directory", REMEDY));
        }
        access(&place, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| unusable(&error))?;
        if !self.in_memory && is_in_memory(&place).map_err(|error| unusable(&error))? {
            let remedy = "Name a directory on a disk, or write `in-memory = true` beside it";
            return Err(refused("is in memory (tmpfs)", remedy));
        }
        Ok(place)
    }

    /// What a reader must know about it.
    pub(crate) fn disclosure(&self) -> Option<String> {
        let sentence = "The guests' data lie in the host's memory, outside of their limits: nothing waits for a disk.";
        self.in_memory.then(|| sentence.to_owned())
    }
}

/// The first directory on the way to `path` that the guest's servers, which run as nobody, may not pass through; `None`
/// when all is open.
pub(crate) fn closed_to_nobody(path: &Path) -> Option<&Path> {
    let passes = |found: &Metadata| {
        let shift = if found.uid() == NOBODY { 6 } else { if found.gid() == NOBODY { 3 } else { 0 } };
        (found.mode() >> shift) & 0o1 != 0
    };
    let way: Vec<&Path> = path.ancestors().collect();
    way.into_iter().rev().find(|directory| !directory.metadata().is_ok_and(|found| passes(&found)))
}

/// The error number when a directory was removed at that moment.
const NOT_THERE: i32 = rustix::io::Errno::NOENT.raw_os_error();

/// Makes the directory of a guest's own in that of the run, closed to others until it is whole.
///
/// # Errors
/// When it cannot be made, or is there.
pub(crate) fn make_own(run: impl Fn() -> tare_lab::Result<PathBuf>, guest: &str) -> tare_lab::Result<PathBuf> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        // Another guest may go at this moment, and take the run's directory with it as it is empty.
        let copy = match run() {
            Err(error) if error.errno() == Some(NOT_THERE) && attempts < ATTEMPTS => continue,
            made => made?.join(guest),
        };
        match DirBuilder::new().mode(0o700).create(&copy) {
            Ok(()) => return Ok(copy),
            Err(error) if error.raw_os_error() == Some(NOT_THERE) && attempts < ATTEMPTS => {}
            Err(source) => {
                let tried = format!("make the directory {}", copy.display());
                let remedy = "Is the file system full or read-only?".into();
                return Err(tare_lab::LabError::System { tried, source, remedy });
            }
        }
    }
}

/// Restores a guest's data in `copy`, an empty directory; `named` is the one that the study names, and `inside` where the
/// guest will see the copy: at the same place as the host without it.
///
/// # Errors
/// Why not. What was made by then is still there.
pub(crate) fn restore(
    data: &GuestData,
    copy: &Path,
    named: Option<&DataDirectory>,
    inside: Option<&str>,
) -> Result<DataPlace, RestoreError> {
    let began = Instant::now();
    let by = tree(&data.gold, copy, data.size)?;
    let kind = file_system(copy);
    let storage = match named {
        Some(named) => format!("directory {} on {kind} of the host", named.directory.display()),
        None => format!("directory on {kind} of the host"),
    };
    let path = inside.map_or_else(|| copy.to_string_lossy().into_owned(), str::to_owned);
    let (on_host, restored_by) = (Some(copy.to_owned()), by.words().to_owned());
    Ok(DataPlace { path, storage, on_host, restore_s: began.elapsed().as_secs_f64(), restored_by })
}

/// Data that nobody writes are shown as they are: the gold copy on the host, and where the guest sees it.
///
/// # Errors
/// When it is not there, or no directory.
pub(crate) fn as_it_is(data: &GuestData, inside: Option<&str>) -> Result<(PathBuf, DataPlace), RestoreError> {
    // Without links: what is bound must be the directory itself, and stay the same when a link is set anew.
    let gold = data.gold.canonicalize().map_err(tried("look at the gold copy", &data.gold))?;
    if !gold.is_dir() {
        return Err(RestoreError::Kind(gold));
    }
    let place = DataPlace {
        path: inside.map_or_else(|| gold.to_string_lossy().into_owned(), str::to_owned),
        storage: format!("the gold copy itself, a directory on {} of the host", file_system(&gold)),
        on_host: Some(gold.clone()),
        restore_s: 0.0,
        restored_by: SHOWN.to_owned(),
    };
    Ok((gold, place))
}

/// What a gold copy holds, each as a path below it.
#[derive(Default)]
struct Contents {
    /// The top first, each after the one that it is in.
    directories: Vec<(PathBuf, Metadata)>,
    /// The largest first.
    files: Vec<(PathBuf, u64)>,
    links: Vec<(PathBuf, Metadata)>,
    /// What the files take on the disk, bytes.
    bytes: u64,
}

impl Contents {
    fn of(gold: &Path) -> Result<Self, RestoreError> {
        let mut contents = Self::default();
        let found = fs::symlink_metadata(gold).map_err(tried("look at the gold copy", gold))?;
        if !found.is_dir() {
            return Err(RestoreError::Kind(gold.to_owned()));
        }
        contents.directories.push((PathBuf::new(), found));
        let mut next = 0;
        while let Some(directory) = contents.directories.get(next).map(|(path, _)| path.clone()) {
            contents.list(gold, &directory)?;
            next += 1;
        }
        contents.files.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
        Ok(contents)
    }

    fn list(&mut self, gold: &Path, directory: &Path) -> Result<(), RestoreError> {
        let at = gold.join(directory);
        for entry in fs::read_dir(&at).map_err(tried("list", &at))? {
            let entry = entry.map_err(tried("list", &at))?;
            let found = entry.metadata().map_err(tried("look at", &entry.path()))?;
            let path = directory.join(entry.file_name());
            let kind = found.file_type();
            if kind.is_dir() {
                self.directories.push((path, found));
            } else if kind.is_file() {
                self.bytes += found.blocks() * 512;
                self.files.push((path, found.len()));
            } else if kind.is_symlink() {
                self.links.push((path, found));
            } else {
                return Err(RestoreError::Kind(entry.path()));
            }
        }
        Ok(())
    }
}

/// Restores all of `gold` in the empty directory `copy`; `size` is what that may grow to.
fn tree(gold: &Path, copy: &Path, size: ByteSize) -> Result<By, RestoreError> {
    let contents = Contents::of(gold)?;
    for (path, _) in contents.directories.iter().skip(1) {
        let made = DirBuilder::new().mode(0o700).create(copy.join(path));
        made.map_err(tried("make the directory", &copy.join(path)))?;
    }
    has_room(gold, copy, &contents, size)?;
    let by = restore_files(gold, copy, &contents)?;
    for (path, found) in &contents.links {
        restore_link(&gold.join(path), &copy.join(path), found)?;
    }
    for (path, found) in contents.directories.iter().rev() {
        let at = copy.join(path);
        let directory = File::open(&at).map_err(tried("open", &at))?;
        like(&directory, found).map_err(tried("set owner, mode and times of", &at))?;
        if path.as_os_str().is_empty() {
            // Whatever the gold copy itself is like, the guest's servers must get in.
            let mode = fs::Permissions::from_mode(found.mode() & 0o7777 | 0o011);
            directory.set_permissions(mode).map_err(tried("open the way to", &at))?;
        }
        directory.sync_all().map_err(tried("flush", &at))?;
    }
    let above = copy.parent().unwrap_or(copy);
    File::open(above).and_then(|above| above.sync_all()).map_err(tried("flush", above))?;
    Ok(by)
}

/// Refuses what has no room: the copy itself, if it must be written, and what it may grow by.
fn has_room(gold: &Path, copy: &Path, contents: &Contents, size: ByteSize) -> Result<(), RestoreError> {
    let clones = || contents.files.first().is_some_and(|(path, _)| clones(&gold.join(path), copy));
    room(copy, contents.bytes.max(size.0), || if clones() { contents.bytes } else { 0 })
}

/// Restores the files, several at a time.
fn restore_files(gold: &Path, copy: &Path, contents: &Contents) -> Result<By, RestoreError> {
    let deadline = Deadline::of(contents.bytes);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut slowest = By::Clone;
        while let Some((path, _)) = contents.files.get(next.fetch_add(1, Ordering::Relaxed)) {
            match file(&gold.join(path), &copy.join(path), deadline) {
                Ok(by) => slowest = slowest.max(by),
                Err(error) => {
                    // The others need not go on.
                    next.store(contents.files.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(slowest)
    };
    let done: Vec<Result<By, RestoreError>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS.min(contents.files.len())).map(|_| scope.spawn(work)).collect();
        let gone = |_| RestoreError::System {
            tried: "restore its files".into(),
            source: std::io::Error::other("a thread that did so ended by a fault"),
        };
        workers.into_iter().map(|worker| worker.join().map_err(gone).and_then(|done| done)).collect()
    });
    done.into_iter().try_fold(By::Clone, |slowest, by| Ok(slowest.max(by?)))
}

fn restore_link(gold: &Path, copy: &Path, found: &Metadata) -> Result<(), RestoreError> {
    let target = fs::read_link(gold).map_err(tried("read the link", gold))?;
    symlink(target, copy).map_err(tried("make the link", copy))?;
    lchown(copy, Some(found.uid()), Some(found.gid())).map_err(tried("set the owner of", copy))?;
    let set = utimensat(CWD, copy, &times(found), AtFlags::SYMLINK_NOFOLLOW);
    set.map_err(tried("set the times of", copy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_setup::DATA;
    use std::os::unix::fs::chown;

    fn gold_in(place: &Path) -> PathBuf {
        let gold = place.join("gold");
        fs::create_dir_all(gold.join("data/base")).unwrap();
        for number in 0..40 {
            fs::write(gold.join(format!("data/base/{number}")), vec![number; usize::from(number) * 1000]).unwrap();
        }
        symlink("data/base", gold.join("link")).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(gold.join("data/base/7"), Some(NOBODY), Some(7)).unwrap();
            lchown(gold.join("link"), Some(NOBODY), Some(8)).unwrap();
        }
        fs::set_permissions(gold.join("data/base/9"), fs::Permissions::from_mode(0o604)).unwrap();
        fs::set_permissions(gold.join("data"), fs::Permissions::from_mode(0o700)).unwrap();
        gold
    }

    #[test]
    fn a_tree_is_restored_whole() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let gold = gold_in(place.path());
        fs::set_permissions(&gold, fs::Permissions::from_mode(0o700)).unwrap();
        let copy = make_own(|| Ok(place.path().into()), "guest").unwrap();
        assert!(make_own(|| Ok(place.path().into()), "guest").is_err(), "it is there");
        let data = GuestData { gold: gold.clone(), size: ByteSize(1 << 20), shared: false };
        let restored = restore(&data, &copy, None, Some(DATA)).unwrap();
        assert!(
            restored.restore_s > 0.0 && restored.path == DATA && restored.storage.ends_with(" of the host"),
            "{restored:?}"
        );
        let (was, is) = (Contents::of(&gold).unwrap(), Contents::of(&copy).unwrap());
        assert_eq!(was.files, is.files);
        let about = |all: &[(PathBuf, Metadata)]| -> Vec<_> {
            let mut all: Vec<_> =
                all.iter().map(|(path, it)| (path.clone(), it.mode(), it.uid(), it.gid(), it.mtime_nsec())).collect();
            all.sort();
            all
        };
        assert_eq!(about(&was.links), about(&is.links));
        assert_eq!(about(&was.directories)[1..], about(&is.directories)[1..]);
        assert_eq!(copy.metadata().unwrap().mode() & 0o7777, 0o711, "nobody may pass");
        for (path, _) in &was.files {
            let (from, to) = (gold.join(path), copy.join(path));
            assert_eq!(fs::read(&from).unwrap(), fs::read(&to).unwrap(), "{path:?}");
            let (from, to) = (from.metadata().unwrap(), to.metadata().unwrap());
            assert_eq!((from.mode(), from.uid(), from.gid()), (to.mode(), to.uid(), to.gid()), "{path:?}");
        }
    }

    #[test]
    fn a_full_disk_is_reported_with_figures() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let gold = gold_in(place.path());
        let copy = make_own(|| Ok(place.path().into()), "guest").unwrap();
        let data = GuestData { gold, size: ByteSize(1 << 60), shared: false };
        let error = restore(&data, &copy, None, None).unwrap_err();
        assert!(matches!(&error, RestoreError::NoRoom { needed, .. } if needed.0 > 1 << 59), "{error}");
        assert!(error.to_string().contains("free") && error.remedy().contains("room"), "{error}");
    }

    #[test]
    fn what_cannot_be_restored_is_named() {
        let place = tempfile::tempdir().unwrap();
        let gold = gold_in(place.path());
        let _socket = std::os::unix::net::UnixListener::bind(gold.join("data/socket")).unwrap();
        let error = tree(&gold, &place.path().join("copy"), ByteSize(0)).unwrap_err();
        assert!(error.to_string().contains("data/socket"), "{error}");
        let error = tree(&place.path().join("none"), place.path(), ByteSize(0)).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }

    #[test]
    fn a_place_for_data_is_there_writable_and_on_a_disk() {
        let place = tempfile::tempdir().unwrap();
        let said = |directory: &Path, in_memory| {
            let named = DataDirectory { directory: directory.into(), in_memory };
            named.look().err().map(|why| format!("{why:?}"))
        };
        assert!(said(&place.path().join("none"), false).unwrap().contains("not there"));
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(said(&file, false).unwrap().contains("no directory"));
        assert!(said(Path::new("/proc"), false).is_none_or(|why| why.contains("cannot be used")));
        let shared = Path::new("/dev/shm");
        if is_in_memory(shared).unwrap_or_default() {
            assert!(said(shared, false).unwrap().contains("in-memory = true"));
            assert_eq!(said(shared, true), None);
        }
    }

    #[test]
    fn a_directory_that_nobody_may_not_pass_is_found() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(closed_to_nobody(&inner), None);
        fs::set_permissions(place.path().join("a"), fs::Permissions::from_mode(0o710)).unwrap();
        assert_eq!(closed_to_nobody(&inner), Some(place.path().join("a").as_path()));
        let named = DataDirectory { directory: inner.clone(), in_memory: true };
        assert_eq!(named.look(), Ok(()));
        let said = format!("{:?}", named.look_as_nobody().unwrap_err());
        assert!(said.contains("/a is closed") && said.contains("chmod o+x"), "{said}");
        assert!(closed_to_nobody(&place.path().join("none")).is_some());
    }

    /// Runs itself again in a mount namespace where a file system that can clone is mounted, from a file.
    #[test]
    fn data_are_cloned_where_the_file_system_can() {
        const TEST: &str = "data::tests::data_are_cloned_where_the_file_system_can";
        if let Some(place) = std::env::var_os("TEST_CLONE") {
            return clones_in(Path::new(&place));
        }
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let script = "cd \"$2\" && truncate -s 320M image && mkfs.xfs -q -m reflink=1 image && mkdir at && \
                      mount -o loop image at || exit 77; \"$0\" --exact --nocapture \"$1\"; code=$?; umount at; exit $code";
        let ran = std::process::Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(TEST)
            .arg(place.path())
            .env("TEST_CLONE", place.path().join("at"))
            .output();
        match ran {
            Ok(ran) if ran.status.success() => {}
            Ok(ran) if ran.status.code() == Some(77) => {
                println!("SKIPPED: cannot make and mount an XFS: {}", String::from_utf8_lossy(&ran.stderr).trim());
            }
            Ok(ran) => panic!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)),
            Err(error) => println!("SKIPPED: cannot run unshare: {error}"),
        }
    }

    fn clones_in(place: &Path) {
        let gold = gold_in(place);
        let large = vec![7; 150 << 20];
        fs::write(gold.join("data/large"), &large).unwrap();
        // There is no room for a copy.
        let data = GuestData { gold, size: ByteSize(160 << 20), shared: false };
        for guest in ["first", "second"] {
            let copy = make_own(|| Ok(place.into()), guest).unwrap();
            let restored = restore(&data, &copy, None, None).unwrap();
            assert_eq!(
                (restored.restored_by.as_str(), restored.storage.as_str()),
                ("cloned (reflink)", "directory on xfs of the host")
            );
            assert!(fs::read(copy.join("data/large")).unwrap() == large);
            fs::write(copy.join("data/large"), guest).unwrap();
        }
        assert!(fs::read(data.gold.join("data/large")).unwrap() == large, "the gold copy was changed");
        let copy = make_own(|| Ok(place.into()), "third").unwrap();
        let error = restore(&GuestData { size: ByteSize(400 << 20), ..data }, &copy, None, None).unwrap_err();
        assert!(matches!(error, RestoreError::NoRoom { .. }), "{error}");
    }
}
