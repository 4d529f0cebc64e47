//! A platform whose guests fail in one phase.

use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::PathBuf;

use tare_model::guest::{GuestSpec, ParityRow};
use tare_model::trial::Phase;
use tare_platform::{Guest, Platform, PlatformError, Site};

use crate::REASON;
use crate::forward::forward;

/// A real platform, but for one phase.
pub struct FailingPlatform {
    pub inner: Box<dyn Platform>,
    pub phase: Phase,
}

/// Neighbours' names begin with this; the measured guest's does not.
pub const NEIGHBOUR: char = 'n';

impl Platform for FailingPlatform {
    forward!(look, disclosures, comparable, versions);

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>, PlatformError> {
        let neighbour = spec.name.starts_with(NEIGHBOUR);
        if self.phase == Phase::Provision || (self.phase == Phase::Neighbours && neighbour) {
            return Err(not_started(spec));
        }
        let mut inner = self.inner.start(site, spec)?;
        if self.phase == Phase::Connect {
            inner.kill()?;
        }
        Ok(Box::new(FailingGuest { inner: ManuallyDrop::new(inner), phase: self.phase }))
    }
}

/// The failure of a start on purpose.
pub fn not_started(spec: &GuestSpec) -> PlatformError {
    PlatformError::Start {
        guest: spec.name.clone(),
        tried: "start it".into(),
        why: REASON.into(),
        remedy: "Do not use a failing platform".into(),
        diagnostics: String::new(),
    }
}

/// A real guest, but for one phase.
struct FailingGuest {
    inner: ManuallyDrop<Box<dyn Guest>>,
    phase: Phase,
}

impl Drop for FailingGuest {
    /// A guest whose teardown fails stays: dropping it would take it away after all.
    fn drop(&mut self) {
        if self.phase != Phase::Teardown && self.inner.destroy().is_err() {
            // Its own drop would only try the same again.
            report_left_behind(self.inner.spec());
        }
    }
}

fn report_left_behind(spec: &GuestSpec) {
    // A test that leaves guests behind must not look as if it had passed.
    let _ = writeln!(std::io::stderr(), "guest {} of a test was not taken away", spec.name);
}

impl Guest for FailingGuest {
    forward!(spec, link, address, facts, data, start_time_s, drops, diagnostics, kill);

    fn groups(&self) -> Vec<PathBuf> {
        if self.phase == Phase::Collect {
            // Groups that are not there: nothing can be read of them.
            return vec![PathBuf::from("/nonexistent/tare")];
        }
        self.inner.groups()
    }

    fn parity(&self) -> Vec<ParityRow> {
        let mut rows = self.inner.parity();
        if self.phase == Phase::Parity {
            for row in &mut rows {
                row.granted = None;
                row.equal = false;
                row.note = REASON.into();
            }
        }
        rows
    }

    fn destroy(&mut self) -> Result<(), PlatformError> {
        if self.phase == Phase::Teardown {
            let guest = self.inner.spec().name.clone();
            return Err(PlatformError::Destroy { guest, failures: vec![REASON.into()] });
        }
        self.inner.destroy()
    }
}
