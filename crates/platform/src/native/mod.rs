//! `native`: a process of the host's behind a link of its own, with the same limits as any guest.
//!
//! It differs from a container only by what the container adds: it has the network namespace, which
//! the link needs, and the control group, and shares everything else with the host.

use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;

use crate::error::Result;
use crate::making::{Making, plain_launch};
use crate::options::{self, NoOptions};
use crate::registry::{Entry, PLAIN, nothing_held};
use crate::{Availability, Comparable, Guest, HostView, Platform, Site};

pub(crate) const ENTRY: Entry = Entry {
    name: "native",
    summary: "processes of the host's with the same link and limits as a guest, and no other isolation",
    schema: options::schema::<NoOptions>,
    check_options: options::fill::<NoOptions>,
    make,
    start_estimate: Span::from_millis(20),
    reap: nothing_held,
    variants: PLAIN,
};

fn make(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    options::read::<NoOptions>(value).map(|_| Box::new(Native) as Box<dyn Platform>)
}

struct Native;

impl Platform for Native {
    fn check(&self, host: &HostView) -> Availability {
        Availability::Available {
            notes: host.limits_unavailable.iter().map(|why| format!("no limits: {why}")).collect(),
        }
    }

    fn disclosures(&self) -> Vec<String> {
        vec![
            "The native arm runs in a network namespace behind one veth and in a control group, as the other arms do; \
             a program on the bare host has neither."
                .into(),
        ]
    }

    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    fn versions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut making = Making::new(site, spec);
        let mut launch = plain_launch();
        launch.netns = Some(making.attach()?);
        launch.cgroup_procs = making.limit()?;
        launch.cpu_set = spec.cpu_set.clone();
        making.start(&launch)
    }
}
