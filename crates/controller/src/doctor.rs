//! What this host can run, what not, why, and the remedy: found out before any run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tare_lab::{Lab, LabConfig, Ledger, NoLedger, StateDir};
use tare_model::guest::{GuestSize, GuestSpec, ParityRow};
use tare_model::units::ByteSize;
use tare_platform::{Availability, HostView, Platform, Site};

use crate::error::ControllerError;
use crate::reap::reap_own;

/// The state of a host.
#[derive(Debug)]
pub struct Doctor {
    /// The host in general, each as name and finding.
    pub host: Vec<(String, String)>,
    /// One entry a platform, with its default options.
    pub platforms: Vec<PlatformReport>,
}

/// What was found of one platform.
#[derive(Debug)]
pub struct PlatformReport {
    /// Its name.
    pub name: String,
    /// What it is, in one line.
    pub summary: String,
    /// Whether it can be used, with what should be known, or why not and the remedy.
    pub availability: Availability,
    /// A guest was really started: seconds to agent ready, and what was granted; or why none came up.
    pub started: Option<Result<Started, String>>,
    /// What a report will say about it.
    pub disclosures: Vec<String>,
}

/// A guest that came up.
#[derive(Debug)]
pub struct Started {
    /// Seconds from creation to agent ready.
    pub seconds: f64,
    /// Asked and granted.
    pub parity: Vec<ParityRow>,
}

/// How long a guest may take here.
const PATIENCE: Duration = Duration::from_secs(20);

/// Examines this host. With `deep`, a guest is started on every platform that looks usable: only what
/// was seen to work is called so.
///
/// # Errors
/// When nothing could be examined at all.
pub fn examine(agent: &Path, run_id: &str, deep: bool) -> Result<Doctor, ControllerError> {
    if !agent.exists() {
        return Err(ControllerError::NoAgent { path: agent.to_owned() });
    }
    let view = HostView::here(agent);
    let mut platforms: Vec<PlatformReport> = Vec::new();
    let lab = if deep {
        Some(Lab::create(LabConfig { run_id: run_id.to_owned(), mtu: MTU, offloads: true, congestion_control: None }))
    } else {
        None
    };
    let state = if deep { Some(StateDir::create(run_id, Path::new("/nonexistent"))?) } else { None };
    for entry in tare_platform::registry::all() {
        let Ok(platform) = (entry.make)(&json!({})) else { continue };
        let availability = platform.check(&view);
        let started = match (&availability, &lab, &state) {
            (Availability::Available { .. }, Some(Ok(lab)), Some(state)) => {
                Some(try_start(&*platform, lab, run_id, agent, state.path()))
            }
            _ => None,
        };
        platforms.push(PlatformReport {
            name: entry.name.to_owned(),
            summary: entry.summary.to_owned(),
            availability,
            started,
            disclosures: platform.disclosures(),
        });
    }
    let host = host_facts(&view, lab.as_ref());
    drop(lab);
    if state.is_some() {
        let report = reap_own(run_id, Vec::new(), agent);
        if !report.is_clean() {
            let left: Vec<String> = report.left.iter().map(|(what, why)| format!("{what}: {why}")).collect();
            return Err(ControllerError::LeftBehind { left: left.join("; ") });
        }
    }
    Ok(Doctor { host, platforms })
}

/// MTU of the lab in which guests are tried.
const MTU: u32 = 1500;

/// The host in general.
fn host_facts(view: &HostView, lab: Option<&tare_lab::Result<Lab>>) -> Vec<(String, String)> {
    let privileges = if view.rootless { "a user namespace (not root)" } else { "root" };
    let limits = match &view.limits_unavailable {
        None => format!("{:?}", tare_lab::detect()),
        Some(reason) => format!("none: {reason}"),
    };
    let mut host = vec![("runs as".to_owned(), privileges.to_owned()), ("control groups".to_owned(), limits)];
    match lab {
        Some(Ok(lab)) => host.extend(lab.facts().into_iter().map(|(name, value)| (format!("lab {name}"), value))),
        Some(Err(error)) => host.push(("lab".to_owned(), format!("cannot be made: {error}"))),
        None => {}
    }
    host
}

/// Starts a guest for real and takes it away again.
fn try_start(platform: &dyn Platform, lab: &Lab, run_id: &str, agent: &Path, state: &Path) -> Result<Started, String> {
    // What a crash of the doctor's would leave is found by run id.
    let ledger: Arc<dyn Ledger> = Arc::new(NoLedger);
    let site =
        Site { run_id, agent, lab, mtu: MTU, state, ledger: &ledger, lifetime: PATIENCE * 3, patience: PATIENCE };
    let size = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
    let spec = GuestSpec { name: "doctor".into(), size, cpu_set: Vec::new() };
    let mut guest = platform.start(&site, &spec).map_err(|error| error.to_string())?;
    let started = Started { seconds: guest.start_time_s(), parity: guest.parity() };
    guest.destroy().map_err(|error| error.to_string())?;
    Ok(started)
}
