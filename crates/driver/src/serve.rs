//! Starts what serves in the guest.

use std::net::IpAddr;

use tare_model::packed::Packed;

use crate::{DriverError, registry};

pub use crate::server::{ServeReport, Server};

/// Starts serving on `bind`, on a port that the kernel chooses.
///
/// # Errors
/// When nobody here serves such a task, it is impossible, the address cannot be bound, the kernel refuses a socket setting
/// or a thread.
pub fn start(task: &Packed, bind: IpAddr) -> Result<Server, DriverError> {
    registry::serve(task, bind)
}
