//! Options of Java's virtual machine that several workloads have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A collector of garbage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Collector {
    /// As the virtual machine chooses.
    #[default]
    Default,
    /// One thread, and the application waits.
    Serial,
    /// Several threads, and the application waits.
    Parallel,
    /// Garbage first: by regions, mostly beside the application.
    G1,
}

impl Collector {
    /// The option that asks for it.
    pub(crate) const fn option(self) -> Option<&'static str> {
        match self {
            Self::Default => None,
            Self::Serial => Some("-XX:+UseSerialGC"),
            Self::Parallel => Some("-XX:+UseParallelGC"),
            Self::G1 => Some("-XX:+UseG1GC"),
        }
    }
}
