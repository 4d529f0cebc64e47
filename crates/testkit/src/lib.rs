//! Platforms and workloads that fail on purpose, for tests: one way for each phase of a trial.
//!
//! [`Failing`] wraps the shipped registry. Everything before the chosen phase is the real thing, so
//! what a test sees torn down is what a user's run would have made.

mod platform;
mod skip;
mod workload;

use serde_json::Value;
use tare_controller::{Registry, Shipped};
use tare_model::field::FieldError;
use tare_model::load::LoadModel;
use tare_model::trial::Phase;
use tare_platform::Platform;
use tare_workload::Workload;

pub use skip::skipped;

/// The shipped platforms and workloads, of which those of one arm or case fail in one phase.
#[derive(Debug, Clone, Copy)]
pub struct Failing {
    /// Where it fails.
    pub phase: Phase,
}

/// What failures say, so that tests can see that the reason came through.
pub const REASON: &str = "failed on purpose";

impl Registry for Failing {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        let inner = Shipped.platform(name, options)?;
        Ok(Box::new(platform::FailingPlatform { inner, phase: self.phase }))
    }

    fn workload(&self, name: &str, parameters: &Value, load: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        let inner = Shipped.workload(name, parameters, load)?;
        Ok(Box::new(workload::FailingWorkload { inner, phase: self.phase }))
    }
}
