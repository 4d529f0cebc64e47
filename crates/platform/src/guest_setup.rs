//! What a guest that shares the host's kernel has inside, whichever program makes it.

use std::path::Path;

use tare_model::guest::{GuestSpec, Seccomp};

/// Where the agent is inside.
pub(crate) const AGENT: &str = "/.tare/agent";

/// Where guests that have a root file system of their own find their data.
pub(crate) const DATA: &str = "/.tare/data";

/// What is shown to a guest and set in it.
#[derive(Clone, Copy)]
pub(crate) struct GuestSetup<'a> {
    pub spec: &'a GuestSpec,
    pub run_id: &'a str,
    /// The agent's program on the host.
    pub agent: &'a Path,
    /// The guest's data on the host.
    pub data: Option<&'a Path>,
    /// Whether nobody inside may write to its data.
    pub read_only: bool,
    /// The filter of system calls that the agent installs.
    pub seccomp: Seccomp,
}

#[cfg(test)]
impl<'a> GuestSetup<'a> {
    /// A guest for tests.
    pub(crate) fn of(spec: &'a GuestSpec, agent: &'a str, data: &'a str) -> Self {
        let (agent, data) = (Path::new(agent), Some(Path::new(data)));
        Self { spec, run_id: "r", agent, data, read_only: false, seccomp: spec.seccomp }
    }
}
