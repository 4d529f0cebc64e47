//! Comparisons in words. Signs are those of the metric everywhere: the change from the baseline to the arm.

use tare_model::findings::Estimate;
use tare_model::metric::{MetricSpec, Unit, common};
use tare_model::written::{change as parts, fixed};
pub(crate) use tare_model::written::{grouped, value};

/// The speed of computing, whose id the workload makes of its unit.
const COMPUTING: &str = "chunks_per_s";

/// A relative size: `1.5 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let places = match value.abs() {
        v if v >= 10.0 => 0,
        v if v >= 0.1 => 1,
        _ => 2,
    };
    format!("{value:.places$} %")
}

/// A relative size for people: in percent, as a multiple where percents mislead, and not at all where a
/// study could have seen nothing.
pub(crate) fn size(share: f64) -> String {
    match share {
        s if s < 1.0 => percent(s),
        s if s < 99.0 => format!("a factor of {}", fixed(1.0 + s, usize::from(s < 8.95))),
        _ => "a factor of 100".to_owned(),
    }
}

/// `+3.1 % [+2.2, +4.0]`, as [`tare_model::written::change`].
pub(crate) fn change(ratio: &Estimate) -> String {
    match parts(ratio) {
        (value, Some(interval)) => format!("{value} {interval}"),
        (value, None) => value,
    }
}

/// What a metric is of, in the middle of a sentence: `response time (median)`.
pub(crate) fn noun(spec: &MetricSpec) -> String {
    match spec.id.as_str() {
        common::START_TIME | common::STARTS_MEAN => "start time".to_owned(),
        common::IDLE_MEMORY => "memory when idle".to_owned(),
        common::SERVICE_DEMAND => format!("CPU time {}", per(&spec.unit)),
        _ => match spec.label.split_once(", ") {
            Some((label, which)) => format!("{label} ({which})"),
            None => spec.label.clone(),
        },
    }
}

const fn per(unit: &Unit) -> &'static str {
    if matches!(unit, Unit::CpuSecondsPerByte) { "a byte" } else { "an operation" }
}

/// What an arm does that has more of a metric, that has less, and that has as much: each as far as the baseline's name.
fn verbs(spec: &MetricSpec) -> [String; 3] {
    let noun = noun(spec);
    let has = |more: &str, less: &str, same: &str| {
        [format!("has {more} {noun} than"), format!("has {less} {noun} than"), format!("has {same} {noun} as")]
    };
    let own = |all: [&str; 3]| all.map(str::to_owned);
    match (spec.id.as_str(), &spec.unit) {
        (common::START_TIME | common::STARTS_MEAN, _) => {
            own(["takes longer to start than", "starts faster than", "starts as fast as"])
        }
        (common::TASKS_MEAN, _) => own([
            "takes longer from nothing to a finished task than",
            "takes less time from nothing to a finished task than",
            "takes as long from nothing to a finished task as",
        ]),
        (common::IDLE_MEMORY, _) => own([
            "takes more memory when idle than",
            "takes less memory when idle than",
            "takes as much memory when idle as",
        ]),
        (common::SERVICE_DEMAND, unit) => {
            ["more", "less", "as much"].map(|much| format!("uses {much} CPU time {} {}", per(unit), than(much)))
        }
        (COMPUTING, _) => own(["computes faster than", "computes slower than", "computes as fast as"]),
        (_, Unit::Seconds) => has("a longer", "a shorter", "the same"),
        (_, Unit::OperationsPerSecond | Unit::Count) => has("more", "fewer", "as many"),
        (_, Unit::Bytes) => has("more", "less", "as much"),
        (_, Unit::Other(_)) => ["above", "below", "level with"].map(|place| format!("is in {noun} {place}")),
        (_, Unit::BitsPerSecond | Unit::Share | Unit::CpuSecondsPerOperation | Unit::CpuSecondsPerByte) => {
            has("a higher", "a lower", "the same")
        }
    }
}

fn than(much: &str) -> &'static str {
    if much.starts_with("as ") { "as" } else { "than" }
}

/// `container takes longer to start than native: +22 % [+18, +27]`.
pub(crate) fn difference(spec: &MetricSpec, ratio: &Estimate, (arm, baseline): (&str, &str)) -> String {
    let [more, less, _] = verbs(spec);
    let verb = if ratio.value >= 1.0 { more } else { less };
    format!("{arm} {verb} {baseline}: {}", change(ratio))
}

/// `container starts as fast as native: +0.1 % [-0.2, +0.4]`.
pub(crate) fn alike(spec: &MetricSpec, ratio: &Estimate, (arm, baseline): (&str, &str)) -> String {
    let [_, _, same] = verbs(spec);
    format!("{arm} {same} {baseline}: {}", change(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::Better;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low: Some(low), high: Some(high), level: 0.95, n: 6, method: String::new() }
    }

    #[test]
    fn differences_read_as_people_say_them_and_their_signs_are_those_of_the_metric() {
        let spec = |id: &str, label: &str, unit| MetricSpec::new(id, label, unit, Better::Lower);
        let time = spec("t", "response time, median", Unit::Seconds);
        let rate = spec("r", "throughput", Unit::BitsPerSecond);
        let orders = spec("o", "orders a minute (OPM)", Unit::Other("orders/min".to_owned()));
        let start = spec(common::START_TIME, "guest start", Unit::Seconds);
        let demand = spec(common::SERVICE_DEMAND, "service demand", Unit::CpuSecondsPerByte);
        let cases = [
            (&time, (1.031, 1.022, 1.040), "has a longer response time (median) than native: +3.1 % [+2.2, +4.0]"),
            (&time, (0.969, 0.960, 0.978), "has a shorter response time (median) than native: -3.1 % [-4.0, -2.2]"),
            (&rate, (0.86, 0.74, 1.22), "has a lower throughput than native: -14 % [-26, +22]"),
            (&time, (5.04, 4.96, 12.34), "has a longer response time (median) than native: 5.04x [4.96, 12.3]"),
            (&orders, (1.0478, 1.0414, 1.0542), "is in orders a minute (OPM) above native: +4.8 % [+4.1, +5.4]"),
            (&start, (1.22, 1.18, 1.27), "takes longer to start than native: +22.0 % [+18.0, +27.0]"),
            (&start, (0.8, 0.7, 0.9), "starts faster than native: -20 % [-30, -10]"),
            (&demand, (1.1, 1.05, 1.15), "uses more CPU time a byte than native: +10.0 % [+5.0, +15.0]"),
        ];
        for (spec, (value, low, high), words) in cases {
            let said = difference(spec, &estimate(value, low, high), ("container", "native"));
            assert_eq!(said, format!("container {words}"));
        }
        let same = alike(&demand, &estimate(1.001, 0.998, 1.004), ("container", "native"));
        assert_eq!(same, "container uses as much CPU time a byte as native: +0.1 % [-0.2, +0.4]");
        let single = Estimate { low: None, high: None, n: 1, ..estimate(1.25, 0.0, 0.0) };
        assert!(difference(&time, &single, ("container", "native")).ends_with("than native: +25 %"));
    }

    #[test]
    fn sizes_that_percents_would_mislead_about_are_multiples() {
        assert_eq!(
            ["1.5 %", "a factor of 5.0", "a factor of 100"],
            [0.015, 4.03, 1e9].map(size).each_ref().map(String::as_str)
        );
    }

    #[test]
    fn percents_keep_the_digits_that_matter() {
        assert_eq!([0.015, 0.23, 0.0004, 1.5].map(percent), ["1.5 %", "23 %", "0.04 %", "150 %"]);
    }
}
