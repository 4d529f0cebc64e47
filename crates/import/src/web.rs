//! Report 002's tables: web requests by type at the largest load, and response times and resources at one load.

use std::collections::BTreeMap;

use tare_model::capacity::{self, CapacitySearch, CapacitySpec, Probe, ProbePurpose, ScoreSpec};
use tare_model::guest::GuestSize;
use tare_model::load::{LoadKind, LoadModel};
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::published::{PrintedTotal, Published, figure};
use tare_model::study::{Case, CaseLoad, QosObjective, Study};
use tare_model::trial::{Measurement, RequestType};
use tare_model::{ByteSize, Span};

use crate::error::ImportError;
use crate::study::{self, ReportedTrial};
use crate::table::{Row, Table};
use crate::targets;

/// The workloads, with the reference of the score in sessions and the mean think time in seconds.
const WORKLOADS: [(&str, f64, u64); 3] = [("banking", 120.0, 10), ("ecommerce", 114.0, 10), ("support", 162.0, 5)];
/// Length of an iteration, seconds.
const ITERATION_S: u64 = 1800;
/// Name of the lines that add up the others of an iteration.
const TOTAL: &str = "Total";
/// Largest number of sessions and of an iteration that a line may have.
const SESSIONS_MAX: u32 = 10_000_000;
const ITERATIONS_MAX: u32 = 1000;
/// Most lines of a report's text.
pub(crate) const LINES_MAX: u32 = 1_000_000;
/// Most bytes of all requests of a type: their sums fit in 64 bits.
const BYTES_MAX: f64 = 1e13;
/// Ids of metrics, as the workloads have them.
const GOOD: &str = "good_share";
const TOLERABLE: &str = "tolerable_share";
const RESPONSE: &str = common::RESPONSE_MEAN;
const BYTES: &str = "bytes_per_request";
const PAGES: &str = "pages_per_s";
/// Ids of what the report tells of resources.
const CPU: &str = common::HOST_CPU_CORES;
const NETWORK: &str = common::NETWORK_BITS;
const DISK: &str = common::DISK_TIME;

/// The tables that a report has, of which the first or the second at least.
#[derive(Default)]
pub(crate) struct Tables<'a> {
    pub iterations: Option<&'a Table>,
    pub latency: Option<&'a Table>,
    pub throughput: Option<&'a Table>,
    pub errors: Option<&'a Table>,
}

/// The tables as a study and its trials.
pub(crate) fn imported(
    tables: &Tables<'_>,
    mut published: Published,
) -> Result<(Study, Vec<ReportedTrial>), ImportError> {
    let mut trials = Vec::new();
    if let Some(table) = tables.iterations {
        trials.extend(peaks(table, &mut published.printed)?);
    }
    if let Some(table) = tables.throughput {
        add_resources(table, &mut trials)?;
    }
    if let Some(table) = tables.errors {
        add_errors(table, &mut trials)?;
    }
    if let Some(table) = tables.latency {
        trials.extend(latencies(table)?);
    }
    let mut environments: Vec<String> = Vec::new();
    for trial in &trials {
        if !environments.contains(&trial.arm) {
            environments.push(trial.arm.clone());
        }
    }
    let mut cases = Vec::new();
    for (workload, _, think_s) in WORKLOADS {
        cases.extend(peak_case(workload, think_s, &trials));
    }
    for (workload, _, think_s) in WORKLOADS {
        cases.extend(latency_case(workload, think_s, &trials));
    }
    let arms = environments.iter().map(|id| study::arm(id)).collect();
    let mut study = study::study(published, arms, cases);
    let references = WORKLOADS.map(|(workload, reference, _)| (workload.to_owned(), reference));
    let whole = references.iter().all(|(workload, _)| study.cases.iter().any(|case| case.id == *workload));
    study.score = whole.then(|| ScoreSpec { references: references.to_vec() });
    Ok((study, trials))
}

fn sessions_of(trial: &ReportedTrial) -> f64 {
    trial.facts.get(SESSIONS).and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

const SESSIONS: &str = tare_model::count::SESSIONS;

fn guest() -> GuestSize {
    GuestSize { cpus: 1, memory: ByteSize(6 << 30) }
}

fn peak_case(workload: &str, think_s: u64, trials: &[ReportedTrial]) -> Option<Case> {
    let own: Vec<&ReportedTrial> = trials.iter().filter(|trial| trial.case == workload).collect();
    let held = || own.iter().map(|trial| sessions_of(trial));
    let (least, most) = (held().reduce(f64::min)?, held().reduce(f64::max)?);
    let iterations = own.iter().filter_map(|trial| trial.measurement.search.as_ref());
    let iterations = iterations.map(|search| search.probes.len() as u32).min().unwrap_or(1);
    let label = format!("{workload}, largest load");
    // Which loads were tried the report does not tell.
    let kind = LoadKind::Closed { think_time: Span::from_secs(think_s) };
    let load = CaseLoad::Capacity(CapacitySpec { kind, from: least, most, precision: 0.0, iterations, drivers: 1 });
    let mut case = study::case(workload, label, &format!("web-{workload}"), load, ITERATION_S, guest());
    case.qos = [(GOOD, 0.95), (TOLERABLE, 0.99)]
        .map(|(metric, bound)| QosObjective { metric: metric.to_owned(), bound })
        .into();
    Some(case)
}

/// The load is that of the first arm; where another had another, its trial tells.
fn latency_case(workload: &str, think_s: u64, trials: &[ReportedTrial]) -> Option<Case> {
    let id = latency_id(workload);
    let first = trials.iter().find(|trial| trial.case == id)?;
    let label = format!("{workload}, response time at one load");
    let clients = sessions_of(first) as u32;
    let load = LoadModel::Closed { clients, think_time: Span::from_secs(think_s) };
    Some(study::case(&id, label, &format!("web-{workload}"), load.into(), 0, guest()))
}

fn latency_id(workload: &str) -> String {
    format!("{workload}-latency")
}

/// The workload of a line.
fn workload<'a>(table: &'a Table, row: &'a Row) -> Result<&'a str, ImportError> {
    let name = table.name_in(row, "workload")?;
    if WORKLOADS.iter().any(|(known, ..)| *known == name) {
        return Ok(name);
    }
    let what = format!("`{name}` is not a workload of the report");
    Err(table.wrong(row, "workload", what, "There are banking, ecommerce and support"))
}

/// One search for each environment and workload.
fn peaks(table: &Table, printed: &mut Vec<PrintedTotal>) -> Result<Vec<ReportedTrial>, ImportError> {
    table.unique(&["environment", "workload", "iteration", "request_type"])?;
    let mut groups: Vec<(&str, &str, Vec<&Row>)> = Vec::new();
    for row in &table.rows {
        let key = (table.name_in(row, "environment")?, workload(table, row)?);
        match groups.iter_mut().find(|(arm, case, _)| (*arm, *case) == key) {
            Some((.., rows)) => rows.push(row),
            None => groups.push((key.0, key.1, vec![row])),
        }
    }
    groups.into_iter().map(|(arm, case, rows)| peak(table, arm, case, &rows, printed)).collect()
}

fn peak(
    table: &Table,
    arm: &str,
    case: &str,
    rows: &[&Row],
    printed: &mut Vec<PrintedTotal>,
) -> Result<ReportedTrial, ImportError> {
    let mut sessions = None;
    let mut iterations: BTreeMap<u32, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let own = table.ordinal(row, SESSIONS, SESSIONS_MAX)?;
        if *sessions.get_or_insert(own) != own {
            let what = format!("{own} sessions, and {} in a line before", sessions.unwrap_or_default());
            return Err(table.wrong(
                row,
                SESSIONS,
                what,
                "Iterations repeat one load: give those of the largest alone",
            ));
        }
        iterations.entry(table.ordinal(row, "iteration", ITERATIONS_MAX)?).or_default().push(row);
    }
    let mut probes = Vec::new();
    for (number, rows) in &iterations {
        let mut requests = Vec::new();
        for row in rows {
            if table.text(row, "request_type") == TOTAL {
                printed.extend(totals(table, row, case, arm, *number)?);
            } else {
                let request = request(table, row, case)?;
                printed.push(rate(table, row, (case, arm, *number), &format!("{}.", request.name))?);
                requests.push(request);
            }
        }
        if requests.is_empty() {
            let what = format!("iteration {number} of {arm}, {case} has a total and no request type");
            let line = rows.first().map_or(0, |row| row.line);
            let remedy = "Give the lines that the total is of".to_owned();
            return Err(ImportError::Line { file: table.file.clone(), line, what, remedy });
        }
        probes.push(probe(f64::from(sessions.unwrap_or_default()), requests));
    }
    Ok(searched(arm, case, f64::from(sessions.unwrap_or_default()), probes))
}

fn searched(arm: &str, case: &str, held: f64, probes: Vec<Probe>) -> ReportedTrial {
    let last = probes.last().cloned().unwrap_or_default();
    let mut metrics = last.metrics;
    metrics.insert(capacity::metric::CAPACITY.to_owned(), held);
    let window_s = (probes.len() as u64 * ITERATION_S) as f64;
    let ended = format!("the report has {} iterations at {held} sessions and no other load", probes.len());
    let search = CapacitySearch { held, missed: None, probes, ended };
    let mut specs = vec![capacity::metric_spec(LoadKind::Closed { think_time: Span::ZERO })];
    specs.extend(serving_specs());
    ReportedTrial {
        case: case.to_owned(),
        arm: arm.to_owned(),
        measurement: Measurement {
            metrics,
            requests: last.requests,
            counts: last.counts,
            search: Some(search),
            ..Measurement::default()
        },
        metrics: specs,
        window_s,
        facts: BTreeMap::from([(SESSIONS.to_owned(), held.to_string())]),
    }
}

fn serving_specs() -> [MetricSpec; 5] {
    [
        MetricSpec::new(GOOD, "share of requests within the bound for good", Unit::Count, Better::Higher),
        MetricSpec::new(TOLERABLE, "share of requests within the bound for tolerable", Unit::Count, Better::Higher),
        MetricSpec::new(RESPONSE, "response time, mean", Unit::Seconds, Better::Lower),
        MetricSpec::new(BYTES, "bytes a request", Unit::Bytes, Better::Lower),
        MetricSpec::new(PAGES, "pages", Unit::OperationsPerSecond, Better::Higher),
    ]
}

/// One type of one iteration. Sums are made from the printed means, which are all that there is.
fn request(table: &Table, row: &Row, workload: &str) -> Result<RequestType, ImportError> {
    let name = table.name_in(row, "request_type")?;
    let count = |column: &str| table.count(row, column);
    let requests = count("requests")?;
    let bytes = requests as f64 * table.number(row, "bytes_per_request")?;
    if bytes > BYTES_MAX {
        let what = format!("{requests} requests of so many bytes are {bytes:e} bytes");
        return Err(table.wrong(row, "bytes_per_request", what, "Look the figure up in the report"));
    }
    Ok(RequestType {
        name: name.to_owned(),
        requests,
        good: count("good")?,
        tolerable: count("tolerable")?,
        failed: count("fail")?,
        bytes: bytes.round() as u64,
        response_s: requests as f64 * table.number(row, "response_s")?,
        target: targets::share(workload, name),
        ..RequestType::default()
    })
}

fn probe(load: f64, requests: Vec<RequestType>) -> Probe {
    let sum = |of: fn(&RequestType) -> f64| requests.iter().map(of).sum::<f64>();
    let all = sum(|own| own.requests as f64);
    let good = sum(|own| own.good as f64);
    let each = [
        (GOOD, good / all),
        (TOLERABLE, (good + sum(|own| own.tolerable as f64)) / all),
        (RESPONSE, sum(|own| own.response_s) / all),
        (BYTES, sum(|own| own.bytes as f64) / all),
        (PAGES, all / ITERATION_S as f64),
    ];
    let metrics = each.into_iter().filter(|(_, value)| value.is_finite());
    Probe {
        load,
        purpose: ProbePurpose::Confirm,
        window_ns: (0, ITERATION_S * 1_000_000_000),
        metrics: metrics.map(|(id, value)| (id.to_owned(), value)).collect(),
        counts: BTreeMap::from([(tare_model::count::OPERATIONS.to_owned(), all as u64)]),
        requests,
        ..Probe::default()
    }
}

/// Names of the figures of a total, and the columns that they stand in.
const FIGURES: [(&str, &str); 6] = [
    (figure::REQUESTS, "requests"),
    (figure::GOOD, "good"),
    (figure::TOLERABLE, "tolerable"),
    (figure::FAILED, "fail"),
    (figure::RESPONSE, "response_s"),
    (figure::BYTES_EACH, "bytes_per_request"),
];

fn totals(table: &Table, row: &Row, case: &str, arm: &str, iteration: u32) -> Result<Vec<PrintedTotal>, ImportError> {
    let mut printed = Vec::new();
    for (figure, column) in FIGURES {
        printed.push(PrintedTotal {
            case: case.to_owned(),
            arm: arm.to_owned(),
            iteration,
            figure: figure.to_owned(),
            value: table.number(row, column)?,
            rounding: table.rounding(row, column),
            place: Some(table.place(row, column)),
        });
    }
    printed.push(rate(table, row, (case, arm, iteration), "")?);
    Ok(printed)
}

/// The weighted byte rate of a line.
fn rate(
    table: &Table,
    row: &Row,
    (case, arm, iteration): (&str, &str, u32),
    before: &str,
) -> Result<PrintedTotal, ImportError> {
    const COLUMN: &str = "weighted_abr";
    Ok(PrintedTotal {
        case: case.to_owned(),
        arm: arm.to_owned(),
        iteration,
        figure: format!("{before}{}", figure::BYTE_RATE),
        value: table.number(row, COLUMN)?,
        rounding: table.rounding(row, COLUMN),
        place: Some(table.place(row, COLUMN)),
    })
}

/// Wrong answers of each iteration, of all types together. Iterations are numbered from 1 without a gap.
fn add_errors(table: &Table, trials: &mut [ReportedTrial]) -> Result<(), ImportError> {
    table.unique(&["environment", "workload", "iteration"])?;
    for row in &table.rows {
        let (case, arm) = (workload(table, row)?, table.name_in(row, "environment")?);
        let (number, errors) =
            (table.ordinal(row, "iteration", ITERATIONS_MAX)?, table.count(row, "validation_errors")?);
        table.ordinal(row, "line", LINES_MAX)?;
        let own = trials.iter_mut().find(|trial| trial.case == case && trial.arm == arm);
        let probes = own.and_then(|trial| trial.measurement.search.as_mut()).map(|search| &mut search.probes);
        let Some(probe) = probes.and_then(|probes| probes.get_mut(number as usize - 1)) else {
            let what = format!("there is no iteration {number} of {case} on {arm}");
            return Err(table.wrong(row, "iteration", what, "Name the file of the iterations as well"));
        };
        probe.counts.insert(tare_model::count::VALIDATION_ERRORS.to_owned(), errors);
    }
    Ok(())
}

/// What was used at the largest load.
fn add_resources(table: &Table, trials: &mut [ReportedTrial]) -> Result<(), ImportError> {
    table.unique(&["workload", "environment"])?;
    for row in &table.rows {
        let (case, arm) = (workload(table, row)?, table.name_in(row, "environment")?);
        let Some(trial) = trials.iter_mut().find(|trial| trial.case == case && trial.arm == arm) else {
            let what = format!("there are no iterations of {case} on {arm}");
            return Err(table.wrong(row, "environment", what, "Name the file of the iterations as well"));
        };
        let sessions = table.ordinal(row, SESSIONS, SESSIONS_MAX)?;
        if f64::from(sessions) != sessions_of(trial) {
            let what = format!("{sessions} sessions, where the iterations have {}", sessions_of(trial));
            return Err(table.wrong(row, SESSIONS, what, "Resources are those of the iterations' load"));
        }
        let cores = table.number(row, "cpu_percent")? / 100.0;
        tell_resources(table, row, cores, trial)?;
    }
    Ok(())
}

fn tell_resources(table: &Table, row: &Row, cores: f64, trial: &mut ReportedTrial) -> Result<(), ImportError> {
    let all = [
        (CPU, "CPUs of the host in use", Unit::Count, Better::Lower, cores),
        (NETWORK, "sent by the guest", Unit::BitsPerSecond, Better::Higher, table.number(row, "network_mbps")? * 1e6),
        (DISK, "time of a disk request", Unit::Seconds, Better::Lower, table.number(row, "disk_ms")? / 1e3),
    ];
    for (id, label, unit, better, value) in all {
        trial.measurement.metrics.insert(id.to_owned(), value);
        trial.metrics.push(MetricSpec::new(id, label, unit, better));
    }
    Ok(())
}

fn latencies(table: &Table) -> Result<Vec<ReportedTrial>, ImportError> {
    table.unique(&["workload", "environment"])?;
    let mut trials = Vec::new();
    for row in &table.rows {
        let sessions = table.ordinal(row, SESSIONS, SESSIONS_MAX)?;
        let mut trial = ReportedTrial {
            case: latency_id(workload(table, row)?),
            arm: table.name_in(row, "environment")?.to_owned(),
            measurement: Measurement::default(),
            metrics: vec![MetricSpec::new(RESPONSE, "response time, mean", Unit::Seconds, Better::Lower).primary()],
            window_s: 0.0,
            facts: BTreeMap::from([(SESSIONS.to_owned(), sessions.to_string())]),
        };
        trial.measurement.metrics.insert(RESPONSE.to_owned(), table.number(row, "response_s")?);
        trial.measurement.counts.insert(SESSIONS.to_owned(), sessions.into());
        tell_resources(table, row, table.number(row, "cpu_cores")?, &mut trial)?;
        trials.push(trial);
    }
    Ok(trials)
}
