//! A trial into the tables.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, params};
use tare_model::Histogram;
use tare_model::sample::Sample;
use tare_model::trial::{Measurement, Outcome, TrialRecord};

use super::cpu_target::insert_cpu_search;
use super::names::{better_name, source_name, unit_name};
use super::parts::{insert_parts, insert_steps};
use super::requests::insert_requests;
use super::scale_up::insert_scale_up;
use super::search::insert_search;
use super::{cpu, turns};
use crate::error::RecordError;

/// What can stop an insertion.
pub(crate) enum InsertError {
    /// A number too large for the tables.
    TooLarge(RecordError),
    /// SQLite's own.
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for InsertError {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sql(e)
    }
}

pub(super) type Insert = Result<(), InsertError>;

pub(super) fn int(what: &'static str, value: u64) -> Result<i64, InsertError> {
    i64::try_from(value)
        .map_err(|_| InsertError::TooLarge(RecordError::TooLarge { what, value, most: i64::MAX as u64 }))
}

/// Inserts a trial. The caller holds a transaction: a trial is there whole or not at all.
pub(crate) fn insert_trial(db: &Connection, record: &TrialRecord) -> Insert {
    let trial = record.planned.index;
    let (outcome, phase, reason) = match &record.outcome {
        Outcome::Completed(_) => ("completed", None, None),
        Outcome::Invalid { reason } => ("invalid", None, Some(reason)),
        Outcome::Failed { phase, reason } => ("failed", Some(phase.to_string()), Some(reason)),
    };
    let window = match record.window_ns {
        Some((start, end)) => Some((int("start of the window", start)?, int("end of the window", end)?)),
        None => None,
    };
    db.prepare_cached("INSERT INTO trials VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?.execute(
        params![
            trial,
            record.planned.block,
            record.planned.case,
            record.planned.arm,
            record.started_at,
            record.wall_s,
            record.load_s,
            outcome,
            phase,
            reason,
            window.map(|w| w.0),
            window.map(|w| w.1)
        ],
    )?;
    if let Outcome::Completed(measurement) = &record.outcome {
        insert_measurement(db, trial, measurement)?;
    }
    if let Some(cpu) = &record.cpu {
        cpu::insert(db, "cpu_accounts", i64::from(trial), cpu)?;
    }
    record.turns.as_ref().map_or(Ok(()), |taken| turns::insert(db, trial, taken))?;
    insert_disclosure(db, record)?;
    insert_samples(db, trial, &record.samples)
}

fn insert_measurement(db: &Connection, trial: u32, measurement: &Measurement) -> Insert {
    insert_numbers(db, "INSERT INTO metrics VALUES (?1, ?2, ?3)", i64::from(trial), &measurement.metrics)?;
    insert_counts(db, "INSERT INTO counts VALUES (?1, ?2, ?3)", i64::from(trial), &measurement.counts)?;
    let mut incomplete = db.prepare_cached("INSERT INTO incomplete VALUES (?1, ?2, ?3, ?4)")?;
    for (metric, one) in &measurement.incomplete {
        incomplete.execute(params![trial, metric, one.missing, one.completed_only])?;
    }
    for (name, histogram) in &measurement.histograms {
        insert_histogram(db, trial, name, histogram)?;
    }
    insert_parts(db, trial, &measurement.parts)?;
    insert_steps(db, trial, &measurement.steps)?;
    measurement.scale_up.as_ref().map_or(Ok(()), |scale_up| insert_scale_up(db, trial, scale_up))?;
    insert_requests(db, trial, None, &measurement.requests)?;
    measurement.search.as_ref().map_or(Ok(()), |search| insert_search(db, trial, search))?;
    measurement.cpu_search.as_ref().map_or(Ok(()), |search| insert_cpu_search(db, trial, search))
}

fn insert_histogram(db: &Connection, trial: u32, name: &str, histogram: &Histogram) -> Insert {
    db.prepare_cached(
        "INSERT INTO histograms (trial, name, count, min_ns, max_ns, sum_ns, mean_ns, operations_failed, operations_given_up, waited_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        trial,
        name,
        int("operations of a histogram", histogram.count())?,
        int("minimum of a histogram", histogram.min)?,
        int("maximum of a histogram", histogram.max)?,
        histogram.sum.to_string(),
        histogram.mean(),
        int("failed operations of a histogram", histogram.failed)?,
        int("given up operations of a histogram", histogram.given_up)?,
        int("time waited of a histogram", histogram.waited_ns)?
    ])?;
    let id = db.last_insert_rowid();
    insert_bins(db, "INSERT INTO stored_bins VALUES (?1, ?2, ?3, ?4)", id, histogram)
}

/// Inserts values by their names, by a statement that takes an id, the name and the value.
pub(super) fn insert_numbers(db: &Connection, sql: &str, id: i64, values: &BTreeMap<String, f64>) -> Insert {
    let mut insert = db.prepare_cached(sql)?;
    for (name, value) in values {
        insert.execute(params![id, name, value])?;
    }
    Ok(())
}

/// The same of counts.
pub(super) fn insert_counts(db: &Connection, sql: &str, id: i64, counts: &BTreeMap<String, u64>) -> Insert {
    let mut insert = db.prepare_cached(sql)?;
    for (name, &value) in counts {
        insert.execute(params![id, name, int("a count", value)?])?;
    }
    Ok(())
}

/// Inserts the bins of a histogram by a statement that takes its id, both ends and the count.
pub(super) fn insert_bins(db: &Connection, sql: &str, id: i64, histogram: &Histogram) -> Insert {
    let mut bins = db.prepare_cached(sql)?;
    for bin in &histogram.bins {
        let (low, high) = (int("lower end of a bin", bin.low)?, int("upper end of a bin", bin.high)?);
        bins.execute(params![id, low, high, int("count of a bin", bin.count)?])?;
    }
    Ok(())
}

fn insert_disclosure(db: &Connection, record: &TrialRecord) -> Insert {
    let trial = record.planned.index;
    let mut spec = db.prepare_cached("INSERT INTO metric_specs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (position, s) in (0i64..).zip(&record.metrics) {
        spec.execute(params![trial, position, s.id, s.label, unit_name(&s.unit), better_name(s.better), s.primary])?;
    }
    let mut parity = db.prepare_cached("INSERT INTO parity VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (position, row) in (0i64..).zip(&record.parity) {
        parity.execute(params![trial, position, row.resource, row.asked, row.granted, row.equal, row.note])?;
    }
    let mut flag = db.prepare_cached("INSERT INTO flags VALUES (?1, ?2, ?3, ?4)")?;
    for (position, f) in (0i64..).zip(&record.flags) {
        flag.execute(params![trial, position, f.kind, f.detail])?;
    }
    let mut deviation = db.prepare_cached("INSERT INTO deviations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (position, own) in (0i64..).zip(&record.deviations) {
        deviation.execute(params![trial, position, own.what, own.published, own.here, own.why, own.effect])?;
    }
    let mut fact = db.prepare_cached("INSERT INTO facts VALUES (?1, ?2, ?3)")?;
    for (name, value) in &record.facts {
        fact.execute(params![trial, name, value])?;
    }
    Ok(())
}

fn insert_samples(db: &Connection, trial: u32, samples: &[Sample]) -> Insert {
    let mut ids: HashMap<(&tare_model::sample::Source, &str), i64> = HashMap::new();
    let mut known = db.prepare_cached("SELECT series_id FROM series WHERE source = ?1 AND series = ?2")?;
    let mut new = db.prepare_cached("INSERT OR IGNORE INTO series (source, series) VALUES (?1, ?2)")?;
    let mut insert = db.prepare_cached("INSERT INTO stored_samples VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (position, sample) in (0i64..).zip(samples) {
        let key = (&sample.source, sample.series.as_str());
        let id = match ids.get(&key) {
            Some(&id) => id,
            None => {
                let source = source_name(&sample.source);
                new.execute(params![source, sample.series])?;
                let id = known.query_row(params![source, sample.series], |row| row.get(0))?;
                ids.insert(key, id);
                id
            }
        };
        insert.execute(params![trial, position, id, int("time of a sample", sample.at_ns)?, sample.value])?;
    }
    Ok(())
}
