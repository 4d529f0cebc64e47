//! A trial out of the tables.

use std::collections::BTreeMap;

use rusqlite::types::{FromSql, Type};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use tare_model::Histogram;
use tare_model::deviation::Deviation;
use tare_model::guest::ParityRow;
use tare_model::histogram::Bin;
use tare_model::metric::MetricSpec;
use tare_model::plan::PlannedTrial;
use tare_model::sample::{Sample, Source};
use tare_model::trial::{Flag, Incomplete, Measurement, Outcome, TrialRecord};

use super::names::{better_of, phase_of, source_of, unit_of};
use super::{cpu, cpu_target, parts, requests, scale_up, search, turns};

pub(super) type Read<T> = rusqlite::Result<T>;

/// The first trials that are stored, at most so many, ascending.
pub(crate) fn trial_indices(db: &Connection, most: usize) -> Read<Vec<u32>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    db.prepare_cached("SELECT trial FROM trials ORDER BY trial LIMIT ?1")?
        .query_map([most], |row| row.get(0))?
        .collect()
}

/// One trial, `None` when it is not stored.
pub(crate) fn read_trial(db: &Connection, trial: u32) -> Read<Option<TrialRecord>> {
    let head = db
        .prepare_cached(
            "SELECT block, case_id, arm, started_at, wall_s, load_s, outcome, phase, reason, window_start_ns, window_end_ns
             FROM trials WHERE trial = ?1",
        )?
        .query_row([trial], |row| read_head(row, trial))
        .optional()?;
    let Some(mut record) = head else { return Ok(None) };
    if let Outcome::Completed(measurement) = &mut record.outcome {
        *measurement = read_measurement(db, trial)?;
    }
    record.metrics = rows(
        db,
        "SELECT metric, label, unit, better, is_primary FROM metric_specs WHERE trial = ?1 ORDER BY position",
        trial,
        |row| {
            Ok(MetricSpec {
                id: row.get(0)?,
                label: row.get(1)?,
                unit: word(row, 2, unit_of)?,
                better: word(row, 3, better_of)?,
                primary: row.get(4)?,
            })
        },
    )?;
    record.parity = rows(
        db,
        "SELECT resource, asked, granted, equal, note FROM parity WHERE trial = ?1 ORDER BY position",
        trial,
        |row| {
            Ok(ParityRow {
                resource: row.get(0)?,
                asked: row.get(1)?,
                granted: row.get(2)?,
                equal: row.get(3)?,
                note: row.get(4)?,
            })
        },
    )?;
    record.flags = rows(db, "SELECT kind, detail FROM flags WHERE trial = ?1 ORDER BY position", trial, |row| {
        Ok(Flag { kind: row.get(0)?, detail: row.get(1)? })
    })?;
    record.deviations = rows(
        db,
        "SELECT what, published, here, why, effect FROM deviations WHERE trial = ?1 ORDER BY position",
        trial,
        |row| {
            let (what, published, here) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Deviation { what, published, here, why: row.get(3)?, effect: row.get(4)?, ..Deviation::default() })
        },
    )?;
    record.facts = map(db, "SELECT name, value FROM facts WHERE trial = ?1", trial)?;
    record.cpu = cpu::read(db, "cpu_accounts WHERE trial", i64::from(trial))?;
    record.turns = turns::read(db, trial)?;
    record.samples = read_samples(db, trial)?;
    Ok(Some(record))
}

fn read_head(row: &Row<'_>, trial: u32) -> Read<TrialRecord> {
    let reason = |row: &Row<'_>| row.get::<_, Option<String>>(8).map(Option::unwrap_or_default);
    let outcome = match row.get::<_, String>(6)?.as_str() {
        "completed" => Outcome::Completed(Measurement::default()),
        "invalid" => Outcome::Invalid { reason: reason(row)? },
        _ => Outcome::Failed { phase: word(row, 7, phase_of)?, reason: reason(row)? },
    };
    let window = (row.get::<_, Option<i64>>(9)?, row.get::<_, Option<i64>>(10)?);
    Ok(TrialRecord {
        planned: PlannedTrial { index: trial, block: row.get(0)?, case: row.get(1)?, arm: row.get(2)? },
        started_at: row.get(3)?,
        wall_s: real(row, 4)?,
        load_s: real(row, 5)?,
        outcome,
        metrics: Vec::new(),
        parity: Vec::new(),
        cpu: None,
        window_ns: match window {
            (Some(start), Some(end)) => Some((unsigned(9, start)?, unsigned(10, end)?)),
            _ => None,
        },
        turns: None,
        samples: Vec::new(),
        flags: Vec::new(),
        deviations: Vec::new(),
        facts: BTreeMap::new(),
    })
}

fn read_measurement(db: &Connection, trial: u32) -> Read<Measurement> {
    let (parts, steps) = parts::read(db, trial)?;
    let mut measurement = Measurement {
        parts,
        steps,
        metrics: numbers(db, "SELECT metric, value FROM metrics WHERE trial = ?1", trial)?,
        histograms: BTreeMap::new(),
        counts: counts(db, "SELECT name, value FROM counts WHERE trial = ?1", trial)?,
        scale_up: scale_up::read(db, trial)?,
        requests: requests::read_requests(db, trial, None)?,
        search: search::read(db, trial)?,
        cpu_search: cpu_target::read(db, trial)?,
        incomplete: read_incomplete(db, trial)?,
    };
    let sql = "SELECT histogram_id, name, min_ns, max_ns, sum_ns, operations_failed, operations_given_up, waited_ns FROM histograms
               WHERE trial = ?1";
    let heads = rows(db, sql, trial, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, times(row, 2)?)))?;
    for (id, name, mut histogram) in heads {
        let bins = "SELECT low_ns, high_ns, count FROM stored_bins WHERE histogram_id = ?1 ORDER BY low_ns";
        histogram.bins = read_bins(db, bins, id)?;
        measurement.histograms.insert(name, histogram);
    }
    Ok(measurement)
}

fn read_incomplete(db: &Connection, trial: u32) -> Read<BTreeMap<String, Incomplete>> {
    let found = rows(db, "SELECT metric, missing, completed_only FROM incomplete WHERE trial = ?1", trial, |row| {
        Ok((row.get(0)?, Incomplete { missing: row.get(1)?, completed_only: row.get(2)? }))
    })?;
    Ok(found.into_iter().collect())
}

fn read_samples(db: &Connection, trial: u32) -> Read<Vec<Sample>> {
    let series: BTreeMap<i64, (Source, String)> = db
        .prepare_cached("SELECT series_id, source, series FROM series")?
        .query_map([], |row| Ok((row.get(0)?, (word(row, 1, source_of)?, row.get(2)?))))?
        .collect::<Read<_>>()?;
    let mut select =
        db.prepare_cached("SELECT series_id, at_ns, value FROM stored_samples WHERE trial = ?1 ORDER BY position")?;
    let samples = select.query_map([trial], |row| {
        let id: i64 = row.get(0)?;
        let (source, name) = series.get(&id).ok_or(rusqlite::Error::IntegralValueOutOfRange(0, id))?;
        Ok(Sample {
            at_ns: unsigned(1, row.get(1)?)?,
            source: source.clone(),
            series: name.clone(),
            value: real(row, 2)?,
        })
    })?;
    samples.collect()
}

/// A number, where NULL stands for one that is none.
pub(super) fn real(row: &Row<'_>, column: usize) -> Read<f64> {
    Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(f64::NAN))
}

pub(super) fn unsigned(column: usize, value: i64) -> Read<u64> {
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

/// A word that stands for something.
pub(crate) fn word<T>(row: &Row<'_>, column: usize, meaning: impl Fn(&str) -> Option<T>) -> Read<T> {
    let text: String = row.get(column)?;
    meaning(&text).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, format!("unknown word `{text}`").into())
    })
}

pub(super) fn rows<T>(db: &Connection, sql: &str, trial: u32, of: impl FnMut(&Row<'_>) -> Read<T>) -> Read<Vec<T>> {
    db.prepare_cached(sql)?.query_map(params![trial], of)?.collect()
}

pub(super) fn map<T: FromSql>(db: &Connection, sql: &str, id: impl ToSql) -> Read<BTreeMap<String, T>> {
    db.prepare_cached(sql)?.query_map(params![id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Values by name, where NULL stands for one that is no number.
pub(super) fn numbers(db: &Connection, sql: &str, id: impl ToSql) -> Read<BTreeMap<String, f64>> {
    let values: BTreeMap<String, Option<f64>> = map(db, sql, id)?;
    Ok(values.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

/// Counts by name.
pub(super) fn counts(db: &Connection, sql: &str, id: impl ToSql) -> Read<BTreeMap<String, u64>> {
    let counts: BTreeMap<String, i64> = map(db, sql, id)?;
    counts.into_iter().map(|(name, value)| Ok((name, unsigned(1, value)?))).collect()
}

/// A histogram of which the smallest, the largest, the sum and what did not complete are in six columns from this one on; its bins are in a
/// table of their own.
pub(super) fn times(row: &Row<'_>, first: usize) -> Read<Histogram> {
    let end = |column: usize| unsigned(column, row.get(column)?);
    let sum = word(row, first + 2, |text| text.parse().ok())?;
    let (failed, given_up, waited_ns) = (end(first + 3)?, end(first + 4)?, end(first + 5)?);
    Ok(Histogram { bins: Vec::new(), min: end(first)?, max: end(first + 1)?, sum, failed, given_up, waited_ns })
}

/// The bins of a histogram by a statement that takes its id and gives both ends and the count.
pub(super) fn read_bins(db: &Connection, sql: &str, id: i64) -> Read<Vec<Bin>> {
    let bin = |row: &Row<'_>| {
        let (low, high) = (unsigned(0, row.get(0)?)?, unsigned(1, row.get(1)?)?);
        Ok(Bin { low, high, count: unsigned(2, row.get(2)?)? })
    };
    db.prepare_cached(sql)?.query_map([id], bin)?.collect()
}
