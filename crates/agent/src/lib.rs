//! The program that runs inside every guest and on every client host.
//!
//! As an agent it serves the controller's requests over a byte stream ([`session`]); as a launcher
//! it first puts itself into the namespaces of a guest ([`enter`]). It is one static file and needs
//! nothing where it runs: no library, no file, not even a mounted `/proc`.

pub mod age;
pub mod channel;
pub mod children;
pub mod confine;
pub mod enter;
pub mod error;
pub mod exec;
pub mod exit;
pub mod facts;
mod fetch;
pub mod files;
mod fstab;
mod hold;
pub mod init;
pub mod program;
mod resident;
mod root;
pub mod session;
mod started;
mod sys;
mod user;
mod work;
