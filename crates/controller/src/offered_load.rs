//! The load of a case that is offered a share of the capacity that another case found on the baseline. It follows from what is
//! recorded, so that a run that is resumed offers the same.

use std::path::Path;

use tare_model::capacity::{LoadShare, in_digits, metric};
use tare_model::load::LoadModel;
use tare_model::study::{Case, CaseLoad, Study};
use tare_model::trial::{Outcome, TrialRecord};
use tare_record::{RecordError, RunFolder};

use crate::capacity::words;

/// A load that is a share of a capacity.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// The load of each driver.
    pub load: LoadModel,
    /// What it is a share of, for disclosure.
    pub words: String,
}

/// The load of a case: `None` where it is the case's own; why there is none, if the other case has found no capacity.
///
/// # Errors
/// When the run folder cannot be read.
pub fn of(case: &Case, study: &Study, folder: &Path) -> Result<Option<Result<Offered, String>>, RecordError> {
    let CaseLoad::ShareOf { share, guests } = &case.load else { return Ok(None) };
    let mut found = Vec::new();
    // One at a time: trials hold all their samples.
    RunFolder::open(folder)?.each_trial(|record| {
        found.extend(capacity(&record, &share.case, &study.baseline));
        Ok::<(), RecordError>(())
    })?;
    Ok(Some(by(share, guests.drivers, found)))
}

/// The capacity that a trial of the other case found on the baseline.
fn capacity(record: &TrialRecord, other: &str, baseline: &str) -> Option<f64> {
    if record.planned.case != other || record.planned.arm != baseline {
        return None;
    }
    let Outcome::Completed(measurement) = &record.outcome else { return None };
    measurement.metrics.get(metric::CAPACITY).copied().filter(|held| held.is_finite() && *held > 0.0)
}

fn by(share: &LoadShare, drivers: u32, mut found: Vec<f64>) -> Result<Offered, String> {
    let other = &share.case;
    found.sort_by(f64::total_cmp);
    let count = found.len();
    let median =
        count.checked_sub(1).and_then(|last| Some(f64::midpoint(*found.get(last / 2)?, *found.get(count / 2)?)));
    let Some(median) = median else {
        return Err(format!(
            "the load is a share of the baseline's capacity in case {other}, and none of the baseline's trials of that case completed. \
             See why they did not; then run the study anew, or give this case a `load` of its own"
        ));
    };
    let drivers = f64::from(drivers.max(1));
    let load = share.kind.at(in_digits(median * share.share / drivers));
    // Half a client is a median of whole ones.
    let capacity = if median.fract() == 0.0 { words(share.kind, median) } else { format!("{median:.3}") };
    let words = format!(
        "{}: {} % of the baseline's capacity {capacity} in case {other} (median of {count})",
        words(share.kind, load.number() * drivers),
        (share.share * 1000.0).round() / 10.0
    );
    Ok(Offered { load, words })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::float_cmp)]
    use tare_model::Span;
    use tare_model::load::{Arrivals, LoadKind};

    use super::*;

    fn of(kind: LoadKind, share: f64, found: &[f64]) -> Result<Offered, String> {
        among(1, kind, share, found)
    }

    fn among(drivers: u32, kind: LoadKind, share: f64, found: &[f64]) -> Result<Offered, String> {
        by(&LoadShare { kind, case: "peak".into(), share, most: 1e3 }, drivers, found.to_vec())
    }

    #[test]
    fn a_share_is_of_the_median_and_in_whole_clients() {
        let kind = LoadKind::Closed { think_time: Span::from_secs(10) };
        let offered = |found: &[f64]| of(kind, 0.8, found).unwrap();
        let three = offered(&[130.0, 70.0, 121.0]);
        assert_eq!(three.load, LoadModel::Closed { clients: 97, think_time: Span::from_secs(10) });
        assert_eq!(three.words, "97 clients: 80 % of the baseline's capacity 121 clients in case peak (median of 3)");
        assert_eq!(offered(&[120.0, 125.0]).load.number(), 98.0);
        assert_eq!(offered(&[1.0]).load.number(), 1.0, "one client at least");
        let two = among(2, kind, 0.8, &[121.0]).unwrap();
        assert_eq!((two.load.number(), &two.words[..10]), (48.0, "96 clients"), "each driver has half of them");
        let rate = of(LoadKind::Open { arrivals: Arrivals::Poisson, connections: 3 }, 0.5, &[5.5]).unwrap();
        assert!(matches!(rate.load, LoadModel::Open { rate, connections: 3, .. } if (rate.0 - 2.75).abs() < 1e-9));
        let none = of(kind, 0.8, &[]).unwrap_err();
        assert!(none.contains("none of the baseline's trials of that case completed"), "{none}");
    }
}
