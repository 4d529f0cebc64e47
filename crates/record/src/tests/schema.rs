//! Folders of other versions.

use std::path::{Path, PathBuf};

use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;

use crate::testing::{self, write_run};
use crate::{RecordError, RunFolder, RunWriter, layout};

fn fixture(schema: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/schema-{schema}"))
}

/// The trials of the fixtures: with guests, drivers and steps since there are tables for them, then with ascents, then with
/// searches and request types, then with instances, tiles and shares of CPU that were held.
fn trial_of(schema: u32, plan: &Plan, index: u32) -> TrialRecord {
    match schema {
        1 => testing::trial(plan, index),
        2 => testing::store_trial(plan, index),
        3 => testing::density_trial(plan, index, &[1, 4, 6]),
        4 => testing::capacity_trial(plan, index),
        _ => testing::hold_trial(plan, index),
    }
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

/// What each schema added, taken away again.
const TAKEN_AWAY: [&str; 4] = [
    "DROP VIEW parts; DROP VIEW step_bins; DROP TABLE stored_part_metrics; DROP TABLE stored_parts;
     DROP TABLE stored_step_bins; DROP TABLE steps;",
    "DROP VIEW level_metrics; DROP VIEW level_bins; DROP VIEW level_parts; DROP TABLE courses;
     DROP TABLE stored_level_part_metrics; DROP TABLE stored_level_parts; DROP TABLE stored_level_names;
     DROP TABLE stored_level_metrics; DROP TABLE stored_level_bins; DROP TABLE levels; DROP TABLE ascents;",
    "DROP VIEW requests; DROP VIEW request_bins; DROP VIEW try_metrics; DROP VIEW try_counts; DROP VIEW try_bins;
     DROP VIEW try_flags; DROP VIEW try_cpu; DROP TABLE stored_request_bins; DROP TABLE stored_requests;
     DROP TABLE stored_try_metrics; DROP TABLE stored_try_counts; DROP TABLE stored_try_bins; DROP TABLE stored_try_flags;
     DROP TABLE stored_try_cpu; DROP TABLE tries; DROP TABLE searches;",
    "DROP VIEW parts; DROP VIEW level_parts; DROP TABLE stored_part_instances; DROP TABLE stored_level_part_instances;
     DROP TABLE tiles; DROP TABLE hold_courses; DROP TABLE hold_steps; DROP TABLE holds;",
];

/// The views that schema 5 has replaced.
fn views_of_schema_4() -> Vec<String> {
    let db = rusqlite::Connection::open(fixture(4).join(layout::RESULTS)).unwrap();
    let sql = "SELECT sql FROM sqlite_master WHERE name IN ('parts', 'level_parts')";
    let mut views = db.prepare(sql).unwrap();
    views.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// A run that an older tare began is continued by this one: what it lacks is added, what it holds stays.
#[test]
fn a_folder_of_each_older_schema_is_continued_with_the_tables_of_the_newest() {
    for older in 1..crate::RESULTS_SCHEMA {
        let plan = testing::plan(1);
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), "id", "0").unwrap();
        writer.append(&trial_of(older, &plan, 0)).unwrap();
        drop(writer);
        // What was added since is taken away again, which leaves the file as the older schema made it.
        let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
        for added in TAKEN_AWAY[older as usize - 1..].iter().rev() {
            db.execute_batch(added).unwrap();
            // Two views have another column since schema 5.
            if *added == TAKEN_AWAY[3] {
                for view in views_of_schema_4() {
                    db.execute_batch(&view).unwrap();
                }
            }
        }
        db.execute("UPDATE meta SET value = ?1 WHERE key = 'schema'", [older.to_string()]).unwrap();
        db.pragma_update(None, "user_version", older).unwrap();
        let tables = |db: &rusqlite::Connection| -> Vec<String> {
            let mut names = db.prepare("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY name").unwrap();
            names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let kept = rusqlite::Connection::open(fixture(older).join(layout::RESULTS)).unwrap();
        assert_eq!(tables(&db), tables(&kept), "it is a file of schema {older}");
        drop((db, kept));
        assert_eq!(RunFolder::open(dir.path()).unwrap().trial(0).unwrap(), Some(trial_of(older, &plan, 0)));

        let mut writer = RunWriter::open_for_resume(dir.path(), "0").unwrap();
        let newest = trial_of(crate::RESULTS_SCHEMA, &plan, 1);
        writer.append(&newest).unwrap();
        drop(writer);
        let folder = RunFolder::open(dir.path()).unwrap();
        assert_eq!(folder.trials().unwrap(), [trial_of(older, &plan, 0), newest]);
        assert_eq!(folder.results().unwrap().meta("schema"), Some(crate::RESULTS_SCHEMA.to_string()));
    }
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

#[test]
fn the_folder_explains_every_table_and_view() {
    let db = rusqlite::Connection::open(fixture(crate::RESULTS_SCHEMA).join(layout::RESULTS)).unwrap();
    let mut names = db.prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    // What is stored behind a view, and SQLite's own, nobody has to know.
    let shown = names.iter().filter(|name| !name.starts_with("stored_") && !name.starts_with("sqlite_"));
    let unexplained: Vec<&String> = shown.filter(|name| !layout::README_TEXT.contains(name.as_str())).collect();
    assert_eq!(unexplained, [] as [&String; 0]);
}
