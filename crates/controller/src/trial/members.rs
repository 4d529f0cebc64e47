//! The samples of one probe, split between the arms of a set.

use std::collections::HashSet;

use tare_model::sample::{Sample, Source};
use tare_probe::ProbeData;

/// What the names of an arm's guests begin with in the samples of a set's probe; nothing where a trial runs by itself.
pub(super) fn prefix(arm: usize, arms: usize) -> String {
    if arms > 1 { format!("{arm}/") } else { String::new() }
}

/// What the guests of other arms are called in an arm's samples, in front of their names.
const OTHERS: &str = "others:";

/// Series of a guest of another arm that an arm needs: its CPU time is charged to nobody but itself.
const USED: [&str; 3] = ["cpu_total_s", "cpu_user_s", "cpu_system_s"];

/// What the probe of a set saw, as a probe of one of its arms alone would have seen it. Of the other arms' guests there is CPU time
/// alone, as of further guests ([`others`]).
pub(super) fn of(data: &ProbeData, arm: usize, arms: usize) -> ProbeData {
    let own = prefix(arm, arms);
    let samples = data.samples.iter().filter_map(|sample| seen(sample, &own, arms)).collect();
    ProbeData { samples, ..data.clone() }
}

fn seen(sample: &Sample, own: &str, arms: usize) -> Option<Sample> {
    if own.is_empty() {
        return Some(sample.clone());
    }
    let source = match &sample.source {
        Source::Guest(name) => match name.strip_prefix(own) {
            Some(name) => Source::Guest(name.to_owned()),
            None if USED.contains(&sample.series.as_str()) => Source::Guest(format!("{OTHERS}{name}")),
            None => return None,
        },
        other => other.clone(),
    };
    // Links carry the names of their guests.
    let series = sample.series.replace(&format!("nic_{own}"), "nic_");
    let of_another = (0..arms).any(|arm| series.contains(&format!("nic_{}", prefix(arm, arms))));
    (!of_another).then_some(Sample { at_ns: sample.at_ns, source, series, value: sample.value })
}

/// The guests of other arms among the sources of an arm's samples.
pub(super) fn others(samples: &[Sample]) -> Vec<Source> {
    let all: HashSet<&Source> = samples.iter().map(|sample| &sample.source).filter(|source| is_other(source)).collect();
    all.into_iter().cloned().collect()
}

/// Whether a source is a guest of another arm.
pub(super) fn is_other(source: &Source) -> bool {
    matches!(source, Source::Guest(name) if name.starts_with(OTHERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(source: Source, series: &str) -> Sample {
        Sample { at_ns: 1, source, series: series.to_owned(), value: 2.0 }
    }

    #[test]
    fn an_arm_sees_its_own_guests_the_host_and_how_much_cpu_the_others_took() {
        let guest = |name: &str| Source::Guest(name.to_owned());
        let samples = vec![
            sample(Source::Host, "cpu_idle_s"),
            sample(Source::Host, "nic_client_rx_bytes"),
            sample(Source::Host, "nic_0/target_rx_bytes"),
            sample(Source::Host, "nic_1/target_rx_bytes"),
            sample(guest("0/target"), "memory_bytes"),
            sample(guest("1/target"), "memory_bytes"),
            sample(guest("1/target"), "cpu_total_s"),
        ];
        let data = ProbeData { samples: samples.clone(), ..ProbeData::default() };
        let seen: Vec<_> = of(&data, 0, 2).samples;
        let expected = [
            sample(Source::Host, "cpu_idle_s"),
            sample(Source::Host, "nic_client_rx_bytes"),
            sample(Source::Host, "nic_target_rx_bytes"),
            sample(guest("target"), "memory_bytes"),
            sample(guest("others:1/target"), "cpu_total_s"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(others(&seen), [guest("others:1/target")]);
        assert_eq!(of(&data, 0, 1).samples, samples, "a trial by itself has no prefix");
    }
}
