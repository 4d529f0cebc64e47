//! A trial that is one scale-up: guests are added one at a time, and at each number of the series all of them are driven. Where
//! guests make tiles, the numbers of the series are of tiles, and only whole ones are driven.

mod add;
mod host;
mod level;
mod outcome;
mod series;
mod watch;

use std::time::{Duration, Instant};

use tare_model::density::{DensitySpec, Level, StopKind, Stopped};
use tare_model::trial::{Outcome, Phase};
use tare_workload::{DriverSite, WorkSite};

use super::drive::{Ready, end_work};
use super::governed::Governed;
use super::target::{Target, end_clients, note_hosts};
use super::{Gathered, Stop, Trial};
use crate::cancel::Cancel;
use crate::observer::ScaleUpNow;

use host::Carrier;
use level::Best;

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
    /// The host that carries the guests; `None` where they are machines elsewhere.
    carrier: Option<Carrier>,
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
        let carrier = self.watch_carrier(spec, governed, gathered)?;
        let mut ascending = Ascending {
            trial: self,
            spec,
            governed,
            growth_bytes: vec![0; spec.unit() as usize],
            carrier,
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
        let last = self.carrier.as_ref().map(|carrier| carrier.watch.last());
        let (available_bytes, saved_bytes) = (last.map(|(bytes, _)| bytes), last.map_or(0, |(_, bytes)| bytes));
        let (guests, most) = (self.standing(), self.spec.most_guests());
        let now = ScaleUpNow { guests, most, load, available_bytes, saved_bytes };
        self.trial.bench.observer.ascending(self.trial.planned, &now);
    }

    /// The wish to stop under which something is done: the user's, or that of whoever watches the host that carries the guests. `adding`: the
    /// guest that is then killed.
    fn arm(&self, adding: Option<&str>) -> Cancel {
        self.carrier.as_ref().map_or_else(|| self.trial.bench.cancel.clone(), |carrier| carrier.watch.arm(adding))
    }

    /// Ends what [`Self::arm`] began: why it was ended early, or should have been, for the sake of that host.
    fn disarm(&self) -> Option<Why> {
        self.carrier.as_ref().and_then(|carrier| carrier.watch.disarm())
    }

    /// Tells whoever watches that host how many guests stand.
    fn tell_watch(&self) {
        if let Some(carrier) = &self.carrier {
            carrier.watch.stand(self.standing());
        }
    }

    /// Tells whoever watches that host whether load is offered.
    fn under_load(&self, load: bool) {
        if let Some(carrier) = &self.carrier {
            carrier.watch.load(load);
        }
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
        note_hosts(&self.targets, gathered);
        end_clients(std::mem::take(&mut self.targets), gathered);
    }
}
