//! How commands print what they found.

use clap::{Args, ValueEnum};

/// A printed form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For the terminal.
    #[default]
    Text,
    /// One JSON object; `schema` is the number of its form.
    Json,
    /// Markdown.
    Md,
    /// One HTML page that opens offline.
    Html,
}

/// The form of what a command prints.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FormatArgument {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// A printed form of what goes on and on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LineFormat {
    /// For the terminal.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}
