//! What the guest's own probe sees, by the controller's clock.

use std::collections::BTreeMap;

use tare_model::sample::Sample;
use tare_model::trial::Flag;
use tare_wire::{Link, Reply, Request, WireError};
use tare_workload::{Offset, Relation};

use crate::time_limits::TIMEOUT;

/// The guest's probe under way.
pub struct GuestProbe<'a> {
    guest: &'a Link,
    before: Result<Offset, String>,
    started: Result<Reply, WireError>,
}

/// What it saw.
#[derive(Debug, Default)]
pub struct ProbeResult {
    /// The samples, stamped by the controller's clock.
    pub samples: Vec<Sample>,
    /// What it cost, and what is known of the guest's clock.
    pub facts: BTreeMap<String, String>,
    /// Why there are no samples.
    pub flag: Option<Flag>,
}

impl<'a> GuestProbe<'a> {
    /// Asks for the guest's clock and starts to sample there. The samples will say that they are of `name`.
    pub fn start(guest: &'a Link, name: &str, interval_ns: u64) -> Self {
        let before = Offset::ask(guest, TIMEOUT);
        let started = guest.call(Request::StartSampling { guest: name.to_owned(), interval_ns }, TIMEOUT);
        Self { guest, before, started }
    }

    /// Ends sampling, after `load_s` seconds of load.
    pub fn stop(self, load_s: f64) -> ProbeResult {
        let ended = self.started.and_then(|_| self.guest.call(Request::StopSampling, TIMEOUT));
        let mut seen = ProbeResult::default();
        let lost = match (ended, self.before) {
            (Ok(Reply::Samples { mut samples, cpu_ns }), Ok(before)) => {
                let relation = Relation::new(before, Offset::ask(self.guest, TIMEOUT).ok());
                relation.translate(&mut samples);
                seen.samples = samples;
                seen.facts.insert("guest clock".into(), relation.describe());
                let share = cpu_ns as f64 / 1e7 / load_s.max(f64::MIN_POSITIVE);
                seen.facts.insert("probe in the guest, CPU".into(), format!("{share:.2} % of one CPU"));
                return seen;
            }
            (Ok(Reply::Samples { .. }), Err(why)) => format!("the guest's clock could not be read: {why}"),
            (Ok(_), _) => "the guest's own probe answered something else".into(),
            (Err(error), _) => format!("the guest's own probe: {error}"),
        };
        seen.flag = Some(Flag { kind: "lost-samples".into(), detail: lost });
        seen
    }
}
