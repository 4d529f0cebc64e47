//! What was driven and what was probed, put together.

use tare_model::guest::DataPlace;
use tare_model::kvm;
use tare_model::metric::common;
use tare_model::sample::{CpuAccount, Sample, Source};
use tare_model::trial::{Measurement, Phase};
use tare_platform::Reach;
use tare_probe::ProbeData;
use tare_workload::Driven;

use super::target::{named, source, target_name};
use super::{Gathered, Stop, Trial};
use crate::remote_guests;

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
        let busy = self.busy(&probed.samples, gathered).share(window);
        let flags = tare_probe::flags(&probed, window);
        let mut measurement = driven.measurement;
        if self.task.platform.reach() == Reach::Outside {
            // What this host's CPUs did is not what the guest cost.
            gathered.flags.extend(remote_guests::flags(flags, self.bench.mixed));
            gathered.facts.extend(remote_guests::facts(&gathered.samples, &target_name(0), window));
        } else {
            let of = |guests: std::ops::Range<usize>| guests.map(|n| source(n, targets)).collect::<Vec<Source>>();
            let (measured, neighbours) = (of(0..targets), of(targets..gathered.guests.len()));
            let cpus = &self.bench.plan.cpus.guests;
            gathered.flags.extend(flags);
            gathered.cpu = tare_probe::cpu_account(&probed.samples, window, cpus, &measured, &neighbours);
            gathered.flags.extend(tare_probe::guest_flags(&probed, window, &measured, gathered.cpu.as_ref()));
            self.count_disk(&mut measurement, &probed, window, driven.work, gathered);
            let work = driven.work / self.task.workload.unit_of_work().counted();
            measurement.metrics.extend(exits(&probed.samples, &measured, window, work));
        }
        gathered.samples.extend(probed.samples);
        gathered.samples.extend(driven.samples);
        gathered.window_ns = Some(window);
        gathered.facts.extend(driven.facts);
        gathered.flags.extend(driven.flags);
        self.count_drops(gathered);
        let demand = self.service_demand(gathered.cpu.as_ref(), driven.work);
        let idle = gathered.idle_memory_bytes.map(|bytes| bytes as f64);
        let common = [(common::SERVICE_DEMAND, demand), (common::IDLE_MEMORY, idle), (common::GUEST_CPU, busy)];
        let known = common.into_iter().filter_map(|(id, value)| Some((id.to_owned(), value?)));
        measurement.metrics.extend(known);
        measurement.metrics.extend(gathered.starts.means());
        measurement
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

    /// The host's disk under the data of this trial's guests, where those are given data and it is one disk of this host's.
    pub(super) fn data_disk(&self, gathered: &Gathered) -> Option<String> {
        self.task.data.filter(|data| data.to_guests())?;
        let disk = |place: &DataPlace| tare_probe::disk_of(place.on_host.as_ref()?);
        let mut disks = gathered.measured().iter().map(|target| match target.data() {
            Some(place) => disk(place),
            // What a guest has made for itself lies with all else that it writes.
            None => tare_lab::disk_path(self.bench.run_id).ancestors().find_map(tare_probe::disk_of),
        });
        let first = disks.next().flatten();
        first.filter(|first| disks.all(|other| other.as_ref() == Some(first)))
    }

    /// What was written to and read from the disk under the guests' data, for each unit of work.
    fn count_disk(
        &self,
        measurement: &mut Measurement,
        probed: &ProbeData,
        window: (u64, u64),
        work: f64,
        gathered: &mut Gathered,
    ) {
        let Some(disk) = self.data_disk(gathered).filter(|_| work > 0.0) else { return };
        for (id, series) in [(common::DISK_WRITE, "written_bytes"), (common::DISK_READ, "read_bytes")] {
            let bytes = tare_probe::gain(&probed.samples, &Source::Host, &format!("disk_{disk}_{series}"), window);
            measurement.metrics.extend(bytes.map(|bytes| (id.to_owned(), bytes / work)));
        }
        gathered.facts.insert("disk under the guests' data".to_owned(), disk);
    }

    /// CPU seconds of the SUT a unit of work. `None` where it cannot be distinguished from other work:
    /// from busy loops in the measured guests themselves, or from a driver on the same CPUs.
    fn service_demand(&self, account: Option<&CpuAccount>, work: f64) -> Option<f64> {
        let account = account?;
        let cpus = &self.bench.plan.cpus;
        let shared = cpus.guests.is_empty() || cpus.client.iter().any(|cpu| cpus.guests.contains(cpu));
        (!self.case.busy_target && !shared && work > 0.0).then(|| (account.total_s - account.neighbours_s) / work)
    }
}

/// What KVM counted of the measured guests together for each unit of work.
fn exits(samples: &[Sample], measured: &[Source], window: (u64, u64), work: f64) -> Vec<(String, f64)> {
    if work <= 0.0 || measured.is_empty() {
        return Vec::new();
    }
    let counted = |&(count, _): &(&str, &str)| {
        let gains = measured.iter().map(|guest| tare_probe::gain(samples, guest, &kvm::series(count), window));
        Some((kvm::metric(count), gains.sum::<Option<f64>>()? / work))
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
