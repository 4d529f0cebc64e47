//! `qemu`: virtual machines, one QEMU process each.
//!
//! QEMU's standard input and output are the channel to the agent, over a virtio-serial port: the guest needs no network
//! for it. The guest's console goes to QEMU's standard error. QEMU starts with its processor halted; over its monitor tare
//! reads what was made, pins the virtual CPUs, and lets it run.

mod accel;
mod attachment;
mod balloon;
mod command;
mod confine;
mod data;
mod data_space;
mod data_store;
mod directories;
mod disclosures;
mod disk_options;
mod disk_probe;
mod disks;
mod network;
mod options;
mod qmp;
mod readback;
mod share;
mod snapshot;
mod start;
mod sys;
mod thread_cpu;
mod vfio;

use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;
use tare_image::Kernel;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};

use self::accel::Chosen;
use self::confine::Means;
use self::options::{Accel, Options};
use crate::builder::GuestBuilder;
use crate::entry::{Entry, FromOptions, Variant};
use crate::error::Result;
use crate::program::{self, find, named};
use crate::{Comparable, DataWanted, Guest, HostView, Notes, Platform, Reach, Site};

const NAME: &str = "qemu";

/// With the processor's help, and without; and the storage paths that need more than QEMU.
const VARIANTS: &[Variant] = &[
    Variant { name: "kvm", options: r#"{"accel": "kvm"}"# },
    Variant { name: "tcg (emulated)", options: r#"{"accel": "tcg"}"# },
    Variant { name: "data over iSCSI, by QEMU", options: r#"{"data-disk": {"iscsi": "hypervisor"}}"# },
    Variant { name: "data over iSCSI, by the guest", options: r#"{"data-disk": {"iscsi": "guest"}}"# },
];

pub(crate) const ENTRY: Entry = Entry {
    variants: VARIANTS,
    ..Entry::of::<Qemu>(
        NAME,
        "virtual machines of QEMU, with KVM or emulated: over the host's root, a container image, a Debian built here, or a disk image of yours",
        Span::from_millis(5000),
    )
};

struct Qemu {
    options: Options,
    /// What runs guests here. It is found out once, as everything that is reported about the platform depends on it.
    chosen: OnceLock<std::result::Result<Chosen, Refusal>>,
    /// What its program can be confined with.
    means: OnceLock<Means>,
}

impl FromOptions for Qemu {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        options::read(value)
    }

    fn new(options: Options) -> Self {
        Self { options, chosen: OnceLock::new(), means: OnceLock::new() }
    }
}

impl Qemu {
    fn chosen(&self, agent: &Path) -> std::result::Result<Chosen, Refusal> {
        self.chosen.get_or_init(|| accel::choose(&self.options, agent)).clone()
    }

    /// The same for what is said before a check or without one: the agent is then this program's own.
    fn chosen_here(&self) -> Chosen {
        self.chosen(&crate::agent()).unwrap_or(Chosen::Kvm)
    }

    /// The first thing that is missing on this host, as far as it is found without running a program.
    fn look_for(&self, host: &HostView) -> std::result::Result<(), Refusal> {
        let options = &self.options;
        if host.rootless && (options.network.vfio.is_some() || options.disks().next().is_some()) {
            let reason = "a device that is passed through and a data disk need root here";
            return Err(Refusal::new(reason, "Run as root, or leave `network.vfio`, `data-disk` and `log-disk` out"));
        }
        if let Some(why) = host.limits_unavailable.as_ref().filter(|_| !host.rootless) {
            return Err(Refusal::new(
                format!("machines need control groups, and {why}"),
                "Use the platform that needs none: `null`",
            ));
        }
        if !cfg!(target_arch = "x86_64") {
            return Err(Refusal::new("its machines are those of x86_64", "Use a host with that processor"));
        }
        if find(&options.program).is_none() {
            return Err(Refusal::new(format!("there is no {}", options.program), "apt-get install qemu-system-x86"));
        }
        let own = options.image.is_own();
        let kernel = if own { None } else { Some(Kernel::find(options.kernel.as_deref())?) };
        if options.shares_root() {
            share::server(options)?;
        }
        disks::look(options)?;
        options.network.usable(kernel.as_ref())?;
        start::huge_pages(options, 1)
    }
}

impl Platform for Qemu {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        self.look_for(host).map(|()| Vec::new())
    }

    fn named_programs(&self) -> Vec<String> {
        let server = self.options.virtiofsd.as_deref().map(Path::to_string_lossy);
        named(&[Some(self.options.program.as_str()), server.as_deref()])
    }

    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        self.look_for(host)?;
        disks::check(&self.options)?;
        let chosen = self.chosen(&host.agent)?;
        let mut notes = host.notes();
        if let Chosen::Tcg(why) = chosen {
            let why = why.map(|why| format!(", as {why}")).unwrap_or_default();
            notes.push(format!("guests are emulated{why}: their figures are labelled so and compared with nothing"));
        }
        if let Some(refusal) = host.rootless.then(|| self.options.network.moved_by_qemu()).flatten() {
            notes.push(format!("QEMU itself moves the guests' frames: {refusal}"));
        }
        Ok(notes)
    }

    fn disclosures(&self) -> Vec<String> {
        disclosures::disclosures(&self.options, &self.chosen_here())
    }

    fn comparable(&self) -> Comparable {
        match self.chosen_here() {
            Chosen::Kvm => Comparable::Yes,
            Chosen::Tcg(_) => Comparable::No(
                "emulated: QEMU runs the guest's instructions in software (TCG), which is not what a virtual machine costs".into(),
            ),
        }
    }

    fn emulated_unasked(&self, host: &HostView, boot: bool) -> Option<String> {
        if self.options.accel != Accel::Auto {
            return None;
        }
        if !boot {
            return accel::promising().err();
        }
        match self.chosen(&host.agent) {
            Ok(Chosen::Tcg(why)) => why,
            _ => None,
        }
    }

    fn emulation_asked(&self) -> bool {
        self.options.accel == Accel::Tcg
    }

    fn exclusive(&self) -> Vec<(&'static str, String)> {
        let devices = self.options.disks().filter_map(|(_, disk)| disk.device.as_ref());
        let devices = devices.map(|device| ("block device", device.display().to_string()));
        let card = self.options.network.vfio.as_ref().map(|vfio| ("network card", vfio.device.clone()));
        devices.chain(card).collect()
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        self.options.lies().merging_refusal()
    }

    fn asks_for_merging(&self) -> bool {
        true
    }

    fn ballooning_refusal(&self) -> Option<Refusal> {
        self.options.lies().ballooning_refusal()
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        data_space::data_refusal(&self.options, wanted).err()
    }

    fn attachment(&self, attach: Attach) -> Attachment {
        attachment::attachment(&self.options, attach)
    }

    fn attach_refusal(&self, attach: Attach) -> Option<Refusal> {
        self.options.network.attach_refusal(attach)
    }

    fn reach(&self) -> Reach {
        if self.options.network.vfio.is_some() { Reach::Outside } else { Reach::Lab }
    }

    fn versions(&self) -> Vec<(String, String)> {
        let mut versions = vec![(self.options.program.clone(), version(find(&self.options.program).as_deref()))];
        if !self.options.image.is_own() {
            let release = Kernel::find(self.options.kernel.as_deref());
            let release = release.map_or_else(|error| error.to_string(), |kernel| kernel.release);
            versions.push(("guest kernel".into(), release));
        }
        if self.options.shares_root() {
            let server = share::server(&self.options).ok();
            versions.push(("virtiofsd".into(), version(server.as_deref())));
        }
        if self.options.disks().any(|(_, disk)| disk.iscsi.is_some() && disk.san.is_none()) {
            versions.push(crate::machine::target::version());
        }
        versions
    }

    fn pauses_by_itself(&self) -> bool {
        true
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

impl Qemu {
    /// Makes a machine, from nothing or of a snapshot.
    fn make(&self, site: &Site<'_>, spec: &GuestSpec, snapshot: Option<&Path>) -> Result<Box<dyn Guest>> {
        let mut builder = GuestBuilder::new(site, spec);
        let prepared = builder.aside(|builder| {
            let chosen = self.chosen(site.agent);
            chosen
                .and_then(|chosen| start::prepare(&self.options, chosen, &self.means, builder))
                .map_err(|refusal| builder.refused("make the machine", refusal))
        })?;
        start::start(builder, &self.options, &prepared, snapshot)
    }
}

/// The version of a program, or why it is unknown.
fn version(program: Option<&Path>) -> String {
    let version = program.map(program::version);
    version.map_or_else(|| "not here".into(), |version| version.unwrap_or_else(|refusal| refusal.reason))
}
