//! `web-banking`, `web-ecommerce`, `web-support`: web serving under quality of service, modelled on the three workloads of a published
//! comparison.
//!
//! `docs/reference/web.md` has the protocol between driver, server and backend; `sites/` has the tables.

#[path = "../spec.rs"]
pub(crate) mod spec;

mod certificate;
mod check;
mod compile;
mod deviations;
mod figures;
mod fileset;
mod gold;
mod nginx;
mod parameters;
mod running;
mod start;
mod tables;
mod users;
mod verify;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::web::spec::SiteModel;
use serde_json::Value;
use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::layout::{Given, Service, ServicePlace, Work};
use tare_model::load::LoadModel;
use tare_model::metric::MetricSpec;
use tare_model::traits::TurnTraits;
use tare_model::{ByteSize, Span};

use crate::bundle::BundleKind;
use crate::entry::{Entry, Make, Normalise, filled, schema};
use crate::gold::Held;
use crate::limits::Allowed;
use crate::url;
use crate::{Data, Driven, Failure, Footprint, Prepared, SetupSite, Traits, WorkSite, Workload, WorkloadError};
use compile::{compile, file_set};
use fileset::Planning;
use gold::Making;
use parameters::{Parameters, Server, checked, sessions};
use running::Running;
use start::{Needs, started};
use tables::{Site, Tables};
use users::Stay;
use verify::Stats;

/// A bank.
pub const BANKING: Entry = entry(
    "web-banking",
    "a bank's web site, all TLS, under quality of service: response time of pages whose contents are checked",
    |parameters, load| made(Site::Banking, parameters, load),
    |parameters| filled(checked(Site::Banking, parameters)?.0),
);
/// A shop.
pub const ECOMMERCE: Entry = entry(
    "web-ecommerce",
    "a shop's web site, TLS from the login on, under quality of service: response time of checked pages",
    |parameters, load| made(Site::Ecommerce, parameters, load),
    |parameters| filled(checked(Site::Ecommerce, parameters)?.0),
);
/// A vendor's support.
pub const SUPPORT: Entry = entry(
    "web-support",
    "a support site with large downloads under quality of service: response time and byte rate, checked",
    |parameters, load| made(Site::Support, parameters, load),
    |parameters| filled(checked(Site::Support, parameters)?.0),
);
/// Where the server is on this host, with its runtime.
const BUNDLE: BundleKind = BundleKind { name: "web", noun: "web server", jar: None };

fn made(site: Site, parameters: &Value, load: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
    let (parameters, tables) = checked(site, parameters)?;
    let sessions = sessions(load)?;
    Ok(Box::new(Web { parameters, tables, sessions, gold: Mutex::default() }))
}

/// The registry's entry of a site.
const fn entry(name: &'static str, summary: &'static str, make: Make, normalise: Normalise) -> Entry {
    Entry { name, summary, schema: schema::<Parameters>, make, normalise, view: None }
}

/// Usual time of a trial, beside its guests' start, in which the server starts, its pages are checked, and all is taken down; seen on a small host that was quiet.
const SET_UP: Span = Span::from_secs(3);
/// Turns of many pages at the rates of the sites. A page that is under way at the end of one mostly comes within the gap, and its further files in the
/// next turn. A server's sessions and connections time out, so that guests are not stopped.
const TURNS: TurnTraits = TurnTraits {
    turn: Span::from_millis(250),
    warm_up: Span::ZERO,
    gap: Span::from_millis(25),
    renewed: None,
    freezes: false,
    commands: None,
};

struct Web {
    parameters: Parameters,
    tables: Tables,
    /// Largest number of sessions that a driver may be asked to offer.
    sessions: u32,
    /// Where this host has what guests are given, and what keeps it there for as long as the run lasts.
    gold: Mutex<Option<(PathBuf, Held)>>,
}

impl Web {
    /// Sessions that the file set is made for.
    fn files_for(&self) -> u32 {
        self.parameters.file_sessions.unwrap_or(self.sessions)
    }

    /// The site with the files of so many sessions.
    fn model(&self, sessions: u32) -> SiteModel {
        compile(&self.tables, file_set(&self.tables.files, self.parameters.per_session(), sessions))
    }

    /// The servers in the guest, where they are not the user's, and the backend simulator on the driver's side.
    fn work(&self) -> Work {
        let servers: &[&str] = match (&self.parameters.url, self.parameters.server) {
            (Some(_), _) => &[],
            (None, Server::Tomcat) => &["Tomcat"],
            (None, Server::Nginx) => &["nginx", "Tomcat"],
        };
        let data = self.parameters.url.is_none().then(|| Given::shared("the site's files"));
        let mut work = Work::in_guest(servers, data);
        work.services.push(Service::new("backend simulator", ServicePlace::Driver));
        work
    }

    /// Where this host has what guests are given: as it was made ready, or, where an equal case did that, by its contents.
    fn here(&self) -> Option<PathBuf> {
        if self.parameters.url.is_some() {
            return None;
        }
        let gold = self.gold.lock().unwrap_or_else(PoisonError::into_inner);
        let made = gold.as_ref().map(|(place, _)| place.clone());
        drop(gold);
        made.or_else(|| {
            let (cache, bundle) = (tare_image::cache_directory(), BUNDLE.find().ok()?);
            Some(gold::place(&cache, &self.tables, &self.model(self.files_for()), &bundle))
        })
    }

    /// Refuses guests that are too small.
    fn fit(&self, size: &GuestSize) -> Result<(), Failure> {
        self.parameters.fit(size).map_err(|error| Failure::too_small(BUNDLE.starting(), error))
    }
}

impl Workload for Web {
    fn metrics(&self) -> Vec<MetricSpec> {
        figures::specs()
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        // A server of the user's own asks the backend of one trial.
        let repeats = self.parameters.url.is_none();
        // Nor is it known when that closes connections. Downloads that are read slowly take minutes, and between turns a server sends what buffers hold of them.
        let lasting = self.tables.files.downloads.is_some() && self.parameters.receive_rate.0.is_some();
        let turns = (repeats && !lasting).then_some(TURNS);
        Traits { several_guests: true, repeats, set_up: SET_UP, turns, ..Traits::of(*guest).with(self.work()) }
    }

    fn fits(&self, guest: &GuestSize, _: u32) -> Result<(), FieldError> {
        self.parameters.fit(guest)
    }

    fn footprint(&self, _: &GuestSize, _: u32) -> Footprint {
        if self.parameters.url.is_some() {
            return Footprint::default();
        }
        // Guests that see the host's files are all shown the one copy; the others share a disk that is made of it.
        let totals = Planning::new(&self.model(self.files_for())).totals();
        let (kept, guest) = (ByteSize(totals.disk_bytes + gold::BUNDLE_BYTES), ByteSize(gold::OVERLAY_BYTES));
        Footprint { kept, guest, log: ByteSize(0) }
    }

    fn look(&self) -> Option<Refusal> {
        if self.parameters.url.is_some() { None } else { BUNDLE.find().err() }
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        self.fit(&site.size)?;
        url::one_each(self.parameters.url.as_deref(), site.guests)?;
        Allowed::of(site.client, site.timeout).refuse_driver(self.sessions, self.parameters.connections)?;
        if self.parameters.url.is_some() {
            return Ok(Data::default());
        }
        let model = self.model(self.files_for());
        let making = Making { site, tables: &self.tables, model: &model, bundle: &BUNDLE.needed()? };
        let (data, held) = making.gold()?;
        *self.gold.lock().unwrap_or_else(PoisonError::into_inner) = Some((data.gold.clone(), held));
        Ok(Data::of_guests(data))
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        figures::combine(guests)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        self.fit(&site.size)?;
        let drivers = u32::try_from(site.drivers.len()).unwrap_or(u32::MAX).max(1);
        let offered = site.load.connections().saturating_mul(drivers);
        // Users ask only for files that there are.
        let model = self.model(offered.min(self.files_for()));
        let tls = self.parameters.tls && model.states.iter().any(|state| state.secure);
        let stay = Stay::of(&model);
        let needs = Needs { tls, sessions: self.sessions.saturating_mul(drivers).max(offered), offered, stay };
        let ports =
            Allowed::of(site.client, site.timeout).few_ports(offered, self.parameters.connections, stay.thinking_s);
        let here = self.here().map(|place| place.to_string_lossy().into_owned());
        let mut started = started(site, &self.parameters, needs, here.as_deref())?;
        started.flags.extend(ports);
        Ok(Box::new(Running {
            started,
            parameters: self.parameters.clone(),
            tables: self.tables.clone(),
            model,
            sessions: offered,
            files_for: self.files_for(),
            drivers: Vec::new(),
            done: None,
            wall_s: 0.0,
            stays: false,
            counted: Stats::default(),
        }))
    }
}
