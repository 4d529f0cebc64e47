//! What a guest that shares the host's kernel has inside, whichever program makes it.

use std::path::Path;

use tare_model::guest::{GuestSpec, Seccomp};
use tare_wire::confine::Landlock;
use tare_wire::launch::Shown;

/// Where the agent is inside.
pub(crate) const AGENT: &str = "/.tare/agent";

/// Where guests that have a root file system of their own find their data.
pub(crate) const DATA: &str = "/.tare/data";

/// Where they find the log of a database, where that is apart.
pub(crate) const LOG: &str = "/.tare/log";

/// What is shown to a guest and set in it.
#[derive(Clone, Copy)]
pub(crate) struct GuestSetup<'a> {
    pub spec: &'a GuestSpec,
    pub run_id: &'a str,
    /// The agent's program on the host.
    pub agent: &'a Path,
    /// Its data.
    pub data: &'a [Shown],
    /// The filter of system calls that the agent installs.
    pub seccomp: Seccomp,
    /// The rules of Landlock that it puts itself under.
    pub landlock: Option<&'a Landlock>,
}

impl GuestSetup<'_> {
    /// The arguments of an agent that a platform's own program starts inside, and that confines itself there.
    pub(crate) fn confined(&self) -> Vec<String> {
        let rules = self.landlock.and_then(|rules| serde_json::to_string(rules).ok());
        ["--confine", self.seccomp.name()].map(str::to_owned).into_iter().chain(rules).collect()
    }
}

#[cfg(test)]
impl<'a> GuestSetup<'a> {
    /// A guest for tests.
    pub(crate) fn of(spec: &'a GuestSpec, agent: &'a str, data: &'a [Shown]) -> Self {
        Self { spec, run_id: "r", agent: Path::new(agent), data, seccomp: spec.seccomp, landlock: None }
    }
}

/// Data for tests: one directory, which nobody inside may write to if that is said.
#[cfg(test)]
pub(crate) fn shown(from: &str, read_only: bool) -> [Shown; 1] {
    [Shown { from: from.into(), at: DATA.into(), read_only }]
}
