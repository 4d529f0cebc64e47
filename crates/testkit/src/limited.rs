//! A server that serves up to a known load and slows down beyond it, in real guests that are counted: for the search for a load.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tare_controller::{HostAccess, Registry, Shipped, ThisHost};
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::histogram::Bin;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::{Flag, Measurement, RequestType};
use tare_model::{Histogram, Refusal};
use tare_platform::{Guest, Platform, PlatformError, Site};
use tare_workload::{Driven, Prepared, Schedule, WorkSite, Workload, WorkloadError};

use crate::crowd::{Crowd, RESPONSE};
use crate::forward::forward;
use crate::platform::not_started;
use crate::{REASON, failure};

/// Response time up to the load that is served, seconds. Beyond it, it is ten times as long, and grows with the load.
pub const QUICK_S: f64 = 0.01;

/// What goes wrong with one guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hitch {
    /// It does not start.
    Start,
    /// Its workload cannot be set up.
    Prepare,
    /// Load breaks off.
    Drive,
    /// Its work is wrong.
    Wrong,
    /// It is slow, whatever the load.
    Slow,
    /// It is quick, whatever the load.
    Quick,
    /// It has no figure for the response time.
    Silent,
    /// It cannot be taken away.
    Stays,
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct Sights {
    /// Names of the guests that were asked for, in order.
    pub names: Vec<String>,
    /// Guests that stand now, and the most that stood at one time.
    pub standing: (u32, u32),
    /// Load and seed of each drive.
    pub drives: Vec<(LoadModel, u64)>,
    /// Where the client's own servers would be, for each guest that was set up.
    pub clients: Vec<Option<IpAddr>>,
}

/// Shipped platforms whose guests are counted, and the server in place of every workload.
#[derive(Debug, Clone)]
pub struct Limited {
    /// The load that it serves, clients or arrivals a second.
    pub serves: f64,
    /// What goes wrong with which guest, counted from 1 in the order in which they are asked for.
    pub hitches: Vec<(usize, Hitch)>,
    /// A host in place of this one, whose kernel merges.
    host: Option<Crowd>,
    seen: Arc<Mutex<Sights>>,
}

impl Limited {
    /// Nothing was seen yet.
    pub fn new(serves: f64, hitches: &[(usize, Hitch)]) -> Self {
        Self { serves, hitches: hitches.to_vec(), host: None, seen: Arc::default() }
    }

    /// The same with this host's memory.
    #[must_use]
    pub fn on(self, host: Crowd) -> Self {
        Self { host: Some(host), ..self }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Sights {
        self.with(|seen| seen.clone())
    }

    fn with<T>(&self, look: impl FnOnce(&mut Sights) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether this goes wrong with the guest that was asked for last.
    fn has(&self, hitch: Hitch) -> bool {
        let last = self.with(|seen| seen.names.len());
        self.hitches.contains(&(last, hitch))
    }
}

impl Registry for Limited {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        Ok(Box::new(Counting { inner: Shipped.platform(name, options)?, limited: self.clone() }))
    }

    fn workload(&self, _: &str, _: &Value, _: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        Ok(Box::new(self.clone()))
    }

    fn host(&self) -> Arc<dyn HostAccess> {
        self.host.clone().map_or_else(|| Arc::new(ThisHost) as Arc<dyn HostAccess>, |host| Arc::new(host))
    }
}

impl Workload for Limited {
    fn metrics(&self) -> Vec<MetricSpec> {
        vec![MetricSpec::new(RESPONSE, "response time, 99th percentile", Unit::Seconds, Better::Lower).primary()]
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        self.with(|seen| seen.clients.push(site.backend.address));
        if self.has(Hitch::Prepare) { Err(failure()) } else { Ok(Box::new(Serving(self.clone()))) }
    }
}

struct Serving(Limited);

impl Serving {
    /// Response time at a load, seconds.
    fn response_s(&self, load: f64) -> f64 {
        let slow = (load > self.0.serves || self.0.has(Hitch::Slow)) && !self.0.has(Hitch::Quick);
        if slow { QUICK_S * 10.0 * (load / self.0.serves).max(1.0) } else { QUICK_S }
    }
}

impl Prepared for Serving {
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        self.0.with(|seen| seen.drives.push((site.load, schedule.seed)));
        if self.0.has(Hitch::Drive) {
            return Err(failure());
        }
        // Every driver offers it.
        let load = site.load.number() * site.drivers.len() as f64;
        let start = schedule.start_at_ns + schedule.phases.steady_offset_ns();
        let end = start + schedule.phases.steady_state.ns;
        std::thread::sleep(Duration::from_nanos(end.saturating_sub(tare_probe::now_ns())));
        let response_s = self.response_s(load);
        let nanoseconds = (response_s * 1e9) as u64;
        let times = |count| Histogram {
            bins: vec![Bin { low: nanoseconds, high: nanoseconds, count }],
            min: nanoseconds,
            max: nanoseconds,
            sum: u128::from(nanoseconds * count),
            ..Histogram::default()
        };
        let mut measurement = Measurement::default();
        if !self.0.has(Hitch::Silent) {
            measurement.metrics.insert(RESPONSE.to_owned(), response_s);
        }
        measurement.histograms.insert("response".to_owned(), times(10));
        measurement.counts.insert("operations".to_owned(), load as u64);
        let page =
            RequestType { name: "page".into(), requests: 10, good: 10, times: times(10), ..RequestType::default() };
        measurement.requests.push(page);
        Ok(Driven {
            measurement,
            window_ns: (start, end),
            work: load,
            facts: [("served by".to_owned(), self.0.with(|seen| seen.names.last().cloned().unwrap_or_default()))]
                .into(),
            flags: vec![Flag { kind: "limited".into(), detail: format!("{load} at work") }],
            ..Driven::default()
        })
    }

    fn verify(&mut self, _: &WorkSite<'_>, _: &mut Driven) -> Result<Option<String>, WorkloadError> {
        Ok(self.0.has(Hitch::Wrong).then(|| REASON.to_owned()))
    }
}

/// A real platform whose guests are counted.
struct Counting {
    inner: Box<dyn Platform>,
    limited: Limited,
}

impl Platform for Counting {
    forward!(look, disclosures, comparable, versions);

    fn merging_refusal(&self) -> Option<Refusal> {
        self.limited.host.as_ref().map_or_else(|| self.inner.merging_refusal(), |_| None)
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>, PlatformError> {
        self.limited.with(|seen| seen.names.push(spec.name.clone()));
        if self.limited.has(Hitch::Start) {
            return Err(not_started(spec));
        }
        let stays = self.limited.has(Hitch::Stays);
        // A host that is made up has no part in what this one merges.
        let merge = spec.merge && self.limited.host.is_none();
        let inner = self.inner.start(site, &GuestSpec { merge, ..spec.clone() })?;
        self.limited.with(|seen| {
            seen.standing.0 += 1;
            seen.standing.1 = seen.standing.1.max(seen.standing.0);
        });
        Ok(Box::new(Counted { inner, limited: self.limited.clone(), stays, stands: true }))
    }
}

/// A real guest that is counted.
struct Counted {
    inner: Box<dyn Guest>,
    limited: Limited,
    /// Whether it refuses to go the first time.
    stays: bool,
    stands: bool,
}

impl Counted {
    fn gone(&mut self) {
        if std::mem::take(&mut self.stands) {
            self.limited.with(|seen| seen.standing.0 -= 1);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gone();
    }
}

impl Guest for Counted {
    forward!(spec, link, address, groups, parity, facts, data, start_time_s, links, drops, diagnostics, kill);

    fn destroy(&mut self) -> Result<(), PlatformError> {
        if std::mem::take(&mut self.stays) {
            let guest = self.inner.spec().name.clone();
            return Err(PlatformError::Destroy { guest, failures: vec![REASON.into()] });
        }
        self.inner.destroy()?;
        self.gone();
        Ok(())
    }
}
