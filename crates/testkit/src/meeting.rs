//! Hosts beside this one that do nothing before all of them are asked: only who asks them at one time gets on.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tare_controller::{Registry, Shipped};
use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::load::LoadModel;
use tare_platform::{Guest, HostView, Notes, Platform, PlatformError, Reach, Site};
use tare_workload::Workload;

use crate::forward::forward;
use crate::platform::not_started;
use crate::{Several, Trouble};

/// How long a host waits for the others: far longer than any of them takes.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Hosts that wait for each other when they are checked, and again when the agent of a driver is started there. All are this host in truth, as is
/// what they drive. Those of the platform `refuses` cannot be used, those of `fails` start no agent.
#[derive(Debug, Clone)]
pub struct Meeting {
    hosts: usize,
    checked: Arc<Round>,
    started: Arc<Round>,
}

impl Meeting {
    /// So many hosts.
    pub fn of(hosts: usize) -> Self {
        Self { hosts, checked: Arc::default(), started: Arc::default() }
    }
}

/// Those who have come to one meeting; the next one begins when all have.
#[derive(Debug, Default)]
struct Round {
    come: Mutex<usize>,
    all: Condvar,
}

impl Round {
    /// Whether all of so many came before the wait was over.
    fn meet(&self, all: usize) -> bool {
        let mut come = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        *come += 1;
        let round = come.div_ceil(all) * all;
        self.all.notify_all();
        let waited = self.all.wait_timeout_while(come, LONGEST_WAIT, |come| *come < round);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Registry for Meeting {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        let (host, shipped) = match name {
            "null" => (None, name),
            other => (Some(other.to_owned()), "null"),
        };
        Ok(Box::new(Apart { inner: Shipped.platform(shipped, options)?, host, meeting: self.clone() }))
    }

    fn workload(&self, name: &str, parameters: &Value, load: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        // It drives a guest from as many drivers as there are.
        Several::new(Trouble::None, None).workload(name, parameters, load)
    }
}

/// A guest's platform, or what leads to a host.
struct Apart {
    inner: Box<dyn Platform>,
    /// What kind of host; `None`: a guest's platform.
    host: Option<String>,
    meeting: Meeting,
}

impl Platform for Apart {
    forward!(look, disclosures, comparable, versions);

    fn check(&self, host: &HostView) -> Result<Notes, Refusal> {
        let Some(kind) = &self.host else { return self.inner.check(host) };
        if !self.meeting.checked.meet(self.meeting.hosts) {
            return Err(Refusal::new("it was asked alone", "ask all at one time"));
        }
        if kind == "refuses" { Err(Refusal::new("it refuses", "name another")) } else { self.inner.check(host) }
    }

    fn reach(&self) -> Reach {
        Reach::Outside
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>, PlatformError> {
        // The one agent that makes trials ready is started alone.
        let Some(kind) = self.host.as_ref().filter(|_| spec.name.starts_with('c')) else {
            return self.inner.start(site, spec);
        };
        if !self.meeting.started.meet(self.meeting.hosts) || kind == "fails" {
            return Err(not_started(spec));
        }
        self.inner.start(site, spec)
    }
}
