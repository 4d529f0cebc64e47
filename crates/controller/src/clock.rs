//! The clock of the machine that runs a driver.

use std::sync::{Arc, OnceLock};

use tare_wire::Link;
use tare_workload::{Clock, Offset, Relation};

use crate::time_limits::TIMEOUT;

/// The clock of the machine that runs the driver. What it says after the load is asked for when the first of its stamps
/// is translated back.
#[derive(Debug)]
pub struct ClientClock {
    /// Id of the host.
    host: String,
    link: Arc<Link>,
    before: Offset,
    after: OnceLock<Option<Offset>>,
}

impl ClientClock {
    /// Asks the driver's agent, before the load.
    pub fn ask(host: &str, link: &Arc<Link>) -> Result<Self, String> {
        Ok(Self {
            host: host.to_owned(),
            link: Arc::clone(link),
            before: Offset::ask(link, TIMEOUT)?,
            after: OnceLock::new(),
        })
    }

    /// What is known of it, for disclosure.
    pub fn describe(&self) -> String {
        Relation::new(self.before, self.after.get().copied().flatten()).describe()
    }
}

impl Clock for ClientClock {
    fn host(&self) -> Option<&str> {
        Some(&self.host)
    }

    fn theirs(&self, ours_ns: u64) -> u64 {
        Relation::new(self.before, None).to_theirs(ours_ns)
    }

    fn ours(&self, theirs_ns: u64) -> u64 {
        // Without a second measurement the first has to do: only the drift is not known then.
        let after = *self.after.get_or_init(|| Offset::ask(&self.link, TIMEOUT).ok());
        Relation::new(self.before, after).to_ours(theirs_ns)
    }
}
