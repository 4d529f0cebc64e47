//! The machine at the other end, and the system's ssh on the way to it.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tare_lab::RUN_VARIABLE;

use super::key::HostKey;
use super::options::Options;
use super::program::{Ended, run, shown};
use crate::program::{PATH, find};

/// Settings of ssh for every machine.
const SETTINGS: &[&str] = &[
    // Nobody is there to be asked.
    "BatchMode=yes",
    "ConnectTimeout=10",
    // A connection over which nothing came for so many seconds is asked for a sign of life, and given up after three
    // without an answer.
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    // Or a key that is pinned for this host would not be looked at.
    "NoHostAuthenticationForLocalhost=no",
    // A connection of somebody else's would not be checked against the pinned key, and one of ours that others use
    // would outlive the run.
    "ControlMaster=no",
    "ControlPath=none",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "LogLevel=ERROR",
];
/// Exit code of ssh itself, when it could not connect or log in.
const NOT_CONNECTED: i32 = 255;

/// Everything that ssh needs to know to find the machine again, also from the ledger of a dead run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Destination {
    host: String,
    user: Option<String>,
    port: Option<u16>,
    host_key: Option<String>,
    identity: Option<PathBuf>,
    config: Option<PathBuf>,
}

/// Why a conversation with the machine failed.
#[derive(Debug)]
pub(super) struct Failed {
    /// What happened, with what ssh said.
    pub why: String,
    /// What would help.
    pub remedy: String,
    /// Whether the machine was not reached at all.
    pub unreached: bool,
}

impl Failed {
    /// Whether another attempt would fail alike: a machine that is another than the one that is meant stays so.
    pub(super) fn is_final(&self) -> bool {
        self.why.contains("Host key verification failed")
    }
}

impl Destination {
    /// The machine, as it was written.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn of(options: &Options) -> Self {
        let Options { host, user, port, host_key, identity, config, .. } = options.clone();
        // Reaping may be asked for from another directory. A path from `~` on is ssh's own to expand.
        let lasting =
            |path: PathBuf| if path.starts_with("~") { path } else { std::path::absolute(&path).unwrap_or(path) };
        Self { host, user, port, host_key, identity: identity.map(lasting), config: config.map(lasting) }
    }

    /// The ssh command with all arguments before the host.
    fn ssh(&self, run_id: &str) -> Result<Command, Failed> {
        let Some(program) = find("ssh") else {
            return Err(Failed {
                why: "there is no program `ssh` on this host".into(),
                remedy: "Install the OpenSSH client (Debian: `apt install openssh-client`)".into(),
                unreached: true,
            });
        };
        let mut command = Command::new(program);
        command.env_clear().env("PATH", PATH).env("LANG", "C.UTF-8").env(RUN_VARIABLE, run_id);
        // BatchMode is not passed on to an ssh that is only on the way (ProxyJump). One that would ask something all the
        // same asks a program that never answers, and not the terminal.
        command.env("SSH_ASKPASS", "/bin/false").env("SSH_ASKPASS_REQUIRE", "force");
        // The user's own keys and agent; nothing else of the user's shell.
        for name in ["HOME", "SSH_AUTH_SOCK"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        let settings = SETTINGS.iter().map(|setting| (*setting).to_owned()).chain(self.pinned()?);
        for setting in settings {
            command.args(["-o", &setting]);
        }
        if let Some(identity) = &self.identity {
            command.args(["-o", "IdentitiesOnly=yes", "-i"]).arg(identity);
        }
        if let Some(user) = &self.user {
            command.args(["-l", user]);
        }
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        Ok(command)
    }

    /// Settings of ssh for the host key, where one is pinned.
    fn pinned(&self) -> Result<Vec<String>, Failed> {
        let Some(text) = &self.host_key else { return Ok(Vec::new()) };
        let key =
            HostKey::parse(text).map_err(|why| Failed { why, remedy: "Mend `host-key`".into(), unreached: true })?;
        let mut all = vec![format!("KnownHostsCommand={}", key.command())];
        let others =
            ["UserKnownHostsFile=/dev/null", "GlobalKnownHostsFile=/dev/null", "CheckHostIP=no", "VerifyHostKeyDNS=no"];
        all.extend(others.map(str::to_owned));
        Ok(all)
    }

    /// ssh that runs a POSIX shell script there, with arguments that stay what they are whatever the login shell.
    pub(super) fn script(&self, run_id: &str, script: &str, arguments: &[&str]) -> Result<Command, Failed> {
        let mut command = self.ssh(run_id)?;
        let words = ["sh", "-c", script, "tare"].into_iter().chain(arguments.iter().copied());
        let line: Vec<String> = words.map(quoted).collect();
        command.arg("--").arg(&self.host).arg(line.join(" "));
        Ok(command)
    }

    /// Runs a script there to its end.
    pub(super) fn run(
        &self,
        run_id: &str,
        (script, arguments): (&str, &[&str]),
        input: Vec<u8>,
        limit: Duration,
    ) -> Result<Ended, Failed> {
        let mut command = self.script(run_id, script, arguments)?;
        let ended = run(&mut command, input, limit).map_err(|why| Failed {
            why,
            remedy: format!("Try `ssh {}` by hand", self.host),
            unreached: false,
        })?;
        if ended.code == Some(NOT_CONNECTED) { Err(self.not_connected(&ended)) } else { Ok(ended) }
    }

    /// What ssh itself said when it failed, and what helps.
    fn not_connected(&self, ended: &Ended) -> Failed {
        let said = shown(&ended.said);
        let has = |words: &str| said.contains(words);
        let remedy = if has("Host key verification failed") || has("REMOTE HOST IDENTIFICATION") {
            let how = "compare `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` there";
            if self.host_key.is_some() {
                format!(
                    "The machine does not have the key that `host-key` pins: {how}; never pin what a stranger shows"
                )
            } else {
                format!("Its key is not in your known_hosts: {how}, then add it, or pin it as `host-key`")
            }
        } else if has("Permission denied") {
            "Nothing is asked for here: load the key into your ssh agent, or name a file without passphrase as `identity`"
                .into()
        } else if has("Could not resolve") {
            "Write an address, or a name or alias that your ssh configuration knows, as `host`".into()
        } else if has("Bad configuration option") || has("command-line") {
            "A pinned host key takes OpenSSH 8.5 or newer on this host; without `host-key` your known_hosts is used"
                .into()
        } else {
            format!("Is the machine up, and does `ssh -o BatchMode=yes {}` work by hand?", self.host)
        };
        Failed { why: format!("ssh to {}: {said}", self.host), remedy, unreached: true }
    }

    /// The address that ssh would connect to.
    pub(super) fn address(&self, run_id: &str) -> Result<IpAddr, Failed> {
        let failed = |why: String| Failed {
            why,
            remedy: "Write its IP address, as the client reaches it, as `address`".into(),
            unreached: false,
        };
        let mut command = self.ssh(run_id)?;
        command.args(["-G", "--"]).arg(&self.host);
        let limit = Duration::from_secs(10);
        let ended = run(&mut command, Vec::new(), limit).map_err(&failed)?;
        if ended.code != Some(0) {
            return Err(failed(format!("`ssh -G {}`: {}", self.host, ended.words())));
        }
        let value = |name: &str| {
            let mut lines = ended.output.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, value)| *key == name && *value != "none").map(|(_, value)| value.trim().to_owned())
        };
        if value("proxyjump").is_some() || value("proxycommand").is_some() {
            return Err(failed(format!("{} is reached through another host, so its address is not known", self.host)));
        }
        let name = value("hostname").unwrap_or_else(|| self.host.clone());
        if let Ok(address) = name.parse() {
            return Ok(address);
        }
        let resolved = (name.as_str(), 0)
            .to_socket_addrs()
            .map_err(|error| failed(format!("the name {name} has no address: {error}")))?;
        let all: Vec<IpAddr> = resolved.map(|address| address.ip()).collect();
        let first = all.iter().find(|address| address.is_ipv4()).or_else(|| all.first());
        first.copied().ok_or_else(|| failed(format!("the name {name} has no address")))
    }
}

/// The system's ssh; why not.
pub(super) fn program() -> Result<PathBuf, String> {
    find("ssh").ok_or_else(|| "there is no program `ssh` on this host".to_owned())
}

/// Version of the system's ssh, such as `OpenSSH_9.2p1`; why not.
pub(super) fn version() -> Result<String, String> {
    let mut command = Command::new(program()?);
    let ended = run(command.arg("-V").env_clear().env("PATH", PATH), Vec::new(), Duration::from_secs(10))?;
    let words = ended.words();
    words.split([',', ' ', '\n']).next().map(str::to_owned).ok_or_else(|| "ssh does not tell its version".into())
}

/// A word as any shell reads it back: POSIX ones, csh and fish alike, as long as it holds no backslash.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn destination(options: &serde_json::Value) -> Destination {
        Destination::of(&crate::options::read(options).unwrap())
    }

    #[test]
    fn a_shell_gives_words_back_as_they_were() {
        for word in ["", "a b", "it's", "$(reboot)", "`reboot`", "a;b", "\"", "-n", "*", "a\nb"] {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &format!("printf %s {}", quoted(word))]);
            let ended = run(&mut command, Vec::new(), Duration::from_secs(20)).unwrap();
            assert_eq!(ended.output, word);
        }
    }

    #[test]
    fn ssh_gets_all_that_the_study_says_and_asks_for_nothing() {
        if find("ssh").is_none() {
            return;
        }
        let options = json!({"host": "vm1", "user": "me", "port": 2222, "identity": "/k", "config": "/c",
            "host-key": format!("SHA256:{}", "a".repeat(43))});
        let command = destination(&options).script("run-1", "exit 0", &["it's"]).unwrap();
        let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        for expected in ["BatchMode=yes", "StrictHostKeyChecking=yes", "me", "2222", "/k", "/c", "vm1"] {
            assert!(words.iter().any(|word| word == expected), "{expected}: {words:?}");
        }
        // Nor does an ssh on the way there, to which BatchMode is not passed on.
        assert!(
            command.get_envs().any(|(name, value)| name == "SSH_ASKPASS_REQUIRE" && value == Some("force".as_ref()))
        );
        assert_eq!(words.last().unwrap(), "'sh' '-c' 'exit 0' 'tare' 'it'\\''s'");
        let token = serde_json::to_value(destination(&options)).unwrap();
        assert_eq!(serde_json::from_value::<Destination>(token).unwrap(), destination(&options));
    }

    #[test]
    fn an_address_needs_no_resolver() {
        if find("ssh").is_none() {
            return;
        }
        let plain = json!({"host": "127.0.0.1", "config": "/dev/null"});
        assert_eq!(destination(&plain).address("r").unwrap(), IpAddr::from([127, 0, 0, 1]));
    }
}
