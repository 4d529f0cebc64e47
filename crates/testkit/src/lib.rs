//! Platforms and workloads that fail on purpose, for tests: one way for each phase of a trial, and some ways in which
//! a guest may turn against its controller.
//!
//! [`Failing`] and [`Hostile`] wrap the shipped registry. Everything before the chosen phase is the real thing, so
//! what a test sees torn down is what a user's run would have made.

pub mod attack;
mod burning;
mod crowd;
pub mod emulated;
mod forward;
mod hostile;
mod limited;
mod meeting;
mod platform;
mod several;
mod skip;
mod tiles;
mod workload;

use serde_json::Value;
use tare_controller::{Registry, Shipped};
use tare_model::field::FieldError;
use tare_model::load::LoadModel;
use tare_model::trial::Phase;
use tare_platform::Platform;
use tare_workload::{Workload, WorkloadError};

pub use burning::{BURNT, Burning, Burnt};
pub use crowd::{AVAILABLE, CALIBRATED, Crowd, EACH, Mishap, RATE_OF_EACH, RESPONSE, TOTAL};
pub use hostile::Mischief;
pub use limited::{Hitch, Limited, QUICK_S, Sights};
pub use meeting::Meeting;
pub use several::{RATE, Seen, Several, Trouble};
pub use skip::skipped;
pub use tiles::{TILE_RATE, TileSight, TileWorker, Tiles};

/// What failures say, so that tests can see that the reason came through.
pub const REASON: &str = "failed on purpose";

fn failure() -> WorkloadError {
    WorkloadError::Command(REASON.into())
}

/// The shipped platforms and workloads, of which those of one arm or case fail in one phase.
#[derive(Debug, Clone, Copy)]
pub struct Failing {
    /// Where it fails.
    pub phase: Phase,
}

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

/// The shipped platforms and workloads, but the agent in a measured guest does mischief.
#[derive(Debug, Clone, Copy)]
pub struct Hostile {
    /// What it does.
    pub mischief: Mischief,
}

impl Registry for Hostile {
    fn platform(&self, name: &str, options: &Value) -> Result<Box<dyn Platform>, FieldError> {
        let inner = Shipped.platform(name, options)?;
        Ok(Box::new(hostile::HostilePlatform { inner, mischief: self.mischief }))
    }

    fn workload(&self, name: &str, parameters: &Value, load: &LoadModel) -> Result<Box<dyn Workload>, FieldError> {
        Shipped.workload(name, parameters, load)
    }
}
