//! The driver's end: an agent on the client's side of the lab.

use std::sync::Arc;

use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::units::ByteSize;
use tare_platform::Guest;
use tare_wire::Link;

use crate::trial::Bench;

/// An agent that drives load, on the CPUs that the plan keeps for it. A fresh one for every trial: what
/// one driver left behind in its process cannot move the next one's figures.
pub struct Client(Box<dyn Guest>);

impl Client {
    /// Starts it in the lab's client namespace; it is under no limit, as the driver must never be what
    /// is measured.
    pub fn start(bench: &Bench<'_>, trial: u32) -> Result<Self, String> {
        let cpus = &bench.plan.cpus.client;
        let spec = GuestSpec {
            name: format!("c{trial}"),
            size: GuestSize { cpus: u32::try_from(cpus.len()).unwrap_or(u32::MAX).max(1), memory: ByteSize(1 << 30) },
            cpu_set: cpus.clone(),
        };
        tare_platform::client(&bench.site, &spec).map(Self).map_err(|error| error.to_string())
    }

    /// The channel to it.
    pub fn link(&self) -> &Arc<Link> {
        self.0.link()
    }

    /// Ends it.
    pub fn end(mut self) -> Result<(), String> {
        self.0.destroy().map_err(|error| error.to_string())
    }
}
