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
mod stream;
mod yields;

pub use site::{Clock, SameClock, Schedule, WorkSite, WorkloadError};
pub use yields::{Driven, UnitOfWork};

use tare_model::Span;
use tare_model::metric::MetricSpec;

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

    /// Sets up the guest's end. When this returns, the guest is ready for load.
    ///
    /// # Errors
    /// When an agent could not do its part.
    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError>;
}

/// A workload set up in one guest. Dropping it leaves the guest as it is: the guest is thrown away.
pub trait Prepared {
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
