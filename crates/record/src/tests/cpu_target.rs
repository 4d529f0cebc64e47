//! Trials that hold a share of CPU, instances of an application and tiles: what was seen is read as it was written.

use tare_model::plan::Plan;
use tare_model::trial::{Outcome, TrialRecord};

use super::each_is_reported;
use crate::testing::{self, write_run};
use crate::{RunFolder, layout};

fn read_back(plan: &Plan, record: &TrialRecord) -> TrialRecord {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), plan, std::slice::from_ref(record));
    RunFolder::open(dir.path()).unwrap().trial(record.planned.index).unwrap().unwrap()
}

#[test]
fn what_was_held_and_the_instances_and_tiles_read_as_they_were_written() {
    let plan = testing::plan(2);
    for index in 0..2 {
        let record = testing::cpu_target_trial(&plan, index);
        assert_eq!(read_back(&plan, &record), record);
    }
    let mut record = testing::cpu_target_trial(&plan, 0);
    let Outcome::Completed(measurement) = &mut record.outcome else { panic!("completed") };
    let search = measurement.cpu_search.as_mut().unwrap();
    search.spread = None;
    search.course.clear();
    search.steps.truncate(1);
    assert_eq!(read_back(&plan, &record), record);
}

#[test]
fn each_alteration_is_reported() {
    let trials = |plan: &Plan| {
        vec![testing::cpu_target_trial(plan, 0), testing::cpu_target_trial(plan, 1), testing::trial(plan, 2)]
    };
    each_is_reported(
        trials,
        &[
            "UPDATE cpu_targets SET target = 0.5",
            "UPDATE cpu_targets SET load = load + 1",
            "UPDATE cpu_targets SET share = share / 2",
            "UPDATE cpu_targets SET spread = NULL",
            "UPDATE cpu_target_steps SET share = 0.4 WHERE position = 0",
            "DELETE FROM cpu_target_steps WHERE position = 1",
            "UPDATE cpu_target_courses SET share = share + 0.001 WHERE position = 3",
            "DELETE FROM cpu_target_courses",
            "UPDATE stored_parts SET instance = 3 - instance",
            "UPDATE stored_parts SET instance = NULL",
            "UPDATE stored_level_parts SET instance = instance + 1",
            "UPDATE tiles SET name = 'other' WHERE position = 1",
            "DELETE FROM tiles",
        ],
    );
}

#[test]
fn what_was_held_reads_without_tare() {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(1);
    write_run(dir.path(), &plan, &[testing::cpu_target_trial(&plan, 0), testing::cpu_target_trial(&plan, 1)]);
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT CAST(load AS INTEGER) FROM cpu_targets WHERE abs(share - target) <= tolerance"), 97);
    assert_eq!(count("SELECT count(*) FROM cpu_target_steps"), 3);
    assert_eq!(count("SELECT count(*) FROM cpu_target_courses WHERE trial = 0"), 12);
    assert_eq!(count("SELECT count(DISTINCT instance) FROM parts WHERE trial = 0"), 2);
    assert_eq!(count("SELECT count(*) FROM level_parts WHERE instance IS NULL AND guest % 2 = 1"), 0);
    assert_eq!(count("SELECT count(*) FROM tiles WHERE trial = 1"), 2);
}
