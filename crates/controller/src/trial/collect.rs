//! What was driven and what was probed, put together.

use std::collections::{BTreeSet, HashSet};

use tare_model::guest::DataPlace;
use tare_model::metric::common;
use tare_model::sample::{CpuAccount, Sample, Source};
use tare_model::trial::{Measurement, Phase};
use tare_model::turns::{TrialTurns, TurnsDone};
use tare_model::{count, flag, kvm};
use tare_platform::Reach;
use tare_probe::{Offering, ProbeData};
use tare_workload::Driven;

use super::target::{named, source, target_name};
use super::turns::length;
use super::{Gathered, Stop, Trial, members};
use crate::host_counters::Telling;
use crate::host_metrics::Reported;
use crate::remote_guests;

/// CPUs that an arm's guests may use while it is the turn of others: what they use there, the others may miss.
const WAITING_LIMIT: f64 = 0.01;
/// Share of turns in which something may reach into the next arm's turn. On a shared host 1 to 2 % of turns end while the host runs something else.
const OVERRAN_LIMIT: f64 = 0.05;

impl Trial<'_> {
    /// The trial's figures from those of its guests, and why they must not be used if the workload saw that only now.
    pub(super) fn combine(&self, guests: Vec<Driven>) -> Result<(Driven, Option<String>), Stop> {
        let combined = self.task.workload.combine(guests);
        let mut driven = combined.ok_or_else(|| Stop {
            phase: Phase::Collect,
            reason: "the workload gave no figures for the guests together: a defect of tare, please report it".into(),
        })?;
        let invalid = driven.invalid.take();
        Ok((driven, invalid))
    }

    /// Puts what was driven and what was probed together.
    pub(super) fn collect(&self, driven: Driven, probed: ProbeData, gathered: &mut Gathered) -> Measurement {
        let (window, targets) = (driven.window_ns, gathered.targets);
        let windows = match &gathered.own_turns {
            Some(own) => own.measured(&self.phases),
            None => vec![window],
        };
        let busy = self.busy(&probed.samples, gathered).share_of(&windows);
        let flags = tare_probe::flags(&probed, window);
        let mut measurement = driven.measurement;
        if self.task.platform.reach() == Reach::Outside {
            // What this host's CPUs did is not what the guest cost.
            gathered.flags.extend(remote_guests::flags(flags, self.bench.mixed));
            let in_turns = gathered.own_turns.is_some();
            gathered.facts.extend(remote_guests::facts(&gathered.samples, &target_name(0), window, in_turns));
        } else {
            let of = |guests: std::ops::Range<usize>| guests.map(|n| source(n, targets)).collect::<Vec<Source>>();
            let measured = of(0..targets);
            // What the guests of other arms use in this one's turns is not its own.
            let neighbours = [of(targets..gathered.guests.len()), members::others(&probed.samples)].concat();
            let cpus = &self.bench.plan.cpus.guests;
            gathered.flags.extend(flags);
            // Guests that come and go are in no account, and what makes them is of the host.
            let accountable = self.case.made == 0;
            gathered.cpu = tare_probe::cpu_account(&probed.samples, &windows, cpus, &measured, &neighbours)
                .filter(|_| accountable);
            gathered.flags.extend(tare_probe::guest_flags(&probed, window, &measured, gathered.cpu.as_ref()));
            self.count_disk(&mut measurement, &probed, &windows, driven.work, gathered);
            let work = driven.work / self.task.workload.unit_of_work().counted();
            measurement.metrics.extend(exits(&probed.samples, &measured, window, work));
        }
        let offering = self.offering(&measurement);
        gathered.flags.extend(offering.and_then(|what| tare_probe::driver_saturated(&probed, &windows, what)));
        self.note_turns(driven.turns, &probed, gathered);
        // At the edges of turns CPU time is read alone, for the accounts above.
        let edges: HashSet<u64> = probed.edges.into_iter().collect();
        let kept = |sample: &Sample| !members::is_other(&sample.source) && !edges.contains(&sample.at_ns);
        gathered.samples.extend(probed.samples.into_iter().filter(kept));
        gathered.samples.extend(driven.samples);
        gathered.window_ns = Some(window);
        gathered.facts.extend(driven.facts);
        gathered.flags.extend(driven.flags);
        // Of a search the last iteration, of several guests all: each has what is so in this case.
        gathered.deviations = driven.deviations;
        self.count_drops(gathered);
        let demand = self.service_demand(gathered.cpu.as_ref(), driven.work);
        let idle = gathered.idle_memory_bytes.map(|bytes| bytes as f64);
        let common = [(common::SERVICE_DEMAND, demand), (common::IDLE_MEMORY, idle), (common::GUEST_CPU, busy)];
        let known = common.into_iter().filter_map(|(id, value)| Some((id.to_owned(), value?)));
        measurement.metrics.extend(known);
        measurement.metrics.extend(gathered.starts.means());
        measurement
    }

    /// What offered load on the CPUs of this host that the plan keeps for drivers; `None` of a workload without a driver, or with one on another
    /// machine.
    fn offering(&self, measurement: &Measurement) -> Option<Offering> {
        let used_ns = *measurement.counts.get(count::DRIVER_CPU_NS)?;
        let elsewhere = !self.bench.plan.study.roles.drives_locally();
        let services = self.task.platform.reach() == Reach::Lab && self.task.workload.traits_in(self.case).services();
        (!elsewhere).then(|| if services { Offering::All } else { Offering::Drivers(used_ns as f64 / 1e9) })
    }

    /// Notes what was done in turns, and what the guests used while it was the turn of others.
    fn note_turns(&self, done: Option<TurnsDone>, probed: &ProbeData, gathered: &mut Gathered) {
        let (Some(taken), Some(done)) = (gathered.own_turns.take(), done) else { return };
        let (slots, all) = (taken.slots(), taken.whole());
        let (own, others) = (length(&slots), length(&[all]).saturating_sub(length(&slots)));
        let used = (0..gathered.targets).map(|n| {
            let used = |windows: &[(u64, u64)]| {
                tare_probe::gain_over(&probed.samples, &source(n, gathered.targets), "cpu_total_s", windows)
            };
            Some((used(&[all])? - used(&slots)?).max(0.0))
        });
        let used = used.sum::<Option<f64>>().filter(|_| others > 0 && own > 0);
        // Conditions share their guest: while it is the turn of others, that is at work.
        let used = used.filter(|_| self.case.schedule.condition().is_none());
        let waiting_cpus = used.map(|used_s| used_s / (others as f64 / 1e9));
        if let Some(cpus) = waiting_cpus.filter(|&cpus| cpus > WAITING_LIMIT) {
            let detail = format!(
                "while it was the turn of other arms its guests used {:.1} % of one CPU, more than {} %",
                cpus * 100.0,
                WAITING_LIMIT * 100.0
            );
            gathered.flag(flag::BUSY_WHILE_WAITING, detail);
        }
        if done.overran > 0 && f64::from(done.overran) > OVERRAN_LIMIT * done.counts.len() as f64 {
            let detail = format!(
                "in {} of {} turns something was still under way when the next turn began; a longer `gap` avoids that",
                done.overran,
                done.counts.len()
            );
            gathered.flag(flag::TURN_OVERRUN, detail);
        }
        gathered.turns =
            Some(TrialTurns { start_ns: taken.start_ns, turns: taken.turns.as_ref().clone(), done, waiting_cpus });
    }

    fn count_drops(&self, gathered: &mut Gathered) {
        let all = gathered.targets;
        let dropped: Vec<String> = gathered
            .measured()
            .iter()
            .enumerate()
            .filter_map(|(n, target)| {
                let packets = target.drops().filter(|&packets| packets > 0)?;
                let who = if all > 1 { named(n, all, &target.spec().name) } else { "the guest".to_owned() };
                Some(format!("{packets} packets were dropped on the link of {who} in the whole trial"))
            })
            .collect();
        for detail in dropped {
            gathered.flag("drops", detail);
        }
    }

    /// The host's disks under the data of this trial's guests and their logs; none where they are given none, and where one
    /// of them lies on no disk of this host's, for the others alone would be no sum.
    pub(super) fn data_disks(&self, gathered: &Gathered) -> BTreeSet<String> {
        if !self.task.data.is_some_and(|data| data.to_guests()) {
            return BTreeSet::new();
        }
        let disk = |place: &DataPlace| tare_probe::disk_of(place.on_host.as_ref()?);
        let disks = gathered.measured().iter().flat_map(|target| match target.data() {
            Some(place) => std::iter::once(place).chain(place.log.as_deref()).map(disk).collect(),
            // What a guest has made for itself lies with all else that it writes.
            None => vec![tare_lab::disk_path(self.bench.run_id).ancestors().find_map(tare_probe::disk_of)],
        });
        disks.collect::<Option<_>>().unwrap_or_default()
    }

    /// What was written to and read from the disks under the guests' data, for each unit of work.
    fn count_disk(
        &self,
        measurement: &mut Measurement,
        probed: &ProbeData,
        windows: &[(u64, u64)],
        work: f64,
        gathered: &mut Gathered,
    ) {
        let disks = self.data_disks(gathered);
        if disks.is_empty() || work <= 0.0 {
            return;
        }
        for (id, series) in [(common::DISK_WRITE, "written_bytes"), (common::DISK_READ, "read_bytes")] {
            let of = |disk: &String| {
                let series = format!("disk_{disk}_{series}");
                tare_probe::gain_over(&probed.samples, &Source::Host, &series, windows)
            };
            let bytes: Option<f64> = disks.iter().map(of).sum();
            measurement.metrics.extend(bytes.map(|bytes| (id.to_owned(), bytes / work)));
        }
        let disks: Vec<String> = disks.into_iter().collect();
        gathered.facts.insert("disk under the guests' data".to_owned(), disks.join(", "));
    }

    /// CPU seconds of the SUT a unit of work. `None` where it cannot be distinguished from other work:
    /// from busy loops in the measured guests themselves, or from a driver on the same CPUs.
    fn service_demand(&self, account: Option<&CpuAccount>, work: f64) -> Option<f64> {
        let account = account?;
        (!self.case.busy_target && self.bench.plan.cpus.are_separate() && work > 0.0).then(|| account.work_s() / work)
    }
}

impl Gathered {
    /// Takes in what was heard of the host under the guests.
    pub(super) fn take_in(&mut self, telling: Telling) {
        let Some(Reported { samples, words, wrong }) = telling.end() else { return };
        self.facts.insert("host metrics".to_owned(), words);
        self.samples.extend(samples);
        if let Some(wrong) = wrong {
            self.flag("host-metrics", wrong);
        }
    }
}

/// What KVM counted of the measured guests together for each unit of work.
fn exits(samples: &[Sample], measured: &[Source], window: (u64, u64), work: f64) -> Vec<(String, f64)> {
    if work <= 0.0 || measured.is_empty() {
        return Vec::new();
    }
    let counted = |&(count, _): &(&str, &str)| {
        let gained = tare_probe::gain_of_all(samples, measured, &kvm::series(count), &[window])?;
        Some((kvm::metric(count), gained / work))
    };
    kvm::COUNTS.iter().filter_map(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_those_of_all_measured_guests_in_the_window() {
        let guest = |n: u32| Source::Guest(format!("target-{n}"));
        let sample =
            |n: u32, at_ns: u64, value: f64| Sample { at_ns, source: guest(n), series: kvm::series("exits"), value };
        let samples = [sample(1, 0, 10.0), sample(1, 100, 50.0), sample(2, 0, 0.0), sample(2, 100, 20.0)];
        let of = |measured: &[Source], work: f64| exits(&samples, measured, (50, 100), work);
        assert_eq!(of(&[guest(1), guest(2)], 3.0), [(kvm::metric("exits"), 10.0)]);
        assert_eq!(of(&[guest(1), guest(3)], 3.0), [], "one of them is not counted");
        assert_eq!(of(&[guest(1)], 0.0), []);
        assert_eq!(of(&[], 1.0), []);
    }
}
