//! A workload that fails in one phase.

use tare_model::Refusal;
use tare_model::guest::GuestSize;
use tare_model::metric::MetricSpec;
use tare_model::trial::Phase;
use tare_workload::{
    Data, Driven, Footprint, Prepared, Schedule, SetupSite, Traits, UnitOfWork, WorkSite, Workload, WorkloadError,
};

use crate::{REASON, failure};

/// A real workload, but for one phase.
pub struct FailingWorkload {
    pub inner: Box<dyn Workload>,
    pub phase: Phase,
}

impl Workload for FailingWorkload {
    fn metrics(&self) -> Vec<MetricSpec> {
        self.inner.metrics()
    }

    fn unit_of_work(&self) -> UnitOfWork {
        self.inner.unit_of_work()
    }

    fn traits(&self, guest: &GuestSize, instances: u32) -> Traits {
        self.inner.traits(guest, instances)
    }

    fn footprint(&self, guest: &GuestSize, instances: u32) -> Footprint {
        self.inner.footprint(guest, instances)
    }

    fn refusal(&self) -> Option<Refusal> {
        self.inner.refusal()
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        self.inner.set_up_once(site)
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        self.inner.combine(guests)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        if self.phase == Phase::Prepare {
            return Err(failure());
        }
        let inner = self.inner.prepare(site)?;
        Ok(Box::new(FailingPrepared { inner, phase: self.phase }))
    }
}

struct FailingPrepared {
    inner: Box<dyn Prepared>,
    phase: Phase,
}

impl Prepared for FailingPrepared {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        self.inner.connect(site, schedule)
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        if self.phase == Phase::Drive {
            return Err(failure());
        }
        self.inner.drive(site, schedule)
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let verified = self.inner.verify(site, driven)?;
        // The work was done, and it is wrong: that makes the trial invalid, not failed.
        Ok(if self.phase == Phase::Verify { Some(REASON.into()) } else { verified })
    }
}
