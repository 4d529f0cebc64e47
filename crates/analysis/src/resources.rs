//! What was used of host and guest at the load that the figures of a case are of.

use tare_model::findings::ArmResources;
use tare_model::histogram;
use tare_model::metric::common;
use tare_model::sample::{CpuAccount, Sample, Source};
use tare_model::trial::{Measurement, TrialRecord};

use crate::distribution::completed;
use crate::{offered, student};

/// Least share of a window that samples must cover to speak for it.
const COVERED_MIN: f64 = 0.5;

/// Kinds of CPU time of a host or guest, as its kernel tells them, and where they belong: user, system, idle, waiting. Time that
/// the machine below took away is in none of them, but in the whole.
const KINDS: [(&str, Option<usize>); 8] = [
    ("user", Some(0)),
    ("nice", Some(0)),
    ("system", Some(1)),
    ("irq", Some(1)),
    ("softirq", Some(1)),
    ("idle", Some(2)),
    ("iowait", Some(3)),
    ("steal", None),
];

/// Means over an arm's completed trials; `None` without one. `fixed`: the load of trials that do not search theirs.
pub(crate) fn of_arm(arm: &str, trials: &[&TrialRecord], fixed: Option<f64>) -> Option<ArmResources> {
    let done: Vec<One> = trials.iter().filter_map(|record| Some(of_trial(record, completed(record)?, fixed))).collect();
    if done.is_empty() {
        return None;
    }
    let mean = |of: &dyn Fn(&One) -> Option<f64>| student::mean(&done.iter().filter_map(of).collect::<Vec<f64>>());
    let pair = |of: &dyn Fn(&One) -> Option<(f64, f64)>| {
        mean(&|one| of(one).map(|both| both.0)).zip(mean(&|one| of(one).map(|both| both.1)))
    };
    let shares = |of: fn(&One) -> Option<[f64; 4]>| -> Option<[f64; 4]> {
        let part = |i: usize| mean(&|one| of(one).map(|parts| parts[i]));
        Some([part(0)?, part(1)?, part(2)?, part(3)?])
    };
    Some(ArmResources {
        arm: arm.to_owned(),
        load: mean(&|one| one.load).unwrap_or(0.0),
        response_s: mean(&|one| one.response_s),
        host_cpu_cores: mean(&|one| one.host_cpu_cores),
        guest_cpu_cores: pair(&|one| one.guest_cpu_cores),
        host_cpu_shares: shares(|one| one.host_cpu_shares),
        inside_cpu_shares: shares(|one| one.inside_cpu_shares),
        network_bits_per_s: mean(&|one| one.network_bits_per_s),
        disk_s: mean(&|one| one.disk_s),
        memory_bytes: mean(&|one| one.memory_bytes),
        swapped_bytes: pair(&|one| one.swapped_bytes),
    })
}

/// One trial's figures: means over its windows that there is something about.
struct One {
    load: Option<f64>,
    response_s: Option<f64>,
    host_cpu_cores: Option<f64>,
    guest_cpu_cores: Option<(f64, f64)>,
    host_cpu_shares: Option<[f64; 4]>,
    inside_cpu_shares: Option<[f64; 4]>,
    network_bits_per_s: Option<f64>,
    disk_s: Option<f64>,
    memory_bytes: Option<f64>,
    swapped_bytes: Option<(f64, f64)>,
}

fn of_trial(record: &TrialRecord, measurement: &Measurement, fixed: Option<f64>) -> One {
    let accounts = accounts(record, measurement);
    let cores = |of: fn(&CpuAccount) -> f64| {
        let each = accounts.iter().filter(|cpu| cpu.window_s > 0.0).map(|cpu| of(cpu) / cpu.window_s);
        student::mean(&each.collect::<Vec<f64>>())
    };
    let windows: Vec<Window<'_>> =
        windows(record, measurement).into_iter().map(|span| Window { samples: &record.samples, span }).collect();
    // The window of an arm in turns is that of others, too: what a counter gains in it is not of this arm.
    let own = if record.turns.is_some() { &[][..] } else { &windows };
    let mean =
        |of: &dyn Fn(&Window<'_>) -> Option<f64>| student::mean(&own.iter().filter_map(of).collect::<Vec<f64>>());
    let shares = |of: &dyn Fn(&Window<'_>) -> Option<[f64; 4]>| {
        let each: Vec<[f64; 4]> = own.iter().filter_map(of).collect();
        let mean = |part: usize| each.iter().map(|parts| parts[part]).sum::<f64>() / each.len() as f64;
        (!each.is_empty()).then(|| [mean(0), mean(1), mean(2), mean(3)])
    };
    let swapped = |series: &'static str| mean(&|window| window.change(&Source::Host, series).map(|(gain, _)| gain));
    let metric = |id: &str| measurement.metrics.get(id).copied().filter(|value| value.is_finite());
    One {
        load: offered::of_trial(measurement, fixed),
        response_s: response_s(measurement),
        host_cpu_cores: cores(CpuAccount::work_s).or_else(|| metric(common::HOST_CPU_CORES)),
        guest_cpu_cores: cores(|cpu| cpu.guest_user_s).zip(cores(|cpu| cpu.guest_system_s)),
        host_cpu_shares: shares(&|window| {
            window.shares(&Source::Host, "sut_cpu_").or_else(|| window.shares(&Source::Host, "cpu_"))
        }),
        inside_cpu_shares: shares(&|window| window.shares(&Source::InGuest("target".to_owned()), "cpu_")),
        network_bits_per_s: mean(&|window| window.sent()).or_else(|| metric(common::NETWORK_BITS)),
        disk_s: mean(&|window| window.disk_s()).or_else(|| metric(common::DISK_TIME)),
        memory_bytes: windows.iter().filter_map(Window::memory).reduce(f64::max),
        swapped_bytes: swapped("swap_in_bytes").zip(swapped("swap_out_bytes")),
    }
}

/// The CPU accounts of the iterations at the load that held, or of the trial.
fn accounts(record: &TrialRecord, measurement: &Measurement) -> Vec<CpuAccount> {
    let held = measurement.search.iter().flat_map(|search| search.iterations());
    let own: Vec<CpuAccount> = held.filter_map(|probe| probe.cpu).collect();
    if own.is_empty() { record.cpu.into_iter().collect() } else { own }
}

/// The windows of the iterations at the load that held, or that of the trial.
fn windows(record: &TrialRecord, measurement: &Measurement) -> Vec<(u64, u64)> {
    let held = measurement.search.iter().flat_map(|search| search.iterations()).map(|probe| probe.window_ns);
    let own: Vec<(u64, u64)> = held.filter(|(start, end)| end > start).collect();
    if own.is_empty() { record.window_ns.into_iter().filter(|(start, end)| end > start).collect() } else { own }
}

/// Mean response time of all requests, over the iterations; without request types that of the metric, or of the operations.
fn response_s(measurement: &Measurement) -> Option<f64> {
    // Of all requests together, so that it is the same mean as in the tables of requests.
    let mean = |types: &[&tare_model::trial::RequestType]| {
        let requests: u64 = types.iter().map(|own| own.requests).sum();
        (requests > 0).then(|| types.iter().map(|own| own.response_s).sum::<f64>() / requests as f64)
    };
    let held: Vec<_> =
        measurement.search.iter().flat_map(|search| search.iterations()).flat_map(|probe| &probe.requests).collect();
    let own: Vec<_> = measurement.requests.iter().collect();
    let operations = || measurement.histograms.get(histogram::RESPONSE)?.mean().map(|ns| ns * 1e-9);
    let metric = || measurement.metrics.get(common::RESPONSE_MEAN).copied();
    mean(&held).or_else(|| mean(&own)).or_else(metric).or_else(operations)
}

/// What the probes saw between two moments.
struct Window<'a> {
    samples: &'a [Sample],
    span: (u64, u64),
}

impl Window<'_> {
    /// (nanoseconds, value) of a series in the window, in order.
    fn points(&self, source: &Source, series: &str) -> Vec<(u64, f64)> {
        let (start, end) = self.span;
        let inside = |sample: &&Sample| (start..=end).contains(&sample.at_ns) && sample.value.is_finite();
        let own = self.samples.iter().filter(|sample| sample.source == *source && sample.series == series);
        let mut points: Vec<(u64, f64)> = own.filter(inside).map(|sample| (sample.at_ns, sample.value)).collect();
        points.sort_by_key(|point| point.0);
        points
    }

    /// How much a counter grew in the window, and over how many seconds that was seen; `None` where it was hardly seen, or began anew.
    fn change(&self, source: &Source, series: &str) -> Option<(f64, f64)> {
        let points = self.points(source, series);
        let (first, last) = (points.first()?, points.last()?);
        let covered = (last.0 - first.0) as f64;
        let enough = covered >= COVERED_MIN * (self.span.1 - self.span.0) as f64 && covered > 0.0;
        (enough && last.1 >= first.1).then_some((last.1 - first.1, covered * 1e-9))
    }

    /// Shares of all CPU time that a kernel tells: user, system, idle, waiting.
    fn shares(&self, source: &Source, prefix: &str) -> Option<[f64; 4]> {
        let (mut parts, mut whole) = ([0.0; 4], 0.0);
        for (kind, part) in KINDS {
            // A sandbox tells fewer kinds; without idle time there is no whole.
            let Some((gain, _)) = self.change(source, &format!("{prefix}{kind}_s")) else {
                if kind == "idle" {
                    return None;
                }
                continue;
            };
            whole += gain;
            if let Some(part) = part {
                parts[part] += gain;
            }
        }
        (whole > 0.0).then(|| parts.map(|part| part / whole))
    }

    /// Bits a second that the measured guests sent: at their own end of the link, or as the other end received it.
    fn sent(&self) -> Option<f64> {
        let series = |n: u32| {
            let guest = if n == 1 { "target".to_owned() } else { format!("target-{n}") };
            let own = self.change(&Source::Host, &format!("nic_{guest}_tx_bytes"));
            own.or_else(|| self.change(&Source::Host, &format!("nic_{guest}-port_rx_bytes")))
        };
        let each: Vec<(f64, f64)> = (1..).map_while(series).collect();
        (!each.is_empty()).then(|| each.iter().map(|(bytes, seconds)| bytes * 8.0 / seconds).sum())
    }

    /// Mean time of a request to the host's disks, seconds; `None` where none was seen.
    fn disk_s(&self) -> Option<f64> {
        let (mut seconds, mut requests) = (0.0, 0.0);
        for (time, count) in [("read_s", "read_requests"), ("write_s", "write_requests")] {
            let names: std::collections::BTreeSet<&str> = self
                .samples
                .iter()
                .filter_map(|sample| sample.series.strip_prefix("disk_")?.strip_suffix(time))
                .collect();
            for disk in names {
                let of = |what: &str| self.change(&Source::Host, &format!("disk_{disk}{what}")).map(|(gain, _)| gain);
                if let Some((spent, done)) = of(time).zip(of(count)) {
                    (seconds, requests) = (seconds + spent, requests + done);
                }
            }
        }
        (requests > 0.0).then(|| seconds / requests)
    }

    /// Largest memory of the measured guests' control groups, bytes.
    fn memory(&self) -> Option<f64> {
        let most = |n: u32| {
            let guest = if n == 1 { "target".to_owned() } else { format!("target-{n}") };
            let points = self.points(&Source::Guest(guest), "memory_bytes");
            points.into_iter().map(|(_, bytes)| bytes).reduce(f64::max)
        };
        let each: Vec<f64> = (1..).map_while(most).collect();
        (!each.is_empty()).then(|| each.iter().sum())
    }
}
