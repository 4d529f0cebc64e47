//! `systemd-run`: transient services of the host's systemd, over the host's files as services see them that are protected.
//!
//! `systemd-run` hands the agent's streams to systemd, which starts the agent in a unit of its own. Like the containers of engines it
//! waits until it is in tare's control group. What systemd made of the unit's properties is asked by D-Bus.

mod unit;

use std::path::{Path, PathBuf};
use std::process::Command;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_lab::is_of_run;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};

use self::unit::{Service, Unit};
use crate::attachment::in_directory;
use crate::builder::{GuestBuilder, Particulars, absolute};
use crate::data_directory::DataDirectory;
use crate::entry::{Entry, FromOptions};
use crate::error::Result;
use crate::program::{self, PATH};
use crate::{DataWanted, Guest, HostView, Notes, Platform, Site, held, parity};

const NAME: &str = "systemd-run";

/// What systemd makes where it is the first process (sd_booted(3)).
const BOOTED: &str = "/run/systemd/system";

const SEE_JOURNAL: &str = "The host's journal may say more: `journalctl --unit 'tare-*'`";

pub(crate) const ENTRY: Entry = Entry {
    reap: held::reap::<Unit>,
    ..Entry::of::<SystemdRun>(
        NAME,
        "transient services of the host's systemd: its protection of the host's files, and no root of their own",
        Span::from_millis(100),
    )
};

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Options {
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest, and with `log-directory` another for the log of a database. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataDirectory>,
}

struct SystemdRun {
    options: Options,
}

impl FromOptions for SystemdRun {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        let options: Options = crate::options::read(value)?;
        options.data.iter().try_for_each(DataDirectory::check)?;
        let directories = options.data.iter().flat_map(|data| [Some(&data.directory), data.log_directory.as_ref()]);
        let hidden = |place: &&PathBuf| ["/tmp", "/var/tmp"].iter().any(|own| place.starts_with(own));
        let Some(place) = directories.flatten().find(hidden) else { return Ok(options) };
        let why = format!("`{}` is hidden from guests, which have a /tmp and a /var/tmp of their own", place.display());
        Err(FieldError::new(&["data"], why))
    }

    fn new(options: Options) -> Self {
        Self { options }
    }
}

/// A program of systemd's.
fn program(name: &str) -> std::result::Result<PathBuf, Refusal> {
    program::installed(name, "systemd")
}

/// Refuses a host whose first process is not systemd, or one of another mount namespace than tare's.
fn is_first(booted: &Path) -> std::result::Result<(), Refusal> {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let remedy = "Use a host that systemd has booted, or another platform";
    if !booted.is_dir() {
        let why = format!("systemd is not the first process of this host: there is no {}", booted.display());
        return Err(Refusal::new(why, remedy));
    }
    if namespace("1") != namespace("self") {
        return Err(Refusal::new(
            "the host's systemd is in another mount namespace than tare: it sees other files",
            remedy,
        ));
    }
    Ok(())
}

impl Platform for SystemdRun {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        host.root_and_limits("the system's manager starts services for root alone")?;
        is_first(Path::new(BOOTED))?;
        for name in [unit::PROGRAM, unit::BUS] {
            program(name)?;
        }
        self.options.data.iter().try_for_each(DataDirectory::look_as_nobody)?;
        Ok(Vec::new())
    }

    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        let notes = self.look(host)?;
        let why = |why| Refusal::new(why, "Is the package `dbus` installed, and its service running?");
        unit::manager_version().map(|_| notes).map_err(why)
    }

    fn disclosures(&self) -> Vec<String> {
        let properties: Vec<_> = unit::PROTECTION.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut disclosures = vec![
            format!(
                "The guest is a transient service of the host's systemd with {}. It sees the host's files and processes; it writes to /tmp and \
                 /var/tmp, which are its own and on the host's file systems, to /dev/shm and to its data alone.",
                properties.join(", ")
            ),
            "Limits are those of every arm, in a control group of tare's: the service's process is moved there before its agent begins, \
             and the unit has no limits of its own. The CPU time of systemd itself, which starts and ends units, does not count."
                .into(),
            "Its capabilities and its filter of system calls are those of every arm, not properties of the unit: the guest's agent sees \
             to them."
                .into(),
        ];
        disclosures.extend(self.options.data.iter().flat_map(DataDirectory::disclosure));
        disclosures
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        let why = "its guests are started by a daemon, from which they do not inherit that their memory may be merged";
        Some(Refusal::new(why, "leave `merging` out of this arm, or use a platform without a daemon"))
    }

    fn attachment(&self, attach: Attach) -> Attachment {
        in_directory(self.options.data.as_ref(), attach, None)
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        let version = program(unit::PROGRAM).and_then(|program| program::version(&program));
        vec![(NAME.to_owned(), version.unwrap_or_else(|refusal| refusal.reason))]
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut builder = GuestBuilder::new(site, spec);
        if let Some(refusal) = self.merging_refusal().filter(|_| spec.merge) {
            return Err(builder.refused("have its memory merged", refusal));
        }
        let program =
            program(unit::PROGRAM).map_err(|refusal| builder.refused("find the program of systemd's", refusal))?;
        // It sees the host's files at their places, so its data too.
        let data = builder.data_directories(self.options.data.as_ref(), false)?;
        let netns = builder.attach()?;
        builder.limit()?;
        let agent = absolute(site.agent);
        let confinement = builder.confine();
        let unit = Unit::new(site.run_id, &spec.name);
        let service = Service { unit: &unit, setup: builder.setup(&agent, &data, &confinement), netns: &netns };
        let mut command = Command::new(program);
        command.args(service.arguments()).env_clear().env("PATH", PATH);
        builder.hold(NAME, unit.clone())?;
        builder.spawn_command(&mut command)?;
        builder.hear_waiting()?;
        take_in(&mut builder, &unit)?;
        builder.let_begin()?;
        builder.greet(site.timeout)?;
        builder.finish(Particulars::default())
    }
}

/// The guest's first process, which systemd has started: into the control groups. What the unit became is read back.
fn take_in(builder: &mut GuestBuilder<'_>, unit: &Unit) -> Result<()> {
    let became = builder.aside(|_| unit.became());
    let became = became.map_err(|why| builder.failed("ask systemd for its unit", why, SEE_JOURNAL))?;
    if !is_of_run(became.process, builder.site.run_id) {
        let why = format!("process {} of this host is not it", became.process);
        return Err(builder.failed(
            "find its first process",
            why,
            "Run tare on the host itself, in its process namespace",
        ));
    }
    builder.kill_process_with_guest(became.process);
    builder.take_in_carriers(&[(became.process, "the service's process".to_owned())])?;
    let note = "properties of the unit, asked of systemd by D-Bus";
    builder.note(parity::row("protection by systemd", unit::protection(), Some(became.protection), note));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_systemd_has_not_booted_is_refused_with_the_reason() {
        let place = tempfile::tempdir().unwrap();
        let refusal = is_first(&place.path().join("none")).unwrap_err();
        assert!(refusal.reason.contains("first process") && refusal.remedy.contains("systemd"), "{refusal:?}");
        let host = HostView { rootless: true, limits_unavailable: None, agent: "/agent".into() };
        let refusal = SystemdRun::new(Options::default()).look(&host).unwrap_err();
        assert!(refusal.reason.contains("root"), "{refusal:?}");
    }

    #[test]
    fn data_that_the_guest_would_not_see_are_refused() {
        let read = |place: &str| SystemdRun::read(&serde_json::json!({"data": {"directory": place}}));
        assert!(read("/var/tmp/x").unwrap_err().to_string().contains("/var/tmp/x"));
        assert!(read("/mnt/x").is_ok());
    }
}
