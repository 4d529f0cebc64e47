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
use crate::host_memory;
use crate::registry::Registry;
use crate::remote_guests;

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
        let hosts = study.hosts.iter().map(|other| Ok((other.id.clone(), Self::host(other, registry, &host)?)));
        let hosts = hosts.collect::<Result<_, ControllerError>>()?;
        Ok(Self { platforms, workloads, hosts })
    }

    /// What leads to a host beside this one.
    fn host(of: &Host, registry: &dyn Registry, here: &HostView) -> Result<Box<dyn Platform>, ControllerError> {
        let Host { id, platform, options: own } = of;
        let made = registry.platform(platform, own);
        let machine = made.map_err(|source| ControllerError::Registry { what: format!("host `{id}`"), source })?;
        match machine.check(here) {
            Err(Refusal { reason, remedy }) => Err(ControllerError::NoHost { host: id.clone(), reason, remedy }),
            Ok(_) => Ok(machine),
        }
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
