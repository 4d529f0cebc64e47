//! How a whole gold copy is restored in a directory of the host's.

use std::fs::{self, DirBuilder, File, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, utimensat};
use tare_model::ByteSize;
use tare_model::guest::{DataPlace, GuestData};

use crate::restore::{By, Deadline, RestoreError, clones, file, file_system, like, room, times, tried};

/// How data come to a guest that is shown the gold copy itself.
pub(crate) const SHOWN: &str = "shown as it is";

/// Files that are restored at the same time: a flush waits for the disk, and several wait together.
const WORKERS: usize = 4;

/// How often a directory is made anew that other guests take away.
const ATTEMPTS: u32 = 10;

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

/// What is restored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gold<'a> {
    /// The gold copy.
    pub gold: &'a Path,
    /// What the copy may grow to, bytes.
    pub size: ByteSize,
}

/// Restores it in `copy`, an empty directory; `named` is the one that the study names, and `inside` where the guest will see
/// the copy: at the same place as the host without it.
///
/// # Errors
/// Why not. What was made by then is still there.
pub(crate) fn restore(
    gold: Gold<'_>,
    copy: &Path,
    named: Option<&Path>,
    inside: Option<&str>,
) -> Result<DataPlace, RestoreError> {
    let began = Instant::now();
    let by = tree(gold.gold, copy, gold.size)?;
    let kind = file_system(copy);
    let storage = match named {
        Some(named) => format!("directory {} on {kind} of the host", named.display()),
        None => format!("directory on {kind} of the host"),
    };
    let path = inside.map_or_else(|| copy.to_string_lossy().into_owned(), str::to_owned);
    let (on_host, restored_by) = (Some(copy.to_owned()), by.words().to_owned());
    Ok(DataPlace { path, storage, on_host, restore_s: began.elapsed().as_secs_f64(), restored_by, log: None })
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
        log: None,
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
    use crate::data_directory::NOBODY;
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
        let data = Gold { gold: &gold, size: ByteSize(1 << 20) };
        let restored = restore(data, &copy, None, Some(DATA)).unwrap();
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
        let data = Gold { gold: &gold, size: ByteSize(1 << 60) };
        let error = restore(data, &copy, None, None).unwrap_err();
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
        let data = Gold { gold: &gold, size: ByteSize(160 << 20) };
        for guest in ["first", "second"] {
            let copy = make_own(|| Ok(place.into()), guest).unwrap();
            let restored = restore(data, &copy, None, None).unwrap();
            assert_eq!(
                (restored.restored_by.as_str(), restored.storage.as_str()),
                ("cloned (reflink)", "directory on xfs of the host")
            );
            assert!(fs::read(copy.join("data/large")).unwrap() == large);
            fs::write(copy.join("data/large"), guest).unwrap();
        }
        assert!(fs::read(gold.join("data/large")).unwrap() == large, "the gold copy was changed");
        let copy = make_own(|| Ok(place.into()), "third").unwrap();
        let error = restore(Gold { size: ByteSize(400 << 20), ..data }, &copy, None, None).unwrap_err();
        assert!(matches!(error, RestoreError::NoRoom { .. }), "{error}");
    }
}
