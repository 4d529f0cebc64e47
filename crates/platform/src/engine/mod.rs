//! What container engines have in common: guests that the engine's own program makes, starts and removes.
//!
//! The program is run with the agent as the container's entry point and stays attached to it: its streams are the channel. The
//! container has the lab's link for its network and nothing of the engine's. Before the agent begins, its process and the
//! engine's process above it are moved into the guest's control groups, which are those of every arm: so it does not matter how
//! the engine names its own groups and who manages them. All else is the engine's: its storage, its runtime, its files in `/etc`.

mod client;
mod creation;
mod held;
mod image;

use std::marker::PhantomData;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tare_lab::{RUN_VARIABLE, is_of_run};
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;
use tare_model::layout::Attachment;
use tare_model::study::Attach;
use tare_model::{Refusal, Span};

use self::client::Client;
use self::creation::Creation;
use self::held::Held;
use self::image::Image;
use crate::attachment::in_directory;
use crate::builder::{GuestBuilder, Particulars, absolute, parent_named, plain_launch};
use crate::data_directory::DataDirectory;
use crate::entry::{Entry, FromOptions};
use crate::error::Result;
use crate::held::reap;
use crate::program::named;
use crate::{DataWanted, Guest, HostView, Notes, Platform, Site, merging};

/// What tells one engine from the others.
pub(crate) trait Kind: Send + Sync + 'static {
    /// The name of the platform and of the engine's program.
    const NAME: &'static str;
    /// The package of Debian's that it is in.
    const PACKAGE: &'static str;
    /// Whether containers are started by a daemon and not by the program itself.
    const DAEMON: bool;
    /// The process that stands above each container's first, as the kernel names it.
    const MONITOR: &'static str;
    /// What of that which the engine says of itself are versions: a name, and where it is.
    const VERSIONS: &'static [(&'static str, &'static str)];
    /// What a reader of a report must know of it.
    const DISCLOSURES: &'static [&'static str];

    /// Its options.
    type Options: Serialize + DeserializeOwned + JsonSchema + Clone + Into<Settings>;

    /// Arguments of the program that come before its command.
    ///
    /// # Errors
    /// What is to be said against the settings before anything runs, and the remedy.
    fn arguments(settings: &Settings) -> std::result::Result<Vec<String>, Refusal>;

    /// Further arguments of its command `create`; the value is what the engine says of itself.
    fn create(info: &Value, settings: &Settings) -> Vec<String>;

    /// How its bind mounts are made without what is mounted below.
    fn alone(info: &Value) -> &'static str;

    /// Why what the engine says of itself does not allow guests, and the remedy.
    fn objection(info: &Value, settings: &Settings) -> Option<Refusal>;
}

/// The entry of an engine's platform.
pub(crate) const fn entry<K: Kind>(summary: &'static str, start_estimate: Span) -> Entry {
    Entry { reap: reap::<Held>, colon: Some("image"), ..Entry::of::<Engine<K>>(K::NAME, summary, start_estimate) }
}

/// The options of an engine, whichever it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    pub host: Option<String>,
    pub image: Option<String>,
    pub runtime: Option<String>,
    pub flags: Vec<String>,
    pub data: Option<DataDirectory>,
}

impl Settings {
    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// Which option is wrong and why.
    pub(crate) fn check(&self) -> std::result::Result<(), FieldError> {
        let plain = |field: &'static str, value: &Option<String>, such: &str| match value.as_deref() {
            Some(written) if written.trim() != written || written.is_empty() || written.starts_with('-') => {
                Err(FieldError::new(&[field], format!("`{written}` is no {field}"))
                    .help(format!("write it such as {such}, or leave it out")))
            }
            _ => Ok(()),
        };
        plain("image", &self.image, "\"localhost/app:1\"")?;
        plain("runtime", &self.runtime, "\"/usr/local/bin/runtime\"")?;
        if self
            .host
            .as_ref()
            .is_some_and(|host| !host.strip_prefix("unix://").is_some_and(|path| path.starts_with('/')))
        {
            let help = "write its socket, such as \"unix:///var/run/engine.sock\": its containers must be processes of this host";
            return Err(FieldError::new(&["host"], "it is no socket of this host").help(help));
        }
        let last = self.runtime.as_deref().and_then(|runtime| runtime.rsplit('/').next()).unwrap_or_default();
        if ["runsc", "kata"].iter().any(|own| last.contains(own)) {
            let why = format!(
                "guests of `{last}` have a kernel of their own, which does not take the lab's link from an engine"
            );
            let help = "measure that runtime by the platform that runs runtimes by themselves, or choose one that shares the host's kernel";
            return Err(FieldError::new(&["runtime"], why).help(help));
        }
        self.data.iter().try_for_each(DataDirectory::check)
    }
}

/// A platform whose guests an engine makes.
pub(crate) struct Engine<K> {
    settings: Settings,
    /// What the engine says of itself, once it was asked.
    info: OnceLock<Value>,
    kind: PhantomData<K>,
}

impl<K: Kind> FromOptions for Engine<K> {
    type Options = K::Options;

    fn read(value: &Value) -> std::result::Result<K::Options, FieldError> {
        let options: K::Options = crate::options::read(value)?;
        options.clone().into().check().map(|()| options)
    }

    fn new(options: K::Options) -> Self {
        Self { settings: options.into(), info: OnceLock::new(), kind: PhantomData }
    }
}

impl<K: Kind> Engine<K> {
    fn client(&self) -> std::result::Result<Client, Refusal> {
        Client::find::<K>(&self.settings)
    }

    /// What the engine says of itself, asked once.
    fn info(&self, client: &Client) -> std::result::Result<&Value, Refusal> {
        if let Some(info) = self.info.get() {
            return Ok(info);
        }
        let info = client.json(&["info", "--format", "{{json .}}"]).map_err(|why| {
            let remedy = match K::DAEMON {
                true => {
                    "Start its daemon, and see that this user may connect to its socket; another one is named by `host`"
                }
                false => "Try the same command by hand",
            };
            Refusal::new(why, remedy)
        })?;
        Ok(self.info.get_or_init(|| info))
    }

    /// Why an engine whose containers are a daemon's cannot have their memory merged.
    fn unmerged(&self) -> Option<Refusal> {
        K::DAEMON.then(|| {
            Refusal::new(
                "its guests are started by a daemon, from which they do not inherit that their memory may be merged",
                "leave `merging` out of this arm, or use an engine without a daemon",
            )
        })
    }
}

impl<K: Kind> Platform for Engine<K> {
    fn look(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        if K::DAEMON && host.rootless {
            return Err(Refusal::new(
                "it needs root: containers of a daemon are root's, and a user may give them neither a link nor limits",
                "Run as root, or use an engine without a daemon",
            ));
        }
        self.client()?;
        self.settings.data.iter().try_for_each(DataDirectory::look)?;
        Ok(host.notes())
    }

    fn check(&self, host: &HostView) -> std::result::Result<Notes, Refusal> {
        let notes = self.look(host)?;
        let client = self.client()?;
        let info = self.info(&client)?;
        K::objection(info, &self.settings).map_or(Ok(()), Err)?;
        Image::check(&self.settings, &client)?;
        Ok(notes)
    }

    fn named_programs(&self) -> Vec<String> {
        named(&[self.settings.runtime.as_deref()])
    }

    fn disclosures(&self) -> Vec<String> {
        let mut sentences = vec![Image::disclosure(&self.settings)];
        sentences.push(
            "The engine makes, starts and removes the guest; its root, its writes and its runtime are the engine's. The link is the \
             lab's. The capabilities are those of every arm, and so is the filter of system calls, which the guest's agent installs \
             instead of the engine's; profiles for AppArmor and SELinux are left out, as on every arm."
                .into(),
        );
        sentences.push(
            "Limits are those of every arm, in control groups of tare's: the container's process is moved there before its agent \
             begins, and with it the engine's process above it, so that its CPU time counts."
                .into(),
        );
        sentences.extend(K::DISCLOSURES.iter().map(|&sentence| sentence.to_owned()));
        if !self.settings.flags.is_empty() {
            sentences.push(format!("The engine is run with the arguments `{}`.", self.settings.flags.join(" ")));
        }
        sentences.extend(self.settings.data.iter().flat_map(DataDirectory::disclosure));
        sentences
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        self.unmerged()
    }

    fn attachment(&self, attach: Attach) -> Attachment {
        in_directory(self.settings.data.as_ref(), attach, None)
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.settings.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        let info = match self.client().and_then(|client| self.info(&client).cloned()) {
            Ok(info) => info,
            Err(refusal) => return vec![(K::NAME.to_owned(), refusal.reason)],
        };
        let version = |&(name, at): &(&str, &str)| {
            let said = info.pointer(at)?.as_str()?.lines().next()?;
            Some((name.to_owned(), said.to_owned()))
        };
        K::VERSIONS.iter().filter_map(version).collect()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut builder = GuestBuilder::new(site, spec);
        if let Some(refusal) = self.unmerged().filter(|_| spec.merge) {
            return Err(builder.refused("have its memory merged", refusal));
        }
        let client = self.client().map_err(|refusal| builder.refused("find the engine", refusal))?;
        let (info, image) = builder.aside(|builder| {
            let info = self.info(&client).map_err(|refusal| builder.refused("ask the engine", refusal))?;
            let image = Image::ready(&self.settings, &client, site.state);
            Ok((info, image.map_err(|refusal| builder.refused("have its image", refusal))?))
        })?;
        let data = builder.data_directories(self.settings.data.as_ref(), true)?;
        let netns = if K::DAEMON { None } else { Some(builder.attach()?) };
        builder.limit()?;
        let held = Held::new(&client, site.run_id, &spec.name);
        let (agent, confinement) = (absolute(site.agent), builder.confine());
        let creation = Creation {
            name: &held.name,
            setup: builder.setup(&agent, &data, &confinement),
            netns: netns.as_deref(),
            image: &image,
            runtime: self.settings.runtime.as_deref(),
            alone: K::alone(info),
            further: K::create(info, &self.settings),
        };
        let create = creation.arguments();
        builder.hold(K::NAME, held.clone())?;
        client.run(&create).map_err(|why| builder.failed("make its container", why, SEE_ENGINE))?;

        let mut launch = plain_launch();
        launch.merge = spec.merge;
        launch.argv = client.argv(&["start", "--attach", "--interactive", &held.name]);
        let mut command = builder.entering(&launch)?;
        command.envs(client.environment());
        if !K::DAEMON {
            // What the engine leaves running for a moment to clean up is not taken for a part of the guest.
            command.env_remove(RUN_VARIABLE);
        }
        builder.spawn_command(&mut command)?;
        builder.hear_waiting()?;
        self.take_in(&mut builder, &client, &held.name)?;
        builder.let_begin()?;
        builder.greet(site.timeout)?;
        builder.finish(Particulars::default())
    }
}

/// What helps when an engine refuses.
const SEE_ENGINE: &str = "Try the same image with the engine by hand; its own log may say more";

impl<K: Kind> Engine<K> {
    /// The guest's first process, which the engine has started: into the lab and the control groups.
    fn take_in(&self, builder: &mut GuestBuilder<'_>, client: &Client, name: &str) -> Result<()> {
        let first = builder.aside(|builder| {
            let format = "{{json .State.Pid}}";
            let answer = client.json(&["inspect", "--type=container", "--format", format, name]);
            let pid = answer.and_then(|pid| {
                let pid = pid.as_u64().and_then(|pid| u32::try_from(pid).ok()).filter(|&pid| pid > 1);
                pid.ok_or_else(|| "the engine does not say it".into())
            });
            pid.map_err(|why| builder.failed("find its first process", why, SEE_ENGINE))
        })?;
        if !is_of_run(first, builder.site.run_id) {
            let why = format!("process {first} of this host is not it");
            let remedy = "The engine must run on this host and in its process namespace: not in a virtual machine, nor in a \
                          container";
            return Err(builder.failed("find its first process", why, remedy));
        }
        builder.kill_process_with_guest(first);
        if K::DAEMON {
            builder.attach_process(first)?;
        }
        builder.take_in(first, parent_named(first, K::MONITOR))?;
        if builder.spec.merge {
            builder.note(merging::row(Some(first)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_field() {
        let with = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().map_err(|error| error.path.join("."))
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert_eq!(with(|s| s.image = Some("localhost/app:1".into())), Ok(()));
        assert_eq!(with(|s| s.runtime = Some("/opt/youki".into())), Ok(()));
        assert_eq!(with(|s| s.host = Some("unix:///run/x.sock".into())), Ok(()));
        for (change, field) in [
            (with(|s| s.image = Some("--privileged".into())), "image"),
            (with(|s| s.image = Some(String::new())), "image"),
            (with(|s| s.image = Some(" app".into())), "image"),
            (with(|s| s.runtime = Some("-x".into())), "runtime"),
            (with(|s| s.runtime = Some("/opt/kata-runtime".into())), "runtime"),
            (with(|s| s.runtime = Some("runsc".into())), "runtime"),
            (with(|s| s.host = Some("tcp://192.0.2.1:2375".into())), "host"),
            (with(|s| s.host = Some("unix://relative".into())), "host"),
        ] {
            assert_eq!(change, Err(field.to_owned()));
        }
    }
}
