//! `native`: a process of the host's behind a link of its own, with the same limits as any guest.
//!
//! It differs from a container only by what the container adds: it has the network namespace, which
//! the link needs, and the control group, and shares everything else with the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};

use crate::attachment::in_directory;
use crate::builder::GuestBuilder;
use crate::data_directory::DataDirectory;
use crate::entry::{Entry, FromOptions};
use crate::error::Result;
use crate::{DataWanted, Guest, HostView, Notes, Platform, Site};

pub(crate) const ENTRY: Entry = Entry::of::<Native>(
    "native",
    "processes of the host's with the same link and limits as a guest, and no other isolation",
    Span::from_millis(20),
);

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Options {
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest, and with `log-directory` another for the log of a database. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataDirectory>,
}

struct Native {
    options: Options,
}

impl FromOptions for Native {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        let options: Options = crate::options::read(value)?;
        options.data.iter().try_for_each(DataDirectory::check).map(|()| options)
    }

    fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Platform for Native {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        self.options.data.iter().try_for_each(DataDirectory::look_as_nobody)?;
        Ok(host.notes())
    }

    fn disclosures(&self) -> Vec<String> {
        let mut disclosures = vec![
            "The native arm runs in a network namespace behind one veth and in a control group, as the other arms do; \
             a program on the bare host has neither. Its agent confines itself as that of every arm which shares the host's \
             kernel: capabilities, new privileges, system calls, and what of /proc and /sys is hidden or closed to writing."
                .into(),
        ];
        disclosures.extend(self.options.data.iter().flat_map(DataDirectory::disclosure));
        disclosures
    }

    fn attachment(&self, attach: Attach) -> Attachment {
        in_directory(self.options.data.as_ref(), attach, None)
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut builder = GuestBuilder::new(site, spec);
        // It sees the host's files as they are, so its data too.
        builder.data_directories(self.options.data.as_ref(), false)?;
        let launch = builder.linked()?;
        builder.start(&launch)
    }
}
