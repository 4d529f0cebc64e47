//! The application and the runtime it comes with: where they are on this host, and in a guest.

use tare_model::Refusal;

use super::parameters::Parameters;
use crate::application::{absent, has};
use crate::bundle::{Bundle, BundleKind, PROGRAM};
use crate::jvm::Collector;
use crate::{WorkSite, WorkloadError};

/// The application, in the bundle.
const JAR: &str = "tare-java.jar";
/// Where both are on this host.
pub(super) const BUNDLE: BundleKind = BundleKind { name: "java", noun: "Java application", jar: Some(JAR) };
/// What is kept for guests that see disks and not the host's files, bytes: one with a runtime of 70 MB, and what its file
/// system takes. 84 MiB were seen.
pub(super) const DISK_BYTES: u64 = 96 << 20;
/// What a guest writes to it, although it is for reading, bytes: when it was mounted, and when files were read.
pub(super) const OVERLAY_BYTES: u64 = 4 << 20;
/// Oldest Java whose collectors beside G1 can have equal strings share their characters.
const DEDUPLICATES: u32 = 18;

/// Program and application in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inside {
    /// The `java` program.
    pub program: String,
    /// The application.
    pub jar: String,
}

/// Why this Java cannot do what the parameters ask, and the remedy.
pub(super) fn unable(parameters: &Parameters, major: u32) -> Option<Refusal> {
    let cannot = parameters.string_deduplication && parameters.collector != Collector::G1 && major < DEDUPLICATES;
    cannot.then(|| {
        let why = format!(
            "`string-deduplication` is asked with another collector than g1, which Java {major} cannot do: that began with \
             {DEDUPLICATES}"
        );
        Refusal::new(why, "write collector = \"g1\", leave `string-deduplication` out, or name a newer `java`")
    })
}

/// Finds program and application in the guest: in the data that it was given or, without them, where this host has them.
///
/// # Errors
/// When the guest has none there, or the agent cannot be asked.
pub(super) fn inside(site: &WorkSite<'_>, parameters: &Parameters, bundle: &Bundle) -> Result<Inside, WorkloadError> {
    let given = site.data.map(|data| data.path.as_str());
    let here = bundle.place.to_string_lossy().into_owned();
    let folder = given.unwrap_or(&here);
    let inside = Inside {
        program: parameters.java.clone().unwrap_or_else(|| format!("{folder}/{PROGRAM}")),
        jar: format!("{folder}/{JAR}"),
    };
    let mut wanted = vec![inside.jar.as_str()];
    if parameters.java.is_none() {
        wanted.push(&inside.program);
    }
    for path in wanted {
        has(site, path)?.map_err(|why| absent(BUNDLE.noun, given.is_some(), &BUNDLE.remedy(), path, &why))?;
    }
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_are_shared_by_g1_or_by_newer_machines() {
        let asked = |collector| Parameters { collector, string_deduplication: true, ..Parameters::default() };
        assert!(unable(&asked(Collector::Serial), 17).unwrap().reason.contains("Java 17"));
        assert_eq!(unable(&asked(Collector::Serial), 18), None);
        assert_eq!(unable(&asked(Collector::G1), 11), None);
        assert_eq!(unable(&Parameters::default(), 11), None);
    }
}
