//! Trials of machines that are not this host's guests.

use std::collections::BTreeMap;

use tare_model::sample::{Sample, Source};
use tare_model::trial::Flag;
use tare_platform::{Platform, Reach};

/// Warnings of this host's probe that are about the host that carries the guests, which here it is not.
const OF_THE_SUT: [&str; 2] = ["steal", "foreign-load"];

/// The flags that hold where the guest is elsewhere; `mixed`: other arms of the study are on the lab's network.
pub fn flags(seen: Vec<Flag>, mixed: bool) -> Vec<Flag> {
    let mut flags: Vec<Flag> = seen.into_iter().filter(|flag| !OF_THE_SUT.contains(&flag.kind.as_str())).collect();
    if mixed {
        let detail = "this arm is reached over a network that was there before the run, and others of the study over the \
                      lab's inside this host: a difference between them is also one of these networks";
        flags.push(Flag { kind: "network-path".into(), detail: detail.into() });
    }
    flags
}

/// Whether a platform's guests are machines that exist already and are not this host's: nothing is seen of the host that carries them.
pub fn are_elsewhere(platform: &dyn Platform) -> bool {
    platform.reach() == Reach::Outside && platform.machines().is_some()
}

/// The fact that says by whose account the CPUs of machines elsewhere are busy to a share.
pub const OWN_ACCOUNT: (&str, &str) = (
    "the guests' CPU is counted by",
    "each guest's own kernel: time that the hypervisor took from it (steal) is no part of the share, and what the hypervisor itself does for it is \
     not seen",
);

/// Modes in which a CPU does no work of the guest's.
const UNUSED: [&str; 3] = ["idle", "iowait", STOLEN];

/// Modes in which it does.
pub const WORKING: [&str; 5] = ["user", "nice", "system", "irq", "softirq"];
/// What the hypervisor took.
const STOLEN: &str = "steal";

/// CPU seconds that a machine has used by its own kernel, as counters of [`Source::InGuest`] from its first sample on; empty where it was not
/// sampled. The first of `named`: all time of its CPUs less what they were idle and what was stolen from them, for many kernels only sample work
/// at timer ticks, while idle time is measured. The second: the columns of work all the same. Time for which an idle CPU waits to wake up
/// counts as idle and as stolen, so that the first says too little where much is stolen.
pub fn used(samples: &[Sample], target: &str, cpus: usize, named: [&str; 2]) -> Vec<Sample> {
    let source = Source::InGuest(target.to_owned());
    let [unused, working] = [&UNUSED[..], &WORKING[..]]
        .map(|modes| modes.iter().map(|mode| format!("cpu_{mode}_s")).collect::<Vec<String>>());
    let mut read: BTreeMap<u64, (usize, f64, f64)> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.source == source) {
        if unused.contains(&sample.series) {
            let (seen, sum, _) = read.entry(sample.at_ns).or_default();
            *seen += 1;
            *sum += sample.value;
        } else if working.contains(&sample.series) {
            read.entry(sample.at_ns).or_default().2 += sample.value;
        }
    }
    read.retain(|_, (seen, ..)| *seen == unused.len());
    let Some((&first_ns, &(_, unused_s, worked_s))) = read.first_key_value() else { return Vec::new() };
    let counters = |(at_ns, (_, unused, worked)): (u64, (usize, f64, f64))| {
        let passed_s = at_ns.saturating_sub(first_ns) as f64 / 1e9;
        let values = [cpus as f64 * passed_s - (unused - unused_s), worked - worked_s];
        let of = |(name, value): (&str, f64)| Sample { at_ns, source: source.clone(), series: name.to_owned(), value };
        named.into_iter().zip(values).map(of).collect::<Vec<Sample>>()
    };
    read.into_iter().flat_map(counters).collect()
}

/// What the machine's own kernel tells of its CPUs in a window (CLOCK_MONOTONIC of the controller, nanoseconds). Where its arm takes turns,
/// the window is that of others too, and the facts say so.
pub fn facts(samples: &[Sample], target: &str, window: (u64, u64), in_turns: bool) -> BTreeMap<String, String> {
    let source = Source::InGuest(target.to_owned());
    let mut facts = BTreeMap::new();
    let window_s = window.1.saturating_sub(window.0) as f64 / 1e9;
    let gains: Option<Vec<(&str, f64)>> = WORKING
        .into_iter()
        .chain([STOLEN])
        .map(|mode| Some((mode, gain(samples, &source, &format!("cpu_{mode}_s"), window)?)))
        .collect();
    let Some(gains) = gains.filter(|_| window_s > 0.0) else { return facts };
    let of = if in_turns { " over the whole block, turns of other arms included" } else { "" };
    let share = |seconds: f64| format!("{:.1} % of one CPU{of}", 100.0 * seconds / window_s);
    let stolen = gains.iter().filter(|(mode, _)| *mode == STOLEN).map(|(_, seconds)| seconds).sum::<f64>();
    let all: f64 = gains.iter().map(|(_, seconds)| seconds).sum();
    facts.insert("machine CPU, by its own kernel".into(), share(all - stolen));
    facts.insert("machine CPU stolen, by its own kernel".into(), share(stolen));
    facts
}

/// What a counter gained in a window, its ends interpolated; `None` where samples do not reach over both.
fn gain(samples: &[Sample], source: &Source, series: &str, window: (u64, u64)) -> Option<f64> {
    let of = || samples.iter().filter(|sample| sample.source == *source && sample.series == series);
    let at = |moment: u64| {
        let before = of().filter(|sample| sample.at_ns <= moment).max_by_key(|sample| sample.at_ns)?;
        let after = of().filter(|sample| sample.at_ns >= moment).min_by_key(|sample| sample.at_ns)?;
        let span = after.at_ns.saturating_sub(before.at_ns) as f64;
        let part = if span > 0.0 { (moment - before.at_ns) as f64 / span } else { 0.0 };
        Some(before.value + (after.value - before.value) * part)
    };
    Some((at(window.1)? - at(window.0)?).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_figures_are_reported_for_the_window() {
        let sample = |mode: &str, at_ns, value| Sample {
            at_ns,
            source: Source::InGuest("target".into()),
            series: format!("cpu_{mode}_s"),
            value,
        };
        let mut samples = Vec::new();
        for mode in WORKING.into_iter().chain([STOLEN]) {
            let rate = if mode == "user" { 0.5 } else { 0.0 };
            samples.extend((0..=4_u64).map(|n| sample(mode, n * 1_000_000_000, 100.0 + rate * n as f64)));
        }
        let window = (500_000_000, 3_500_000_000);
        let found = facts(&samples, "target", window, false);
        assert_eq!(found["machine CPU, by its own kernel"], "50.0 % of one CPU");
        assert_eq!(found["machine CPU stolen, by its own kernel"], "0.0 % of one CPU");
        let in_turns = facts(&samples, "target", window, true);
        let whole = "50.0 % of one CPU over the whole block, turns of other arms included";
        assert_eq!(in_turns["machine CPU, by its own kernel"], whole);
        let too_long = (500_000_000, 4_500_000_000);
        assert!(facts(&samples, "target", too_long, false).is_empty(), "not sampled to the end");
        assert!(facts(&samples, "other", window, false).is_empty());
    }

    #[test]
    fn what_a_machine_used_is_all_time_of_its_cpus_less_what_was_idle_or_stolen() {
        let sample = |name: &str, mode: &str, n: u64, value| Sample {
            at_ns: n * 500_000_000,
            source: Source::InGuest(name.into()),
            series: format!("cpu_{mode}_s"),
            value,
        };
        let mut samples = Vec::new();
        for n in 0..=4_u64 {
            let passed_s = n as f64 / 2.0;
            // Of two CPUs half a CPU is idle, a tenth waits for a disk, and two tenths are stolen; ticks see a third of the work.
            for (mode, rate) in [("idle", 0.5), ("iowait", 0.1), ("steal", 0.2), ("user", 0.3), ("softirq", 0.1)] {
                samples.push(sample("target", mode, n, 7.0 + rate * passed_s));
                samples.push(sample("target-2", mode, n, 9.0 * passed_s));
            }
        }
        // A reading that broke off.
        samples.push(sample("target", "idle", 9, 0.0));
        let found = used(&samples, "target", 2, ["used_s", "worked_s"]);
        assert!(found.len() == 10 && found.iter().all(|own| own.source == Source::InGuest("target".into())));
        let source = Source::InGuest("target".into());
        let gained = |series: &str| tare_probe::gain(&found, &source, series, (250_000_000, 1_750_000_000)).unwrap();
        assert!((gained("used_s") - 1.5 * 1.2).abs() < 1e-9 && (gained("worked_s") - 1.5 * 0.4).abs() < 1e-9);
        assert!(used(&samples, "other", 2, ["used_s", "worked_s"]).is_empty());
    }

    #[test]
    fn warnings_about_a_host_that_does_not_carry_the_guest_are_left_out() {
        let flag = |kind: &str| Flag { kind: kind.into(), detail: String::new() };
        let kinds = |mixed| {
            let kept = flags(vec![flag("steal"), flag("driver-saturated"), flag("foreign-load")], mixed);
            kept.into_iter().map(|flag| flag.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(false), ["driver-saturated"]);
        assert_eq!(kinds(true), ["driver-saturated", "network-path"]);
    }
}
