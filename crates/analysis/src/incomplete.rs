//! What figures of response time leave out: operations that were due and did not complete.

use tare_model::findings::ArmIncomplete;
use tare_model::metric::MetricSpec;
use tare_model::trial::{Incomplete, TrialRecord};
use tare_model::written::missing_operations;

use crate::distribution::completed;
use crate::{estimate, words};

/// What the trials of an arm leave out of a metric; `None` where all that was due completed, or where that changes nothing.
pub(crate) fn of_arm(arm: &str, trials: &[&TrialRecord], spec: &MetricSpec) -> Option<ArmIncomplete> {
    let done = || trials.iter().filter_map(|record| Some((record.planned.block, completed(record)?)));
    let blocks: Vec<(u32, Incomplete)> =
        done().filter_map(|(block, own)| Some((block, *own.incomplete.get(&spec.id)?))).collect();
    let missing = blocks.iter().map(|(_, one)| one.missing).reduce(f64::max)?;
    let not_reached: Vec<u32> = done()
        .filter(|(_, own)| own.incomplete.contains_key(&spec.id) && !own.metrics.contains_key(&spec.id))
        .map(|(block, _)| block)
        .collect();
    // (as it is, of the completed operations alone)
    let figures: Vec<(Option<f64>, Option<f64>)> = done()
        .map(|(_, own)| {
            let value = own.metrics.get(&spec.id).copied();
            (value, own.incomplete.get(&spec.id).map_or(value, |one| one.completed_only))
        })
        .collect();
    let alone: Vec<f64> = figures.iter().filter_map(|(_, alone)| *alone).collect();
    let most = if blocks.len() > 1 { "up to " } else { "" };
    let missing = format!("{most}{}", missing_operations(missing));
    let differs = figures.iter().any(|(value, alone)| value != alone);
    let beside = estimate::of_values(&alone).filter(|_| differs);
    let beside = beside.map(|all| format!("completed only: {}", words::value(all.value, &spec.unit)));
    let (few, all) = (not_reached.len(), figures.len());
    let head = match few {
        0 if differs => String::new(),
        0 => "of completed operations: ".to_owned(),
        _ if few == all => "not reached: ".to_owned(),
        _ => format!("not reached in {few} of {all} trials: "),
    };
    let note = format!("{head}{missing}{}", beside.map_or_else(String::new, |beside| format!("; {beside}")));
    Some(ArmIncomplete { arm: arm.to_owned(), blocks, not_reached, note })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::{Better, Unit};
    use tare_model::trial::Outcome;
    use tare_record::testing;

    /// What is said of trials with such values, of which such shares are missing, and of which the completed operations alone have 1 ms.
    fn said(trials: &[(Option<f64>, f64)]) -> Option<ArmIncomplete> {
        let plan = testing::plan(trials.len() as u32);
        let records: Vec<TrialRecord> = (0..)
            .zip(trials)
            .map(|(block, (value, missing))| {
                let mut record = testing::trial(&plan, 0);
                record.planned.block = block;
                if let Outcome::Completed(m) = &mut record.outcome {
                    m.metrics.extend(value.map(|value| ("p99".to_owned(), value)));
                    if *missing > 0.0 {
                        let one = Incomplete { missing: *missing, completed_only: Some(1e-3) };
                        m.incomplete.insert("p99".to_owned(), one);
                    }
                }
                record
            })
            .collect();
        let spec = MetricSpec::new("p99", "response time, p99", Unit::Seconds, Better::Lower);
        of_arm("c", &records.iter().collect::<Vec<_>>(), &spec)
    }

    #[test]
    fn it_is_said_what_was_not_reached_and_what_the_completed_ones_would_show() {
        assert_eq!(said(&[(Some(1e-3), 0.0)]), None);
        let note = |trials: &[(Option<f64>, f64)]| said(trials).unwrap().note;
        assert_eq!(note(&[(Some(1e-3), 0.004)]), "of completed operations: 0.4 % of operations did not complete");
        assert_eq!(
            note(&[(Some(2e-3), 0.004), (Some(1e-3), 0.0)]),
            "0.4 % of operations did not complete; completed only: 1.00 ms"
        );
        let all = said(&[(None, 0.021), (None, 0.013)]).unwrap();
        assert_eq!(all.note, "not reached: up to 2.1 % of operations did not complete; completed only: 1.00 ms");
        assert_eq!(all.not_reached, [0, 1]);
        let some = said(&[(Some(2e-3), 0.004), (None, 0.021), (Some(1e-3), 0.0)]).unwrap();
        assert_eq!(some.not_reached, [1]);
        assert!(some.note.starts_with("not reached in 1 of 3 trials: up to 2.1 %"), "{}", some.note);
    }
}
