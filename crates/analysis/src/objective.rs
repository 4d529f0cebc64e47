//! Objectives of quality of service, judged on each arm.

use tare_model::findings::ArmObjective;
use tare_model::metric::{Better, MetricSpec};
use tare_model::study::QosObjective;

use crate::words;

/// Judges one objective on the (block, value) of an arm. A block without a figure has not met it. `planned`: blocks, and those in which a
/// percentile was not reached.
pub(crate) fn judge(
    (arm, label): (&str, &str),
    spec: &MetricSpec,
    objective: &QosObjective,
    values: &[(u32, f64)],
    (planned, not_reached): (u32, usize),
) -> ArmObjective {
    let bound = objective.bound;
    let meets = |value: f64| match spec.better {
        Better::Lower => value <= bound,
        Better::Higher => value >= bound,
    };
    let blocks: Vec<(u32, f64, bool)> = values.iter().map(|&(block, value)| (block, value, meets(value))).collect();
    let met = blocks.iter().filter(|(.., met)| *met).count();
    let way = match spec.better {
        Better::Lower => "at most",
        Better::Higher => "at least",
    };
    let asked = format!("{} {way} {}", spec.label, words::value(bound, &spec.unit));
    let all = |of: fn(f64, f64) -> f64| values.iter().map(|v| v.1).reduce(of);
    let range = match (all(f64::min), all(f64::max)) {
        (Some(low), Some(high)) if values.len() > 1 => {
            format!("; values from {} to {}", words::value(low, &spec.unit), words::value(high, &spec.unit))
        }
        (Some(only), _) => format!("; value {}", words::value(only, &spec.unit)),
        _ => String::new(),
    };
    let beyond = if not_reached > 0 { format!("; not reached in {not_reached}") } else { String::new() };
    let missing = (planned as usize).saturating_sub(blocks.len() + not_reached);
    let without = if missing > 0 { format!("; {missing} without a figure") } else { String::new() };
    let sentence = format!("{label}: objective {asked}: met in {met} of {planned} blocks{range}{beyond}{without}");
    ArmObjective { arm: arm.to_owned(), spec: spec.clone(), bound, blocks, planned, sentence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::Unit;

    #[test]
    fn the_direction_of_the_metric_decides() {
        let time = MetricSpec::new("p99", "response time, p99", Unit::Seconds, Better::Lower);
        let rate = MetricSpec::new("rate", "transactions", Unit::OperationsPerSecond, Better::Higher);
        let of = |metric: &str, bound: f64| QosObjective { metric: metric.to_owned(), bound };
        let values = [(0, 0.8e-3), (1, 1.0e-3), (2, 1.2e-3)];
        let judged = judge(("c", "container"), &time, &of("p99", 1e-3), &values, (5, 1));
        assert_eq!(judged.blocks.iter().map(|b| b.2).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(
            judged.sentence,
            "container: objective response time, p99 at most 1.00 ms: met in 2 of 5 blocks; \
             values from 800 us to 1.20 ms; not reached in 1; 1 without a figure"
        );
        let judged = judge(("c", "container"), &rate, &of("rate", 1e3), &[(0, 999.0), (1, 1000.0)], (2, 0));
        assert_eq!(judged.blocks.iter().map(|b| b.2).collect::<Vec<_>>(), [false, true]);
        let none = judge(("c", "container"), &rate, &of("rate", 1e3), &[], (2, 0));
        assert!(none.sentence.ends_with("met in 0 of 2 blocks; 2 without a figure"), "{}", none.sentence);
    }
}
