//! The raw numbers as CSV (RFC 4180).

use tare_model::trial::{Outcome, TrialRecord};

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
