//! Starts what serves in the guest.

use tare_model::packed::Packed;

use crate::{DriverError, registry};

pub use crate::door::Door;
pub use crate::server::{ServeReport, Server};

/// Starts serving at a door.
///
/// # Errors
/// When nobody here serves such a task, it is impossible, the address cannot be bound, the kernel refuses a socket setting
/// or a thread.
pub fn start(task: &Packed, at: impl Into<Door>) -> Result<Server, DriverError> {
    registry::serve(task, at.into())
}
