//! What was seen while the largest load was looked for.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tare_model::capacity::{CapacitySearch, Probe};
use tare_model::trial::Flag;

use super::cpu;
use super::insert::{Insert, insert_bins, insert_counts, insert_numbers, int};
use super::names::{cause_name, cause_of, purpose_name, purpose_of};
use super::read::{Read, counts, numbers, read_bins, real, rows, times, unsigned, word};
use super::requests::{insert_requests, read_requests};

/// Inserts the search of a trial.
pub(super) fn insert_search(db: &Connection, trial: u32, search: &CapacitySearch) -> Insert {
    db.prepare_cached("INSERT INTO searches VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        trial,
        search.held,
        search.missed,
        search.ended
    ])?;
    for (position, probe) in (0i64..).zip(&search.probes) {
        insert_try(db, trial, position, probe)?;
    }
    Ok(())
}

fn insert_try(db: &Connection, trial: u32, position: i64, probe: &Probe) -> Insert {
    let response = &probe.response;
    db.prepare_cached(
        "INSERT INTO tries (trial, position, load, purpose, failed, cause, window_start_ns, window_end_ns, operations, min_ns,
         max_ns, sum_ns, operations_failed, operations_given_up, waited_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        trial,
        position,
        probe.load,
        purpose_name(probe.purpose),
        probe.failed,
        probe.cause.map(cause_name),
        int("start of a try's window", probe.window_ns.0)?,
        int("end of a try's window", probe.window_ns.1)?,
        int("operations of a try", response.count())?,
        int("minimum of a try", response.min)?,
        int("maximum of a try", response.max)?,
        response.sum.to_string(),
        int("failed operations of a try", response.failed)?,
        int("given up operations of a try", response.given_up)?,
        int("time waited of a try", response.waited_ns)?
    ])?;
    let id = db.last_insert_rowid();
    insert_numbers(db, "INSERT INTO stored_try_metrics VALUES (?1, ?2, ?3)", id, &probe.metrics)?;
    insert_counts(db, "INSERT INTO stored_try_counts VALUES (?1, ?2, ?3)", id, &probe.counts)?;
    let mut flag = db.prepare_cached("INSERT INTO stored_try_flags VALUES (?1, ?2, ?3, ?4)")?;
    for (number, one) in (0i64..).zip(&probe.flags) {
        flag.execute(params![id, number, one.kind, one.detail])?;
    }
    insert_bins(db, "INSERT INTO stored_try_bins VALUES (?1, ?2, ?3, ?4)", id, response)?;
    if let Some(account) = &probe.cpu {
        cpu::insert(db, "stored_try_cpu", id, account)?;
    }
    insert_requests(db, trial, Some(id), &probe.requests)
}

/// The search of a trial, if it has one.
pub(super) fn read(db: &Connection, trial: u32) -> Read<Option<CapacitySearch>> {
    let head = db
        .prepare_cached("SELECT held, missed, ended FROM searches WHERE trial = ?1")?
        .query_row([trial], |row| {
            let (held, missed, ended) = (real(row, 0)?, row.get(1)?, row.get(2)?);
            Ok(CapacitySearch { held, missed, probes: Vec::new(), ended })
        })
        .optional()?;
    let Some(mut search) = head else { return Ok(None) };
    let heads = rows(
        db,
        "SELECT try_id, load, purpose, failed, cause, window_start_ns, window_end_ns, min_ns, max_ns, sum_ns,
         operations_failed, operations_given_up, waited_ns FROM tries WHERE trial = ?1 ORDER BY position",
        trial,
        read_head,
    )?;
    search.probes = heads.into_iter().map(|(id, probe)| whole(db, trial, id, probe)).collect::<Read<_>>()?;
    Ok(Some(search))
}

fn read_head(row: &Row<'_>) -> Read<(i64, Probe)> {
    let count = |column: usize| unsigned(column, row.get(column)?);
    let probe = Probe {
        load: real(row, 1)?,
        purpose: word(row, 2, purpose_of)?,
        failed: row.get(3)?,
        cause: row.get::<_, Option<String>>(4)?.map(|_| word(row, 4, cause_of)).transpose()?,
        window_ns: (count(5)?, count(6)?),
        response: times(row, 7)?,
        ..Probe::default()
    };
    Ok((row.get(0)?, probe))
}

/// A try with all that stands in tables of its own.
fn whole(db: &Connection, trial: u32, id: i64, mut probe: Probe) -> Read<Probe> {
    probe.metrics = numbers(db, "SELECT metric, value FROM stored_try_metrics WHERE try_id = ?1", id)?;
    probe.counts = counts(db, "SELECT name, value FROM stored_try_counts WHERE try_id = ?1", id)?;
    probe.flags = db
        .prepare_cached("SELECT kind, detail FROM stored_try_flags WHERE try_id = ?1 ORDER BY number")?
        .query_map([id], |row| Ok(Flag { kind: row.get(0)?, detail: row.get(1)? }))?
        .collect::<Read<_>>()?;
    let bins = "SELECT low_ns, high_ns, count FROM stored_try_bins WHERE try_id = ?1 ORDER BY low_ns";
    probe.response.bins = read_bins(db, bins, id)?;
    probe.cpu = cpu::read(db, "stored_try_cpu WHERE try_id", id)?;
    probe.requests = read_requests(db, trial, Some(id))?;
    Ok(probe)
}
