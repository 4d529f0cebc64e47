//! What guests and drivers contributed, and the steps of an operation.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use tare_model::trial::{Part, Step};

use super::insert::{Insert, insert_bins, insert_numbers, int};
use super::read::{Read, numbers, read_bins, rows, times};

/// Inserts what each guest and driver of a trial contributed.
pub(super) fn insert_parts(db: &Connection, trial: u32, parts: &[Part]) -> Insert {
    let mut head = db.prepare_cached(
        "INSERT INTO stored_parts (trial, position, guest, driver, instance) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (position, part) in (0i64..).zip(parts) {
        head.execute(params![trial, position, part.guest, part.driver, part.instance])?;
        let id = db.last_insert_rowid();
        insert_numbers(db, "INSERT INTO stored_part_metrics VALUES (?1, ?2, ?3)", id, &part.metrics)?;
    }
    Ok(())
}

/// Inserts the steps of a trial's operations.
pub(super) fn insert_steps(db: &Connection, trial: u32, steps: &[Step]) -> Insert {
    let mut head = db.prepare_cached(
        "INSERT INTO steps (trial, position, step, within, count, min_ns, max_ns, sum_ns, mean_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for (position, step) in (0i64..).zip(steps) {
        let times = &step.times;
        head.execute(params![
            trial,
            position,
            step.name,
            step.within,
            int("times of a step", times.count())?,
            int("minimum of a step", times.min)?,
            int("maximum of a step", times.max)?,
            times.sum.to_string(),
            times.mean()
        ])?;
        let id = db.last_insert_rowid();
        insert_bins(db, "INSERT INTO stored_step_bins VALUES (?1, ?2, ?3, ?4)", id, times)?;
    }
    Ok(())
}

/// Parts and steps of a trial.
pub(super) fn read(db: &Connection, trial: u32) -> Read<(Vec<Part>, Vec<Step>)> {
    Ok((read_parts(db, trial)?, read_steps(db, trial)?))
}

fn read_parts(db: &Connection, trial: u32) -> Read<Vec<Part>> {
    let sql = "SELECT part_id, guest, driver, instance FROM stored_parts WHERE trial = ?1 ORDER BY position";
    let mut parts = rows(db, sql, trial, read_part)?;
    for (id, part) in &mut parts {
        part.metrics = numbers(db, "SELECT metric, value FROM stored_part_metrics WHERE part_id = ?1", *id)?;
    }
    Ok(parts.into_iter().map(|(_, part)| part).collect())
}

/// A part without its metrics, and its id.
pub(super) fn read_part(row: &Row<'_>) -> Read<(i64, Part)> {
    let part = Part { guest: row.get(1)?, driver: row.get(2)?, instance: row.get(3)?, metrics: BTreeMap::new() };
    Ok((row.get(0)?, part))
}

fn read_steps(db: &Connection, trial: u32) -> Read<Vec<Step>> {
    let mut steps = rows(
        db,
        "SELECT step_id, step, within, min_ns, max_ns, sum_ns, 0, 0, 0 FROM steps WHERE trial = ?1 ORDER BY position",
        trial,
        |row| Ok((row.get::<_, i64>(0)?, Step { name: row.get(1)?, within: row.get(2)?, times: times(row, 3)? })),
    )?;
    for (id, step) in &mut steps {
        let bins = "SELECT low_ns, high_ns, count FROM stored_step_bins WHERE step_id = ?1 ORDER BY low_ns";
        step.times.bins = read_bins(db, bins, *id)?;
    }
    Ok(steps.into_iter().map(|(_, step)| step).collect())
}
