//! What the platforms of virtual machines share.

pub(crate) mod attempt;
pub(crate) mod counts;
pub(crate) mod image;
pub(crate) mod inside;
pub(crate) mod kernel;
pub(crate) mod memory;
pub(crate) mod own;
pub(crate) mod pinning;
pub(crate) mod share;
pub(crate) mod target;
pub(crate) mod user;
pub(crate) mod volume;
