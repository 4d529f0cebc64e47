//! `containerd`: guests that containerd starts by a shim, asked for by its own program `ctr`; with Kata's shim each is a small
//! virtual machine.
//!
//! tare writes the guest's bundle and mounts its root, so no image is fetched or imported. The agent's streams are those of
//! `ctr run`. The runtime makes control groups beside tare's; the agent waits in them until its process, the shim above it, and
//! of a machine all that carries it, are moved into the guest's own.

mod carriers;
mod daemon;
mod held;
mod machine;
mod options;
mod stage;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_lab::is_of_run;
use tare_model::field::FieldError;
use tare_model::guest::{GuestSpec, Seccomp};
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};

use self::daemon::Daemon;
use self::held::Held;
use self::options::{Options, Runtime};
use self::stage::Stage;
use crate::attachment::in_directory;
use crate::builder::{GuestBuilder, Particulars, absolute, plain_launch};
use crate::bundle::Bundle;
use crate::data_directory::DataDirectory;
use crate::entry::{Entry, FromOptions, Variant};
use crate::error::Result;
use crate::held::{Held as _, reap};
use crate::program::{self, named};
use crate::{DataWanted, Guest, HostView, Notes, Platform, Site};

const NAME: &str = "containerd";

/// The program that asks the daemon.
const PROGRAM: &str = "ctr";

/// How the names of all shims begin, as the kernel keeps them.
const SHIM: &str = "containerd-shim";

/// How long a program may take to tell its version.
const VERSION_WITHIN: Duration = Duration::from_secs(10);

const SEE_CONTAINERD: &str = "See below what was said; containerd's own log (`journalctl -u containerd`) may say more";

pub(crate) const ENTRY: Entry = Entry {
    reap: reap::<Held>,
    variants: &[
        Variant { name: "runc", options: "{}" },
        Variant { name: "Kata Containers", options: r#"{"runtime": "kata"}"# },
    ],
    ..Entry::of::<Containerd>(
        NAME,
        "containers of containerd by its shims (runc, Kata Containers ...), over the host's root, a directory, an archive or a container image",
        Span::from_millis(300),
    )
};

struct Containerd {
    options: Options,
    runtime: Runtime,
}

impl FromOptions for Containerd {
    type Options = Options;

    fn read(value: &Value) -> std::result::Result<Options, FieldError> {
        let options: Options = crate::options::read(value)?;
        options.check().map(|()| options)
    }

    fn new(options: Options) -> Self {
        Self { runtime: options.runtime(), options }
    }
}

fn program() -> std::result::Result<PathBuf, Refusal> {
    program::installed(PROGRAM, "containerd")
}

impl Containerd {
    /// The shim that the daemon would start.
    fn shim(&self) -> std::result::Result<PathBuf, Refusal> {
        let daemon = Daemon::find(&self.options.address)?;
        daemon.sees_our_mounts()?;
        daemon.shim(&self.runtime)
    }

    fn held(&self, run_id: &str, guest: &str) -> std::result::Result<Held, Refusal> {
        program().map(|program| Held::new(program, &self.options, run_id, guest))
    }
}

impl Platform for Containerd {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        host.root_and_limits("containerd's socket is root's, and so are the guest's mounts and limits")?;
        program()?;
        if self.runtime.is_machine() {
            machine::look()?;
        }
        daemon::look(&self.options.address)?;
        self.options.data.iter().try_for_each(DataDirectory::look)?;
        self.options.rootfs.look()?;
        Ok(Vec::new())
    }

    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        let notes = self.look(host)?;
        self.shim()?;
        self.held("check", "none")?.run(&["version"]).map_err(|why| {
            Refusal::new(why, "Try the same command by hand; another daemon's socket is named by `address`")
        })?;
        self.options.rootfs.check()?;
        Ok(notes)
    }

    fn named_programs(&self) -> Vec<String> {
        named(&[Some(self.options.runtime.as_str())])
    }

    fn disclosures(&self) -> Vec<String> {
        let mut sentences = vec![
            self.options.rootfs.disclosure(self.options.upper),
            format!(
                "containerd starts the guest with its runtime {}, from a bundle and a root of tare's; no image of containerd's is \
                 used. The root is mounted on the host while the guest stands.",
                self.runtime.name
            ),
            "Limits are those of every arm, in control groups of tare's: the container's process is moved there before its agent \
             begins, and with it the shim above it, so that its CPU time counts. That of containerd itself does not count: it \
             serves all containers of the host. It starts and removes guests; what the agent says goes through the shim and \
             `ctr`. Neither carries the guest's network traffic."
                .into(),
        ];
        match self.runtime.is_machine() {
            true => sentences.extend(machine::disclosures(self.options.allowance())),
            false => sentences.push(
                "The guest runs as root with the usual default capabilities. Its filter of system calls is installed by the guest's \
                 agent, the same on every arm."
                    .into(),
            ),
        }
        sentences.extend(self.options.data.iter().flat_map(DataDirectory::disclosure));
        sentences
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        let why = "its guests are started by a daemon, from which they do not inherit that their memory may be merged";
        Some(Refusal::new(why, "leave `merging` out of this arm, or use a platform without a daemon"))
    }

    fn attachment(&self, attach: Attach) -> Attachment {
        let own = |device| in_directory(self.options.data.as_ref(), attach, device);
        if !self.runtime.is_machine() {
            return own(None);
        }
        let link = format!("{}, and behind it the card that the runtime gives its machine", attach.link());
        Attachment { link, ..own(Some("virtio-fs")) }
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        let held = self.held("check", "none").map_err(|refusal| refusal.reason);
        let daemon = held.and_then(|held| held.run(&["version"]).map(|said| server_version(&said)));
        let shim = self.shim().map(|shim| shim_version(&shim, self.runtime.is_machine()));
        let shim = shim.map_err(|refusal| refusal.reason);
        let shown = |said: std::result::Result<String, String>| said.unwrap_or_else(|why| why);
        vec![(NAME.to_owned(), shown(daemon)), (format!("containerd's shim {}", self.runtime.shim), shown(shim))]
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut builder = GuestBuilder::new(site, spec);
        if let Some(refusal) = self.merging_refusal().filter(|_| spec.merge) {
            return Err(builder.refused("have its memory merged", refusal));
        }
        let held =
            self.held(site.run_id, &spec.name).map_err(|refusal| builder.refused("find the program", refusal))?;
        builder.aside(|builder| self.shim().map_err(|refusal| builder.refused("find the runtime", refusal)))?;
        let lower = self.options.rootfs.lower(&mut builder)?;
        let data = builder.data_directories(self.options.data.as_ref(), true)?;
        let netns = builder.attach()?;
        let is_machine = self.runtime.is_machine();
        if is_machine {
            builder.limit_machine(self.options.allowance())?
        } else {
            builder.limit()?
        };
        let folder = builder.directory()?;
        let stage = Stage::of(&folder);
        let (undo, place, state) = (held.clone(), Stage::of(&folder), site.state.to_owned());
        let by = absolute(site.agent);
        let take_away = move || undo.take_away(&by).and(place.unmount(&state));
        builder.hold_until(NAME, held.token(), Box::new(take_away))?;

        let mut launch = plain_launch();
        launch.mounts_stay = true;
        launch.mounts = vec![stage.overlay(&mut builder, lower, self.options.upper)?];
        // The kernel of a machine is not the host's, and engines' filters do not hold there.
        let confinement = if is_machine { Seccomp::Off.into() } else { builder.confine() };
        let agent = absolute(site.agent);
        let bundle = Bundle {
            setup: builder.setup(&agent, &data, &confinement),
            netns: &netns,
            rootfs: &stage.root(),
            group: &held::group(site.run_id, &spec.name),
            waits: true,
        };
        bundle
            .write(&folder)
            .map_err(|why| builder.failed("write the bundle", why, "Is the file system full or read-only?"))?;
        launch.argv = self.command(&held, &folder);
        builder.spawn(&launch)?;
        builder.hear_waiting()?;
        self.take_in(&mut builder, &held, &folder)?;
        builder.let_begin()?;
        builder.greet(site.timeout)?;
        self.finish(builder)
    }
}

impl Containerd {
    /// The command that runs the container and carries the agent's streams.
    fn command(&self, held: &Held, folder: &Path) -> Vec<String> {
        let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let (config, pid, streams) = (at("config.json"), at("pid"), at("streams"));
        let run =
            ["run", "--config", &config, "--runtime", &self.runtime.name, "--pid-file", &pid, "--fifo-dir", &streams];
        held.argv(&[&run[..], &[&held.id]].concat())
    }

    /// The guest's first process, and what carries it, into the control groups.
    fn take_in(&self, builder: &mut GuestBuilder<'_>, held: &Held, folder: &Path) -> Result<()> {
        let deadline = Instant::now() + builder.site.timeout;
        let first = loop {
            match held::number_in(&folder.join("pid")) {
                Some(first) => break first,
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
                None => {
                    let why = format!("`{PROGRAM}` does not say it");
                    return Err(builder.failed("find its first process", why, SEE_CONTAINERD));
                }
            }
        };
        let carriers = carriers::of(&held.id, builder.channel_pid());
        let is_machine = self.runtime.is_machine();
        let is_it = match is_machine {
            true => carriers.iter().any(|(process, _)| *process == first),
            false => is_of_run(first, builder.site.run_id),
        };
        if !is_it {
            let why = format!("process {first} of this host is not it");
            let remedy = "containerd must run on this host and in its process namespace";
            return Err(builder.failed("find its first process", why, remedy));
        }
        builder.kill_process_with_guest(first);
        let shim = carriers.iter().find(|(_, name)| name.starts_with(SHIM)).map(|(process, _)| *process);
        builder.take_in(first, shim)?;
        if is_machine {
            let others: Vec<_> = carriers.into_iter().filter(|(process, _)| Some(*process) != shim).collect();
            builder.take_in_carriers(&others)?;
        }
        Ok(())
    }

    fn finish(&self, mut builder: GuestBuilder<'_>) -> Result<Box<dyn Guest>> {
        if !self.runtime.is_machine() {
            return builder.finish(Particulars::default());
        }
        let (spec, site) = (builder.spec, builder.site);
        let congestion = site.lab.config().congestion_control.as_deref();
        let parity = Some(machine::inside(spec, &builder.facts()?, site.mtu, congestion));
        // Its start is not split by its kernel's clock: process 1 of the container is not the first of the machine.
        builder.finish(Particulars { parity, ..Particulars::default() })
    }
}

/// The daemon's version in what `ctr version` prints: the last of the two, for the program's own comes first.
fn server_version(said: &str) -> String {
    let mut versions = said.lines().filter_map(|line| line.trim().strip_prefix("Version:"));
    versions.next_back().map_or_else(|| "it does not say".into(), |version| version.trim().to_owned())
}

/// What a shim says of its version.
fn shim_version(shim: &Path, is_machine: bool) -> String {
    let ran = program::run(Command::new(shim).arg(if is_machine { "--version" } else { "-v" }), VERSION_WITHIN);
    let said = ran.map_or_else(|error| error.to_string(), |ran| ran.output);
    let line =
        said.lines().map(str::trim).find(|line| line.bytes().any(|byte| byte.is_ascii_digit()) && !line.ends_with(':'));
    line.map_or_else(|| "it does not say".into(), |line| line.trim_start_matches("Version:").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn platform(options: Value) -> Containerd {
        Containerd::new(crate::options::read(&options).unwrap())
    }

    #[test]
    fn the_daemons_version_is_the_second() {
        let said = "Client:\n  Version:  1.6.20~ds1\n  Revision: x\n\nServer:\n  Version:  1.7.24\n  Revision: 1\n";
        assert_eq!((server_version(said).as_str(), server_version("").as_str()), ("1.7.24", "it does not say"));
    }

    #[test]
    fn a_container_is_run_from_its_bundle_with_streams_in_its_own_directory() {
        let platform = platform(json!({"runtime": "kata", "address": "/run/x.sock", "namespace": "lab"}));
        let held = Held::new("/usr/bin/ctr".into(), &platform.options, "r", "g");
        let command = platform.command(&held, Path::new("/run/tare/r/guests/g")).join(" ");
        assert_eq!(
            command,
            "/usr/bin/ctr --address /run/x.sock --namespace lab run --config /run/tare/r/guests/g/config.json --runtime \
             io.containerd.kata.v2 --pid-file /run/tare/r/guests/g/pid --fifo-dir /run/tare/r/guests/g/streams tare-r-g"
        );
    }

    #[test]
    fn a_machine_says_that_it_is_one_and_a_container_does_not() {
        let said = |options: Value| platform(options).disclosures().join(" ");
        let kata = said(json!({"runtime": "kata", "allowance": "1GiB"}));
        assert!(kata.contains("virtual machine") && kata.contains("1GiB") && kata.contains("io.containerd.kata.v2"));
        assert!(!said(json!({})).contains("virtual machine"));
    }

    #[test]
    fn a_program_named_by_its_path_is_one_that_a_run_runs() {
        let path = "/opt/kata/bin/containerd-shim-kata-v2";
        assert_eq!(platform(json!({"runtime": path})).named_programs(), [path]);
        assert_eq!(platform(json!({"runtime": "kata"})).named_programs(), Vec::<String>::new());
    }
}
