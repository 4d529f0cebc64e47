//! How a trial took turns with the other arms of its block.

use rusqlite::{Connection, OptionalExtension, params};
use tare_model::Span;
use tare_model::turns::{ROUNDS_MAX, TrialTurns, TurnCount, TurnSpec, Turns, TurnsDone};

use super::insert::{Insert, InsertError, int};
use super::names::{waiting_name, waiting_of};
use super::read::{Read, unsigned, word};
use crate::error::RecordError;

/// Inserts how a trial took turns.
pub(super) fn insert(db: &Connection, trial: u32, taken: &TrialTurns) -> Insert {
    let TrialTurns { start_ns, turns, done, waiting_cpus } = taken;
    let rounds = turns.places.len().max(done.counts.len()).max(done.began_ns.len());
    if rounds > ROUNDS_MAX as usize {
        let (what, value, most) = ("a number of turns", rounds as u64, u64::from(ROUNDS_MAX));
        return Err(InsertError::TooLarge(RecordError::TooLarge { what, value, most }));
    }
    let ns = |span: Span| int("a time of turns", span.ns);
    let spec = &turns.spec;
    db.prepare_cached("INSERT INTO trial_turns VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?.execute(
        params![
            trial,
            int("start of the first round", *start_ns)?,
            turns.arms,
            ns(spec.turn)?,
            ns(spec.warm_up)?,
            ns(spec.gap)?,
            waiting_name(spec.waiting),
            int("measured time of turns", done.measured_ns)?,
            done.overran,
            waiting_cpus,
            spec.commands
        ],
    )?;
    let mut insert = db.prepare_cached("INSERT INTO turns VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    for round in 0..rounds {
        let count = |part: fn(&TurnCount) -> u64| {
            done.counts.get(round).map(|own| int("a count of a turn", part(own))).transpose()
        };
        insert.execute(params![
            trial,
            int("a round", round as u64)?,
            turns.places.get(round),
            count(|own| own.operations)?,
            count(|own| own.bytes)?,
            count(|own| own.measured_ns)?,
            count(|own| own.response_ns)?,
            done.began_ns.get(round).map(|&ns| int("start of a turn", ns)).transpose()?
        ])?;
    }
    Ok(())
}

/// How a trial took turns, where it did.
pub(super) fn read(db: &Connection, trial: u32) -> Read<Option<TrialTurns>> {
    let head = db
        .prepare_cached(
            "SELECT start_ns, arms, turn_ns, warm_up_ns, gap_ns, waiting, measured_ns, overran, waiting_cpus, commands
             FROM trial_turns WHERE trial = ?1",
        )?
        .query_row([trial], |row| {
            let ns = |column: usize| unsigned(column, row.get(column)?);
            let span = |column: usize| ns(column).map(|ns| Span { ns });
            let waiting = word(row, 5, waiting_of)?;
            let spec = TurnSpec { turn: span(2)?, warm_up: span(3)?, gap: span(4)?, waiting, commands: row.get(9)? };
            Ok(TrialTurns {
                start_ns: ns(0)?,
                turns: Turns { spec, arms: row.get(1)?, places: Vec::new() },
                done: TurnsDone { measured_ns: ns(6)?, overran: row.get(7)?, ..TurnsDone::default() },
                waiting_cpus: row.get(8)?,
            })
        })
        .optional()?;
    let Some(mut taken) = head else { return Ok(None) };
    let mut select = db.prepare_cached(
        "SELECT place, operations, bytes, measured_ns, response_ns, start_ns FROM turns WHERE trial = ?1 ORDER BY round LIMIT ?2",
    )?;
    let mut rows = select.query(params![trial, ROUNDS_MAX])?;
    while let Some(row) = rows.next()? {
        taken.turns.places.extend(row.get::<_, Option<u32>>(0)?);
        let began = row.get::<_, Option<i64>>(5)?.map(|ns| unsigned(5, ns)).transpose()?;
        taken.done.began_ns.extend(began);
        if let Some(operations) = row.get(1)? {
            let of = |column: usize| unsigned(column, row.get(column)?);
            let (bytes, measured_ns, response_ns) = (of(2)?, of(3)?, of(4)?);
            taken.done.counts.push(TurnCount { operations: unsigned(1, operations)?, bytes, measured_ns, response_ns });
        }
    }
    Ok(Some(taken))
}
