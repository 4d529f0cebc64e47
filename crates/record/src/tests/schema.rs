//! Folders of other versions.

use std::path::{Path, PathBuf};

use crate::testing::{self, write_run};
use crate::{RecordError, RunFolder, layout};

fn fixture(schema: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/schema-{schema}"))
}

/// `cargo test -p tare-record make_fixture -- --ignored`, once for each new schema. A fixture that is there is never
/// made again: it stands for the folders that users have.
#[test]
#[ignore = "makes the fixture of the present schema"]
fn make_fixture() {
    let dir = fixture(crate::RESULTS_SCHEMA);
    assert!(!dir.exists(), "{} is there already", dir.display());
    let plan = testing::plan(2);
    let trials: Vec<_> = (0..6).map(|index| testing::trial(&plan, index)).collect();
    write_run(&dir, &plan, &trials);
}

#[test]
fn folders_of_every_schema_so_far_are_read() {
    for schema in 1..=crate::RESULTS_SCHEMA {
        let folder = RunFolder::open(&fixture(schema)).unwrap();
        assert_eq!(folder.verify(), vec![], "schema {schema}: digests still match");
        let trials = folder.trials().unwrap();
        assert_eq!(trials.len(), 6);
        assert_eq!(trials[4], testing::trial(folder.plan(), 4));
        assert_eq!(folder.facts().run_id, "20260102-made-up");
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
