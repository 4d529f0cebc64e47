//! Databases with more than tables in them, or damaged.

use std::path::Path;

use rusqlite::Connection;
use tare_record::layout;

use super::{Case, Must, flip, random};

/// Statements that leave a database which must be refused, and what they do.
const STATEMENTS: [(&str, &str); 20] = [
    (
        "a recursive view in place of a table",
        "DROP TABLE meta; CREATE VIEW meta AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
         SELECT i AS key, i AS value FROM n",
    ),
    (
        "a recursive view beside the tables",
        "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    ),
    ("a trigger", "CREATE TRIGGER t AFTER UPDATE ON trials BEGIN DELETE FROM trials; END"),
    ("an index by an expression", "CREATE INDEX i ON trials (abs(block))"),
    ("a generated column", "ALTER TABLE trials ADD COLUMN g AS (zeroblob(1000000000))"),
    ("a virtual table", "CREATE VIRTUAL TABLE f USING fts5(a)"),
    ("a name that commands a terminal", "CREATE TABLE \"\u{1b}[2J\u{202e}\" (a)"),
    ("a view less", "DROP VIEW samples"),
    ("a later schema", "PRAGMA user_version = 7"),
    ("no schema", "PRAGMA user_version = 0"),
    ("a schema that cannot be parsed", "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = '((((' WHERE name = 'trials'"),
    (
        "two tables in one place",
        "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'facts')
         WHERE name = 'metrics'",
    ),
    ("a metric that was doubled", "UPDATE metrics SET value = value * 2 WHERE trial = 0 AND metric = 'operations_per_s'"),
    ("a trial less", "DELETE FROM trials WHERE trial = 2"),
    ("a trial more", "INSERT INTO trials SELECT 3, block, case_id, arm, started_at, 1, 1, 'completed', NULL, NULL, 1, 2 FROM trials LIMIT 1"),
    ("a trial with a negative number", "INSERT INTO trials SELECT -1, block, case_id, arm, started_at, 1, 1, 'failed', 'drive', '', 1, 2 FROM trials LIMIT 1"),
    ("a label of 5 MB", "UPDATE metric_specs SET label = printf('%.*c', 5000000, 'x')"),
    ("turns of a trial that had none", "INSERT INTO trial_turns VALUES (0, 0, 2, 1, 0, 0, 'idle', 1, 0, NULL, NULL)"),
    (
        "more turns than a trial may have",
        "INSERT INTO trial_turns VALUES (0, 0, 2, 1, 0, 0, 'idle', 1, 0, NULL, NULL);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
         INSERT INTO turns SELECT 0, i, 0, 1, 1, 1, 1, NULL FROM n",
    ),
    ("results of another plan", "UPDATE meta SET value = 'other' WHERE key = 'plan_hash'"),
];
const FLIPS: u32 = 8;
const CUTS: u32 = 4;
const LOGS: u32 = 2;

/// How many cases there are.
pub(super) const CASES: u32 = STATEMENTS.len() as u32 + FLIPS + CUTS + LOGS;

/// Makes a case.
pub(super) fn make(number: u32, folder: &Path) -> Case {
    let file = folder.join(layout::RESULTS);
    if let Some((name, sql)) = STATEMENTS.get(number as usize) {
        let db = Connection::open(&file).unwrap();
        db.pragma_update(None, "foreign_keys", false).unwrap();
        db.execute_batch(sql).unwrap();
        return Case::new(format!("results with {name}"), Must::Refused);
    }
    let number = number - STATEMENTS.len() as u32;
    if number < FLIPS {
        flip(&file, u64::from(number));
        return Case::new(format!("results with a bit flipped ({number})"), Must::RefusedOrSame);
    }
    let number = number - FLIPS;
    if number < CUTS {
        let length = file.metadata().unwrap().len() * u64::from(number) / u64::from(CUTS) + u64::from(number % 2);
        std::fs::File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
        return Case::new(format!("results cut to {number} quarters"), Must::Refused);
    }
    let log = folder.join(layout::RESULTS_WAL);
    let noise: Vec<u8> = (0..40_000).map(|at| random(at) as u8).collect();
    // With the beginning of a true log, and without (sqlite.org/fileformat2.html, section 4.1).
    let head: &[u8] = if number == CUTS { &[0x37, 0x7f, 0x06, 0x82, 0x00, 0x2d, 0xe2, 0x18] } else { &[] };
    std::fs::write(log, [head, &noise].concat()).unwrap();
    Case::new(format!("a log of noise that begins with {} true bytes", head.len()), Must::RefusedOrSame)
}
