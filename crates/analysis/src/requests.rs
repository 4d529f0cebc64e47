//! Requests by type, as published disclosures give them: a table an iteration.

use tare_model::Histogram;
use tare_model::findings::{ArmRequests, RequestRow, RequestTable};
use tare_model::metric::{Better, MetricSpec};
use tare_model::study::Case;
use tare_model::trial::{Measurement, RequestType, TrialRecord};

use crate::distribution::completed;
use crate::offered;

/// The percentile that is reported of each type.
const QUANTILE: f64 = 0.99;

/// What the rows of all types together are called.
pub(crate) const TOTAL: &str = "all types";

/// The request types of an arm's completed trials: of a search every iteration at the load that held, of others the one of each block.
/// `None` where no trial has any. `fixed`: the load of trials that do not search theirs.
pub(crate) fn of_arm(arm: &str, trials: &[&TrialRecord], case: &Case, fixed: Option<f64>) -> Option<ArmRequests> {
    let mut iterations = Vec::new();
    for (record, measurement) in trials.iter().filter_map(|record| Some((*record, completed(record)?))) {
        iterations.extend(of_trial(record, measurement, case, fixed));
    }
    (!iterations.is_empty()).then(|| ArmRequests { arm: arm.to_owned(), iterations })
}

fn of_trial(record: &TrialRecord, measurement: &Measurement, case: &Case, fixed: Option<f64>) -> Vec<RequestTable> {
    let block = record.planned.block;
    if let Some(search) = &measurement.search {
        let with_requests = search.iterations().filter(|probe| !probe.requests.is_empty()).enumerate();
        let table = |(n, probe): (usize, &tare_model::capacity::Probe)| {
            let head = RequestTable { block, iteration: n as u32 + 1, load: probe.load, ..empty() };
            let (start, end) = probe.window_ns;
            let window_s = end.saturating_sub(start) as f64 * 1e-9;
            table_of(&probe.requests, RequestTable { window_s, met: probe.failed.is_none(), ..head })
        };
        return with_requests.map(table).collect();
    }
    if measurement.requests.is_empty() {
        return Vec::new();
    }
    let load = offered::of_trial(measurement, fixed).unwrap_or(0.0);
    let (window_s, met) = (record.measured_s().unwrap_or(0.0), met(&record.metrics, measurement, case));
    vec![table_of(&measurement.requests, RequestTable { block, iteration: 1, load, window_s, met, ..empty() })]
}

fn empty() -> RequestTable {
    let total = RequestRow::default();
    RequestTable { block: 1, iteration: 1, load: 0.0, window_s: 0.0, rows: Vec::new(), total, met: true }
}

/// Whether a trial met every objective of its case; one that has no figure for an objective did not.
fn met(specs: &[MetricSpec], measurement: &Measurement, case: &Case) -> bool {
    case.qos.iter().all(|objective| {
        let better = specs.iter().find(|spec| spec.id == objective.metric).map_or(Better::Lower, |spec| spec.better);
        measurement.metrics.get(&objective.metric).is_some_and(|value| match better {
            Better::Lower => *value <= objective.bound,
            Better::Higher => *value >= objective.bound,
        })
    })
}

/// The rows of one iteration by the published rules: bytes over the response time of all requests are a type's weighted byte
/// rate; counts, bytes and weighted byte rates of all types add up; response time and bytes of all are means over requests.
fn table_of(types: &[RequestType], head: RequestTable) -> RequestTable {
    let mut all = RequestType { name: TOTAL.to_owned(), ..RequestType::default() };
    for own in types {
        all.add_counts(own);
        all.times.merge(&own.times);
    }
    let waited = all.response_s;
    RequestTable { rows: types.iter().map(|own| row(own, waited)).collect(), total: row(&all, waited), ..head }
}

/// One row. `waited`: response time of all requests of the iteration, seconds.
fn row(own: &RequestType, waited: f64) -> RequestRow {
    let each = |sum: f64| if own.requests > 0 { sum / own.requests as f64 } else { 0.0 };
    RequestRow {
        weighted_byte_rate: if waited > 0.0 { own.bytes as f64 / waited } else { 0.0 },
        response_s: each(own.response_s),
        bytes_per_request: each(own.bytes as f64),
        p99_s: own.times.percentile(QUANTILE).value().map(|ns| ns * 1e-9),
        counts: RequestType { times: Histogram::default(), ..own.clone() },
    }
}
