//! How a trial makes a guest like its measured one.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tare_model::guest::GuestSpec;
use tare_platform::{Guest, Platform, Site};

use crate::cancel::Cancel;
use crate::text::fit;

/// What guests are made by.
pub(super) struct Recipe<'a> {
    pub(super) platform: &'a dyn Platform,
    pub(super) site: &'a Site<'a>,
    pub(super) cancel: &'a Cancel,
    /// What is asked for each, but for its name.
    pub(super) spec: GuestSpec,
    /// How many were asked for.
    pub(super) made: AtomicU64,
}

impl Recipe<'_> {
    /// What no other guest's name of the run begins with but those of this recipe.
    pub(super) fn stem(&self) -> &str {
        &self.spec.name
    }

    /// The next guest: nobody else has its name.
    fn next(&self) -> GuestSpec {
        let name = format!("{}x{}", self.spec.name, self.made.fetch_add(1, Ordering::Relaxed));
        GuestSpec { name, ..self.spec.clone() }
    }

    /// Makes one from nothing.
    pub(super) fn make(&self) -> Result<Box<dyn Guest>, String> {
        self.platform.start(self.site, &self.next()).map_err(|error| fit(&error.to_string()))
    }

    /// Makes one of a snapshot.
    pub(super) fn restore(&self, snapshot: &Path) -> Result<Box<dyn Guest>, String> {
        self.platform.restore(self.site, &self.next(), snapshot).map_err(|error| fit(&error.to_string()))
    }

    /// Fails once the run is to end.
    pub(super) fn goes_on(&self) -> Result<(), String> {
        self.ended().map_or(Ok(()), Err)
    }

    /// Why nothing further is to be made, if the run is to end.
    pub(super) fn ended(&self) -> Option<String> {
        self.cancel.reason().map(|reason| format!("stopped by {reason}"))
    }
}
