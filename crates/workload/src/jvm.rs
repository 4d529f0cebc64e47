//! Options of Java's virtual machine that several workloads have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_model::field::FieldError;

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

/// Options that would start something else than the application, or nothing.
const OTHER_PROGRAMS: [&str; 14] = [
    "-jar",
    "-cp",
    "-classpath",
    "--class-path",
    "-m",
    "--module",
    "-version",
    "--version",
    "-showversion",
    "-help",
    "--help",
    "-h",
    "-?",
    "-X",
];

/// Options that parameters stand for in every workload that has such a parameter: how they begin without `-XX:` and a sign, and the parameter.
pub(crate) const HEAP: [(&str, &str); 3] = [("-Xmx", "heap"), ("MaxHeapSize", "heap"), ("MaxRAMPercentage", "heap")];
pub(crate) const COLLECTOR: [(&str, &str); 3] =
    [("UseSerialGC", "collector"), ("UseParallelGC", "collector"), ("UseG1GC", "collector")];

/// What an option of the virtual machine sets: itself, without `-XX:` and a sign.
pub(crate) fn name_of(option: &str) -> &str {
    option.strip_prefix("-XX:").map_or(option, |name| name.trim_start_matches(['+', '-']))
}

/// Refuses options of a study's that would start something else than the application, or that one of the parameters in `own` stands for.
///
/// # Errors
/// At the number of the option within `field`.
pub(crate) fn check_options(field: &str, options: &[String], own: &[&[(&str, &str)]]) -> Result<(), FieldError> {
    for (number, option) in options.iter().enumerate() {
        let refused = |why: String, help| Err(FieldError::new(&[field, &number.to_string()], why).help(help));
        if !option.starts_with('-') {
            let why = "is no option of the virtual machine: it would be taken for the class to start";
            return refused(format!("`{option}` {why}"), "write one option an entry, beginning with `-`");
        }
        if OTHER_PROGRAMS.iter().any(|other| option.split('=').next() == Some(other)) {
            return refused(format!("`{option}` would start something else than the application"), "leave it out");
        }
        let parameter = own.iter().copied().flatten().find(|(own, _)| name_of(option).starts_with(own));
        if let Some((_, parameter)) = parameter {
            let why = format!("`{option}` is what a parameter stands for: {parameter}");
            return refused(why, "write the parameter and leave the option out");
        }
    }
    Ok(())
}
