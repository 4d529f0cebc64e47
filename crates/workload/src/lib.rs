//! What runs in guests: the [`Workload`] trait, one folder a workload, and the registry.
//!
//! A workload never asks which platform it is on. It talks to two agents, one in the guest and one
//! on the client's side, through a [`WorkSite`], and yields one [`Driven`] a trial.

mod application;
mod asked;
mod baton;
mod bundle;
mod checks;
mod clock;
mod command;
mod entry;
mod exchanges;
mod failure;
mod faults;
mod figures;
mod folder;
mod gold;
mod jvm;
mod limits;
mod operations;
mod places;
mod postgres;
pub mod registry;
mod regular;
mod relation;
mod requests;
pub mod secret;
mod sections;
mod site;
mod sql_refusal;
mod started;
mod starter;
mod together;
mod unprivileged;
mod url;
mod view;
mod workloads;
mod yields;

pub use baton::Baton;
pub use failure::Failure;
pub use places::{BackendSite, ServicesSite};
pub use relation::{Departure, Offset, Relation};
pub use sections::add_sections;
pub use site::{Clock, DriverSite, SameClock, Schedule, SetupSite, WorkSite, WorkloadError};
pub use starter::{PageFaults, StartedGuest, Starter};
pub use view::View;
pub use workloads::tile::{Member as TileMember, Tile};
pub use yields::{Driven, UnitOfWork};

use workloads::{java, social, store, web};

use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::{GuestData, GuestSize};
use tare_model::metric::MetricSpec;
use tare_model::study::Case;

pub use tare_model::traits::{Footprint, GuestTraits, Traits};

/// What runs in a guest and is measured.
pub trait Workload: Send + Sync {
    /// The metrics that a trial yields, exactly one of them primary, which comes first.
    fn metrics(&self) -> Vec<MetricSpec>;

    /// What service demand is counted by.
    fn unit_of_work(&self) -> UnitOfWork {
        UnitOfWork::Operation
    }

    /// What it can do and what it takes in guests of this size, with so many instances of the application in each, which share its load.
    /// Cheap: it is asked wherever an answer is needed.
    fn traits(&self, guest: &GuestSize, instances: u32) -> Traits {
        let _ = instances;
        Traits::of(*guest)
    }

    /// The same of a case's guests.
    fn traits_in(&self, case: &Case) -> Traits {
        self.traits(&case.guest, case.instances.max(1))
    }

    /// What is wrong with a parameter for such guests ([`Self::traits`]), if they are too small for it. Asked when a study is checked.
    ///
    /// # Errors
    /// The parameter, with the figures.
    fn fits(&self, guest: &GuestSize, instances: u32) -> Result<(), FieldError> {
        let _ = (guest, instances);
        Ok(())
    }

    /// Finds, once a run and in a guest of the baseline that is alone on the host, what load every guest is to be offered. Called before
    /// the first trial of workloads that say so ([`Traits::calibrated`]).
    /// `prepared` came from [`Self::prepare`]; `cpu_s` tells the CPU seconds that the guest has used, as the host counts them.
    ///
    /// # Errors
    /// When an agent could not do its part, or no such load was found; with what was tried.
    fn calibrate(
        &self,
        site: &WorkSite<'_>,
        prepared: &mut dyn Prepared,
        cpu_s: &(dyn Fn() -> Option<f64> + Sync),
    ) -> Result<Calibration, WorkloadError> {
        let _ = (site, prepared, cpu_s);
        Err(WorkloadError::NotConnected)
    }

    /// Disk that it takes for such guests ([`Self::traits`]), for the plan. Nothing is looked at on the host.
    fn footprint(&self, guest: &GuestSize, instances: u32) -> Footprint {
        let _ = (guest, instances);
        Footprint::default()
    }

    /// Why it cannot run on this host, as far as files show, and the remedy. It runs no program, because somebody else
    /// may have written the study that is planned.
    fn look(&self) -> Option<Refusal> {
        None
    }

    /// Why it cannot run on this host, and the remedy. Quick; programs may be asked what they are. Asked before any run.
    fn refusal(&self) -> Option<Refusal> {
        self.look()
    }

    /// Programs of this host that the parameters name by path, and that [`Self::refusal`] or a run runs.
    fn named_programs(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is done once a run, before its first trial and for one case: what only a try can tell is tried, and the data
    /// that every guest and every service is given is made, or found where an earlier run has left it.
    ///
    /// # Errors
    /// What would make every trial fail, with the remedy.
    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        let _ = site;
        Ok(Data::default())
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

/// What guests are given, and what is given to what they use, as often as guests differ: the `index`-th guest has the entry at `index`
/// modulo their number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Data {
    /// Of guests.
    pub guests: Vec<Option<GuestData>>,
    /// Of what they use ([`Traits::services`]).
    pub services: Vec<Option<GuestData>>,
}

impl Data {
    /// All guests are given the same, and nothing is given to what they use.
    pub fn of_guests(data: GuestData) -> Self {
        Self::same(Some(data), None)
    }

    /// All guests are given the same, and so is what they use.
    pub fn same(guest: Option<GuestData>, services: Option<GuestData>) -> Self {
        Self { guests: vec![guest], services: vec![services] }
    }

    /// What the `index`-th guest is given.
    pub fn guest(&self, index: usize) -> Option<&GuestData> {
        self.guests.get(index.checked_rem(self.guests.len())?)?.as_ref()
    }

    /// What is given to what the `index`-th guest uses.
    pub fn service(&self, index: usize) -> Option<&GuestData> {
        self.services.get(index.checked_rem(self.services.len())?)?.as_ref()
    }

    /// Whether some guest is given data.
    pub fn to_guests(&self) -> bool {
        self.guests.iter().any(Option::is_some)
    }
}

/// The load that was found before the first trial. It is written to the run's journal, so that a run that is resumed offers the same.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Calibration {
    /// Operations a second that each guest is to be offered.
    pub rate_per_s: f64,
    /// Share of the guest's CPUs (0 to 1) that it took alone at that rate.
    pub cpu_share: f64,
    /// Each try: (operations a second, share of the guest's CPUs).
    pub tries: Vec<(f64, f64)>,
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

    /// Tells, before the first [`Self::connect`], that it will be driven again and again: [`Self::verify`] then leaves the guest's end at
    /// work, until [`Self::end`].
    fn stay(&mut self) {}

    /// Ends what [`Self::verify`] has left at work. Called once, where [`Self::stay`] was; the guest is thrown away after it.
    ///
    /// # Errors
    /// When it could not be ended. The work was verified by then.
    fn end(&mut self, _site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        Ok(())
    }
}
