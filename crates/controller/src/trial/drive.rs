//! The workload at work in every measured guest at one time, while the probes sample.

use std::collections::BTreeMap;
use std::time::Duration;

use tare_model::trial::Phase;
use tare_probe::ProbeData;
use tare_wire::{Link, Request};
use tare_workload::{Driven, Prepared, WorkSite};

use super::driving::{Driving, together};
use super::target::named;
use super::{Gathered, Stop, Trial};
use crate::parallel;

/// How long an agent may take to answer a request to stop.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A workload set up in one guest.
pub(super) type Ready = Box<dyn Prepared>;

/// Has all agents of a guest end their work, by themselves and early; what is asked of them later ends at once too.
pub(super) fn cancel(site: &WorkSite<'_>) {
    let agents: Vec<&Link> = site
        .drivers
        .iter()
        .map(|driver| driver.client)
        .chain([site.guest])
        .chain(site.services.map(|services| services.link))
        .chain(site.has_backend_apart().then_some(site.backend.link))
        .collect();
    std::thread::scope(|scope| {
        for agent in agents {
            // One that is gone has ended its work. That it is cancelled is said by the next phase.
            scope.spawn(move || drop(agent.call(Request::Cancel, CANCEL_TIMEOUT)));
        }
    });
}

/// Ends what guests were driven with again and again. They are thrown away after it, so that a failure spoils nothing.
pub(super) fn end_work(prepared: &mut [Ready], sites: &[WorkSite<'_>]) {
    std::thread::scope(|scope| {
        for (site, ready) in sites.iter().zip(prepared) {
            scope.spawn(move || {
                if let Err(error) = ready.end(site) {
                    tracing::debug!(%error, guest = site.index, "what it was driven with goes with the guest");
                }
            });
        }
    });
}

/// Which hosts beside this one do not answer any more, of those that drive or serve a guest; to be added to what went wrong.
pub(super) fn lost_hosts(site: &WorkSite<'_>) -> String {
    let drivers = site.drivers.iter().map(|driver| (driver.clock.host(), driver.client));
    let agents = drivers.chain([(site.backend.host, site.backend.link)]);
    // Each once, although it may have had several agents.
    let lost: BTreeMap<&str, String> = agents.filter_map(|(host, agent)| Some((host?, agent.ended()?))).collect();
    lost.into_iter().map(|(host, how)| format!("; host `{host}`: {how}")).collect()
}

impl Trial<'_> {
    /// Does something in every measured guest at one time. The first failure is reported and ends the others' work.
    pub(super) fn in_each<T: Send, R: Send, E: std::fmt::Display>(
        &self,
        phase: Phase,
        sites: &[WorkSite<'_>],
        items: impl Iterator<Item = T>,
        gathered: &Gathered,
        work: impl Fn(&WorkSite<'_>, T) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, Stop> {
        let work = |n: usize, item: T| work(&sites[n], item).map_err(|error| error.to_string());
        parallel::each(&gathered.halt, items, work, |n| cancel(&sites[n]))
            .map_err(|(n, error)| self.stop(phase, n, &format!("{error}{}", lost_hosts(&sites[n])), gathered))
    }

    /// Sets up the guests' ends.
    pub(super) fn prepare(&self, sites: &[WorkSite<'_>], gathered: &Gathered) -> Result<Vec<Ready>, Stop> {
        let workload = self.task.workload;
        self.in_each(Phase::Prepare, sites, sites.iter(), gathered, |site, _| workload.prepare(site))
    }

    /// Offers load while the probes sample.
    pub(super) fn drive(
        &self,
        prepared: &mut [Ready],
        sites: &[WorkSite<'_>],
        gathered: &mut Gathered,
    ) -> Result<(Vec<Driven>, ProbeData), Stop> {
        let alone = &mut [Driving { trial: *self, sites, prepared, gathered }];
        let mut driven = together(alone, None, None).map_err(|(_, stop)| stop)?;
        driven.pop().ok_or_else(|| Stop { phase: Phase::Drive, reason: "nobody was driven: a defect of tare".into() })
    }

    /// The same load for every arm of a block, another in every block and in every try of a search.
    pub(super) fn seed(&self) -> u64 {
        let of_block =
            self.bench.plan.study.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(u64::from(self.planned.block));
        match self.number {
            0 => of_block,
            // Far from those of other blocks, whichever number it is.
            number => of_block ^ u64::from(number).wrapping_mul(0xD1B5_4A32_D192_ED03),
        }
    }

    /// Has the work of every guest checked: why the figures must not be used, if so.
    pub(super) fn verify(
        &self,
        prepared: &mut [Ready],
        sites: &[WorkSite<'_>],
        driven: &mut [Driven],
        gathered: &Gathered,
    ) -> Result<Option<String>, Stop> {
        let items = prepared.iter_mut().zip(driven.iter_mut());
        let wrong = self.in_each(Phase::Verify, sites, items, gathered, |site, (ready, driven)| {
            let wrong = ready.verify(site, driven)?;
            Ok::<_, tare_workload::WorkloadError>(driven.invalid.take().or(wrong))
        })?;
        let all = gathered.targets;
        let named = |(n, reason): (usize, Option<String>)| {
            let name = gathered.measured().get(n).map_or("", |guest| guest.spec().name.as_str());
            reason.map(|reason| if all > 1 { format!("{}: {reason}", named(n, all, name)) } else { reason })
        };
        let reasons: Vec<String> = wrong.into_iter().enumerate().filter_map(named).collect();
        Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
    }
}
