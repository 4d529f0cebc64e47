//! Launches under the limits of the guest and behind its link.

use std::path::Path;

use tare_model::guest::Seccomp;
use tare_wire::launch::{Launch, Shown};

use super::GuestBuilder;
use crate::error::Result;
use crate::guest_setup::GuestSetup;
use crate::launch::plain_launch;

impl<'a> GuestBuilder<'a> {
    /// What the guest has inside: the agent, its data, and a filter of system calls.
    pub(crate) fn setup<'s>(&self, agent: &'s Path, data: &'s [Shown], seccomp: Seccomp) -> GuestSetup<'s>
    where
        'a: 's,
    {
        GuestSetup { spec: self.spec, run_id: self.site.run_id, agent, data, seccomp }
    }

    /// A launch under the guest's limits and on its CPUs.
    pub(crate) fn held(&mut self) -> Result<Launch> {
        let mut launch = plain_launch();
        launch.cgroup_procs = self.limit()?;
        launch.cpu_set = self.spec.cpu_set.clone();
        launch.merge = self.spec.merge;
        Ok(launch)
    }

    /// The same behind the guest's link to the lab's network.
    /// Its agent, which serves there itself, confines itself.
    pub(crate) fn linked(&mut self) -> Result<Launch> {
        let netns = self.attach()?;
        let confine = Some(self.confine());
        Ok(Launch { netns: Some(netns), confine, ..self.held()? })
    }
}
