//! `tare schema`.

use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints the JSON schema of study files.
pub fn command() -> Result<Exit, Failure> {
    let schema = tare_study::schema(&Registries);
    let text = serde_json::to_string_pretty(&schema).map_err(|error| Failure::new(error, Exit::Failure))?;
    output::print(&text)?;
    Ok(Exit::Success)
}
