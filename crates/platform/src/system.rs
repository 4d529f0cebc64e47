//! What system containers have in common that a program of the host's starts: their options, what they need, and
//! the place for the program's own state.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_lab::overlay_refusal;
use tare_model::Refusal;
use tare_model::guest::GuestSpec;
use tare_wire::launch::{Launch, Namespace, PrivateMount};

use crate::data::{DataDirectory, INSIDE};
use crate::error::Result;
use crate::making::Making;
use crate::options::Writes;
use crate::rootfs::RootFs;
use crate::{Availability, HostView, Site, program};

/// Where the agent is inside.
pub(crate) const AGENT: &str = "/.tare/agent";

/// How long a program may take to tell its version.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Options of a system container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Options {
    /// Where the guest's root file system comes from: `"overlay"` (the host's own), `{ directory = "PATH" }`,
    /// `{ archive = "FILE.tar" }`, or a container image: `{ image = "PATH" }`, `{ image = { path = "PATH", name = "app:1" } }`.
    /// The guest writes to an overlay in any case.
    pub rootfs: RootFs,
    /// Where the guest's writes go: `memory` (counted against its limit) or `disk`.
    pub upper: Writes,
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataDirectory>,
}

/// A guest that is begun.
pub(crate) struct Begun<'a> {
    pub making: Making<'a>,
    /// The program that will start it.
    pub program: PathBuf,
    /// The tree below its overlay.
    pub lower: PathBuf,
    /// Where its data are on the host.
    pub data: Option<PathBuf>,
    /// Its launch, in a mount namespace of its own and not yet in that of its link.
    pub launch: Launch,
    /// The network namespace of its link.
    pub netns: PathBuf,
    /// A directory of its own.
    pub folder: PathBuf,
}

/// The program that starts containers.
pub(crate) struct Starter {
    /// Its name.
    pub program: &'static str,
    /// The package of Debian's that it is in.
    pub package: &'static str,
}

impl Starter {
    /// Finds the program.
    ///
    /// # Errors
    /// That it is not here, and the remedy.
    pub(crate) fn find(&self) -> std::result::Result<PathBuf, Refusal> {
        program::find(self.program).ok_or_else(|| {
            let (program, package) = (self.program, self.package);
            Refusal::new(
                format!("there is no `{program}` here"),
                format!("Install it: on Debian and Ubuntu, `apt-get install {package}`"),
            )
        })
    }

    /// The first line of what the program says about its version.
    ///
    /// # Errors
    /// When it does not run.
    fn version(&self) -> std::result::Result<String, Refusal> {
        let path = self.find()?;
        let by_hand = || format!("Try `{} --version` by hand", path.display());
        let ran = program::run(Command::new(&path).arg("--version"), TIMEOUT)
            .map_err(|error| Refusal::new(format!("`{} --version` failed: {error}", path.display()), by_hand()))?;
        let first = ran.output.lines().next().unwrap_or_default().trim().to_owned();
        if ran.success {
            return Ok(first);
        }
        Err(Refusal::new(format!("`{} --version` failed: {first}", path.display()), by_hand()))
    }

    /// The program and its version, or why there is none.
    pub(crate) fn versions(&self) -> Vec<(String, String)> {
        vec![(self.program.to_owned(), self.version().unwrap_or_else(|refusal| refusal.reason))]
    }

    /// Begins a guest, up to what differs from one such program to the next: data, link, limits and a directory.
    ///
    /// # Errors
    /// What could not be had.
    pub(crate) fn begin<'a>(&self, options: &Options, site: &'a Site<'a>, spec: &'a GuestSpec) -> Result<Begun<'a>> {
        let mut making = Making::new(site, spec);
        let program = self.find().map_err(|refusal| making.refused("find its program", refusal))?;
        let lower = options.rootfs.lower(&mut making)?;
        let data = making.data_directory(options.data.as_ref(), Some(INSIDE))?;
        let netns = making.attach()?;
        let mut launch = making.held()?;
        launch.unshare = vec![Namespace::Mount];
        let folder = making.directory()?;
        Ok(Begun { making, program, lower, data, launch, netns, folder })
    }

    /// Whether it looks as if it could start guests with these options here; nothing is run.
    pub(crate) fn look(&self, host: &HostView, options: &Options) -> Availability {
        if host.rootless {
            return Availability::Unavailable(Refusal::new(
                "it needs root: it mounts the guest's root and sets up its devices",
                "Run as root, or use the platform that is made of plain namespaces, which works in a user namespace",
            ));
        }
        if let Some(why) = &host.limits_unavailable {
            return Availability::Unavailable(Refusal::new(
                format!("its guests are held by control groups, and {why}"),
                "Use a platform that works without limits; `tare doctor` lists them",
            ));
        }
        if let Some(refusal) = self.find().err().or_else(overlay_refusal) {
            return Availability::Unavailable(refusal);
        }
        if let Some(unavailable) = options.data.as_ref().and_then(DataDirectory::unavailable) {
            return unavailable;
        }
        options.rootfs.unavailable().unwrap_or(Availability::Available { notes: Vec::new() })
    }

    /// What [`Self::look`] finds, if the program runs here too and the root can be had.
    pub(crate) fn check(&self, host: &HostView, options: &Options) -> Availability {
        let looked = self.look(host, options);
        if matches!(looked, Availability::Unavailable(_)) {
            return looked;
        }
        match self.version() {
            Err(refusal) => Availability::Unavailable(refusal),
            Ok(_) => options.rootfs.unusable().unwrap_or(looked),
        }
    }
}

/// Shows the program a directory of the guest's own at `place`, where it keeps locks and links of all its containers
/// on the host: so what it leaves there, even when it is killed, goes with the guest.
///
/// # Errors
/// What could not be made, and why.
pub(crate) fn private_state(folder: &Path, place: &str) -> std::result::Result<PrivateMount, String> {
    let from = folder.join("state");
    for directory in [from.as_path(), Path::new(place)] {
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    Ok(PrivateMount::Bind { from, at: place.into() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_missing_is_reported_with_its_package() {
        let host = HostView { rootless: false, limits_unavailable: None, agent: "/agent".into() };
        let none = Starter { program: "no-such-starter", package: "the-package" };
        let said = format!("{:?}", none.look(&host, &Options::default()));
        assert!(said.contains("no-such-starter") && said.contains("apt-get install the-package"), "{said}");
        assert!(none.versions()[0].1.contains("there is no"), "{:?}", none.versions());
        for host in [
            HostView { rootless: true, ..host.clone() },
            HostView { limits_unavailable: Some("there are none".into()), ..host.clone() },
        ] {
            let there = Starter { program: "true", package: "coreutils" };
            assert!(matches!(there.look(&host, &Options::default()), Availability::Unavailable(_)));
        }
        let wrong = Options { rootfs: RootFs::Directory("/none".into()), ..Options::default() };
        let there = Starter { program: "true", package: "coreutils" };
        assert!(format!("{:?}", there.look(&host, &wrong)).contains("/none"));
        let data = DataDirectory { directory: "/no/disk".into(), in_memory: false };
        let wrong = Options { data: Some(data), ..Options::default() };
        assert!(format!("{:?}", there.look(&host, &wrong)).contains("/no/disk"));
        assert!(matches!(there.look(&host, &Options::default()), Availability::Available { .. }));
        // `false` is there and does not run well: only running it shows that.
        let fails = Starter { program: "false", package: "coreutils" };
        assert!(matches!(fails.look(&host, &Options::default()), Availability::Available { .. }));
        assert!(matches!(fails.check(&host, &Options::default()), Availability::Unavailable(_)));
    }

    #[test]
    fn state_of_the_program_is_the_guests() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("run/starter");
        let mount = private_state(folder.path(), place.to_str().unwrap()).unwrap();
        assert_eq!(mount, PrivateMount::Bind { from: folder.path().join("state"), at: place.clone() });
        assert!(place.is_dir() && folder.path().join("state").is_dir());
    }
}
