//! What system containers have in common that a program of the host's starts: their options, what they need, and
//! the place for the program's own state.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::{GuestSpec, Seccomp};
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_wire::confine::Confinement;
use tare_wire::launch::{Launch, Namespace, PrivateMount, Shown};

use crate::attachment::in_directory;
use crate::builder::GuestBuilder;
use crate::data_directory::DataDirectory;
use crate::entry::FromOptions;
use crate::error::Result;
use crate::landlock::LandlockOption;
use crate::options::Writes;
use crate::rootfs::RootFs;
use crate::{DataWanted, Guest, HostView, Notes, Platform, Site, program};

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
    /// makes one of its own in for each guest, and with `log-directory` another for the log of a database. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataDirectory>,
    /// The filter of system calls of this arm's guests, `"default"` or `"off"`, where it differs from the study's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
    /// Whether the guest's programs are under rules of Landlock: `true`, or a table with `write`, the directories that they may write
    /// beneath, `tcp-bind` and `tcp-connect`, the TCP ports that they may use. Takes Linux 5.19, for ports 6.7. Left out: they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landlock: Option<LandlockOption>,
}

impl Options {
    /// Reads the options.
    ///
    /// # Errors
    /// Which field is wrong and why.
    pub(crate) fn read(value: &Value) -> std::result::Result<Self, FieldError> {
        let options: Self = crate::options::read(value)?;
        options.data.iter().try_for_each(DataDirectory::check)?;
        options.landlock.iter().try_for_each(LandlockOption::check)?;
        Ok(options)
    }

    /// Looks whether there is on this host what the options need.
    ///
    /// # Errors
    /// What is not there, and the remedy.
    pub(crate) fn look(&self) -> std::result::Result<(), Refusal> {
        self.data.iter().try_for_each(DataDirectory::look)?;
        self.landlock.iter().try_for_each(LandlockOption::look)?;
        self.rootfs.look()
    }

    /// What a user should know of guests with these options on this host.
    pub(crate) fn notes(&self, host: &HostView) -> Notes {
        let mut notes = host.notes();
        if host.rootless && self.rootfs == RootFs::Overlay {
            notes.push("without root, top directories with other mounts below them are read-only in the guest".into());
        }
        notes
    }

    /// How the agent of a guest with this specification confines itself.
    pub(crate) fn confinement(&self, spec: &GuestSpec) -> Confinement {
        let landlock = self.landlock.as_ref().and_then(LandlockOption::rules);
        Confinement { seccomp: self.seccomp.unwrap_or(spec.seccomp), landlock }
    }

    /// What a reader must know of the options.
    pub(crate) fn disclosures(&self) -> Vec<String> {
        let filter =
            |level: &Seccomp| format!("The filter of system calls is at the level `{}` on this arm.", level.name());
        let landlock = self.landlock.iter().filter_map(LandlockOption::disclosure);
        let data = self.data.iter().flat_map(DataDirectory::disclosure);
        self.seccomp.iter().map(filter).chain(landlock).chain(data).collect()
    }
}

/// A guest that is begun.
pub(crate) struct Begun<'a> {
    pub builder: GuestBuilder<'a>,
    /// The program that will start it.
    pub program: PathBuf,
    /// The tree below its overlay.
    pub lower: PathBuf,
    /// What it is shown of its data.
    pub data: Vec<Shown>,
    /// How its agent confines itself.
    pub confinement: Confinement,
    /// Its launch, in a mount namespace of its own and not yet in that of its link.
    pub launch: Launch,
    /// The network namespace of its link.
    pub netns: PathBuf,
    /// A directory of its own.
    pub folder: PathBuf,
}

/// The program that starts containers.
pub(crate) trait Starter: Send + Sync + 'static {
    /// Its name.
    const PROGRAM: &'static str;
    /// The package of Debian's that it is in.
    const PACKAGE: &'static str;
    /// Whether it works in a user namespace, without root, and without limits.
    const ROOTLESS: bool = false;

    /// What a reader of a report must know of it.
    fn disclosures() -> Vec<String>;

    /// Starts a guest that is begun.
    ///
    /// # Errors
    /// When it cannot be made or does not answer.
    fn start(begun: Begun<'_>, options: &Options) -> Result<Box<dyn Guest>>;
}

/// A platform of system containers that `S` starts.
pub(crate) struct SystemContainers<S> {
    options: Options,
    starter: PhantomData<S>,
}

impl<S: Starter> FromOptions for SystemContainers<S> {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        Options::read(value)
    }

    fn new(options: Options) -> Self {
        Self { options, starter: PhantomData }
    }
}

impl<S: Starter> Platform for SystemContainers<S> {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        if !S::ROOTLESS {
            host.root_and_limits("it mounts the guest's root and sets up its devices")?;
        }
        self.program()?;
        self.options.look()?;
        Ok(self.options.notes(host))
    }

    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        let notes = self.look(host)?;
        self.version()?;
        self.options.rootfs.check()?;
        Ok(notes)
    }

    fn disclosures(&self) -> Vec<String> {
        let mut disclosures = vec![self.options.rootfs.disclosure(self.options.upper)];
        disclosures.extend(S::disclosures());
        disclosures.extend(self.options.disclosures());
        disclosures
    }

    fn attachment(&self, attach: Attach) -> Attachment {
        in_directory(self.options.data.as_ref(), attach, None)
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![(S::PROGRAM.to_owned(), self.version().unwrap_or_else(|refusal| refusal.reason))]
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut builder = GuestBuilder::new(site, spec);
        let program = self.program().map_err(|refusal| builder.refused("find its program", refusal))?;
        let lower = self.options.rootfs.lower(&mut builder)?;
        let data = builder.data_directories(self.options.data.as_ref(), true)?;
        let netns = builder.attach()?;
        let mut launch = builder.held()?;
        launch.unshare = vec![Namespace::Mount];
        let folder = builder.directory()?;
        let confinement = builder.confine_as(self.options.confinement(spec));
        S::start(Begun { builder, program, lower, data, confinement, launch, netns, folder }, &self.options)
    }
}

impl<S: Starter> SystemContainers<S> {
    fn program(&self) -> std::result::Result<PathBuf, Refusal> {
        program::installed(S::PROGRAM, S::PACKAGE)
    }

    fn version(&self) -> std::result::Result<String, Refusal> {
        self.program().and_then(|program| program::version(&program))
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
    use super::*;

    /// Starters that are known by the name of their program alone.
    macro_rules! starter {
        ($name:ident, $program:literal) => {
            struct $name;

            impl Starter for $name {
                const PROGRAM: &'static str = $program;
                const PACKAGE: &'static str = "the-package";

                fn disclosures() -> Vec<String> {
                    Vec::new()
                }

                fn start(begun: Begun<'_>, _: &Options) -> Result<Box<dyn Guest>> {
                    Err(begun.builder.failed("start", "nothing is started here".into(), ""))
                }
            }
        };
    }

    starter!(Missing, "no-such-starter");
    starter!(There, "true");
    starter!(Fails, "false");

    #[test]
    fn what_is_missing_is_reported_with_its_package() {
        let host = HostView { rootless: false, limits_unavailable: None, agent: "/agent".into() };
        let none = SystemContainers::<Missing>::new(Options::default());
        let said = none.look(&host).unwrap_err().to_string();
        assert!(said.contains("no-such-starter") && said.contains("apt-get install the-package"), "{said}");
        assert!(none.versions()[0].1.contains("there is no"), "{:?}", none.versions());
        let there = SystemContainers::<There>::new;
        for host in [
            HostView { rootless: true, ..host.clone() },
            HostView { limits_unavailable: Some("there are none".into()), ..host.clone() },
        ] {
            assert!(there(Options::default()).look(&host).is_err());
        }
        let wrong = Options { rootfs: RootFs::Directory("/none".into()), ..Options::default() };
        assert!(there(wrong).look(&host).unwrap_err().reason.contains("/none"));
        let data = DataDirectory { directory: "/no/disk".into(), log_directory: None, in_memory: false };
        let wrong = Options { data: Some(data), ..Options::default() };
        assert!(there(wrong).look(&host).unwrap_err().reason.contains("/no/disk"));
        assert_eq!(there(Options::default()).look(&host), Ok(Vec::new()));
        // `false` is there and does not run well: only running it shows that.
        let fails = SystemContainers::<Fails>::new(Options::default());
        assert!(fails.look(&host).is_ok() && fails.check(&host).is_err());
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
