//! What provides guests: the [`Platform`] and [`Guest`] traits, one folder a platform, and the registry.
//!
//! A platform is added by a folder of its own and one line in [`registry`]. Nothing else in tare knows
//! it by name. What they share (a guest that is a process with a channel on its standard input and
//! output, its control group, its link, its teardown) is in `making`, `standing` and `channel`.

mod channel;
mod client;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod making;
mod options;
mod parity;
mod platform;
mod program;
pub mod registry;
mod standing;

mod container;
mod native;
mod null;
mod oci;

pub use client::client;
pub use error::PlatformError;
pub use platform::{Availability, Comparable, Guest, GuestLink, HostView, LinkEnd, Platform, ReapSite, Site};
