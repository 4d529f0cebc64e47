//! `social`: a social web application in one or several Java virtual machines in one guest, each with a database and users of its own.
//!
//! `docs/reference/social.md` has the protocol between driver, application, file store and database.

#[path = "../spec.rs"]
pub(crate) mod spec;

mod accept;
mod deviations;
mod figures;
mod gold;
mod memory;
mod merge;
mod parameters;
mod prime;
mod running;
mod services;
mod start;
mod stats;
mod verify;
mod view;

use std::sync::{Mutex, PoisonError};

use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::layout::{Given, Service, ServicePlace, Work};
use tare_model::metric::MetricSpec;
use tare_model::traits::TurnTraits;
use tare_model::{ByteSize, Span};

use crate::bundle::BundleKind;
use crate::entry::{Entry, filled, schema};
use crate::gold::Held;
use crate::limits::Allowed;
use crate::postgres::installation::{self, Installation};
use crate::{Data, Driven, Failure, Footprint, Prepared, SetupSite, Traits, WorkSite, Workload, WorkloadError};
use parameters::{Parameters, checked, users};
use running::{Running, enough_people};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "social",
    summary: "a social web application on Tomcat, in one or several JVMs of a guest, database beside it: response time by users",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        let users = users(load)?;
        Ok(Box::new(Social { parameters, users, gold: Mutex::default() }))
    },
    normalise: |parameters| filled(checked(parameters)?),
    view: Some(&view::Database),
};

/// Where the application is on this host, with its runtime.
const BUNDLE: BundleKind = BundleKind { name: "social", noun: "social application", jar: None };
/// What is kept for guests that see disks and not the host's files, bytes: a bundle with a runtime of some 70 MB and the jars, and
/// what its file system takes.
const DISK_BYTES: u64 = 112 << 20;
/// What a guest writes to it, although it is for reading, bytes: when it was mounted, and when files were read.
const OVERLAY_BYTES: u64 = 8 << 20;
/// Turns of many operations. A request that is under way at the end of one mostly has its answer within the gap, and what follows it is asked for in the
/// next turn. The application's connections to its database and the file store time out, so that guests are not stopped.
const TURNS: TurnTraits = TurnTraits {
    turn: Span::from_millis(250),
    warm_up: Span::ZERO,
    gap: Span::from_millis(25),
    renewed: None,
    freezes: false,
    commands: None,
};

struct Social {
    parameters: Parameters,
    /// Most users of one driver, in all instances.
    users: u32,
    /// What keeps the gold copies in their places for as long as the run lasts.
    gold: Mutex<Vec<Held>>,
}

impl Social {
    fn installation(&self) -> Result<Installation, Refusal> {
        installation::find(&self.parameters.postgres)
    }

    /// The same, where a missing installation is an error: the check before the run should have reported it.
    fn installed(&self) -> Result<Installation, Failure> {
        self.installation().map_err(|refusal| Failure::refused("start a PostgreSQL", refusal))
    }

    /// Refuses what cannot be of so many instances.
    fn fit(&self, size: &GuestSize, instances: u32) -> Result<(), Failure> {
        memory::fit(&self.parameters, size, instances)?;
        if self.users < instances {
            let why = "each instance has users of its own";
            let tried = format!("offer {} users to {instances} instances", self.users);
            return Err(Failure::new(tried, why, "ask for more `clients`, or for fewer `instances`"));
        }
        enough_people(&self.parameters.scale(self.users, instances), self.users, instances)
    }
}

/// The application in the guest; database and file store beside it.
fn work() -> Work {
    let beside =
        |what: &str, data: &str| Service { data: Some(data.into()), ..Service::new(what, ServicePlace::Beside) };
    let services = vec![
        Service::new("Java application", ServicePlace::Guest),
        beside("PostgreSQL", "a database for each instance"),
        beside("file store", "what users upload"),
    ];
    Work { services, data: Some(Given::shared("the application's programs")) }
}

impl Workload for Social {
    fn metrics(&self) -> Vec<MetricSpec> {
        figures::specs()
    }

    fn traits(&self, guest: &GuestSize, instances: u32) -> Traits {
        Traits {
            several_guests: true,
            several_instances: true,
            repeats: true,
            density: true,
            turns: Some(TURNS),
            set_up: prime::set_up(&self.parameters, guest.cpus, instances),
            ..Traits::of(*guest).with(work())
        }
    }

    fn fits(&self, guest: &GuestSize, instances: u32) -> Result<(), FieldError> {
        let at = |path: &[&str], error: Failure| {
            FieldError::new(path, format!("{}: {}", error.tried, error.why)).help(error.remedy)
        };
        memory::fit(&self.parameters, guest, instances).map_err(|error| at(&["java", "heap"], error))?;
        let scale = self.parameters.scale(self.users, instances);
        enough_people(&scale, self.users, instances).map_err(|error| at(&["scale-users"], error))
    }

    fn footprint(&self, _: &GuestSize, instances: u32) -> Footprint {
        let scale = self.parameters.scale(self.users, instances);
        let kept = gold::gold_bytes(&scale) + DISK_BYTES;
        let guest = gold::likely(&scale, instances, self.users) + OVERLAY_BYTES;
        Footprint { kept: ByteSize(kept), guest: ByteSize(guest), log: ByteSize(0) }
    }

    fn look(&self) -> Option<Refusal> {
        installation::look(&self.parameters.postgres).err().or_else(|| BUNDLE.find().err())
    }

    fn refusal(&self) -> Option<Refusal> {
        self.look().or_else(|| self.installation().err())
    }

    fn named_programs(&self) -> Vec<String> {
        installation::named(Some(&self.parameters.postgres))
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        self.fit(&site.size, site.instances)?;
        Allowed::of(site.client, site.timeout).refuse_driver(self.users, 1)?;
        let scale = self.parameters.scale(self.users, site.instances);
        let bundle = BUNDLE.needed()?.data();
        let (services, held) = gold::gold(site, &self.installed()?, &self.parameters, scale)?;
        self.gold.lock().unwrap_or_else(PoisonError::into_inner).push(held);
        Ok(Data::same(Some(bundle), Some(services)))
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        figures::combine(guests)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        self.fit(&site.size, site.instances)?;
        let scale = self.parameters.scale(self.users, site.instances);
        let here = BUNDLE.needed()?.place.to_string_lossy().into_owned();
        let mut beside = services::start(site, &self.installed()?, &self.parameters)?;
        match start::started(site, &self.parameters, &here, &beside) {
            Ok(started) => {
                let mut running = Running::new(self.parameters.clone(), scale, beside, started);
                prime::prime(&mut running, site)?;
                Ok(Box::new(running))
            }
            Err(error) => {
                beside.end(site);
                Err(error)
            }
        }
    }
}
