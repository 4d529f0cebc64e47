//! The making of a guest, step by step. Each step writes down what it is about to make; a step that
//! fails takes back everything before it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tare_lab::{Cgroup, LabError, Limits, RUN_VARIABLE, Resource, check_on_disk, make_disk_directory};
use tare_model::guest::GuestSpec;
use tare_wire::launch::Launch;
use tare_wire::{Reply, Request, WireError};

use crate::channel::Channel;
use crate::error::{PlatformError, Result};
use crate::program::PATH;
use crate::standing::{Parts, Standing, Undo};
use crate::{Guest, Site, parity};

/// The guest's interface on the lab's network.
const GUEST_LINK: &str = "eth0";

/// A guest that is being made.
pub(crate) struct Making<'a> {
    pub site: &'a Site<'a>,
    pub spec: &'a GuestSpec,
    parts: Parts,
    began: Instant,
    /// What went by since then and is no part of the start.
    aside: Duration,
}

impl<'a> Making<'a> {
    /// Nothing is made yet. The guest's start counts from here, so this is the first line of every platform's
    /// [`crate::Platform::start`].
    pub(crate) fn new(site: &'a Site<'a>, spec: &'a GuestSpec) -> Self {
        let parts = Parts::new(&spec.name, site.ledger);
        Self { site, spec, parts, began: Instant::now(), aside: Duration::ZERO }
    }

    /// Does what is no part of a guest's start: tare's own bookkeeping, and work that is done once a run.
    pub(crate) fn aside<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let began = Instant::now();
        let done = work(self);
        self.aside += began.elapsed();
        done
    }

    /// The link to the lab's network.
    pub(crate) fn attach(&mut self) -> Result<PathBuf> {
        let port = self.site.lab.attach(&self.spec.name).map_err(|source| self.lab_error(source))?;
        Ok(self.parts.port.insert(port).netns.path())
    }

    /// The control group with the guest's limits; the files through which a process joins it.
    pub(crate) fn limit(&mut self) -> Result<Vec<PathBuf>> {
        let plan = Cgroup::plan(self.site.run_id, &self.spec.name).map_err(|source| self.lab_error(source))?;
        self.write_down(&plan.resource())?;
        let limits = Limits {
            cpu_quota_cpus: Some(self.spec.size.cpus),
            cpu_set: self.spec.cpu_set.clone(),
            memory_bytes: Some(self.spec.size.memory.0),
        };
        let cgroup = Cgroup::create(plan, &limits).map_err(|source| self.lab_error(source))?;
        Ok(self.parts.cgroup.insert(cgroup).procs_files())
    }

    /// The directories of the control group.
    pub(crate) fn groups(&self) -> Vec<PathBuf> {
        self.parts.cgroup.as_ref().map(|cgroup| cgroup.paths().to_vec()).unwrap_or_default()
    }

    /// A directory of the guest's own in the run's state directory.
    pub(crate) fn directory(&mut self) -> Result<PathBuf> {
        let path = self.site.state.join("guests").join(&self.spec.name);
        self.make_directory(path)
    }

    /// The run's directory on a disk.
    pub(crate) fn disk(&self) -> Result<PathBuf> {
        make_disk_directory(self.site.run_id).map_err(|source| self.lab_error(source))
    }

    /// A directory of the guest's own on a disk, for what it writes.
    pub(crate) fn layers(&mut self) -> Result<PathBuf> {
        let run = self.disk()?;
        check_on_disk(&run).map_err(|source| self.lab_error(source))?;
        self.make_directory(run.join("guests").join(&self.spec.name))
    }

    fn make_directory(&mut self, path: PathBuf) -> Result<PathBuf> {
        self.write_down(&Resource::Directory { path: path.clone() })?;
        self.parts.directories.push(path.clone());
        std::fs::create_dir_all(&path).map_err(|error| {
            self.failed(
                &format!("make its directory {}", path.display()),
                error.to_string(),
                "Is the file system full or read-only?",
            )
        })?;
        Ok(path)
    }

    /// What the platform keeps elsewhere; `undo` takes it away.
    pub(crate) fn hold(&mut self, platform: &str, token: serde_json::Value, undo: Undo) -> Result<()> {
        self.write_down(&Resource::Held { platform: platform.to_owned(), token })?;
        self.parts.undo = Some(undo);
        Ok(())
    }

    /// Starts the agent by a launch and waits until it answers.
    pub(crate) fn start(mut self, launch: &Launch) -> Result<Box<dyn Guest>> {
        let description = serde_json::to_string(launch).map_err(|error| {
            self.failed("describe its start", error.to_string(), "Report this: it should not happen")
        })?;
        let mut command = Command::new(self.site.agent);
        command.arg("enter").arg(description);
        // No variable of the user's shell may make one arm differ from another.
        command.env_clear().envs(environment(self.site.run_id));
        let channel = Channel::spawn(&mut command).map_err(|error| {
            let tried = format!("start the agent {}", self.site.agent.display());
            self.failed(&tried, error.to_string(), "Is the agent's program there and executable?")
        })?;
        let channel = self.parts.channel.insert(channel);
        let link = channel.open(self.site.patience, self.site.lifetime).map_err(|error| self.no_answer(&error))?;
        let start_time_s = self.began.elapsed().saturating_sub(self.aside).as_secs_f64();
        self.parts.link = Some(Arc::new(link));
        self.finish(start_time_s)
    }

    /// Reads back what was granted.
    fn finish(mut self, start_time_s: f64) -> Result<Box<dyn Guest>> {
        let Some(link) = self.parts.link.clone() else {
            return Err(self.failed(
                "reach its agent",
                "there is no channel".into(),
                "Report this: it should not happen",
            ));
        };
        let facts = match link.call(Request::Facts, self.site.patience) {
            Ok(Reply::Facts(facts)) => facts,
            Ok(_) => return Err(self.no_answer(&WireError::Unexpected { request: "tell its facts" })),
            Err(error) => return Err(self.no_answer(&error)),
        };
        let mut rows = match &self.parts.cgroup {
            Some(cgroup) => cgroup.parity(&self.spec.size, &self.spec.cpu_set),
            None => parity::unlimited(self.spec),
        };
        let mtu = self.parts.port.as_ref().map(|_| (GUEST_LINK, self.site.mtu));
        rows.extend(parity::inside(self.spec, &facts, mtu));
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let address = self.parts.port.as_ref().map_or(loopback, |port| port.address);
        let parts = std::mem::replace(&mut self.parts, Parts::new(&self.spec.name, self.site.ledger));
        Ok(Box::new(Standing { spec: self.spec.clone(), link, address, parity: rows, facts, start_time_s, parts }))
    }

    fn write_down(&mut self, resource: &Resource) -> Result<()> {
        // The journal waits for the disk: that time is tare's own and differs from one platform to the next.
        let number = self.aside(|making| making.site.ledger.planned(resource));
        let number = number.map_err(|source| PlatformError::Ledger { guest: self.spec.name.clone(), source })?;
        self.parts.written_down.push(number);
        Ok(())
    }

    fn lab_error(&self, source: LabError) -> PlatformError {
        PlatformError::Lab { guest: self.spec.name.clone(), source }
    }

    /// The agent did not answer: says how the process ended, if it did, and what it printed.
    fn no_answer(&mut self, error: &WireError) -> PlatformError {
        let mut why = error.to_string();
        if let Some(channel) = &mut self.parts.channel {
            // An end is near when the channel broke; a guest that hangs is not waited for.
            let patience =
                std::time::Duration::from_millis(if matches!(error, WireError::Timeout { .. }) { 0 } else { 500 });
            if let Ok(Some(status)) = channel.wait(patience) {
                why = format!("{why} ({status})");
            }
        }
        self.failed(
            "reach the agent inside",
            why,
            "See below what was said; `tare doctor` tries the platform by itself",
        )
    }

    /// An error of this guest, with what was said so far.
    pub(crate) fn failed(&self, tried: &str, why: String, remedy: &str) -> PlatformError {
        PlatformError::Start {
            guest: self.spec.name.clone(),
            tried: tried.to_owned(),
            why,
            remedy: remedy.to_owned(),
            diagnostics: self.parts.channel.as_ref().map(Channel::diagnostics).unwrap_or_default(),
        }
    }
}

/// The environment of everything that is started for a guest.
pub(crate) fn environment(run_id: &str) -> [(&str, &str); 4] {
    [("PATH", PATH), ("HOME", "/root"), ("LANG", "C.UTF-8"), (RUN_VARIABLE, run_id)]
}

/// A launch that changes nothing.
pub(crate) fn plain_launch() -> Launch {
    Launch {
        cgroup_procs: Vec::new(),
        netns: None,
        cpu_set: Vec::new(),
        unshare: Vec::new(),
        mounts: Vec::new(),
        root: None,
        hostname: None,
        argv: Vec::new(),
    }
}

/// The agent's path, which must be absolute: it is used by programs with other working directories.
pub(crate) fn absolute(agent: &Path) -> PathBuf {
    std::path::absolute(agent).unwrap_or_else(|_| agent.to_owned())
}
