//! Folders that are whole, and folders that were altered.

use std::path::Path;

use proptest::prelude::*;
use tare_model::environment::{HardwareTable, Machine};
use tare_model::histogram::Bin;
use tare_model::precision::{CaseBlocks, WhyEnded};
use tare_model::sample::{Sample, Source};
use tare_model::study::Precision;
use tare_model::trial::{Flag, Incomplete, Outcome, Part, Phase, Step, TrialRecord};
use tare_model::{Histogram, plan::Plan};

use crate::testing::{self, write_run};
use crate::{JournalEvent, ProblemKind, RecordError, RunFolder, RunWriter, layout, trial_digest};

fn whole_run(dir: &Path) -> (Plan, Vec<TrialRecord>) {
    let plan = testing::plan(2);
    let mut trials: Vec<_> = (0..6).map(|index| testing::trial(&plan, index)).collect();
    trials[3].outcome = Outcome::Failed { phase: Phase::Connect, reason: "no answer in 20 s".to_owned() };
    trials[3].window_ns = None;
    trials[3].cpu = None;
    trials[4].outcome = Outcome::Invalid { reason: "bytes differ".to_owned() };
    trials[2] = testing::store_trial(&plan, 2);
    trials[5].flags.push(Flag { kind: "steal".to_owned(), detail: "2 %, limit 1 %".to_owned() });
    write_run(dir, &plan, &trials);
    (plan, trials)
}

fn kinds(dir: &Path) -> Vec<ProblemKind> {
    RunFolder::open(dir).unwrap().verify().into_iter().map(|problem| problem.kind).collect()
}

fn alter(dir: &Path, sql: &str) {
    let db = rusqlite::Connection::open(dir.join(layout::RESULTS)).unwrap();
    db.pragma_update(None, "foreign_keys", false).unwrap();
    assert!(db.execute(sql, []).unwrap() > 0, "the alteration changed nothing");
}

#[test]
fn what_was_written_is_read_and_a_whole_folder_has_no_problems() {
    let dir = tempfile::tempdir().unwrap();
    let (plan, trials) = whole_run(dir.path());
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!(folder.plan(), &plan);
    assert_eq!(folder.environment(), &testing::environment());
    assert_eq!(folder.source(), "# a made-up study\n");
    assert_eq!(folder.trials().unwrap(), trials);
    assert_eq!(folder.trial(2).unwrap().as_ref(), Some(&trials[2]));
    assert_eq!(folder.trial(99).unwrap(), None);
    assert!(folder.facts().finished);
    assert_eq!(folder.verify(), vec![]);
}

#[test]
fn a_machine_is_shown_as_it_was_described_last() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), testing::plan(1));
    let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
    let machine = |name: &str, title: &str| {
        let hardware = vec![HardwareTable { title: title.to_owned(), ..HardwareTable::default() }];
        Machine { name: name.to_owned(), hardware, ..Machine::default() }
    };
    for (name, title) in [("client", "old"), ("arm b", "only"), ("client", "new")] {
        writer.journal(&JournalEvent::MachineDescribed(machine(name, title))).unwrap();
    }
    drop(writer);
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!(folder.environment().machines, [machine("arm b", "only"), machine("client", "new")]);
    assert_eq!(folder.environment().sections, testing::environment().sections);
}

#[test]
fn trials_of_blocks_that_a_case_does_not_take_are_not_missing() {
    let mut plan = testing::plan(9);
    plan.study.precision = Some(Precision { at_least: 6, until: 0.02 });
    let whole = CaseBlocks { case: "idle".into(), blocks: 7, width: Some(0.0125), why: WhyEnded::Precise };
    let problems = |ended: &[CaseBlocks]| {
        let dir = tempfile::tempdir().unwrap();
        let mut writer =
            RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
        for index in 0..7 * testing::ARMS.len() as u32 {
            writer.append(&testing::trial(&plan, index)).unwrap();
        }
        ended.iter().for_each(|ended| writer.journal(&JournalEvent::CaseEnded(ended.clone())).unwrap());
        writer.journal(&JournalEvent::RunFinished).unwrap();
        drop(writer);
        let folder = RunFolder::open(dir.path()).unwrap();
        (folder.facts().ended.clone(), folder.verify().into_iter().map(|problem| problem.what).collect::<Vec<_>>())
    };
    assert_eq!(problems(std::slice::from_ref(&whole)), (vec![whole.clone()], vec![]));
    let (ended, missing) = problems(&[]);
    assert!(ended.is_empty() && missing.len() == 6 && missing[0].contains("trial 21 was never"), "{missing:?}");
    let few = CaseBlocks { blocks: 5, ..whole.clone() };
    let (ended, wrong) = problems(&[few]);
    assert!(ended.is_empty() && wrong[0].contains("after 5 blocks, which the plan does not allow"), "{wrong:?}");
    assert!(problems(&[whole.clone(), whole]).1[0].contains("ended twice"));
}

#[test]
fn a_writer_that_ends_leaves_one_plain_database() {
    let dir = tempfile::tempdir().unwrap();
    whole_run(dir.path());
    let bytes = std::fs::read(dir.path().join(layout::RESULTS)).unwrap();
    // File format versions: 1 is a rollback journal, 2 a WAL (sqlite.org/fileformat2.html, section 1.3.3).
    assert_eq!(bytes[18..20], [1, 1]);
    assert!(!dir.path().join(layout::RESULTS_WAL).exists());
}

#[test]
fn reading_leaves_the_folder_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    whole_run(dir.path());
    let list = || {
        let mut entries: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        entries.sort();
        entries
    };
    let before = list();
    let folder = RunFolder::open(dir.path()).unwrap();
    folder.trials().unwrap();
    folder.verify();
    assert!(before == list(), "a file was changed, made or removed by reading");
}

#[test]
fn a_folder_in_use_or_with_something_in_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(1);
    let create = || RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0");
    let writer = create().unwrap();
    assert!(matches!(create(), Err(RecordError::NotEmpty { .. })));
    assert!(matches!(RunWriter::open_for_resume(dir.path(), "0"), Err(RecordError::Busy { .. })));
    drop(writer);
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(RunFolder::open(empty.path()), Err(RecordError::NotARun { .. })));
}

#[test]
fn a_trial_is_written_once_and_only_if_the_plan_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(1);
    let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
    let record = testing::trial(&plan, 0);
    writer.append(&record).unwrap();
    assert!(matches!(writer.append(&record), Err(RecordError::AlreadyRecorded { index: 0 })));
    let mut stranger = testing::trial(&plan, 1);
    stranger.planned.arm = "stranger".to_owned();
    assert!(matches!(writer.append(&stranger), Err(RecordError::NotInPlan { index: 1, .. })));
    let mut large = testing::trial(&plan, 1);
    large.samples[0].at_ns = u64::MAX;
    assert!(matches!(writer.append(&large), Err(RecordError::TooLarge { .. })));
    let mut large = testing::trial(&plan, 1);
    if let Outcome::Completed(m) = &mut large.outcome {
        let times = Histogram { max: u64::MAX, ..Histogram::default() };
        m.steps.push(Step { name: "endless".to_owned(), within: true, times });
    }
    assert!(matches!(writer.append(&large), Err(RecordError::TooLarge { what: "maximum of a step", .. })));
    writer.append(&testing::trial(&plan, 1)).unwrap();
    assert_eq!(RunFolder::open(dir.path()).unwrap().trials().unwrap().len(), 2, "read while the writer is open");
}

#[test]
fn each_alteration_of_the_results_is_reported() {
    let alterations = [
        ("UPDATE metrics SET value = value * 1.001 WHERE trial = 0", ProblemKind::Altered),
        ("UPDATE stored_bins SET count = count + 1 WHERE histogram_id = 1", ProblemKind::Altered),
        ("UPDATE stored_samples SET value = 0 WHERE trial = 1 AND position = 3", ProblemKind::Altered),
        ("UPDATE trials SET outcome = 'invalid', reason = 'x' WHERE trial = 2", ProblemKind::Altered),
        ("DELETE FROM flags WHERE trial = 5", ProblemKind::Altered),
        ("UPDATE stored_part_metrics SET value = value + 1 WHERE part_id = 1", ProblemKind::Altered),
        ("UPDATE stored_parts SET driver = NULL WHERE part_id = 1", ProblemKind::Altered),
        ("DELETE FROM stored_parts WHERE part_id = 3", ProblemKind::Altered),
        ("UPDATE steps SET within = 0 WHERE step_id = 1", ProblemKind::Altered),
        ("UPDATE stored_step_bins SET count = count + 1 WHERE step_id = 2", ProblemKind::Altered),
        ("UPDATE trials SET arm = 'other' WHERE trial = 0", ProblemKind::Altered),
        ("DELETE FROM trials WHERE trial = 5", ProblemKind::Missing(5)),
    ];
    for (sql, kind) in alterations {
        let dir = tempfile::tempdir().unwrap();
        whole_run(dir.path());
        alter(dir.path(), sql);
        assert_eq!(kinds(dir.path()), vec![kind], "{sql}");
    }
}

#[test]
fn altered_and_truncated_files_are_reported_by_name() {
    for (name, keep) in [(layout::STUDY, 3), (layout::ENVIRONMENT, usize::MAX), (layout::PLAN, usize::MAX)] {
        let dir = tempfile::tempdir().unwrap();
        whole_run(dir.path());
        let path = dir.path().join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(keep);
        bytes.push(b'\n');
        std::fs::write(&path, bytes).unwrap();
        let problems = RunFolder::open(dir.path()).unwrap().verify();
        assert_eq!((problems.len(), problems[0].file.as_str(), problems[0].kind), (1, name, ProblemKind::Altered));
    }
    for share in [0, 1, 2, 3] {
        let dir = tempfile::tempdir().unwrap();
        whole_run(dir.path());
        let path = dir.path().join(layout::RESULTS);
        let size = std::fs::metadata(&path).unwrap().len();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(size * share / 4).unwrap();
        let problems = RunFolder::open(dir.path()).unwrap().verify();
        assert!(problems.iter().any(|p| p.file == layout::RESULTS), "{share} quarters: {problems:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    whole_run(dir.path());
    std::fs::remove_file(dir.path().join(layout::RESULTS)).unwrap();
    let folder = RunFolder::open(dir.path()).unwrap();
    assert!(folder.trials().unwrap_err().to_string().contains("is missing"));
    assert_eq!(kinds(dir.path()), vec![ProblemKind::Unreadable]);
}

#[test]
fn findings_are_replaced_whole() {
    let dir = tempfile::tempdir().unwrap();
    whole_run(dir.path());
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!(folder.read_findings().unwrap(), None);
    std::fs::write(dir.path().join(layout::FINDINGS), r#"{"schema": 99, "shape": "of later days"}"#).unwrap();
    let newer = folder.read_findings().unwrap_err().to_string();
    assert!(newer.contains("written by a newer tare (schema 99;"), "{newer}");
    folder.write_file(layout::REPORT_HTML, b"one").unwrap();
    folder.write_file(layout::REPORT_HTML, b"two").unwrap();
    assert_eq!(std::fs::read(dir.path().join(layout::REPORT_HTML)).unwrap(), b"two");
    assert_eq!(folder.verify(), vec![]);
}

/// Values that are not numbers come back as such, and equal digests mean equal records otherwise.
#[test]
fn a_value_that_is_not_a_number_survives() {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(1);
    let mut record = testing::trial(&plan, 0);
    record.wall_s = -0.0;
    if let Outcome::Completed(m) = &mut record.outcome {
        m.metrics.insert("response_time_p50_s".to_owned(), f64::NAN);
        m.histograms.get_mut("response").unwrap().sum = u128::MAX;
        let times = m.histograms["response"].clone();
        m.steps.push(Step { name: "all of it".to_owned(), within: true, times });
        m.parts.push(Part { guest: 1, driver: None, metrics: [("nan".to_owned(), f64::NAN)].into(), instance: None });
    }
    write_run(dir.path(), &plan, &[record.clone()]);
    let read = RunFolder::open(dir.path()).unwrap().trial(0).unwrap().unwrap();
    let Outcome::Completed(m) = &read.outcome else { panic!("completed") };
    assert!(m.metrics["response_time_p50_s"].is_nan());
    assert_eq!(m.histograms["response"].sum, u128::MAX);
    assert_eq!(m.steps[0].times.sum, u128::MAX);
    assert!(m.parts[0].metrics["nan"].is_nan());
    assert_eq!(trial_digest(&read), trial_digest(&record));
}

fn any_histogram() -> impl Strategy<Value = Histogram> {
    let max = i64::MAX as u64;
    (proptest::collection::btree_map(0..max, 1..1000u64, 0..6), any::<u128>(), 0..max, 0..max).prop_map(
        |(bins, sum, min, max)| {
            let bins = bins.into_iter().map(|(low, count)| Bin { low, high: low, count }).collect();
            Histogram { bins, min, max, sum, ..Histogram::default() }
        },
    )
}

fn any_parts() -> impl Strategy<Value = Vec<Part>> {
    let value = any::<f64>().prop_filter("finite", |v| v.is_finite());
    let metrics = proptest::collection::btree_map("\\PC{0,8}", value, 0..3);
    let part = (any::<u32>(), any::<Option<u32>>(), metrics);
    proptest::collection::vec(
        part.prop_map(|(guest, driver, metrics)| Part { guest, driver, metrics, instance: None }),
        0..6,
    )
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = ("\\PC{0,8}", any::<bool>(), any_histogram());
    proptest::collection::vec(step.prop_map(|(name, within, times)| Step { name, within, times }), 0..4)
}

fn any_samples() -> impl Strategy<Value = Vec<Sample>> {
    let source = prop_oneof![
        Just(Source::Host),
        Just(Source::Client),
        "[a-z:]{1,8}".prop_map(Source::Guest),
        "[a-z:]{1,8}".prop_map(Source::InGuest)
    ];
    let sample = (0..i64::MAX as u64, source, "[a-z_]{1,10}", any::<f64>().prop_filter("finite", |v| v.is_finite()));
    proptest::collection::vec(
        sample.prop_map(|(at_ns, source, series, value)| Sample { at_ns, source, series, value }),
        0..20,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_trial_is_read_as_it_was_written(
        histogram in any_histogram(),
        samples in any_samples(),
        value in any::<f64>().prop_filter("finite", |v| v.is_finite()),
        text in "\\PC{0,30}",
        wide in any::<Option<(i32, i32)>>(),
        parts in any_parts(),
        steps in any_steps(),
        gone in any::<(u32, u32, u32)>(),
    ) {
        let plan = testing::plan(1);
        let mut record = testing::trial(&plan, 0);
        record.samples = samples;
        record.facts.insert(text.clone(), text.clone());
        record.flags.push(Flag { kind: text.clone(), detail: text });
        record.window_ns = wide.map(|(a, b)| (u64::from(a.unsigned_abs()), u64::from(b.unsigned_abs())));
        if let Outcome::Completed(m) = &mut record.outcome {
            m.metrics.insert("extra".to_owned(), value);
            let (failed, given_up, waited_ns) = (gone.0.into(), gone.1.into(), gone.2.into());
            m.histograms.insert("lateness".to_owned(), Histogram { failed, given_up, waited_ns, ..histogram });
            let completed_only = (gone.0 % 2 == 0).then_some(value);
            m.incomplete.insert("extra".to_owned(), Incomplete { missing: value, completed_only });
            (m.parts, m.steps) = (parts, steps);
        }
        let dir = tempfile::tempdir().unwrap();
        write_run(dir.path(), &plan, &[record.clone()]);
        let read = RunFolder::open(dir.path()).unwrap().trial(0).unwrap();
        prop_assert_eq!(read, Some(record));
    }
}
