//! A trial that is one scale-up: guests are added one at a time, and at each number of the series all of them are driven. Where
//! guests make tiles, the numbers of the series are of tiles, and only whole ones are driven.

mod add;
mod level;
mod outcome;
mod series;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tare_memory::host::{Guard, HostNow};
use tare_model::density::{DensitySpec, Level, StopKind, Stopped};
use tare_model::trial::{Outcome, Phase};
use tare_model::units::ByteSize;
use tare_workload::{DriverSite, WorkSite};

use super::drive::{Ready, end_work};
use super::governed::Governed;
use super::target::{Target, clock_facts};
use super::{Gathered, Stop, Trial};
use crate::host::Watched;
use crate::observer::ScaleUpNow;

use level::Best;
use watch::Watch;

/// How soon something that is waited for is seen.
const WAIT_EVERY: Duration = Duration::from_millis(200);

/// Bytes for people.
fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Why no more guests are added.
type Why = (StopKind, String);

/// A scale-up under way. The guests themselves are in [`Gathered`].
struct Ascending<'t> {
    trial: &'t Trial<'t>,
    spec: &'t DensitySpec,
    governed: &'t Governed,
    host: Watched,
    watch: Watch,
    guard: Guard,
    /// The host before the first guest.
    start: HostNow,
    /// The guests' drivers, in the order of the guests.
    targets: Vec<Target>,
    prepared: Vec<Ready>,
    /// Guests that were started so far: no name is used twice.
    serial: usize,
    /// The most that one guest took of the host's memory while it was added, bytes; by its place in the tile.
    growth_bytes: Vec<u64>,
    /// When a guest was last added or taken away.
    changed: Instant,
    /// More than so many tiles cannot stand; of guests that are alike, each is one.
    ceiling: Option<u32>,
    stopped: Option<Stopped>,
    levels: Vec<Level>,
    best: Option<Best>,
    /// What is to be known of levels: kind, levels, and what was seen first.
    flags: Vec<(String, Vec<u32>, String)>,
}

impl Trial<'_> {
    /// Adds guests as the case says and drives them, until the host carries no more.
    pub(super) fn ascend(
        &self,
        spec: &DensitySpec,
        governed: &Governed,
        gathered: &mut Gathered,
    ) -> Result<Outcome, Stop> {
        let failed = |reason: String| Stop { phase: Phase::Provision, reason };
        let found = self.bench.host.now().map_err(failed)?;
        let reserve_bytes = spec.reserve_on(ByteSize(found.total_bytes)).0;
        let guard = Guard { reserve_bytes, pressure: spec.pressure };
        let groups = self.limit_all(&found, reserve_bytes, gathered);
        let host = Watched::new(Arc::clone(&self.bench.host), groups);
        let start = host.now().map_err(failed)?;
        let given = watch::Given {
            run_id: self.bench.run_id.to_owned(),
            host: host.clone(),
            merging: governed.merges().then(|| governed.kernel().clone()),
            guard,
            start,
            cancel: self.bench.cancel.clone(),
        };
        let watch = Watch::start(given)
            .map_err(|error| failed(format!("nobody could watch the host's memory: {error}; end other programs")))?;
        let mut ascending = Ascending {
            trial: self,
            spec,
            governed,
            growth_bytes: vec![0; spec.unit() as usize],
            host,
            watch,
            guard,
            start,
            targets: Vec::new(),
            prepared: Vec::new(),
            serial: 0,
            changed: Instant::now(),
            ceiling: None,
            stopped: None,
            levels: Vec::new(),
            best: None,
            flags: Vec::new(),
        };
        ascending.go(gathered)?;
        ascending.end_work(0);
        ascending.end_drivers(gathered);
        ascending.outcome(gathered)
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

impl Ascending<'_> {
    /// Goes up, and in a search down again, until nothing more is to be measured.
    fn go(&mut self, gathered: &mut Gathered) -> Result<(), Stop> {
        while let Some(next) = series::next(&self.spec.guests, &self.tried(), self.ceiling) {
            let guests = next.saturating_mul(self.unit());
            self.bring_to(guests, gathered)?;
            // Where fewer stand, what is to be measured is asked again.
            if self.standing() == guests && !self.offer(gathered)? {
                break;
            }
        }
        Ok(())
    }

    /// Numbers of tiles that were measured, and whether they held.
    fn tried(&self) -> Vec<(u32, bool)> {
        self.levels.iter().map(|level| (level.guests / self.unit(), level.failed.is_none())).collect()
    }

    /// Guests of a tile; one where all are alike.
    fn unit(&self) -> u32 {
        self.spec.unit()
    }

    /// Guests that stand and are ready.
    fn standing(&self) -> u32 {
        u32::try_from(self.targets.len()).unwrap_or(u32::MAX)
    }

    /// Notes why no more guests are added; the first reason stays.
    fn stop(&mut self, (kind, detail): Why) {
        let guests = self.standing();
        tracing::debug!(?kind, guests, detail, "the scale-up stops");
        self.stopped.get_or_insert(Stopped { kind, guests, detail });
    }

    /// Tells whoever watches the run how far the scale-up is.
    fn tell(&self, load: bool) {
        let (available_bytes, saved_bytes) = self.watch.last();
        let (guests, most) = (self.standing(), self.spec.most_guests());
        let now = ScaleUpNow { guests, most, load, available_bytes, saved_bytes };
        self.trial.bench.observer.ascending(self.trial.planned, &now);
    }

    /// Waits a moment.
    ///
    /// # Errors
    /// The user's wish to stop.
    fn wait(&self, phase: Phase, at_most: Duration) -> Result<(), Stop> {
        self.tell(false);
        match self.trial.bench.cancel.wait(at_most) {
            Some(reason) => Err(Stop { phase, reason: format!("stopped by {reason}") }),
            None => Ok(()),
        }
    }

    /// Ends what the guests from this one on were driven with.
    fn end_work(&mut self, from: usize) {
        let given = self.trial.given(self.targets.len());
        let targets = self.targets.get(from..).unwrap_or_default();
        let drivers: Vec<Vec<DriverSite<'_>>> = targets.iter().map(Target::drivers).collect();
        let sites: Vec<WorkSite<'_>> =
            targets.iter().zip(&drivers).filter_map(|(target, drivers)| target.site(drivers, &given)).collect();
        end_work(self.prepared.get_mut(from..).unwrap_or_default(), &sites);
    }

    fn end_drivers(&mut self, gathered: &mut Gathered) {
        gathered.facts.extend(clock_facts(&self.targets));
        for target in std::mem::take(&mut self.targets) {
            end_clients(target, gathered);
        }
    }
}

fn end_clients(target: Target, gathered: &mut Gathered) {
    for client in target.into_clients() {
        if let Err(reason) = client.end() {
            gathered.flag("teardown", reason);
        }
    }
}
