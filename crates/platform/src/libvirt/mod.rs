//! `libvirt`: guests of any libvirt connection, defined, started and ended through libvirt's own interface.
//!
//! The library is loaded when it is needed. A domain is described by a tree that an XML library writes, started
//! paused, put under the guest's limits, and let run; its network card is moved into the lab. Nothing of a program's
//! text is read.

mod accel;
mod attachment;
mod connection;
mod data;
mod emulator;
mod error;
mod existing;
mod held;
mod log;
mod machine;
mod options;
mod start;
mod sys;
#[cfg(test)]
mod tests;
mod uri;
mod xml;

use std::sync::Arc;

use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};

use self::connection::version_text;
use self::error::LibvirtError;
use self::held::Held;
use self::options::{Accel, DiskFormat, Options};
use self::sys::Connection;
use self::uri::{Support, Uri};
use crate::entry::{Entry, FromOptions};
use crate::error::Result;
use crate::held::reap;
use crate::machine::{kernel, share, target};
use crate::options::Switch;
use crate::{Comparable, DataWanted, Guest, HostView, Notes, Platform, Reach, Site};

const NAME: &str = "libvirt";

/// The first libvirt that has free pages reported (its release notes), as it writes versions.
const REPORTS_FREE_PAGES: u64 = 6_009_000;

/// Where guests go that libvirt can start and not reach.
const ELSEWHERE: &str = "Reach its guest over the network instead: the platform for machines that are there already \
                         takes `virsh start` and `virsh destroy` as its commands (docs/reference/libvirt.md)";

pub(crate) const ENTRY: Entry = Entry {
    reap: reap::<Held>,
    ..Entry::of::<Libvirt>(
        NAME,
        "virtual machines through libvirt, by any of its connections; made for the run, or there already",
        Span::from_secs(5),
    )
};

struct Libvirt {
    options: Options,
}

impl FromOptions for Libvirt {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        options::read(value)
    }

    fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Libvirt {
    fn refusal(&self, error: &LibvirtError) -> Refusal {
        Refusal::new(error.to_string(), uri::remedy(error, &self.options.uri))
    }

    /// Looks at what this host has, as far as libvirt is not asked: a connection may start a daemon, or run a program that
    /// its URI names.
    fn look_around(&self, host: &HostView) -> std::result::Result<(), Refusal> {
        let options = &self.options;
        let uri = Uri::parse(&options.uri).map_err(|why| Refusal::new(why, "Write uri = \"qemu:///system\""))?;
        connection::loads_libraries().map_err(|error| self.refusal(&error))?;
        if let Some(Support::NoChannel(why)) = uri.support() {
            return Err(Refusal::new(format!("{}: {why}", options.uri), ELSEWHERE));
        }
        if options.domain.is_some() {
            return Ok(());
        }
        if host.rootless {
            return Err(Refusal::new("it needs root: control groups and the lab's network", "Run as root"));
        }
        if !uri.local || uri.driver != "qemu" {
            let why = format!("guests are made by the driver `qemu` on this host, and not by {}", options.uri);
            return Err(Refusal::new(
                why,
                "Name a domain that is there already: domain = { existing = \"NAME\", ... }",
            ));
        }
        self.look_at_image()?;
        self.look_at_data()?;
        kernel::tun()?;
        match kernel::vhost() {
            Err(Refusal { reason, remedy }) if options.network.vhost == Switch::On => {
                Err(Refusal::new(reason, format!("{remedy}; or leave `vhost` out")))
            }
            _ => Ok(()),
        }
    }

    fn look_at_data(&self) -> std::result::Result<(), Refusal> {
        if self.options.data_disk.iscsi.is_none() {
            return Ok(());
        }
        target::refusal().map_or(Ok(()), Err)?;
        target::guest_refusal(&self.options.image, self.options.kernel.as_deref())
    }

    fn look_at_reporting(&self, connection: &Arc<Connection>) -> std::result::Result<(), Refusal> {
        if !self.options.memory.free_page_reporting {
            return Ok(());
        }
        let asked = Arc::clone(connection);
        let versions = connection::within(uri::CALL_LIMIT, "tell its versions", move || asked.versions());
        let (daemon, _) = versions.map_err(|error| self.refusal(&error))?;
        if daemon >= REPORTS_FREE_PAGES {
            return Ok(());
        }
        let why = format!("it has free pages reported from 6.9 on, and this is {}", version_text(daemon));
        Err(Refusal::new(why, "leave `free-page-reporting` out of the arm's `memory`, or use a newer libvirt"))
    }

    fn look_at_image(&self) -> std::result::Result<(), Refusal> {
        if !self.options.image.is_own() {
            tare_image::Kernel::find(self.options.kernel.as_deref())?;
        }
        if self.options.image.is_shared() {
            share::server(None)?;
        }
        self.options.image.look()?;
        Ok(())
    }
}

impl Platform for Libvirt {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        self.look_around(host).map(|()| Vec::new())
    }

    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        let options = &self.options;
        self.look_around(host)?;
        let connection = connection::open(&options.uri).map_err(|error| self.refusal(&error))?;
        if options.domain.is_some() {
            return Ok(Vec::new());
        }
        options.image.base()?;
        self.look_at_reporting(&connection)?;
        let kvm = accel::decide(&connection, options, &crate::builder::absolute(&host.agent))
            .map_err(|why| Refusal::new(why, "Write accel = \"tcg\" to have guests emulated"))?;
        let emulated = accel::emulated(options).filter(|_| !kvm);
        Ok(emulated.into_iter().map(|why| format!("guests are emulated: {why}")).collect())
    }

    fn disclosures(&self) -> Vec<String> {
        if let Some(domain) = &self.options.domain {
            return vec![format!(
                "The guest is the domain {} as it was before the run: its size, its limits and its network are its own, \
                 and its CPU time on the host is reported for its virtual CPUs only.",
                domain.existing
            )];
        }
        let root = self.options.image.shared_disclosure().unwrap_or_else(|| match self.options.image.is_own() {
            false => "It boots a Debian that was built on this host, through an overlay.".into(),
            true => "It boots the user's own image, through an overlay.".into(),
        });
        let mut disclosures = vec![
            root,
            "The emulator runs as root, not confined by libvirt, in tare's control group instead of libvirt's own."
                .into(),
        ];
        if self.options.accel != Accel::Tcg && kernel::kvm().is_ok() {
            disclosures.push(kernel::halt_polling());
        }
        if !self.options.append.is_empty() {
            disclosures.push(format!(
                "The study adds `{}` to the guest's kernel command line.",
                self.options.append.join(" ")
            ));
        }
        disclosures.push(match (self.options.data_disk.iscsi, self.options.data_disk.format) {
            (Some(_), _) => format!(
                "A workload's data are on a unit of an iSCSI target that the guest logs in to, over its own network card. {}",
                target::DISCLOSURE
            ),
            (None, DiskFormat::Raw) => "A workload's data are on a virtio-blk disk, a raw copy of the gold image.".into(),
            (None, DiskFormat::Qcow2) => "A workload's data are on a virtio-blk disk, qcow2 over the gold image.".into(),
        });
        disclosures
    }

    fn comparable(&self) -> Comparable {
        let emulated = |why| Comparable::No(format!("emulated: {why}"));
        if let Some(there) = &self.options.domain {
            return existing::emulated(&self.options.uri, &there.existing).map_or(Comparable::Yes, emulated);
        }
        // Asked without a check before: it is then decided now, with this program's own agent.
        if let Ok(connection) = connection::open(&self.options.uri) {
            // A refusal is a start's to tell.
            let _ = accel::decide(&connection, &self.options, &crate::agent());
        }
        accel::emulated(&self.options).map_or(Comparable::Yes, emulated)
    }

    fn emulated_unasked(&self, host: &HostView, boot: bool) -> Option<String> {
        if self.options.domain.is_some() || self.options.accel != Accel::Auto {
            return None;
        }
        if !boot {
            return kernel::kvm_is_ordinary().err();
        }
        let connection = connection::open(&self.options.uri).ok()?;
        // A refusal is a start's to report.
        let _ = accel::decide(&connection, &self.options, &host.agent);
        accel::emulated(&self.options)
    }

    fn emulation_asked(&self) -> bool {
        self.options.domain.is_none() && self.options.accel == Accel::Tcg
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        if self.options.domain.is_some() {
            let why = "the domain was there before the run, and its memory is as its own description has it";
            return Some(Refusal::new(why, "let tare make the domain: leave `domain` out"));
        }
        self.options.lies().merging_refusal()
    }

    fn asks_for_merging(&self) -> bool {
        true
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        if self.options.domain.is_some() {
            let why = format!("{} guests stand at one time, and there is one such domain", wanted.guests);
            return (wanted.guests > 1).then(|| Refusal::new(why, "Let tare make the domains: leave `domain` out"));
        }
        if wanted.size.0 == 0 {
            return None;
        }
        let overlay = self.options.data_disk.format == DiskFormat::Qcow2;
        let programs = [("mke2fs", "e2fsprogs")].into_iter().chain(overlay.then_some(("qemu-img", "qemu-utils")));
        let (program, package) = { programs }.find(|(program, _)| crate::program::find(program).is_none())?;
        Some(Refusal::new(
            format!("disks with data are made by {program}, and it is not here"),
            format!("apt-get install {package}"),
        ))
    }

    fn exclusive(&self) -> Vec<(&'static str, String)> {
        let Options { uri, domain, .. } = &self.options;
        domain.iter().map(|there| ("domain", format!("{} of {uri}", there.existing))).collect()
    }

    fn attachment(&self, _: Attach) -> Attachment {
        attachment::attachment(&self.options)
    }

    fn attach_refusal(&self, attach: Attach) -> Option<Refusal> {
        (attach != Attach::Bridge).then(|| {
            Refusal::new(
                "its daemon makes the links of its machines by itself, as taps that tare puts on a bridge",
                "write `attach = \"bridge\"` in `wire` of `[lab]`, or use a platform of machines that tare starts by itself",
            )
        })
    }

    fn reach(&self) -> Reach {
        if self.options.domain.is_some() { Reach::Outside } else { Reach::Lab }
    }

    fn versions(&self) -> Vec<(String, String)> {
        let mut versions = Vec::new();
        if let Ok(version) = sys::library_version() {
            versions.push(("libvirt (library)".to_owned(), version_text(version)));
        }
        let answer = connection::open(&self.options.uri).and_then(|connection| {
            connection::within(uri::CALL_LIMIT, "tell its versions", move || {
                Ok((connection.driver()?, connection.versions()?))
            })
        });
        if let Ok((driver, (daemon, hypervisor))) = answer {
            versions.push(("libvirt (daemon)".to_owned(), version_text(daemon)));
            versions.push((driver, version_text(hypervisor)));
        }
        versions
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        match &self.options.domain {
            Some(there) => existing::start(&self.options, there, site, spec),
            None => start::start(&self.options, site, spec),
        }
    }
}
