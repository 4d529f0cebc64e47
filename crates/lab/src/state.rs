//! The state directory of a run: what must not outlive it, and the lock that says it is alive.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::ledger::FileLedger;
use crate::name::check_run_id;
use crate::trust::{check_private, make_private};
use crate::{data, disk, process, rootless, tree};

const RUN_FILE: &str = "run.json";
pub(crate) const LOCK_FILE: &str = "lock";

/// What the state directory says about its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run.
    pub run_id: String,
    /// Where its results are. It is shown to people; nothing in it is ever acted on.
    pub run_folder: PathBuf,
    /// The controller's process.
    pub controller_pid: u32,
    /// When that process started, clock ticks after boot (field 22 of `/proc/PID/stat`).
    pub controller_started: u64,
    /// The version of tare that wrote this.
    pub tare_version: String,
}

impl RunInfo {
    /// Whether that process is still there.
    pub(crate) fn controller_lives(&self) -> bool {
        process::stat(self.controller_pid).is_some_and(|now| now.started == self.controller_started && now.state != 'Z')
    }

    /// What a state directory says. Nothing is believed of one that others may write to.
    pub(crate) fn read(state: &Path) -> Option<Self> {
        let private = check_private(state).is_ok();
        let text = if private { fs::read(state.join(RUN_FILE)).ok() } else { None };
        text.and_then(|text| serde_json::from_slice(&text).ok())
    }
}

/// A run that has a state directory on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    /// The run, after the directory's name.
    pub run_id: String,
    /// The state directory.
    pub path: PathBuf,
    /// What it says; `None` when its controller died before it had written that.
    pub info: Option<RunInfo>,
    /// Whether a controller holds its lock.
    pub live: bool,
}

impl FoundRun {
    /// Whether the lock is held although the controller is gone: by another process that reaps the run at this moment,
    /// or by a child of the controller's that had not yet begun to be a program of its own.
    pub fn is_orphan(&self) -> bool {
        self.info.as_ref().is_some_and(|info| self.live && !info.controller_lives())
    }

    /// Waits at most `timeout` for the lock of such a run to be let go; whether it is. The run may be gone by then.
    ///
    /// # Errors
    /// When the lock cannot be looked at.
    pub fn wait_for_lock(&self, timeout: Duration) -> Result<bool> {
        let mut free = Ok(false);
        process::wait_until(timeout, || {
            free = StateDir::is_live(&self.path).map(|live| !live);
            !matches!(free, Ok(false))
        });
        free
    }
}

/// `/run/tare/RUN` for root, `$XDG_RUNTIME_DIR/tare/RUN` or `/tmp/tare-UID/RUN` for others; mode 0700.
/// The kernel lets go of its lock when the controller ends, however it ends.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    /// Holds the lock. Not inherited by programs that are started.
    lock: OwnedFd,
    ledger: Arc<FileLedger>,
}

impl StateDir {
    /// Makes the directory, takes its lock, begins its ledger and writes `run.json`.
    ///
    /// # Errors
    /// [`LabError::RunExists`] when the run has one already; otherwise when it cannot be made.
    pub fn create(run_id: &str, run_folder: &Path) -> Result<Self> {
        check_run_id(run_id)?;
        let base = base();
        make_private(&base)?;
        match Self::create_in(&base, run_id, run_folder) {
            // Another run ended at this moment, and took the empty directory with it.
            Err(e) if e.errno() == Some(libc::ENOENT) => {
                make_private(&base)?;
                Self::create_in(&base, run_id, run_folder)
            }
            other => other,
        }
    }

    fn create_in(base: &Path, run_id: &str, run_folder: &Path) -> Result<Self> {
        let path = base.join(run_id);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let live = Self::is_live(&path)?;
                return Err(LabError::RunExists { path, live });
            }
            Err(e) => return Err(LabError::system(format!("make directory {}", path.display()), e)),
        }
        let lock = take_lock(&path)?;
        let info = RunInfo {
            run_id: run_id.to_owned(),
            run_folder: std::path::absolute(run_folder).unwrap_or_else(|_| run_folder.to_owned()),
            controller_pid: std::process::id(),
            controller_started: process::stat(std::process::id()).map_or(0, |stat| stat.started),
            tare_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let ledger = Arc::new(FileLedger::create(&path)?);
        let state = Self { path, lock, ledger };
        state.write_info(&info)?;
        Ok(state)
    }

    /// Written beside and renamed, so that a reader sees all of it or nothing.
    fn write_info(&self, info: &RunInfo) -> Result<()> {
        let (draft, file) = (self.path.join("run.json.new"), self.path.join(RUN_FILE));
        let text = serde_json::to_vec_pretty(info).map_err(std::io::Error::from);
        text.and_then(|text| File::create(&draft)?.write_all(&text))
            .and_then(|()| fs::rename(&draft, &file))
            .map_err(|e| LabError::system(format!("write {}", file.display()), e))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run makes and must take down.
    pub fn ledger(&self) -> &Arc<FileLedger> {
        &self.ledger
    }

    /// Whether a controller holds the lock of this state directory. A directory that is gone is not live.
    ///
    /// # Errors
    /// When the lock cannot be looked at.
    pub fn is_live(dir: &Path) -> Result<bool> {
        Ok(Self::try_lock(dir, FlockOperation::NonBlockingLockShared)?.is_none())
    }

    /// Takes the lock of a state directory whose controller is gone; `None` when somebody holds it. The lock is
    /// itself `None` where the directory is gone, or its controller died before it had made the lock.
    pub(crate) fn lock_dead(dir: &Path) -> Result<Option<Option<OwnedFd>>> {
        Self::try_lock(dir, FlockOperation::NonBlockingLockExclusive)
    }

    /// `None` when somebody holds the lock, `Some(None)` when there is none to be held.
    fn try_lock(dir: &Path, how: FlockOperation) -> Result<Option<Option<OwnedFd>>> {
        let path = dir.join(LOCK_FILE);
        let tried = || format!("look at the lock {}", path.display());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Some(None)),
            Err(e) => return Err(LabError::system(tried(), e)),
        };
        match flock(&file, how) {
            // Whoever held it may have removed it before letting go of it: then it locks nothing any more.
            Ok(()) => Ok(Some(is_still_at(&file, &path).then_some(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(LabError::system(tried(), e)),
        }
    }

    /// The runs of this user that have a state directory or left one on disk, alive or not, by run id.
    ///
    /// # Errors
    /// When a directory of such directories cannot be read, or is not this user's own with mode 0700.
    pub fn list() -> Result<Vec<FoundRun>> {
        let mut runs = Self::list_in(&base())?;
        for run_id in disk::runs()?.into_iter().chain(data::runs()?) {
            if !runs.iter().any(|run| run.run_id == run_id) {
                let path = state_path(&run_id);
                // A run that has begun in the meantime has made its state directory before the other.
                let live = Self::is_live(&path)?;
                runs.push(FoundRun { run_id, path, info: None, live });
            }
        }
        runs.sort_by(|a, b| a.run_id.cmp(&b.run_id));
        Ok(runs)
    }

    fn list_in(base: &Path) -> Result<Vec<FoundRun>> {
        check_private(base)?;
        let entries = match fs::read_dir(base) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(LabError::system(format!("read directory {}", base.display()), e)),
        };
        let mut runs = Vec::new();
        for entry in entries.flatten() {
            let Ok(run_id) = entry.file_name().into_string() else { continue };
            if check_run_id(&run_id).is_err() || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            let info = RunInfo::read(&path);
            let live = Self::is_live(&path)?;
            runs.push(FoundRun { run_id, path, info, live });
        }
        runs.sort_by(|a, b| a.run_id.cmp(&b.run_id));
        Ok(runs)
    }

    /// Removes the directory with all in it, then lets go of the lock.
    ///
    /// # Errors
    /// When something in it cannot be removed, such as a mount point.
    pub fn remove(self) -> Result<()> {
        tree::remove(&self.path).map_err(|e| LabError::system(format!("remove {}", self.path.display()), e))?;
        drop(self.lock);
        remove_base_if_empty(&self.path);
        Ok(())
    }
}

/// Where the state directory of a run is on this host, for this user, whether it is there or not.
pub fn state_path(run_id: &str) -> PathBuf {
    base().join(run_id)
}

/// Removes the directory of state directories after its last run.
pub(crate) fn remove_base_if_empty(state: &Path) {
    // Not empty: there are other runs.
    let _ = state.parent().map(fs::remove_dir);
}

/// Whether this is the file that has that name.
fn is_still_at(file: &OwnedFd, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (rustix::fs::fstat(file), rustix::fs::lstat(path)) else { return false };
    (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino)
}

fn take_lock(dir: &Path) -> Result<OwnedFd> {
    let path = dir.join(LOCK_FILE);
    let tried = || format!("take the lock {}", path.display());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|e| LabError::system(tried(), e))?;
    let mut answer = Err(Errno::WOULDBLOCK);
    // Whoever asks whether the run is alive holds the lock for an instant.
    process::wait_until(Duration::from_secs(1), || {
        answer = flock(&file, FlockOperation::NonBlockingLockExclusive);
        answer != Err(Errno::WOULDBLOCK)
    });
    answer.map_err(|e| LabError::system(tried(), e))?;
    if !is_still_at(&file, &path) {
        // Somebody took the directory for what a dead run left, and removed it.
        return Err(LabError::system(tried(), std::io::Error::from(Errno::NOENT)));
    }
    Ok(file)
}

fn base() -> PathBuf {
    if !rootless::is_rootless() {
        return PathBuf::from("/run/tare");
    }
    let uid = rootless::outer_uid();
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        // Without links on the way: reaping refuses those.
        Some(dir) if dir.is_absolute() && dir.is_dir() => dir.canonicalize().unwrap_or(dir).join("tare"),
        _ => PathBuf::from(format!("/tmp/tare-{uid}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private_place() -> tempfile::TempDir {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        tempfile::Builder::new().permissions(mode).tempdir().unwrap()
    }

    #[test]
    fn a_run_is_alive_while_its_lock_is_held_and_dead_after() {
        let base = private_place();
        let state = StateDir::create_in(base.path(), "run-1", Path::new("/results/run-1")).unwrap();
        assert!(check_private(state.path()).unwrap());
        let found = StateDir::list_in(base.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].live);
        assert_eq!(found[0].info.as_ref().unwrap().run_folder, Path::new("/results/run-1"));
        assert_eq!(found[0].info.as_ref().unwrap().controller_pid, std::process::id());
        let again = StateDir::create_in(base.path(), "run-1", Path::new("/r"));
        assert!(matches!(again, Err(LabError::RunExists { live: true, .. })));

        let mut orphan = found[0].clone();
        assert!(!orphan.is_orphan(), "its controller is this process");
        assert!(!orphan.wait_for_lock(Duration::from_millis(5)).unwrap());
        orphan.info.as_mut().unwrap().controller_started += 1;
        assert!(orphan.is_orphan(), "the number was given to another process since");

        let path = state.path().to_owned();
        drop(state);
        assert!(orphan.wait_for_lock(Duration::from_secs(5)).unwrap());
        assert!(!StateDir::is_live(&path).unwrap());
        let again = StateDir::create_in(base.path(), "run-1", Path::new("/r"));
        assert!(matches!(again, Err(LabError::RunExists { live: false, .. })));
    }

    #[test]
    fn a_torn_description_still_lists_the_run() {
        let base = private_place();
        let state = StateDir::create_in(base.path(), "run-2", Path::new("/r")).unwrap();
        fs::write(state.path().join(RUN_FILE), "{\"run_id\"").unwrap();
        assert_eq!(StateDir::list_in(base.path()).unwrap()[0].info, None);
        let path = state.path().to_owned();
        state.remove().unwrap();
        assert!(!path.exists());
        assert!(!StateDir::is_live(&path).unwrap());
        assert_eq!(StateDir::list_in(base.path()).unwrap(), vec![]);
    }

    #[test]
    fn a_run_that_another_user_made_up_is_never_read() {
        let base = private_place();
        let run = base.path().join("x");
        DirBuilder::new().mode(0o755).create(&run).unwrap();
        let info = serde_json::json!({"run_id": "x", "run_folder": "/evil", "controller_pid": 1,
            "controller_started": 1, "tare_version": "0"});
        fs::write(run.join(RUN_FILE), info.to_string()).unwrap();
        assert_eq!(StateDir::list_in(base.path()).unwrap()[0].info, None, "a run directory that is open to others");
        fs::set_permissions(&run, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        assert!(StateDir::list_in(base.path()).unwrap()[0].info.is_some());

        fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(matches!(StateDir::list_in(base.path()), Err(LabError::Refused { .. })));
        fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(base.path(), Some(65_534), None).unwrap();
            assert!(matches!(StateDir::list_in(base.path()), Err(LabError::Refused { .. })));
        } else {
            eprintln!("SKIPPED: needs root, to give a directory away");
        }
    }
}
