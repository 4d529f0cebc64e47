//! What a guest has beside itself: servers that it uses, in control groups and places on the network of their own. All of it
//! goes with the guest.

use std::net::IpAddr;
use std::path::PathBuf;

use tare_lab::{Cgroup, Limits};
use tare_wire::launch::Launch;

use super::GuestBuilder;
use crate::channel::Channel;
use crate::error::Result;

impl GuestBuilder<'_> {
    /// A control group beside the guest's, for a server that the guest uses and that is no part of its account; the files
    /// through which a process joins it. It goes with the guest.
    pub(crate) fn limit_beside(&mut self, name: &str, limits: &Limits) -> Result<Vec<PathBuf>> {
        let plan = Cgroup::plan(self.site.run_id, name).map_err(|source| self.lab_error(source))?;
        self.write_down(&plan.resource())?;
        let cgroup = Cgroup::create(plan, limits).map_err(|source| self.lab_error(source))?;
        let files = cgroup.procs_files();
        self.parts.groups_beside.push(cgroup);
        Ok(files)
    }

    /// A place on the lab's network beside the guest's own: its namespace and its address. It goes with the guest.
    pub(crate) fn attach_beside(&mut self, name: &str) -> Result<(PathBuf, IpAddr)> {
        let port = self.site.lab.attach(name).map_err(|source| self.lab_error(source))?;
        let place = (port.netns.path(), port.address);
        self.parts.ports_beside.push(port);
        Ok(place)
    }

    /// Starts a process that the guest needs beside the channel's, and gives its number. It goes when the guest goes.
    pub(crate) fn beside(&mut self, launch: &Launch) -> Result<u32> {
        let mut command = self.entering(launch)?;
        let process = Channel::beside(&mut command).map_err(|error| self.not_started(&command, &error))?;
        let number = process.pid();
        self.parts.beside.push(process);
        Ok(number)
    }
}
