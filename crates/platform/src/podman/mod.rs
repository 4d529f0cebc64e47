//! `podman`: guests that Podman makes and starts, as root or as a user.
//!
//! It has no daemon: the container is started by the program that tare runs, in the network namespace that the lab has made.
//! Without root that program is in tare's own user namespace, and uses the user's own images.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_lab::is_rootless;
use tare_model::{Refusal, Span};

use crate::data_directory::DataDirectory;
use crate::engine::{self, Kind, Settings};
use crate::entry::Entry;
use crate::groups::Hierarchy;

pub(crate) const ENTRY: Entry = engine::entry::<Podman>(
    "containers of Podman, as root or as a user, from an image of yours or over the host's root",
    Span::from_millis(500),
);

struct Podman;

impl Kind for Podman {
    const NAME: &'static str = "podman";
    const PACKAGE: &'static str = "podman";
    const DAEMON: bool = false;
    const MONITOR: &'static str = "conmon";
    const VERSIONS: &'static [(&'static str, &'static str)] = &[
        ("podman", "/version/Version"),
        ("podman's runtime", "/host/ociRuntime/version"),
        ("podman's monitor", "/host/conmon/version"),
        ("podman's storage driver", "/store/graphDriverName"),
    ];
    const DISCLOSURES: &'static [&'static str] = &[
        "The CPU time of the container's monitor, conmon, counts with the guest's. That of the program that carries what the agent \
         says does not; it carries none of the guest's network traffic.",
    ];

    type Options = Options;

    fn arguments(_: &Settings) -> Result<Vec<String>, Refusal> {
        Ok(Vec::new())
    }

    fn create(info: &Value, settings: &Settings) -> Vec<String> {
        let mut further: Vec<String> =
            ["--http-proxy=false", "--systemd=false", "--init=false", "--pids-limit=-1"].map(str::to_owned).into();
        if is_rootless() && is_usual(info, settings) {
            // It would ask a manager of the user's for groups that the guest leaves at once. Only this runtime can do without.
            further.retain(|argument| !argument.starts_with("--pids-limit"));
            further.push("--cgroups=disabled".into());
        }
        further
    }

    fn alone(_: &Value) -> &'static str {
        "bind-nonrecursive"
    }

    fn objection(info: &Value, settings: &Settings) -> Option<Refusal> {
        if info.pointer("/host/serviceIsRemote").and_then(Value::as_bool) == Some(true) {
            return Some(Refusal::new(
                "it is set to work on another machine",
                "Run it on this host: without CONTAINER_HOST, CONTAINER_CONNECTION and `--remote`",
            ));
        }
        is_usual(info, settings).then(refuses_hybrid).flatten()
    }
}

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Options {
    /// The image: one that Podman has already, by its name, such as `"localhost/app:1"`; nothing is fetched. Left out: the host's
    /// root, its top directories shown read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// The runtime: a name that Podman knows, or a path. Left out: Podman's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<String>,
    /// Further arguments of `podman` that come before its command, such as `["--root", "/mnt/store"]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<String>,
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest, and with `log-directory` another for the log of a database. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataDirectory>,
}

impl From<Options> for Settings {
    fn from(Options { image, runtime, flags, data }: Options) -> Self {
        Self { host: None, image, runtime, flags, data }
    }
}

/// Whether the runtime that will be used is the engine's usual one.
fn is_usual(info: &Value, settings: &Settings) -> bool {
    let default = info.pointer("/host/ociRuntime/name").and_then(Value::as_str).unwrap_or_default();
    let runtime = settings.runtime.as_deref().unwrap_or(default);
    Path::new(runtime).file_name().is_some_and(|name| name == "crun")
}

/// The usual runtime refuses a host on which some controllers are in version 2 beside version 1.
fn refuses_hybrid() -> Option<Refusal> {
    let mounted = Hierarchy::mounted();
    let has_controllers = |hierarchy: &&Hierarchy| {
        let read = std::fs::read_to_string(hierarchy.at.join("cgroup.controllers"));
        hierarchy.version_2 && read.is_ok_and(|text| !text.trim().is_empty())
    };
    mounted.iter().find(|hierarchy| !hierarchy.version_2)?;
    let at = mounted.iter().find(has_controllers)?.at.display();
    let reason =
        format!("its runtime crun refuses control groups of both versions, and {at} has controllers beside version 1");
    Some(Refusal::new(
        reason,
        "Use the other runtime: `runtime = \"runc\"`; or boot with control groups of version 2 alone",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::check;
    use serde_json::json;

    #[test]
    fn a_wrong_option_is_named() {
        for (options, field) in [
            (json!({"image": "-x"}), "image"),
            (json!({"flags": "--debug"}), "flags"),
            (json!({"runtime": "/usr/bin/runsc"}), "runtime"),
        ] {
            assert_eq!(check::<engine::Engine<Podman>>(&options).unwrap_err().path, [field], "{options}");
        }
        let error = check::<engine::Engine<Podman>>(&json!({"host": "unix:///run/podman.sock"})).unwrap_err();
        assert!(error.to_string().contains("host"), "{error}");
        let options = json!({"image": "localhost/app:1", "runtime": "crun", "flags": ["--root", "/x"]});
        assert_eq!(check::<engine::Engine<Podman>>(&options).unwrap(), options);
    }

    #[test]
    fn the_runtime_is_the_studys_or_the_engines() {
        let info = json!({"host": {"ociRuntime": {"name": "crun"}}});
        let with = |runtime: Option<&str>| Settings { runtime: runtime.map(str::to_owned), ..Settings::default() };
        assert!(is_usual(&info, &with(None)));
        assert!(!is_usual(&info, &with(Some("runc"))));
        assert!(is_usual(&json!({}), &with(Some("/opt/bin/crun"))));
        assert!(!is_usual(&json!({}), &with(None)));
        let remote = json!({"host": {"serviceIsRemote": true}});
        assert!(Podman::objection(&remote, &with(None)).unwrap().reason.contains("another machine"));
    }
}
