//! The host that carries the guests of a scale-up, where that is this one: its memory is watched and kept from running out.

use std::path::PathBuf;
use std::sync::Arc;

use tare_memory::host::{Guard, HostNow};
use tare_model::density::DensitySpec;
use tare_model::trial::Phase;
use tare_model::units::ByteSize;

use super::gib;
use super::watch::{self, Watch};
use crate::host::Watched;
use crate::remote_guests;
use crate::trial::governed::Governed;
use crate::trial::{Gathered, Stop, Trial};

/// What is known of the host under the guests, and who watches it.
pub(super) struct Carrier {
    /// How its memory is looked at.
    pub(super) memory: Watched,
    pub(super) watch: Watch,
    pub(super) guard: Guard,
    /// Its memory before the first guest.
    pub(super) start: HostNow,
}

/// The fact that says why nothing is reported of the host's memory.
const NOT_SEEN: (&str, &str) = (
    "memory of the host under the guests",
    "not seen: they are machines elsewhere, which their commands start. No memory is kept back there, and none is reported",
);

impl Trial<'_> {
    /// Begins to watch the host that carries the guests; `None` where they are machines elsewhere, under which no host is seen.
    pub(super) fn watch_carrier(
        &self,
        spec: &DensitySpec,
        governed: &Governed,
        gathered: &mut Gathered,
    ) -> Result<Option<Carrier>, Stop> {
        if remote_guests::are_elsewhere(self.task.platform) {
            let (name, why) = NOT_SEEN;
            gathered.facts.insert(name.to_owned(), why.to_owned());
            return Ok(None);
        }
        let failed = |reason: String| Stop { phase: Phase::Provision, reason };
        let found = self.bench.host.now().map_err(failed)?;
        let reserve_bytes = spec.reserve_on(ByteSize(found.total_bytes)).0;
        let guard = Guard { reserve_bytes, pressure: spec.pressure };
        let groups = self.limit_all(&found, reserve_bytes, gathered);
        let memory = Watched::new(Arc::clone(&self.bench.host), groups);
        let start = memory.now().map_err(failed)?;
        let given = watch::Given {
            run_id: self.bench.run_id.to_owned(),
            host: memory.clone(),
            merging: governed.merges().then(|| governed.kernel().clone()),
            guard,
            start,
            cancel: self.bench.cancel.clone(),
        };
        let watch = Watch::start(given)
            .map_err(|error| failed(format!("nobody could watch the host's memory: {error}; end other programs")))?;
        Ok(Some(Carrier { memory, watch, guard, start }))
    }

    /// Sets the most that all guests together may take: whatever one does, the kernel then kills among them and nobody else. The
    /// groups in which they all lie; none where that cannot be.
    fn limit_all(&self, found: &HostNow, reserve_bytes: u64, gathered: &mut Gathered) -> Vec<PathBuf> {
        // Into the reserve by half: files that guests have read count here and are available all the same, and the watcher is to
        // see memory run out before the kernel kills for it.
        let most = found.available_bytes.saturating_sub(reserve_bytes / 2);
        let run_id = self.bench.run_id;
        match tare_lab::limit_run(run_id, Some(most)).and_then(|()| tare_lab::run_groups(run_id)) {
            Ok(groups) => {
                gathered.facts.insert("memory that all guests together may take".to_owned(), gib(most));
                groups
            }
            Err(error) => {
                gathered.flag("no-common-limit", error.to_string());
                Vec::new()
            }
        }
    }
}
