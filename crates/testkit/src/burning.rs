//! A workload that really burns CPU in its guest, in proportion to the load that it is offered: for the search for a share of the guest's
//! CPUs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tare_model::guest::GuestSize;

use serde_json::Value;
use tare_controller::{Registry, Shipped};
use tare_model::field::FieldError;
use tare_model::load::{LoadModel, Phases};
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::Measurement;
use tare_platform::Platform;
use tare_wire::{ExecSpec, Reply, Request};
use tare_workload::{Driven, Prepared, Schedule, Traits, WorkSite, Workload, WorkloadError};

use crate::REASON;

/// Work begins so often, all clients' together.
const EVERY: Duration = Duration::from_millis(100);
/// CPU that each client's work takes, microseconds: as the kernel counts it, so that a busy machine makes it no more and no less.
const EACH_US: u64 = 1000;
/// Its metric.
pub const BURNT: &str = "burnt_per_s";

/// What was seen of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Burnt {
    /// Guests that it was set up in.
    pub prepared: u32,
    /// Clients, phases and seed of each drive, in order.
    pub drives: Vec<(u32, Phases, u64)>,
    /// Drives before which it had notice that there would be more, and times that it was ended.
    pub stayed: (u32, u32),
}

/// Shipped platforms, and the workload in place of every other.
#[derive(Debug, Clone, Default)]
pub struct Burning {
    /// The drive, from 1, whose work is wrong.
    pub wrong: Option<usize>,
    seen: Arc<Mutex<Burnt>>,
}

impl Burning {
    /// The same whose so-manieth drive does wrong work.
    pub fn wrong_at(drive: usize) -> Self {
        Self { wrong: Some(drive), ..Self::default() }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Burnt {
        self.with(|seen| seen.clone())
    }

    fn with<T>(&self, look: impl FnOnce(&mut Burnt) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Registry for Burning {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        Shipped.platform(name, options)
    }

    fn workload(&self, _: &str, _: &Value, _: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        Ok(Box::new(self.clone()))
    }
}

impl Workload for Burning {
    fn metrics(&self) -> Vec<MetricSpec> {
        vec![MetricSpec::new(BURNT, "pieces of work", Unit::OperationsPerSecond, Better::Higher).primary()]
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        Traits { repeats: true, ..Traits::of(*guest) }
    }

    fn prepare(&self, _: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        self.with(|seen| seen.prepared += 1);
        Ok(Box::new(AtWork { of: self.clone(), stays: false }))
    }
}

/// One guest's end.
struct AtWork {
    of: Burning,
    /// Whether it had notice that it will be driven again.
    stays: bool,
}

impl AtWork {
    /// Has the guest do so many clients' work once.
    fn burn(site: &WorkSite<'_>, clients: u32) -> Result<(), WorkloadError> {
        let ns = u64::from(clients) * EACH_US * 1000;
        let line = format!(
            "read from rest < /proc/$$/schedstat || exit 1; now=$from; while [ $((now - from)) -lt {ns} ]; do \
             i=0; while [ $i -lt 100 ]; do i=$((i+1)); done; read now rest < /proc/$$/schedstat; done"
        );
        let spec = ExecSpec::new(&["sh", "-c", &line], site.timeout, 256);
        match site.guest.call(Request::Exec(spec), site.timeout) {
            Ok(Reply::Executed(done)) if done.code == Some(0) => Ok(()),
            Ok(other) => Err(WorkloadError::Command(format!("{other:?}"))),
            Err(source) => Err(WorkloadError::Agent { side: "guest", source }),
        }
    }
}

impl Prepared for AtWork {
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let clients = site.load.connections();
        let noticed = u32::from(self.stays);
        self.of.with(|seen| {
            seen.drives.push((clients, schedule.phases, schedule.seed));
            seen.stayed.0 += noticed;
        });
        let start = schedule.start_at_ns + schedule.phases.steady_offset_ns();
        let end = start + schedule.phases.steady_state.ns;
        let until = |at_ns: u64| std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(tare_probe::now_ns())));
        let mut done = 0_u64;
        let mut next = schedule.start_at_ns;
        while next < end {
            until(next);
            Self::burn(site, clients)?;
            done += if (start..end).contains(&next) { u64::from(clients) } else { 0 };
            // What is late is caught up with.
            next += EVERY.as_nanos() as u64;
        }
        until(end + schedule.phases.ramp_down.ns);
        let mut measurement = Measurement::default();
        measurement.metrics.insert(BURNT.to_owned(), done as f64 * 1e9 / schedule.phases.steady_state.ns as f64);
        measurement.counts.insert("operations".to_owned(), done);
        Ok(Driven {
            measurement,
            window_ns: (start, end),
            work: done as f64,
            facts: [("clients".to_owned(), clients.to_string())].into(),
            ..Driven::default()
        })
    }

    fn verify(&mut self, _: &WorkSite<'_>, _: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let drives = self.of.with(|seen| seen.drives.len());
        Ok((self.of.wrong == Some(drives)).then(|| REASON.to_owned()))
    }

    fn stay(&mut self) {
        self.stays = true;
    }

    fn end(&mut self, _: &WorkSite<'_>) -> Result<(), WorkloadError> {
        self.of.with(|seen| seen.stayed.1 += 1);
        Ok(())
    }
}
