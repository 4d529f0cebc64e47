//! What a workload says of itself in the registry, and how it reads its parameters.

use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::load::LoadModel;

use crate::{View, Workload};

/// Makes a workload from its parameters (an object; absent ones take their defaults) and the load.
/// The path of an error is relative to the parameters; one about the load starts with `load`.
pub type Make = fn(&Value, &LoadModel) -> Result<Box<dyn Workload>, FieldError>;

/// Fills in every default of parameters. The path of an error is relative to them.
pub type Normalise = fn(&Value) -> Result<Value, FieldError>;

/// One workload as the registry knows it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name in study files.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// JSON schema of its parameters.
    pub schema: fn() -> Value,
    /// Makes it.
    pub make: Make,
    /// The parameters with every default filled in, as they are disclosed.
    pub normalise: Normalise,
    /// What it says of its cases in a report, if anything.
    pub view: Option<&'static dyn View>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads parameters into a workload's own type; errors carry the path of the field.
pub(crate) fn read<T: serde::de::DeserializeOwned>(parameters: &Value) -> Result<T, FieldError> {
    let parameters = if parameters.is_null() { Value::Object(serde_json::Map::new()) } else { parameters.clone() };
    serde_path_to_error::deserialize(parameters).map_err(|error| {
        let path: Vec<String> = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                serde_path_to_error::Segment::Seq { index } => Some(index.to_string()),
                serde_path_to_error::Segment::Map { key } => Some(key.clone()),
                serde_path_to_error::Segment::Enum { variant } => Some(variant.clone()),
                serde_path_to_error::Segment::Unknown => None,
            })
            .collect();
        FieldError { path, message: error.inner().to_string(), help: None }
    })
}

/// Parameters of type `T` with every default filled in.
pub(crate) fn normalise<T: serde::de::DeserializeOwned + serde::Serialize>(
    parameters: &Value,
) -> Result<Value, FieldError> {
    filled(read::<T>(parameters)?)
}

/// Parameters that were read and checked, as they are disclosed.
pub(crate) fn filled<T: serde::Serialize>(parameters: T) -> Result<Value, FieldError> {
    serde_json::to_value(parameters).map_err(|error| FieldError::new(&[], error.to_string()))
}

/// The JSON schema of a workload's parameters.
pub(crate) fn schema<T: schemars::JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}
