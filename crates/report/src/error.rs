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
    /// Figures of both directions cannot be in one file of a format.
    #[error(
        "some of the figures are better lower and others higher, and one file of this format has one direction: write two, with \
         `--better lower` and `--better higher`"
    )]
    MixedDirections,
    /// JUnit XML was not made.
    #[error("writing the gate as JUnit XML failed: {0}; this is a defect of tare, and `--format json` has the same")]
    Xml(#[source] std::io::Error),
}
