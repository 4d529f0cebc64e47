//! `store`: order entry in an online store on PostgreSQL, modelled on DVD Store 2.
//!
//! `docs/reference/postgresql.md` tells what is run, where it deviates from the published study, and why.

#[path = "../spec.rs"]
pub(crate) mod spec;

mod check;
mod deviations;
mod figures;
mod gold;
pub(crate) mod parameters;
pub(crate) mod ready;
mod running;
mod url;
mod view;
mod watch;

use std::sync::{Mutex, PoisonError};

use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::layout::{Given, Work};
use tare_model::metric::MetricSpec;
use tare_model::traits::TurnTraits;
use tare_model::{ByteSize, Span};

use crate::entry::{Entry, filled, schema};
use crate::gold::Held;
use crate::postgres::installation::{self, Installation};
use crate::postgres::settings;
use crate::{Data, Driven, Failure, Footprint, Prepared, SetupSite, Traits, WorkSite, Workload, WorkloadError};
use parameters::{Parameters, checked};
use running::Running;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "store",
    summary: "order entry in an online store on PostgreSQL: orders a minute, verified by counting the database",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let (parameters, clients) = (checked(parameters)?, load.connections());
        Ok(Box::new(Store { parameters, clients, gold: Mutex::default() }))
    },
    normalise: |parameters| filled(checked(parameters)?),
    view: Some(&view::Orders),
};

/// Usual time of a trial, beside its guests' start, in which a small database is given back and served, its work is counted, and all is taken down; seen on a small host that was quiet.
const SET_UP: Span = Span::from_secs(4);

struct Store {
    parameters: Parameters,
    /// Connections of each driver.
    clients: u32,
    /// What keeps the gold copy in its place for as long as the run lasts.
    gold: Mutex<Option<Held>>,
}

impl Store {
    /// Orders take milliseconds, the more clients are at work at once the longer. A server of the user's own serves one arm at a time,
    /// and one that is killed is busy with that while others have their turns.
    fn turns(&self, guest: &GuestSize) -> Option<TurnTraits> {
        let gap_ms = (5 * u64::from(self.clients) / u64::from(guest.cpus).max(1)).max(20);
        (self.parameters.url.is_none() && self.parameters.kill_after.is_none()).then_some(TurnTraits {
            turn: Span::from_millis(10 * gap_ms),
            warm_up: Span::ZERO,
            gap: Span::from_millis(gap_ms),
            renewed: None,
            // Transactions and connections time out.
            freezes: false,
            commands: None,
        })
    }

    /// The server in the guest and its database; nothing where the user has a server.
    fn work(&self) -> Work {
        if self.parameters.url.is_some() {
            return Work::default();
        }
        Work::in_guest(&["PostgreSQL"], Some(Given::own("the shop's database with its log")))
    }

    /// Which PostgreSQL of this host is started.
    fn postgres(&self) -> &str {
        self.parameters.postgres.as_deref().unwrap_or(installation::EMBEDDED)
    }

    fn installation(&self) -> Result<Installation, Refusal> {
        installation::find(self.postgres())
    }

    /// The same. A missing installation is reported before any run.
    fn installed(&self) -> Result<Installation, Failure> {
        self.installation().map_err(|refusal| Failure::refused("start a PostgreSQL", refusal))
    }
}

impl Workload for Store {
    fn metrics(&self) -> Vec<MetricSpec> {
        figures::specs(self.parameters.verdict)
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        // A server of the user's own is left as it was found, which guests that come and go would not do.
        let repeats = self.parameters.url.is_none();
        Traits {
            several_guests: true,
            repeats,
            set_up: SET_UP,
            turns: self.turns(guest),
            ..Traits::of(*guest).with(self.work())
        }
    }

    fn fits(&self, guest: &GuestSize, _: u32) -> Result<(), FieldError> {
        let fit = settings::fit(&self.parameters.settings, guest, self.clients);
        fit.map_err(|error| error.within(&["settings"]))
    }

    fn footprint(&self, _: &GuestSize, _: u32) -> Footprint {
        if self.parameters.url.is_some() {
            return Footprint::default();
        }
        let data = gold::gold_bytes(&self.parameters.size());
        let log = gold::log_room(&self.parameters);
        Footprint { kept: ByteSize(data), guest: ByteSize(gold::room(data).saturating_add(log.0)), log }
    }

    fn look(&self) -> Option<Refusal> {
        if self.parameters.url.is_some() {
            return None;
        }
        installation::look(self.postgres()).err()
    }

    fn refusal(&self) -> Option<Refusal> {
        self.look().or_else(|| self.installation().err().filter(|_| self.parameters.url.is_none()))
    }

    fn named_programs(&self) -> Vec<String> {
        installation::named(self.parameters.postgres.as_deref())
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        match self.parameters.server()? {
            Some(url) => ready::try_server(site, &url).map(|()| Data::default()),
            None => {
                let (data, held) = gold::gold(site, &self.installed()?, &self.parameters)?;
                *self.gold.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
                Ok(Data::of_guests(data))
            }
        }
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        figures::combine(guests, self.parameters.verdict)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let ready = match self.parameters.server()? {
            Some(url) => ready::use_server(site, &url, &self.parameters)?,
            None => ready::start(site, &self.installed()?, &self.parameters)?,
        };
        Ok(Box::new(Running::new(self.parameters.clone(), ready)))
    }
}
