//! A trial out of the tables for good.

use rusqlite::{Connection, TransactionBehavior};

/// Tables with rows of a trial, those that refer to others first, and how their rows are found.
const ROWS: [(&str, &str); 34] = [
    ("turns", "trial = ?1"),
    ("trial_turns", "trial = ?1"),
    ("stored_request_bins", "request_id IN (SELECT request_id FROM stored_requests WHERE trial = ?1)"),
    ("stored_requests", "trial = ?1"),
    ("stored_try_metrics", "try_id IN (SELECT try_id FROM tries WHERE trial = ?1)"),
    ("stored_try_counts", "try_id IN (SELECT try_id FROM tries WHERE trial = ?1)"),
    ("stored_try_bins", "try_id IN (SELECT try_id FROM tries WHERE trial = ?1)"),
    ("stored_try_flags", "try_id IN (SELECT try_id FROM tries WHERE trial = ?1)"),
    ("stored_try_cpu", "try_id IN (SELECT try_id FROM tries WHERE trial = ?1)"),
    ("tries", "trial = ?1"),
    ("searches", "trial = ?1"),
    (
        "stored_level_part_metrics",
        "level_part_id IN (SELECT level_part_id FROM stored_level_parts JOIN levels USING (level_id) WHERE trial = ?1)",
    ),
    ("stored_level_parts", "level_id IN (SELECT level_id FROM levels WHERE trial = ?1)"),
    ("stored_level_metrics", "level_id IN (SELECT level_id FROM levels WHERE trial = ?1)"),
    ("stored_level_bins", "level_id IN (SELECT level_id FROM levels WHERE trial = ?1)"),
    ("levels", "trial = ?1"),
    ("courses", "trial = ?1"),
    ("tiles", "trial = ?1"),
    ("scale_ups", "trial = ?1"),
    ("cpu_target_courses", "trial = ?1"),
    ("cpu_target_steps", "trial = ?1"),
    ("cpu_targets", "trial = ?1"),
    ("stored_part_metrics", "part_id IN (SELECT part_id FROM stored_parts WHERE trial = ?1)"),
    ("stored_parts", "trial = ?1"),
    ("stored_step_bins", "step_id IN (SELECT step_id FROM steps WHERE trial = ?1)"),
    ("steps", "trial = ?1"),
    ("stored_bins", "histogram_id IN (SELECT histogram_id FROM histograms WHERE trial = ?1)"),
    ("histograms", "trial = ?1"),
    ("stored_samples", "trial = ?1"),
    ("metric_specs", "trial = ?1"),
    ("metrics", "trial = ?1"),
    ("incomplete", "trial = ?1"),
    ("counts", "trial = ?1"),
    ("cpu_accounts", "trial = ?1"),
];

/// The same of tables that any trial has, whatever its outcome.
const OF_ALL: [&str; 5] = ["parity", "flags", "deviations", "facts", "trials"];

/// Removes a trial and all that belongs to it, in one transaction.
pub(crate) fn remove_trial(db: &mut Connection, trial: u32) -> rusqlite::Result<()> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (table, rows) in ROWS.into_iter().chain(OF_ALL.map(|table| (table, "trial = ?1"))) {
        transaction.execute(&format!("DELETE FROM {table} WHERE {rows}"), [trial])?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{create, insert_trial};
    use crate::testing;

    #[test]
    fn nothing_is_left_of_a_trial_and_nothing_of_others_goes() {
        let plan = testing::plan(2);
        let trials = |at: u32| {
            let all = [testing::store_trial, testing::capacity_trial, testing::cpu_target_trial, testing::turns_trial];
            let density = |plan: &_, index| testing::density_trial(plan, index, &[1, 4]);
            all.into_iter().map(move |make| make(&testing::plan(2), at)).chain([density(&plan, at)])
        };
        // An even and an odd number: the one holds a share of CPUs, the other has tiles.
        for mut record in trials(0).chain(trials(1)) {
            let mut db = Connection::open_in_memory().unwrap();
            create(&mut db).unwrap();
            db.pragma_update(None, "foreign_keys", true).unwrap();
            let rows = |db: &Connection| -> Vec<(String, i64)> {
                let mut tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
                let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
                // Names that all trials share.
                let names = names.filter(|name| !["series", "stored_level_names"].contains(&name.as_str()));
                let count = |name: &str| db.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0));
                names.map(|name| (name.clone(), count(&name).unwrap())).collect()
            };
            record.planned.index = 4;
            insert_trial(&db, &record).map_err(|_| ()).unwrap();
            let before = rows(&db);
            record.planned.index = 5;
            insert_trial(&db, &record).map_err(|_| ()).unwrap();
            assert_ne!(rows(&db), before);
            remove_trial(&mut db, 5).unwrap();
            assert_eq!(rows(&db), before);
            remove_trial(&mut db, 4).unwrap();
            assert!(rows(&db).iter().all(|(_, count)| *count == 0), "{:?}", rows(&db));
        }
    }
}
