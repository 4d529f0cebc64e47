//! The ledger of a run: what it makes and must take down, in a file beside the run's lock.
//!
//! One line says what is planned, before it is made; a later line says that it is gone. Reaping acts on this file and on no
//! other: it lies in a directory that only its owner may enter, apart from the results, which people copy and send.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::resource::{Ledger, LedgerError, Resource};
use crate::trust::{check_private, open_closed};

/// Its name in the state directory of the run.
pub(crate) const FILE: &str = "ledger.jsonl";
/// A longer one is not read.
const MOST_BYTES: u64 = 64 << 20;
/// From this size on, lines of what is gone are dropped: the file is in memory on most hosts.
const REWRITE_BYTES: u64 = 1 << 20;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Line {
    /// This will be made next.
    Planned { id: u64, resource: Resource },
    /// It is gone, or was put back as found.
    Released { id: u64 },
}

/// The ledger of a run of this process.
#[derive(Debug)]
pub struct FileLedger(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    /// Length of what is written whole.
    bytes: u64,
    rewrite_at: u64,
    next_id: u64,
    held: BTreeMap<u64, Resource>,
}

impl FileLedger {
    /// A new one in the state directory of a run.
    pub(crate) fn create(state: &Path) -> Result<Self> {
        let path = state.join(FILE);
        let file = new_file(&path).map_err(|e| LabError::system(format!("make the ledger {}", path.display()), e))?;
        let held = BTreeMap::new();
        Ok(Self(Mutex::new(Inner { path, file, bytes: 0, rewrite_at: REWRITE_BYTES, next_id: 1, held })))
    }

    /// What was planned and is not released, in the order in which it was planned.
    pub fn held(&self) -> Vec<Resource> {
        self.lock().held.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for FileLedger {
    fn planned(&self, resource: &Resource) -> std::result::Result<u64, LedgerError> {
        let mut inner = self.lock();
        let id = inner.next_id;
        inner.append(&Line::Planned { id, resource: resource.clone() }, true)?;
        inner.next_id += 1;
        inner.held.insert(id, resource.clone());
        Ok(id)
    }

    fn released(&self, id: u64) -> std::result::Result<(), LedgerError> {
        let mut inner = self.lock();
        if !inner.held.contains_key(&id) {
            return Ok(());
        }
        inner.append(&Line::Released { id }, false)?;
        inner.held.remove(&id);
        if inner.bytes >= inner.rewrite_at {
            inner.rewrite_at = inner.bytes * 2;
            // A ledger that keeps its old lines is right, too.
            let _ = inner.rewrite();
        }
        Ok(())
    }
}

impl Inner {
    /// Writes a line after those that stand. What a failure leaves of it is cut off, or written over by the next line.
    fn append(&mut self, line: &Line, durable: bool) -> std::result::Result<(), LedgerError> {
        let text = text_of(line).map_err(|error| LedgerError(error.to_string()))?;
        let written = self.file.write_all_at(&text, self.bytes).and_then(|()| match durable {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        if let Err(error) = written {
            let _ = self.file.set_len(self.bytes);
            return Err(LedgerError(format!("{}: {error}", self.path.display())));
        }
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Puts a file of what is held in the place of this one.
    fn rewrite(&mut self) -> std::io::Result<()> {
        let mut text = Vec::new();
        for (id, resource) in &self.held {
            text.extend(text_of(&Line::Planned { id: *id, resource: resource.clone() })?);
        }
        let draft = self.path.with_extension("new");
        let file = new_file(&draft)?;
        let renamed = file
            .write_all_at(&text, 0)
            .and_then(|()| file.sync_data())
            .and_then(|()| std::fs::rename(&draft, &self.path));
        if let Err(error) = renamed {
            let _ = std::fs::remove_file(&draft);
            return Err(error);
        }
        self.file = file;
        self.bytes = text.len() as u64;
        self.rewrite_at = (self.bytes * 2).max(REWRITE_BYTES);
        Ok(())
    }
}

fn new_file(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits() as i32;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

fn text_of(line: &Line) -> std::io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// What the ledger in a state directory says was planned and not released, the last first: so it is to be taken down. Empty
/// where there is no ledger.
///
/// # Errors
/// [`LabError::Refused`] when somebody else may have written it or it is no ledger: nothing that it names may be acted on.
pub fn still_planned(state: &Path) -> Result<Vec<Resource>> {
    for directory in state.parent().into_iter().chain([state]) {
        if !check_private(directory)? {
            return Ok(Vec::new());
        }
    }
    let path = state.join(FILE);
    let Some(file) = open_closed(&path)? else { return Ok(Vec::new()) };
    let tried = || format!("read the ledger {}", path.display());
    let bytes = file.metadata().map_err(|e| LabError::system(tried(), e))?.size();
    let refused = |why: String| {
        let remedy = "Take away by hand what it rightly names, then remove the directory that it is in".into();
        LabError::Refused { tried: tried(), why, remedy }
    };
    if bytes > MOST_BYTES {
        return Err(refused(format!("it is {bytes} bytes long, and no run writes more than {MOST_BYTES}")));
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).map_err(|e| LabError::system(tried(), e))?;
    parse(&text).map_err(refused)
}

/// The lines of a ledger. A last line that does not end is what a kill leaves: it was not planned yet.
fn parse(text: &[u8]) -> std::result::Result<Vec<Resource>, String> {
    let mut held = BTreeMap::new();
    let whole = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    for (number, line) in (1..).zip(whole) {
        match serde_json::from_slice(line) {
            Ok(Line::Planned { id, resource }) => {
                held.insert(id, resource);
            }
            Ok(Line::Released { id }) => {
                held.remove(&id);
            }
            Err(error) => return Err(format!("its line {number} is not one of a ledger: {error}")),
        }
    }
    Ok(held.into_values().rev().collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    /// A state directory in a place of its own, both with mode 0700.
    fn state() -> (tempfile::TempDir, PathBuf) {
        let base = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap();
        let state = base.path().join("run");
        fs::create_dir(&state).unwrap();
        fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
        (base, state)
    }

    fn directory(name: &str) -> Resource {
        Resource::Directory { path: Path::new("/run/tare/r").join(name) }
    }

    #[test]
    fn what_is_planned_and_not_released_is_found_the_last_first() {
        let (_base, state) = state();
        assert_eq!(still_planned(&state).unwrap(), [], "no ledger");
        let ledger = FileLedger::create(&state).unwrap();
        let ids: Vec<u64> = ["a", "b", "c"].iter().map(|name| ledger.planned(&directory(name)).unwrap()).collect();
        // The same thing may be planned twice: each is released by its own number.
        ledger.planned(&directory("b")).unwrap();
        ledger.released(ids[1]).unwrap();
        ledger.released(ids[1]).unwrap();
        assert_eq!(still_planned(&state).unwrap(), ["b", "c", "a"].map(directory));
        assert_eq!(ledger.held(), ["a", "c", "b"].map(directory));
        assert!(FileLedger::create(&state).is_err(), "a run has one ledger");
        assert_eq!(fs::metadata(state.join(FILE)).unwrap().permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_lines_before_it() {
        let (_base, state) = state();
        let ledger = FileLedger::create(&state).unwrap();
        let first = ledger.planned(&directory("a")).unwrap();
        ledger.planned(&directory("b")).unwrap();
        ledger.released(first).unwrap();
        let text = fs::read(state.join(FILE)).unwrap();
        let expected = [&[][..], &["a"], &["b", "a"], &["b"]];
        for cut in 0..=text.len() {
            fs::write(state.join(FILE), &text[..cut]).unwrap();
            let whole = text[..cut].iter().filter(|byte| **byte == b'\n').count();
            let expected: Vec<Resource> = expected[whole].iter().map(|name| directory(name)).collect();
            assert_eq!(still_planned(&state).unwrap(), expected, "cut at byte {cut}");
        }
        fs::write(state.join(FILE), [b"{}\n", text.as_slice()].concat()).unwrap();
        let why = still_planned(&state).unwrap_err().to_string();
        assert!(why.contains("line 1"), "{why}");
    }

    #[test]
    fn a_ledger_stays_short_however_much_was_released() {
        let (_base, state) = state();
        let ledger = FileLedger::create(&state).unwrap();
        ledger.planned(&directory("kept")).unwrap();
        let long = directory(&"x".repeat(4000));
        for _ in 0..600 {
            let id = ledger.planned(&long).unwrap();
            ledger.released(id).unwrap();
        }
        assert!(fs::metadata(state.join(FILE)).unwrap().len() < 2 * REWRITE_BYTES);
        ledger.planned(&directory("last")).unwrap();
        assert_eq!(still_planned(&state).unwrap(), ["last", "kept"].map(directory));
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "no draft stays");
    }

    #[test]
    fn a_ledger_that_somebody_else_may_have_written_is_refused() {
        let (base, state) = state();
        let file = state.join(FILE);
        FileLedger::create(&state).unwrap().planned(&directory("a")).unwrap();
        let refused = |what: &str| {
            let error = still_planned(&state).unwrap_err();
            assert!(matches!(error, LabError::Refused { .. }), "{what}: {error}");
            error.to_string()
        };
        for mode in [0o620, 0o602, 0o604, 0o644] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert!(refused("mode").contains(&format!("{mode:o}")));
        }
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        for open in [base.path(), &state] {
            fs::set_permissions(open, Permissions::from_mode(0o755)).unwrap();
            refused("a directory that others may enter");
            fs::set_permissions(open, Permissions::from_mode(0o700)).unwrap();
        }
        fs::hard_link(&file, base.path().join("second")).unwrap();
        assert!(refused("two names").contains("2 names"));
        fs::remove_file(&file).unwrap();
        symlink(base.path().join("second"), &file).unwrap();
        assert!(refused("a link").contains("link"));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        refused("a directory");
        fs::remove_dir(&file).unwrap();
        fs::rename(base.path().join("second"), &file).unwrap();
        assert_eq!(still_planned(&state).unwrap(), [directory("a")]);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: needs root, to give a file away");
            return;
        }
        for given in [file.as_path(), &state] {
            chown(given, Some(65_534), None).unwrap();
            assert!(refused("another's").contains("owner 65534"));
            chown(given, Some(0), None).unwrap();
        }
    }
}
