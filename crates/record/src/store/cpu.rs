//! CPU accounts, of a trial or of one load that a search tried.

use rusqlite::{Connection, OptionalExtension, params};
use tare_model::sample::CpuAccount;

use super::insert::Insert;
use super::read::{Read, real};

/// Inserts an account into one of the tables for them, all of which have the same columns after the first.
pub(super) fn insert(db: &Connection, table: &str, id: i64, cpu: &CpuAccount) -> Insert {
    let sql = format!("INSERT INTO {table} VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)");
    db.prepare_cached(&sql)?.execute(params![
        id,
        cpu.window_s,
        cpu.cpus,
        cpu.guest_user_s,
        cpu.guest_system_s,
        cpu.neighbours_s,
        cpu.softirq_s,
        cpu.irq_s,
        cpu.kernel_s,
        cpu.foreign_s,
        cpu.total_s,
        cpu.steal_s,
        cpu.probe_s
    ])?;
    Ok(())
}

/// The account of which `place`, a table and the name of its first column, has this id.
pub(super) fn read(db: &Connection, place: &str, id: i64) -> Read<Option<CpuAccount>> {
    let sql = format!(
        "SELECT window_s, cpus, guest_user_s, guest_system_s, neighbours_s, softirq_s, irq_s, kernel_s, foreign_s,
         total_s, steal_s, probe_s
         FROM {place} = ?1"
    );
    db.prepare_cached(&sql)?
        .query_row([id], |row| {
            Ok(CpuAccount {
                window_s: real(row, 0)?,
                cpus: row.get(1)?,
                guest_user_s: real(row, 2)?,
                guest_system_s: real(row, 3)?,
                neighbours_s: real(row, 4)?,
                softirq_s: real(row, 5)?,
                irq_s: real(row, 6)?,
                kernel_s: real(row, 7)?,
                foreign_s: real(row, 8)?,
                total_s: real(row, 9)?,
                steal_s: real(row, 10)?,
                probe_s: real(row, 11)?,
            })
        })
        .optional()
}
