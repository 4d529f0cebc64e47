//! A history in its file: what is added is read, twice is once, and what is none is refused.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tare_model::findings::Estimate;
use tare_model::history::{Effect, RunEffects};
use tare_model::metric::{Better, MetricSpec, Unit};

use super::{HISTORY_SCHEMA, add, read};
use crate::RecordError;
use crate::testing::{self, write_run};

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn run(number: u32) -> RunEffects {
    let estimate = |value: f64, low, method: &str| Estimate {
        value,
        low,
        high: Some(value * 1.1),
        level: 0.95,
        n: 12,
        method: method.to_owned(),
    };
    let effect = |case: Option<&str>, unit, fault: Option<&str>| Effect {
        case: case.map(str::to_owned),
        case_label: "a case".to_owned(),
        arm: "container".to_owned(),
        arm_label: "a container".to_owned(),
        baseline: "native".to_owned(),
        metric: MetricSpec::new("p50", "median", unit, Better::Higher).primary(),
        plan: "a".repeat(64),
        arm_plan: "b".repeat(64),
        ratio: estimate(1.0 / f64::from(number + 3), fault.map(|_| 0.1), "a method"),
        fault: fault.map(str::to_owned),
    };
    RunEffects {
        run: format!("20260102-0300{number:02}-00af"),
        root_hash: format!("{number:064x}"),
        study: "made-up".to_owned(),
        started_at: "2026-01-02T03:00:00Z".to_owned(),
        tare_version: "0.1.0".to_owned(),
        host: pairs(&[("CPU, model", "one"), ("CPU, model", "of two")]),
        notes: pairs(&[("Kernel, release", "6.1")]),
        effects: vec![
            effect(Some("idle"), Unit::Other("orders/min".to_owned()), None),
            effect(None, Unit::Bytes, Some("it is limited")),
        ],
    }
}

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.sqlite");
    (folder, file)
}

#[test]
fn what_was_added_is_read_to_the_last_bit_and_twice_is_once() {
    let (_folder, file) = fresh();
    assert_eq!(add(&file, &[run(1), run(2)]).unwrap(), [true, true]);
    assert_eq!(add(&file, &[run(2), run(3), run(3)]).unwrap(), [false, true, false]);
    assert_eq!(read(&file).unwrap(), [run(1), run(2), run(3)]);
}

#[test]
fn another_run_of_the_same_id_is_refused_and_nothing_is_added() {
    let (_folder, file) = fresh();
    add(&file, &[run(1)]).unwrap();
    let mut altered = run(1);
    altered.root_hash = "f".repeat(64);
    let refused = add(&file, &[run(2), altered]).unwrap_err();
    assert!(matches!(&refused, RecordError::OtherRun { given, .. } if given.starts_with("ff")), "{refused}");
    assert_eq!(read(&file).unwrap(), [run(1)]);
}

#[test]
fn writers_at_one_time_wait_for_each_other() {
    let (_folder, file) = fresh();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let file = &file;
            scope.spawn(move || {
                for own in 0..4 {
                    add(file, &[run(writer * 4 + own), run(99)]).unwrap();
                }
            });
        }
    });
    let mut found = read(&file).unwrap();
    found.sort_by(|a, b| a.run.cmp(&b.run));
    assert_eq!(found, (0..32).chain([99]).map(run).collect::<Vec<_>>());
}

/// The file after this statement.
fn changed(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let (folder, file) = fresh();
    add(&file, &[run(1)]).unwrap();
    Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    (folder, file)
}

#[test]
fn a_later_schema_is_refused_as_a_newer_tares() {
    for sql in ["PRAGMA user_version = 2", "PRAGMA user_version = 2; ALTER TABLE effects ADD COLUMN more TEXT"] {
        let (_folder, file) = changed(sql);
        for refused in [read(&file).unwrap_err(), add(&file, &[run(2)]).unwrap_err()] {
            assert!(matches!(refused, RecordError::NewerTare { schema: 2, known: HISTORY_SCHEMA, .. }), "{refused}");
            assert!(refused.to_string().contains("was written by a newer tare (schema 2"), "{refused}");
        }
    }
}

#[test]
fn what_is_no_history_is_refused_and_left_as_it_is() {
    let trigger = "CREATE TRIGGER more AFTER INSERT ON runs BEGIN DELETE FROM runs; END";
    let (_one, with_trigger) = changed(trigger);
    let results = tempfile::tempdir().unwrap();
    write_run(results.path(), &testing::plan(1), &[]);
    let (_two, text) = fresh();
    std::fs::write(&text, "no database, but a text that somebody wrote".repeat(30)).unwrap();
    for file in [with_trigger, results.path().join("results.sqlite"), text] {
        let before = std::fs::read(&file).unwrap();
        for refused in [read(&file).unwrap_err(), add(&file, &[run(2)]).unwrap_err()] {
            assert!(refused.to_string().contains("is no history of tare's"), "{}: {refused}", file.display());
        }
        assert_eq!(std::fs::read(&file).unwrap(), before);
    }
    let refused = read(Path::new("/nowhere/history.sqlite")).unwrap_err();
    assert!(refused.to_string().contains("tare history add"), "{refused}");
}

#[test]
fn an_addition_that_was_cut_off_is_taken_back_by_the_next() {
    let (_folder, file) = fresh();
    add(&file, &[run(1)]).unwrap();
    // A file and its journal as a kill in the middle of a transaction leaves them.
    let mut db = Connection::open(&file).unwrap();
    db.pragma_update(None, "cache_size", 1).unwrap();
    let cut_off = db.transaction().unwrap();
    for number in 10..200 {
        super::rows::insert(&cut_off, &run(number)).unwrap();
    }
    let (_copied, copy) = fresh();
    let journal = |file: &Path| file.with_extension("sqlite-journal");
    std::fs::copy(&file, &copy).unwrap();
    std::fs::copy(journal(&file), journal(&copy)).unwrap();
    let refused = read(&copy).unwrap_err();
    assert!(refused.to_string().contains("takes it back"), "{refused}");
    add(&copy, &[run(2)]).unwrap();
    assert_eq!(read(&copy).unwrap(), [run(1), run(2)]);
}
