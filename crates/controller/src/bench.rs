//! What all trials of a run have in common.

use std::sync::{Arc, OnceLock};

use tare_model::plan::Plan;
use tare_platform::{Platform, Site};

use crate::cancel::Cancel;
use crate::host::HostAccess;
use crate::ledger::Book;
use crate::machines::Machines;
use crate::observer::Observer;

/// A host by its id, and what leads to it; `None`: it is this host.
pub type Place<'a> = (&'a str, Option<&'a dyn Platform>);

/// Everything that a trial needs and that outlives it.
pub struct Bench<'a> {
    /// Run id.
    pub run_id: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// The run folder.
    pub book: &'a Book,
    /// Where guests keep what must not outlive them.
    pub site: Site<'a>,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// The wish to stop.
    pub cancel: &'a Cancel,
    /// Whether what names the host is left out of the facts.
    pub redact: bool,
    /// The machines beside this host that were described.
    pub machines: Machines,
    /// The hosts that offer load, in the order of the drivers.
    pub drivers: Vec<Place<'a>>,
    /// The host that serves what guests ask the driver's side for; `None`: that of each guest's first driver.
    pub services: Option<Place<'a>>,
    /// Whether some arms are on the lab's network and others are not.
    pub mixed: bool,
    /// The memory of the host that carries the guests.
    pub host: Arc<dyn HostAccess>,
    /// What a trial found that no further one could do better, such as a program that the guest does not have.
    pub hopeless: OnceLock<String>,
}
