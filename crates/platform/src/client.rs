//! The driver's end of the lab: an agent that is no guest of any platform.

use tare_model::guest::GuestSpec;

use crate::error::Result;
use crate::making::{Making, plain_launch};
use crate::{Guest, Site};

/// An agent as a plain process in the client's namespace, on the CPUs of `spec` and under no limit: the
/// driver must never be what is measured.
///
/// # Errors
/// When it cannot be started or does not answer.
pub fn client(site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
    let making = Making::new(site, spec);
    let mut launch = plain_launch();
    launch.netns = Some(site.lab.client().path());
    launch.cpu_set = spec.cpu_set.clone();
    making.start(&launch)
}
