//! Verdicts of probes that take long, remembered for this tare, this kernel and this CPU.
//!
//! Whether a hypervisor really boots a guest here, or a sandbox really runs a program, is known only by trying,
//! and trying takes seconds. The verdict is kept in a directory that only this user can enter, one file a key. A
//! file that is torn, old, somebody else's or about another key is no verdict: the probe runs again. A probe that was only
//! too slow has no verdict, and nothing of it is kept.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tare_model::marker::{FNV_BASIS, fnv1a};

/// After so long even an unchanged host is asked again what worked.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// What did not work is tried again sooner: the host may only have been too busy.
const FAILURE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longer files are not ours.
const FILE_BYTES: u64 = 64 << 10;
/// So much of a reason is kept.
const REASON_CHARS: usize = 2000;

/// What is kept of one probe.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdict {
    /// All that it depends on, in full: a file name alone could be that of another key.
    key: String,
    /// When it was found, seconds after 1970.
    found_s: u64,
    /// Why not; `None` when it works.
    reason: Option<String>,
}

/// Why a probe failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It would fail again: remembered.
    Lasting(String),
    /// The next one may not, or it was no answer to the question: forgotten.
    Passing(String),
}

impl Failure {
    /// Why.
    pub(crate) fn reason(&self) -> &str {
        let (Self::Lasting(reason) | Self::Passing(reason)) = self;
        reason
    }
}

/// The keys that were asked again since [`look_again`] was called; `None` before that.
static AGAIN: Mutex<Option<BTreeSet<String>>> = Mutex::new(None);

/// From now on this process believes no verdict that was found before: each probe that is asked for runs once more, and
/// its new verdict takes the place of the old one.
pub fn look_again() {
    AGAIN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Whether an older verdict about this key counts. With [`look_again`] the first who asks gets a no.
fn is_believed(again: &Mutex<Option<BTreeSet<String>>>, key: &str) -> bool {
    let mut again = again.lock().unwrap_or_else(PoisonError::into_inner);
    again.as_mut().is_none_or(|asked| !asked.insert(key.to_owned()))
}

/// What the probe found, now or at most 30 days ago (a failure: 7 days) by the same tare on the same kernel and CPU.
///
/// `key` says what is probed, with the identity of the program that decides it (see [`identity`]). Where nothing
/// can be kept, the probe runs every time.
///
/// # Errors
/// Why the probe failed. A remembered reason says so, and how to look again.
pub(crate) fn remembered(key: &str, probe: impl FnOnce() -> Result<(), Failure>) -> Result<(), String> {
    let key = format!("{key}\n{}\ntare {}", host(), tare_wire::BUILD);
    match tare_lab::private_cache("probes") {
        Ok(directory) => remembered_in(&directory, &key, now_s(), is_believed(&AGAIN, &key), probe),
        Err(_) => probe().map_err(|failure| failure.reason().to_owned()),
    }
}

/// The identity of a program for a key: its path, size and time of change, as make(1) has it.
pub(crate) fn identity(program: &Path) -> String {
    let seen = |seen: Metadata| format!("{} bytes, changed {}.{:09}", seen.len(), seen.mtime(), seen.mtime_nsec());
    let seen = fs::metadata(program).map_or_else(|error| error.to_string(), seen);
    format!("{}: {seen}", program.display())
}

fn remembered_in(
    directory: &Path,
    key: &str,
    now_s: u64,
    believed: bool,
    probe: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), String> {
    let file = directory.join(format!("{:016x}.json", fnv1a(FNV_BASIS, key.as_bytes())));
    if let Some(verdict) = read(&file, key, now_s).filter(|_| believed) {
        let Some(reason) = verdict.reason else { return Ok(()) };
        let days = now_s.saturating_sub(verdict.found_s) / (24 * 3600);
        let found = match days {
            0 => "less than a day ago".to_owned(),
            1 => "1 day ago".to_owned(),
            days => format!("{days} days ago"),
        };
        return Err(format!(
            "{reason} (found {found} and remembered; `tare doctor --again`, with the study where an arm of it is meant, \
             looks again)"
        ));
    }
    // Not being able to remember or to forget costs time at the next question, and nothing else.
    let keep = |reason: Option<&str>| {
        let reason = reason.map(|reason| reason.chars().take(REASON_CHARS).collect());
        let _ = write(&file, &Verdict { key: key.to_owned(), found_s: now_s, reason });
    };
    match probe() {
        Ok(()) => keep(None),
        Err(Failure::Lasting(reason)) => {
            keep(Some(&reason));
            return Err(reason);
        }
        Err(Failure::Passing(reason)) => {
            // What was found before, if anything, is no longer so sure.
            let _ = fs::remove_file(&file);
            return Err(reason);
        }
    }
    Ok(())
}

/// The verdict in a file, if it is one of ours, about this key and fresh.
fn read(file: &Path, key: &str, now_s: u64) -> Option<Verdict> {
    let open = tare_lab::open_trusted(file).ok()??;
    let mut text = String::new();
    open.take(FILE_BYTES).read_to_string(&mut text).ok()?;
    let verdict: Verdict = serde_json::from_str(&text).ok()?;
    // A clock that was set back makes verdicts from the future: nothing is known about their age.
    let age_s = now_s.checked_sub(verdict.found_s)?;
    let kept = if verdict.reason.is_some() { FAILURE_KEPT } else { KEPT };
    (verdict.key == key && age_s < kept.as_secs()).then_some(verdict)
}

/// Never half of it is read.
fn write(file: &Path, verdict: &Verdict) -> Option<()> {
    tare_lab::write_private(file, &serde_json::to_vec(verdict).ok()?).ok()
}

/// What a verdict of any probe depends on, and a reboot does not change.
fn host() -> String {
    let kernel = rustix::system::uname();
    let words = [kernel.release(), kernel.version(), kernel.machine()].map(|word| word.to_string_lossy().into_owned());
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let identifies = |line: &&str| ["model name", "flags", "Features"].iter().any(|name| line.starts_with(name));
    // The first CPU stands for all.
    let mut cpu: Vec<&str> = cpus.lines().filter(identifies).take(2).collect();
    cpu.dedup();
    format!("{}\n{}", words.join(" "), cpu.join("\n"))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    const DAY_S: u64 = 24 * 3600;

    struct Place {
        directory: tempfile::TempDir,
        probes: Cell<u32>,
    }

    impl Place {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap(), probes: Cell::new(0) }
        }

        fn ask(&self, key: &str, day: u64, answer: Result<(), String>) -> Result<(), String> {
            self.ask_so(key, day, true, answer.map_err(Failure::Lasting))
        }

        fn ask_so(&self, key: &str, day: u64, believed: bool, answer: Result<(), Failure>) -> Result<(), String> {
            remembered_in(self.directory.path(), key, (100 + day) * DAY_S, believed, || {
                self.probes.set(self.probes.get() + 1);
                answer
            })
        }

        fn file(&self, key: &str) -> PathBuf {
            self.directory.path().join(format!("{:016x}.json", fnv1a(FNV_BASIS, key.as_bytes())))
        }
    }

    #[test]
    fn a_probe_runs_once_a_key_and_again_when_it_is_old() {
        let place = Place::new();
        assert_eq!(place.ask("a", 0, Ok(())), Ok(()));
        assert_eq!(place.ask("a", 29, Err("changed".into())), Ok(()));
        assert_eq!(place.ask("b", 0, Err("it hangs".into())), Err("it hangs".into()));
        let again = place.ask("b", 3, Ok(())).unwrap_err();
        assert!(again.starts_with("it hangs (found 3 days ago"), "{again}");
        assert!(again.contains("`tare doctor --again`"), "it names the way to look again: {again}");
        assert_eq!(place.probes.get(), 2);
        assert_eq!(place.ask("b", 8, Ok(())), Ok(()), "a failure is tried again sooner");
        assert_eq!(place.ask("b", 0, Ok(())), Ok(()), "from the future");
        assert_eq!(place.probes.get(), 4);
        let files = fs::read_dir(place.directory.path()).unwrap().count();
        assert_eq!(files, 2, "nothing is left aside");
    }

    #[test]
    fn what_was_only_too_slow_is_not_remembered() {
        let place = Place::new();
        let slow = || Err(Failure::Passing("it was still booting".into()));
        for probes in 1..3 {
            assert_eq!(place.ask_so("a", 0, true, slow()), Err("it was still booting".into()));
            assert_eq!(place.probes.get(), probes, "a slow one was believed");
        }
        assert_eq!(place.ask("a", 0, Ok(())), Ok(()));
        assert_eq!(place.ask_so("a", 0, false, slow()), Err("it was still booting".into()));
        assert_eq!(place.ask("a", 0, Err("it is asked".into())), Err("it is asked".into()), "nothing older is left");
    }

    #[test]
    fn who_looks_again_probes_once_and_writes_what_is_found() {
        let place = Place::new();
        let again = Mutex::new(None);
        let ask = |answer| place.ask_so("a", 0, is_believed(&again, "a"), answer);
        assert!(ask(Err(Failure::Lasting("it hangs".into()))).is_err());
        assert!(ask(Ok(())).is_err(), "it is remembered");
        *again.lock().unwrap() = Some(BTreeSet::new());
        assert_eq!(ask(Ok(())), Ok(()));
        assert_eq!(ask(Err(Failure::Lasting("a second probe".into()))), Ok(()), "the new verdict counts");
        assert_eq!(place.probes.get(), 2);
        *again.lock().unwrap() = None;
        assert_eq!(ask(Err(Failure::Lasting("forgotten".into()))), Ok(()), "and is kept");
    }

    #[test]
    fn what_is_no_verdict_of_ours_is_not_believed() {
        let place = Place::new();
        let file = place.file("k");
        let good = |key: &str| serde_json::to_vec(&Verdict { key: key.into(), found_s: 100 * DAY_S, reason: None });
        let torn = [b"{\"key\":\"k\"".to_vec(), b"".to_vec(), vec![0xff; 100], vec![b' '; 200_000], b"null".to_vec()];
        for bytes in torn.into_iter().chain([good("another key with the same name").unwrap()]) {
            fs::write(&file, bytes).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            place.probes.set(0);
            assert!(place.ask("k", 1, Err("no".into())).is_err());
            assert_eq!(place.probes.get(), 1, "it was believed");
        }
        fs::write(&file, good("k").unwrap()).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(place.ask("k", 1, Err("others may write it".into())).is_err());
        let elsewhere = place.directory.path().join("elsewhere");
        fs::write(&elsewhere, good("k").unwrap()).unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&elsewhere, &file).unwrap();
        assert!(place.ask("k", 1, Err("it is a link".into())).is_err());
        assert_eq!(fs::read(&elsewhere).unwrap(), good("k").unwrap(), "the link was written through");
        assert!(place.ask("k", 1, Ok(())).is_err(), "the link was replaced by a verdict");
    }

    #[test]
    fn a_program_that_was_replaced_has_another_identity() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let before = identity(file.path());
        fs::write(file.path(), "x").unwrap();
        assert_ne!(before, identity(file.path()));
        assert!(identity(Path::new("/none")).contains("No such file"));
        assert!(!host().is_empty());
    }
}
