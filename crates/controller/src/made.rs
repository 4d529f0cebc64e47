//! What a plan names, made once: platforms, workloads and the ways to hosts beside this one.

use std::collections::BTreeMap;
use std::path::Path;

use tare_model::Refusal;
use tare_model::environment::Section;
use tare_model::plan::Plan;
use tare_model::study::{Host, LOCAL};
use tare_platform::{HostView, Platform, Reach};
use tare_workload::Workload;

use crate::bench::Place;
use crate::data_storage;
use crate::error::ControllerError;
use crate::parallel;
use crate::registry::Registry;
use crate::remote_guests;
use crate::{host_memory, host_starts};

/// Platforms and workloads of the plan, made once.
pub struct Made {
    /// By the ids of the arms.
    pub platforms: BTreeMap<String, Box<dyn Platform>>,
    /// By the ids of the cases.
    pub workloads: BTreeMap<String, Box<dyn Workload>>,
    /// What leads to the hosts beside this one, by their ids.
    hosts: BTreeMap<String, Box<dyn Platform>>,
}

impl Made {
    /// Makes all, and finds out before anything is started whether this host can run them.
    pub fn new(plan: &Plan, registry: &dyn Registry, agent: &Path) -> Result<Self, ControllerError> {
        let study = &plan.study;
        let host = HostView::here(agent);
        let mut platforms = BTreeMap::new();
        for arm in &study.arms {
            let platform = registry
                .platform(&arm.platform, &arm.options)
                .map_err(|source| ControllerError::Registry { what: format!("arm `{}`", arm.id), source })?;
            let refusal = match platform.check(&host) {
                Err(refusal) => Some(refusal),
                Ok(_) => host_memory::refusal(arm, &*platform, study, &*registry.host())
                    .or_else(|| host_starts::refusal(arm, &*platform))
                    .or_else(|| data_storage::refusal(registry, &*platform, &study.cases)),
            };
            if let Some(Refusal { reason, remedy }) = refusal {
                return Err(ControllerError::Unavailable { arm: arm.id.clone(), reason, remedy });
            }
            platforms.insert(arm.id.clone(), platform);
        }
        let mut workloads = BTreeMap::new();
        for case in &study.cases {
            let workload = registry
                .workload(&case.workload, &case.parameters, &case.load.largest())
                .map_err(|source| ControllerError::Registry { what: format!("case `{}`", case.id), source })?;
            if let Some(Refusal { reason, remedy }) = workload.refusal() {
                let (case, workload) = (case.id.clone(), case.workload.clone());
                return Err(ControllerError::Unusable { case, workload, reason, remedy });
            }
            if !platforms.values().all(|platform| remote_guests::are_elsewhere(&**platform)) {
                host_memory::one_fits(case, &*workload, &*registry.host())?;
            }
            workloads.insert(case.id.clone(), workload);
        }
        Ok(Self { platforms, workloads, hosts: Self::hosts(&study.hosts, registry, &host)? })
    }

    /// What leads to the hosts beside this one. All are asked at one time, and all that cannot be used are named.
    fn hosts(
        all: &[Host],
        registry: &dyn Registry,
        here: &HostView,
    ) -> Result<BTreeMap<String, Box<dyn Platform>>, ControllerError> {
        let mut hosts = BTreeMap::new();
        for Host { id, platform, options } in all {
            let made = registry.platform(platform, options);
            let machine = made.map_err(|source| ControllerError::Registry { what: format!("host `{id}`"), source })?;
            hosts.insert(id.clone(), machine);
        }
        let asked = all.iter().filter_map(|host| Some((&host.id, hosts.get(&host.id)?)));
        let said = parallel::on_hosts(asked, || false, |machine| Ok(machine.check(here).err()));
        let refused = all.iter().zip(said).filter_map(|(Host { id, .. }, said)| {
            let refusal = match said? {
                Ok(refusal) => refusal?,
                Err(why) => Refusal::new(why, "report it"),
            };
            Some((id.clone(), refusal))
        });
        let refused: Vec<(String, Refusal)> = refused.collect();
        if refused.is_empty() { Ok(hosts) } else { Err(ControllerError::NoHosts { refused }) }
    }

    /// The hosts that offer load.
    pub fn drivers<'a>(&'a self, plan: &'a Plan) -> Vec<Place<'a>> {
        plan.study.roles.drivers.iter().map(|id| self.place(id)).collect()
    }

    /// The host that serves what guests ask the driver's side for, if the study names one.
    pub fn services<'a>(&'a self, plan: &'a Plan) -> Option<Place<'a>> {
        plan.study.roles.services.as_ref().map(|id| self.place(id))
    }

    fn place<'a>(&'a self, id: &'a str) -> Place<'a> {
        (id, if id == LOCAL { None } else { self.hosts.get(id).map(|host| &**host) })
    }

    /// Whether some arm is on the lab's network.
    pub fn in_lab(&self) -> bool {
        self.platforms.values().any(|platform| platform.reach() == Reach::Lab)
    }

    /// Whether some arms are on the lab's network and others are not.
    pub fn mixed(&self) -> bool {
        let outside = self.platforms.values().filter(|platform| platform.reach() == Reach::Outside).count();
        outside > 0 && outside < self.platforms.len()
    }

    /// What a reader must know about the platforms, for disclosure.
    pub fn disclosed(&self) -> Section {
        let sentences = self.platforms.iter().flat_map(|(arm, platform)| {
            platform.disclosures().into_iter().map(move |sentence| (arm.clone(), sentence))
        });
        let hosts = self.hosts.keys().map(|id| {
            (format!("host {id}"), "A machine of its own, over a network that was there before the run.".to_owned())
        });
        Section { title: "Platforms".into(), facts: sentences.chain(hosts).collect() }
    }

    /// Versions of what the platforms run, for disclosure.
    pub fn software(&self, version: &str) -> Section {
        let mut facts = vec![("tare".to_owned(), version.to_owned())];
        for (arm, platform) in &self.platforms {
            for (name, version) in platform.versions() {
                facts.push((format!("{name} (arm {arm})"), version));
            }
        }
        Section { title: "Software".into(), facts }
    }
}
