//! Snapshots of machines: QEMU writes a machine that stands still into a file as it would send it to another host, and a new QEMU takes it in.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qapi::qmp::{self, MigrationStatus};
use tare_model::Refusal;

use super::options::Options;
use super::qmp::SharedMonitor;
use crate::guest::Snapshot;

/// The machine, in the directory of a snapshot.
const STATE: &str = "state";
/// Its root disk there.
const ROOT: &str = "root";
/// How long a machine may take to be written.
const WRITTEN: Duration = Duration::from_secs(120);
/// How often it is looked whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Why no snapshots of its guests can be taken, and the remedy.
pub(super) fn refusal(options: &Options) -> Option<Refusal> {
    let refused = |why: &str, remedy: &str| Some(Refusal::new(why, remedy));
    if options.shares_root() {
        return refused(
            "its guest's root is a directory of this host's (virtiofs), which QEMU writes into no snapshot",
            "give the arm a root disk (`image = { debian = {} }` or `{ file = ... }`), write `start = { pool = N }`, or leave `start` out",
        );
    }
    if options.network.vfio.is_some() {
        return refused(
            "a device of this host's is passed through to its guest, and is in no snapshot",
            "leave `network.vfio` out, or `start`",
        );
    }
    if options.disks().next().is_some() {
        return refused(
            "its guest has disks for data, of which tare takes no snapshot",
            "leave `data-disk` and `log-disk` out, or `start`",
        );
    }
    None
}

/// The machine of a snapshot, to be taken in.
pub(super) fn state(snapshot: &Path) -> PathBuf {
    snapshot.join(STATE)
}

/// Makes the root disk of a restored machine. It stays a layer over the same image.
pub(super) fn root(snapshot: &Path, at: &Path) -> std::io::Result<()> {
    std::fs::copy(snapshot.join(ROOT), at).map(drop)
}

/// What takes a snapshot of a machine, which ends with it. `root`: its root disk.
pub(super) fn by(monitor: SharedMonitor, root: Option<PathBuf>) -> Snapshot {
    Box::new(move |into| {
        let mut monitor = monitor.lock();
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| format!("{what}: {error}")
        };
        let file = File::create_new(into.join(STATE)).map_err(failed("make its file"))?;
        monitor.pause(true)?;
        monitor.hand_over(&file, STATE)?;
        let uri = Some(format!("fd:{STATE}"));
        monitor.ask(&qmp::migrate { uri, channels: None, detach: None, resume: None })?;
        let began = Instant::now();
        loop {
            let now = monitor.ask(&qmp::query_migrate {})?;
            match now.status {
                Some(MigrationStatus::completed) => break,
                Some(MigrationStatus::failed | MigrationStatus::cancelled) => {
                    return Err(format!("it was not written: {}", now.error_desc.unwrap_or_default()));
                }
                _ if began.elapsed() > WRITTEN => return Err(format!("it is not written after {WRITTEN:?}")),
                _ => std::thread::sleep(LOOK_EVERY),
            }
        }
        // Nothing of the disk is in its memory any more: it was let go of as for another host.
        let moved = root.as_ref().map_or(Ok(()), |root| std::fs::rename(root, into.join(ROOT)));
        moved.map_err(failed("keep its root disk"))?;
        // It may close its monitor before it answers.
        let _ = monitor.ask(&qmp::quit {});
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_in_no_snapshot_is_refused() {
        let why = |options: serde_json::Value| {
            let options = super::super::options::read(&options).unwrap();
            refusal(&options).map(|refusal| refusal.reason).unwrap_or_default()
        };
        assert!(why(json!({})).contains("virtiofs"));
        assert_eq!(why(json!({"image": {"debian": {}}})), "");
        assert!(why(json!({"image": {"debian": {}}, "data-disk": {"size": "1GiB"}})).contains("disks for data"));
    }
}
