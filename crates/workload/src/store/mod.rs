//! `store`: order entry in an online store on PostgreSQL, modelled on DVD Store 2.
//!
//! `docs/reference/postgresql.md` tells what is run, where it deviates from the published study, and why.

mod asked;
mod check;
mod error;
mod figures;
mod gold;
mod installation;
mod parameters;
mod ready;
mod running;
mod server;
mod settings;
mod url;
mod watch;

pub use error::StoreError;

use serde_json::Value;
use tare_model::ByteSize;
use tare_model::field::FieldError;
use tare_model::guest::{GuestData, GuestSize};
use tare_model::metric::MetricSpec;

use crate::registry::{Entry, schema};
use crate::{AheadSite, Driven, Footprint, Prepared, UnitOfWork, WorkSite, Workload, WorkloadError};
use installation::{Installation, Lack};
use parameters::{Parameters, checked};
use running::Running;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "store",
    summary: "order entry in an online store on PostgreSQL: orders a minute, verified by counting the database",
    schema: schema::<Parameters>,
    make: |parameters, _| Ok(Box::new(Store(checked(parameters)?))),
    normalise: |parameters: &Value| -> Result<Value, FieldError> {
        serde_json::to_value(checked(parameters)?).map_err(|error| FieldError::new(&[], error.to_string()))
    },
};

struct Store(Parameters);

impl Store {
    fn installation(&self) -> Result<Installation, Lack> {
        installation::find(self.0.postgres.as_deref().unwrap_or(parameters::EMBEDDED))
    }

    /// The same, where its lack was to be told before.
    fn installed(&self) -> Result<Installation, StoreError> {
        self.installation().map_err(|(reason, remedy)| StoreError::new("start a PostgreSQL", reason, remedy))
    }
}

impl Workload for Store {
    fn metrics(&self) -> Vec<MetricSpec> {
        figures::specs(self.0.verdict)
    }

    fn unit_of_work(&self) -> UnitOfWork {
        UnitOfWork::Operation
    }

    fn several(&self) -> bool {
        true
    }

    fn footprint(&self, _: &GuestSize) -> Footprint {
        if self.0.url.is_some() {
            return Footprint::default();
        }
        let data = gold::gold_bytes(&self.0.size());
        let wal = settings::wal_bytes(&self.0.settings, self.0.db_size);
        Footprint { kept: ByteSize(data), guest: ByteSize(gold::room(data, wal)) }
    }

    fn lack(&self) -> Option<(String, String)> {
        if self.0.url.is_some() {
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            let reason = "PostgreSQL runs as a user of its own, nobody, which takes root to start";
            return Some((reason.to_owned(), "run tare as root".to_owned()));
        }
        self.installation().err()
    }

    fn ahead(&self, site: &AheadSite<'_>) -> Result<Option<GuestData>, WorkloadError> {
        match self.0.server() {
            Some(url) => ready::try_server(site, &url).map(|()| None),
            None => gold::gold(site, &self.installed()?, &self.0).map(Some),
        }
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        figures::combine(guests, self.0.verdict)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let ready = match self.0.server() {
            Some(url) => ready::use_server(site, &url, &self.0)?,
            None => ready::start(site, &self.installed()?, &self.0)?,
        };
        Ok(Box::new(Running::new(self.0.clone(), ready)))
    }
}
