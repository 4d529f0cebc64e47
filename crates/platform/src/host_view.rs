//! The host as a platform's check sees it.

use std::path::{Path, PathBuf};

use tare_model::Refusal;

/// The host as a check needs to see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostView {
    /// Whether tare works without root here.
    pub rootless: bool,
    /// Why limits cannot be set here; `None` when they can.
    pub limits_unavailable: Option<String>,
    /// The agent's program.
    pub agent: PathBuf,
}

impl HostView {
    /// The view of this host, now.
    pub fn here(agent: &Path) -> Self {
        Self {
            rootless: tare_lab::is_rootless(),
            limits_unavailable: tare_lab::Cgroup::unavailable(),
            agent: agent.to_owned(),
        }
    }

    /// Refuses a host without root or without limits, for a platform that needs both; `needs`: what it needs root for.
    pub(crate) fn root_and_limits(&self, needs: &str) -> std::result::Result<(), Refusal> {
        if self.rootless {
            let remedy = "Run as root, or use a platform that works in a user namespace; `tare doctor` lists them";
            return Err(Refusal::new(format!("it needs root: {needs}"), remedy));
        }
        let Some(why) = &self.limits_unavailable else { return Ok(()) };
        let remedy = "Use a platform that works without limits; `tare doctor` lists them";
        Err(Refusal::new(format!("its guests are held by control groups, and {why}"), remedy))
    }

    /// What a user should know of a platform that works without limits.
    pub(crate) fn notes(&self) -> Notes {
        self.limits_unavailable.iter().map(|why| format!("no limits: {why}")).collect()
    }
}

/// What a user should know of a platform that can be used, each in a sentence.
pub type Notes = Vec<String>;
