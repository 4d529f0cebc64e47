//! What is left when the controller of a guest is killed.
//!
//! The test program starts itself again for one test alone, with an order in the environment. That process makes a
//! guest, keeping its ledger in a file, says so there, and waits to be killed. What it left is then taken away here, from
//! that file and the run's id, as `tare reap` does it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tare_lab::{Ledger, LedgerError, ReapReport, Resource, leftovers, state_path};

use super::{Broken, Ground, hold, reap_held, skip};
use crate::ReapSite;

/// Environment variable with an [`Order`].
const ORDER: &str = "TARE_CONFORMANCE_ORDER";

/// What the process that will be killed is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    /// The case of the test that it is meant for.
    label: String,
    /// The run that it makes its guest in.
    run_id: String,
    /// Where it keeps its ledger.
    ledger: PathBuf,
}

fn order() -> Option<Order> {
    serde_json::from_str(&std::env::var(ORDER).ok()?).ok()
}

/// Id of the run to check a platform in; `label` tells the cases of one test program apart. `None` in a process that
/// was started for another case: there is then nothing to do.
pub fn run_id(label: &str) -> Option<String> {
    match order() {
        Some(order) => (order.label == label).then_some(order.run_id),
        None => Some(format!("test-{}-{label}", std::process::id())),
    }
}

/// Whether this process is to make a guest in that run and be killed.
pub(super) fn is_ordered(run_id: &str) -> bool {
    order().is_some_and(|order| order.run_id == run_id)
}

/// A line of the ledger's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Planned(u64, Resource),
    Released(u64),
    /// The guest stands; the process waits to be killed.
    Ready,
}

/// A ledger that remembers, and where it is so ordered, also writes a file.
#[derive(Default)]
pub(super) struct Notebook(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    last: u64,
    open: Vec<(u64, Resource)>,
    file: Option<File>,
}

impl Notes {
    fn write(&mut self, line: &Line) -> Result<(), LedgerError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let failed = |error: std::io::Error| LedgerError(error.to_string());
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        file.write_all(&text).map_err(failed)
    }
}

impl Notebook {
    /// The ledger of a run: in a file as well, if this process is to be killed in it.
    pub fn for_run(run_id: &str) -> std::io::Result<Self> {
        let order = order().filter(|order| order.run_id == run_id);
        let file = order.map(|order| OpenOptions::new().append(true).create(true).open(order.ledger)).transpose()?;
        Ok(Self(Mutex::new(Notes { file, ..Notes::default() })))
    }

    /// What was written down and not released.
    pub fn open(&self) -> Vec<Resource> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.open.iter().map(|(_, resource)| resource.clone()).collect()
    }

    fn ready(&self) -> Result<(), LedgerError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(&Line::Ready)
    }
}

impl Ledger for Notebook {
    fn planned(&self, resource: &Resource) -> Result<u64, LedgerError> {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.last += 1;
        let number = notes.last;
        notes.open.push((number, resource.clone()));
        notes.write(&Line::Planned(number, resource.clone()))?;
        Ok(number)
    }

    fn released(&self, number: u64) -> Result<(), LedgerError> {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.open.retain(|(known, _)| *known != number);
        notes.write(&Line::Released(number))
    }
}

impl Ground<'_> {
    /// The part of the process that will be killed. It ends by itself when whoever would kill it is gone.
    pub(super) fn wait_for_death(&self) -> Result<(), Broken> {
        let guest = self.start_given("orphan", self.gold()?.as_ref())?;
        self.notebook.ready().map_err(|error| error.to_string())?;
        // The other end is held by the one that kills.
        let _ = std::io::stdin().read(&mut [0]);
        drop(guest);
        Err("it was to be killed, and lives".into())
    }

    /// A guest whose controller was killed without a warning is taken away from what was written down.
    pub(super) fn is_reaped_after_a_crash(&self) -> Result<(), Broken> {
        let label = self.run_id.splitn(3, '-').nth(2).unwrap_or_default().to_owned();
        let ledger = self.state.join("orphan.jsonl");
        let order = Order { label, run_id: format!("{}-orphan", self.run_id), ledger };
        let Some(test) = this_test() else {
            skip(
                "what a killed controller leaves: the test does not know its own name, for it has no thread of its own",
            );
            return Ok(());
        };
        let said = self.state.join("orphan.said");
        let mut doomed = Doomed(start_again(&test, &order, &said).map_err(|error| error.to_string())?);
        let stood = doomed.wait_until_ready(&order.ledger, self.expect.timeout + Duration::from_secs(30));
        let before = leftovers(&order.run_id);
        drop(doomed);
        let reaped = self.reap_from_outside(&order);
        let printed = std::fs::read_to_string(&said).unwrap_or_default();
        stood.map_err(|why| format!("no guest to kill the controller of: {why}. It said: {printed}"))?;
        hold(before.iter().any(|line| !line.starts_with("directory")), || {
            format!("a guest that stood had neither a process nor a control group, only {before:?}")
        })?;
        let report = reaped?;
        hold(report.is_clean(), || format!("after its controller was killed, not reaped: {:?}", report.left))?;
        let left = leftovers(&order.run_id);
        hold(left.is_empty(), || format!("after its controller was killed and it was reaped, still there: {left:?}"))?;
        let planned = still_planned(&order.ledger).map_err(|error| error.to_string())?;
        let left: Vec<_> =
            planned.iter().filter(|made| matches!(made, Resource::Directory { path } if path.exists())).collect();
        hold(left.is_empty(), || format!("after its controller was killed and it was reaped, still there: {left:?}"))?;
        let again = self.reap_from_outside(&order)?;
        // A platform is asked to take away what it holds each time, and does not tell whether it found any.
        let found = again.removed.iter().any(|resource| !matches!(resource, Resource::Held { .. }));
        hold(again.is_clean() && !found && again.killed.is_empty(), || {
            format!("reaping a second time found something: {again:?}")
        })
    }

    /// What `tare reap` does: from the ledger's file and the run's id alone.
    fn reap_from_outside(&self, order: &Order) -> Result<ReapReport, Broken> {
        let state = state_path(&order.run_id);
        let site = ReapSite { run_id: &order.run_id, state: &state, agent: &self.host.agent };
        let resources = still_planned(&order.ledger).map_err(|error| error.to_string())?;
        Ok(tare_lab::reap(&order.run_id, &resources, &mut |platform, token| reap_held(&site, platform, token)))
    }
}

/// What a ledger's file says is still there, last made first. A torn last line is what a kill leaves.
fn still_planned(ledger: &Path) -> std::io::Result<Vec<Resource>> {
    let mut open: Vec<(u64, Resource)> = Vec::new();
    for line in lines(ledger)? {
        match line {
            Line::Planned(number, resource) => open.push((number, resource)),
            Line::Released(number) => open.retain(|(known, _)| *known != number),
            Line::Ready => {}
        }
    }
    Ok(open.into_iter().rev().map(|(_, resource)| resource).collect())
}

fn lines(ledger: &Path) -> std::io::Result<Vec<Line>> {
    let text = match std::fs::read_to_string(ledger) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Name of the test that runs in this thread: the test harness names threads so.
fn this_test() -> Option<String> {
    std::thread::current().name().filter(|&name| name != "main").map(str::to_owned)
}

fn start_again(test: &str, order: &Order, said: &Path) -> std::io::Result<Child> {
    let out = File::create(said)?;
    Command::new(std::env::current_exe()?)
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env(ORDER, serde_json::to_string(order)?)
        .stdin(Stdio::piped())
        .stdout(out.try_clone()?)
        .stderr(out)
        .spawn()
}

/// The process that is killed, at the latest when this is dropped.
struct Doomed(Child);

impl Doomed {
    fn wait_until_ready(&mut self, ledger: &Path, timeout: Duration) -> Result<(), Broken> {
        let deadline = Instant::now() + timeout;
        loop {
            let known = lines(ledger).map_err(|error| error.to_string())?;
            if known.contains(&Line::Ready) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.0.try_wait() {
                return Err(format!("the process that makes it ended by itself: {status}"));
            }
            hold(Instant::now() < deadline, || format!("it did not stand within {timeout:?}"))?;
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        // It may have ended already; whether the kill worked is seen in what is left.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
