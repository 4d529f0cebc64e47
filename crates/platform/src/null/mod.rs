//! `null`: the agent as a plain process in the client's own network namespace, reached over loopback.
//!
//! Nothing is isolated and nothing limited, and no link is crossed: what is measured here is the
//! instrument. Every other platform has at least this.

use tare_model::guest::GuestSpec;
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};

use crate::client::{ClientPlace, client};
use crate::entry::{Entry, FromOptions};
use crate::error::Result;
use crate::options::NoOptions;
use crate::{Comparable, Guest, HostView, Notes, Platform, Site};

pub(crate) const ENTRY: Entry = Entry::of::<Null>(
    "null",
    "no platform at all: the agent beside the driver, over loopback; the floor of the instrument",
    Span::from_millis(10),
);

struct Null;

impl FromOptions for Null {
    type Options = NoOptions;

    fn new(_: NoOptions) -> Self {
        Self
    }
}

impl Platform for Null {
    fn look(&self, _: &HostView) -> std::result::Result<Notes, Refusal> {
        Ok(Vec::new())
    }

    fn disclosures(&self) -> Vec<String> {
        vec![
            "Nothing is isolated or limited and no link is crossed; driver and server share a loopback interface."
                .into(),
        ]
    }

    fn attachment(&self, _: Attach) -> Attachment {
        Attachment::by("loopback of the driver's network namespace")
    }

    fn comparable(&self) -> Comparable {
        Comparable::No("it is the floor of the instrument: no link, no limits".into())
    }

    fn limits_guests(&self) -> bool {
        false
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        let remedy = "leave `merging` out of this arm, or use a platform that can";
        Some(Refusal::new("this platform has no way to have its guests' memory merged", remedy))
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        client(site, spec, ClientPlace::Lab)
    }
}
