//! What runs in guests: the [`Workload`] trait, one folder a workload, and the registry.
//!
//! A workload never asks which platform it is on. It talks to two agents, one in the guest and one
//! on the client's side, through a [`WorkSite`], and yields one [`Driven`] a trial.

mod clock;
mod cpu;
mod exec;
mod folder;
mod gold;
mod java;
mod null;
pub mod registry;
mod regular;
mod requests;
mod rr;
pub mod secret;
mod site;
mod social;
mod started;
mod store;
mod stream;
mod tile;
mod together;
mod unprivileged;
mod web;
mod yields;

pub use gold::GoldError;
pub use java::JavaError;
pub use site::{Clock, DriverSite, SameClock, Schedule, ServicesSite, SetupSite, WorkSite, WorkloadError};
pub use social::SocialError;
pub use store::StoreError;
pub use tile::{Member as TileMember, Tile};
pub use web::WebError;
pub use yields::{Driven, UnitOfWork};

use tare_model::field::FieldError;
use tare_model::guest::{GuestData, GuestSize};
use tare_model::metric::MetricSpec;
use tare_model::units::ByteSize;
use tare_model::{Refusal, Span};

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

    /// Whether it can be driven again and again in the same guests while others are added, as [`tare_model::density`] asks:
    /// connect, drive and verify of one [`Prepared`] are then called once a number of guests.
    fn density(&self) -> bool {
        false
    }

    /// What each guest of this size takes of the host's memory at once when it starts, bytes, if that is known. The scale-up of
    /// a density search uses it until it has seen the first guest.
    fn touches(&self, guest: &GuestSize) -> ByteSize {
        guest.memory
    }

    /// The same of the `index`-th guest (from 0), where guests differ and the case asks for `guest`.
    fn touches_of(&self, index: u32, guest: &GuestSize) -> ByteSize {
        let _ = index;
        self.touches(guest)
    }

    /// What is wrong with a parameter for guests of this size, if they are too small for it. Asked when a study is checked.
    ///
    /// # Errors
    /// The parameter, with the figures.
    fn fits(&self, guest: &GuestSize) -> Result<(), FieldError> {
        let _ = guest;
        Ok(())
    }

    /// The same, with so many instances of the application in each guest ([`Self::instances`]), which share its load.
    ///
    /// # Errors
    /// As [`Self::fits`].
    fn fits_of(&self, guest: &GuestSize, instances: u32) -> Result<(), FieldError> {
        let _ = instances;
        self.fits(guest)
    }

    /// Whether [`Self::calibrate`] is to be called before the first trial.
    fn is_calibrated(&self) -> bool {
        false
    }

    /// Finds, once a run and in a guest of the baseline that is alone on the host, what load every guest is to be offered.
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

    /// Disk that it takes for guests of this size, for the plan. Nothing is looked at on the host.
    fn footprint(&self, guest: &GuestSize) -> Footprint {
        let _ = guest;
        Footprint::default()
    }

    /// The same, with so many instances of the application in each guest ([`Self::instances`]).
    fn footprint_of(&self, guest: &GuestSize, instances: u32) -> Footprint {
        let _ = instances;
        self.footprint(guest)
    }

    /// About how long a guest of this size, with so many instances in it, is set up from its start until load is offered, for the plan.
    fn set_up(&self, guest: &GuestSize, instances: u32) -> Span {
        let _ = (guest, instances);
        Span::ZERO
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
    /// that every guest is given is made, or found where an earlier run has left it.
    ///
    /// # Errors
    /// What would make every trial fail, with the remedy.
    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Option<GuestData>, WorkloadError> {
        let _ = site;
        Ok(None)
    }

    /// The same for all guests of a trial, and for what they use: what the controller asks.
    ///
    /// # Errors
    /// As [`Self::set_up_once`].
    fn data(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        Ok(Data::same(self.set_up_once(site)?, None))
    }

    /// Whether several instances of the application can be at work in one guest, each a process of its own.
    fn instances(&self) -> bool {
        false
    }

    /// Whether the `index`-th guest (from 0) uses something beside it on the host: then [`WorkSite::services`] is there.
    fn services(&self, index: u32) -> bool {
        let _ = index;
        false
    }

    /// Whether one [`Prepared`] can be connected, driven and verified again with another load in the same guest, after a call
    /// of [`Prepared::stay`].
    fn repeats(&self) -> bool {
        false
    }

    /// Names of the guests that make one tile, where the trial's guests differ: guest `index` is the one at `index` modulo their number.
    /// Empty: all guests are alike.
    fn tile(&self) -> Vec<String> {
        Vec::new()
    }

    /// Size of the `index`-th guest, where the case asks for `asked`.
    fn size(&self, index: u32, asked: GuestSize) -> GuestSize {
        let _ = index;
        asked
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
    /// Of their services ([`Workload::services`]).
    pub services: Vec<Option<GuestData>>,
}

impl Data {
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
