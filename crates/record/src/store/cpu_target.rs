//! How well the guests' CPUs were held busy to a share.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tare_model::cpu_target::{CpuSearch, CpuSearchStep};

use super::insert::Insert;
use super::read::{Read, real, rows};

/// Inserts what a search for a share came to.
pub(super) fn insert_cpu_search(db: &Connection, trial: u32, search: &CpuSearch) -> Insert {
    db.prepare_cached("INSERT INTO cpu_targets VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(params![
        trial,
        search.target,
        search.tolerance,
        search.load,
        search.share,
        search.spread
    ])?;
    let mut step = db.prepare_cached("INSERT INTO cpu_target_steps VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (position, one) in (0i64..).zip(&search.steps) {
        step.execute(params![trial, position, one.load, one.share, one.operations_per_s, one.window_s])?;
    }
    let mut course = db.prepare_cached("INSERT INTO cpu_target_courses VALUES (?1, ?2, ?3, ?4)")?;
    for (position, (at_s, share)) in (0i64..).zip(&search.course) {
        course.execute(params![trial, position, at_s, share])?;
    }
    Ok(())
}

/// The search of a trial, if it has one.
pub(super) fn read(db: &Connection, trial: u32) -> Read<Option<CpuSearch>> {
    let head = db
        .prepare_cached("SELECT target, tolerance, load, share, spread FROM cpu_targets WHERE trial = ?1")?
        .query_row([trial], |row| {
            let (target, tolerance, load, share) = (real(row, 0)?, real(row, 1)?, real(row, 2)?, real(row, 3)?);
            Ok(CpuSearch { target, tolerance, load, share, spread: row.get(4)?, ..CpuSearch::default() })
        })
        .optional()?;
    let Some(mut search) = head else { return Ok(None) };
    let steps =
        "SELECT load, share, operations_per_s, window_s FROM cpu_target_steps WHERE trial = ?1 ORDER BY position";
    search.steps = rows(db, steps, trial, |row: &Row<'_>| {
        let (load, share) = (real(row, 0)?, real(row, 1)?);
        Ok(CpuSearchStep { load, share, operations_per_s: real(row, 2)?, window_s: real(row, 3)? })
    })?;
    let course = "SELECT at_s, share FROM cpu_target_courses WHERE trial = ?1 ORDER BY position";
    search.course = rows(db, course, trial, |row: &Row<'_>| Ok((real(row, 0)?, real(row, 1)?)))?;
    Ok(Some(search))
}
