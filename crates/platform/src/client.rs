//! The driver's end: an agent that is no guest of any arm.

use tare_lab::Limits;
use tare_model::guest::GuestSpec;

use crate::builder::{GuestBuilder, plain_launch};
use crate::error::Result;
use crate::{Guest, Platform, Site};

/// Where the driver runs.
#[derive(Clone, Copy)]
pub enum ClientPlace<'a> {
    /// In the lab's client namespace, where the lab's guests are reached.
    Lab,
    /// On this host's own network, where machines are reached that are not in the lab.
    Host,
    /// On a machine of its own, as this platform reaches it.
    Machine(&'a dyn Platform),
}

/// An agent for the driver, under no limit: the driver must never be what is measured. On this host it is a plain process
/// on the CPUs of `spec`.
///
/// # Errors
/// When it cannot be started or does not answer.
pub fn client(site: &Site<'_>, spec: &GuestSpec, place: ClientPlace<'_>) -> Result<Box<dyn Guest>> {
    let netns = match place {
        ClientPlace::Lab => Some(site.lab.client().path()),
        ClientPlace::Host => None,
        ClientPlace::Machine(platform) => return platform.start(site, spec),
    };
    let builder = GuestBuilder::new(site, spec);
    let mut launch = plain_launch();
    launch.netns = netns;
    launch.cpu_set = spec.cpu_set.clone();
    builder.start(&launch)
}

/// An agent for what the measured guests use and what is not measured itself, such as their database: a plain process with a network
/// namespace of its own on the lab's bridge, on the CPUs of `spec`, under no limit. It is given data as a guest is. What it has started goes
/// with it.
///
/// # Errors
/// When it cannot be started or does not answer, or the data cannot be restored.
pub fn services(site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
    let mut builder = GuestBuilder::new(site, spec);
    builder.data_directories(None, false)?;
    let mut launch = plain_launch();
    launch.netns = Some(builder.attach()?);
    // A group without limits: what runs in it is found and ended with it.
    let limits = Limits { cpu_set: spec.cpu_set.clone(), ..Limits::default() };
    launch.cgroup_procs = builder.limit_beside(&spec.name, &limits)?;
    launch.cpu_set = spec.cpu_set.clone();
    builder.start(&launch)
}
