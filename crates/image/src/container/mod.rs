//! Container images as root file systems: an image layout of the OCI's as a directory or an archive, or what
//! `docker save` writes. An image is looked at before a run, unpacked once by its content, and never run from where the
//! user has it.

mod choose;
mod layer;
mod source;
mod tar_entry;
mod tree;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock, statvfs, syncfs};

use crate::cache::{self, CONTAINERS, Key};
use crate::error::{ImageError, Result, writing};
pub(crate) use choose::processor;
use layer::{Budget, Layer};
use source::Source;
use tree::Tree;

/// What helps against an image that is not whole.
const REMAKE: &str = "make it anew, for instance by `skopeo copy docker://NAME oci:PATH:TAG`, `podman save --format oci-archive -o PATH NAME` \
     or `docker save -o PATH NAME`";

/// Room on the disk that unpacking leaves to others, bytes.
const LEFT_FREE: u64 = 512 << 20;

/// The most that an image may unpack to, bytes.
const LARGEST: u64 = 64 << 30;

/// A container image: one that was found for this host, not unpacked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerImage {
    /// Where it is: a directory or an archive.
    pub path: PathBuf,
    /// What it is called there; some have no name.
    pub name: Option<String>,
    /// The digest of its manifest, or of its configuration where it has no manifest of its own.
    pub digest: String,
    /// Its environment, for commands of a user's.
    pub env: Vec<(String, String)>,
    /// Its working directory, for commands of a user's.
    pub directory: Option<String>,
    layers: Vec<Layer>,
}

impl ContainerImage {
    /// The digests of its layers once they are uncompressed, the lowest first.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().map(|layer| layer.uncompressed.as_str())
    }
}

/// A container image that was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// What was unpacked.
    pub image: ContainerImage,
    /// Its root. Nobody may write to it: it is shared by all guests, and by runs to come.
    pub root: PathBuf,
}

/// Why an image cannot be used, and what helps.
#[derive(Debug)]
struct Bad {
    why: String,
    remedy: String,
}

type Found<T> = std::result::Result<T, Bad>;

impl Bad {
    fn new(why: impl Display, remedy: impl Into<String>) -> Self {
        Self { why: why.to_string(), remedy: remedy.into() }
    }
}

/// An image that is not whole, or is no image.
fn bad(why: impl Display) -> Bad {
    Bad::new(why, REMAKE)
}

fn refused(path: &Path) -> impl FnOnce(Bad) -> ImageError {
    let tried = format!("use the container image {}", path.display());
    move |bad| ImageError::new(tried, bad.why, bad.remedy)
}

/// Looks at an image: finds the one that is meant for this host, checks manifest and configuration by their digests, and
/// that every layer is there in its size. Nothing is unpacked. `name` is needed where there are several.
///
/// # Errors
/// When it is not there, is none, has several or none for this host, or is not whole.
pub fn container_look(path: &Path, name: Option<&str>) -> Result<ContainerImage> {
    found(path, name).map(|(_, image)| image).map_err(refused(path))
}

fn found(path: &Path, name: Option<&str>) -> Found<(Source, ContainerImage)> {
    let source = Source::open(path)?;
    let chosen = choose::choose(&source, name)?;
    for layer in &chosen.layers {
        layer.look(&source)?;
    }
    Ok((source, chosen))
}

/// What was unpacked by this process or is used by it: which image was asked for, the tree, and the lock that keeps the
/// tree in the cache. All guests of a run get the same, whatever becomes of the user's file meanwhile.
type Held = BTreeMap<(PathBuf, Option<String>), (Unpacked, File)>;

static HELD: Mutex<Held> = Mutex::new(BTreeMap::new());

/// The root file system of an image, unpacked when it is asked for the first time and kept in the cache by its content.
/// Others who ask for the same, of other processes too, wait.
///
/// # Errors
/// As [`container_look`]; when a layer is not what its digest says, something in it leads out of the root, it is too
/// large, or the cache cannot be written.
pub fn container_unpacked(path: &Path, name: Option<&str>) -> Result<Unpacked> {
    let asked = (path.to_owned(), name.map(str::to_owned));
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody is to wait for a lock on what is gone.
    held.retain(|_, (unpacked, _)| unpacked.root.is_dir());
    if let Some((unpacked, _)) = held.get(&asked) {
        return Ok(unpacked.clone());
    }
    let (source, image) = found(path, name).map_err(refused(path))?;
    let (root, lock) = kept(&source, &image, &cache::folder(CONTAINERS)?)?;
    let unpacked = Unpacked { image, root };
    held.insert(asked, (unpacked.clone(), lock));
    Ok(unpacked)
}

/// The tree in a folder of the cache, and the lock that keeps it there.
fn kept(source: &Source, image: &ContainerImage, folder: &Path) -> Result<(PathBuf, File)> {
    // Programs in it may be set-user-ID: no user of the host's is to reach them.
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).map_err(writing(folder))?;
    let mut key = Key::default();
    image.layers().for_each(|digest| key.add(digest.as_bytes()));
    key.add(&[u8::from(keeps_owners())]);
    let name = key.name();
    let (place, lock_path) = (folder.join(&name), folder.join(format!(".{name}.lock")));
    let root = place.join("root");
    let lock = File::create(&lock_path).map_err(writing(&lock_path))?;
    let take = |how| flock(&lock, how).map_err(|error| writing(&lock_path)(error.into()));
    loop {
        // Who uses the tree shares it with others who do, for as long as a run takes; who makes it is alone.
        take(FlockOperation::LockShared)?;
        if root.is_dir() {
            return Ok((root, lock));
        }
        take(FlockOperation::LockExclusive)?;
        if !root.is_dir() {
            make(source, image, &place, &root)?;
        }
        // Shared again, it is given up for a moment, in which somebody may clear the cache.
    }
}

/// Unpacks an image beside its place; what is in its place is whole. Only for who holds the lock.
fn make(source: &Source, image: &ContainerImage, place: &Path, root: &Path) -> Result<()> {
    let aside = place.join("new");
    let clean = || match fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(writing(&aside)(error)),
        _ => Ok(()),
    };
    // Of a process that was killed at it.
    clean()?;
    fs::create_dir_all(place).map_err(writing(place))?;
    fs::DirBuilder::new().mode(0o755).create(&aside).map_err(writing(&aside))?;
    let done = unpack(source, image, &aside).map_err(refused(&image.path)).and_then(|()| {
        // A tree that is there by its name is whole after a power failure, too.
        let on_disk = File::open(&aside).and_then(|opened| Ok(syncfs(opened)?));
        on_disk.and_then(|()| fs::rename(&aside, root)).map_err(writing(root))
    });
    if done.is_err() {
        clean()?;
        // The lock stays, for somebody may be waiting for it.
        let _ = fs::remove_dir(place);
    }
    done
}

/// Unpacks all layers into an empty directory.
fn unpack(source: &Source, image: &ContainerImage, into: &Path) -> Found<()> {
    let no_room = "give the cache more room (TARE_CACHE names another directory), or use a smaller image";
    let seen = statvfs(into).map_err(|error| Bad::new(format!("{}: {error}", into.display()), no_room))?;
    let free = seen.f_bavail.saturating_mul(seen.f_frsize).saturating_sub(LEFT_FREE);
    let mut budget = Budget { bytes: free.min(LARGEST), remedy: no_room };
    let mut tree = Tree::open(into, keeps_owners())?;
    for layer in &image.layers {
        layer.read(source, &mut budget, |tar| tree.apply(tar))?;
    }
    Ok(())
}

/// Whether files can belong to whom the image says: a user who is root of a user namespace has no other users.
fn keeps_owners() -> bool {
    rustix::process::geteuid().is_root() && !tare_lab::is_rootless()
}

#[cfg(test)]
mod tests;
