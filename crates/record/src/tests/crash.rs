//! Folders as a crash, a full disk or a read-only mount leaves them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::testing;
use crate::{JournalEvent, ProblemKind, RecordError, RunFolder, RunWriter, layout};

fn copy_folder(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

/// Three trials, the writer still open: what is on disk is what a kill -9 would leave.
fn killed_after_three() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(2);
    let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
    for index in 0..3 {
        writer.append(&testing::trial(&plan, index)).unwrap();
    }
    assert!(dir.path().join(layout::RESULTS_WAL).metadata().unwrap().len() > 0, "the log is what this is about");
    copy_folder(dir.path())
}

#[test]
fn a_killed_run_keeps_what_was_acknowledged_and_is_continued() {
    let dir = killed_after_three();
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!(folder.trials().unwrap().len(), 3);
    assert_eq!(folder.verify().iter().map(|p| p.kind).collect::<Vec<_>>(), vec![ProblemKind::CutShort]);
    let mut writer = RunWriter::open_for_resume(dir.path(), "0").unwrap();
    assert!(writer.repairs().is_empty());
    let plan = writer.plan().clone();
    for index in 3..6 {
        assert!(!writer.recorded().contains(&index));
        writer.append(&testing::trial(&plan, index)).unwrap();
    }
    writer.journal(&JournalEvent::RunFinished).unwrap();
    drop(writer);
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!(folder.verify(), vec![]);
    assert_eq!(folder.trials().unwrap(), (0..6).map(|i| testing::trial(&plan, i)).collect::<Vec<_>>());
}

#[test]
fn a_torn_line_is_kept_aside_and_a_trial_without_acknowledgement_counts_for_nothing() {
    let dir = killed_after_three();
    let journal = dir.path().join(layout::JOURNAL);
    let text = std::fs::read_to_string(&journal).unwrap();
    let torn_at = text.trim_end().rfind('\n').unwrap() + 1 + 40;
    std::fs::write(&journal, &text[..torn_at]).unwrap();
    let kinds: Vec<_> = RunFolder::open(dir.path()).unwrap().verify().iter().map(|p| p.kind).collect();
    assert_eq!(kinds, vec![ProblemKind::Torn, ProblemKind::Unacknowledged(2), ProblemKind::CutShort]);
    let cut = RunFolder::open(dir.path()).unwrap();
    assert_eq!(cut.trials().unwrap().iter().map(|trial| trial.planned.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(cut.trial(2).unwrap(), None);

    let mut writer = RunWriter::open_for_resume(dir.path(), "0").unwrap();
    assert_eq!(writer.repairs().len(), 2, "{:?}", writer.repairs());
    assert_eq!(writer.recorded().iter().collect::<Vec<_>>(), [&0, &1]);
    let plan = writer.plan().clone();
    writer.append(&testing::trial(&plan, 2)).unwrap();
    drop(writer);
    let aside = std::fs::read_to_string(dir.path().join(layout::JOURNAL_TORN)).unwrap();
    assert_eq!(aside.trim_end(), &text[torn_at - 40..torn_at]);
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!(folder.verify().iter().map(|p| p.kind).collect::<Vec<_>>(), vec![ProblemKind::CutShort]);
    assert_eq!(folder.trials().unwrap(), (0..3).map(|index| testing::trial(&plan, index)).collect::<Vec<_>>());
    let recorded = folder
        .journal()
        .entries
        .iter()
        .any(|entry| matches!(&entry.event, JournalEvent::RunResumed { repairs, .. } if repairs.len() == 2));
    assert!(recorded, "the journal records what was repaired");
}

/// Trials of the first block were acknowledged, and one of the second; arms of a block take turns.
fn killed_within_a_set() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::turns_plan(2);
    let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
    for index in 0..5 {
        writer.append(&testing::turns_trial(&plan, index)).unwrap();
    }
    copy_folder(dir.path())
}

fn kinds(dir: &Path) -> Vec<ProblemKind> {
    RunFolder::open(dir).unwrap().verify().iter().map(|problem| problem.kind).collect()
}

fn shown(dir: &Path) -> Vec<u32> {
    RunFolder::open(dir).unwrap().trials().unwrap().iter().map(|trial| trial.planned.index).collect()
}

#[test]
fn a_set_that_is_not_there_whole_counts_for_nothing_and_is_run_again() {
    let dir = killed_within_a_set();
    assert_eq!(kinds(dir.path()), [ProblemKind::PartOfSet, ProblemKind::CutShort]);
    assert_eq!(shown(dir.path()), [0, 1, 2]);
    assert_eq!(RunFolder::open(dir.path()).unwrap().trial(3).unwrap(), None);

    let mut writer = RunWriter::open_for_resume(dir.path(), "0").unwrap();
    assert_eq!(writer.recorded().iter().collect::<Vec<_>>(), [&0, &1, &2]);
    let said = "trials 3, 4 ran in turns with trial 5, of which there is no record";
    assert!(matches!(writer.repairs(), [one] if one.starts_with(said)), "{:?}", writer.repairs());
    let folder = RunFolder::open(dir.path()).unwrap();
    let events = folder.journal().entries.iter().map(|entry| &entry.event);
    let withdrawn: Vec<_> = events.filter(|event| matches!(event, JournalEvent::TrialsWithdrawn { .. })).collect();
    let [JournalEvent::TrialsWithdrawn { indices, reason }] = withdrawn[..] else { panic!("{withdrawn:?}") };
    assert_eq!((indices.as_slice(), reason), (&[3, 4][..], &writer.repairs()[0]));
    assert_eq!(kinds(dir.path()), [ProblemKind::CutShort]);

    let plan = writer.plan().clone();
    for index in 3..6 {
        writer.append(&testing::turns_trial(&plan, index)).unwrap();
    }
    writer.journal(&JournalEvent::RunFinished).unwrap();
    drop(writer);
    assert_eq!(kinds(dir.path()), []);
    assert_eq!(shown(dir.path()), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_crash_while_a_set_is_withdrawn_is_repaired_as_well() {
    let dir = killed_within_a_set();
    let before = copy_folder(dir.path());
    drop(RunWriter::open_for_resume(dir.path(), "0").unwrap());
    // The journal says that they are withdrawn, and the results still hold them.
    for name in [layout::RESULTS, layout::RESULTS_WAL, layout::RESULTS_SHM] {
        let _ = std::fs::remove_file(dir.path().join(name));
        if before.path().join(name).exists() {
            std::fs::copy(before.path().join(name), dir.path().join(name)).unwrap();
        }
    }
    let left = [ProblemKind::Unacknowledged(3), ProblemKind::Unacknowledged(4), ProblemKind::CutShort];
    assert_eq!(kinds(dir.path()), left);
    assert_eq!(shown(dir.path()), [0, 1, 2]);
    let writer = RunWriter::open_for_resume(dir.path(), "0").unwrap();
    assert_eq!((writer.recorded().len(), writer.repairs().len()), (3, 2));
    assert_eq!(kinds(dir.path()), [ProblemKind::CutShort]);
}

#[test]
fn what_a_crash_cannot_explain_is_not_continued() {
    let dir = killed_after_three();
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    db.execute("DELETE FROM metrics WHERE trial = 1", []).unwrap();
    drop(db);
    let refused = RunWriter::open_for_resume(dir.path(), "0").unwrap_err();
    assert!(refused.to_string().contains("trial 1 is not as it was acknowledged"), "{refused}");
}

/// Runs one of the ignored tests below in a mount namespace of its own, after `setup` there. Says so and does nothing
/// where this machine allows no such namespace.
fn in_namespace(test: &str, setup: &str, dir: &Path) {
    const NO_MOUNT: i32 = 77;
    let allowed = Command::new("unshare").args(["--mount", "--propagation", "private", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this needs root and unshare, to mount in a namespace of its own");
        return;
    }
    let script =
        format!("{setup} || exit {NO_MOUNT}; exec \"$EXE\" --exact tests::crash::{test} --ignored --nocapture");
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .env("EXE", std::env::current_exe().unwrap())
        .env("DIR", dir)
        .output()
        .unwrap();
    if output.status.code() == Some(NO_MOUNT) {
        eprintln!("SKIPPED: mounting failed: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && said.contains("1 passed");
    assert!(passed, "{}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_full_disk_is_named_and_costs_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    in_namespace("inner_full_disk", "mount -t tmpfs -o size=1536k tare \"$DIR\"", dir.path());
}

#[test]
#[ignore = "run by a_full_disk_is_named_and_costs_nothing_that_was_acknowledged"]
fn inner_full_disk() {
    let dir = PathBuf::from(std::env::var_os("DIR").unwrap()).join("run");
    let plan = testing::plan(400);
    let mut writer = RunWriter::create(&dir, "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
    let mut stored = 0;
    let refused = loop {
        match writer.append(&testing::trial(&plan, stored)) {
            Ok(()) => stored += 1,
            Err(e) => break e,
        }
        assert!(stored < 1000, "the disk never filled");
    };
    assert!(matches!(refused, RecordError::DiskFull { .. }), "{refused:?}");
    assert!(stored > 0);
    // Refused again and again, it still holds what it held.
    for _ in 0..3 {
        let _ = writer.journal(&JournalEvent::RunInterrupted { reason: "disk full".repeat(4000) });
        let _ = writer.append(&testing::trial(&plan, stored));
    }
    drop(writer);
    let folder = RunFolder::open(&dir).unwrap();
    let read = folder.trials().unwrap();
    assert!(read.len() >= stored as usize);
    assert_eq!(read[0], testing::trial(&plan, 0));
    for problem in folder.verify() {
        assert!(matches!(problem.kind, ProblemKind::CutShort | ProblemKind::Unacknowledged(_)), "{problem}");
    }
}

#[test]
fn a_log_left_by_a_crash_is_read_where_nothing_may_be_written() {
    let dir = killed_after_three();
    // Without its index, which a reader would have to make, and may not.
    let _ = std::fs::remove_file(dir.path().join("results.sqlite-shm"));
    let setup = "mount --bind \"$DIR\" \"$DIR\" && mount -o remount,bind,ro \"$DIR\"";
    in_namespace("inner_read_only", setup, dir.path());
}

#[test]
#[ignore = "run by a_log_left_by_a_crash_is_read_where_nothing_may_be_written"]
fn inner_read_only() {
    let dir = PathBuf::from(std::env::var_os("DIR").unwrap());
    assert!(std::fs::write(dir.join("probe"), "x").is_err(), "the mount is read-only");
    let folder = RunFolder::open(&dir).unwrap();
    assert_eq!(folder.trials().unwrap().len(), 3);
}
