//! `null`: the agent as a plain process in the client's own network namespace, reached over loopback.
//!
//! Nothing is isolated and nothing limited, and no link is crossed: what is measured here is the
//! instrument. Every other platform has at least this.

use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;

use crate::client::{ClientPlace, client};
use crate::error::Result;
use crate::options::{self, NoOptions};
use crate::registry::{Entry, PLAIN, nothing_held};
use crate::{Availability, Comparable, Guest, HostView, Platform, Site};

pub(crate) const ENTRY: Entry = Entry {
    name: "null",
    summary: "no platform at all: the agent beside the driver, over loopback; the floor of the instrument",
    schema: options::schema::<NoOptions>,
    check_options: options::fill::<NoOptions>,
    make,
    start_estimate: Span::from_millis(10),
    reap: nothing_held,
    variants: PLAIN,
};

fn make(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    options::read::<NoOptions>(value).map(|_| Box::new(Null) as Box<dyn Platform>)
}

struct Null;

impl Platform for Null {
    fn look(&self, _: &HostView) -> Availability {
        Availability::Available { notes: Vec::new() }
    }

    fn disclosures(&self) -> Vec<String> {
        vec![
            "Nothing is isolated or limited and no link is crossed; driver and server share a loopback interface."
                .into(),
        ]
    }

    fn comparable(&self) -> Comparable {
        Comparable::No("it is the floor of the instrument: no link, no limits".into())
    }

    fn versions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        client(site, spec, ClientPlace::Lab)
    }
}
