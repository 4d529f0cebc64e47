//! What all trials of a run have in common.

use std::sync::{Arc, OnceLock};

use tare_model::plan::Plan;
use tare_platform::{Platform, Site};

use crate::cancel::Cancel;
use crate::host::HostAccess;
use crate::ledger::Book;
use crate::machines::Machines;
use crate::observer::Observer;

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
    /// What leads to the hosts that offer load, by their ids, in the order of the drivers; `None`: this host.
    pub drivers: Vec<(&'a str, Option<&'a dyn Platform>)>,
    /// Whether some arms are on the lab's network and others are not.
    pub mixed: bool,
    /// The memory of the host that carries the guests.
    pub host: Arc<dyn HostAccess>,
    /// What a trial found that no further one could do better, such as a program that the guest does not have.
    pub hopeless: OnceLock<String>,
}
