//! Tests of whole folders: what is written is read, what is damaged is reported, what a crash leaves is repaired.
mod cpu_target;
mod crash;
mod folder;
mod hostile;
mod scale_up;
mod schema;
mod search;
mod turns;

use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;

use crate::testing::{self, write_run};
use crate::{ProblemKind, RunFolder, layout};

/// Writes a run of these trials for each statement, alters it with the statement, and asserts that the alteration alone is reported.
fn each_is_reported(trials: impl Fn(&Plan) -> Vec<TrialRecord>, statements: &[&str]) {
    for sql in statements {
        let dir = tempfile::tempdir().unwrap();
        let plan = testing::plan(1);
        write_run(dir.path(), &plan, &trials(&plan));
        assert_eq!(RunFolder::open(dir.path()).unwrap().verify(), vec![]);
        let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
        db.pragma_update(None, "foreign_keys", false).unwrap();
        assert!(db.execute(sql, []).unwrap() > 0, "{sql} changed nothing");
        drop(db);
        let kinds: Vec<_> = RunFolder::open(dir.path()).unwrap().verify().into_iter().map(|p| p.kind).collect();
        assert_eq!(kinds, [ProblemKind::Altered], "{sql}");
    }
}
