//! Trials in which guests are added: what was seen at each number of guests is read as it was written.

use proptest::prelude::*;
use tare_model::density::{CoursePoint, Level, ScaleUp, StopKind, Stopped};
use tare_model::merging::{MergeCounters, SavedFrom};
use tare_model::trial::{Outcome, Part, TrialRecord};
use tare_model::{Histogram, plan::Plan};

use super::each_is_reported;
use crate::testing::{self, write_run};
use crate::{RecordError, RunFolder, RunWriter, layout, trial_digest};

fn scale_up_of(record: &mut TrialRecord) -> &mut ScaleUp {
    let Outcome::Completed(measurement) = &mut record.outcome else { panic!("completed") };
    measurement.scale_up.as_mut().unwrap()
}

fn read_back(plan: &Plan, record: &TrialRecord) -> TrialRecord {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), plan, std::slice::from_ref(record));
    RunFolder::open(dir.path()).unwrap().trial(0).unwrap().unwrap()
}

#[test]
fn thirty_two_numbers_of_thirty_two_guests_take_little_room() {
    let plan = testing::plan(1);
    let numbers: Vec<u32> = (1..=32).collect();
    let mut record = testing::density_trial(&plan, 0, &numbers);
    let most = scale_up_of(&mut record).levels[31].parts.clone();
    scale_up_of(&mut record).levels.iter_mut().for_each(|level| level.parts = most.clone());
    let size = |record: &TrialRecord| {
        let dir = tempfile::tempdir().unwrap();
        write_run(dir.path(), &plan, std::slice::from_ref(record));
        assert_eq!(RunFolder::open(dir.path()).unwrap().trial(0).unwrap().as_ref(), Some(record));
        std::fs::metadata(dir.path().join(layout::RESULTS)).unwrap().len()
    };
    let (with, without) = (size(&record), size(&testing::trial(&plan, 0)));
    // 4096 figures of guests, 1280 bins, 640 moments.
    assert!(with - without < 400 << 10, "{} bytes", with - without);
}

#[test]
fn each_alteration_of_a_scale_up_is_reported() {
    let trials = |plan: &Plan| {
        vec![testing::density_trial(plan, 0, &[1, 4, 6]), testing::trial(plan, 1), testing::trial(plan, 2)]
    };
    each_is_reported(
        trials,
        &[
            "UPDATE scale_ups SET stopped = 'end'",
            "UPDATE scale_ups SET offered_per_guest_per_s = 900",
            "UPDATE levels SET failed = NULL WHERE guests = 6",
            "UPDATE levels SET cause = 'wrong' WHERE guests = 6",
            "UPDATE levels SET profit_bytes = profit_bytes + 1 WHERE position = 1",
            "UPDATE levels SET data_bytes = data_bytes + 1 WHERE position = 1",
            "UPDATE stored_level_metrics SET value = value * 1.001 WHERE level_id = 2",
            "UPDATE stored_level_bins SET count = count + 1 WHERE level_id = 2",
            "UPDATE stored_level_part_metrics SET value = value + 1 WHERE level_part_id = 1",
            "DELETE FROM stored_level_parts WHERE level_part_id = 3",
            "UPDATE courses SET saved_bytes = saved_bytes + 1 WHERE position = 7",
            "DELETE FROM scale_ups",
        ],
    );
}

#[test]
fn a_scale_up_reads_without_tare() {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(1);
    write_run(dir.path(), &plan, &[testing::density_trial(&plan, 0, &[1, 4, 6])]);
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM level_parts WHERE guests = 6 AND metric = 'operations_per_s'"), 6);
    assert_eq!(count("SELECT count(*) FROM level_metrics WHERE metric = 'operations_per_s'"), 3);
    assert_eq!(count("SELECT max(guests) FROM levels WHERE failed IS NULL"), 4);
    let operations = count("SELECT sum(operations) FROM levels");
    assert_eq!(count("SELECT sum(count) FROM level_bins"), operations);
    assert_eq!(count("SELECT count(*) FROM courses"), 120);
}

#[test]
fn figures_that_are_no_numbers_or_too_large_are_kept_or_refused() {
    let plan = testing::plan(1);
    let mut record = testing::density_trial(&plan, 0, &[1, 2]);
    let scale_up = scale_up_of(&mut record);
    scale_up.offered_per_guest_per_s = None;
    scale_up.levels[0].metrics.insert("nan".to_owned(), f64::NAN);
    scale_up.levels[0].parts[0].metrics.insert("nan".to_owned(), f64::NAN);
    scale_up.levels[0].merge.scanner_cpu_s = f64::NAN;
    scale_up.levels[1].response.sum = u128::MAX;
    scale_up.course[0].at_s = f64::NAN;
    let mut read = read_back(&plan, &record);
    assert_eq!(trial_digest(&read), trial_digest(&record));
    let scale_up = scale_up_of(&mut read);
    assert!(scale_up.levels[0].metrics["nan"].is_nan() && scale_up.levels[0].parts[0].metrics["nan"].is_nan());
    assert!(scale_up.levels[0].merge.scanner_cpu_s.is_nan() && scale_up.course[0].at_s.is_nan());
    assert_eq!((scale_up.levels[1].response.sum, scale_up.offered_per_guest_per_s), (u128::MAX, None));
    // A change of a sum beyond 64 bits is seen as well.
    scale_up_of(&mut record).levels[1].response.sum -= 1;
    assert_ne!(trial_digest(&read), trial_digest(&record));

    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
    scale_up_of(&mut record).levels[1].merge.pages_scanned = u64::MAX;
    assert!(matches!(writer.append(&record), Err(RecordError::TooLarge { what: "pages scanned", .. })));
}

fn any_value() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |value| value.is_finite())
}

fn any_level() -> impl Strategy<Value = Level> {
    let metrics = || proptest::collection::btree_map("\\PC{0,8}", any_value(), 0..3);
    let count = || 0..i64::MAX as u64;
    let part = (any::<u32>(), any::<Option<u32>>(), metrics());
    let parts = proptest::collection::vec(
        part.prop_map(|(guest, driver, metrics)| Part { guest, driver, metrics, instance: None }),
        0..5,
    );
    let whole = (any::<u32>(), any::<Option<String>>(), (count(), count()), any::<Option<i32>>(), any::<i64>());
    (whole, metrics(), parts, [count(), count(), count()], any_value()).prop_map(
        |((guests, failed, window_ns, settled, profit_bytes), metrics, parts, [a, b, c], scanner_cpu_s)| Level {
            guests,
            cause: failed.as_ref().map(|_| if a % 2 == 0 { StopKind::Qos } else { StopKind::Wrong }),
            failed,
            window_ns,
            settled_after_s: settled.map(f64::from),
            metrics,
            response: Histogram {
                min: a,
                max: b,
                sum: u128::from(c) << 40,
                failed: c,
                given_up: a,
                waited_ns: b,
                ..Histogram::default()
            },
            parts,
            saved_from: SavedFrom { zero_bytes: a, code_bytes: b, data_bytes: c, unknown_bytes: a },
            merge: MergeCounters {
                pages_shared: a,
                pages_sharing: b,
                pages_unshared: c,
                pages_volatile: a,
                pages_skipped: b,
                pages_scanned: c,
                zero_pages: a,
                full_scans: b,
                profit_bytes,
                scanner_cpu_s,
            },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_scale_up_is_read_as_it_was_written(
        levels in proptest::collection::vec(any_level(), 0..4),
        kind in prop::sample::select(vec![
            StopKind::End, StopKind::Memory, StopKind::Swap, StopKind::Pressure, StopKind::Killed, StopKind::Start,
            StopKind::Qos, StopKind::Wrong,
        ]),
        detail in "\\PC{0,30}",
        guests in any::<u32>(),
        offered in any::<Option<i32>>(),
        load in any::<bool>(),
        profit_bytes in any::<i64>(),
        at_s in any_value(),
        available_bytes in 0..i64::MAX as u64,
    ) {
        let point = CoursePoint { at_s, guests, load, available_bytes, saved_bytes: 7, profit_bytes, scanner_cpu_s: at_s };
        let plan = testing::plan(1);
        let mut record = testing::density_trial(&plan, 0, &[1]);
        *scale_up_of(&mut record) = ScaleUp {
            levels,
            stopped: Stopped { kind, guests, detail },
            course: vec![point; 3],
            offered_per_guest_per_s: offered.map(f64::from), tile: Vec::new(), };
        prop_assert_eq!(read_back(&plan, &record), record);
    }
}
