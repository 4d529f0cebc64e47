//! The host as an arm wants it, from before the first guest to after the last.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tare_lab::Ledger;
use tare_memory::ballooning::{Balloons, Machines, Manager};
use tare_memory::{Decision, Governor, Guests, Kernel};
use tare_model::ballooning::MachineMemory;
use tare_model::merging::HostMemory;
use tare_platform::Balloon;

use crate::host::{HostAccess, sizes};
use crate::text::fit;

/// The guests that stand, for whoever governs the host's memory.
#[derive(Debug, Clone, Default)]
pub struct Standing(Arc<Mutex<Now>>);

#[derive(Default)]
struct Now {
    /// Directories of each guest's control group.
    groups: Vec<Vec<PathBuf>>,
    /// Balloons by the names of the guests that have one.
    balloons: BTreeMap<String, Arc<dyn Balloon>>,
    promised_bytes: u64,
    waiting_bytes: u64,
}

impl Standing {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells which guests stand now: the directories of their groups, and what was promised to all of them together, bytes.
    pub fn set(&self, groups: Vec<Vec<PathBuf>>, promised_bytes: u64) {
        let mut now = self.lock();
        now.groups = groups;
        now.promised_bytes = promised_bytes;
    }

    /// Tells which of them have balloons.
    pub fn set_balloons(&self, balloons: BTreeMap<String, Arc<dyn Balloon>>) {
        self.lock().balloons = balloons;
    }

    /// Tells how much memory the next guest waits for, bytes; 0: none waits.
    pub fn wait_for(&self, bytes: u64) {
        self.lock().waiting_bytes = bytes;
    }

    /// What they take.
    pub fn guests(&self) -> Guests {
        let (groups, promised_bytes, waiting_bytes) = {
            let now = self.lock();
            (now.groups.concat(), now.promised_bytes, now.waiting_bytes)
        };
        let (virtual_bytes, resident_bytes) = sizes(&tare_lab::processes_in(&groups));
        Guests { promised_bytes, virtual_bytes, resident_bytes, waiting_bytes }
    }
}

impl Machines for Standing {
    fn names(&self) -> Vec<String> {
        self.lock().balloons.keys().cloned().collect()
    }

    fn look(&self) -> Vec<(String, MachineMemory)> {
        // Each is asked without the lock: a machine under load takes its time.
        let balloons = self.lock().balloons.clone();
        balloons.into_iter().filter_map(|(name, balloon)| Some((name, balloon.memory().ok()?))).collect()
    }

    fn resize(&self, name: &str, bytes: u64) -> Result<(), String> {
        let balloon = self.lock().balloons.get(name).cloned().ok_or("it is gone")?;
        balloon.resize(bytes).map_err(|error| error.to_string())
    }
}

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { groups, promised_bytes, .. } = self;
        f.debug_struct("Now").field("groups", groups).field("promised_bytes", promised_bytes).finish_non_exhaustive()
    }
}

/// The host's memory while an arm is measured.
pub struct Governed {
    governor: Option<Governor>,
    balloons: Option<Manager>,
    kernel: Kernel,
    merges: bool,
}

impl Governed {
    /// Sets the host as an arm wants it. What is found is written to the ledger first. `stop_merging`: other arms of the study
    /// merge, so this one must not. Nothing is touched where nothing is asked.
    ///
    /// # Errors
    /// What could not be set and why; all is as it was found then, or on the ledger.
    pub fn start(
        host: &dyn HostAccess,
        wanted: &HostMemory,
        stop_merging: bool,
        standing: &Standing,
        ledger: &Arc<dyn Ledger>,
    ) -> Result<Self, String> {
        let kernel = host.kernel();
        let merges = wanted.merging.is_some();
        if wanted.is_as_found() && !stop_merging {
            return Ok(Self { governor: None, balloons: None, kernel, merges });
        }
        let machines = Arc::new(standing.clone());
        let balloons = wanted.ballooning.map(|asked| Manager::start(kernel.clone(), asked, machines)).transpose();
        let balloons = balloons.map_err(|error| fit(&error.to_string()))?;
        let standing = standing.clone();
        let guests = Arc::new(move || standing.guests());
        let governor = Governor::start(kernel.clone(), wanted, stop_merging, guests, ledger).map_err(|error| {
            format!("the host's memory could not be set as the arm asks: {}", fit(&error.to_string()))
        })?;
        Ok(Self { governor: Some(governor), balloons, kernel, merges })
    }

    /// Whether equal pages are merged.
    pub const fn merges(&self) -> bool {
        self.merges
    }

    /// Merging of memory on this host.
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// What takes its time to make room on the host, for people; `None`: nothing does.
    pub const fn makes_room(&self) -> Option<&'static str> {
        match (self.merges, self.balloons.is_some()) {
            (true, true) => Some("merging and ballooning"),
            (true, false) => Some("merging"),
            (false, true) => Some("ballooning"),
            (false, false) => None,
        }
    }

    /// Whether merging and ballooning have come to their end; always where there is neither.
    pub fn settled(&self) -> bool {
        let merged = !self.merges || self.governor.as_ref().is_none_or(Governor::settled);
        merged && self.balloons.as_ref().is_none_or(Manager::settled)
    }

    /// What was done with balloons; `None` where none is sized.
    pub fn balloons(&self) -> Option<Balloons> {
        self.balloons.as_ref().map(Manager::done)
    }

    /// What the arm's rule has set, and what was done with balloons, as facts of the trial.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let decisions = self.governor.as_ref().map(Governor::decisions).unwrap_or_default();
        let set = decisions
            .last()
            .map(|Decision { at_s, set }| format!("{} times, the last after {at_s:.0} s: {set:?}", decisions.len()));
        let sized = self.balloons().map(|Balloons { resized, refused, .. }| {
            let refused = if refused > 0 { format!(", and could not be {refused} times") } else { String::new() };
            format!("{resized} times{refused}")
        });
        let facts = [("merging was set", set), ("balloons were sized", sized)];
        facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Puts everything back as it was found.
    ///
    /// # Errors
    /// What is not as it was found. It stays on the ledger.
    pub fn end(self) -> Result<(), String> {
        self.governor.map_or(Ok(()), |governor| governor.end().map_err(|error| fit(&error.to_string())))
    }
}
