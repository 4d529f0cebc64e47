//! The environment of a run, as it is disclosed.

use serde::{Deserialize, Serialize};

/// Everything about the host that can move a figure, in sections, redacted unless asked otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Sections in the order of the report.
    pub sections: Vec<Section>,
    /// Whether host names, addresses and serial numbers were taken out.
    pub redacted: bool,
}

/// One section of the disclosure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Title, such as `CPU`.
    pub title: String,
    /// Name and value. A fact that could not be read is there too, its value saying why.
    pub facts: Vec<(String, String)>,
}
