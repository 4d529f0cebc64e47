//! What a machine boots: the options of all platforms of virtual machines that say so, and the image that is meant.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_image::{DebianSpec, Disk, Format, ImageError, Root};
use tare_model::guest::CommandDefaults;

use super::share;
use super::volume::Form;
use crate::rootfs::{ImageSource, SETTINGS, defaults};

/// The root disk in guests that have one, and the type of its file system in a Debian that was built here.
const ROOT_DISK: (&str, &str) = ("vda", "ext4");

/// What the guest's root file system is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Image {
    /// The host's own root over virtiofs; what the guest writes stays in its memory.
    #[default]
    Host,
    /// A container image over virtiofs, in the same way.
    Oci(ImageSource),
    /// A Debian built by `tare image build debian`.
    Debian(DebianImage),
    /// A disk image of one's own, booted by its own boot loader and set up by its cloud-init.
    File(FileImage),
}

/// A Debian that was built here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct DebianImage {
    /// Suite, such as `bookworm`. Left out: the host's.
    pub suite: Option<String>,
    /// Packages beyond the smallest system.
    pub packages: Vec<String>,
}

/// A disk image of one's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct FileImage {
    /// The image, a file or a block device. It is never written.
    pub path: PathBuf,
    /// Its format. It is never guessed: a guest that writes a header could otherwise choose what the host reads.
    pub format: DiskFormat,
}

/// Format of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DiskFormat {
    /// Byte for byte.
    Raw,
    /// QEMU's own. One that refers to another file (a backing file) is refused.
    Qcow2,
}

impl DiskFormat {
    /// As QEMU and libvirt name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }

    /// What a guest writes to that has a disk of this format.
    pub(crate) const fn form(self) -> Form {
        match self {
            Self::Raw => Form::Raw,
            Self::Qcow2 => Form::Qcow2,
        }
    }
}

impl From<DiskFormat> for Format {
    fn from(format: DiskFormat) -> Self {
        match format {
            DiskFormat::Raw => Self::Raw,
            DiskFormat::Qcow2 => Self::Qcow2,
        }
    }
}

impl From<&DebianImage> for DebianSpec {
    fn from(image: &DebianImage) -> Self {
        Self { suite: image.suite.clone(), packages: image.packages.clone() }
    }
}

impl Image {
    /// The image that root disks are cloned from; none where the root is shared, which then is there.
    ///
    /// # Errors
    /// When it is not there, or not what it is said to be.
    pub(crate) fn base(&self) -> Result<Option<Disk>, ImageError> {
        match self {
            Self::Host => Ok(None),
            Self::Oci(image) => image.unpacked().map(|_| None),
            Self::File(file) => tare_image::inspect(&file.path, file.format.into()).map(Some),
            Self::Debian(debian) => match tare_image::debian_find(&debian.into())? {
                Some(disk) => Ok(Some(disk)),
                None => Err(not_built(debian)),
            },
        }
    }

    /// Whether root disks are cloned from an image, which then is there as far as can be seen without running a program.
    ///
    /// # Errors
    /// When it is not there, or not what it is said to be.
    pub(crate) fn look(&self) -> Result<bool, ImageError> {
        match self {
            Self::Host => Ok(false),
            Self::Oci(image) => image.look().map(|_| false),
            Self::File(_) => self.base().map(|_| true),
            Self::Debian(debian) if tare_image::debian_is_there(&debian.into())? => Ok(true),
            Self::Debian(debian) => Err(not_built(debian)),
        }
    }

    /// Whether guests see a tree of the host's over virtiofs, and have no disk for their root.
    pub(crate) const fn is_shared(&self) -> bool {
        matches!(self, Self::Host | Self::Oci(_))
    }

    /// The tree that is shared, where that is not the host's root, and what holds for commands in it.
    ///
    /// # Errors
    /// When it cannot be unpacked.
    pub(crate) fn tree(&self) -> Result<Option<(PathBuf, CommandDefaults)>, ImageError> {
        let Self::Oci(image) = self else { return Ok(None) };
        image.unpacked().map(|unpacked| Some((unpacked.root, defaults(&unpacked.image))))
    }

    /// What the agent makes the root of, where it is the first process; `None` where the image boots by itself.
    pub(crate) fn root(&self) -> Option<Root> {
        match self {
            Self::Host | Self::Oci(_) => Some(Root::Virtiofs { tag: share::TAG.into() }),
            Self::Debian(_) => Some(Root::Disk { device: ROOT_DISK.0.into(), filesystem: ROOT_DISK.1.into() }),
            Self::File(_) => None,
        }
    }

    /// What a reader must know of a root that is shared.
    pub(crate) fn shared_disclosure(&self) -> Option<String> {
        match self {
            Self::Host => Some(format!(
                "The guest reads the host's root over virtiofs (cache=always) and writes to its own memory. {}",
                share::disclosure()
            )),
            Self::Oci(image) => Some(format!(
                "{}, unpacked, which it reads over virtiofs (cache=always); it writes to its own memory. {SETTINGS} {}",
                image.disclosure(),
                share::disclosure()
            )),
            _ => None,
        }
    }

    /// Whether it boots by itself, with its own kernel, and nobody tells its kernel anything.
    pub(crate) const fn is_own(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Whether it is a Debian built here without what a guest logs in to an iSCSI target with.
    pub(crate) fn cannot_log_in(&self) -> bool {
        matches!(self, Self::Debian(debian) if !debian.packages.iter().any(|name| name == "open-iscsi"))
    }
}

fn not_built(debian: &DebianImage) -> ImageError {
    let suite = debian.suite.as_ref().map(|suite| format!(" --suite {suite}")).unwrap_or_default();
    let packages = debian.packages.join(",");
    let packages = if packages.is_empty() { packages } else { format!(" --packages {packages}") };
    ImageError {
        tried: "boot a Debian".into(),
        why: "this image of it is not built yet".into(),
        remedy: format!("Run `tare image build debian{suite}{packages}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debian_that_is_not_built_is_reported_with_the_command_that_builds_it() {
        let debian = DebianImage { suite: Some("trixie".into()), packages: vec!["a".into(), "b".into()] };
        let error = not_built(&debian);
        assert!(error.remedy.contains("debian --suite trixie --packages a,b`"), "{error}");
        assert!(not_built(&DebianImage::default()).remedy.ends_with("debian`"));
        assert!(Image::Debian(debian).cannot_log_in() && !Image::Host.cannot_log_in());
    }

    #[test]
    fn the_hosts_root_needs_no_disk_and_a_missing_one_is_reported() {
        assert!(Image::Host.base().is_ok_and(|disk| disk.is_none()));
        let file = Image::File(FileImage { path: "/no/such/disk".into(), format: DiskFormat::Raw });
        assert!(file.is_own() && file.base().is_err_and(|error| error.to_string().contains("/no/such/disk")));
    }
}
