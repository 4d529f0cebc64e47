//! What the agent's part of a workload does: it drives load, serves, or does something at once.

use std::sync::atomic::AtomicBool;

use tare_model::drive::DriveSpec;
use tare_model::packed::{Packed, Task, pack_outcome};

use crate::DriverError;
use crate::course::Drive;
use crate::door::Door;
use crate::server::Server;

/// A task that is to drive load.
pub(crate) trait Drives: Task {
    /// Opens every connection and sees each server answer that it serves this load.
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError>;
}

/// A task that is to serve.
pub(crate) trait Serves: Task {
    /// Listens at a door.
    fn serve(self, door: Door) -> Result<Server, DriverError>;
}

/// A task that is done at once.
pub(crate) trait Calls: Task {
    /// Does it. Setting `cancel` ends it early.
    fn call(self, cancel: &AtomicBool) -> Self::Outcome;
}

/// What prepares a driver.
type Prepare = fn(&DriveSpec, &AtomicBool) -> Result<Box<dyn Drive>, DriverError>;
/// What starts a server.
type Serve = fn(&Packed, Door) -> Result<Server, DriverError>;
/// What does a task at once.
type Call = fn(&Packed, &AtomicBool) -> Result<Vec<u8>, DriverError>;

/// One kind of task, and who does it in the role that it has.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub name: &'static str,
    pub prepare: Option<Prepare>,
    pub serve: Option<Serve>,
    pub call: Option<Call>,
}

impl Kind {
    const fn of<T: Task>() -> Self {
        Self { name: T::KIND, prepare: None, serve: None, call: None }
    }

    pub const fn drives<T: Drives>() -> Self {
        let prepare = |spec: &DriveSpec, cancel: &AtomicBool| spec.task.unpack::<T>()?.prepare(spec, cancel);
        Self { prepare: Some(prepare), ..Self::of::<T>() }
    }

    pub const fn serves<T: Serves>() -> Self {
        Self { serve: Some(|task, door| task.unpack::<T>()?.serve(door)), ..Self::of::<T>() }
    }

    pub const fn calls<T: Calls>() -> Self {
        let call = |task: &Packed, cancel: &AtomicBool| Ok(pack_outcome::<T>(&task.unpack::<T>()?.call(cancel))?);
        Self { call: Some(call), ..Self::of::<T>() }
    }
}
