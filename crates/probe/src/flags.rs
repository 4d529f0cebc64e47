//! What a reader must know when trusting a window.

use tare_model::sample::{CpuAccount, Source};
use tare_model::trial::Flag;

use crate::ProbeData;
use crate::timeline::Timeline;

/// Share of the SUT's CPU time that a hypervisor under the host may take before a trial is flagged.
pub const STEAL_LIMIT: f64 = 0.01;

/// Share of the SUT's CPU time that foreign tasks ([`CpuAccount::foreign_s`]) may take before a trial is flagged.
pub const FOREIGN_LIMIT: f64 = 0.05;

/// Share of the CPU time that a driver may use beyond which it may be what limits a trial.
pub const DRIVER_LIMIT: f64 = 0.95;

/// Warnings about a window (CLOCK_MONOTONIC nanoseconds), from a host's probe.
///
/// `steal`: more than [`STEAL_LIMIT`] of the SUT's CPU time was taken away. `drops`: an interface dropped packets.
/// `lost-samples`: samples were not taken, or the window is not covered. `oom`: the kernel killed a process of a
/// guest for memory. `swap`: the host swapped.
pub fn flags(data: &ProbeData, window: (u64, u64)) -> Vec<Flag> {
    let timeline = Timeline::new(&data.samples);
    let mut flags = Vec::new();
    flags.extend(steal(&timeline, window));
    flags.extend(drops(&timeline, window));
    flags.extend(lost(&timeline, data, window));
    flags.extend(oom(&timeline, window));
    flags.extend(swap(&timeline, window));
    flags
}

/// Warnings about a window that need to know which guests were measured, or what the SUT's CPUs did in it.
///
/// `throttled`: a guest used up its CPU quota and was made to wait. `foreign-load`: more than [`FOREIGN_LIMIT`] of
/// the SUT's CPU time went to programs outside all guests.
pub fn guest_flags(data: &ProbeData, window: (u64, u64), guests: &[Source], account: Option<&CpuAccount>) -> Vec<Flag> {
    let timeline = Timeline::new(&data.samples);
    let throttled = guests.iter().filter_map(|guest| {
        // One guest needs no name.
        let name = match guest {
            Source::Guest(name) if guests.len() > 1 => format!("guest {name}"),
            _ => "the guest".to_owned(),
        };
        throttled(&timeline, window, guest, &name)
    });
    throttled.chain(account.and_then(foreign)).collect()
}

fn throttled(timeline: &Timeline<'_>, window: (u64, u64), guest: &Source, name: &str) -> Option<Flag> {
    let throttled_s = timeline.gain(guest, "throttled_s", window).filter(|&seconds| seconds > 0.0)?;
    let periods = timeline.gain(guest, "throttled_periods", window).unwrap_or(0.0);
    let detail = format!(
        "{name} used up its CPU quota in {periods:.0} periods of the window and waited {:.1} ms (limit 0)",
        throttled_s * 1e3
    );
    Some(flag("throttled", detail))
}

fn foreign(account: &CpuAccount) -> Option<Flag> {
    let share = account.foreign_s / (account.window_s * f64::from(account.cpus));
    (share > FOREIGN_LIMIT).then(|| {
        let detail = format!(
            "programs outside all guests took {:.1} % of the SUT's CPU time (limit {} %); it is not in the CPU of an operation",
            100.0 * share,
            100.0 * FOREIGN_LIMIT
        );
        flag("foreign-load", detail)
    })
}

/// What offers load on the CPUs that the plan keeps for drivers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Offering {
    /// Drivers, whose threads used so many CPU seconds in the windows.
    Drivers(f64),
    /// Drivers and what guests use beside them (a database, a file store), which nobody counts apart: all that these CPUs did.
    All,
}

/// `driver-saturated`: what offers load used more than [`DRIVER_LIMIT`] of its CPUs in the windows, interrupts and packets there included, for a
/// driver has its packets handled on its own CPU. What was stolen could not be used and is left out. Load of others on these CPUs is no fault of the
/// driver's: where it has to wait for them, `driver-starved` says so.
pub fn driver_saturated(data: &ProbeData, windows: &[(u64, u64)], offering: Offering) -> Option<Flag> {
    let timeline = Timeline::new(&data.samples);
    let gain = |column: &str| timeline.gain_over(&Source::Host, &format!("client_cpu_{column}_s"), windows);
    let window_s = windows.iter().map(|(start, end)| end.saturating_sub(*start) as f64 / 1e9).sum::<f64>();
    let usable_s = timeline.constant(&Source::Host, "client_cpus")? * window_s - gain("steal")?;
    let busy_s = usable_s - gain("idle")? - gain("iowait")?;
    let (used_s, who) = match offering {
        // Where interrupts are not measured apart, a part of theirs is in the threads' time, too: no more was used than the CPUs were busy.
        Offering::Drivers(own_s) => ((own_s + gain("irq")? + gain("softirq")?).min(busy_s), "the driver"),
        Offering::All => (busy_s, "the driver and what the guests use beside it"),
    };
    let share = used_s / usable_s;
    (usable_s > 0.0 && share > DRIVER_LIMIT).then(|| {
        let (percent, limit) = (100.0 * share, 100.0 * DRIVER_LIMIT);
        let detail =
            format!("{who} used {percent:.1} % of its CPUs (limit {limit} %): that may be what limits the trial");
        flag(tare_model::flag::DRIVER_SATURATED, detail)
    })
}

fn flag(kind: &str, detail: String) -> Flag {
    Flag { kind: kind.to_owned(), detail }
}

fn steal(timeline: &Timeline<'_>, window: (u64, u64)) -> Option<Flag> {
    let gain = |series| timeline.gain(&Source::Host, series, window);
    let steal_s = gain("sut_cpu_steal_s").or_else(|| gain("cpu_steal_s"))?;
    let capacity_s = timeline.constant(&Source::Host, "sut_cpus")? * window.1.checked_sub(window.0)? as f64 / 1e9;
    let share = steal_s / capacity_s;
    (share > STEAL_LIMIT).then(|| {
        let limit = 100.0 * STEAL_LIMIT;
        flag(
            "steal",
            format!(
                "the hypervisor under this host took {:.1} % of the SUT's CPU time (limit {limit} %)",
                100.0 * share
            ),
        )
    })
}

fn drops(timeline: &Timeline<'_>, window: (u64, u64)) -> Vec<Flag> {
    let dropped = |name: &str| {
        let nic = name.strip_prefix("nic_")?.strip_suffix("_dropped_packets")?;
        let (label, way) = nic.rsplit_once('_')?;
        let packets = timeline.gain(&Source::Host, name, window).filter(|&packets| packets >= 0.5)?;
        let way = if way == "rx" { "received" } else { "sent" };
        Some(flag("drops", format!("{label} dropped {packets:.0} packets that it {way} (limit 0)")))
    };
    timeline.names(&Source::Host).into_iter().filter_map(dropped).collect()
}

fn lost(timeline: &Timeline<'_>, data: &ProbeData, window: (u64, u64)) -> Option<Flag> {
    let Some(lost) = timeline.gain(&Source::Host, "probe_lost_samples", window) else {
        return Some(flag("lost-samples", "the probe's samples do not cover the window".to_owned()));
    };
    (lost >= 0.5).then(|| {
        let lateness_ms = data.lateness_max_ns as f64 / 1e6;
        flag(
            "lost-samples",
            format!(
                "{lost:.0} samples of the host were not taken (limit 0); the latest sample was {lateness_ms:.1} ms late"
            ),
        )
    })
}

fn oom(timeline: &Timeline<'_>, window: (u64, u64)) -> Vec<Flag> {
    let killed = |source: &Source| {
        let kills = timeline.gain(source, "oom_kills", window).filter(|&kills| kills >= 0.5)?;
        let Source::Guest(name) = source else { return None };
        Some(flag("oom", format!("the kernel killed {kills:.0} processes of guest {name} for memory (limit 0)")))
    };
    timeline.sources().into_iter().filter_map(killed).collect()
}

fn swap(timeline: &Timeline<'_>, window: (u64, u64)) -> Option<Flag> {
    let gain = |series| timeline.gain(&Source::Host, series, window).unwrap_or(0.0);
    let (read, written) = (gain("swap_in_bytes"), gain("swap_out_bytes"));
    let mib = f64::from(1 << 20);
    (read + written > 0.0).then(|| {
        flag("swap", format!("the host swapped {:.1} MiB in and {:.1} MiB out (limit 0)", read / mib, written / mib))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::sample::Sample;

    const WINDOW: (u64, u64) = (0, 2_000_000_000);

    fn data(gains: &[(Source, &str, f64)]) -> ProbeData {
        let quiet = [(Source::Host, "probe_lost_samples", 0.0), (Source::Host, "cpu_steal_s", 0.0)];
        let mut samples = Vec::new();
        for (source, series, gain) in quiet.iter().filter(|q| !gains.iter().any(|g| g.1 == q.1)).chain(gains) {
            for (at_ns, value) in [(WINDOW.0, 5.0), (WINDOW.1, 5.0 + gain)] {
                samples.push(Sample { at_ns, source: source.clone(), series: (*series).into(), value });
            }
        }
        samples.push(Sample { at_ns: 0, source: Source::Host, series: "sut_cpus".into(), value: 2.0 });
        ProbeData { samples, ..ProbeData::default() }
    }

    fn kinds(data: &ProbeData) -> Vec<String> {
        flags(data, WINDOW).into_iter().map(|flag| flag.kind).collect()
    }

    #[test]
    fn a_quiet_window_has_no_flags() {
        assert!(kinds(&data(&[(Source::Host, "nic_eth0_rx_dropped_packets", 0.0)])).is_empty());
    }

    #[test]
    fn steal_counts_beyond_one_percent_of_all_the_suts_cpus() {
        assert!(kinds(&data(&[(Source::Host, "cpu_steal_s", 0.039)])).is_empty());
        assert_eq!(kinds(&data(&[(Source::Host, "cpu_steal_s", 0.041)])), ["steal"]);
        // Steal elsewhere does not matter where the SUT's CPUs are counted apart.
        let apart = [(Source::Host, "cpu_steal_s", 1.0), (Source::Host, "sut_cpu_steal_s", 0.0)];
        assert!(kinds(&data(&apart)).is_empty());
    }

    #[test]
    fn each_trouble_has_its_flag_with_the_figure() {
        let trouble = [
            (Source::Host, "nic_client_tx_dropped_packets", 7.0),
            (Source::Host, "probe_lost_samples", 2.0),
            (Source::Guest("target".into()), "oom_kills", 1.0),
            (Source::Host, "swap_in_bytes", 1_048_576.0),
        ];
        let flags = flags(&data(&trouble), WINDOW);
        let kinds: Vec<_> = flags.iter().map(|flag| flag.kind.as_str()).collect();
        assert_eq!(kinds, ["drops", "lost-samples", "oom", "swap"]);
        assert!(flags[0].detail.starts_with("client dropped 7 packets that it sent"), "{:?}", flags[0]);
    }

    #[test]
    fn a_driver_that_has_no_cpu_left_is_flagged_and_one_whose_cpus_others_use_is_not() {
        let host = |column: &str, seconds| (Source::Host, format!("client_cpu_{column}_s"), seconds);
        // One CPU for 2 s.
        let columns_idle = |idle_s, steal_s| {
            let gains = [("idle", idle_s), ("iowait", 0.0), ("irq", 0.1), ("softirq", 0.3), ("steal", steal_s)];
            let gains = gains.map(|(column, seconds)| host(column, seconds));
            let mut data = data(&gains.each_ref().map(|(source, series, s)| (source.clone(), series.as_str(), *s)));
            data.samples.push(Sample { at_ns: 0, source: Source::Host, series: "client_cpus".into(), value: 1.0 });
            data
        };
        let columns = |steal_s| columns_idle(0.0, steal_s);
        let own = |steal_s, seconds| driver_saturated(&columns(steal_s), &[WINDOW], Offering::Drivers(seconds));
        let flag = own(0.0, 1.51).unwrap();
        assert_eq!(flag.kind, "driver-saturated");
        assert!(flag.detail.starts_with("the driver used 95.5 % of its CPUs"), "{}", flag.detail);
        assert_eq!(own(0.0, 1.49), None, "94.5 %: others had the rest");
        assert!(own(0.5, 1.03).is_some(), "of 1.5 s that were not stolen");
        let all = driver_saturated(&columns(0.0), &[WINDOW], Offering::All);
        assert!(
            all.is_some_and(|flag| flag
                .detail
                .starts_with("the driver and what the guests use beside it used 100.0 %"))
        );
        // Interrupts that are in the threads' time, too, are no reason.
        let idle = driver_saturated(&columns_idle(0.2, 0.0), &[WINDOW], Offering::Drivers(1.75));
        assert_eq!(idle, None, "the CPU was idle for a tenth of the time");
        let halves = [(WINDOW.0, WINDOW.1 / 2), (WINDOW.1 / 2, WINDOW.1)];
        assert!(driver_saturated(&columns(0.0), &halves, Offering::Drivers(1.51)).is_some(), "turns are added up");
        assert!(kinds(&columns(0.0)).is_empty());
    }

    #[test]
    fn a_throttled_guest_and_load_of_others_are_flagged_with_their_figures() {
        let target = Source::Guest("target".into());
        let gains = |name: &str| {
            [(Source::Guest(name.into()), "throttled_s", 0.25), (Source::Guest(name.into()), "throttled_periods", 4.0)]
        };
        let account = |foreign_s| CpuAccount { window_s: 2.0, cpus: 2, foreign_s, ..CpuAccount::default() };
        let target = [target];
        let flags = guest_flags(&data(&gains("target")), WINDOW, &target, Some(&account(0.3)));
        let kinds: Vec<_> = flags.iter().map(|flag| flag.kind.as_str()).collect();
        assert_eq!(kinds, ["throttled", "foreign-load"]);
        assert!(flags[0].detail.contains("4 periods") && flags[0].detail.contains("250.0 ms"), "{}", flags[0].detail);
        assert!(flags[1].detail.contains("7.5 %"), "{}", flags[1].detail);
        let both = [target[0].clone(), Source::Guest("target-2".into())];
        let flags = guest_flags(&data(&gains("target-2")), WINDOW, &both, None);
        assert!(flags[0].detail.starts_with("guest target-2 used up"), "{}", flags[0].detail);
        // A neighbour's quota is not the target's, and 5 % of 4 CPU seconds may be others'.
        assert!(guest_flags(&data(&gains("neighbour-1")), WINDOW, &target, Some(&account(0.2))).is_empty());
    }

    #[test]
    fn a_window_beyond_the_samples_is_flagged_not_passed() {
        let flags = flags(&data(&[]), (0, 3_000_000_000));
        assert_eq!(flags.first().map(|flag| flag.kind.as_str()), Some("lost-samples"));
    }
}
