//! The host as an arm wants it, from before the first guest to after the last.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tare_lab::Ledger;
use tare_memory::{Decision, Governor, Guests, Kernel};
use tare_model::merging::HostMemory;

use crate::host::{HostAccess, sizes};
use crate::text::fit;

/// The guests that stand, for whoever governs the host's memory.
#[derive(Debug, Clone, Default)]
pub struct Standing(Arc<Mutex<Now>>);

#[derive(Debug, Default)]
struct Now {
    /// Directories of each guest's control group.
    groups: Vec<Vec<PathBuf>>,
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

/// The host's memory while an arm is measured.
pub struct Governed {
    governor: Option<Governor>,
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
            return Ok(Self { governor: None, kernel, merges });
        }
        let standing = standing.clone();
        let guests = Arc::new(move || standing.guests());
        let governor = Governor::start(kernel.clone(), wanted, stop_merging, guests, ledger).map_err(|error| {
            format!("the host's memory could not be set as the arm asks: {}", fit(&error.to_string()))
        })?;
        Ok(Self { governor: Some(governor), kernel, merges })
    }

    /// Whether equal pages are merged.
    pub const fn merges(&self) -> bool {
        self.merges
    }

    /// Merging of memory on this host.
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Whether merging has come to its end; always where nothing merges.
    pub fn settled(&self) -> bool {
        !self.merges || self.governor.as_ref().is_none_or(Governor::settled)
    }

    /// What the arm's rule has set, and when.
    pub fn decisions(&self) -> Vec<Decision> {
        self.governor.as_ref().map(Governor::decisions).unwrap_or_default()
    }

    /// Puts everything back as it was found.
    ///
    /// # Errors
    /// What is not as it was found. It stays on the ledger.
    pub fn end(self) -> Result<(), String> {
        self.governor.map_or(Ok(()), |governor| governor.end().map_err(|error| fit(&error.to_string())))
    }
}
