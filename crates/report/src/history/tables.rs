//! A history as tables: its runs, its effects, its changes.

use tare_model::history::{ChangePoint, EffectSeries, History, HistoryRun, SeriesPoint};

use crate::error::ReportError;
use crate::parquet;
use crate::tables::Kind::{Flag, Real, Text, Whole};
use crate::tables::{Kind, RawTable, Value, id, interval, unit};

/// Columns that say which series a row is of.
const SERIES: [(&str, Kind); 9] = [
    ("study", Text),
    ("series", Text),
    ("case", Text),
    ("arm", Text),
    ("baseline", Text),
    ("metric", Text),
    ("primary", Flag),
    ("host", Whole),
    ("plan", Whole),
];
/// Columns of a ratio.
const RATIO: [(&str, Kind); 5] = [("ratio", Real), ("low", Real), ("high", Real), ("level", Real), ("n", Whole)];

/// Three Parquet files, as file name and content: `history-runs`, `history-effects` (a row a run and series) and `history-changes`. What does
/// not exist is NULL.
///
/// # Errors
/// When a file cannot be made, which would be a defect of this crate.
pub fn history_parquet(history: &History) -> Result<Vec<(String, Vec<u8>)>, ReportError> {
    parquet::files(&[runs(history), effects(history), changes(history)])
}

fn runs(history: &History) -> RawTable {
    let columns = ["run", "study", "started_at", "tare_version", "root_hash"].map(|name| (name, Text));
    let row = |run: &HistoryRun| {
        let texts = [&run.run, &run.study, &run.started_at, &run.tare_version, &run.root_hash];
        let texts = texts.into_iter().map(|text| Value::from(text.as_str()));
        texts.chain([run.host.into()]).collect()
    };
    RawTable {
        name: "history-runs",
        columns: columns.into_iter().chain([("host", Whole)]).collect(),
        rows: history.runs.iter().map(row).collect(),
    }
}

fn effects(history: &History) -> RawTable {
    let own = [("unit", Text), ("run", Text)];
    let row = |series: &EffectSeries, point: &SeriesPoint| {
        let mut row = named(series);
        row.extend([unit(&series.metric.unit).into(), point.run.as_str().into()]);
        row.extend(interval(&point.ratio));
        row.push(point.fault.as_deref().map_or(Value::Absent, Value::from));
        row
    };
    let rows = history.series.iter().flat_map(|own| own.points.iter().map(move |point| row(own, point)));
    RawTable {
        name: "history-effects",
        columns: SERIES.into_iter().chain(own).chain(RATIO).chain([("fault", Text)]).collect(),
        rows: rows.collect(),
    }
}

fn changes(history: &History) -> RawTable {
    let own = [("run_before", Text), ("run_after", Text), ("runs_before", Whole), ("runs_after", Whole)];
    let row = |series: &EffectSeries, change: &ChangePoint| {
        let mut row = named(series);
        row.extend([change.before.as_str().into(), change.after.as_str().into()]);
        row.extend([change.runs_before.into(), change.runs_after.into()]);
        row.extend(interval(&change.ratio));
        row.extend([change.p_equal.into(), id(change.verdict)]);
        row
    };
    let rows = history.series.iter().flat_map(|own| own.change_points.iter().map(move |change| row(own, change)));
    let last = [("p_equal", Real), ("verdict", Text)];
    RawTable {
        name: "history-changes",
        columns: SERIES.into_iter().chain(own).chain(RATIO).chain(last).collect(),
        rows: rows.collect(),
    }
}

/// The values of [`SERIES`].
fn named(series: &EffectSeries) -> Vec<Value> {
    vec![
        series.study.as_str().into(),
        series.id.as_str().into(),
        series.case.as_deref().map_or(Value::Absent, Value::from),
        series.arm.as_str().into(),
        series.baseline.as_str().into(),
        series.metric.id.as_str().into(),
        series.metric.primary.into(),
        series.host.into(),
        series.plan.into(),
    ]
}
