//! Users of a web site: sessions, their connections, and what is right.

use std::sync::atomic::AtomicBool;

use tare_model::drive::{DriveInterval, DriveResult, DriveSpec};
use tare_model::web::WebDrive;

use crate::DriverError;
use crate::timeline::Timeline;

/// Refuses what cannot be driven.
pub(crate) fn check(_drive: &WebDrive) -> Result<(), DriverError> {
    Ok(())
}

/// All users, ready.
#[derive(Debug)]
pub(crate) struct Crowd;

impl Crowd {
    /// Sees the server answer.
    pub fn prepare(_spec: &DriveSpec, _drive: &WebDrive, _cancel: &AtomicBool) -> Result<Self, DriverError> {
        Err(DriverError::invalid("not there yet", "wait"))
    }

    /// Drives.
    pub fn run(
        self,
        _timeline: Timeline,
        _progress: &dyn Fn(DriveInterval),
        _cancel: &AtomicBool,
    ) -> Result<DriveResult, DriverError> {
        Err(DriverError::invalid("not there yet", "wait"))
    }
}
