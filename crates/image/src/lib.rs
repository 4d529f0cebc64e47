//! Guest images: everything that a virtual machine boots from.
//!
//! A kernel ([`Kernel`]), the initial file system with the agent as its `/init` ([`boot`]), that agent's configuration
//! ([`GuestConfig`]), disks ([`inspect`], [`overlay`], [`blank`], [`gold_image`]), a Debian built here ([`debian_build`]), the seed
//! that brings the agent into an image of the user's own ([`seed`]), and the root file systems of container images
//! ([`container_unpacked`]). The platforms share it; it knows none of them.

mod cache;
mod clone;
mod config;
mod container;
mod debian;
mod disk;
mod error;
mod gold;
mod initrd;
mod kernel;
mod library;
mod modules;
mod program;
mod qcow2;
mod seed;
pub mod testing;

pub use cache::{Cached, cache_directory, cached, clear};
pub use clone::{blank, overlay, raw_copy};
pub use config::{DataDisk, GuestConfig, IscsiDisk, IscsiQueue, Root};
pub use container::{ContainerImage, Unpacked, container_look, container_unpacked};
pub use debian::{DebianSpec, debian_build, debian_find, debian_is_there};
pub use disk::{Disk, Format, inspect};
pub use error::ImageError;
pub use gold::{DATA_FILESYSTEM, gold_image, make_cold};
pub use initrd::{Boot, Extras, boot};
pub use kernel::Kernel;
pub use program::{PATH, Ran, find_program, run_program};
pub use seed::{Seed, seed};

/// Name of the virtio port that the agent serves: the platform gives it to the port, the guest finds it by it.
pub const CHANNEL_PORT: &str = "org.tare.agent.0";
