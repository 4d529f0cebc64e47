//! Where a guest's root is mounted for the daemon to see: in the host's mount namespace, below a mount of the guest's own that
//! is taken away with all below it.

use std::path::{Path, PathBuf};

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use tare_lab::Resource;
use tare_wire::launch::{PrivateMount, Upper};

use crate::builder::GuestBuilder;
use crate::error::Result;
use crate::options::Writes;

/// The place.
pub(super) struct Stage {
    at: PathBuf,
}

impl Stage {
    /// The place in that directory of the guest's. Nothing is made yet.
    pub(super) fn of(folder: &Path) -> Self {
        Self { at: folder.join("stage") }
    }

    /// Where the root will be.
    pub(super) fn root(&self) -> PathBuf {
        self.at.join("root")
    }

    /// Takes all away that is mounted there; nothing when nothing is.
    pub(super) fn unmount(&self, state: &Path) -> std::result::Result<(), String> {
        tare_lab::unmount_exact(&self.at, state).map(drop)
    }

    /// Makes the place, and gives the overlay that is to be mounted in it, of `lower`.
    pub(super) fn overlay(
        &self,
        builder: &mut GuestBuilder<'_>,
        lower: PathBuf,
        writes: Writes,
    ) -> Result<PrivateMount> {
        builder.write_down(&Resource::Mount { path: self.at.clone() })?;
        self.bind(builder, &self.at, &self.at)?;
        let upper = match writes {
            Writes::Memory => Upper::Memory,
            Writes::Disk => {
                let (layers, at) = (builder.layers()?, self.at.join("layers"));
                self.bind(builder, &layers, &at)?;
                Upper::Disk(at)
            }
        };
        Ok(PrivateMount::Overlay { lower, at: self.root(), upper })
    }

    /// Shows a directory at that place, apart from where mounts are handed on: the kernel moves no mount out of one that is
    /// shared with others.
    fn bind(&self, builder: &GuestBuilder<'_>, from: &Path, at: &Path) -> Result<()> {
        let made = std::fs::create_dir_all(at).map_err(|error| error.to_string()).and_then(|()| {
            let mounted = mount_bind(from, at).and_then(|()| mount_change(at, MountPropagationFlags::PRIVATE));
            mounted.map_err(|error| std::io::Error::from(error).to_string())
        });
        made.map_err(|why| {
            builder.failed(
                &format!("make a mount at {}", at.display()),
                why,
                "tare must run as root, where root may mount",
            )
        })
    }
}
