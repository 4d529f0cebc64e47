//! `oci`: guests of any OCI runtime, started by the runtime's own program.
//!
//! The runtime is run by its name or path, with a bundle that tare writes. It runs in a mount namespace
//! of its own, where the guest's overlay is mounted and the control groups are arranged as any runtime
//! understands them; so nothing shows in the host's mount table, and all of it goes with the guest.

mod archive;
mod bundle;
mod groups;
mod options;
mod runtime;

use std::path::PathBuf;

use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_wire::launch::{Namespace, PrivateMount, Upper};

use self::bundle::Bundle;
use self::groups::Arrangement;
use self::options::{Options, RootFs};
use self::runtime::{Held, Runtime};
use crate::error::Result;
use crate::making::{Making, absolute, plain_launch};
use crate::options::{self as common, Writes};
use crate::registry::Entry;
use crate::{Availability, Comparable, Guest, HostView, Platform, ReapSite, Site};

const NAME: &str = "oci";

pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "any OCI runtime by its name (runc, crun, runsc, kata-runtime, youki ...), over the host's root, a directory or an archive",
    schema: common::schema::<Options>,
    check_options: options::check,
    make,
    start_estimate: Span::from_millis(120),
    reap,
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
    fn check(&self, host: &HostView) -> Availability {
        if host.rootless {
            return Availability::Unavailable {
                reason: "it needs root: runtimes set up devices and control groups of the guest".into(),
                remedy: "Run as root, or use the platform `container`, which works in a user namespace".into(),
            };
        }
        let unavailable = |reason: String, remedy: String| Availability::Unavailable { reason, remedy };
        if let Some(why) = &host.limits_unavailable {
            return unavailable(
                format!("runtimes need control groups, and {why}"),
                "Use the platform `container`".into(),
            );
        }
        let runtime = match Runtime::find(&self.options) {
            Ok(runtime) => runtime,
            Err((reason, remedy)) => return unavailable(reason, remedy),
        };
        if let Err(reason) = runtime.version() {
            return unavailable(reason, format!("Try `{} --version` by hand", runtime.program.display()));
        }
        match self.options.rootfs.path() {
            Some(path) if !path.exists() => unavailable(
                format!("the root file system {} is not there", path.display()),
                "Check the path in the study".into(),
            ),
            _ => Availability::Available { notes: Vec::new() },
        }
    }

    fn disclosures(&self) -> Vec<String> {
        let root = match &self.options.rootfs {
            RootFs::Overlay => "The guest reads the host's files through an overlay.".to_owned(),
            RootFs::Directory(path) => {
                format!("The guest's root is the directory {}, through an overlay.", path.display())
            }
            RootFs::Archive(path) => {
                format!("The guest's root is unpacked from {}, seen through an overlay.", path.display())
            }
        };
        let writes = match self.options.upper {
            Writes::Memory => "Its writes go to memory.",
            Writes::Disk => "Its writes go to the host's disk.",
        };
        vec![
            format!("{root} {writes}"),
            "The guest runs as root with the usual default capabilities and no seccomp filter (engines add one by default)."
                .into(),
        ]
    }

    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    fn versions(&self) -> Vec<(String, String)> {
        let version = Runtime::find(&self.options)
            .map_err(|(reason, _)| reason)
            .and_then(|runtime| runtime.version())
            .unwrap_or_else(|reason| reason);
        vec![(self.options.runtime.clone(), version)]
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut making = Making::new(site, spec);
        let runtime = Runtime::find(&self.options).map_err(|(why, remedy)| {
            making.failed(&format!("find the runtime {}", self.options.runtime), why, &remedy)
        })?;
        let lower = making.aside(|making| self.lower(making))?;
        let netns = making.attach()?;
        making.limit()?;
        let arrangement = Arrangement::of(&making.groups());
        let folder = making.directory()?;
        let agent = absolute(site.agent);
        let held = Held::new(&runtime, site, spec, &arrangement);
        let rootfs = folder.join("rootfs");
        let bundle = Bundle {
            spec,
            run_id: site.run_id,
            agent: &agent,
            netns: &netns,
            rootfs: &rootfs,
            group: &arrangement.group,
        };
        bundle
            .write(&folder)
            .map_err(|why| making.failed("write the bundle", why, "Is the file system full or read-only?"))?;
        let undo = held.clone();
        let by = agent.clone();
        making.hold(NAME, held.token(), Box::new(move || undo.take_away(&by)))?;

        let mut launch = plain_launch();
        launch.cgroup_procs = arrangement.join;
        launch.unshare = vec![Namespace::Mount];
        let upper = match self.options.upper {
            Writes::Memory => Upper::Memory,
            Writes::Disk => Upper::Disk(making.layers()?),
        };
        launch.mounts = arrangement.mounts;
        launch.mounts.push(PrivateMount::Overlay { lower, at: rootfs, upper });
        launch.argv = held.command(&["run", "--bundle", &folder.to_string_lossy()]);
        making.start(&launch)
    }
}

impl Oci {
    /// The tree below the guest's overlay; an archive is unpacked once a run.
    fn lower(&self, making: &Making<'_>) -> Result<PathBuf> {
        match &self.options.rootfs {
            RootFs::Overlay => Ok("/".into()),
            RootFs::Directory(path) => std::path::absolute(path).map_err(|error| {
                making.failed("find its root directory", error.to_string(), "Check the path in the study")
            }),
            RootFs::Archive(path) => {
                // It outlives the guest, so it is not written down for it: reaping finds the run's directory by its id.
                let images = making.disk()?.join("images");
                archive::unpacked(path, &images).map_err(|error| {
                    making.failed(
                        &format!("unpack {}", path.display()),
                        error.to_string(),
                        "Make the archive anew, from the root of a file system",
                    )
                })
            }
        }
    }
}
