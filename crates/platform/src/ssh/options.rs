//! Options of the platform.

use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;

use super::key::HostKey;
use super::pool::{PLACEHOLDER, numbered};
use super::vsphere::{self, Vsphere};
use crate::options as common;

/// Options of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Options {
    /// Where to: a host name, an address, or an alias of your ssh configuration. `{guest}` in it, in `address`, `listen` and the commands
    /// stands for the number of a machine, where there are several.
    #[schemars(regex(pattern = r"^[^\s-]\S*$"))]
    pub host: String,
    /// How many such machines there are, numbered from 1; a trial takes as many as it needs. `host` then has `{guest}` in it.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 256))]
    pub machines: u32,
    /// The user there. Default: what your ssh configuration says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The port of its sshd. Default: what your ssh configuration says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// IP address under which the client reaches the servers there. Default: what `ssh -G` says that `host` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// IP address that servers bind to there, where that is another one (behind one-to-one NAT). Default: `address`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<Address>,
    /// The only host key that is accepted: `ssh-ed25519 AAAA...`, or its fingerprint `SHA256:...`. Default: what your
    /// known_hosts says; a key that is not there is refused, never accepted silently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
    /// A file with the key to log in with. Default: what your ssh configuration and your ssh agent offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<PathBuf>,
    /// An ssh configuration file to use instead of your own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// The agent's program for the machine's architecture. Default: the one beside `tare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PathBuf>,
    /// Directory there in which a directory of its own is made for the agent. Programs must be allowed to run in it.
    #[serde(default = "tmp")]
    pub directory: PathBuf,
    /// Run here before `start`, as program and arguments: brings the guest back to a known state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Vec<String>>,
    /// Run here before every trial, as program and arguments: starts the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Vec<String>>,
    /// Run here again and again until it succeeds, as program and arguments: whether the guest is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Vec<String>>,
    /// Run here after every trial, and by `tare reap`, as program and arguments: stops the guest. It has to succeed also
    /// where the guest is stopped already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Run here while a trial of the arm lasts: prints figures about the host under the guests, as lines `NAME VALUE`. They are shown in the
    /// report, and nothing is judged by them. Of a host that only offers load it is not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_metrics: Option<HostMetrics>,
    /// The machine as VMware vSphere has it: tare then reverts, starts and stops it by vSphere's API and reads its performance counters, in the
    /// place of `restore`, `start`, `stop` and `host-metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vsphere: Option<Vsphere>,
    /// How long each of the commands may take, and the guest to answer ssh after `start`.
    #[serde(default = "two_minutes")]
    pub command_timeout: Span,
    /// What it is: `guest` of some hypervisor, or a `host` of its own. For disclosure.
    #[serde(default)]
    pub kind: Kind,
}

/// A command that tells of the host under the guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct HostMetrics {
    /// Program and arguments, such as an ssh to the hypervisor. It may go on printing, or print and end, and is then run again.
    pub command: Vec<String>,
    /// From the start of one run to that of the next, where it ends by itself: 100ms to 1h.
    #[serde(default = "one_second")]
    pub interval: Span,
}

impl HostMetrics {
    /// Whether it can be run, once for all machines of the arm.
    fn check(&self) -> Result<(), FieldError> {
        let command = |why: &str| FieldError::new(&["host-metrics", "command"], why);
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(command("there is no program to run")
                .help("write the program and its arguments as a list: [\"ssh\", \"esx1\", \"sh\", \"/metrics.sh\"]"));
        }
        if self.command.iter().any(|word| word.contains(PLACEHOLDER)) {
            return Err(command("it is run once for all machines of the arm, of which `{guest}` names one").help(
                "name the host that carries them, and have it print the figures of each under names of its own",
            ));
        }
        if !(Span::from_millis(100)..=Span::from_secs(3600)).contains(&self.interval) {
            let why = format!("{} is no interval from 100ms to 1h", self.interval);
            return Err(FieldError::new(&["host-metrics", "interval"], why));
        }
        Ok(())
    }
}

/// An IP address, or what becomes one with the number of a machine in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Address(pub String);

impl Address {
    /// The address of a machine.
    pub(super) fn of(&self, number: u32) -> Option<IpAddr> {
        numbered(&self.0, number).parse().ok()
    }
}

/// What is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// A guest of some hypervisor.
    #[default]
    Guest,
    /// A machine without one.
    Host,
}

const fn one() -> u32 {
    1
}

/// Most machines of an arm: as many as guests can be measured at one time.
const MOST_MACHINES: u32 = 256;

impl Options {
    /// The options of one machine.
    pub(super) fn of(&self, number: u32) -> Self {
        let text = |text: &String| numbered(text, number);
        let address = |written: &Option<Address>| written.as_ref().map(|address| Address(text(&address.0)));
        let command = |argv: &Option<Vec<String>>| argv.as_ref().map(|argv| argv.iter().map(text).collect());
        Self {
            host: text(&self.host),
            machines: 1,
            address: address(&self.address),
            listen: address(&self.listen),
            restore: command(&self.restore),
            start: command(&self.start),
            ready: command(&self.ready),
            stop: command(&self.stop),
            vsphere: self.vsphere.as_ref().map(|vsphere| vsphere.of(number)),
            ..self.clone()
        }
    }

    /// Whether something starts or restores the machine before each trial.
    pub(super) fn begins_it(&self) -> bool {
        self.start.is_some() || self.restore.is_some() || self.vsphere.is_some()
    }

    /// Whether vSphere alone does what commands may do, too.
    fn by_vsphere(&self) -> Result<(), FieldError> {
        let Some(vsphere) = &self.vsphere else { return Ok(()) };
        let beside = [
            ("restore", self.restore.is_some()),
            ("start", self.start.is_some()),
            ("stop", self.stop.is_some()),
            ("host-metrics", self.host_metrics.is_some()),
        ];
        if let Some((field, _)) = beside.into_iter().find(|(_, written)| *written) {
            let why = format!("`vsphere` does that, and `{field}` would do it again");
            return Err(FieldError::new(&[field], why).help(format!("leave `{field}` out, or `vsphere`")));
        }
        if self.kind == Kind::Host {
            return Err(FieldError::new(&["kind"], "a machine of vSphere is a guest").help("leave `kind` out"));
        }
        vsphere.check(self.machines > 1)
    }

    /// Whether each of several machines has a name of its own, and each has an address that is one.
    fn numbers(&self) -> Result<(), FieldError> {
        if !(1..=MOST_MACHINES).contains(&self.machines) {
            let why = format!("{} is no number of machines", self.machines);
            return Err(FieldError::new(&["machines"], why).help(format!("write 1 to {MOST_MACHINES}")));
        }
        let several = self.machines > 1;
        if several && !self.host.contains(PLACEHOLDER) {
            let why = format!("{} machines cannot all be at {:?}", self.machines, self.host);
            return Err(FieldError::new(&["host"], why).help("write their number as `{guest}`, such as \"vm{guest}\""));
        }
        for (field, written) in [("address", &self.address), ("listen", &self.listen)] {
            let Some(written) = written else { continue };
            if several && !written.0.contains(PLACEHOLDER) {
                let why = format!("{} machines cannot all have {:?}", self.machines, written.0);
                return Err(FieldError::new(&[field], why).help("write their number as `{guest}`, or leave it out"));
            }
            if let Some(number) = (1..=self.machines).find(|number| written.of(*number).is_none()) {
                let why = format!("{:?} is no IP address", numbered(&written.0, number));
                return Err(FieldError::new(&[field], why).help("write an address such as \"192.0.2.12\""));
            }
        }
        Ok(())
    }
}

fn tmp() -> PathBuf {
    PathBuf::from("/tmp")
}

const fn one_second() -> Span {
    Span::from_secs(1)
}

const fn two_minutes() -> Span {
    Span::from_secs(120)
}

/// Checks options and fills in what was left out.
pub(super) fn read(value: &Value) -> Result<Options, FieldError> {
    vsphere::refuse_login(value)?;
    let options: Options = common::read(value)?;
    plain(&["host"], &numbered(&options.host, 1))?;
    options.numbers()?;
    if let Some(user) = &options.user {
        plain(&["user"], user)?;
    }
    if let Some(key) = &options.host_key {
        HostKey::parse(key).map_err(|why| {
            FieldError::new(&["host-key"], why)
                .help("copy it from /etc/ssh/ssh_host_ed25519_key.pub there, or from `ssh-keygen -lf` of that file")
        })?;
    }
    let directory = options.directory.to_string_lossy();
    if !options.directory.is_absolute() || directory.contains(char::is_control) {
        return Err(FieldError::new(&["directory"], format!("{directory:?} is no absolute path")));
    }
    let commands =
        [("restore", &options.restore), ("start", &options.start), ("ready", &options.ready), ("stop", &options.stop)];
    for (field, command) in commands {
        if command.as_ref().is_some_and(|argv| argv.first().is_none_or(|program| program.trim().is_empty())) {
            return Err(FieldError::new(&[field], "there is no program to run")
                .help("write the program and its arguments as a list: [\"vim-cmd\", \"vmsvc/power.on\", \"12\"]"));
        }
    }
    options.host_metrics.as_ref().map_or(Ok(()), HostMetrics::check)?;
    options.by_vsphere()?;
    if options.command_timeout == Span::ZERO {
        return Err(FieldError::new(&["command-timeout"], "0s leaves the commands no time"));
    }
    Ok(options)
}

/// A word that ssh cannot take for an option, nor for several words.
fn plain(path: &[&str], word: &str) -> Result<(), FieldError> {
    let wrong = if word.is_empty() {
        "is empty"
    } else if word.starts_with('-') {
        "begins with `-`, as options do"
    } else if word.contains(|c: char| c.is_whitespace() || c.is_control()) {
        "has blanks in it"
    } else if word.contains(['\'', '"', '`', '$', ';', '&', '|', '<', '>', '(', ')', '{', '}']) {
        // A ProxyCommand of the user's gives it to a shell (CVE-2023-51385); newer clients refuse the same signs.
        "has signs in it that a shell would take for its own"
    } else {
        return Ok(());
    };
    Err(FieldError::new(path, format!("{word:?} {wrong}")).help("write it as you would behind `ssh`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry;

    fn check(options: &Value) -> Result<Value, FieldError> {
        entry::check::<super::super::Ssh>(options)
    }
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let field = |value: Value| check(&value).unwrap_err().path.join(".");
        assert!(check(&json!({})).unwrap_err().to_string().contains("host"));
        assert_eq!(field(json!({"host": "-oProxyCommand=x"})), "host");
        for host in ["a b", "`id`", "$(id)", "a;id", "a'b", "a\nb", ""] {
            assert_eq!(field(json!({"host": host})), "host");
        }
        assert_eq!(field(json!({"host": "a", "user": "$(id)"})), "user");
        assert_eq!(field(json!({"host": "a", "user": "-l"})), "user");
        assert_eq!(field(json!({"host": "a", "host-key": "no key"})), "host-key");
        assert_eq!(field(json!({"host": "a", "address": "a.example"})), "address");
        assert_eq!(field(json!({"host": "a", "directory": "tmp"})), "directory");
        assert_eq!(field(json!({"host": "a{guest}", "machines": 0})), "machines");
        assert_eq!(field(json!({"host": "a", "machines": 2})), "host");
        assert_eq!(field(json!({"host": "a{guest}", "machines": 2, "address": "192.0.2.1"})), "address");
        assert_eq!(field(json!({"host": "a{guest}", "machines": 9, "listen": "192.0.2.25{guest}"})), "listen");
        assert_eq!(field(json!({"host": "a{other}", "machines": 2})), "host");
        assert_eq!(field(json!({"host": "a", "start": []})), "start");
        assert_eq!(field(json!({"host": "a", "stop": "halt"})), "stop");
        assert_eq!(field(json!({"host": "a", "command-timeout": "0s"})), "command-timeout");
        assert_eq!(field(json!({"host": "a", "kind": "cloud"})), "kind");
        let metrics = |value: Value| field(json!({"host": "a{guest}", "machines": 2, "host-metrics": value}));
        assert_eq!(metrics(json!({"command": []})), "host-metrics.command");
        assert_eq!(metrics(json!({"command": ["ssh", "esx{guest}"]})), "host-metrics.command");
        assert_eq!(metrics(json!({"command": ["x"], "interval": "1ms"})), "host-metrics.interval");
        assert_eq!(metrics(json!({"command": ["x"], "every": "1s"})), "host-metrics.every");
        let by_vsphere = |beside: &str, value: Value| {
            field(json!({"host": "a", "vsphere": {"vm": "web", "snapshot": "clean"}, beside: value}))
        };
        for command in ["restore", "start", "stop"] {
            assert_eq!(by_vsphere(command, json!(["true"])), command);
        }
        assert_eq!(by_vsphere("host-metrics", json!({"command": ["x"]})), "host-metrics");
        assert_eq!(by_vsphere("kind", json!("host")), "kind");
        assert_eq!(field(json!({"host": "a", "vsphere": {"vm": "web-*", "snapshot": "clean"}})), "vsphere.vm");
        assert_eq!(
            field(json!({"host": "a", "vsphere": {"vm": "web", "snapshot": "c", "password": "x"}})),
            "vsphere.password"
        );
        let ready = json!({"host": "a", "ready": ["true"], "vsphere": {"vm": "web", "snapshot": "clean"}});
        assert!(check(&ready).is_ok(), "whether it is ready is another question");
    }

    #[test]
    fn each_of_several_machines_has_its_number_wherever_it_is_written() {
        let several = json!({
            "host": "vm{guest}", "machines": 3, "address": "192.0.2.1{guest}", "start": ["govc", "vm.power", "-on", "vm{guest}"],
        });
        let third = read(&several).unwrap().of(3);
        assert_eq!((third.host.as_str(), third.machines), ("vm3", 1));
        assert_eq!(third.address.and_then(|address| address.of(1)), "192.0.2.13".parse().ok());
        assert_eq!(third.start.unwrap()[3], "vm3");
    }

    #[test]
    fn what_was_left_out_is_filled_in() {
        let filled = check(&json!({"host": "vm1", "start": ["true"]})).unwrap();
        assert_eq!((&filled["directory"], &filled["kind"]), (&json!("/tmp"), &json!("guest")));
        let reported = check(&json!({"host": "vm1", "host-metrics": {"command": ["esxtop-lines"]}})).unwrap();
        assert_eq!(reported["host-metrics"]["interval"], "1s");
        assert_eq!(check(&filled).unwrap(), filled);
    }
}
