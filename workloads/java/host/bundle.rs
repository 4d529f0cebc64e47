//! The application and the runtime it comes with: where they are on this host, and in a guest.

use std::path::{Path, PathBuf};

use tare_model::guest::GuestData;
use tare_model::{ByteSize, Refusal};
use tare_wire::{Reply, Request, WireError};

use super::parameters::Parameters;
use crate::folder::bytes_in;
use crate::jvm::Collector;
use crate::{Failure, WorkSite, WorkloadError};

/// Where `scripts/bundle.sh java` puts it, in tare's cache: a link to the newest.
const BUNDLE: &str = "bundle/java";
/// The program, in the bundle.
const PROGRAM: &str = "runtime/bin/java";
/// What tells the runtime's version, in the bundle.
const RELEASE: &str = "runtime/release";
/// The application, in the bundle.
const JAR: &str = "tare-java.jar";
/// What is kept for guests that see disks and not the host's files, bytes: one with a runtime of 70 MB, and what its file
/// system takes. 84 MiB were seen.
pub(super) const DISK_BYTES: u64 = 96 << 20;
/// What a guest writes to it, although it is for reading, bytes: when it was mounted, and when files were read.
pub(super) const OVERLAY_BYTES: u64 = 4 << 20;
/// Oldest Java whose collectors beside G1 can have equal strings share their characters.
const DEDUPLICATES: u32 = 18;
const REMEDY: &str =
    "run `make platforms`, or scripts/bundle.sh java alone, which builds it with the JDK and Maven of this host";

/// An application with its runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bundle {
    /// Its directory on this host, no link.
    pub place: PathBuf,
    /// The first number of its Java.
    pub major: u32,
}

/// Program and application in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inside {
    /// The `java` program.
    pub program: String,
    /// The application.
    pub jar: String,
}

/// The bundle of this host.
///
/// # Errors
/// What is missing, with the remedy.
pub(super) fn find() -> Result<Bundle, Refusal> {
    at(&tare_image::cache_directory().join(BUNDLE))
}

/// The bundle that a link leads to.
fn at(link: &Path) -> Result<Bundle, Refusal> {
    let Ok(place) = link.canonicalize() else {
        return Err(Refusal::new(format!("there is no Java application for guests at {}", link.display()), REMEDY));
    };
    let missing: Vec<&str> = [PROGRAM, RELEASE, JAR].into_iter().filter(|file| !place.join(file).is_file()).collect();
    if !missing.is_empty() {
        let why = format!("the Java application in {} has no {}", place.display(), missing.join(", no "));
        return Err(Refusal::new(why, format!("remove {}; then {REMEDY}", place.display())));
    }
    let release = std::fs::read_to_string(place.join(RELEASE)).unwrap_or_default();
    let Some(major) = major(&release) else {
        let why = format!("{} does not tell the runtime's version", place.join(RELEASE).display());
        return Err(Refusal::new(why, format!("remove {}; then {REMEDY}", place.display())));
    };
    Ok(Bundle { place, major })
}

/// The first number of the version in a `release` file or in what `java -version` says: both have `VERSION="17.0.9"`, as it
/// were. Before 9 it was 1.8.
fn major(text: &str) -> Option<u32> {
    let version = text.lines().find_map(|line| {
        let quoted =
            line.strip_prefix("JAVA_VERSION=").or_else(|| line.split_once(" version ").map(|(_, rest)| rest))?;
        quoted.trim_start_matches('"').split('"').next()
    })?;
    let mut numbers = version.split(['.', '-', '+', '_']).map(str::parse);
    match numbers.next()?.ok()? {
        1 => numbers.next()?.ok(),
        major => Some(major),
    }
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

impl Bundle {
    /// What every guest is given: nobody writes to it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn data(&self) -> Result<GuestData, Failure> {
        let bytes = bytes_in(&self.place).map_err(|error| {
            Failure::new(format!("read the Java application in {}", self.place.display()), error.to_string(), REMEDY)
        })?;
        // A file system of its own takes some for itself.
        let room = bytes + bytes / 4 + (64 << 20);
        Ok(GuestData { gold: self.place.clone(), size: ByteSize(room), shared: true })
    }
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
        let request = Request::GetFile { path: path.to_owned(), offset: 0, limit_bytes: 1 };
        match site.ask_guest(request) {
            Ok(Reply::File { bytes, .. }) if !bytes.is_empty() => {}
            Ok(Reply::File { .. }) => return Err(absent(given, path, "it is empty").into()),
            Ok(_) => return Err(WorkSite::unexpected("guest", "read a file")),
            Err(WorkloadError::Agent { source: WireError::Refused { reason, .. }, .. }) => {
                return Err(absent(given, path, &reason).into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(inside)
}

fn absent(given: Option<&str>, path: &str, why: &str) -> Failure {
    let (whose, remedy) = match given {
        Some(_) => ("from the data that the guest was given", REMEDY.to_owned()),
        None => (
            "in the guest, which its platform can hand no data",
            format!("put a copy of this host's directory there in the guest: {path} and what is beside it"),
        ),
    };
    Failure::new(format!("start the Java application {whose}"), format!("cannot read {path} there: {why}"), remedy)
}

/// The first number of the version of a Java in the guest, from what it says of itself.
pub(super) fn major_of(said: &[u8]) -> Option<u32> {
    major(&String::from_utf8_lossy(said))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn versions_are_read_from_what_runtimes_tell() {
        for (text, number) in [
            ("IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\n", Some(17)),
            ("openjdk version \"21-ea\" 2023-09-19\nOpenJDK Runtime Environment\n", Some(21)),
            ("Picked up JAVA_TOOL_OPTIONS: -Dx\njava version \"1.8.0_391\"\n", Some(8)),
            ("MODULES=\"java.base\"\n", None),
            ("", None),
        ] {
            assert_eq!(major(text), number, "{text}");
        }
    }

    #[test]
    fn only_what_is_whole_is_found_and_it_is_shared() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("java");
        assert!(at(&link).unwrap_err().reason.contains("no Java application"));
        let whole = place.path().join("java-1");
        std::fs::create_dir_all(whole.join("runtime/bin")).unwrap();
        std::os::unix::fs::symlink("java-1", &link).unwrap();
        std::fs::write(whole.join(RELEASE), "JAVA_VERSION=\"17.0.15\"\n").unwrap();
        std::fs::write(whole.join(JAR), "x").unwrap();
        let Refusal { reason, remedy } = at(&link).unwrap_err();
        assert!(reason.contains("runtime/bin/java") && remedy.contains("scripts/bundle.sh java"), "{reason}: {remedy}");
        std::fs::write(whole.join(PROGRAM), "x").unwrap();
        let found = at(&link).unwrap();
        assert_eq!((found.major, &found.place), (17, &whole.canonicalize().unwrap()));
        let data = found.data().unwrap();
        assert!(data.shared && data.size.0 > 64 << 20, "{data:?}");
    }

    #[test]
    fn equal_strings_are_shared_by_g1_or_by_newer_machines() {
        let asked = |collector| Parameters { collector, string_deduplication: true, ..Parameters::default() };
        assert!(unable(&asked(Collector::Serial), 17).unwrap().reason.contains("Java 17"));
        assert_eq!(unable(&asked(Collector::Serial), 18), None);
        assert_eq!(unable(&asked(Collector::G1), 11), None);
        assert_eq!(unable(&Parameters::default(), 11), None);
    }
}
