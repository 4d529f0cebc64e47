//! Where PostgreSQL's programs are on this host, and of which version they are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tare_model::Refusal;

/// Names what set-up fetched, where a study may name a directory.
pub(crate) const EMBEDDED: &str = "embedded";
/// Oldest version that works: it has all that the store and its settings use.
pub(crate) const OLDEST: u32 = 12;
/// Where set-up puts what it fetches, in tare's cache.
const BUNDLE: &str = "bundle";
/// Programs that are needed.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pg_ctl"];

/// A PostgreSQL that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    /// The directory of its programs.
    pub bin: PathBuf,
    /// Its version as it says it, such as `15.14`.
    pub version: String,
    /// The first number of that.
    pub major: u32,
    /// The same programs packed, for guests that do not see this host's; only what set-up fetched has that.
    pub packed: Option<PathBuf>,
}

/// The installation that `postgres` names. Its server is asked for its version.
///
/// # Errors
/// What is missing, with the remedy.
pub(crate) fn find(named: &str) -> Result<Installation, Refusal> {
    at(place(named)?)
}

/// Looks whether a server may be started at all, and whether the files of the installation that `postgres` names are there; none of them is run.
///
/// # Errors
/// What is missing, with the remedy.
pub(crate) fn look(named: &str) -> Result<(), Refusal> {
    if !rustix::process::geteuid().is_root() {
        let reason = "PostgreSQL runs as a user of its own, nobody, which takes root to start";
        return Err(Refusal::new(reason, "run tare as root"));
    }
    place(named).and_then(|place| has_programs(&place.bin))
}

/// The server's program, where `postgres` names an installation of the user's.
pub(crate) fn named(postgres: Option<&str>) -> Vec<String> {
    let bin = postgres.filter(|place| *place != EMBEDDED);
    bin.map(|bin| Path::new(bin).join(PROGRAMS[0]).display().to_string()).into_iter().collect()
}

/// Where an installation is.
struct Place {
    bin: PathBuf,
    packed: Option<PathBuf>,
}

fn place(named: &str) -> Result<Place, Refusal> {
    if named == EMBEDDED {
        return embedded(&tare_image::cache_directory().join(BUNDLE));
    }
    Ok(Place { bin: named.into(), packed: None })
}

/// The newest of those that were fetched.
fn embedded(bundle: &Path) -> Result<Place, Refusal> {
    let mut found: Vec<(Vec<u32>, PathBuf)> = std::fs::read_dir(bundle)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix("postgresql-")?;
            let numbers = version.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().ok()?;
            entry.path().is_dir().then(|| (numbers, entry.path()))
        })
        .collect();
    found.sort();
    let Some((_, place)) = found.pop() else {
        return Err(Refusal::new(
            format!("there is no PostgreSQL for guests in {}", bundle.display()),
            "run `make platforms`, which fetches it, or name an installation: postgres = \"/usr/lib/postgresql/15/bin\"",
        ));
    };
    let packed = PathBuf::from(format!("{}.tar.gz", place.display()));
    Ok(Place { bin: place.join("bin"), packed: packed.exists().then_some(packed) })
}

/// What helps where an installation cannot be used.
const REMEDY: &str = "name the directory that has postgres, initdb and pg_ctl: postgres = \"/usr/lib/postgresql/15/bin\"; or \
                      leave `postgres` out and run `make platforms`";

fn has_programs(bin: &Path) -> Result<(), Refusal> {
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !bin.join(program).is_file()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(format!("the directory {} has no {}", bin.display(), missing.join(", no ")), REMEDY))
}

/// The installation at a place.
fn at(Place { bin, packed }: Place) -> Result<Installation, Refusal> {
    has_programs(&bin)?;
    let program = bin.join("postgres");
    let ran = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
    let does_not_run =
        |why: &str| Refusal::new(format!("{} does not run on this host: {why}", program.display()), REMEDY);
    let said = match ran {
        Ok(ran) if ran.status.success() => String::from_utf8_lossy(&ran.stdout).into_owned(),
        Ok(ran) => return Err(does_not_run(String::from_utf8_lossy(&ran.stderr).trim())),
        Err(error) => return Err(does_not_run(&error.to_string())),
    };
    let (version, major) = version(&said).ok_or_else(|| {
        Refusal::new(format!("{} does not tell its version: {}", program.display(), said.trim()), REMEDY)
    })?;
    if major < OLDEST {
        let reason = format!("PostgreSQL in {} is of version {version}, older than {OLDEST}", bin.display());
        return Err(Refusal::new(reason, REMEDY));
    }
    Ok(Installation { version, major, packed, bin })
}

/// Version and its first number from what a server says of itself, such as `postgres (PostgreSQL) 15.14 (Debian ...)` or
/// `PostgreSQL 18.6 on x86_64-pc-linux-gnu, ...`.
pub(crate) fn version(said: &str) -> Option<(String, u32)> {
    let version = said.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let major: String = version.chars().take_while(char::is_ascii_digit).collect();
    Some((version.to_owned(), major.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Programs that say they are of that version.
    fn install(bin: &Path, version: &str) {
        std::fs::create_dir_all(bin).unwrap();
        for program in PROGRAMS {
            let path = bin.join(program);
            std::fs::write(&path, format!("#!/bin/sh\necho '{program} (PostgreSQL) {version} (Debian)'\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn versions_are_read_from_what_programs_and_servers_say() {
        let read = |said| version(said).unwrap();
        assert_eq!(read("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), ("15.14".into(), 15));
        assert_eq!(read("PostgreSQL 19beta1 on x86_64"), ("19beta1".into(), 19));
        assert_eq!(version("no such thing"), None);
    }

    #[test]
    fn the_newest_of_those_fetched_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let Err(Refusal { reason, remedy }) = embedded(place.path()) else { panic!("there is none") };
        assert!(reason.contains("no PostgreSQL") && remedy.contains("make platforms"), "{reason}: {remedy}");
        install(&place.path().join("postgresql-9.6/bin"), "9.6");
        let newest = |bundle: &Path| embedded(bundle).and_then(at);
        assert!(newest(place.path()).unwrap_err().reason.contains("older than 12"));
        install(&place.path().join("postgresql-18.6/bin"), "18.6");
        install(&place.path().join("postgresql-18.10/bin"), "18.10");
        std::fs::write(place.path().join("postgresql-18.10.tar.gz"), "").unwrap();
        let found = newest(place.path()).unwrap();
        assert_eq!((found.version.as_str(), found.major), ("18.10", 18));
        assert!(found.packed.is_some());
    }

    #[test]
    fn a_directory_without_the_programs_is_refused_with_what_is_missing() {
        let place = tempfile::tempdir().unwrap();
        install(place.path(), "15.1");
        std::fs::remove_file(place.path().join("initdb")).unwrap();
        let Refusal { reason, remedy } = find(place.path().to_str().unwrap()).unwrap_err();
        assert!(reason.contains("no initdb") && !reason.contains("pg_ctl"), "{reason}");
        assert!(remedy.contains("/usr/lib/postgresql"), "{remedy}");
        assert!(look(place.path().to_str().unwrap()).is_err());
        assert!(find("/no/such/bin").unwrap_err().reason.contains("/no/such/bin"));
    }
}
