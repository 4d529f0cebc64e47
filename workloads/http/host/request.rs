//! Requests as a study writes them, and as they are sent.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tare_model::field::FieldError;
use tare_model::secret::SecretSource;

use super::spec::{Asked, Expected};
use crate::secret;

/// A request, of which a path alone says enough.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct PathOrRequest(pub Request);

/// A request and what its answer must be.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Request {
    /// Path, with the query if it has one, as it is sent: what is no printable ASCII is percent-encoded.
    pub path: String,
    /// Its method.
    #[serde(default)]
    pub method: Method,
    /// What is sent with it. `Content-Length` is added.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Header fields: each a text, or where its value is found when the run needs it, `{ from-env = "NAME" }` or `{ from-file = "/path" }`; what is found so is a secret, and no report shows it. `Host` is added where it is not here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretSource>,
    /// How often it is chosen, against the weights of the others.
    #[serde(default = "one")]
    pub weight: f64,
    /// What its answer must be. A wrong answer makes the trial invalid.
    #[serde(default)]
    pub expect: Expect,
}

/// A method of HTTP whose answers have a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

/// What an answer must be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Expect {
    /// Its status. Absent: any from 200 to 299.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// A text that its body contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Length of its body, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// SHA-256 of its body, 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

const fn one() -> f64 {
    1.0
}

impl Request {
    /// GET of a path, to be answered by any status from 200 to 299.
    pub(super) fn of_path(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            method: Method::Get,
            body: String::new(),
            headers: BTreeMap::new(),
            weight: one(),
            expect: Expect::default(),
        }
    }
}

impl<'de> Deserialize<'de> for PathOrRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Request;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path such as \"/\", or a table such as { path = \"/\", weight = 3 }")
            }

            fn visit_str<E: Error>(self, path: &str) -> Result<Request, E> {
                Ok(Request::of_path(path))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Request, A::Error> {
                Request::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(Either).map(Self)
    }
}

impl JsonSchema for PathOrRequest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PathOrRequest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What is asked for: the path of a GET, or a table.",
            "anyOf": [{ "type": "string" }, generator.subschema_for::<Request>()]
        })
    }
}

/// Header fields that tare itself writes, because they decide where a message ends.
const OWN: [&str; 3] = ["connection", "content-length", "transfer-encoding"];
/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;
/// Most bytes of a body.
const BODY_BYTES: usize = 1 << 20;

/// Refuses what cannot be sent as a path.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_path(path: &str) -> Result<(), FieldError> {
    let holds = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    let why = || format!("`{path}` is no path that can be asked for");
    let how = "begin it with a /, leave the host out, and percent-encode blanks and what is not ASCII";
    if holds { Ok(()) } else { Err(FieldError::new(&[], why()).help(how)) }
}

impl Request {
    /// Refuses what cannot be asked for.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        check_path(&self.path).map_err(|error| error.within(&["path"]))?;
        if !(self.weight.is_finite() && self.weight >= 0.0) {
            return Err(FieldError::new(&["weight"], format!("{} is no weight", self.weight)).help("write 0 or more"));
        }
        if self.body.len() > BODY_BYTES {
            return Err(FieldError::new(&["body"], format!("it is longer than {BODY_BYTES} bytes")));
        }
        for (name, source) in &self.headers {
            let refused = |why: String, how: &str| Err(FieldError::new(&["headers", name], why).help(how));
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(token) {
                return refused(format!("`{name}` is no name of a header field"), "write one such as `Accept`");
            }
            if OWN.contains(&name.to_ascii_lowercase().as_str()) {
                return refused(
                    "tare writes this one itself".to_owned(),
                    "leave it out; `connections` says whether they are kept",
                );
            }
            secret::look(source).map_err(|error| error.within(&["headers", name]))?;
            if let SecretSource::Given(value) = source {
                check_value(name, value)?;
            }
        }
        self.expect.check().map_err(|error| error.within(&["expect"]))
    }

    /// The request as it is sent to a server of this name; `closes`: nothing else is asked for on its connection.
    ///
    /// # Errors
    /// When a secret is not found.
    pub(super) fn asked(&self, host: &str, closes: bool) -> Result<Asked, FieldError> {
        let name = format!("{} {}", self.method.word(), self.path);
        let mut head = format!("{name} HTTP/1.1\r\n");
        let mut field = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
        if !self.headers.keys().any(|name| name.eq_ignore_ascii_case("host")) {
            field("Host", host);
        }
        for (name, source) in &self.headers {
            let value = secret::resolve(source).map_err(|error| error.within(&["headers", name]))?;
            check_value(name, value.reveal())?;
            field(name, value.reveal());
        }
        if closes {
            field("Connection", "close");
        }
        if !self.body.is_empty() || self.method.carries() {
            field("Content-Length", &self.body.len().to_string());
        }
        let text = [head.as_bytes(), b"\r\n", self.body.as_bytes()].concat();
        let repeats = !matches!(self.method, Method::Post | Method::Patch);
        Ok(Asked { name, text, repeats, weight: self.weight, expect: self.expect.expected()? })
    }
}

/// Refuses what would end a header field.
fn check_value(name: &str, value: &str) -> Result<(), FieldError> {
    let holds = value.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control());
    let wrong = || FieldError::new(&["headers", name], "its value has a control character in it");
    if holds { Ok(()) } else { Err(wrong().help("write it in one line")) }
}

impl Method {
    const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }

    /// A body is expected of it, so that an empty one is said to be empty (RFC 9110, section 8.6).
    const fn carries(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

impl Expect {
    fn check(&self) -> Result<(), FieldError> {
        if let Some(status) = self.status.filter(|status| !(200..600).contains(status)) {
            return Err(
                FieldError::new(&["status"], format!("{status} is no final status")).help("write one from 200 to 599")
            );
        }
        self.expected().map(drop)
    }

    /// As the driver has it.
    fn expected(&self) -> Result<Expected, FieldError> {
        let wrong = || {
            FieldError::new(&["sha256"], format!("it is not {DIGITS} hexadecimal digits"))
                .help("`sha256sum FILE` prints them")
        };
        let sha256 = self.sha256.as_deref().map(|text| digest(text).ok_or_else(wrong)).transpose()?;
        let contains = self.contains.clone().unwrap_or_default().into_bytes();
        Ok(Expected { status: self.status, contains, bytes: self.bytes, sha256 })
    }
}

/// The bytes of a SHA-256 in hexadecimal digits.
fn digest(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if digits.len() == DIGITS { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
#[path = "../tests/request.rs"]
mod tests;
