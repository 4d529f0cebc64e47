//! `oci`: guests of any OCI runtime, started by the runtime's own program.
//!
//! The runtime is run by its name or path, with a bundle that tare writes. It runs in a mount namespace
//! of its own, where the guest's overlay is mounted and the control groups are arranged as any runtime
//! understands them; so nothing shows in the host's mount table, and all of it goes with the guest.

mod gvisor;
mod known;
mod options;
mod runtime;
mod snapshot;

use std::path::Path;

use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::{GuestSpec, Seccomp};
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};
use tare_wire::Link;
use tare_wire::launch::Namespace;

use self::options::Options;
use self::runtime::{Held, Runtime};
use crate::attachment::in_directory;
use crate::builder::{GuestBuilder, Particulars, absolute, plain_launch};
use crate::bundle::Bundle;
use crate::data_directory::DataDirectory;
use crate::entry::{Entry, FromOptions, Variant};
use crate::error::Result;
use crate::groups::Arrangement;
use crate::held;
use crate::program::{self, named};
use crate::{DataWanted, Guest, HostView, Notes, Platform, Site, parity, rootfs};

const NAME: &str = "oci";

/// The runtimes that are known by name; any other is used by naming it.
const VARIANTS: &[Variant] = &[
    Variant { name: "runc", options: r#"{"runtime": "runc"}"# },
    Variant { name: "crun", options: r#"{"runtime": "crun"}"# },
    Variant { name: "runsc (gVisor)", options: r#"{"runtime": "runsc"}"# },
    Variant { name: "kata-runtime", options: r#"{"runtime": "kata-runtime"}"# },
    Variant { name: "youki", options: r#"{"runtime": "youki"}"# },
];

pub(crate) const ENTRY: Entry = Entry {
    reap: held::reap::<Held>,
    variants: VARIANTS,
    ..Entry::of::<Oci>(
        NAME,
        "any OCI runtime by its name (runc, crun, youki, gVisor's runsc ...), over the host's root, a directory, an archive or a container image",
        Span::from_millis(120),
    )
};

struct Oci {
    options: Options,
}

impl FromOptions for Oci {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        let options: Options = crate::options::read(value)?;
        options.check().map(|()| options)
    }

    fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Platform for Oci {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        host.root_and_limits("runtimes set up devices and control groups of the guest")?;
        Runtime::find(&self.options)?;
        self.options.data.iter().try_for_each(DataDirectory::look)?;
        self.options.rootfs.look()?;
        Ok(Vec::new())
    }

    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        let notes = self.look(host)?;
        let runtime = Runtime::find(&self.options)?;
        let version = program::version(&runtime.program)?;
        known::objection(&runtime.program, &version).map_or(Ok(()), Err)?;
        if runtime.gvisor.is_some() {
            let remedy = "Choose another `gvisor = { platform = \"...\" }`: systrap works on most hosts";
            gvisor::works(&runtime.program, &runtime.flags, &host.agent)
                .map_err(|reason| Refusal::new(reason, remedy))?;
        }
        self.options.rootfs.check()?;
        Ok(notes)
    }

    fn named_programs(&self) -> Vec<String> {
        named(&[Some(self.options.runtime.as_str())])
    }

    fn disclosures(&self) -> Vec<String> {
        let mut all = vec![
            self.options.rootfs.disclosure(self.options.upper),
            "The guest runs as root with the usual default capabilities. The filter of system calls, which engines have the \
             runtime install, is installed by the guest's agent, the same on every arm. gVisor's guests have none: their \
             kernel is not the host's, and it ignores engines' filters by default."
                .into(),
        ];
        match (&self.options.flags, Runtime::find(&self.options)) {
            (Some(flags), _) => all.push(format!("The runtime is run with the arguments `{}`.", flags.join(" "))),
            (None, Ok(Runtime { gvisor: Some(settings), .. })) => all.extend(settings.disclosures()),
            _ => {}
        }
        all.extend(self.options.data.iter().flat_map(DataDirectory::disclosure));
        all
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        gvisor::is_gvisor(Path::new(&self.options.runtime)).then(gvisor::merging_refusal)
    }

    fn attachment(&self, attach: Attach) -> Attachment {
        in_directory(self.options.data.as_ref(), attach, None)
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        let version = Runtime::find(&self.options).and_then(|runtime| program::version(&runtime.program));
        vec![(self.options.runtime.clone(), version.unwrap_or_else(|refusal| refusal.reason))]
    }

    fn snapshot_refusal(&self) -> Option<Refusal> {
        snapshot::refusal(&self.options)
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        self.make(site, spec, None)
    }

    fn restore(&self, site: &Site<'_>, spec: &GuestSpec, snapshot: &Path) -> Result<Box<dyn Guest>> {
        self.make(site, spec, Some(snapshot))
    }
}

impl Oci {
    /// Makes a guest, from nothing or of a snapshot.
    fn make(&self, site: &Site<'_>, spec: &GuestSpec, snapshot: Option<&Path>) -> Result<Box<dyn Guest>> {
        let mut builder = GuestBuilder::new(site, spec);
        let runtime = Runtime::find(&self.options)
            .map_err(|refusal| builder.refused(&format!("find the runtime {}", self.options.runtime), refusal))?;
        if runtime.gvisor.is_some() && spec.merge {
            return Err(builder.refused("have its memory merged", gvisor::merging_refusal()));
        }
        let lower = self.options.rootfs.lower(&mut builder)?;
        let data = builder.data_directories(self.options.data.as_ref(), true)?;
        let netns = builder.attach()?;
        builder.limit()?;
        let mut arrangement = Arrangement::of(&builder.groups());
        if runtime.gvisor.is_some() {
            arrangement.list_enabled_controllers();
        }
        let folder = builder.directory()?;
        let agent = absolute(site.agent);
        // A sandbox's guests have a kernel of their own, and engines' filters do not hold there.
        let confinement = if runtime.gvisor.is_some() { Seccomp::Off.into() } else { builder.confine() };
        let held = Held::new(&runtime, site, spec, &arrangement);
        let at = folder.join("rootfs");
        let bundle = Bundle {
            setup: builder.setup(&agent, &data, &confinement),
            netns: &netns,
            rootfs: &at,
            group: &arrangement.group,
            waits: false,
        };
        bundle
            .write(&folder)
            .map_err(|why| builder.failed("write the bundle", why, "Is the file system full or read-only?"))?;
        builder.hold(NAME, held.clone())?;

        let mut launch = plain_launch();
        launch.cgroup_procs = arrangement.join;
        launch.merge = spec.merge;
        launch.unshare = vec![Namespace::Mount];
        launch.mounts = arrangement.mounts;
        launch.mounts.push(rootfs::overlay(&mut builder, lower, &at, self.options.upper)?);
        launch.argv = snapshot::argv(&held, &folder, snapshot);
        match runtime.gvisor {
            None => builder.start(&launch),
            Some(_) => {
                builder.spawn(&launch)?;
                builder.greet_by(if snapshot.is_some() { Link::take_up } else { Link::open }, site.timeout)?;
                let congestion = site.lab.config().congestion_control.as_deref();
                let cpus = (!spec.cpu_set.is_empty()).then_some(spec.cpu_set.len());
                let parity = Some(parity::in_own_kernel(spec, cpus, &builder.facts()?, site.mtu, congestion));
                let snapshot = Some(snapshot::by(held, agent));
                builder.finish(Particulars { parity, snapshot, ..Particulars::default() })
            }
        }
    }
}
