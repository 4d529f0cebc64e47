//! The workload at work in every measured guest at one time, while the probes sample.

use std::time::{Duration, Instant};

use tare_model::fact;
use tare_model::sample::Source;
use tare_model::trial::Phase;
use tare_platform::{Guest, Reach};
use tare_probe::{HostProbe, ProbeData, ProbeError};
use tare_wire::{Link, Request};
use tare_workload::{Driven, Prepared, Schedule, WorkSite};

use super::target::{named, source, target_name};
use super::{Gathered, Stop, Trial};
use crate::guest_probe::GuestProbe;
use crate::parallel;
use crate::sampling;

/// From the moment when everything is connected to the start of load: enough for the probes to receive the
/// measured window and for a driver to start its threads.
const LEAD: Duration = Duration::from_millis(5);
/// The least time from that moment to the measured window. A driver that is asked too late fails the trial. On a host whose CPUs
/// others want too, 60 ms were seen to pass before the driver was asked.
const LEAD_TO_WINDOW: Duration = Duration::from_millis(200);
/// Added for each driver beyond the first: their threads are started on the same CPUs.
const LEAD_EACH_FURTHER: Duration = Duration::from_millis(2);
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
        .collect();
    std::thread::scope(|scope| {
        for agent in agents {
            // One that is gone has ended its work. That it is cancelled is said by the next phase.
            scope.spawn(move || drop(agent.call(Request::Cancel, CANCEL_TIMEOUT)));
        }
    });
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
            .map_err(|(n, error)| self.stop(phase, n, &error, gathered))
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
        let failed = |reason: String| Stop { phase: Phase::Drive, reason };
        let interval_ns = self.bench.plan.study.lab.sample_interval.ns;
        let mut schedule =
            Schedule { phases: self.phases, start_at_ns: 0, seed: self.seed(), interval_ns, turns: None };
        self.in_each(Phase::Drive, sites, prepared.iter_mut(), gathered, |site, ready| ready.connect(site, &schedule))?;
        let inside: Vec<GuestProbe<'_>> = sites
            .iter()
            .enumerate()
            .map(|(n, site)| GuestProbe::start(site.guest, &target_name(n), interval_ns))
            .collect();
        let probe = self.start_probe(gathered).map_err(|error| failed(error.to_string()))?;
        let charged = crate::thread_cpu::read(gathered.measured());
        let began = Instant::now();
        schedule.start_at_ns = tare_probe::now_ns() + self.lead(sites.len()).as_nanos() as u64;
        let steady_ns = schedule.start_at_ns + self.phases.steady_offset_ns();
        probe.add_instants(&[steady_ns, steady_ns + self.phases.steady_state.ns]);
        let driven = self
            .in_each(Phase::Drive, sites, prepared.iter_mut(), gathered, |site, ready| ready.drive(site, &schedule));
        gathered.load_s = began.elapsed().as_secs_f64();
        let now = crate::thread_cpu::read(gathered.measured());
        gathered.facts.extend(crate::thread_cpu::between(&charged, &now, gathered.load_s));
        let probed = probe.stop().map_err(|error| failed(error.to_string()));
        for (n, inside) in inside.into_iter().enumerate() {
            let seen = inside.stop(gathered.load_s);
            gathered.samples.extend(seen.samples);
            gathered
                .facts
                .extend(seen.facts.into_iter().map(|(name, fact)| (fact::of_guest(n as u32 + 1, &name), fact)));
            gathered.flags.extend(seen.flag.map(|mut flag| {
                flag.detail = if sites.len() > 1 { format!("guest {}: {}", n + 1, flag.detail) } else { flag.detail };
                flag
            }));
        }
        Ok((driven?, probed?))
    }

    /// How long before its start load is announced.
    fn lead(&self, guests: usize) -> Duration {
        let warm_up = Duration::from_nanos(self.phases.steady_offset_ns());
        let lead = LEAD.max(LEAD_TO_WINDOW.saturating_sub(warm_up));
        let guests = u32::try_from(guests).unwrap_or(u32::MAX);
        let drivers = guests.saturating_mul(self.case.load.guests().drivers);
        lead + LEAD_EACH_FURTHER * drivers.saturating_sub(1) + crate::client::further_lead(self.bench)
    }

    fn start_probe(&self, gathered: &Gathered) -> Result<HostProbe, ProbeError> {
        let (guests, targets) = (&gathered.guests, gathered.targets);
        let guests: Vec<(Source, &dyn Guest)> =
            guests.iter().enumerate().map(|(n, guest)| (source(n, targets), &**guest)).collect();
        let watched = sampling::Watched {
            guests: &guests,
            targets,
            in_lab: self.task.platform.reach() == Reach::Lab,
            run_folder: &self.bench.book.dir(),
            data_disk: self.data_disk(gathered),
        };
        sampling::start(self.bench.plan, &self.bench.site, &watched)
    }

    /// The same load for every arm of a block, another in every block and in every try of a search.
    fn seed(&self) -> u64 {
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
