//! Folders of other versions.

use std::path::{Path, PathBuf};

use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;

use crate::testing::{self, write_run};
use crate::{RecordError, RunFolder, RunWriter, layout};

fn fixture(schema: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/schema-{schema}"))
}

/// The trials of the fixtures: with guests, drivers and steps since there are tables for them.
fn trial_of(schema: u32, plan: &Plan, index: u32) -> TrialRecord {
    if schema < 2 { testing::trial(plan, index) } else { testing::store_trial(plan, index) }
}

/// `cargo test -p tare-record make_fixture -- --ignored`, once for each new schema. A fixture that is there is never
/// made again: it stands for the folders that users have.
#[test]
#[ignore = "makes the fixture of the present schema"]
fn make_fixture() {
    let dir = fixture(crate::RESULTS_SCHEMA);
    assert!(!dir.exists(), "{} is there already", dir.display());
    let plan = testing::plan(2);
    let trials: Vec<_> = (0..6).map(|index| trial_of(crate::RESULTS_SCHEMA, &plan, index)).collect();
    write_run(&dir, &plan, &trials);
}

#[test]
fn folders_of_every_schema_so_far_are_read() {
    for schema in 1..=crate::RESULTS_SCHEMA {
        let folder = RunFolder::open(&fixture(schema)).unwrap();
        assert_eq!(folder.verify(), vec![], "schema {schema}: digests still match");
        let trials = folder.trials().unwrap();
        assert_eq!(trials.len(), 6);
        assert_eq!(trials[4], trial_of(schema, folder.plan(), 4));
        assert_eq!(folder.facts().run_id, "20260102-made-up");
    }
}

/// A run that an older tare began is continued by this one: what it lacks is added, what it holds stays.
#[test]
fn a_folder_of_the_first_schema_is_continued_with_the_tables_of_the_newest() {
    let plan = testing::plan(1);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), "id", "0").unwrap();
    writer.append(&testing::trial(&plan, 0)).unwrap();
    drop(writer);
    // What schema 2 added is taken away again, which leaves the file as the first schema made it.
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    db.execute_batch(
        "DROP VIEW parts; DROP VIEW step_bins; DROP TABLE stored_part_metrics; DROP TABLE stored_parts;
         DROP TABLE stored_step_bins; DROP TABLE steps; UPDATE meta SET value = '1' WHERE key = 'schema';
         PRAGMA user_version = 1;",
    )
    .unwrap();
    let tables = |db: &rusqlite::Connection| -> Vec<String> {
        let mut names = db.prepare("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY name").unwrap();
        names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let first = rusqlite::Connection::open(fixture(1).join(layout::RESULTS)).unwrap();
    assert_eq!(tables(&db), tables(&first), "it is a file of the first schema");
    drop((db, first));
    assert_eq!(RunFolder::open(dir.path()).unwrap().trial(0).unwrap(), Some(testing::trial(&plan, 0)));

    let mut writer = RunWriter::open_for_resume(dir.path(), "0").unwrap();
    writer.append(&testing::store_trial(&plan, 1)).unwrap();
    drop(writer);
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!(folder.trials().unwrap(), [testing::trial(&plan, 0), testing::store_trial(&plan, 1)]);
    assert_eq!(folder.results().unwrap().meta("schema").as_deref(), Some("2"));
}

#[test]
fn folders_of_later_schemas_are_refused_by_name() {
    let plan = testing::plan(1);
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), &plan, &[]);
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    db.pragma_update(None, "user_version", 7).unwrap();
    drop(db);
    let refused = RunFolder::open(dir.path()).unwrap_err();
    assert!(matches!(&refused, RecordError::NewerTare { schema: 7, .. }), "{refused}");
    assert!(refused.to_string().contains("written by a newer tare (schema 7;"), "{refused}");

    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), &plan, &[]);
    std::fs::write(dir.path().join(layout::PLAN), r#"{"schema": 2, "order": "of later days"}"#).unwrap();
    assert!(matches!(RunFolder::open(dir.path()), Err(RecordError::NewerTare { schema: 2, .. })));
}
