//! Further guests like a trial's measured one, for workloads whose operation is a start.

use std::fmt;
use std::sync::atomic::AtomicU64;

use tare_model::start::Start;
use tare_platform::{Guest, Reach};
use tare_wire::Link;
use tare_workload::{DriverSite, PageFaults, StartedGuest, Starter, WorkSite};

use super::Trial;
use super::recipe::Recipe;
use super::target::Target;
use super::warm::{self, Place, Pool, Snapshot};
use crate::text::fit;

/// Makes guests for a trial.
pub(super) struct Maker<'a> {
    recipe: Recipe<'a>,
    source: Source,
}

/// From what guests are started.
enum Source {
    Nothing,
    Pool(Pool),
    Snapshot(Snapshot),
}

impl<'a> Trial<'a> {
    /// What makes further guests; `None` where the case makes none, and where guests of its arm are there already.
    pub(super) fn maker(&self) -> Option<Maker<'a>> {
        let platform = self.task.platform;
        if self.case.made == 0 || platform.reach() != Reach::Lab || platform.machines().is_some() {
            return None;
        }
        let spec = self.guest_spec(format!("m{}", self.stem()), self.case.guest, None);
        let source = match self.arm().map(|arm| arm.start).unwrap_or_default() {
            Start::Cold => Source::Nothing,
            Start::Pool(size) => Source::Pool(Pool::of(size)),
            Start::Snapshot => Source::Snapshot(Snapshot::default()),
        };
        let (site, cancel, made) = (&self.bench.site, self.bench.cancel, AtomicU64::new(0));
        Some(Maker { recipe: Recipe { platform, site, cancel, spec, made }, source })
    }

    /// The measured guests as their workload sees them, with the load of this trial's case.
    pub(super) fn sites<'s>(
        &self,
        targets: &'s [Target],
        drivers: &'s [Vec<DriverSite<'s>>],
        maker: Option<&'s Maker<'_>>,
    ) -> Vec<WorkSite<'s>> {
        let given = self.given(targets.len());
        let sites = targets.iter().zip(drivers).filter_map(|(target, drivers)| target.site(drivers, &given));
        sites.map(|site| WorkSite { starter: maker.map(|maker| maker as &dyn Starter), ..site }).collect()
    }
}

impl fmt::Debug for Maker<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recipe { spec, made, .. } = &self.recipe;
        formatter.debug_struct("Maker").field("spec", spec).field("made", made).finish_non_exhaustive()
    }
}

impl Starter for Maker<'_> {
    fn make_ready(&self) -> Result<(), String> {
        match &self.source {
            Source::Nothing => Ok(()),
            Source::Pool(pool) => pool.fill(&self.recipe),
            Source::Snapshot(snapshot) => snapshot.take(&self.recipe),
        }
    }

    fn start(&self) -> Result<Box<dyn StartedGuest>, String> {
        let recipe = &self.recipe;
        Ok(Box::new(match &self.source {
            Source::Nothing => Made::new(recipe.make()?),
            Source::Snapshot(snapshot) => Made::new(snapshot.restore(recipe)?),
            Source::Pool(pool) => {
                let (guest, place) = pool.take()?;
                let before = guest.page_faults().unwrap_or_default();
                let woken = warm::wake(&*guest, recipe.site).map_err(|error| fit(&error))?;
                Made { guest, before, woken: Some((woken, place)) }
            }
        }))
    }

    fn facts(&self) -> Vec<(String, String)> {
        match &self.source {
            Source::Nothing => Vec::new(),
            Source::Pool(pool) => vec![pool.fact()],
            Source::Snapshot(snapshot) => snapshot.fact().into_iter().collect(),
        }
    }

    fn ended(&self) -> Option<String> {
        self.recipe.ended()
    }
}

/// A guest that was made.
struct Made {
    guest: Box<dyn Guest>,
    /// What it had of page faults before it was started.
    before: tare_platform::PageFaults,
    /// Of a guest of a pool: the seconds until it answered again, and its place.
    woken: Option<(f64, Place)>,
}

impl Made {
    fn new(guest: Box<dyn Guest>) -> Self {
        Self { guest, before: tare_platform::PageFaults::default(), woken: None }
    }
}

impl StartedGuest for Made {
    fn link(&self) -> &Link {
        self.guest.link()
    }

    fn start_time_s(&self) -> f64 {
        self.woken.as_ref().map_or_else(|| self.guest.start_time_s(), |(seconds, _)| *seconds)
    }

    fn parts_s(&self) -> Option<[f64; 3]> {
        let parts = if self.woken.is_some() { None } else { self.guest.start_parts() };
        parts.map(|parts| [parts.firmware_s, parts.kernel_s, parts.agent_s])
    }

    fn page_faults(&self) -> Option<PageFaults> {
        let tare_platform::PageFaults { all, major } = self.guest.page_faults()? - self.before;
        Some(PageFaults { all, major })
    }

    fn destroy(mut self: Box<Self>) -> Result<(), String> {
        self.guest.destroy().map_err(|error| error.to_string())
    }
}
