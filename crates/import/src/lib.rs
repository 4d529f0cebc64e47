//! Figures that somebody else published, as run folders.
//!
//! [`read`] takes CSV files, known by their headers ([`shipped`]: those that ship with tare), and gives one [`Report`] for each published study in them, with a plan and
//! trials like those of a run of ours; [`Report::write`] makes the run folder. Nothing is corrected, and what a report does not
//! tell stays absent: analysis, report and audit then see what its readers saw. The formats are in `docs/reference/published.md`.

mod claims;
mod conditions;
mod density;
mod error;
mod figures;
mod report;
mod store;
mod study;
mod table;
mod targets;
#[cfg(test)]
mod tests;
mod web;

pub use claims::FILE as CLAIMS_FILE;
pub use error::ImportError;
pub use report::{Imported, Report, read, shipped};
