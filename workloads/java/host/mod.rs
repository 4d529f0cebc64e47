//! `java`: a three-tier business application in one Java virtual machine, modelled on that of the published density study.
//!
//! `docs/reference/java.md` tells what it does, and has the protocol between it and the driver.

#[path = "../spec.rs"]
pub(crate) mod spec;

mod bundle;
mod calibrate;
mod deviations;
mod figures;
pub(crate) mod parameters;
mod running;
mod start;
mod view;

use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::layout::{Given, Work};
use tare_model::metric::MetricSpec;
use tare_model::{ByteSize, Span};

use crate::entry::{Entry, filled, schema};
use crate::{
    Calibration, Data, Driven, Failure, Footprint, GuestTraits, Prepared, SetupSite, Traits, WorkSite, Workload,
    WorkloadError,
};
use bundle::BUNDLE;
use parameters::{Parameters, checked, with_load};
use running::Running;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "java",
    summary: "a three-tier business application in one Java virtual machine: operations a second, verified by its own books",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        with_load(&parameters, load)?;
        Ok(Box::new(Java { parameters, groups: load.connections() }))
    },
    normalise: |parameters| filled(checked(parameters)?),
    view: Some(&view::Memory),
};

/// Usual time of a trial, beside its guests' start, in which the application starts, its work is verified, and all is taken down; seen on a small host that was quiet.
const SET_UP: Span = Span::from_secs(3);

struct Java {
    parameters: Parameters,
    /// Data groups, each with a thread; where the load is searched, the most.
    groups: u32,
}

impl Java {
    /// Refuses guests that are too small.
    fn fit(&self, size: &GuestSize) -> Result<(), Failure> {
        self.parameters.fit(size).map_err(|error| Failure::too_small(BUNDLE.starting(), error))
    }
}

/// The application alone, which offers its load to itself.
fn work() -> Work {
    Work::in_guest(&["Java application"], Some(Given::shared("the application's programs")))
}

impl Workload for Java {
    fn metrics(&self) -> Vec<MetricSpec> {
        figures::specs()
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        let touches = ByteSize(self.parameters.touched(self.groups, guest));
        Traits {
            several_guests: true,
            density: true,
            calibrated: self.parameters.cpu_share.is_some(),
            set_up: SET_UP,
            guests: vec![GuestTraits { touches, work: work(), ..GuestTraits::of(*guest) }],
            ..Traits::of(*guest)
        }
    }

    fn fits(&self, guest: &GuestSize, _: u32) -> Result<(), FieldError> {
        self.parameters.fit(guest)
    }

    fn calibrate(
        &self,
        site: &WorkSite<'_>,
        prepared: &mut dyn Prepared,
        cpu_s: &(dyn Fn() -> Option<f64> + Sync),
    ) -> Result<Calibration, WorkloadError> {
        let share = self.parameters.cpu_share.ok_or(WorkloadError::NotConnected)?;
        calibrate::calibrate(site, prepared, cpu_s, share)
    }

    fn footprint(&self, _: &GuestSize, _: u32) -> Footprint {
        // Nobody has a copy: guests that see the host's files are shown the one there is, the others share a disk.
        let (kept, guest) = (ByteSize(bundle::DISK_BYTES), ByteSize(bundle::OVERLAY_BYTES));
        Footprint { kept, guest, log: ByteSize(0) }
    }

    fn look(&self) -> Option<Refusal> {
        match BUNDLE.find() {
            Err(missing) => Some(missing),
            Ok(bundle) if self.parameters.java.is_none() => bundle::unable(&self.parameters, bundle.major),
            Ok(_) => None,
        }
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        self.fit(&site.size)?;
        Ok(Data::of_guests(BUNDLE.needed()?.data()))
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        figures::combine(guests)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        self.fit(&site.size)?;
        if site.drivers.len() > 1 {
            let why = format!("{} drivers are asked for, and it offers its load to itself", site.drivers.len());
            return Err(Failure::new("drive the Java application", why, "leave `drivers` of the case out").into());
        }
        // A search tries fewer than the most that the workload was made for.
        let groups = site.load.connections();
        let started = start::start(site, &self.parameters, groups, &BUNDLE.needed()?)?;
        Ok(Box::new(Running::new(&self.parameters, groups, started)))
    }
}
