//! The host's probe, as a trial needs it.

use std::collections::BTreeSet;
use std::path::Path;

use tare_lab::Port;
use tare_model::plan::Plan;
use tare_model::sample::Source;
use tare_platform::{Guest, LinkEnd, Site};
use tare_probe::{Group, HostConfig, HostProbe, Interface, ProbeError};

/// A guest that is watched.
pub struct WatchedGuest<'a> {
    /// Where its samples come from.
    pub source: Source,
    /// The guest.
    pub guest: &'a dyn Guest,
    /// Whether it is measured.
    pub measured: bool,
}

/// What is watched beside the host itself.
pub struct Watched<'a> {
    /// The guests.
    pub guests: &'a [WatchedGuest<'a>],
    /// Whether they are in the lab. Where they are not, the client's link there carries nothing and is not watched.
    pub in_lab: bool,
    /// The run folder: its disk is watched.
    pub run_folder: &'a Path,
    /// The disks under the guests' data.
    pub data_disks: BTreeSet<String>,
}

/// Starts to sample the host, the control groups of the guests, the links of the client and the measured guests, and
/// the disks of the run folder and of the guests' data. Whoever knows the measured window adds its ends.
/// The probe runs on the driver's CPUs, away from what it measures. Stop it before the guests go: it holds their
/// namespaces.
pub fn start(plan: &Plan, site: &Site<'_>, watched: &Watched<'_>) -> Result<HostProbe, ProbeError> {
    let own = tare_probe::disk_of(watched.run_folder);
    let disks = watched.data_disks.iter().cloned().chain(own).collect::<BTreeSet<_>>();
    let probe = HostProbe::start(HostConfig {
        interval: plan.study.lab.sample_interval,
        sut_cpus: plan.cpus.guests.clone(),
        client_cpus: plan.cpus.client.clone(),
        probe_cpus: plan.cpus.client.clone(),
        groups: watched
            .guests
            .iter()
            .map(|watched| Group { source: watched.source.clone(), directories: watched.guest.groups() })
            // A guest without limits has no group of its own, and is then part of what else was busy.
            .filter(|group| !group.directories.is_empty())
            .collect(),
        interfaces: interfaces(site, watched),
        disks: disks.into_iter().collect(),
        ..HostConfig::default()
    })?;
    for WatchedGuest { source, guest, .. } in watched.guests.iter().filter(|watched| watched.measured) {
        if let Some(read) = guest.counts() {
            probe.add_counts(source, read);
        }
    }
    Ok(probe)
}

/// The client's link, and both ends of each measured guest's.
fn interfaces(site: &Site<'_>, watched: &Watched<'_>) -> Vec<Interface> {
    let client = site.lab.client().path();
    let client = Interface { name: Port::LINK.into(), label: "client".into(), namespace: Some(client) };
    let mut all: Vec<Interface> = watched.in_lab.then_some(client).into_iter().collect();
    for WatchedGuest { source, guest, .. } in watched.guests.iter().filter(|watched| watched.measured) {
        let Source::Guest(name) = source else { continue };
        all.extend(guest.links().into_iter().map(|link| {
            let label = match link.end {
                LinkEnd::Guest => name.clone(),
                LinkEnd::Bridge => format!("{name}-port"),
            };
            Interface { name: link.name, label, namespace: Some(link.netns) }
        }));
    }
    all
}
