//! What the platforms of virtual machines share.

pub(crate) mod share;
