//! Report 000's table: operations of a run by the number of guests.

use std::collections::BTreeMap;

use tare_model::density::{DensitySpec, GuestSeries, Level, ScaleUp, StopKind, Stopped, metric, metric_specs};
use tare_model::guest::GuestSize;
use tare_model::merging::{MergeRule, Merging};
use tare_model::metric::MetricSpec;
use tare_model::published::Published;
use tare_model::study::{CaseLoad, Study};
use tare_model::trial::Measurement;
use tare_model::{ByteSize, Span};

use crate::error::ImportError;
use crate::study::{self, ReportedTrial};
use crate::table::{Row, Table};

/// Id of the case.
pub(crate) const CASE: &str = "density";
/// Length of a run, seconds: the table's figures are operations of one.
pub(crate) const RUN_S: u64 = 1800;
/// Rest between the last guest's start and load.
const REST_S: u64 = 900;
/// Memory of a guest.
const GUEST_MEMORY: u64 = 3 << 30;
/// Memory of the host.
const HOST_MEMORY: u64 = 24 << 30;
/// The arm whose host merged memory.
const MERGED: &str = "kvm_ksm";
/// Most guests that a line may tell of.
const GUESTS_MAX: u32 = 10_000;
/// Metrics that follow from the table.
const METRICS: [&str; 5] = [metric::HELD, metric::OPERATIONS, metric::PER_GUEST, metric::PROMISED, metric::OVERCOMMIT];

/// The table as a study and its trials.
pub(crate) fn imported(table: &Table, published: Published) -> Result<(Study, Vec<ReportedTrial>), ImportError> {
    table.unique(&["platform", "guests"])?;
    let platforms = study::names(table, "platform")?;
    let mut series = Vec::new();
    let mut levels: BTreeMap<&str, Vec<Level>> = BTreeMap::new();
    for row in &table.rows {
        let level = level(table, row)?;
        series.push(level.guests);
        levels.entry(table.name_in(row, "platform")?).or_default().push(level);
    }
    series.sort_unstable();
    series.dedup();
    let most = series.last().copied().unwrap_or(1);
    let trials = platforms.iter().filter_map(|platform| Some(trial(platform, levels.remove(platform.as_str())?, most)));
    let trials: Vec<ReportedTrial> = trials.collect();
    let mut arms: Vec<_> = platforms.iter().map(|platform| study::arm(platform)).collect();
    for arm in arms.iter_mut().filter(|arm| arm.id == MERGED) {
        arm.host_memory.merging = Some(Merging { rule: MergeRule::PublishedScript, zero_pages: false });
    }
    let guest = GuestSize { cpus: 1, memory: ByteSize(GUEST_MEMORY) };
    let spec = DensitySpec {
        tile: Vec::new(),
        guests: GuestSeries::Listed(series),
        reserve: None,
        settle: Span::ZERO,
        rest: Span::from_secs(REST_S),
        pressure: 1.0,
    };
    let load = CaseLoad::Density { load: study::clients(6), spec };
    let case = study::case(CASE, "Java, guests added".to_owned(), "java", load, RUN_S, guest);
    Ok((study::study(published, arms, vec![case]), trials))
}

fn level(table: &Table, row: &Row) -> Result<Level, ImportError> {
    let guests = table.ordinal(row, "guests", GUESTS_MAX)?;
    let rate = table.count(row, "operations_in_run")? as f64 / RUN_S as f64;
    let promised = f64::from(guests) * GUEST_MEMORY as f64;
    let metrics = [
        (metric::OPERATIONS, rate),
        (metric::PER_GUEST, rate / f64::from(guests)),
        (metric::PROMISED, promised),
        (metric::OVERCOMMIT, promised / HOST_MEMORY as f64),
    ];
    Ok(Level {
        guests,
        window_ns: (0, RUN_S * 1_000_000_000),
        metrics: metrics.map(|(id, value)| (id.to_owned(), value)).into(),
        ..Level::default()
    })
}

/// One platform's scale-up. `most` is the largest number of guests that the table has of any.
fn trial(platform: &str, mut levels: Vec<Level>, most: u32) -> ReportedTrial {
    levels.sort_by_key(|level| level.guests);
    let held = levels.last().map_or(0, |level| level.guests);
    let mut metrics = levels.last().map(|level| level.metrics.clone()).unwrap_or_default();
    metrics.insert(metric::HELD.to_owned(), f64::from(held));
    let (kind, detail) = if held < most {
        (StopKind::Start, format!("the report has no figure beyond {held} guests, and has one of {most} elsewhere"))
    } else {
        (StopKind::End, format!("the report has no figures of more than {held} guests"))
    };
    let window_s = levels.len() as f64 * RUN_S as f64;
    let scale_up = ScaleUp {
        levels,
        stopped: Stopped { kind, guests: held, detail },
        course: Vec::new(),
        offered_per_guest_per_s: None,
        tile: Vec::new(),
    };
    let specs: Vec<MetricSpec> =
        metric_specs().into_iter().filter(|spec| METRICS.contains(&spec.id.as_str())).collect();
    ReportedTrial {
        case: CASE.to_owned(),
        arm: platform.to_owned(),
        measurement: Measurement { metrics, scale_up: Some(scale_up), ..Measurement::default() },
        metrics: specs,
        window_s,
        facts: BTreeMap::new(),
    }
}
