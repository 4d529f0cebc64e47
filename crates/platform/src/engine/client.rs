//! The engine's program.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_lab::is_rootless;
use tare_model::Refusal;

use super::{Kind, Settings};
use crate::program::{self, PATH, Ran};

/// How long the program may take for anything but running a guest. The first command after a boot may have storage to set right.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Of a user's environment, what says where the engine keeps things.
const USERS: [&str; 6] =
    ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"];

/// The program with what it is always given, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Client {
    /// Finds the program.
    ///
    /// # Errors
    /// Why it cannot be used, and the remedy.
    pub(super) fn find<K: Kind>(settings: &Settings) -> Result<Self, Refusal> {
        let program = program::installed(K::NAME, K::PACKAGE)?;
        let mut arguments = K::arguments(settings)?;
        arguments.extend(settings.flags.iter().cloned());
        let mut environment = vec![("PATH".to_owned(), PATH.to_owned()), ("LANG".to_owned(), "C.UTF-8".to_owned())];
        if is_rootless() {
            let users = USERS.iter().filter_map(|&name| Some((name.to_owned(), std::env::var(name).ok()?)));
            environment.extend(users);
        } else {
            environment.push(("HOME".to_owned(), "/root".to_owned()));
        }
        Ok(Self { program, arguments, environment })
    }

    /// The program with these arguments.
    pub(super) fn argv(&self, arguments: &[impl AsRef<str>]) -> Vec<String> {
        let mut argv = vec![self.program.to_string_lossy().into_owned()];
        argv.extend(self.arguments.iter().cloned());
        argv.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        argv
    }

    /// Its whole environment.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        [self.environment.clone(), in_own_namespace()].concat()
    }

    /// Runs a command to its end; what it printed.
    ///
    /// # Errors
    /// What it said when it failed.
    pub(super) fn run(&self, arguments: &[impl AsRef<str>]) -> Result<String, String> {
        let short: Vec<&str> = arguments.iter().map(AsRef::as_ref).take(2).collect();
        let tried = format!("`{} {}`", self.program.display(), short.join(" "));
        match self.ran(arguments) {
            Ok(Ran { success: true, output }) => Ok(output),
            Ok(Ran { output, .. }) => Err(format!("{tried} failed: {}", last_words(&output))),
            Err(error) => Err(format!("{tried} failed: {error}")),
        }
    }

    fn ran(&self, arguments: &[impl AsRef<str>]) -> std::io::Result<Ran> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(arguments.iter().map(AsRef::as_ref));
        command.env_clear().envs(self.environment());
        program::run(&mut command, TIMEOUT)
    }

    /// Runs a command that prints JSON.
    ///
    /// # Errors
    /// What it said instead.
    pub(super) fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        let printed = self.run(arguments)?;
        first_value(&printed)
            .ok_or_else(|| format!("`{}` prints no JSON: {}", arguments.join(" "), last_words(&printed)))
    }
}

/// The JSON at the beginning: warnings on standard error come after it.
fn first_value(printed: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(printed).into_iter().next()?.ok()
}

/// What was said last; before it there may be JSON, and advice.
fn last_words(output: &str) -> String {
    let lines: Vec<&str> =
        output.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['{', '}'])).collect();
    lines[lines.len().saturating_sub(3)..].join(" ")
}

/// Where this process is in a user namespace of tare's, the library that engines without a daemon share learns it: it would
/// make another one otherwise, in which nothing of the lab is the guest's.
fn in_own_namespace() -> Vec<(String, String)> {
    if !is_rootless() || !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    let outer = |file: &str| {
        let map = std::fs::read_to_string(file).unwrap_or_default();
        map.split_whitespace().nth(1).unwrap_or("0").to_owned()
    };
    vec![
        ("_CONTAINERS_USERNS_CONFIGURED".to_owned(), "done".to_owned()),
        ("_CONTAINERS_ROOTLESS_UID".to_owned(), outer("/proc/self/uid_map")),
        ("_CONTAINERS_ROOTLESS_GID".to_owned(), outer("/proc/self/gid_map")),
    ]
}

#[cfg(test)]
impl Client {
    /// One for tests.
    pub(super) fn of(program: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { program: program.into(), arguments, environment: vec![("PATH".into(), PATH.into())] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_and_warnings_behind_it_are_not() {
        let shell = |script: &str| Client::of("/bin/sh", &["-c"]).json(&[script]);
        assert_eq!(shell("echo 'WARNING: x' >&2; echo '{\"a\": 1}'").unwrap()["a"], 1);
        assert_eq!(shell("echo 17").unwrap(), 17);
        let why = shell("echo '{\"a\": null}'; echo 'Cannot connect' >&2; exit 1").unwrap_err();
        assert!(why.ends_with("failed: Cannot connect"), "{why}");
        assert!(shell("echo no").unwrap_err().contains("prints no JSON: no"));
    }

    #[test]
    fn the_environment_is_not_the_users() {
        let said = Client::of("/bin/sh", &["-c"]).run(&["env"]).unwrap();
        assert!(said.contains("PATH=") && !said.contains("CARGO"), "{said}");
    }
}
