//! What was seen while guests were added.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use tare_model::density::{CoursePoint, Level, ScaleUp, Stopped};
use tare_model::merging::{MergeCounters, SavedFrom};
use tare_model::trial::Part;

use super::insert::{Insert, insert_bins, insert_numbers, int};
use super::names::{stop_name, stop_of};
use super::parts::read_part;
use super::read::{Read, numbers, read_bins, real, rows, times, unsigned, word};

/// Inserts the scale-up of a trial.
pub(super) fn insert_scale_up(db: &Connection, trial: u32, scale_up: &ScaleUp) -> Insert {
    let stopped = &scale_up.stopped;
    db.prepare_cached("INSERT INTO scale_ups VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
        trial,
        stop_name(stopped.kind),
        stopped.guests,
        stopped.detail,
        scale_up.offered_per_guest_per_s
    ])?;
    let mut tile = db.prepare_cached("INSERT INTO tiles VALUES (?1, ?2, ?3)")?;
    for (position, name) in (0i64..).zip(&scale_up.tile) {
        tile.execute(params![trial, position, name])?;
    }
    for (position, level) in (0i64..).zip(&scale_up.levels) {
        insert_level(db, trial, position, level)?;
    }
    let mut course = db.prepare_cached("INSERT INTO courses VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for (position, point) in (0i64..).zip(&scale_up.course) {
        course.execute(params![
            trial,
            position,
            point.at_s,
            point.guests,
            point.load,
            int("memory available", point.available_bytes)?,
            int("memory saved", point.saved_bytes)?,
            point.profit_bytes,
            point.scanner_cpu_s
        ])?;
    }
    Ok(())
}

fn insert_level(db: &Connection, trial: u32, position: i64, level: &Level) -> Insert {
    let (response, saved, merge) = (&level.response, &level.saved_from, &level.merge);
    db.prepare_cached(
        "INSERT INTO levels (trial, position, guests, failed, cause, window_start_ns, window_end_ns, settled_after_s, operations,
         min_ns, max_ns, sum_ns, zero_bytes, code_bytes, data_bytes, unknown_bytes, pages_shared, pages_sharing,
         pages_unshared, pages_volatile, pages_skipped, pages_scanned, zero_pages, full_scans, profit_bytes, scanner_cpu_s,
         operations_failed, operations_given_up, waited_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
         ?24, ?25, ?26, ?27, ?28, ?29)",
    )?
    .execute(params![
        trial,
        position,
        level.guests,
        level.failed,
        level.cause.map(stop_name),
        int("start of a level's window", level.window_ns.0)?,
        int("end of a level's window", level.window_ns.1)?,
        level.settled_after_s,
        int("operations of a level", response.count())?,
        int("minimum of a level", response.min)?,
        int("maximum of a level", response.max)?,
        response.sum.to_string(),
        int("memory saved from empty pages", saved.zero_bytes)?,
        int("memory saved from code", saved.code_bytes)?,
        int("memory saved from data", saved.data_bytes)?,
        int("memory saved from the unknown", saved.unknown_bytes)?,
        int("pages shared", merge.pages_shared)?,
        int("pages sharing", merge.pages_sharing)?,
        int("pages unshared", merge.pages_unshared)?,
        int("pages volatile", merge.pages_volatile)?,
        int("pages skipped", merge.pages_skipped)?,
        int("pages scanned", merge.pages_scanned)?,
        int("zero pages", merge.zero_pages)?,
        int("full scans", merge.full_scans)?,
        merge.profit_bytes,
        merge.scanner_cpu_s,
        int("failed operations of a level", response.failed)?,
        int("given up operations of a level", response.given_up)?,
        int("time waited of a level", response.waited_ns)?
    ])?;
    let id = db.last_insert_rowid();
    insert_numbers(db, "INSERT INTO stored_level_metrics VALUES (?1, ?2, ?3)", id, &level.metrics)?;
    insert_bins(db, "INSERT INTO stored_level_bins VALUES (?1, ?2, ?3, ?4)", id, response)?;
    insert_parts(db, id, &level.parts)
}

fn insert_parts(db: &Connection, level: i64, parts: &[Part]) -> Insert {
    let mut head = db.prepare_cached(
        "INSERT INTO stored_level_parts (level_id, position, guest, driver, instance) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut name = db.prepare_cached("INSERT OR IGNORE INTO stored_level_names (metric) VALUES (?1)")?;
    let mut metric = db.prepare_cached(
        "INSERT INTO stored_level_part_metrics
         VALUES (?1, (SELECT name_id FROM stored_level_names WHERE metric = ?2), ?3)",
    )?;
    for (position, part) in (0i64..).zip(parts) {
        head.execute(params![level, position, part.guest, part.driver, part.instance])?;
        let id = db.last_insert_rowid();
        for (key, value) in &part.metrics {
            name.execute([key])?;
            metric.execute(params![id, key, value])?;
        }
    }
    Ok(())
}

/// The scale-up of a trial, if it has one.
pub(super) fn read(db: &Connection, trial: u32) -> Read<Option<ScaleUp>> {
    let head = db
        .prepare_cached(
            "SELECT stopped, stopped_guests, stopped_detail, offered_per_guest_per_s FROM scale_ups WHERE trial = ?1",
        )?
        .query_row([trial], |row| {
            let stopped = Stopped { kind: word(row, 0, stop_of)?, guests: row.get(1)?, detail: row.get(2)? };
            Ok(ScaleUp { stopped, offered_per_guest_per_s: row.get(3)?, ..ScaleUp::default() })
        })
        .optional()?;
    let Some(mut scale_up) = head else { return Ok(None) };
    scale_up.levels = read_levels(db, trial)?;
    scale_up.course = read_course(db, trial)?;
    scale_up.tile = rows(db, "SELECT name FROM tiles WHERE trial = ?1 ORDER BY position", trial, |row| row.get(0))?;
    Ok(Some(scale_up))
}

fn read_levels(db: &Connection, trial: u32) -> Read<Vec<Level>> {
    let heads = rows(
        db,
        "SELECT level_id, guests, failed, cause, window_start_ns, window_end_ns, settled_after_s, min_ns, max_ns, sum_ns,
         operations_failed, operations_given_up, waited_ns, zero_bytes, code_bytes, data_bytes, unknown_bytes, pages_shared, pages_sharing, pages_unshared, pages_volatile, pages_skipped,
         pages_scanned, zero_pages, full_scans, profit_bytes, scanner_cpu_s
         FROM levels WHERE trial = ?1 ORDER BY position",
        trial,
        read_level,
    )?;
    let whole = |(id, mut level): (i64, Level)| {
        level.metrics = numbers(db, "SELECT metric, value FROM stored_level_metrics WHERE level_id = ?1", id)?;
        let bins = "SELECT low_ns, high_ns, count FROM stored_level_bins WHERE level_id = ?1 ORDER BY low_ns";
        level.response.bins = read_bins(db, bins, id)?;
        level.parts = read_parts(db, id)?;
        Ok(level)
    };
    heads.into_iter().map(whole).collect()
}

fn read_level(row: &Row<'_>) -> Read<(i64, Level)> {
    let count = |column: usize| unsigned(column, row.get(column)?);
    let saved_from =
        SavedFrom { zero_bytes: count(13)?, code_bytes: count(14)?, data_bytes: count(15)?, unknown_bytes: count(16)? };
    let merge = MergeCounters {
        pages_shared: count(17)?,
        pages_sharing: count(18)?,
        pages_unshared: count(19)?,
        pages_volatile: count(20)?,
        pages_skipped: count(21)?,
        pages_scanned: count(22)?,
        zero_pages: count(23)?,
        full_scans: count(24)?,
        profit_bytes: row.get(25)?,
        scanner_cpu_s: real(row, 26)?,
    };
    let level = Level {
        guests: row.get(1)?,
        failed: row.get(2)?,
        cause: row.get::<_, Option<String>>(3)?.map(|_| word(row, 3, stop_of)).transpose()?,
        window_ns: (count(4)?, count(5)?),
        settled_after_s: row.get(6)?,
        metrics: BTreeMap::new(),
        response: times(row, 7)?,
        parts: Vec::new(),
        saved_from,
        merge,
    };
    Ok((row.get(0)?, level))
}

fn read_parts(db: &Connection, level: i64) -> Read<Vec<Part>> {
    let sql =
        "SELECT level_part_id, guest, driver, instance FROM stored_level_parts WHERE level_id = ?1 ORDER BY position";
    let heads: Vec<(i64, Part)> = db.prepare_cached(sql)?.query_map([level], read_part)?.collect::<Read<_>>()?;
    let whole = |(id, mut part): (i64, Part)| {
        let sql = "SELECT metric, value FROM stored_level_part_metrics JOIN stored_level_names USING (name_id)
                   WHERE level_part_id = ?1";
        part.metrics = numbers(db, sql, id)?;
        Ok(part)
    };
    heads.into_iter().map(whole).collect()
}

fn read_course(db: &Connection, trial: u32) -> Read<Vec<CoursePoint>> {
    rows(
        db,
        "SELECT at_s, guests, load, available_bytes, saved_bytes, profit_bytes, scanner_cpu_s FROM courses
         WHERE trial = ?1 ORDER BY position",
        trial,
        |row| {
            Ok(CoursePoint {
                at_s: real(row, 0)?,
                guests: row.get(1)?,
                load: row.get(2)?,
                available_bytes: unsigned(3, row.get(3)?)?,
                saved_bytes: unsigned(4, row.get(4)?)?,
                profit_bytes: row.get(5)?,
                scanner_cpu_s: real(row, 6)?,
            })
        },
    )
}
