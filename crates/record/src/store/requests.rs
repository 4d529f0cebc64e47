//! Requests by type, of a trial or of one load that a search tried.

use rusqlite::{Connection, Row, params};
use tare_model::trial::RequestType;

use super::insert::{Insert, insert_bins, int};
use super::read::{Read, read_bins, real, times, unsigned};

/// Inserts the request types of a trial, or of one of its tries.
pub(super) fn insert_requests(db: &Connection, trial: u32, of_try: Option<i64>, types: &[RequestType]) -> Insert {
    let mut head = db.prepare_cached(
        "INSERT INTO stored_requests (trial, try_id, number, type, requests, good, tolerable, failed, validation_errors, bytes,
         response_s, target, min_ns, max_ns, sum_ns, operations_failed, operations_given_up, waited_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
    )?;
    for (number, one) in (0i64..).zip(types) {
        head.execute(params![
            trial,
            of_try,
            number,
            one.name,
            int("requests of a type", one.requests)?,
            int("good requests of a type", one.good)?,
            int("tolerable requests of a type", one.tolerable)?,
            int("failed requests of a type", one.failed)?,
            int("validation errors of a type", one.validation_errors)?,
            int("bytes of a type", one.bytes)?,
            one.response_s,
            one.target,
            int("minimum of a type", one.times.min)?,
            int("maximum of a type", one.times.max)?,
            one.times.sum.to_string(),
            int("failed operations of a type", one.times.failed)?,
            int("given up operations of a type", one.times.given_up)?,
            int("time waited of a type", one.times.waited_ns)?
        ])?;
        let id = db.last_insert_rowid();
        insert_bins(db, "INSERT INTO stored_request_bins VALUES (?1, ?2, ?3, ?4)", id, &one.times)?;
    }
    Ok(())
}

/// The request types of a trial, or of one of its tries.
pub(super) fn read_requests(db: &Connection, trial: u32, of_try: Option<i64>) -> Read<Vec<RequestType>> {
    let heads: Vec<(i64, RequestType)> = db
        .prepare_cached(
            "SELECT request_id, type, requests, good, tolerable, failed, validation_errors, bytes, response_s, target, min_ns, max_ns,
             sum_ns, operations_failed, operations_given_up, waited_ns FROM stored_requests WHERE trial = ?1 AND try_id IS ?2 ORDER BY number",
        )?
        .query_map(params![trial, of_try], read_head)?
        .collect::<Read<_>>()?;
    let whole = |(id, mut one): (i64, RequestType)| {
        let bins = "SELECT low_ns, high_ns, count FROM stored_request_bins WHERE request_id = ?1 ORDER BY low_ns";
        one.times.bins = read_bins(db, bins, id)?;
        Ok(one)
    };
    heads.into_iter().map(whole).collect()
}

fn read_head(row: &Row<'_>) -> Read<(i64, RequestType)> {
    let count = |column: usize| unsigned(column, row.get(column)?);
    let one = RequestType {
        name: row.get(1)?,
        requests: count(2)?,
        good: count(3)?,
        tolerable: count(4)?,
        failed: count(5)?,
        validation_errors: count(6)?,
        bytes: count(7)?,
        response_s: real(row, 8)?,
        target: row.get(9)?,
        times: times(row, 10)?,
    };
    Ok((row.get(0)?, one))
}
