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

    /// Of which kind it is.
    pub const fn kind(&self) -> LoadKind {
        match *self {
            Self::Closed { think_time, .. } => LoadKind::Closed { think_time },
            Self::Open { arrivals, connections, .. } => LoadKind::Open { arrivals, connections },
        }
    }

    /// Clients of a closed loop, arrivals a second of an open one.
    pub fn number(&self) -> f64 {
        match self {
            Self::Closed { clients, .. } => f64::from(*clients),
            Self::Open { rate, .. } => rate.0,
        }
    }
}

/// A load without its number: of a load that is searched for, and of one that follows from what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// As [`LoadModel::Closed`], of which the clients are counted.
    Closed {
        /// Pause between the end of an operation and the start of the next.
        think_time: Span,
    },
    /// As [`LoadModel::Open`], of which the arrivals a second are counted.
    Open {
        /// How arrivals are spread.
        arrivals: Arrivals,
        /// Connections the arrivals are dealt to in turn.
        connections: u32,
    },
}

impl LoadKind {
    /// The load of so many clients, rounded and at least one, or of so many arrivals a second.
    pub fn at(self, number: f64) -> LoadModel {
        match self {
            // Searches keep to fewer than 32 bits of clients.
            Self::Closed { think_time } => {
                LoadModel::Closed { clients: number.round().clamp(1.0, f64::from(u32::MAX)) as u32, think_time }
            }
            Self::Open { arrivals, connections } => LoadModel::Open { rate: Rate(number), arrivals, connections },
        }
    }

    /// Whether it is a closed loop, which has whole clients.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. })
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
    /// A measured time with nothing around it.
    pub const fn measuring(steady_state: Span) -> Self {
        Self { warm_up: Span::ZERO, ramp_up: Span::ZERO, steady_state, ramp_down: Span::ZERO }
    }

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
