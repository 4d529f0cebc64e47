//! Further guests like a trial's measured one, for workloads whose operation is a start.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tare_model::guest::GuestSpec;
use tare_platform::{Guest, Platform, Reach, Site};
use tare_wire::Link;
use tare_workload::{DriverSite, StartedGuest, Starter, WorkSite};

use super::Trial;
use super::target::Target;
use crate::cancel::Cancel;
use crate::text::fit;

/// Makes guests for a trial.
pub(super) struct Maker<'a> {
    platform: &'a dyn Platform,
    site: &'a Site<'a>,
    cancel: &'a Cancel,
    /// What is asked for each, but for its name.
    spec: GuestSpec,
    /// How many were asked for.
    made: AtomicU64,
}

impl<'a> Trial<'a> {
    /// What makes further guests; `None` where the case makes none, and where guests of its arm are there already.
    pub(super) fn maker(&self) -> Option<Maker<'a>> {
        let platform = self.task.platform;
        if self.case.made == 0 || platform.reach() != Reach::Lab || platform.machines().is_some() {
            return None;
        }
        let spec = self.guest_spec(format!("m{}", self.stem()), self.case.guest, None);
        Some(Maker { platform, site: &self.bench.site, cancel: self.bench.cancel, spec, made: AtomicU64::new(0) })
    }

    /// The measured guests as their workload sees them, with the load of this trial's case.
    pub(super) fn sites<'s>(
        &self,
        targets: &'s [Target],
        drivers: &'s [Vec<DriverSite<'s>>],
        maker: Option<&'s Maker<'_>>,
    ) -> Vec<WorkSite<'s>> {
        let given = self.given(targets.len());
        let sites = targets.iter().zip(drivers).filter_map(|(target, drivers)| target.site(drivers, &given));
        sites.map(|site| WorkSite { starter: maker.map(|maker| maker as &dyn Starter), ..site }).collect()
    }
}

impl fmt::Debug for Maker<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Maker").field("spec", &self.spec).field("made", &self.made).finish_non_exhaustive()
    }
}

impl Starter for Maker<'_> {
    fn start(&self) -> Result<Box<dyn StartedGuest>, String> {
        let name = format!("{}x{}", self.spec.name, self.made.fetch_add(1, Ordering::Relaxed));
        let spec = GuestSpec { name, ..self.spec.clone() };
        let guest = self.platform.start(self.site, &spec).map_err(|error| fit(&error.to_string()))?;
        Ok(Box::new(Made(guest)))
    }

    fn ended(&self) -> Option<String> {
        self.cancel.reason().map(|reason| format!("stopped by {reason}"))
    }
}

/// A guest that was made.
struct Made(Box<dyn Guest>);

impl StartedGuest for Made {
    fn link(&self) -> &Link {
        self.0.link()
    }

    fn start_time_s(&self) -> f64 {
        self.0.start_time_s()
    }

    fn parts_s(&self) -> Option<[f64; 3]> {
        self.0.start_parts().map(|parts| [parts.firmware_s, parts.kernel_s, parts.agent_s])
    }

    fn destroy(mut self: Box<Self>) -> Result<(), String> {
        self.0.destroy().map_err(|error| error.to_string())
    }
}
