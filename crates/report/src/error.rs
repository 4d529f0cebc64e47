//! What can go wrong when a report is written.

/// Why a report could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template of this crate did not render.
    #[error(
        "rendering the HTML report failed: {0}; this is a defect of tare, and findings.json still holds every figure"
    )]
    Template(#[source] minijinja::Error),
    /// A Parquet file was not made.
    #[error(
        "writing the tables as Parquet failed: {0}; this is a defect of tare, and the CSV files hold the same figures"
    )]
    Parquet(#[source] parquet::errors::ParquetError),
    /// The findings did not serialise.
    #[error("writing the findings as JSON failed: {0}; this is a defect of tare")]
    Json(#[source] serde_json::Error),
}
