//! What this host can run, what not, why, and the remedy: found out before any run.

mod memory;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tare_lab::{FileLedger, Lab, LabConfig, Ledger, StateDir};
use tare_memory::Kernel;
use tare_model::Refusal;
use tare_model::guest::{GuestSize, GuestSpec, ParityRow};
use tare_model::merging::Merging;
use tare_model::study::Arm;
use tare_model::units::ByteSize;
use tare_platform::{Comparable, HostView, Notes, Platform, Site, StartParts};

use crate::error::ControllerError;
use crate::host_memory::merging_refusal;
use crate::reap::left_in_words;
use crate::reap::reap_own;
use crate::registry::{Registry, Shipped};

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
    pub usable: Result<Notes, Refusal>,
    /// A guest was really started: seconds to agent ready, and what was granted; or why none came up.
    pub started: Option<Result<Started, String>>,
    /// What a report will say about it.
    pub disclosures: Vec<String>,
    /// Why its figures must not be compared with those of others, if so.
    pub not_comparable: Option<String>,
}

/// A guest that came up.
#[derive(Debug)]
pub struct Started {
    /// Seconds from creation to agent ready.
    pub seconds: f64,
    /// Its parts, of a machine.
    pub parts: Option<StartParts>,
    /// Asked and granted.
    pub parity: Vec<ParityRow>,
}

/// How long a guest may take here at least.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How many times as long as is usual with a platform a guest may take.
const TIMES_USUAL: u32 = 10;

/// How long a guest of that platform may take.
fn timeout(platform: &str) -> Duration {
    let usual = tare_platform::registry::find(platform).map_or(Duration::ZERO, |entry| entry.start_estimate.duration());
    TIMEOUT.max(usual * TIMES_USUAL)
}

/// What to examine: a platform with options, under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// Name to be shown: the platform's, or the arm's.
    pub name: String,
    /// What it is, in one line.
    pub summary: String,
    /// Platform, by its name in the registry.
    pub platform: String,
    /// Its options.
    pub options: Value,
    /// How its guests' memory is to be merged.
    pub merging: Option<Merging>,
}

/// Every platform of this tare that can be examined without a study, in each of its variants.
pub fn every_platform() -> Vec<Examined> {
    let variants =
        tare_platform::registry::all().iter().flat_map(|entry| entry.variants.iter().map(move |v| (entry, v)));
    variants
        .map(|(entry, variant)| Examined {
            name: format!("{} {}", entry.name, variant.name).trim_end().to_owned(),
            summary: entry.summary.to_owned(),
            platform: entry.name.to_owned(),
            // Refused options are reported where the platform is made.
            options: variant.options(entry).unwrap_or_default(),
            merging: None,
        })
        .collect()
}

/// Platforms of which only a study can say what there is to examine: name and summary.
pub fn on_request() -> Vec<(&'static str, &'static str)> {
    let all = tare_platform::registry::all().iter();
    all.filter(|entry| entry.variants.is_empty()).map(|entry| (entry.name, entry.summary)).collect()
}

/// What finding out may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// Look at files, devices and the kernel, and run nothing: what a plan may, whoever wrote the study.
    Look,
    /// Run programs besides, those that the study names among them, and connect to machines.
    Run,
}

/// Arms whose platform cannot be used on this host, each with the refusal; found without
/// starting a guest.
pub fn unavailable(arms: &[Arm], agent: &Path, may: May) -> Vec<(String, Refusal)> {
    let host = HostView::here(agent);
    let found = |platform: Box<dyn Platform>| match may {
        May::Look => platform.look(&host),
        May::Run => platform.check(&host),
    };
    arms.iter()
        .filter_map(|arm| match Shipped.platform(&arm.platform, &arm.options).map(found) {
            Ok(looked) => looked.err().map(|refusal| (arm.id.clone(), refusal)),
            Err(error) => Some((arm.id.clone(), Refusal::new(error.to_string(), "mend the arm's options"))),
        })
        .collect()
}

/// Arms whose guests would be emulated on this host although the study leaves that open, each with the reason.
pub fn emulated_unasked(arms: &[Arm], agent: &Path, may: May) -> Vec<(String, String)> {
    let host = HostView::here(agent);
    arms.iter()
        .filter_map(|arm| {
            let platform = Shipped.platform(&arm.platform, &arm.options).ok()?;
            Some((arm.id.clone(), platform.emulated_unasked(&host, may == May::Run)?))
        })
        .collect()
}

/// Arms whose guests are emulated on this host, by their ids: the study asks for that, or leaves it open.
pub fn emulated(arms: &[Arm], agent: &Path, may: May) -> Vec<String> {
    let asked =
        |arm: &&Arm| Shipped.platform(&arm.platform, &arm.options).is_ok_and(|platform| platform.emulation_asked());
    let (asked, others): (Vec<&Arm>, Vec<&Arm>) = arms.iter().partition(asked);
    let others: Vec<Arm> = others.into_iter().cloned().collect();
    let unasked = emulated_unasked(&others, agent, may).into_iter().map(|(arm, _)| arm);
    asked.into_iter().map(|arm| arm.id.clone()).chain(unasked).collect()
}

/// Examines this host. With `deep`, a guest is started on every platform that looks usable: only what
/// was seen to work is called so. `confined` is why no lab can be made here, if that is known already.
///
/// # Errors
/// When nothing could be examined at all.
pub fn examine(
    what: &[Examined],
    agent: &Path,
    run_id: &str,
    deep: bool,
    confined: Option<String>,
) -> Result<Doctor, ControllerError> {
    if !agent.exists() {
        return Err(ControllerError::NoAgent { path: agent.to_owned() });
    }
    let view = HostView::here(agent);
    let config = LabConfig { mtu: MTU, ..LabConfig::new(run_id) };
    let lab = match confined {
        Some(why) => Some(Err(why)),
        None => deep.then(|| Lab::create(config).map_err(|error| error.to_string())),
    };
    let state = match &lab {
        Some(Ok(_)) => Some(StateDir::create(run_id, Path::new(""))?),
        _ => None,
    };
    let place = Place { lab: lab.as_ref(), run_id, agent, state: state.as_ref() };
    let platforms = what.iter().map(|examined| report(examined, &view, &place)).collect();
    let host = host_facts(&view, lab.as_ref());
    drop(lab);
    if let Some(state) = state {
        let report = reap_own(run_id, state.ledger().held(), agent);
        if !report.is_clean() {
            return Err(ControllerError::LeftBehind { left: left_in_words(&report) });
        }
    }
    Ok(Doctor { host, platforms })
}

/// Where guests are tried.
struct Place<'a> {
    lab: Option<&'a Result<Lab, String>>,
    run_id: &'a str,
    agent: &'a Path,
    state: Option<&'a StateDir>,
}

/// What is found of one platform.
fn report(examined: &Examined, view: &HostView, place: &Place<'_>) -> PlatformReport {
    let mut not_comparable = None;
    let (usable, disclosures, started) = match Shipped.platform(&examined.platform, &examined.options) {
        Ok(platform) => {
            let usable = merged(platform.check(view), &*platform, examined.merging.as_ref());
            let started = match (&usable, place.lab, place.state) {
                (Ok(_), Some(Ok(lab)), Some(state)) => {
                    Some(try_start(&*platform, lab, place, state, timeout(&examined.platform)))
                }
                (Ok(_), Some(Err(why)), _) => {
                    Some(Err(format!("no lab can be made on this host, and every guest needs one: {why}")))
                }
                _ => None,
            };
            // Asked after a guest was tried: only then some platforms know how they run.
            if let (Ok(_), Comparable::No(why)) = (&usable, platform.comparable()) {
                not_comparable = Some(why);
            }
            (usable, platform.disclosures(), started)
        }
        Err(error) => {
            let refusal = Refusal::new(error.to_string(), "mend the arm's options");
            (Err(refusal), Vec::new(), None)
        }
    };
    let (name, summary) = (examined.name.clone(), examined.summary.clone());
    PlatformReport { name, summary, usable, started, disclosures, not_comparable }
}

/// A platform that could be used, but for memory that it or this host cannot merge as it is asked.
fn merged(
    usable: Result<Notes, Refusal>,
    platform: &dyn Platform,
    merging: Option<&Merging>,
) -> Result<Notes, Refusal> {
    let notes = usable?;
    let Some(merging) = merging else { return Ok(notes) };
    let kernel = Kernel::host();
    let refusal = merging_refusal(platform, &kernel).or_else(|| memory::refusal(merging, &kernel));
    refusal.map_or(Ok(notes), Err)
}

/// MTU of the lab in which guests are tried.
const MTU: u32 = 1500;

/// The host in general.
fn host_facts(view: &HostView, lab: Option<&Result<Lab, String>>) -> Vec<(String, String)> {
    let privileges = if view.rootless { "a user namespace (not root)" } else { "root" };
    let limits = match &view.limits_unavailable {
        None => tare_lab::detect().to_string(),
        Some(reason) => format!("none: {reason}"),
    };
    let mut host = vec![("runs as".to_owned(), privileges.to_owned()), ("control groups".to_owned(), limits)];
    let particulars = tare_lab::Hierarchies::detect().particulars();
    host.extend(particulars.into_iter().map(|what| ("limits".to_owned(), what)));
    match lab {
        Some(Ok(lab)) => host.extend(lab.facts().into_iter().map(|(name, value)| (format!("lab {name}"), value))),
        Some(Err(error)) => host.push(("lab".to_owned(), format!("cannot be made: {error}"))),
        None => {}
    }
    host.extend(memory::facts());
    host
}

/// Starts a guest for real and takes it away again.
fn try_start(
    platform: &dyn Platform,
    lab: &Lab,
    place: &Place<'_>,
    state: &StateDir,
    timeout: Duration,
) -> Result<Started, String> {
    let (run_id, agent) = (place.run_id, place.agent);
    let ledger: Arc<dyn Ledger> = Arc::<FileLedger>::clone(state.ledger());
    let state = state.path();
    let site = Site { run_id, agent, lab, mtu: MTU, state, ledger: &ledger, lifetime: timeout * 3, timeout };
    let size = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
    let spec = GuestSpec::new("doctor", size);
    let mut guest = platform.start(&site, &spec).map_err(|error| error.to_string())?;
    let started = Started { seconds: guest.start_time_s(), parts: guest.start_parts(), parity: guest.parity() };
    guest.destroy().map_err(|error| error.to_string())?;
    Ok(started)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tare_model::merging::MergeRule;

    use super::*;

    #[test]
    fn the_state_of_the_control_groups_is_described_in_words() {
        let view = HostView { rootless: false, limits_unavailable: None, agent: "/none".into() };
        let facts = host_facts(&view, None);
        let (_, shown) = facts.iter().find(|(name, _)| name == "control groups").unwrap();
        assert!(shown.starts_with("version ") || shown.starts_with("none: "), "{shown}");
    }

    #[test]
    fn an_arm_that_merges_on_a_platform_that_cannot_is_not_usable() {
        let platform = Shipped.platform("null", &json!({})).unwrap();
        let merging = Merging { rule: MergeRule::Ksmtuned, zero_pages: false };
        let refusal = merged(Ok(Vec::new()), &*platform, Some(&merging)).unwrap_err();
        assert!(!refusal.remedy.is_empty(), "{refusal:?}");
        assert_eq!(merged(Ok(Vec::new()), &*platform, None), Ok(Vec::new()));
    }
}
