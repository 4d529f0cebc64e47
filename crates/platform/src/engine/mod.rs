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

use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tare_lab::{RUN_VARIABLE, is_of_run};
use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::guest::GuestSpec;

pub(crate) use self::client::Client;
use self::creation::Creation;
use self::held::Held;
pub(crate) use self::held::check_name;
use self::image::Image;
use crate::data::{DataDirectory, INSIDE};
use crate::error::Result;
use crate::making::{Making, Particulars, absolute, plain_launch};
use crate::options as common;
use crate::program::named;
use crate::taken::parent_named;
use crate::{Availability, Comparable, DataWanted, Guest, HostView, Platform, ReapSite, Site, merging};

/// What tells one engine from the others.
pub(crate) struct Kind {
    /// The name of the platform and of the engine's program.
    pub name: &'static str,
    /// The package of Debian's that it is in.
    pub package: &'static str,
    /// Whether containers are started by a daemon and not by the program itself.
    pub daemon: bool,
    /// The process that stands above each container's first, as the kernel names it.
    pub monitor: &'static str,
    /// Arguments of the program that come before its command, and what is to be said against the settings before anything runs.
    pub arguments: fn(&Settings) -> std::result::Result<Vec<String>, Refusal>,
    /// Further arguments of its command `create`; the value is what the engine says of itself.
    pub create: fn(&Value, &Settings) -> Vec<String>,
    /// How its bind mounts are made without what is mounted below.
    pub alone: fn(&Value) -> &'static str,
    /// Why what the engine says of itself does not allow guests, and the remedy.
    pub objection: fn(&Value, &Settings) -> Option<Refusal>,
    /// What of that are versions: a name, and where it is.
    pub versions: &'static [(&'static str, &'static str)],
    /// What a reader of a report must know of it.
    pub disclosures: &'static [&'static str],
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
        Ok(())
    }
}

fn settings<O: DeserializeOwned + Into<Settings>>(value: &Value) -> std::result::Result<Settings, FieldError> {
    let settings = common::read::<O>(value)?.into();
    settings.check().map(|()| settings)
}

/// Checks an engine's options and fills in what was left out.
///
/// # Errors
/// Which option is wrong and why.
pub(crate) fn check<O>(value: &Value) -> std::result::Result<Value, FieldError>
where
    O: DeserializeOwned + Serialize + Into<Settings>,
{
    settings::<O>(value)?;
    common::fill::<O>(value)
}

/// A platform of that engine with these options.
///
/// # Errors
/// Which option is wrong and why.
pub(crate) fn make<O>(kind: &'static Kind, value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError>
where
    O: DeserializeOwned + Into<Settings>,
{
    settings::<O>(value).map(|settings| Box::new(Engine { kind, settings, info: OnceLock::new() }) as Box<dyn Platform>)
}

/// Takes away what a run that is over left with an engine.
pub(crate) fn reap(site: &ReapSite<'_>, token: &Value) -> Result<()> {
    Held::from_token(token).and_then(|held| held.check(site).and_then(|()| held.take_away())).map_err(|why| {
        crate::PlatformError::Reap {
            tried: format!("take away the container {token}"),
            why,
            remedy:
                "Start the engine's daemon if it has one, then remove the container with the engine's own `rm --force`"
                    .into(),
        }
    })
}

/// A platform whose guests an engine makes.
pub(crate) struct Engine {
    pub kind: &'static Kind,
    settings: Settings,
    /// What the engine says of itself, once it was asked.
    info: OnceLock<Value>,
}

impl Engine {
    fn client(&self) -> std::result::Result<Client, Refusal> {
        Client::find(self.kind, &self.settings)
    }

    /// What the engine says of itself, asked once.
    fn info(&self, client: &Client) -> std::result::Result<&Value, Refusal> {
        if let Some(info) = self.info.get() {
            return Ok(info);
        }
        let info = client.json(&["info", "--format", "{{json .}}"]).map_err(|why| {
            let remedy = match self.kind.daemon {
                true => {
                    "Start its daemon, and see that this user may connect to its socket; another one is named by `host`"
                }
                false => "Try the same command by hand",
            };
            Refusal::new(why, remedy)
        })?;
        Ok(self.info.get_or_init(|| info))
    }

    fn checked(&self) -> std::result::Result<(), Refusal> {
        let client = self.client()?;
        let info = self.info(&client)?;
        match (self.kind.objection)(info, &self.settings) {
            Some(refusal) => Err(refusal),
            None => Image::check(&self.settings, &client),
        }
    }

    /// Why an engine whose containers are a daemon's cannot have their memory merged.
    fn unmerged(&self) -> Option<Refusal> {
        self.kind.daemon.then(|| {
            Refusal::new(
                "its guests are started by a daemon, from which they do not inherit that their memory may be merged",
                "leave `merging` out of this arm, or use an engine without a daemon",
            )
        })
    }
}

impl Platform for Engine {
    fn look(&self, host: &HostView) -> Availability {
        if self.kind.daemon && host.rootless {
            return Availability::Unavailable(Refusal::new(
                "it needs root: containers of a daemon are root's, and a user may give them neither a link nor limits",
                "Run as root, or use an engine without a daemon",
            ));
        }
        if let Err(refusal) = self.client() {
            return Availability::Unavailable(refusal);
        }
        if let Some(unavailable) = self.settings.data.as_ref().and_then(DataDirectory::unavailable) {
            return unavailable;
        }
        Availability::Available {
            notes: host.limits_unavailable.iter().map(|why| format!("no limits: {why}")).collect(),
        }
    }

    fn check(&self, host: &HostView) -> Availability {
        let looked = self.look(host);
        if matches!(looked, Availability::Unavailable(_)) {
            return looked;
        }
        self.checked().map_or_else(Availability::Unavailable, |()| looked)
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
        sentences.extend(self.kind.disclosures.iter().map(|&sentence| sentence.to_owned()));
        if !self.settings.flags.is_empty() {
            sentences.push(format!("The engine is run with the arguments `{}`.", self.settings.flags.join(" ")));
        }
        sentences.extend(self.settings.data.as_ref().and_then(DataDirectory::disclosure));
        sentences
    }

    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        self.unmerged()
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.settings.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        let info = match self.client().and_then(|client| self.info(&client).cloned()) {
            Ok(info) => info,
            Err(refusal) => return vec![(self.kind.name.to_owned(), refusal.reason)],
        };
        let version = |&(name, at): &(&str, &str)| {
            let said = info.pointer(at)?.as_str()?.lines().next()?;
            Some((name.to_owned(), said.to_owned()))
        };
        self.kind.versions.iter().filter_map(version).collect()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let mut making = Making::new(site, spec);
        if let Some(refusal) = self.unmerged().filter(|_| spec.merge) {
            return Err(making.refused("have its memory merged", refusal));
        }
        let client = self.client().map_err(|refusal| making.refused("find the engine", refusal))?;
        let (info, image) = making.aside(|making| {
            let info = self.info(&client).map_err(|refusal| making.refused("ask the engine", refusal))?;
            let image = Image::ready(&self.settings, &client, site.state);
            Ok((info, image.map_err(|refusal| making.refused("have its image", refusal))?))
        })?;
        let data = making.data_directory(self.settings.data.as_ref(), Some(INSIDE))?;
        let netns = if self.kind.daemon { None } else { Some(making.attach()?) };
        making.limit()?;
        let held = Held::new(&client, site.run_id, &spec.name);
        let creation = Creation {
            name: &held.name,
            spec,
            run_id: site.run_id,
            agent: &absolute(site.agent),
            data: data.as_deref(),
            read_only: making.is_data_shared(),
            netns: netns.as_deref(),
            image: &image,
            runtime: self.settings.runtime.as_deref(),
            alone: (self.kind.alone)(info),
            further: (self.kind.create)(info, &self.settings),
            seccomp: making.confine(),
        };
        let (create, undo) = (creation.arguments(), held.clone());
        making.hold(self.kind.name, held.token(), Box::new(move || undo.take_away()))?;
        client.run(&create).map_err(|why| making.failed("make its container", why, SEE_ENGINE))?;

        let mut launch = plain_launch();
        launch.merge = spec.merge;
        launch.argv = client.argv(&["start", "--attach", "--interactive", &held.name]);
        let mut command = making.entering(&launch)?;
        command.envs(client.environment());
        if !self.kind.daemon {
            // What the engine leaves running for a moment to clean up is not taken for a part of the guest.
            command.env_remove(RUN_VARIABLE);
        }
        making.spawn_command(&mut command)?;
        making.hear_waiting()?;
        self.take_in(&mut making, &client, &held.name)?;
        making.let_begin()?;
        making.greet(site.timeout)?;
        making.finish(Particulars::default())
    }
}

/// What helps when an engine refuses.
const SEE_ENGINE: &str = "Try the same image with the engine by hand; its own log may say more";

impl Engine {
    /// The guest's first process, which the engine has started: into the lab and the control groups.
    fn take_in(&self, making: &mut Making<'_>, client: &Client, name: &str) -> Result<()> {
        let first = making.aside(|making| {
            let format = "{{json .State.Pid}}";
            let answer = client.json(&["inspect", "--type=container", "--format", format, name]);
            let pid = answer.and_then(|pid| {
                let pid = pid.as_u64().and_then(|pid| u32::try_from(pid).ok()).filter(|&pid| pid > 1);
                pid.ok_or_else(|| "the engine does not say it".into())
            });
            pid.map_err(|why| making.failed("find its first process", why, SEE_ENGINE))
        })?;
        if !is_of_run(first, making.site.run_id) {
            let why = format!("process {first} of this host is not it");
            let remedy = "The engine must run on this host and in its process namespace: not in a virtual machine, nor in a \
                          container";
            return Err(making.failed("find its first process", why, remedy));
        }
        making.kill_process_with_guest(first);
        if self.kind.daemon {
            making.attach_process(first)?;
        }
        making.take_in(first, parent_named(first, self.kind.monitor))?;
        if making.spec.merge {
            making.note(merging::row(Some(first)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
