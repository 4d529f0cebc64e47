//! Options of platforms: from a JSON value to a type, with the field named when something is wrong.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tare_model::field::FieldError;

/// Options of a platform that has none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoOptions {}

/// The options as a type.
///
/// # Errors
/// Which field is wrong and why.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path: Vec<String> = error.path().iter().map(ToString::to_string).filter(|key| key != ".").collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        FieldError::new(&path, error.inner().to_string())
    })
}

/// The schema of the options.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// Where a guest's writes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Writes {
    /// To memory, counted against the guest's limit.
    #[default]
    Memory,
    /// To the host's disk: a directory of the run's in `/var/lib/tare`, or in `~/.local/state/tare` without root.
    /// Refused where that is in memory (tmpfs).
    Disk,
}

/// On, off, or as it can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Switch {
    /// On where it can be had.
    #[default]
    Auto,
    /// On, or the arm is refused.
    On,
    /// Off.
    Off,
}
