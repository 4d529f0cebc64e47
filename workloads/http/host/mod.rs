//! `http`: requests to a service of the user's own in the guest, over HTTP/1.1, plain or with TLS; every answer is verified.

#[path = "../spec.rs"]
pub(crate) mod spec;

mod figures;
mod parameters;
mod request;
mod running;
mod service;

use tare_model::Span;
use tare_model::guest::GuestSize;
use tare_model::metric::MetricSpec;
use tare_model::traits::TurnTraits;

use crate::entry::{Entry, filled, schema};
use crate::limits::Allowed;
use crate::operations::{self, VerdictOn};
use crate::url;
use crate::{Data, Driven, Prepared, SetupSite, Traits, WorkSite, Workload, WorkloadError};
use parameters::{Parameters, checked};
use running::Running;
use service::Service;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "http",
    summary: "a service of your own over HTTP, started by your command: request rate and response time, every answer verified",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        let verdict = VerdictOn::under(load, parameters.verdict);
        Ok(Box::new(Http { parameters, verdict, connections: load.connections() }))
    },
    normalise: |parameters| filled(checked(parameters)?),
    view: None,
};

/// About how long a service takes to start. Nobody knows how long this one does.
const SET_UP: Span = Span::from_secs(2);
/// Turns of many requests, with a gap that most answers are within. Whether something in the service times out is not known, so that guests are not stopped.
const TURNS: TurnTraits = TurnTraits {
    turn: Span::from_millis(250),
    warm_up: Span::ZERO,
    gap: Span::from_millis(25),
    renewed: None,
    freezes: false,
    commands: None,
};

struct Http {
    parameters: Parameters,
    verdict: VerdictOn,
    /// Connections of each driver.
    connections: u32,
}

impl Workload for Http {
    fn metrics(&self) -> Vec<MetricSpec> {
        operations::specs(self.verdict, [])
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        Traits { several_guests: true, repeats: true, set_up: SET_UP, turns: Some(TURNS), ..Traits::of(*guest) }
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        url::one_each(self.parameters.url.as_deref(), site.guests)?;
        Allowed::of(site.client, site.timeout).refuse_driver(self.connections, 1)?;
        Ok(Data::default())
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        operations::combine(guests, self.verdict, |_, _| {})
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let service = Service::started(site, &self.parameters)?;
        Ok(Box::new(Running { parameters: self.parameters.clone(), service, drivers: Vec::new(), stays: false }))
    }
}
