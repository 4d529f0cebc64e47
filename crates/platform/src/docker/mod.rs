//! `docker`: guests that Docker's daemon makes and starts.
//!
//! The daemon takes no network namespace by path: the container is made without a network, and the lab's link is made in the
//! namespace that it got, by the number of its first process.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::{Refusal, Span};

use crate::data_directory::DataDirectory;
use crate::engine::{self, Kind, Settings};
use crate::entry::Entry;

/// Where the daemon listens unless the study or the environment says otherwise.
const SOCKET: &str = "unix:///var/run/docker.sock";

/// The variable with which users say where.
const HOST_VARIABLE: &str = "DOCKER_HOST";

pub(crate) const ENTRY: Entry = engine::entry::<Docker>(
    "containers of Docker's daemon, from an image of yours or over the host's root",
    Span::from_millis(400),
);

struct Docker;

impl Kind for Docker {
    const NAME: &'static str = "docker";
    const PACKAGE: &'static str = "docker.io";
    const DAEMON: bool = true;
    // The first 15 characters of its shim.
    const MONITOR: &'static str = "containerd-shim";
    const VERSIONS: &'static [(&'static str, &'static str)] = &[
        ("docker", "/ServerVersion"),
        ("docker's storage driver", "/Driver"),
        ("docker's default runtime", "/DefaultRuntime"),
        ("docker's control groups", "/CgroupDriver"),
    ];
    const DISCLOSURES: &'static [&'static str] = &[
        "The CPU time of the container's shim counts with the guest's. That of the daemons, dockerd and containerd, does not: they \
         serve all containers of the host. They start and remove guests, and carry what the agent says, but none of its network \
         traffic.",
        "Where the host has control groups of version 2 alone, Docker's runtime enables every controller at the root of \
         them with its first container, for all groups of the host, and leaves it so.",
    ];

    type Options = Options;

    /// The daemon's socket, which must be there; and no configuration of the user's, whose proxies would be set in containers.
    fn arguments(settings: &Settings) -> Result<Vec<String>, Refusal> {
        let given = settings.host.clone().or_else(|| std::env::var(HOST_VARIABLE).ok().filter(|host| !host.is_empty()));
        let host = given.unwrap_or_else(|| SOCKET.to_owned());
        let Some(path) = host.strip_prefix("unix://") else {
            let reason = format!("{HOST_VARIABLE} is `{host}`, which is no socket of this host");
            return Err(Refusal::new(reason, "Name the socket of a daemon on this host by `host = \"unix:///...\"`"));
        };
        let found = Path::new(path).metadata().map(|found| found.file_type().is_socket());
        let why = match found {
            Ok(true) => return Ok(["--config", "/nonexistent", "--host", &host].map(str::to_owned).into()),
            Ok(false) => "it is no socket".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Refusal::new(
            format!("no daemon listens at {path}: {why}"),
            "Start it: `systemctl start docker`; or name its socket by `host = \"unix:///...\"`",
        ))
    }

    fn create(_: &Value, _: &Settings) -> Vec<String> {
        // Where the daemon shifts users, guests are as on every arm all the same.
        vec!["--userns=host".into(), "--init=false".into()]
    }

    /// Since version 25 the program has another word for it.
    fn alone(info: &Value) -> &'static str {
        let version = info.pointer("/ClientInfo/Version").and_then(Value::as_str).unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_some_and(|major| major >= 25) { "bind-recursive=disabled" } else { "bind-nonrecursive" }
    }

    fn objection(info: &Value, settings: &Settings) -> Option<Refusal> {
        let said = |at: &str| info.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let options = info["SecurityOptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if options.into_iter().any(|option| option.contains("rootless")) {
            return Some(Refusal::new(
                "its daemon runs without root, in a network namespace of its own",
                "Name the socket of a daemon that runs as root by `host`, or use an engine without a daemon",
            ));
        }
        if said("/OperatingSystem").contains("Docker Desktop") || said("/OSType") != "linux" {
            let reason = format!("its daemon is in a virtual machine ({})", said("/OperatingSystem"));
            return Some(Refusal::new(reason, "Install Docker Engine on this host"));
        }
        let runtime = settings.runtime.as_ref()?;
        let known: Vec<&str> =
            info["Runtimes"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        // A shim of containerd's is named by its own name, and need not be configured.
        if known.contains(&runtime.as_str()) || runtime.starts_with("io.containerd.") {
            return None;
        }
        Some(Refusal::new(
            format!("its daemon knows no runtime `{runtime}`, only {}", known.join(", ")),
            "Add it to `runtimes` in /etc/docker/daemon.json and start the daemon anew",
        ))
    }
}

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Options {
    /// The image: one that Docker has already, by its name, such as `"localhost/app:1"`; nothing is fetched. Left out: the host's
    /// root, its top directories shown read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// The runtime: one that Docker is configured with, by its name there. Left out: Docker's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<String>,
    /// The daemon's socket, such as `"unix:///run/user/0/docker.sock"`. Left out: that of `DOCKER_HOST`, or
    /// `unix:///var/run/docker.sock`. Contexts of the command line are not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// Further arguments of `docker` that come before its command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<String>,
    /// Where the data lie that a workload gives its guests: a directory of the host's, `{ directory = "PATH" }`, which tare
    /// makes one of its own in for each guest, and with `log-directory` another for the log of a database. Left out: `/var/lib/tare-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataDirectory>,
}

impl From<Options> for Settings {
    fn from(Options { image, runtime, host, flags, data }: Options) -> Self {
        Self { host, image, runtime, flags, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::check;
    use serde_json::json;

    #[test]
    fn a_wrong_option_is_named() {
        for (options, field) in [
            (json!({"host": "ssh://x"}), "host"),
            (json!({"image": ""}), "image"),
            (json!({"flags": "--debug"}), "flags"),
            (json!({"runtime": "kata"}), "runtime"),
        ] {
            assert_eq!(check::<engine::Engine<Docker>>(&options).unwrap_err().path, [field], "{options}");
        }
        let options = json!({"image": "localhost/app:1", "host": "unix:///run/d.sock", "runtime": "crun"});
        assert_eq!(check::<engine::Engine<Docker>>(&options).unwrap(), options);
    }

    #[test]
    fn a_daemon_that_is_not_there_is_named_with_its_socket() {
        let at = |host: &str| Docker::arguments(&Settings { host: Some(host.into()), ..Settings::default() });
        let Refusal { reason, remedy } = at("unix:///nonexistent/docker.sock").unwrap_err();
        assert!(reason.contains("/nonexistent/docker.sock") && remedy.contains("systemctl start"), "{reason} {remedy}");
        assert!(at("unix:///etc/passwd").unwrap_err().reason.contains("no socket"));
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let host = format!("unix://{}", socket.display());
        assert_eq!(at(&host).unwrap(), ["--config", "/nonexistent", "--host", &host]);
    }

    #[test]
    fn a_mount_without_those_below_is_called_as_the_program_calls_it() {
        assert_eq!(Docker::alone(&json!({"ClientInfo": {"Debug": false}})), "bind-nonrecursive");
        assert_eq!(Docker::alone(&json!({"ClientInfo": {"Version": "24.0.7"}})), "bind-nonrecursive");
        assert_eq!(Docker::alone(&json!({"ClientInfo": {"Version": "28.2.2"}})), "bind-recursive=disabled");
    }

    #[test]
    fn daemons_that_cannot_be_used_are_refused() {
        let info = |change: Value| {
            let mut info = json!({"OSType": "linux", "OperatingSystem": "Debian", "SecurityOptions": ["name=seccomp"],
                "Runtimes": {"runc": {}, "crun": {}}});
            info.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            info
        };
        let plain = Settings::default();
        assert_eq!(Docker::objection(&info(json!({})), &plain), None);
        let rootless =
            Docker::objection(&info(json!({"SecurityOptions": ["name=seccomp", "name=rootless"]})), &plain).unwrap();
        assert!(rootless.reason.contains("without root"), "{rootless:?}");
        let desktop = Docker::objection(&info(json!({"OperatingSystem": "Docker Desktop"})), &plain).unwrap();
        assert!(desktop.reason.contains("virtual machine"), "{desktop:?}");
        let with = |runtime: &str| Settings { runtime: Some(runtime.into()), ..Settings::default() };
        assert_eq!(Docker::objection(&info(json!({})), &with("crun")), None);
        let unknown = Docker::objection(&info(json!({})), &with("youki")).unwrap();
        assert!(unknown.reason.contains("youki") && unknown.remedy.contains("daemon.json"), "{unknown:?}");
    }
}
