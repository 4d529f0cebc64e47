//! The raw numbers as CSV (RFC 4180).

use tare_model::trial::{Measurement, Outcome, TrialRecord};

use crate::store::{better_name, unit_name};

const HEADER: &str = "trial,block,case_id,arm,started_at,wall_s,load_s,outcome,reason,metric,unit,better,value\r\n";

/// One line a trial and metric, and one a trial without figures; values in the metric's unit.
pub fn trials_csv(trials: &[TrialRecord]) -> String {
    let mut out = String::from(HEADER);
    for record in trials {
        let (outcome, reason) = match &record.outcome {
            Outcome::Completed(_) => ("completed".to_owned(), String::new()),
            Outcome::Invalid { reason } => ("invalid".to_owned(), reason.clone()),
            Outcome::Failed { phase, reason } => (format!("failed in {phase}"), reason.clone()),
        };
        let planned = &record.planned;
        let head = [
            planned.index.to_string(),
            planned.block.to_string(),
            planned.case.clone(),
            planned.arm.clone(),
            record.started_at.clone(),
            record.wall_s.to_string(),
            record.load_s.to_string(),
            outcome,
            reason,
        ];
        match &record.outcome {
            Outcome::Completed(measurement) => {
                for (metric, value) in &measurement.metrics {
                    let spec = record.metrics.iter().find(|spec| spec.id == *metric);
                    let unit = spec.map(|spec| unit_name(&spec.unit)).unwrap_or_default();
                    let better = spec.map_or("", |spec| better_name(spec.better));
                    let tail = [metric.clone(), unit, better.to_owned(), value.to_string()];
                    line(&mut out, head.iter().chain(&tail));
                }
            }
            _ => line(&mut out, head.iter().chain(&[const { String::new() }; 4])),
        }
    }
    out
}

/// One line a completed trial, guest, driver and metric, where a trial has several guests or drivers; guests and drivers
/// count from 1, and the lines of a whole guest have no driver. Values in the metric's unit.
pub fn parts_csv(trials: &[TrialRecord]) -> String {
    let mut out = String::from("trial,block,case_id,arm,guest,driver,metric,unit,value\r\n");
    for (record, measurement) in trials.iter().filter_map(completed) {
        for part in &measurement.parts {
            for (metric, value) in &part.metrics {
                let spec = record.metrics.iter().find(|spec| spec.id == *metric);
                let unit = spec.map(|spec| unit_name(&spec.unit)).unwrap_or_default();
                let driver = part.driver.map(|driver| driver.to_string()).unwrap_or_default();
                let tail = [part.guest.to_string(), driver, metric.clone(), unit, value.to_string()];
                line(&mut out, planned(record).iter().chain(&tail));
            }
        }
    }
    out
}

/// One line a completed trial and step, in the order in which an operation does them; `within` tells whether the step is
/// part of the response time. Times in nanoseconds; those of a step that never was are empty.
pub fn steps_csv(trials: &[TrialRecord]) -> String {
    let mut out =
        String::from("trial,block,case_id,arm,step,within,count,sum_ns,mean_ns,p50_ns,p99_ns,min_ns,max_ns\r\n");
    for (record, measurement) in trials.iter().filter_map(completed) {
        for step in &measurement.steps {
            let times = &step.times;
            let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let end = |value: u64| if times.is_empty() { String::new() } else { value.to_string() };
            let tail = [
                step.name.clone(),
                step.within.to_string(),
                times.count().to_string(),
                times.sum.to_string(),
                optional(times.mean()),
                optional(times.quantile(0.5)),
                optional(times.quantile(0.99)),
                end(times.min),
                end(times.max),
            ];
            line(&mut out, planned(record).iter().chain(&tail));
        }
    }
    out
}

fn completed(record: &TrialRecord) -> Option<(&TrialRecord, &Measurement)> {
    match &record.outcome {
        Outcome::Completed(measurement) => Some((record, measurement)),
        _ => None,
    }
}

/// Which trial it is: position in the plan, block, case and arm.
fn planned(record: &TrialRecord) -> [String; 4] {
    let planned = &record.planned;
    [planned.index.to_string(), planned.block.to_string(), planned.case.clone(), planned.arm.clone()]
}

fn line<'a>(out: &mut String, fields: impl Iterator<Item = &'a String>) {
    for (position, field) in fields.enumerate() {
        if position > 0 {
            out.push(',');
        }
        if field.contains(['"', ',', '\n', '\r']) {
            out.push_str(&format!("\"{}\"", field.replace('"', "\"\"")));
        } else {
            out.push_str(field);
        }
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::testing;

    #[test]
    fn a_line_a_part_and_a_line_a_step_of_completed_trials() {
        let plan = testing::plan(1);
        let mut failed = testing::store_trial(&plan, 1);
        failed.outcome = Outcome::Invalid { reason: "miscounted".to_owned() };
        let trials = [testing::store_trial(&plan, 0), failed, testing::trial(&plan, 2)];
        let parts = parts_csv(&trials);
        assert_eq!(parts.lines().count(), 1 + 6, "two guests of two drivers, one metric");
        assert!(parts.contains("\r\n0,0,idle,native,2,1,orders_per_minute,other:orders/min,"), "{parts}");
        assert!(parts.contains("\r\n0,0,idle,native,2,,orders_per_minute,other:orders/min,"), "the whole guest");
        let steps = steps_csv(&trials);
        assert_eq!(steps.lines().count(), 1 + 3);
        assert!(steps.contains(",\"browse, all kinds\",true,"), "{steps}");
        for csv in [parts, steps] {
            let columns = csv.lines().next().unwrap().split(',').count();
            let plain = csv.lines().filter(|line| !line.contains('"'));
            plain.for_each(|line| assert_eq!(line.split(',').count(), columns, "{line}"));
        }
    }

    #[test]
    fn a_line_a_figure_and_reasons_are_quoted() {
        let plan = testing::plan(1);
        let completed = testing::trial(&plan, 0);
        let mut failed = testing::trial(&plan, 1);
        failed.outcome = Outcome::Invalid { reason: "3 lost, \"bad\"".to_owned() };
        let Outcome::Completed(measurement) = &completed.outcome else { panic!("completed") };
        let figures = measurement.metrics.len();
        let csv = trials_csv(&[completed, failed]);
        assert_eq!(csv.lines().count(), 1 + figures + 1);
        assert!(csv.contains(",\"3 lost, \"\"bad\"\"\",,,,"));
        let columns = HEADER.matches(',').count();
        assert!(csv.lines().take(1 + figures).all(|line| line.matches(',').count() == columns));
    }
}
