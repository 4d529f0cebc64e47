//! `container`: tare's own container out of plain namespaces, over the host's root file system or another.
//!
//! Mount, process, IPC, UTS and (where limits can be set) control group namespaces, and an overlay of
//! the root. Nothing to install, and no image to fetch unless the study names one.

use serde_json::Value;
use tare_lab::overlay_refusal;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::{Refusal, Span};
use tare_wire::launch::{Namespace, Root, Shown, Upper};

use crate::data::{DataDirectory, INSIDE};
use crate::error::Result;
use crate::making::Making;
use crate::options::{self, Writes};
use crate::registry::{Entry, PLAIN, nothing_held};
use crate::rootfs::RootFs;
use crate::system::Options;
use crate::{Availability, Comparable, DataWanted, Guest, HostView, Platform, Site};

pub(crate) const ENTRY: Entry = Entry {
    name: "container",
    summary: "tare's own container: namespaces and an overlay of the host's root, a directory, an archive or a container image; nothing to install",
    schema: options::schema::<Options>,
    check_options: options::fill::<Options>,
    make,
    start_estimate: Span::from_millis(40),
    reap: nothing_held,
    variants: PLAIN,
};

fn make(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    options::read(value).map(|options| Box::new(Container { options }) as Box<dyn Platform>)
}

struct Container {
    options: Options,
}

impl Platform for Container {
    fn look(&self, host: &HostView) -> Availability {
        if let Some(refusal) = overlay_refusal() {
            return Availability::Unavailable(refusal);
        }
        if let Some(unavailable) = self.options.data.as_ref().and_then(DataDirectory::unavailable) {
            return unavailable;
        }
        if let Some(unavailable) = self.options.rootfs.unavailable() {
            return unavailable;
        }
        let mut notes: Vec<String> = host.limits_unavailable.iter().map(|why| format!("no limits: {why}")).collect();
        if host.rootless && self.options.rootfs == RootFs::Overlay {
            notes.push("without root, top directories with other mounts below them are read-only in the guest".into());
        }
        Availability::Available { notes }
    }

    fn check(&self, host: &HostView) -> Availability {
        match self.look(host) {
            looked @ Availability::Available { .. } => self.options.rootfs.unusable().unwrap_or(looked),
            looked => looked,
        }
    }

    fn disclosures(&self) -> Vec<String> {
        let reads = if self.options.rootfs == RootFs::Overlay { "It reads all of the host's files, and" } else { "It" };
        let mut disclosures = vec![
            self.options.rootfs.disclosure(self.options.upper),
            format!(
                "It runs as root of the host with the capabilities that container engines leave to root, and with their filter of \
                 system calls unless the study turns that off: it weighs namespaces, overlay and filter. {reads} is no sandbox."
            ),
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
        let lower = self.options.rootfs.lower(&mut making)?;
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
        launch.root = Some(Root::Overlay { lower, upper });
        making.start(&launch)
    }
}
