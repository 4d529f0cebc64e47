//! Folders that a stranger made to do harm, or to be believed.

use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use tare_model::plan::Plan;
use tare_model::study::CaseSchedule;

use crate::journal::{Journal, JournalEvent, JournalWriter};
use crate::testing::{self, RUN_ID, write_run};
use crate::{Folder, ProblemKind, RecordError, RunFolder, RunWriter, layout};

/// What is put in the place of a file, and how.
type Place<'a> = (&'a str, &'a dyn Fn(&Path));
/// What a plan is refused with, and what breaks it.
type Break<'a> = (&'a str, &'a dyn Fn(&mut Plan));

fn small_run() -> (tempfile::TempDir, Plan) {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(1);
    let trials: Vec<_> = (0..3).map(|index| testing::trial(&plan, index)).collect();
    write_run(dir.path(), &plan, &trials);
    (dir, plan)
}

fn whats(dir: &Path) -> Vec<String> {
    RunFolder::open(dir).unwrap().verify().into_iter().map(|problem| problem.what).collect()
}

/// Writes the journal anew from these events, so that its chain is sound.
fn rewrite_journal(dir: &Path, events: impl Fn(Vec<JournalEvent>) -> Vec<JournalEvent>) {
    let folder = Folder::open(dir).unwrap();
    let events = events(Journal::read(&folder).unwrap().entries.into_iter().map(|entry| entry.event).collect());
    folder.remove(layout::JOURNAL).unwrap();
    let mut writer = JournalWriter::create(&folder).unwrap();
    events.iter().for_each(|event| writer.append(event).unwrap());
}

#[test]
fn what_is_no_plain_file_is_neither_read_nor_written_through() {
    let outside = tempfile::tempdir().unwrap();
    let canary = outside.path().join("canary");
    std::fs::write(&canary, "untouched").unwrap();
    let places: [Place<'_>; 5] = [
        ("a symbolic link", &|at| symlink(&canary, at).unwrap()),
        ("a symbolic link", &|at| symlink("/dev/zero", at).unwrap()),
        ("a FIFO", &|at| assert!(Command::new("mkfifo").arg(at).status().unwrap().success())),
        ("a directory", &|at| std::fs::create_dir(at).unwrap()),
        ("a file with several names (a hard link)", &|at| std::fs::hard_link(&canary, at).unwrap()),
    ];
    for (what, place) in places {
        for name in
            [layout::PLAN, layout::JOURNAL, layout::STUDY, layout::ENVIRONMENT, layout::RESULTS, layout::RESULTS_WAL]
        {
            let (dir, _) = small_run();
            let at = dir.path().join(name);
            let _ = std::fs::remove_file(&at);
            place(&at);
            let refused = RunFolder::open(dir.path()).and_then(|folder| folder.trials()).unwrap_err();
            assert!(matches!(&refused, RecordError::NotPlain { what: kind, .. } if *kind == what), "{name}: {refused}");
            assert!(RunWriter::open_for_resume(dir.path(), "0").is_err(), "{name}");
        }
        // What is made from the run replaces whatever has its name, and a directory is no file to replace.
        let (dir, _) = small_run();
        let at = dir.path().join("trials.csv");
        place(&at);
        let written = RunFolder::open(dir.path()).unwrap().write_file("trials.csv", b"figures");
        match what {
            "a directory" => assert!(written.is_err()),
            _ => assert!(written.is_ok() && at.symlink_metadata().unwrap().is_file()),
        }
        assert!(!at.symlink_metadata().unwrap().file_type().is_fifo());
    }
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), "untouched");
}

#[test]
fn a_folder_that_is_continued_leads_nowhere_else() {
    let outside = tempfile::tempdir().unwrap();
    let canary = outside.path().join("canary");
    std::fs::write(&canary, "untouched").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(1);
    drop(RunWriter::create(dir.path(), "", &plan, &testing::environment(), RUN_ID, "0").unwrap());
    let journal = dir.path().join(layout::JOURNAL);
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{text}{{\"torn")).unwrap();
    symlink(&canary, dir.path().join(layout::JOURNAL_TORN)).unwrap();
    assert!(matches!(RunWriter::open_for_resume(dir.path(), "0"), Err(RecordError::NotPlain { .. })));
    std::fs::remove_file(dir.path().join(layout::JOURNAL_TORN)).unwrap();

    // A rollback journal can name a file that SQLite then removes: it is gone before SQLite looks.
    std::fs::write(dir.path().join(layout::RESULTS_JOURNAL), [0xd9; 4096]).unwrap();
    drop(RunWriter::open_for_resume(dir.path(), "0").unwrap());
    assert!(!dir.path().join(layout::RESULTS_JOURNAL).exists());
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), "untouched");
}

#[test]
fn a_new_folder_is_its_owners_alone_and_files_are_as_open_as_their_folder() {
    let outside = tempfile::tempdir().unwrap();
    let dir = outside.path().join("runs/first");
    write_run(&dir, &testing::plan(1), &[]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for entry in std::fs::read_dir(&dir).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    RunFolder::open(&dir).unwrap().write_file(layout::REPORT_MARKDOWN, b"text").unwrap();
    assert_eq!(mode(&dir.join(layout::REPORT_MARKDOWN)), 0o644);
    assert!(RunFolder::open(&dir).unwrap().write_file("../other", b"text").is_err());
    assert!(RunFolder::open(&dir).unwrap().write_file("other.csv", b"text").is_err());
}

#[test]
fn files_longer_than_their_kind_are_not_read() {
    for name in [layout::PLAN, layout::JOURNAL, layout::STUDY, layout::ENVIRONMENT, layout::RESULTS] {
        let (dir, _) = small_run();
        let most = layout::most_bytes(name).unwrap();
        std::fs::File::options().write(true).open(dir.path().join(name)).unwrap().set_len(most + 1).unwrap();
        let refused = RunFolder::open(dir.path()).and_then(|folder| folder.trials()).unwrap_err();
        assert!(matches!(refused, RecordError::TooLong { .. }), "{name}: {refused}");
    }
}

#[test]
fn a_database_with_anything_but_the_tables_of_tare_is_refused_before_it_is_asked() {
    let recursive = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS trial FROM n";
    for (sql, named) in [
        (format!("DROP TABLE meta; CREATE VIEW meta AS {recursive}"), "`meta`"),
        ("CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END".to_owned(), "trigger `t`"),
        ("CREATE INDEX i ON trials (abs(block))".to_owned(), "index `i`"),
        ("ALTER TABLE trials ADD COLUMN g AS (zeroblob(1000000000))".to_owned(), "table `trials`"),
        ("CREATE VIRTUAL TABLE f USING fts5(a)".to_owned(), "tare does not make"),
        ("DROP VIEW samples".to_owned(), "view `samples`"),
        ("CREATE TABLE \"\u{1b}[2J\" (a)".to_owned(), "`\\u{1b}[2J`"),
    ] {
        let (dir, _) = small_run();
        let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
        db.pragma_update(None, "foreign_keys", false).unwrap();
        db.execute_batch(&sql).unwrap();
        drop(db);
        let folder = RunFolder::open(dir.path()).unwrap();
        let refused = folder.trials().unwrap_err().to_string();
        assert!(refused.contains(named), "{sql}: {refused}");
        assert!(folder.verify().iter().any(|problem| problem.kind == ProblemKind::Unreadable), "{sql}");
        assert!(RunWriter::open_for_resume(dir.path(), "0").is_err());
    }
}

#[test]
fn more_trials_than_the_plan_has_are_not_even_listed() {
    let (dir, plan) = small_run();
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    let columns = "block, case_id, arm, started_at, wall_s, load_s, outcome";
    for trial in 0..2 * i64::try_from(plan.trials.len()).unwrap() {
        let sql = format!("INSERT INTO trials (trial, {columns}) SELECT ?1, {columns} FROM trials WHERE trial = 0");
        db.execute(&sql, [1000 + trial]).unwrap();
    }
    drop(db);
    let refused = RunFolder::open(dir.path()).unwrap().trials().unwrap_err().to_string();
    assert!(refused.contains("more trials than the plan has"), "{refused}");
    assert!(whats(dir.path()).iter().any(|what| what.contains("more trials than the plan has")));
}

#[test]
fn a_file_beside_the_results_that_is_no_log_is_not_copied() {
    let (dir, plan) = small_run();
    let log = std::fs::File::create(dir.path().join(layout::RESULTS_WAL)).unwrap();
    log.set_len(200 << 20).unwrap();
    assert_eq!(RunFolder::open(dir.path()).unwrap().trials().unwrap().len(), plan.trials.len().min(3));
    std::os::unix::fs::FileExt::write_all_at(&log, &[0x37, 0x7f, 0x06, 0x83], 0).unwrap();
    let refused = RunFolder::open(dir.path()).unwrap().trials().unwrap_err();
    assert!(matches!(refused, RecordError::TooLong { .. }), "{refused}");
}

#[test]
fn a_text_that_would_fill_the_memory_is_not_read() {
    let (dir, _) = small_run();
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    db.execute("UPDATE metric_specs SET label = printf('%.*c', 5000000, 'x')", []).unwrap();
    drop(db);
    let refused = RunFolder::open(dir.path()).unwrap().trials().unwrap_err().to_string();
    assert!(refused.contains("too big"), "{refused}");
}

#[test]
fn a_plan_whose_numbers_and_names_do_not_agree_is_refused() {
    let breaks: [Break<'_>; 9] = [
        ("4294967295 blocks and 3 trials", &|plan| plan.study.blocks = u32::MAX),
        ("a name of 5000000 bytes", &|plan| plan.study.arms[0].label = "x".repeat(5_000_000)),
        ("a trial in place 1", &|plan| plan.trials[1].index = 7),
        ("a trial in place 2", &|plan| plan.trials[2].arm = "other".to_owned()),
        ("a trial in place 0", &|plan| plan.trials[0].block = 2),
        ("a set in place 0", &|plan| plan.sets = vec![vec![0, u32::MAX]]),
        ("a set in place 1", &|plan| plan.sets = vec![vec![0, 1], vec![1, 2]]),
        ("a set in place 0", &|plan| plan.sets = vec![vec![]]),
        ("4294967295 pairs of 3 arms", &|plan| {
            plan.study.cases[0].schedule = testing::pairs_plan(1).study.cases[0].schedule.clone();
            if let CaseSchedule::Pairs { pairs, .. } = &mut plan.study.cases[0].schedule {
                *pairs = u32::MAX;
            }
        }),
    ];
    for (what, alter) in breaks {
        let (dir, mut plan) = small_run();
        alter(&mut plan);
        std::fs::write(dir.path().join(layout::PLAN), serde_json::to_vec(&plan).unwrap()).unwrap();
        let refused = RunFolder::open(dir.path()).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
    for text in [format!("{{\"a\":{}", "[".repeat(1_000_000)), format!("{{\"a\":[{}1]}}", "[],".repeat(1_000_000))] {
        let (dir, _) = small_run();
        std::fs::write(dir.path().join(layout::PLAN), text).unwrap();
        assert!(matches!(RunFolder::open(dir.path()), Err(RecordError::Damaged { .. })));
    }
}

/// Each of these is a journal whose chain is sound.
#[test]
fn what_a_journal_leaves_out_is_as_bad_as_what_it_says_otherwise() {
    type Alter = fn(Vec<JournalEvent>) -> Vec<JournalEvent>;
    fn with_first(
        mut events: Vec<JournalEvent>,
        alter: fn(&mut String, &mut Vec<(String, String)>),
    ) -> Vec<JournalEvent> {
        if let JournalEvent::RunStarted { run_id, files, .. } = &mut events[0] {
            alter(run_id, files);
        }
        events
    }
    let alterations: [(&str, Alter); 9] = [
        ("does not name just", |events| with_first(events, |_, files| files.clear())),
        ("does not name just", |events| with_first(events, |_, files| files.push(files[0].clone()))),
        ("does not name just", |events| with_first(events, |_, files| files[0].0 = "/etc/passwd".to_owned())),
        ("an id that tare does not make", |events| with_first(events, |id, _| *id = "../../../etc".to_owned())),
        ("of another run", |events| with_first(events, |id, _| *id = "20260102-030000-0000".to_owned())),
        ("begins a run once more", |events| {
            [events.clone(), vec![events[0].clone(), JournalEvent::RunFinished]].concat()
        }),
        ("acknowledged twice", |mut events| {
            events.insert(events.len() - 1, events[2].clone());
            events
        }),
        ("its first line is gone", |events| events[1..].to_vec()),
        // A trial whose figures somebody did not like.
        ("withdraws trials that are no unfinished set", |mut events| {
            let (indices, reason) = (vec![0], "a set".to_owned());
            events.insert(events.len() - 1, JournalEvent::TrialsWithdrawn { indices, reason });
            events
        }),
    ];
    for (what, alter) in alterations {
        let (dir, _) = small_run();
        assert_eq!(whats(dir.path()), [] as [String; 0]);
        rewrite_journal(dir.path(), alter);
        let found = whats(dir.path());
        assert!(found.iter().any(|said| said.contains(what)), "{what}: {found:?}");
    }
}

#[test]
fn figures_without_their_acknowledgement_count_for_nothing() {
    let altered = |finished: bool, gone: &'static [u32]| {
        let (dir, _) = small_run();
        rewrite_journal(dir.path(), |events| {
            let stays = |event: &JournalEvent| match event {
                JournalEvent::TrialAcknowledged { index, .. } => !gone.contains(index),
                JournalEvent::RunFinished => finished,
                _ => true,
            };
            events.into_iter().filter(stays).collect()
        });
        let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
        db.execute("UPDATE metrics SET value = value * 2 WHERE trial >= 1", []).unwrap();
        dir
    };
    // One trial of a run that was cut short may be there so; its figures are not used, and it is measured anew.
    let dir = altered(false, &[2]);
    rewrite_results(dir.path(), 1);
    let kinds = |dir: &Path| -> Vec<_> { RunFolder::open(dir).unwrap().verify().iter().map(|p| p.kind).collect() };
    assert_eq!(kinds(dir.path()), [ProblemKind::Unacknowledged(2), ProblemKind::CutShort]);
    assert_eq!(RunFolder::open(dir.path()).unwrap().trials().unwrap().len(), 2);
    let writer = RunWriter::open_for_resume(dir.path(), "0").unwrap();
    assert!(!writer.recorded().contains(&2));
    // More of them, or one in a run that went through its plan, no crash leaves.
    for dir in [altered(false, &[1, 2]), altered(true, &[2])] {
        assert!(kinds(dir.path()).contains(&ProblemKind::Altered));
        assert!(RunWriter::open_for_resume(dir.path(), "0").is_err());
        assert!(RunFolder::open(dir.path()).unwrap().trials().unwrap().len() < 3);
    }
}

/// Puts the metrics of a trial back to what they were.
fn rewrite_results(dir: &Path, trial: u32) {
    let db = rusqlite::Connection::open(dir.join(layout::RESULTS)).unwrap();
    db.execute("UPDATE metrics SET value = value / 2 WHERE trial = ?1", [trial]).unwrap();
}
