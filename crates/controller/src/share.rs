//! The load of a case that is offered a share of the capacity that another case found on the baseline. It follows from what is
//! recorded, so that a run that is resumed offers the same.

use std::path::Path;

use tare_model::capacity::{in_digits, load_of, metric};
use tare_model::load::LoadModel;
use tare_model::study::{Case, Study};
use tare_model::trial::{Outcome, TrialRecord};
use tare_record::{RecordError, RunFolder};

use crate::capacity::words;

/// The count that tells the load that was offered: clients, or whole arrivals a second. As a maximum it is not added up over trials.
pub const OFFERED: &str = "offered_load_max";

/// A load that is a share of a capacity.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// The load.
    pub load: LoadModel,
    /// What it is a share of, for disclosure.
    pub words: String,
}

impl Offered {
    /// Clients, or whole arrivals a second.
    pub fn rounded(&self) -> u64 {
        match self.load {
            LoadModel::Closed { clients, .. } => u64::from(clients),
            // Rates are positive, and far below where their rounding would be seen.
            LoadModel::Open { rate, .. } => rate.0.round() as u64,
        }
    }
}

/// The load of a case: `None` where it is the case's own; why there is none, if the other case has found no capacity.
///
/// # Errors
/// When the run folder cannot be read.
pub fn of(case: &Case, study: &Study, folder: &Path) -> Result<Option<Result<Offered, String>>, RecordError> {
    if case.load_from.is_none() {
        return Ok(None);
    }
    let mut found = Vec::new();
    // One at a time: trials hold all their samples.
    RunFolder::open(folder)?.each_trial(|record| {
        found.extend(capacity(&record, case, study));
        Ok::<(), RecordError>(())
    })?;
    Ok(by(case, found))
}

/// The capacity that a trial of the other case found on the baseline.
fn capacity(record: &TrialRecord, case: &Case, study: &Study) -> Option<f64> {
    let other = &case.load_from.as_ref()?.case;
    if record.planned.case != *other || record.planned.arm != study.baseline {
        return None;
    }
    let Outcome::Completed(measurement) = &record.outcome else { return None };
    measurement.metrics.get(metric::CAPACITY).copied().filter(|held| held.is_finite() && *held > 0.0)
}

fn by(case: &Case, mut found: Vec<f64>) -> Option<Result<Offered, String>> {
    let share = case.load_from.as_ref()?;
    let other = &share.case;
    found.sort_by(f64::total_cmp);
    let count = found.len();
    let median =
        count.checked_sub(1).and_then(|last| Some(f64::midpoint(*found.get(last / 2)?, *found.get(count / 2)?)));
    let Some(median) = median else {
        return Some(Err(format!(
            "the load is a share of the baseline's capacity in case {other}, and none of the baseline's trials of that case completed. \
             See why they did not; then run the study anew, or give this case a `load` of its own"
        )));
    };
    let load = load_of(&case.load, in_digits(median * share.share));
    let at = match load {
        LoadModel::Closed { clients, .. } => f64::from(clients),
        LoadModel::Open { rate, .. } => rate.0,
    };
    // Half a client is a median of whole ones.
    let capacity = if median.fract() == 0.0 { words(&case.load, median) } else { format!("{median:.3}") };
    let words = format!(
        "{}: {} % of the baseline's capacity {capacity} in case {other} (median of {count})",
        words(&case.load, at),
        (share.share * 1000.0).round() / 10.0
    );
    Some(Ok(Offered { load, words }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tare_model::capacity::LoadShare;
    use tare_model::guest::GuestSize;
    use tare_model::load::Phases;
    use tare_model::units::ByteSize;
    use tare_model::{Rate, Span};

    use super::*;

    fn case(load: LoadModel, share: f64) -> Case {
        let zero = Span::ZERO;
        Case {
            id: "latency".into(),
            label: "latency".into(),
            workload: "rr".into(),
            parameters: serde_json::json!({}),
            load,
            phases: Phases { warm_up: zero, ramp_up: zero, steady_state: zero, ramp_down: zero },
            guest: GuestSize { cpus: 1, memory: ByteSize(1 << 20) },
            seccomp: tare_model::guest::Seccomp::Default,
            guests: 1,
            drivers: 1,
            neighbours: None,
            busy_target: false,
            qos: Vec::new(),
            density: None,
            capacity: None,
            load_from: Some(LoadShare { case: "peak".into(), share }),
            cpu_target: None,
            held_out: false,
            instances: 1,
        }
    }

    #[test]
    fn a_share_is_of_the_median_and_in_whole_clients() {
        let closed = LoadModel::Closed { clients: 1, think_time: Span::from_secs(10) };
        let offered = |found: &[f64]| by(&case(closed, 0.8), found.to_vec()).unwrap().unwrap();
        let three = offered(&[130.0, 70.0, 121.0]);
        assert_eq!(three.load, LoadModel::Closed { clients: 97, think_time: Span::from_secs(10) });
        assert_eq!(three.words, "97 clients: 80 % of the baseline's capacity 121 clients in case peak (median of 3)");
        assert_eq!((three.rounded(), offered(&[120.0, 125.0]).rounded()), (97, 98));
        assert_eq!(offered(&[1.0]).rounded(), 1, "one client at least");
        let open = LoadModel::Open { rate: Rate(1.0), arrivals: tare_model::load::Arrivals::Poisson, connections: 3 };
        let rate = by(&case(open, 0.5), vec![5.5]).unwrap().unwrap();
        assert!(matches!(rate.load, LoadModel::Open { rate, connections: 3, .. } if (rate.0 - 2.75).abs() < 1e-9));
        let none = by(&case(closed, 0.8), Vec::new()).unwrap().unwrap_err();
        assert!(none.contains("none of the baseline's trials of that case completed"), "{none}");
        assert_eq!(by(&Case { load_from: None, ..case(closed, 1.0) }, vec![1.0]), None);
    }
}
