//! Secrets: what a study may give a workload and nobody else may read.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::redact::REDACTED;

/// A secret. It cannot be printed, and is written as a placeholder; only who asks for it by [`Self::reveal`] reads it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, to be handed to whom it is for.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(...)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

/// Where a secret comes from. Written as a text, or better as where it is found when it is needed, so that the study does
/// not hold it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a text, or where it is found: { from-env = \"NAME\" } or { from-file = \"/path\" }"
)]
pub enum SecretSource {
    /// The secret itself.
    Given(String),
    /// An environment variable of tare's.
    Env(FromEnv),
    /// A file of this host.
    File(FromFile),
}

/// A secret that an environment variable holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FromEnv {
    /// Name of the variable. It is read when the run needs it.
    pub from_env: String,
}

/// A secret that a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FromFile {
    /// Path of the file, at most 64 KiB. It is read when the run needs it; one line feed at its end does not belong to the secret.
    pub from_file: String,
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("Given(...)"),
            Self::Env(source) => source.fmt(f),
            Self::File(source) => source.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_is_neither_printed_nor_written() {
        let secret: Secret = serde_json::from_value(json!("hunter2")).unwrap();
        assert_eq!(secret.reveal(), "hunter2");
        assert_eq!(format!("{secret:?}"), "Secret(...)");
        assert_eq!(serde_json::to_value(&secret).unwrap(), json!(REDACTED));
        assert!(!format!("{:?}", SecretSource::Given("hunter2".into())).contains("hunter2"));
    }

    #[test]
    fn where_a_secret_is_found_is_written_in_one_of_three_ways() {
        let read = |value| serde_json::from_value::<SecretSource>(value);
        assert_eq!(read(json!("x")).unwrap(), SecretSource::Given("x".into()));
        assert_eq!(read(json!({"from-env": "X"})).unwrap(), SecretSource::Env(FromEnv { from_env: "X".into() }));
        assert_eq!(read(json!({"from-file": "/x"})).unwrap(), SecretSource::File(FromFile { from_file: "/x".into() }));
        for wrong in [json!({"from-env": "X", "from-file": "/x"}), json!({"from": "X"}), json!(7), json!({})] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("from-env") && error.contains("from-file"), "{error}");
        }
    }
}
