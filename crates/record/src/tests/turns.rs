//! Trials in turns: how they took them is read as it was written.

use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;
use tare_model::turns::{ROUNDS_MAX, Waiting};

use super::each_is_reported;
use crate::testing::{self, write_run};
use crate::{RecordError, RunFolder, RunWriter, layout};

fn read_back(record: &TrialRecord) -> TrialRecord {
    let dir = tempfile::tempdir().unwrap();
    // Trials of a set count only whole; this one stands by itself.
    let plan = Plan { sets: Vec::new(), ..testing::turns_plan(1) };
    write_run(dir.path(), &plan, std::slice::from_ref(record));
    RunFolder::open(dir.path()).unwrap().trial(record.planned.index).unwrap().unwrap()
}

#[test]
fn turns_read_as_they_were_written() {
    let plan = testing::turns_plan(1);
    let record = testing::turns_trial(&plan, 1);
    assert_eq!(record.turns.as_ref().unwrap().done.counts.len(), 500);
    assert_eq!(read_back(&record), record);
    type Alter = fn(&mut tare_model::turns::TrialTurns);
    let alterations: [Alter; 6] = [
        |taken| taken.waiting_cpus = None,
        |taken| taken.turns.spec.waiting = Waiting::Frozen,
        |taken| taken.done.counts.truncate(7),
        |taken| taken.done.counts.clear(),
        |taken| taken.turns.places.clear(),
        |taken| (taken.turns.spec.commands, taken.done.began_ns) = (Some(500), (7..507).collect()),
    ];
    for alter in alterations {
        let mut record = record.clone();
        alter(record.turns.as_mut().unwrap());
        assert_eq!(read_back(&record), record);
    }
}

#[test]
fn a_case_in_pairs_has_more_blocks_than_its_study_and_no_trial_beyond_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = testing::pairs_plan(2);
    let trials: Vec<_> = (0..8).map(|index| testing::turns_trial(&plan, index)).collect();
    write_run(dir.path(), &plan, &trials);
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!((folder.trials().unwrap(), folder.verify()), (trials, Vec::new()));
    plan.trials[7].block = 5;
    std::fs::write(dir.path().join(layout::PLAN), serde_json::to_vec(&plan).unwrap()).unwrap();
    let refused = RunFolder::open(dir.path()).unwrap_err().to_string();
    assert!(refused.contains("a trial in place 7 that does not belong to its study"), "{refused}");
}

#[test]
fn each_alteration_is_reported() {
    each_is_reported(
        |plan| vec![testing::turns_trial(plan, 0), testing::trial(plan, 1), testing::trial(plan, 2)],
        &[
            "UPDATE trial_turns SET start_ns = start_ns + 1",
            "UPDATE trial_turns SET waiting = 'frozen'",
            "UPDATE trial_turns SET measured_ns = measured_ns / 2",
            "UPDATE trial_turns SET overran = 0",
            "UPDATE trial_turns SET waiting_cpus = NULL",
            "UPDATE turns SET operations = operations + 1 WHERE round = 70",
            "UPDATE turns SET operations = NULL WHERE round = 70",
            "UPDATE turns SET place = 0 WHERE place = 1 AND round < 3",
            "DELETE FROM turns WHERE round = 499",
            "DELETE FROM trial_turns",
        ],
    );
}

#[test]
fn more_turns_than_a_run_can_have_are_neither_written_nor_read() {
    let plan = testing::turns_plan(1);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
    let mut record = testing::turns_trial(&plan, 0);
    record.turns.as_mut().unwrap().turns.places = vec![0; ROUNDS_MAX as usize + 1];
    let refused = writer.append(&record).unwrap_err();
    assert!(matches!(refused, RecordError::TooLarge { value: 131_073, .. }), "{refused}");
    let record = testing::turns_trial(&plan, 0);
    writer.append(&record).unwrap();
    drop(writer);
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    let more = "WITH RECURSIVE n(i) AS (SELECT 500 UNION ALL SELECT i + 1 FROM n WHERE i < 140000)
                INSERT INTO turns SELECT 0, i, 0, NULL, NULL, NULL, NULL, NULL FROM n";
    db.execute(more, []).unwrap();
    let read = crate::store::read_trial(&db, 0).unwrap().unwrap().turns.unwrap();
    assert_eq!(read.turns.places.len(), ROUNDS_MAX as usize);
}
