//! Trials of machines that are not this host's guests.

use std::collections::BTreeMap;

use tare_model::sample::{Sample, Source};
use tare_model::trial::Flag;

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

/// Modes in which a CPU works, as series of a probe.
const BUSY: [&str; 6] = ["user", "nice", "system", "irq", "softirq", "steal"];

/// What the machine's own kernel tells of its CPUs in a window (CLOCK_MONOTONIC of the controller, nanoseconds). Where its arm takes turns,
/// the window is that of others too, and the facts say so.
pub fn facts(samples: &[Sample], target: &str, window: (u64, u64), in_turns: bool) -> BTreeMap<String, String> {
    let source = Source::InGuest(target.to_owned());
    let mut facts = BTreeMap::new();
    let window_s = window.1.saturating_sub(window.0) as f64 / 1e9;
    let gains: Option<Vec<(&str, f64)>> =
        BUSY.iter().map(|mode| Some((*mode, gain(samples, &source, &format!("cpu_{mode}_s"), window)?))).collect();
    let Some(gains) = gains.filter(|_| window_s > 0.0) else { return facts };
    let of = if in_turns { " over the whole block, turns of other arms included" } else { "" };
    let share = |seconds: f64| format!("{:.1} % of one CPU{of}", 100.0 * seconds / window_s);
    let stolen = gains.iter().filter(|(mode, _)| *mode == "steal").map(|(_, seconds)| seconds).sum::<f64>();
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
        for mode in BUSY {
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
