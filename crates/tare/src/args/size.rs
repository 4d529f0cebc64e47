//! What can be asked of `tare size`.

use std::path::PathBuf;

use clap::Args;

use super::FormatArgument;

/// Arguments of `tare size`.
#[derive(Debug, Args)]
pub struct SizeArguments {
    /// Run folder.
    pub run: PathBuf,
    /// The largest value of a time, such as `p90=1s`: a metric by its id or a part of it [default: the study's own objective, else 1s
    /// of the primary time].
    #[arg(long, value_name = "METRIC=VALUE")]
    pub qos: Option<String>,
    /// How much the load may grow and still meet the objective, such as `25%` or `0.25`.
    #[arg(long, value_name = "SHARE", default_value = "25%")]
    pub headroom: String,
    /// Size for this arm alone.
    #[arg(long, value_name = "ID")]
    pub arm: Option<String>,
    /// Load of each instance, clients or arrivals a second [default: that of the case with the most instances].
    #[arg(long, value_name = "N")]
    pub load_per_instance: Option<f64>,
    /// Count the guests that a load needs in all.
    #[arg(long, value_name = "N")]
    pub total: Option<f64>,
    /// How to print.
    #[command(flatten)]
    pub shown: FormatArgument,
    /// End with 5 where a held-out case was predicted too far off or could not be, and where none was held out.
    #[arg(long)]
    pub check: bool,
}
