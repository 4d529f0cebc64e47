//! How load is offered, and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Rate, Span};

/// How the driver decides when the next operation starts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LoadModel {
    /// Each client starts its next operation when the last one ended and it has thought.
    Closed {
        /// Simulated requesters, each with one connection and at most one operation outstanding.
        clients: u32,
        /// Pause between the end of an operation and the start of the next.
        #[serde(default)]
        think_time: Span,
    },
    /// Operations start at times fixed in advance, whether or not earlier ones have ended.
    Open {
        /// Arrivals in a second, over all connections together.
        rate: Rate,
        /// How arrivals are spread.
        #[serde(default)]
        arrivals: Arrivals,
        /// Connections the arrivals are dealt to in turn; an arrival waits while its connection is busy.
        connections: u32,
    },
}

impl LoadModel {
    /// Connections that the driver opens.
    pub const fn connections(&self) -> u32 {
        match self {
            Self::Closed { clients, .. } => *clients,
            Self::Open { connections, .. } => *connections,
        }
    }
}

/// How the arrivals of an open loop are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Exponential gaps, as independent users make.
    #[default]
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// The phases of a trial, in the order in which they run. Only steady state is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Phases {
    /// Full load inside the guest before anything counts (caches, lazily built state).
    #[serde(default)]
    pub warm_up: Span,
    /// Clients join one after another, evenly over this time.
    #[serde(default)]
    pub ramp_up: Span,
    /// The measured time.
    pub steady_state: Span,
    /// Load goes on, unmeasured, so that no client's absence flatters the last operations.
    #[serde(default)]
    pub ramp_down: Span,
}

impl Phases {
    /// All phases together.
    pub const fn total(&self) -> Span {
        Span { ns: self.warm_up.ns + self.ramp_up.ns + self.steady_state.ns + self.ramp_down.ns }
    }

    /// Nanoseconds from the start of the trial's load to the start of steady state.
    pub const fn steady_offset_ns(&self) -> u64 {
        self.warm_up.ns + self.ramp_up.ns
    }

    /// Every phase times a factor (`--scale`).
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            warm_up: self.warm_up.scaled(factor),
            ramp_up: self.ramp_up.scaled(factor),
            steady_state: self.steady_state.scaled(factor),
            ramp_down: self.ramp_down.scaled(factor),
        }
    }
}
