//! The host's probe, as a trial needs it.

use std::path::Path;

use tare_lab::Port;
use tare_model::plan::Plan;
use tare_model::sample::Source;
use tare_platform::{Guest, LinkEnd, Site};
use tare_probe::{Group, HostConfig, HostProbe, Interface, ProbeError};

/// Starts to sample the host, the control groups of the guests (the first is the measured one), the links of the
/// client and the measured guest, and the disk of the run folder. Whoever knows the measured window adds its ends.
/// The probe runs on the driver's CPUs, away from what it measures. Stop it before the guests go: it holds their
/// namespaces. Where the guests are not in the lab, the client's link there carries nothing and is not watched.
pub fn start(
    plan: &Plan,
    site: &Site<'_>,
    run_folder: &Path,
    guests: &[(Source, &dyn Guest)],
    in_lab: bool,
) -> Result<HostProbe, ProbeError> {
    HostProbe::start(HostConfig {
        interval: plan.study.lab.sample_interval,
        sut_cpus: plan.cpus.guests.clone(),
        client_cpus: plan.cpus.client.clone(),
        probe_cpus: plan.cpus.client.clone(),
        groups: guests
            .iter()
            .map(|(source, guest)| Group { source: source.clone(), directories: guest.groups() })
            // A guest without limits has no group of its own, and is then part of what else was busy.
            .filter(|group| !group.directories.is_empty())
            .collect(),
        interfaces: interfaces(site, guests.first().map(|(_, guest)| *guest), in_lab),
        disks: tare_probe::disk_of(run_folder).into_iter().collect(),
        ..HostConfig::default()
    })
}

/// The client's link, and both ends of the measured guest's.
fn interfaces(site: &Site<'_>, target: Option<&dyn Guest>, in_lab: bool) -> Vec<Interface> {
    let client = site.lab.client().path();
    let client = Interface { name: Port::LINK.into(), label: "client".into(), namespace: Some(client) };
    let mut all: Vec<Interface> = in_lab.then_some(client).into_iter().collect();
    for link in target.map(|guest| guest.links()).unwrap_or_default() {
        let label = match link.end {
            LinkEnd::Guest => "target",
            LinkEnd::Bridge => "target-port",
        };
        all.push(Interface { name: link.name, label: label.into(), namespace: Some(link.netns) });
    }
    all
}
