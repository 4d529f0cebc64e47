//! `container`: tare's own container out of plain namespaces, over the host's root file system.
//!
//! Mount, process, IPC, UTS and (where limits can be set) control group namespaces, and an overlay of
//! the host's root. Nothing to install and no image to fetch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_lab::overlay_lack;
use tare_model::Span;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_wire::launch::{Namespace, Root, Shown, Upper};

use crate::data::{DataDirectory, INSIDE};
use crate::error::Result;
use crate::making::Making;
use crate::options::{self, Writes};
use crate::registry::{Entry, PLAIN, nothing_held};
use crate::{Availability, Comparable, DataWanted, Guest, HostView, Platform, Site};

pub(crate) const ENTRY: Entry = Entry {
    name: "container",
    summary: "tare's own container: namespaces and an overlay of the host's root; nothing to install",
    schema: options::schema::<Options>,
    check_options: options::fill::<Options>,
    make,
    start_estimate: Span::from_millis(40),
    reap: nothing_held,
    variants: PLAIN,
};

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Options {
    /// Where the guest's writes go: `memory` (counted against its limit) or `disk`.
    upper: Writes,
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataDirectory>,
}

fn make(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    options::read(value).map(|options| Box::new(Container { options }) as Box<dyn Platform>)
}

struct Container {
    options: Options,
}

impl Platform for Container {
    fn look(&self, host: &HostView) -> Availability {
        if let Some((reason, remedy)) = overlay_lack() {
            return Availability::Unavailable { reason, remedy };
        }
        if let Some(unavailable) = self.options.data.as_ref().and_then(DataDirectory::unavailable) {
            return unavailable;
        }
        let mut notes: Vec<String> = host.limits_unavailable.iter().map(|why| format!("no limits: {why}")).collect();
        if host.rootless {
            notes.push("without root, top directories with other mounts below them are read-only in the guest".into());
        }
        Availability::Available { notes }
    }

    fn disclosures(&self) -> Vec<String> {
        let writes = match self.options.upper {
            Writes::Memory => "Its writes go to memory and count against its limit.",
            Writes::Disk => "Its writes go to the host's disk.",
        };
        let mut told = vec![
            format!("The guest reads the host's files through an overlay. {writes}"),
            "It runs as root of the host with the capabilities that container engines leave to root, and with their filter of \
             system calls unless the study turns that off: it weighs namespaces, overlay and filter. It reads all of the \
             host's files, and is no sandbox."
                .into(),
        ];
        told.extend(self.options.data.as_ref().and_then(DataDirectory::disclosure));
        told
    }

    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    fn merging_lack(&self) -> Option<(String, String)> {
        None
    }

    fn data_lack(&self, wanted: DataWanted) -> Option<(String, String)> {
        self.options.data.as_ref()?.lack(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut making = Making::new(site, spec);
        let data = making.data_directory(self.options.data.as_ref(), Some(INSIDE))?;
        let mut launch = making.linked()?;
        let read_only = making.is_data_shared();
        launch.shown = data.into_iter().map(|from| Shown { from, at: INSIDE.into(), read_only }).collect();
        launch.unshare = vec![Namespace::Mount, Namespace::Pid, Namespace::Ipc, Namespace::Uts];
        if !launch.cgroup_procs.is_empty() {
            launch.unshare.push(Namespace::Cgroup);
        }
        launch.hostname = Some(spec.name.clone());
        let upper = match self.options.upper {
            Writes::Memory => Upper::Memory,
            Writes::Disk => Upper::Disk(making.layers()?),
        };
        launch.root = Some(Root::OverlayOfHost { upper });
        making.start(&launch)
    }
}
