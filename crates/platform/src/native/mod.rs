//! `native`: a process of the host's behind a link of its own, with the same limits as any guest.
//!
//! It differs from a container only by what the container adds: it has the network namespace, which
//! the link needs, and the control group, and shares everything else with the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::{Refusal, Span};

use crate::data::DataDirectory;
use crate::error::Result;
use crate::making::Making;
use crate::options;
use crate::registry::{Entry, PLAIN, nothing_held};
use crate::{Availability, Comparable, DataWanted, Guest, HostView, Platform, Site};

pub(crate) const ENTRY: Entry = Entry {
    name: "native",
    summary: "processes of the host's with the same link and limits as a guest, and no other isolation",
    schema: options::schema::<Options>,
    check_options: options::fill::<Options>,
    make,
    start_estimate: Span::from_millis(20),
    reap: nothing_held,
    variants: PLAIN,
};

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Options {
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataDirectory>,
}

fn make(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    options::read(value).map(|options| Box::new(Native { options }) as Box<dyn Platform>)
}

struct Native {
    options: Options,
}

impl Platform for Native {
    fn look(&self, host: &HostView) -> Availability {
        if let Some(unavailable) = self.options.data.as_ref().and_then(DataDirectory::unavailable_to_nobody) {
            return unavailable;
        }
        Availability::Available {
            notes: host.limits_unavailable.iter().map(|why| format!("no limits: {why}")).collect(),
        }
    }

    fn disclosures(&self) -> Vec<String> {
        let mut disclosures = vec![
            "The native arm runs in a network namespace behind one veth and in a control group, as the other arms do; \
             a program on the bare host has neither. Its agent confines itself as that of every arm which shares the host's \
             kernel: capabilities, new privileges, system calls, and what of /proc and /sys is hidden or closed to writing."
                .into(),
        ];
        disclosures.extend(self.options.data.as_ref().and_then(DataDirectory::disclosure));
        disclosures
    }

    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        None
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut making = Making::new(site, spec);
        // It sees the host's files as they are, so its data too.
        making.data_directory(self.options.data.as_ref(), None)?;
        let launch = making.linked()?;
        making.start(&launch)
    }
}
