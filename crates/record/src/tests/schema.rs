//! The schema of the results: other versions of it, and what every folder says of it.

use crate::testing::{self, write_run};
use crate::{RecordError, RunFolder, layout};

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
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), &testing::plan(1), &[]);
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    let mut names = db.prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    // What is stored behind a view, and SQLite's own, nobody has to know.
    let shown = names.iter().filter(|name| !name.starts_with("stored_") && !name.starts_with("sqlite_"));
    let unexplained: Vec<&String> = shown.filter(|name| !layout::README_TEXT.contains(name.as_str())).collect();
    assert_eq!(unexplained, [] as [&String; 0]);
}

#[test]
fn every_query_that_the_folder_names_runs() {
    let plan = testing::plan(1);
    let trials =
        [testing::density_trial(&plan, 0, &[1, 4]), testing::capacity_trial(&plan, 1), testing::trial(&plan, 2)];
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), &plan, &trials);
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    // From the word to the sign that ends the query, in SQL or in Python.
    let queries = layout::README_TEXT.split("SELECT ").skip(1).map(|rest| &rest[..rest.find([';', '\'']).unwrap()]);
    let whole = |start: &str| {
        let at = layout::README_TEXT.find(start).unwrap();
        let rest = &layout::README_TEXT[at..];
        rest[..rest.find("'''").into_iter().chain(rest.find(';')).min().unwrap()].to_owned()
    };
    let mut ran = 0;
    for start in queries {
        let sql = format!("SELECT {}", whole(start));
        let mut query = db.prepare(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert!(query.query([]).unwrap().next().unwrap().is_some(), "{sql} gives nothing");
        ran += 1;
    }
    assert_eq!(ran, 4);
}
