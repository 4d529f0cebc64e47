//! A Debian that is built here, once, and cached by what goes into it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::cache::{self, IMAGES, Key, cache_directory};
use crate::disk::{Disk, Format, inspect};
use crate::error::{ImageError, Result, reading, writing};
use crate::program;

/// Raised with every change of how images are made, so that older ones are not taken for the same.
const RECIPE: u32 = 1;

/// Size of the disk, bytes: room for what is measured. It takes up only what it holds.
const SIZE: u64 = 16 << 30;

/// Packages are fetched from mirrors, which may be slow.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);

const PACK_LIMIT: Duration = Duration::from_secs(600);

/// What no guest reads.
const LEFT_OUT: [&str; 4] = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*"];

/// What is in a Debian image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebianSpec {
    /// Suite, such as `bookworm`; without one the host's own if it is a Debian, else the stable one.
    pub suite: Option<String>,
    /// Packages besides the base system.
    pub packages: Vec<String>,
}

/// What is written beside an image.
#[derive(Debug, Serialize, Deserialize)]
struct Recipe {
    recipe: u32,
    suite: String,
    machine: String,
    packages: Vec<String>,
    builder: String,
    /// Every package that is in it, with its version.
    installed: Vec<String>,
}

impl DebianSpec {
    fn suite(&self) -> String {
        self.suite.clone().unwrap_or_else(|| {
            let own = fs::read_to_string("/etc/os-release").ok().and_then(|text| codename(&text));
            own.unwrap_or_else(|| "stable".to_owned())
        })
    }

    /// In order, each once: the same image whatever the order in the study.
    fn packages(&self) -> Vec<String> {
        let mut packages = self.packages.clone();
        packages.sort();
        packages.dedup();
        packages
    }

    /// Names go onto command lines, and a package may not be a file or an option there.
    fn check(&self) -> Result<()> {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
        };
        match self.packages.iter().chain(&self.suite).find(|name| !is_name(name)) {
            None => Ok(()),
            Some(name) => Err(ImageError::new(
                format!("build a Debian with `{}`", name.escape_debug()),
                "names of suites and packages have lower case letters, digits and +-. only",
                "correct it in the study",
            )),
        }
    }
}

/// The host's own suite, if it is a Debian.
fn codename(os_release: &str) -> Option<String> {
    let value = |key: &str| os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let plain = |text: &str| text.trim_matches('"').to_owned();
    (value("ID").map(plain)? == "debian").then(|| value("VERSION_CODENAME").map(plain))?
}

/// The version of the program that builds.
fn builder() -> Option<String> {
    let program = program::find("mmdebstrap", "mmdebstrap").ok()?;
    let said = program::run(Command::new(program).arg("--version"), "ask mmdebstrap its version", PACK_LIMIT).ok()?;
    Some(said.trim().to_owned())
}

/// The name of the image in the cache: of all that goes into it, save the day's versions of packages.
fn key(spec: &DebianSpec, builder: &str) -> String {
    let mut key = Key::default();
    key.add(&RECIPE.to_le_bytes());
    key.add(&SIZE.to_le_bytes());
    for part in [spec.suite().as_str(), std::env::consts::ARCH, builder] {
        key.add(part.as_bytes());
    }
    spec.packages().iter().for_each(|package| key.add(package.as_bytes()));
    key.name()
}

fn place(key: &str) -> PathBuf {
    cache_directory().join(IMAGES).join(format!("debian-{key}.raw"))
}

/// The image, if it has been built. On a host without a builder that is an image of the same recipe from another host, its two
/// files (`.raw` and `.json`) copied into the cache.
///
/// # Errors
/// A name that is none; an image that is damaged.
pub fn debian_find(spec: &DebianSpec) -> Result<Option<Disk>> {
    spec.check()?;
    match builder() {
        Some(builder) => find(&place(&key(spec, &builder))),
        None => of_recipe(&cache_directory().join(IMAGES), spec).map_or(Ok(None), |path| find(&path)),
    }
}

/// Whether an image of this recipe lies in the cache, whichever builder made it. Unlike [`debian_find`] this runs no
/// program.
///
/// # Errors
/// A name that is none.
pub fn debian_is_there(spec: &DebianSpec) -> Result<bool> {
    spec.check().map(|()| of_recipe(&cache_directory().join(IMAGES), spec).is_some())
}

/// An image of this recipe in a folder, whichever builder made it: the first by name.
fn of_recipe(folder: &Path, spec: &DebianSpec) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let recipes = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
    let wanted = |path: &PathBuf| {
        let recipe = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Recipe>(&bytes).ok());
        recipe.is_some_and(|recipe| {
            let same = recipe.recipe == RECIPE && recipe.machine == std::env::consts::ARCH;
            same && recipe.suite == spec.suite() && recipe.packages == spec.packages()
        })
    };
    recipes.filter(wanted).map(|path| path.with_extension("raw")).filter(|path| path.exists()).min()
}

fn find(path: &Path) -> Result<Option<Disk>> {
    // What is written beside it comes last.
    if !path.with_extension("json").exists() || !path.exists() {
        return Ok(None);
    }
    inspect(path, Format::Raw).map(Some)
}

/// Builds the image with mmdebstrap, unless it has been: half a minute, and packages from the mirrors that mmdebstrap
/// uses by itself. Done before a run, never during one. `progress` gets a message for each step. Callers at the same time,
/// of other processes too, wait for each other.
///
/// # Errors
/// When it is not root who calls, a program is missing, or a package is not available.
pub fn debian_build(spec: &DebianSpec, progress: &mut dyn FnMut(&str)) -> Result<Disk> {
    spec.check()?;
    let mmdebstrap = program::find("mmdebstrap", "mmdebstrap")?;
    let path = place(&key(spec, &builder().unwrap_or_default()));
    let folder = cache::folder(IMAGES)?;
    // Held until the end: one is built at a time, so what others are found to have begun was given up.
    let lock_path = folder.join(".lock");
    let lock = File::create(&lock_path).map_err(writing(&lock_path))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| writing(&lock_path)(error.into()))?;
    cache::sweep(&folder)?;
    if let Some(disk) = find(&path)? {
        return Ok(disk);
    }
    if !rustix::process::geteuid().is_root() {
        let remedy = "run `tare image build` once as root with TARE_CACHE set to your cache";
        return Err(ImageError::new(
            "build a Debian image",
            "its files belong to root and others, whom only root can make",
            remedy,
        ));
    }
    let work = tempfile::Builder::new().prefix(cache::BEGUN).tempdir_in(&folder).map_err(writing(&folder))?;
    let root = work.path().join("root");
    progress(&format!("fetching and installing Debian {} with {} more packages", spec.suite(), spec.packages().len()));
    install(&mmdebstrap, spec, &root)?;
    progress("writing the disk");
    let image = cache::beside(&path)?;
    pack(&root, image.path())?;
    let recipe = Recipe {
        recipe: RECIPE,
        suite: spec.suite(),
        machine: std::env::consts::ARCH.to_owned(),
        packages: spec.packages(),
        builder: builder().unwrap_or_default(),
        installed: installed(&root)?,
    };
    cache::publish(image, &path)?;
    write_recipe(&recipe, &path.with_extension("json"))?;
    find(&path)?
        .ok_or_else(|| ImageError::new("find what was just built", "it is gone", "is something clearing the cache?"))
}

fn install(mmdebstrap: &Path, spec: &DebianSpec, root: &Path) -> Result<()> {
    let mut command = Command::new(mmdebstrap);
    command.args(["--quiet", "--variant=minbase", "--mode=root", "--format=directory"]);
    command.args(LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}")));
    // Needed for what tare asks of any guest: its processes, its interface.
    let packages = ["procps".to_owned(), "iproute2".to_owned()].into_iter().chain(spec.packages());
    command.arg(format!("--include={}", packages.collect::<Vec<_>>().join(",")));
    command.arg(spec.suite()).arg(root);
    // What users of other hosts wrote into their environment is not part of the recipe.
    command.env("LANG", "C.UTF-8").env_remove("TARE_RUN");
    program::run(&mut command, "build a Debian with mmdebstrap", BUILD_LIMIT).map(drop)
}

/// A disk with what is in a directory.
fn pack(root: &Path, image: &Path) -> Result<()> {
    File::options().write(true).open(image).and_then(|file| file.set_len(SIZE)).map_err(writing(image))?;
    let mut command = Command::new(program::find("mke2fs", "e2fsprogs")?);
    // What is left to be written while it is mounted would be written while it is measured.
    command.args(["-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0"]);
    command.arg("-d").arg(root).arg(image);
    program::run(&mut command, "write the disk of a Debian", PACK_LIMIT).map(drop)
}

/// `Package` and `Version` of every paragraph of dpkg's list.
fn installed(root: &Path) -> Result<Vec<String>> {
    let path = root.join("var/lib/dpkg/status");
    let text = fs::read_to_string(&path).map_err(reading(&path))?;
    let paragraphs = text.split("\n\n").filter_map(|paragraph| {
        let value = |key: &str| paragraph.lines().find_map(|line| line.strip_prefix(key));
        Some(format!("{} {}", value("Package: ")?, value("Version: ")?))
    });
    Ok(paragraphs.collect())
}

fn write_recipe(recipe: &Recipe, path: &Path) -> Result<()> {
    let file = cache::beside(path)?;
    serde_json::to_writer_pretty(&file, recipe).map_err(|error| writing(path)(error.into()))?;
    cache::publish(file, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(packages: &[&str]) -> DebianSpec {
        DebianSpec { suite: Some("bookworm".into()), packages: packages.iter().map(|&name| name.into()).collect() }
    }

    #[test]
    fn the_key_is_of_what_goes_in() {
        assert_eq!(key(&spec(&["b", "a"]), "1"), key(&spec(&["a", "b", "a"]), "1"));
        assert_ne!(key(&spec(&["a"]), "1"), key(&spec(&["a", "b"]), "1"));
        assert_ne!(key(&spec(&["a"]), "1"), key(&spec(&["a"]), "2"));
        let sid = DebianSpec { suite: Some("sid".into()), ..spec(&["a"]) };
        assert_ne!(key(&spec(&["a"]), "1"), key(&sid, "1"));
    }

    #[test]
    fn names_that_are_options_or_files_are_refused() {
        for name in ["--mode=x", "./file.deb", "a,b", "?essential", "", "A"] {
            assert!(debian_find(&spec(&[name])).is_err(), "{name}");
        }
        assert!(spec(&["g++", "libc6", "openjdk-17-jre-headless"]).check().is_ok());
    }

    #[test]
    fn the_hosts_suite_is_read() {
        assert_eq!(codename("ID=debian\nVERSION_CODENAME=bookworm\n").as_deref(), Some("bookworm"));
        assert_eq!(codename("ID=ubuntu\nVERSION_CODENAME=noble\n"), None);
    }

    #[test]
    fn a_disk_without_its_recipe_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("debian-1.raw");
        fs::write(&path, [0; 512]).unwrap();
        assert_eq!(find(&path).unwrap(), None);
        fs::write(path.with_extension("json"), "{}").unwrap();
        assert_eq!(find(&path).unwrap().unwrap().virtual_size, 512);
    }

    #[test]
    fn an_image_of_another_host_is_known_by_its_recipe() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("debian-1.raw");
        let recipe = Recipe {
            recipe: RECIPE,
            suite: "bookworm".into(),
            machine: std::env::consts::ARCH.into(),
            packages: vec!["a".into()],
            builder: "another host's".into(),
            installed: Vec::new(),
        };
        write_recipe(&recipe, &path.with_extension("json")).unwrap();
        assert_eq!(of_recipe(place.path(), &spec(&["a"])), None, "its disk was not copied");
        fs::write(&path, [0; 512]).unwrap();
        assert_eq!(of_recipe(place.path(), &spec(&["a"])), Some(path));
        assert_eq!(of_recipe(place.path(), &spec(&["b"])), None);
    }
}
