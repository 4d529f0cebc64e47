//! What provides guests: the [`Platform`] and [`Guest`] traits, one folder a platform, and the registry.
//!
//! A platform is added by a folder of its own and one line in [`registry`]. Nothing else in tare knows
//! it by name. What they share (a guest that is a process with a channel on its standard input and
//! output, its control group, its link, its teardown) is in `making`, `standing` and `channel`.

mod beside;
mod bundle;
mod channel;
mod client;
mod confinement;
#[cfg(feature = "conformance")]
pub mod conformance;
mod data;
mod engine;
mod error;
mod groups;
mod launch;
mod machine;
mod making;
mod merging;
mod options;
mod parity;
mod platform;
mod program;
pub mod registry;
mod remembered;
mod restore;
mod rootfs;
mod seen;
mod standing;
mod sys;
mod system;
mod taken;
mod watch;

mod container;
mod containerd;
mod docker;
mod libvirt;
mod lxc;
mod native;
mod nspawn;
mod null;
mod oci;
mod podman;
mod qemu;
mod ssh;

pub use client::{ClientPlace, client, services};
pub use error::PlatformError;
pub use platform::{
    Availability, Charge, Comparable, CountReader, DataWanted, Guest, GuestLink, HostView, LinkEnd, Platform, Reach,
    ReapSite, Site, StartParts,
};
pub use program::agent;
pub use remembered::look_again;
/// Where what is kept from run to run is: kernels, images, gold copies.
pub use tare_image::cache_directory;
