//! What runs in guests: the [`Workload`] trait, one folder a workload, and the registry.
//!
//! A workload never asks which platform it is on. It talks to two agents, one in the guest and one
//! on the client's side, through a [`WorkSite`], and yields one [`Driven`] a trial.

mod clock;
mod cpu;
mod exec;
mod null;
pub mod registry;
mod rr;
mod site;
mod store;
mod stream;
mod yields;

pub use site::{AheadSite, Clock, DriverSite, SameClock, Schedule, WorkSite, WorkloadError};
pub use store::StoreError;
pub use yields::{Driven, UnitOfWork};

use tare_model::Span;
use tare_model::guest::{GuestData, GuestSize};
use tare_model::metric::MetricSpec;
use tare_model::units::ByteSize;

/// What runs in a guest and is measured.
pub trait Workload: Send + Sync {
    /// The metrics that a trial yields, exactly one of them primary, which comes first.
    fn metrics(&self) -> Vec<MetricSpec>;

    /// What service demand is counted by.
    fn unit_of_work(&self) -> UnitOfWork;

    /// The longest that one trial's load may take where its phases do not say; `None`: the phases say.
    fn longest(&self) -> Option<Span> {
        None
    }

    /// Whether several guests can be measured at one time, each with several drivers. Then [`Self::combine`] is written.
    fn several(&self) -> bool {
        false
    }

    /// Disk that it takes for guests of this size, for the plan. Nothing is looked at on the host.
    fn footprint(&self, guest: &GuestSize) -> Footprint {
        let _ = guest;
        Footprint::default()
    }

    /// What this host lacks for it: (reason, remedy). Quick, and nothing is started. Asked before any run.
    fn lack(&self) -> Option<(String, String)> {
        None
    }

    /// What is done once a run, before its first trial and for one case: what only a try can tell is tried, and the data
    /// that every guest is given is made, or found where an earlier run has left it.
    ///
    /// # Errors
    /// What would make every trial fail, with the remedy.
    fn ahead(&self, site: &AheadSite<'_>) -> Result<Option<GuestData>, WorkloadError> {
        let _ = site;
        Ok(None)
    }

    /// One trial's figures from those of its guests, in their order. Each has been verified. Called also with one.
    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        guests.into_iter().next()
    }

    /// Sets up the guest's end. When this returns, the guest is ready for load.
    ///
    /// # Errors
    /// When an agent could not do its part.
    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError>;
}

/// Disk that a workload takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// For what is made once and kept from run to run, bytes.
    pub kept: ByteSize,
    /// For each guest while it stands, bytes.
    pub guest: ByteSize,
}

/// A workload set up in one guest. Dropping it leaves the guest as it is: the guest is thrown away. Each of a trial's
/// guests has one, on a thread of its own.
pub trait Prepared: Send {
    /// Makes ready all that takes time of its own, such as the driver's connections, and offers nothing yet.
    /// Called once, before [`Self::drive`], so that the moment of its start can be kept.
    ///
    /// # Errors
    /// When an agent could not do its part.
    fn connect(&mut self, _site: &WorkSite<'_>, _schedule: &Schedule) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Offers load for all phases from `schedule.start_at_ns`, and tells what was measured in steady state.
    ///
    /// # Errors
    /// When load could not be offered to the end, or not from that moment.
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError>;

    /// Ends the guest's end and checks what was done, outside the measured time: `Some(reason)` when
    /// the work was wrong and its figures must not be used. What is merely worth knowing is added to
    /// `driven` as counts and flags.
    ///
    /// # Errors
    /// When the check itself could not be made.
    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError>;
}
