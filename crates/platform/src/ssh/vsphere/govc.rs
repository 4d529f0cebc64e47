//! govc, the command line of vSphere's API: found, run and understood.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Map, Value};
use tare_lab::RUN_VARIABLE;
use tare_model::Refusal;
use tare_model::redact::{REDACTED, masked};

use super::Vsphere;
use crate::program::{self, find};
use crate::ssh::destination::Failed;
use crate::ssh::program::{Ended, run};

/// The program.
pub(in crate::ssh) const NAME: &str = "govc";

/// How long a question may take: vSphere answers within some hundred milliseconds, and a login takes as long.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Where an address or a login may stand. What they hold is shown nowhere.
const SECRETS: [&str; 2] = ["GOVC_PASSWORD", "GOVC_URL"];

/// What is in an answer where vSphere does not know the user.
const NO_LOGIN: [&str; 4] = ["Cannot complete login", "Login failure", "InvalidLogin", "NotAuthenticated"];
/// The same where nobody answers.
const UNREACHED: [&str; 7] = [
    "dial tcp",
    "connection refused",
    "no such host",
    "i/o timeout",
    "connection reset",
    "did not end within",
    "no route to host",
];

/// The absolute path of the program.
///
/// # Errors
/// That it is not here, and the remedy.
pub(in crate::ssh) fn installed() -> Result<PathBuf, Refusal> {
    let remedy = "Install it from https://github.com/vmware/govmomi/releases to a place of PATH, or leave `vsphere` out and write commands";
    let found = find(NAME).ok_or_else(|| Refusal::new(format!("there is no program `{NAME}` on this host"), remedy))?;
    Ok(std::path::absolute(&found).unwrap_or(found))
}

/// What it says for its version, such as `govc 0.55.0`.
///
/// # Errors
/// Why it does not run.
pub(in crate::ssh) fn version() -> Result<String, Refusal> {
    let ran = program::run(Command::new(installed()?).arg("version"), Duration::from_secs(10));
    let remedy = "Try `govc version` by hand";
    let ran = ran.map_err(|error| Refusal::new(format!("`govc version` failed: {error}"), remedy))?;
    match ran.output.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) if ran.success => Ok(line.to_owned()),
        said => Err(Refusal::new(format!("`govc version` failed: {}", said.unwrap_or("it said nothing")), remedy)),
    }
}

/// What vSphere says that it is, such as `VMware vCenter Server 8.0.2 build-22617221`.
///
/// # Errors
/// Why it does not answer.
pub(in crate::ssh) fn greet(of: &Vsphere, run_id: &str) -> Result<String, Failed> {
    let about = ask(of.url.as_deref(), run_id, &["about", "-json"])?;
    let name = about.pointer("/about/fullName").or_else(|| about.pointer("/About/FullName"));
    Ok(name.and_then(Value::as_str).unwrap_or("a vSphere that does not tell its version").to_owned())
}

/// Asks for JSON.
pub(super) fn ask(url: Option<&str>, run_id: &str, arguments: &[&str]) -> Result<Value, Failed> {
    let ended = call(url, run_id, arguments, ANSWER_LIMIT).map_err(|failed| {
        // As JSON a fault of vSphere's has its fields and not its name.
        let plain: Vec<&str> = arguments.iter().copied().filter(|word| *word != "-json").collect();
        let is_fault = failed.why.contains("\"Fault\"") || failed.why.contains("\"fault\"");
        if is_fault { call(url, run_id, &plain, ANSWER_LIMIT).err().unwrap_or(failed) } else { failed }
    })?;
    serde_json::from_str(&ended.output).map_err(|error| Failed {
        why: format!("the answer of `{}` is not understood: {error}", shown(arguments)),
        remedy: "It takes govc 0.31 or newer: see `govc version`".into(),
        unreached: false,
    })
}

/// The properties of an object that are set, by their names.
pub(super) fn properties(
    url: Option<&str>,
    run_id: &str,
    object: &str,
    names: &[&str],
) -> Result<Map<String, Value>, Failed> {
    let arguments: Vec<&str> = ["object.collect", "-json", object].iter().chain(names).copied().collect();
    let answer = ask(url, run_id, &arguments)?;
    let changes = answer.as_array().into_iter().flatten();
    let pairs =
        changes.filter_map(|change| Some((change.get("name")?.as_str()?.to_owned(), change.get("val")?.clone())));
    Ok(pairs.collect())
}

/// Runs it to its end, at most for `limit`.
pub(super) fn call(url: Option<&str>, run_id: &str, arguments: &[&str], limit: Duration) -> Result<Ended, Failed> {
    let program = installed().map_err(|Refusal { reason, remedy }| Failed { why: reason, remedy, unreached: false })?;
    let mut command = Command::new(program);
    command.args(arguments).env(RUN_VARIABLE, run_id);
    // What it would write of its conversation, the login in it, to a file or to where errors are read.
    command.env_remove("GOVC_DEBUG").env_remove("GOVC_DEBUG_PATH");
    if let Some(url) = url {
        command.env("GOVC_URL", url);
    }
    let failed = |why: &str| {
        let why = without_login(&format!("`{}`: {why}", shown(arguments)));
        Failed { remedy: remedy(&why, arguments), why, unreached: false }
    };
    let ended = run(&mut command, Vec::new(), limit).map_err(|why| failed(&why))?;
    if ended.code == Some(0) { Ok(ended) } else { Err(failed(&ended.words())) }
}

/// The command, for people.
fn shown(arguments: &[&str]) -> String {
    format!("{NAME} {}", arguments.join(" "))
}

/// A text without what the environment holds of a login.
fn without_login(text: &str) -> String {
    let mut text = masked(text, REDACTED);
    for secret in SECRETS.iter().filter_map(|name| std::env::var(name).ok()) {
        let userinfo = secret.rsplit_once('@').map(|(before, _)| before);
        let of_url = userinfo.and_then(|before| before.rsplit_once(':')).map(|(_, password)| password.to_owned());
        let whole = (!secret.contains("://") && userinfo.is_none()).then_some(secret.clone());
        for word in [of_url, whole].into_iter().flatten().filter(|word| word.chars().count() >= 4) {
            text = text.replace(&word, REDACTED);
        }
    }
    text
}

/// What helps, by what it said.
fn remedy(said: &str, arguments: &[&str]) -> String {
    let has = |words: &[&str]| words.iter().any(|words| said.contains(words));
    if has(&["specify an ESX or vCenter URL"]) {
        "Set GOVC_URL to where vSphere's API is, such as https://vc1.example.net/sdk, or write it as `url`".into()
    } else if has(&NO_LOGIN) {
        "Set GOVC_USERNAME and GOVC_PASSWORD to a login that vSphere knows, or log in with `govc session.login`".into()
    } else if has(&["x509", "certificate"]) {
        "Name who has signed its certificate by GOVC_TLS_CA_CERTS, or its fingerprint by GOVC_TLS_KNOWN_HOSTS; GOVC_INSECURE=1 trusts anybody"
            .into()
    } else if has(&["NoPermission", "Permission to perform"]) {
        "Give the user the privileges of docs/reference/vsphere.md on the machine".into()
    } else if has(&UNREACHED) {
        "Does `govc about` answer by hand, and is GOVC_URL where vSphere's API is?".into()
    } else {
        format!("Try `{}` by hand", shown(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_follows_from_what_was_said() {
        let helps = |said: &str| remedy(said, &["about"]);
        assert!(helps("govc: specify an ESX or vCenter URL").contains("GOVC_URL"));
        assert!(
            helps("ServerFaultCode: Cannot complete login due to an incorrect user name or password.")
                .contains("GOVC_PASSWORD")
        );
        assert!(helps("tls: failed to verify certificate: x509: unknown authority").contains("GOVC_TLS_CA_CERTS"));
        assert!(helps("Post \"https://vc1/sdk\": dial tcp: lookup vc1: no such host").contains("GOVC_URL"));
        assert!(helps("NoPermission").contains("privileges"));
        assert_eq!(helps("something else"), "Try `govc about` by hand");
    }

    #[test]
    fn a_url_is_shown_without_its_password() {
        let shown = without_login("Post \"https://me:hunter2@vc1.example.net/sdk\": dial tcp");
        assert!(!shown.contains("hunter2") && shown.contains("vc1.example.net"), "{shown}");
    }
}
