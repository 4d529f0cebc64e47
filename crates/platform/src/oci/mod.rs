//! `oci`: guests of any OCI runtime, started by the runtime's own program.
//!
//! The runtime is run by its name or path, with a bundle that tare writes. It runs in a mount namespace
//! of its own, where the guest's overlay is mounted and the control groups are arranged as any runtime
//! understands them; so nothing shows in the host's mount table, and all of it goes with the guest.

mod gvisor;
mod known;
mod options;
mod runtime;

use std::path::Path;

use serde_json::Value;
use tare_lab::overlay_refusal;
use tare_model::field::FieldError;
use tare_model::guest::{GuestSpec, Seccomp};
use tare_model::{Refusal, Span};
use tare_wire::launch::Namespace;

use self::options::Options;
use self::runtime::{Held, Runtime};
use crate::bundle::Bundle;
use crate::data::{DataDirectory, INSIDE};
use crate::error::Result;
use crate::groups::Arrangement;
use crate::making::{Making, Particulars, absolute, plain_launch};
use crate::options as common;
use crate::program::named;
use crate::registry::{Entry, Variant};
use crate::{Availability, Comparable, DataWanted, Guest, HostView, Platform, ReapSite, Site, parity, rootfs};

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
    name: NAME,
    summary: "any OCI runtime by its name (runc, crun, youki, gVisor's runsc ...), over the host's root, a directory, an archive or a container image",
    schema: common::schema::<Options>,
    check_options: options::check,
    make,
    start_estimate: Span::from_millis(120),
    reap,
    variants: VARIANTS,
};

fn make(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    options::check(value)?;
    common::read(value).map(|options| Box::new(Oci { options }) as Box<dyn Platform>)
}

fn reap(site: &ReapSite<'_>, token: &Value) -> Result<()> {
    Held::from_token(token).and_then(|held| held.check(site).and_then(|()| held.take_away(site.agent))).map_err(|why| {
        crate::PlatformError::Reap {
            tried: format!("take away the container {token}"),
            why,
            remedy: "Remove it with the runtime's own `delete --force`".into(),
        }
    })
}

struct Oci {
    options: Options,
}

impl Platform for Oci {
    fn look(&self, host: &HostView) -> Availability {
        if host.rootless {
            return Availability::Unavailable(Refusal::new(
                "it needs root: runtimes set up devices and control groups of the guest",
                "Run as root, or use the platform `container`, which works in a user namespace",
            ));
        }
        if let Some(why) = &host.limits_unavailable {
            let reason = format!("runtimes need control groups, and {why}");
            return Availability::Unavailable(Refusal::new(reason, "Use the platform `container`"));
        }
        if let Some(refusal) = Runtime::find(&self.options).err().or_else(overlay_refusal) {
            return Availability::Unavailable(refusal);
        }
        if let Some(unavailable) = self.options.data.as_ref().and_then(DataDirectory::unavailable) {
            return unavailable;
        }
        self.options.rootfs.unavailable().unwrap_or(Availability::Available { notes: Vec::new() })
    }

    fn check(&self, host: &HostView) -> Availability {
        let looked = self.look(host);
        if matches!(looked, Availability::Unavailable(_)) {
            return looked;
        }
        let runtime = match Runtime::find(&self.options) {
            Ok(runtime) => runtime,
            Err(refusal) => return Availability::Unavailable(refusal),
        };
        let version = match runtime.version() {
            Ok(version) => version,
            Err(reason) => {
                let remedy = format!("Try `{} --version` by hand", runtime.program.display());
                return Availability::Unavailable(Refusal { reason, remedy });
            }
        };
        if let Some(refusal) = known::objection(&runtime.program, &version) {
            return Availability::Unavailable(refusal);
        }
        if runtime.gvisor.is_some()
            && let Err(reason) = gvisor::works(&runtime.program, &runtime.flags, &host.agent)
        {
            let remedy = "Choose another `gvisor = { platform = \"...\" }`: systrap works on most hosts";
            return Availability::Unavailable(Refusal::new(reason, remedy));
        }
        self.options.rootfs.unusable().unwrap_or(looked)
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
        all.extend(self.options.data.as_ref().and_then(DataDirectory::disclosure));
        all
    }

    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        gvisor::is_gvisor(Path::new(&self.options.runtime)).then(gvisor::merging_refusal)
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        let version = Runtime::find(&self.options)
            .map_err(|refusal| refusal.reason)
            .and_then(|runtime| runtime.version())
            .unwrap_or_else(|reason| reason);
        vec![(self.options.runtime.clone(), version)]
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut making = Making::new(site, spec);
        let runtime = Runtime::find(&self.options)
            .map_err(|refusal| making.refused(&format!("find the runtime {}", self.options.runtime), refusal))?;
        if runtime.gvisor.is_some() && spec.merge {
            return Err(making.refused("have its memory merged", gvisor::merging_refusal()));
        }
        let lower = self.options.rootfs.lower(&mut making)?;
        let data = making.data_directory(self.options.data.as_ref(), Some(INSIDE))?;
        let netns = making.attach()?;
        making.limit()?;
        let mut arrangement = Arrangement::of(&making.groups());
        if runtime.gvisor.is_some() {
            arrangement.list_enabled_controllers();
        }
        let folder = making.directory()?;
        let agent = absolute(site.agent);
        // A sandbox's guests have a kernel of their own, and engines' filters do not hold there.
        let seccomp = if runtime.gvisor.is_some() { Seccomp::Off } else { making.confine() };
        let held = Held::new(&runtime, site, spec, &arrangement);
        let at = folder.join("rootfs");
        let bundle = Bundle {
            spec,
            run_id: site.run_id,
            agent: &agent,
            data: data.as_deref(),
            read_only: making.is_data_shared(),
            netns: &netns,
            rootfs: &at,
            group: &arrangement.group,
            seccomp,
            waits: false,
        };
        bundle
            .write(&folder)
            .map_err(|why| making.failed("write the bundle", why, "Is the file system full or read-only?"))?;
        let undo = held.clone();
        let by = agent.clone();
        making.hold(NAME, held.token(), Box::new(move || undo.take_away(&by)))?;

        let mut launch = plain_launch();
        launch.cgroup_procs = arrangement.join;
        launch.merge = spec.merge;
        launch.unshare = vec![Namespace::Mount];
        launch.mounts = arrangement.mounts;
        launch.mounts.push(rootfs::overlay(&mut making, lower, &at, self.options.upper)?);
        launch.argv = held.command(&["run", "--bundle", &folder.to_string_lossy()]);
        match runtime.gvisor {
            None => making.start(&launch),
            Some(_) => {
                making.spawn(&launch)?;
                making.greet(site.timeout)?;
                let congestion = site.lab.config().congestion_control.as_deref();
                let cpus = (!spec.cpu_set.is_empty()).then_some(spec.cpu_set.len());
                let parity = Some(parity::in_own_kernel(spec, cpus, &making.facts()?, site.mtu, congestion));
                making.finish(Particulars { parity, ..Particulars::default() })
            }
        }
    }
}
