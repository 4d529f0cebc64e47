//! Root file systems of guests that are processes of the host's: what they may come from, and the overlay that
//! every guest sees them through.

mod archive;
mod image;

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_lab::overlay_refusal;
use tare_model::Refusal;
use tare_wire::launch::{PrivateMount, Upper};

use crate::builder::GuestBuilder;
use crate::error::Result;
use crate::options::Writes;
pub(crate) use image::{ImageSource, SETTINGS, defaults};

/// What helps against a root that cannot be one.
const REMEDY: &str = "Check the path in the study: it must be a system's root, with /dev, /proc and the like in it";

/// Where programs that start guests mount or write something. Some of them follow a link there as the host would, out
/// of the root.
const PLACES: [&str; 10] = ["dev", "proc", "sys", "run", "tmp", "etc", "var", ".tare", ".tare/agent", ".tare/data"];

/// Where a root file system comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RootFs {
    /// The host's root.
    #[default]
    Overlay,
    /// A directory on the host.
    Directory(PathBuf),
    /// A tar archive on the host, not compressed.
    Archive(PathBuf),
    /// A container image on the host.
    Image(ImageSource),
}

impl RootFs {
    /// Looks whether guests can be made from it, as far as can be seen from outside.
    ///
    /// # Errors
    /// Why they cannot, and the remedy.
    pub(crate) fn look(&self) -> std::result::Result<(), Refusal> {
        overlay_refusal().map_or(Ok(()), Err)?;
        self.look_at_source()
    }

    fn look_at_source(&self) -> std::result::Result<(), Refusal> {
        let (path, wanted) = match self {
            Self::Overlay => return Ok(()),
            Self::Directory(path) => (path, "directory"),
            Self::Archive(path) => (path, "file"),
            Self::Image(image) => return Ok(image.look().map(drop)?),
        };
        let why = match path.metadata() {
            Ok(found) if found.is_dir() == (wanted == "directory") => found.is_dir().then(|| leads_out(path)).flatten(),
            Ok(_) => Some(format!("is no {wanted}")),
            Err(error) => Some(format!("is not there ({error})")),
        };
        let refused = |why| Refusal::new(format!("the root file system {} {why}", path.display()), REMEDY);
        why.map_or(Ok(()), |why| Err(refused(why)))
    }

    /// The same once all is done that can be done before a run: a container image is unpacked.
    ///
    /// # Errors
    /// Why they cannot, and the remedy.
    pub(crate) fn check(&self) -> std::result::Result<(), Refusal> {
        match self {
            Self::Image(image) => Ok(image.unpacked().map(drop)?),
            _ => self.look_at_source(),
        }
    }

    /// What a reader must know about it, with where the guest's writes go.
    pub(crate) fn disclosure(&self, upper: Writes) -> String {
        let root = match self {
            Self::Overlay => "The guest reads the host's files through an overlay.".to_owned(),
            Self::Directory(path) => {
                format!("The guest's root is the directory {}, through an overlay.", path.display())
            }
            Self::Archive(path) => {
                format!("The guest's root is unpacked from {}, seen through an overlay.", path.display())
            }
            Self::Image(image) => format!("{}, unpacked and seen through an overlay. {SETTINGS}", image.disclosure()),
        };
        let writes = match upper {
            Writes::Memory => "Its writes go to memory and count against its limit.",
            Writes::Disk => "Its writes go to the host's disk.",
        };
        format!("{root} {writes}")
    }

    /// The tree below the guest's overlay. An archive is unpacked once a run, a container image once by its content; neither
    /// is part of the start.
    pub(crate) fn lower(&self, builder: &mut GuestBuilder<'_>) -> Result<PathBuf> {
        builder.aside(|builder| {
            let lower = self.tree(builder)?;
            match leads_out(&lower) {
                Some(why) if *self != Self::Overlay => {
                    let tried = format!("use the root file system {}", lower.display());
                    Err(builder.failed(&tried, format!("it {why}"), REMEDY))
                }
                _ => Ok(lower),
            }
        })
    }

    fn tree(&self, builder: &mut GuestBuilder<'_>) -> Result<PathBuf> {
        match self {
            Self::Overlay => Ok("/".into()),
            Self::Directory(path) => std::path::absolute(path).map_err(|error| {
                builder.failed("find its root directory", error.to_string(), "Check the path in the study")
            }),
            Self::Archive(path) => {
                // It outlives the guest, so it is not written down for it: reaping finds the run's directory by its id.
                let images = builder.disk()?.join("images");
                archive::unpacked(path, &images).map_err(|error| {
                    builder.failed(
                        &format!("unpack {}", path.display()),
                        error.to_string(),
                        "Make the archive anew, from the root of a file system",
                    )
                })
            }
            Self::Image(image) => {
                let unpacked =
                    image.unpacked().map_err(|error| builder.failed(&error.tried, error.why, &error.remedy))?;
                builder.parts.commands = Some(defaults(&unpacked.image));
                Ok(unpacked.root)
            }
        }
    }
}

/// What in a root leads out of it and must not; `None` when nothing does.
fn leads_out(root: &Path) -> Option<String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(root, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(error) => return Some(format!("cannot be opened: {error}")),
    };
    PLACES.into_iter().find_map(|place| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match openat2(&opened, place, flags, Mode::empty(), ResolveFlags::BENEATH) {
            // A runtime makes what is missing.
            Ok(_) | Err(Errno::NOENT) => None,
            Err(Errno::XDEV) => Some(format!("has a link at /{place} that leads out of it")),
            Err(error) => Some(format!("has a /{place} that cannot be used: {error}")),
        }
    })
}

/// The overlay of `lower` on the directory `at`, with the guest's writes where they are wanted.
pub(crate) fn overlay(
    builder: &mut GuestBuilder<'_>,
    lower: PathBuf,
    at: &Path,
    upper: Writes,
) -> Result<PrivateMount> {
    let upper = match upper {
        Writes::Memory => Upper::Memory,
        Writes::Disk => Upper::Disk(builder.layers()?),
    };
    Ok(PrivateMount::Overlay { lower, at: at.to_owned(), upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_with_a_link_out_of_it_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        std::fs::create_dir_all(root.join("var/tmp")).unwrap();
        std::os::unix::fs::symlink("var/tmp", root.join("tmp")).unwrap();
        assert_eq!(RootFs::Directory(root.clone()).look_at_source(), Ok(()), "a link inside");
        for (at, target) in [("dev", "/tmp"), ("proc", "../.."), ("run", "var/run"), ("etc", "etc"), (".tare", "/none")]
        {
            std::os::unix::fs::symlink("/tmp", root.join("var/run")).unwrap();
            std::os::unix::fs::symlink(target, root.join(at)).unwrap();
            let said = format!("{:?}", RootFs::Directory(root.clone()).look_at_source().unwrap_err());
            assert!(said.contains(&format!("/{at}")), "{said}");
            std::fs::remove_file(root.join(at)).unwrap();
            std::fs::remove_file(root.join("var/run")).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_a_root_is_refused_before_any_guest() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(RootFs::Overlay.look_at_source(), Ok(()));
        assert_eq!(RootFs::Directory(place.path().into()).look_at_source(), Ok(()));
        assert_eq!(RootFs::Archive(file.clone()).look_at_source(), Ok(()));
        for (root, word) in [
            (RootFs::Directory(file.clone()), "no directory"),
            (RootFs::Archive(place.path().into()), "no file"),
            (RootFs::Directory("/none".into()), "not there"),
            (RootFs::Directory(file.join("below")), "not there"),
        ] {
            let said = format!("{:?}", root.look_at_source().unwrap_err());
            assert!(said.contains(word), "{root:?}: {said}");
        }
    }
}
