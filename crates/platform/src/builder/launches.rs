//! Launches under the limits of the guest and behind its link.

use std::path::Path;

use tare_wire::confine::Confinement;
use tare_wire::launch::{Launch, Shown};

use super::GuestBuilder;
use crate::error::Result;
use crate::guest_setup::GuestSetup;
use crate::launch::plain_launch;

impl<'a> GuestBuilder<'a> {
    /// How the agent of a guest that shares the host's kernel is to confine itself, where its arm says nothing of it. What came of it is read
    /// back.
    pub(crate) fn confine(&mut self) -> Confinement {
        self.confine_as(self.spec.seccomp.into())
    }

    /// The same as its arm says.
    pub(crate) fn confine_as(&mut self, asked: Confinement) -> Confinement {
        self.confined.insert(asked).clone()
    }

    /// What the guest has inside: the agent, its data, and what the agent confines itself by.
    pub(crate) fn setup<'s>(&self, agent: &'s Path, data: &'s [Shown], confinement: &'s Confinement) -> GuestSetup<'s>
    where
        'a: 's,
    {
        let Confinement { seccomp, landlock } = confinement;
        let landlock = landlock.as_ref();
        GuestSetup { spec: self.spec, run_id: self.site.run_id, agent, data, seccomp: *seccomp, landlock }
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
