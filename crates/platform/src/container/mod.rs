//! `container`: tare's own container out of plain namespaces, over the host's root file system or another.
//!
//! Mount, process, IPC, UTS and (where limits can be set) control group namespaces, and an overlay of
//! the root. Nothing to install, and no image to fetch unless the study names one.

use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};
use tare_wire::launch::{Namespace, Root, Upper};

use crate::attachment::in_directory;
use crate::builder::GuestBuilder;
use crate::entry::{Entry, FromOptions};
use crate::error::Result;
use crate::options::Writes;
use crate::rootfs::RootFs;
use crate::system::Options;
use crate::{DataWanted, Guest, HostView, Notes, Platform, Site};

pub(crate) const ENTRY: Entry = Entry::of::<Container>(
    "container",
    "tare's own container: namespaces and an overlay of the host's root, a directory, an archive or a container image; nothing to install",
    Span::from_millis(40),
);

struct Container {
    options: Options,
}

impl FromOptions for Container {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        Options::read(value)
    }

    fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Platform for Container {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        self.options.look()?;
        Ok(self.options.notes(host))
    }

    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        let notes = self.look(host)?;
        self.options.rootfs.check()?;
        Ok(notes)
    }

    fn disclosures(&self) -> Vec<String> {
        let reads = if self.options.rootfs == RootFs::Overlay { "It reads all of the host's files, and" } else { "It" };
        let mut disclosures = vec![
            self.options.rootfs.disclosure(self.options.upper),
            format!(
                "It runs as root of the host with the capabilities that container engines leave to root, and with their filter of \
                 system calls unless the study or the arm turns that off: it weighs namespaces, overlay and filter. {reads} is no sandbox."
            ),
        ];
        disclosures.extend(self.options.disclosures());
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
        let lower = self.options.rootfs.lower(&mut builder)?;
        let data = builder.data_directories(self.options.data.as_ref(), true)?;
        let mut launch = builder.linked()?;
        launch.confine = Some(builder.confine_as(self.options.confinement(spec)));
        launch.shown = data;
        launch.unshare = vec![Namespace::Mount, Namespace::Pid, Namespace::Ipc, Namespace::Uts];
        if !launch.cgroup_procs.is_empty() {
            launch.unshare.push(Namespace::Cgroup);
        }
        launch.hostname = Some(spec.name.clone());
        let upper = match self.options.upper {
            Writes::Memory => Upper::Memory,
            Writes::Disk => Upper::Disk(builder.layers()?),
        };
        launch.root = Some(Root::Overlay { lower, upper });
        builder.start(&launch)
    }
}
