//! A measured guest while it works, and what it is called.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tare_model::fact;
use tare_model::guest::{CommandDefaults, DataPlace, GuestSize};
use tare_model::load::LoadModel;
use tare_model::sample::Source;
use tare_model::token::Token;
use tare_model::trial::Flag;
use tare_wire::Link;
use tare_workload::{DriverSite, ServicesSite, WorkSite};

use super::Gathered;
use crate::client::Client;

/// A measured guest and its drivers, ready.
pub(super) struct Target {
    /// Which, from 0.
    pub(super) index: usize,
    /// What its servers and drivers have in common, and nobody else has.
    pub(super) token: Token,
    /// The channel to its agent.
    pub(super) link: Arc<Link>,
    /// Where its servers listen, as the client sees them.
    pub(super) address: IpAddr,
    /// What its servers bind to.
    pub(super) listen: IpAddr,
    /// Where it finds its data.
    pub(super) data: Option<DataPlace>,
    /// What holds for commands in it.
    pub(super) commands: Option<CommandDefaults>,
    /// What was asked for it.
    pub(super) size: GuestSize,
    /// Its drivers' agents.
    pub(super) clients: Vec<Client>,
    /// What it uses beside it on the host.
    pub(super) services: Option<Client>,
    /// What it asks the driver's side for, where the study names a host for that.
    pub(super) backend: Option<Client>,
}

/// What is the same for all guests of a trial.
pub(super) struct Given {
    /// What each driver offers.
    pub(super) load: LoadModel,
    /// Instances of the application in each guest.
    pub(super) instances: u32,
    /// Operations a second that a calibration found.
    pub(super) rate_per_s: Option<f64>,
    /// Whether their memory may be merged.
    pub(super) merge: bool,
    /// By how much the guests' side is slowed on purpose, in a study in which some are.
    pub(super) slowed_permille: Option<u32>,
    /// How long an agent may take for anything that is not load.
    pub(super) timeout: Duration,
}

impl Target {
    /// Its drivers and what it uses, to be ended.
    pub(super) fn into_clients(self) -> impl Iterator<Item = Client> {
        self.clients.into_iter().chain(self.services).chain(self.backend)
    }

    /// Its drivers as a workload sees them.
    pub(super) fn drivers(&self) -> Vec<DriverSite<'_>> {
        self.clients.iter().map(|client| DriverSite { client: client.link(), clock: client.clock() }).collect()
    }

    /// What its workload is given; `drivers` are its own, and `None` comes only of having none.
    pub(super) fn site<'s>(&'s self, drivers: &'s [DriverSite<'s>], given: &Given) -> Option<WorkSite<'s>> {
        let first = drivers.first()?;
        Some(WorkSite {
            guest: &self.link,
            guest_address: self.address,
            guest_listen: self.listen,
            client: first.client,
            client_clock: first.clock,
            drivers,
            index: u32::try_from(self.index).unwrap_or(u32::MAX),
            size: self.size,
            instances: given.instances,
            data: self.data.as_ref(),
            commands: self.commands.as_ref(),
            load: given.load,
            rate_per_s: given.rate_per_s,
            merge: given.merge,
            timeout: given.timeout,
            services: self.services.as_ref().and_then(|services| {
                Some(ServicesSite { link: services.link(), address: services.address()?, data: services.data() })
            }),
            backend: self.backend.as_ref().or(self.clients.first())?.backend(),
            starter: None,
            slowed_permille: given.slowed_permille,
        })
    }
}

/// Notes how the clocks of the hosts stand that drive and serve guests, by the first driver of each host, which of the drivers' did not keep to that, and
/// where the guests are served, if the study says where. To be called while the agents are there.
pub(super) fn note_hosts(targets: &[Target], gathered: &mut Gathered) {
    let clients = || targets.iter().flat_map(|target| &target.clients).rev();
    let backends = || targets.iter().filter_map(|target| target.backend.as_ref());
    gathered.facts.extend(backends().chain(clients()).filter_map(Client::clock_fact));
    gathered.facts.extend(backends().next().map(|backend| {
        let on = backend.clock().host().map_or_else(|| "this host".to_owned(), |host| format!("host {host}"));
        (fact::SERVICES_ON.to_owned(), on)
    }));
    // Each host once, although it may have had several drivers. What serves reports no moments, so its clock moves no figure.
    let flags: BTreeMap<&str, Flag> = clients().filter_map(Client::clock_flag).collect();
    gathered.flags.extend(flags.into_values());
}

/// Ends the agents of the guests' drivers, and of what the guests use; those that did not go are named in a flag.
pub(super) fn end_clients(targets: Vec<Target>, gathered: &mut Gathered) {
    let left = Client::end_all(targets.into_iter().flat_map(Target::into_clients).collect());
    left.into_iter().for_each(|reason| gathered.flag("teardown", reason));
}

/// The first measured guest's name in the samples: the same in every trial, so that trials can be laid over one another.
const TARGET: &str = "target";

/// The name of a measured guest in the samples.
pub(super) fn target_name(n: usize) -> String {
    if n == 0 { TARGET.to_owned() } else { format!("{TARGET}-{}", n + 1) }
}

/// Where the samples of a trial's n-th guest come from; the first `targets` are the measured ones.
pub(super) fn source(n: usize, targets: usize) -> Source {
    Source::Guest(if n < targets { target_name(n) } else { format!("neighbour-{}", n + 1 - targets) })
}

/// What people call one of several measured guests.
pub(super) fn named(n: usize, all: usize, name: &str) -> String {
    format!("guest {} of {all} ({name})", n + 1)
}

/// A fact of several guests: the first one's, and of the others those that differ from it.
pub(super) fn where_they_differ(name: &str, values: &[String]) -> Vec<(String, String)> {
    let first = values.first();
    let listed = values.iter().enumerate().filter(|(n, value)| *n == 0 || Some(*value) != first);
    listed.map(|(n, value)| (fact::of_guest(n as u32 + 1, name), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_guest_is_called_as_ever_and_several_by_number() {
        let names = |targets: usize| (0..4).map(|n| source(n, targets)).collect::<Vec<_>>();
        let guest = |name: &str| Source::Guest(name.to_owned());
        assert_eq!(names(1)[..2], [guest("target"), guest("neighbour-1")]);
        assert_eq!(names(3), [guest("target"), guest("target-2"), guest("target-3"), guest("neighbour-1")]);
        assert_eq!(named(1, 3, "t0x1"), "guest 2 of 3 (t0x1)");
    }

    #[test]
    fn values_are_listed_by_guest_only_where_they_differ() {
        let listed = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
            let rows = where_they_differ("on", &values).into_iter();
            rows.map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>()
        };
        assert_eq!(listed(&[]), Vec::<String>::new());
        assert_eq!(listed(&["ext4", "ext4"]), ["on = ext4"]);
        assert_eq!(listed(&["1 s", "2 s", "1 s"]), ["on = 1 s", "guest 2: on = 2 s"]);
    }
}
