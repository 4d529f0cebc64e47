//! Machines of VMware vSphere: reverted, started and stopped, and their performance counters read, by its API.
//!
//! The client is `govc`, the command line of VMware's own library (docs/adr/0036-vsphere.md). Where vSphere is and the login are the user's:
//! they come from govc's own environment, and tare neither reads nor keeps them.

mod counters;
mod facts;
mod govc;
mod machine;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;

use super::pool::{PLACEHOLDER, numbered};

pub(super) use counters::{Counters, Watched};
pub(super) use facts::Facts;
pub(super) use govc::{NAME as CLIENT, greet, installed, version};
pub(super) use machine::Machine;

/// A virtual machine of vSphere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Vsphere {
    /// Its name, or its inventory path (`/dc1/vm/tests/web-1`). `{guest}` in it stands for the number of a machine.
    pub vm: String,
    /// The snapshot that it is reverted to before each trial: its name, or its path in the tree of snapshots (`base/clean`).
    pub snapshot: String,
    /// Where vSphere's API is, such as `https://vc1.example.net/sdk`, without a user and a password. Default: GOVC_URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What a login is named elsewhere, and is not here.
const LOGIN: [&str; 6] = ["username", "user", "password", "token", "certificate", "private-key"];

/// Where a login belongs.
const LOGIN_REMEDY: &str = "leave it out: govc's own environment holds the login (GOVC_USERNAME and GOVC_PASSWORD, or the session of \
                            `govc session.login`), and it is written nowhere";

/// Refuses a login among the options, before anything else is said of them: their values are shown nowhere.
///
/// # Errors
/// The field that holds one.
pub(super) fn refuse_login(options: &Value) -> Result<(), FieldError> {
    let Some(written) = options.get("vsphere").and_then(Value::as_object) else { return Ok(()) };
    if let Some(field) = LOGIN.into_iter().find(|field| written.contains_key(*field)) {
        return Err(FieldError::new(&["vsphere", field], "a login does not belong into a study").help(LOGIN_REMEDY));
    }
    let holds_one = |text: &str| {
        let host = text.split_once("://").map_or(text, |(_, rest)| rest);
        host.split('/').next().is_some_and(|host| host.contains('@'))
    };
    match written.iter().find(|(field, value)| *field == "url" && value.as_str().is_some_and(holds_one)) {
        Some((field, _)) => {
            let why = "a user and a password do not belong into a study";
            Err(FieldError::new(&["vsphere", field], why)
                .help("write the URL without them; GOVC_USERNAME and GOVC_PASSWORD hold the login"))
        }
        None => Ok(()),
    }
}

impl Vsphere {
    /// That of one machine.
    pub(super) fn of(&self, number: u32) -> Self {
        Self { vm: numbered(&self.vm, number), ..self.clone() }
    }

    /// Whether it names one machine and one snapshot; `several`: each of several machines.
    pub(super) fn check(&self, several: bool) -> Result<(), FieldError> {
        let wrong = |field: &str, why: String, help: &str| Err(FieldError::new(&["vsphere", field], why).help(help));
        let urls = self.url.iter().map(|url| ("url", url));
        for (field, text) in [("vm", &self.vm), ("snapshot", &self.snapshot)].into_iter().chain(urls) {
            if text.trim().is_empty() || text.starts_with('-') || text.contains(char::is_control) {
                let why = format!("{text:?} is empty, begins with `-` or has control characters in it");
                return wrong(field, why, "write it as vSphere shows it");
            }
        }
        // govc takes these for patterns, and would act on all machines that they match.
        if self.vm.contains(['*', '?', '[', ']', '\\']) || self.vm.contains("...") {
            return wrong(
                "vm",
                format!("{:?} is a pattern, and may match other machines", self.vm),
                "write the name of one machine",
            );
        }
        if several && !self.vm.contains(PLACEHOLDER) {
            let why = format!("several machines cannot all be {:?}", self.vm);
            return wrong("vm", why, "write their number as `{guest}`, such as \"web-{guest}\"");
        }
        match self.url.as_ref().filter(|url| url.contains(char::is_whitespace) || url.contains(['?', '#'])) {
            Some(url) => wrong("url", format!("{url:?} is no URL of an API"), "write \"https://vc1.example.net/sdk\""),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_login_is_refused_and_not_repeated() {
        let refused = |field: &str, value: &str| {
            let mut options = json!({"host": "a", "vsphere": {"vm": "web", "snapshot": "clean"}});
            options["vsphere"][field] = json!(value);
            let error = refuse_login(&options).unwrap_err();
            assert_eq!(error.path, ["vsphere", field]);
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            assert!(format!("{error:?}").contains("GOVC_USERNAME"), "{error:?}");
        };
        refused("password", "hunter2");
        refused("username", "hunter2");
        for url in ["https://me:hunter2@vc1/sdk", "me:hunter2@vc1", "https://hunter2@vc1"] {
            refused("url", url);
        }
        let fine = json!({"vsphere": {"vm": "a", "snapshot": "b", "url": "https://vc1.example.net/sdk"}});
        assert_eq!(refuse_login(&fine), Ok(()));
    }

    #[test]
    fn it_names_one_machine_and_one_snapshot() {
        let check = |vm: &str, snapshot: &str, url: Option<&str>, several| {
            let of = Vsphere { vm: vm.into(), snapshot: snapshot.into(), url: url.map(str::to_owned) };
            of.check(several).map_err(|error| error.path.join("."))
        };
        assert_eq!(check("/dc1/vm/web {guest}", "base/clean", Some("https://vc1/sdk"), true), Ok(()));
        for vm in ["", "-off", "web-*", "web-[12]", "web?", "/dc1/vm/...", "a\nb"] {
            assert_eq!(check(vm, "clean", None, false), Err("vsphere.vm".into()), "{vm:?}");
        }
        assert_eq!(check("web", "clean", None, true), Err("vsphere.vm".into()));
        assert_eq!(check("web", " ", None, false), Err("vsphere.snapshot".into()));
        assert_eq!(check("web", "clean", Some("https://vc1/sdk?x"), false), Err("vsphere.url".into()));
        let second = Vsphere { vm: "web-{guest}".into(), snapshot: "clean".into(), url: None }.of(2);
        assert_eq!(second.vm, "web-2");
    }
}
