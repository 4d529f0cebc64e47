//! The schema of the results: other versions of it, and what every folder says of it.

use crate::testing::{self, write_run};
use crate::{JournalEvent, RecordError, RunFolder, RunWriter, layout};

/// A run folder of which each file that has a schema was given another number.
fn of_schema(file: &str, schema: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), &testing::plan(1), &[]);
    let path = dir.path().join(file);
    if file == layout::RESULTS {
        rusqlite::Connection::open(path).unwrap().pragma_update(None, "user_version", schema).unwrap();
        return dir;
    }
    let text = match file {
        layout::PLAN => format!("{{\"schema\": {schema}, \"order\": \"of later days\"}}"),
        // A line of another form, that no rule for lines as they are now fits.
        layout::JOURNAL => format!("{{\"event\":{{\"kind\":\"began\",\"schema\":{schema}}},\"seal\":[]}}\n"),
        other => panic!("{other} has no schema"),
    };
    std::fs::write(path, text).unwrap();
    dir
}

#[test]
fn each_file_of_a_later_schema_is_refused_as_a_newer_tares() {
    for file in [layout::RESULTS, layout::PLAN, layout::JOURNAL] {
        for refused in [
            RunFolder::open(of_schema(file, 2).path()).unwrap_err(),
            RunWriter::open_for_resume(of_schema(file, 2).path(), "0").unwrap_err(),
        ] {
            assert!(matches!(&refused, RecordError::NewerTare { schema: 2, known: 1, .. }), "{file}: {refused}");
            let said = refused.to_string();
            assert!(said.contains(&format!("{file} was written by a newer tare (schema 2;")), "{said}");
            assert!(said.ends_with("Use that version or a later one"), "{said}");
        }
    }
}

#[test]
fn a_schema_that_no_tare_writes_is_damage() {
    for file in [layout::PLAN, layout::JOURNAL] {
        let refused = RunFolder::open(of_schema(file, 0).path()).unwrap_err();
        assert!(matches!(&refused, RecordError::Damaged { .. }), "{refused}");
        assert!(refused.to_string().contains(&format!("{file} has schema 0, which no tare writes")), "{refused}");
    }
    // A folder whose results are damaged is still read as far as it can be.
    let folder = RunFolder::open(of_schema(layout::RESULTS, 0).path()).unwrap();
    assert!(folder.verify().iter().any(|problem| problem.file == layout::RESULTS));
}

#[test]
fn every_file_says_that_its_schema_is_1() {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), &testing::plan(1), &[]);
    let folder = RunFolder::open(dir.path()).unwrap();
    assert!(matches!(folder.journal().entries[0].event, JournalEvent::RunStarted { schema: 1, .. }));
    assert_eq!((folder.plan().schema, folder.plan().study.schema), (1, 1));
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    assert_eq!(db.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).unwrap(), 1);
    let said: String = db.query_row("SELECT value FROM meta WHERE key = 'schema'", [], |row| row.get(0)).unwrap();
    assert_eq!(said, "1");
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
    // Those of Parquet are DuckDB's.
    for start in queries.filter(|start| !whole(start).contains(".parquet")) {
        let sql = format!("SELECT {}", whole(start));
        let mut query = db.prepare(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert!(query.query([]).unwrap().next().unwrap().is_some(), "{sql} gives nothing");
        ran += 1;
    }
    assert_eq!(ran, 4);
}
