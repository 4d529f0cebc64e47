//! Bundles: an application with a Java runtime of its own, as a script puts it into tare's cache.

use std::path::{Path, PathBuf};

use tare_model::guest::GuestData;
use tare_model::{ByteSize, Refusal};

use crate::Failure;
use crate::folder::bytes_in;

/// The program, in every bundle and in what guests are given of it.
pub(crate) const PROGRAM: &str = "runtime/bin/java";
/// What tells the runtime's version, in every bundle.
const RELEASE: &str = "runtime/release";
/// The jars of an application that has several, likewise.
pub(crate) const JARS: &str = "lib";

/// What a bundle is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BundleKind {
    /// The link to the newest is `bundle/NAME` in tare's cache, and `scripts/bundle.sh NAME` makes it.
    pub name: &'static str,
    /// What it is for people, such as `web server`.
    pub noun: &'static str,
    /// Its one jar; `None`: all in [`JARS`].
    pub jar: Option<&'static str>,
}

/// An application with its runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bundle {
    /// Its directory on this host, no link. Its name tells its contents.
    pub place: PathBuf,
    /// The first number of its Java.
    pub major: u32,
    /// Bytes that it takes on the disk.
    pub bytes: u64,
}

impl BundleKind {
    /// The bundle of this host.
    ///
    /// # Errors
    /// What is missing, with the remedy.
    pub fn find(&self) -> Result<Bundle, Refusal> {
        self.at(&tare_image::cache_directory().join("bundle").join(self.name))
    }

    /// The same. A missing one is reported before any run.
    ///
    /// # Errors
    /// As there.
    pub fn needed(&self) -> Result<Bundle, Failure> {
        self.find().map_err(|refusal| Failure::refused(self.starting(), refusal))
    }

    /// What is tried with it.
    pub fn starting(&self) -> String {
        format!("start the {}", self.noun)
    }

    /// What makes it.
    pub fn remedy(&self) -> String {
        let name = self.name;
        format!(
            "run `make platforms`, or scripts/bundle.sh {name} alone, which builds it with the JDK and Maven of this host"
        )
    }

    /// The bundle that a link leads to.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn at(&self, link: &Path) -> Result<Bundle, Refusal> {
        let (noun, remedy) = (self.noun, self.remedy());
        let Ok(place) = link.canonicalize() else {
            return Err(Refusal::new(format!("there is no {noun} for guests at {}", link.display()), remedy));
        };
        let shown = place.display();
        let broken = |why: String| Refusal::new(why, format!("remove {shown}; then {remedy}"));
        let files = [PROGRAM, RELEASE].into_iter().chain(self.jar);
        let mut missing: Vec<&str> = files.filter(|file| !place.join(file).is_file()).collect();
        if self.jar.is_none() && !has_jars(&place.join(JARS)) {
            missing.push("lib/*.jar");
        }
        if !missing.is_empty() {
            return Err(broken(format!("the {noun} in {shown} has no {}", missing.join(", no "))));
        }
        let release = std::fs::read_to_string(place.join(RELEASE)).unwrap_or_default();
        let Some(major) = major(&release) else {
            return Err(broken(format!("{} does not tell the runtime's version", place.join(RELEASE).display())));
        };
        match bytes_in(&place) {
            Ok(bytes) => Ok(Bundle { major, bytes, place }),
            Err(error) => Err(broken(format!("the {noun} in {shown} cannot be read: {error}"))),
        }
    }
}

impl Bundle {
    /// What every guest is given: nobody writes to it.
    pub fn data(&self) -> GuestData {
        // A file system of its own takes some for itself.
        let room = self.bytes + self.bytes / 4 + (64 << 20);
        GuestData { gold: self.place.clone(), size: ByteSize(room), shared: true, log: None }
    }
}

fn has_jars(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|kind| kind == "jar"))
}

/// The first number of the version in a `release` file or in what `java -version` says: both have `VERSION="17.0.9"`, as it
/// were. Before 9 it was 1.8.
pub(crate) fn major(text: &str) -> Option<u32> {
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

#[cfg(test)]
mod tests {
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
        for (jar, missing) in [(Some("tare-java.jar"), "tare-java.jar"), (None, "lib/*.jar")] {
            let kind = BundleKind { name: "java", noun: "Java application", jar };
            let folder = tempfile::tempdir().unwrap();
            let link = folder.path().join("java");
            assert!(kind.at(&link).unwrap_err().reason.contains("no Java application"));
            let whole = folder.path().join("java-1");
            for part in ["runtime/bin", JARS] {
                std::fs::create_dir_all(whole.join(part)).unwrap();
            }
            std::os::unix::fs::symlink("java-1", &link).unwrap();
            let jar = whole.join(jar.unwrap_or("lib/a.jar"));
            for file in [whole.join(PROGRAM), jar.clone()] {
                std::fs::write(file, "x").unwrap();
            }
            std::fs::write(whole.join(RELEASE), "JAVA_VERSION=\"17.0.15\"\n").unwrap();
            let found = kind.at(&link).unwrap();
            assert_eq!((found.major, &found.place), (17, &whole.canonicalize().unwrap()));
            let data = found.data();
            assert!(found.bytes > 0 && data.shared && data.size.0 > 64 << 20, "{data:?}");
            std::fs::remove_file(jar).unwrap();
            let Refusal { reason, remedy } = kind.at(&link).unwrap_err();
            assert!(reason.contains(missing) && remedy.contains("scripts/bundle.sh java"), "{reason}: {remedy}");
        }
    }
}
