//! Parameters of `http`.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::field::FieldError;
use tare_model::secret::SecretSource;

use super::request::PathOrRequest;
use crate::entry::read;
use crate::operations::VerdictOn;
use crate::secret;
use crate::url::Url;

/// Parameters of `http`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// Program and arguments of the service, started in each guest; in a guest that was made of a container image, a program of the image. `{address}` and `{port}` stand for what it is to listen on. No shell is
    /// used; write `["sh", "-c", "..."]` for one. It runs as the user nobody where the guest's agent is root, else as the agent, stays in the foreground, and is ended after the trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// In place of `command`: a service that is there already, `http://HOST:PORT` or `https://HOST:PORT`; `{guest}` as the host stands for the guest's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Port that the service is to listen on, with `command`. The user nobody has no port below 1024. Absent: 8080.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<NonZeroU16>,
    /// Whether the service of `command` speaks TLS. Whatever certificate it shows is taken.
    #[serde(skip_serializing_if = "is_false")]
    pub tls: bool,
    /// Environment variables added to the guest's, which has those of the container image that it was made of, if any: each a text, in which `{address}` and `{port}` are replaced as in `command`, or where its value is found
    /// when the run needs it, `{ from-env = "NAME" }` or `{ from-file = "/path" }`. The values are secrets: no report shows them.
    pub env: BTreeMap<String, SecretSource>,
    /// Working directory of the service in the guest. Absent: that of the container image that the guest was made of, or `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What is asked for: each a path, or a table. Which one comes next is drawn by their weights, from the study's seed. Before the load each is asked for once by each driver.
    pub requests: Vec<PathOrRequest>,
    /// Path that the service answers with any status from 200 to 299 once it is ready. Absent: it is ready once it answers the first of `requests` as that says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// The service must be ready so soon after its start.
    pub ready_within: Span,
    /// Whether a client keeps its connection or opens one for each request.
    pub connections: Connections,
    /// A request has failed, and counts as longer than all others, once nothing has come of its answer for this long.
    pub timeout: Span,
    /// What the verdict is about. Absent: the rate in a closed loop, the median response time in an open one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictOn>,
}

/// What happens to a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// The client's next request goes there, unless the service closes it.
    #[default]
    Kept,
    /// It is closed: each request has a new one, and its time includes that of connecting.
    New,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            url: None,
            port: None,
            tls: false,
            env: BTreeMap::new(),
            directory: None,
            requests: Vec::new(),
            ready: None,
            ready_within: Span::from_secs(60),
            connections: Connections::Kept,
            timeout: Span::from_secs(10),
            verdict: None,
        }
    }
}

/// Port of a service, where the study names none.
const PORT: u16 = 8080;
/// Most kinds of request.
const REQUESTS: usize = 1000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The parameters, or what is wrong with them.
pub(super) fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    service(&read)?;
    if !(1..=REQUESTS).contains(&read.requests.len()) {
        return Err(FieldError::new(
            &["requests"],
            format!("{} is not from 1 to {REQUESTS} of them", read.requests.len()),
        )
        .help("write what is asked for: requests = [\"/\"]"));
    }
    for (at, request) in read.requests.iter().enumerate() {
        request.0.check().map_err(|error| error.within(&["requests", &at.to_string()]))?;
    }
    if read.requests.iter().map(|request| request.0.weight).sum::<f64>() <= 0.0 {
        return Err(FieldError::new(&["requests"], "all have a weight of 0").help("give one a weight above 0"));
    }
    if let Some(path) = &read.ready {
        super::request::check_path(path).map_err(|error| error.within(&["ready"]))?;
    }
    for (field, span) in [("ready-within", read.ready_within), ("timeout", read.timeout)] {
        if span == Span::ZERO {
            return Err(FieldError::new(&[field], "0s leaves the service no time to answer"));
        }
    }
    Ok(read)
}

/// What is wrong with the service itself.
fn service(read: &Parameters) -> Result<(), FieldError> {
    let Some(url) = &read.url else {
        if read.command.first().is_none_or(String::is_empty) {
            let how = "write its program and arguments: command = [\"/usr/bin/python3\", \"-m\", \"http.server\", \"{port}\", \"--bind\", \
                       \"{address}\"]; or, for a service that is there, url = \"http://{guest}:8080\"";
            return Err(FieldError::new(&["command"], "there is no service to start").help(how));
        }
        if read.directory.as_ref().is_some_and(|directory| !directory.starts_with('/')) {
            return Err(FieldError::new(&["directory"], "it is no absolute path").help("begin it with a /"));
        }
        for (name, source) in &read.env {
            secret::look(source).map_err(|error| error.within(&["env", name]))?;
        }
        return Ok(());
    };
    Url::read(url, scheme(url)).map_err(|error| error.within(&["url"]))?;
    let of_command = [
        ("command", !read.command.is_empty()),
        ("port", read.port.is_some()),
        ("tls", read.tls),
        ("env", !read.env.is_empty()),
        ("directory", read.directory.is_some()),
    ];
    match of_command.into_iter().find(|(_, there)| *there) {
        Some((field, _)) => Err(FieldError::new(&[field], "with `url` none is started: it says where the service is")
            .help(format!("leave `{field}` out, or `url`"))),
        None => Ok(()),
    }
}

/// The scheme that an address has, or ought to have.
pub(super) fn scheme(url: &str) -> &'static str {
    if url.starts_with("https:") { "https" } else { "http" }
}

impl Parameters {
    /// Port of the service that is started.
    pub(super) fn port(&self) -> u16 {
        self.port.map_or(PORT, NonZeroU16::get)
    }
}

#[cfg(test)]
#[path = "../tests/parameters.rs"]
mod tests;
