//! What provides guests: the [`Platform`] and [`Guest`] traits, one folder a platform, and the registry.
//!
//! A platform is added by a folder of its own and one line in [`registry`]. Nothing else in tare knows
//! it by name. What they share (a guest that is a process with a channel on its standard input and
//! output, its control group, its link, its teardown) is in `builder`, `guest` and `channel`.

mod attachment;
mod builder;
mod bundle;
mod channel;
mod client;
mod confinement;
#[cfg(feature = "conformance")]
pub mod conformance;
mod data;
mod data_directory;
mod engine;
mod entry;
mod error;
mod groups;
mod guest;
mod guest_mount;
mod guest_setup;
mod held;
mod host_figures;
mod host_view;
mod landlock;
mod launch;
mod machine;
mod merging;
mod numbered;
mod options;
mod parity;
mod platform;
mod probe_cache;
mod program;
pub mod registry;
mod restore;
mod rootfs;
mod sys;
mod system;
mod watch;

mod bubblewrap;
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
mod systemd_run;

pub use channel::Tail;
pub use client::{ClientPlace, client, services};
pub use error::PlatformError;
pub use host_figures::{HostCounters, HostFigure, HostMetrics, HostReading};
pub use host_view::{HostView, Notes};
pub use parity::cpus_online;
pub use platform::{
    Balloon, Charge, Comparable, CountReader, DataWanted, Guest, GuestLink, LinkEnd, Platform, Reach, ReapSite, Site,
    StartParts,
};
pub use probe_cache::look_again;
pub use program::agent;
/// Where what is kept from run to run is: kernels, images, gold copies.
pub use tare_image::cache_directory;
/// What is counted of a guest's page faults.
pub use tare_lab::PageFaults;
