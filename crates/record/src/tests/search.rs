//! Trials that look for the largest load, and request types: what was seen at each load is read as it was written.

use proptest::prelude::*;
use tare_model::capacity::{CapacitySearch, Probe, ProbeCause, ProbePurpose, ScoreSpec};
use tare_model::published::{Claim, ClaimKind, Condition, PrintedTotal, Published};
use tare_model::sample::CpuAccount;
use tare_model::trial::{Flag, Measurement, Outcome, RequestType, TrialRecord};
use tare_model::{Histogram, histogram::Bin, plan::Plan};

use super::each_is_reported;
use crate::testing::{self, write_run};
use crate::{JournalEvent, RecordError, RunFolder, RunWriter, layout, trial_digest};

fn measurement_of(record: &mut TrialRecord) -> &mut Measurement {
    let Outcome::Completed(measurement) = &mut record.outcome else { panic!("completed") };
    measurement
}

fn search_of(record: &mut TrialRecord) -> &mut CapacitySearch {
    measurement_of(record).search.as_mut().unwrap()
}

fn read_back(plan: &Plan, record: &TrialRecord) -> TrialRecord {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), plan, std::slice::from_ref(record));
    RunFolder::open(dir.path()).unwrap().trial(0).unwrap().unwrap()
}

#[test]
fn each_alteration_of_a_search_is_reported() {
    let trials = |plan: &Plan| vec![testing::capacity_trial(plan, 0), testing::trial(plan, 1), testing::trial(plan, 2)];
    each_is_reported(
        trials,
        &[
            "UPDATE searches SET held = 16",
            "UPDATE searches SET missed = NULL",
            "UPDATE searches SET ended = 'well'",
            "UPDATE tries SET load = load + 1 WHERE position = 2",
            "UPDATE tries SET purpose = 'bisect' WHERE position = 3",
            "UPDATE tries SET failed = NULL WHERE position = 1",
            "UPDATE tries SET cause = 'invalid' WHERE position = 1",
            "UPDATE tries SET window_end_ns = window_end_ns + 1 WHERE position = 1",
            "UPDATE stored_try_metrics SET value = value * 1.001 WHERE try_id = 1",
            "UPDATE stored_try_counts SET value = value + 1 WHERE try_id = 1 AND name = 'lost'",
            "UPDATE stored_try_bins SET count = count + 1 WHERE try_id = 4",
            "UPDATE stored_try_flags SET detail = 'nothing'",
            "UPDATE stored_try_cpu SET total_s = total_s / 2 WHERE try_id = 2",
            "UPDATE stored_requests SET good = good + 1, failed = failed - 1 WHERE try_id = 4 AND number = 0",
            "UPDATE stored_requests SET bytes = bytes + 1 WHERE try_id IS NULL AND number = 2",
            "UPDATE stored_requests SET target = 0.5 WHERE try_id IS NULL AND number = 1",
            "UPDATE stored_request_bins SET count = count + 1 WHERE request_id = 1",
            "DELETE FROM stored_requests WHERE try_id = 3",
            "DELETE FROM tries WHERE position = 0",
            "DELETE FROM searches",
        ],
    );
}

#[test]
fn a_search_reads_without_tare() {
    let dir = tempfile::tempdir().unwrap();
    let plan = testing::plan(1);
    let mut record = testing::capacity_trial(&plan, 0);
    write_run(dir.path(), &plan, std::slice::from_ref(&record));
    let db = rusqlite::Connection::open(dir.path().join(layout::RESULTS)).unwrap();
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT CAST(max(load) AS INTEGER) FROM tries WHERE failed IS NULL"), 12);
    assert_eq!(count("SELECT count(*) FROM try_metrics WHERE metric = 'operations_per_s'"), 4);
    assert_eq!(count("SELECT value FROM try_counts WHERE position = 1 AND name = 'operations'"), 12_800);
    assert_eq!(count("SELECT count(*) FROM try_cpu WHERE load = 12 AND total_s > 0"), 2);
    assert_eq!(count("SELECT count(*) FROM try_flags WHERE load = 16 AND kind = 'drops'"), 1);
    assert_eq!(count("SELECT sum(operations) FROM tries"), count("SELECT sum(count) FROM try_bins"));
    // Three types of the trial itself, and of each of four tries.
    assert_eq!(count("SELECT count(*) FROM requests WHERE position IS NULL AND load IS NULL"), 3);
    assert_eq!(count("SELECT count(*) FROM requests WHERE position IS NOT NULL"), 12);
    assert_eq!(count("SELECT count(*) FROM requests WHERE requests = good + tolerable + failed"), 15);
    let login = search_of(&mut record).probes[1].requests[0].requests;
    let binned = count("SELECT sum(count) FROM request_bins WHERE load = 16 AND type = 'login'");
    assert_eq!(u64::try_from(binned).unwrap(), login);
}

#[test]
fn forty_tries_of_fifteen_types_take_little_room() {
    let plan = testing::plan(1);
    let size = |record: &TrialRecord| {
        let dir = tempfile::tempdir().unwrap();
        write_run(dir.path(), &plan, std::slice::from_ref(record));
        assert_eq!(RunFolder::open(dir.path()).unwrap().trial(0).unwrap().as_ref(), Some(record));
        std::fs::metadata(dir.path().join(layout::RESULTS)).unwrap().len()
    };
    let mut record = testing::capacity_trial(&plan, 0);
    // Two thousand requests that are all in bins of their own.
    let bins = (1..=200u64).map(|n| Bin { low: n << 20, high: (n << 20) + 9999, count: 10 }).collect();
    let times = Histogram { bins, min: 1 << 20, max: 200 << 20, sum: 1 << 32, ..Histogram::default() };
    let mut one = search_of(&mut record).probes[0].clone();
    one.requests = vec![RequestType { times, ..one.requests[0].clone() }; 15];
    search_of(&mut record).probes = vec![one; 40];
    let (with, without) = (size(&record), size(&testing::trial(&plan, 0)));
    // 120,000 bins; what the plan reckons with is in the study crate's costs.
    assert!(with - without < 4 << 20, "{} bytes", with - without);
}

#[test]
fn what_is_no_number_or_too_large_is_kept_or_refused() {
    let plan = testing::plan(1);
    let mut record = testing::capacity_trial(&plan, 0);
    let search = search_of(&mut record);
    search.held = 0.0;
    search.probes[0].load = f64::NAN;
    search.probes[0].metrics.insert("nan".to_owned(), f64::NAN);
    search.probes[1].response.sum = u128::MAX;
    search.probes[2].requests[0].response_s = f64::NAN;
    search.probes[2].requests[1].times.sum = u128::MAX - 7;
    let mut read = read_back(&plan, &record);
    assert_eq!(trial_digest(&read), trial_digest(&record));
    let search = search_of(&mut read);
    assert!(search.probes[0].load.is_nan() && search.probes[0].metrics["nan"].is_nan());
    assert!(search.probes[2].requests[0].response_s.is_nan());
    assert_eq!(
        (search.probes[1].response.sum, search.probes[2].requests[1].times.sum),
        (u128::MAX, u128::MAX - 7),
        "sums beyond 64 bits"
    );
    // A change of such a sum is seen as well.
    search_of(&mut record).probes[2].requests[1].times.sum -= 1;
    assert_ne!(trial_digest(&read), trial_digest(&record));

    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), "", &plan, &testing::environment(), testing::RUN_ID, "0").unwrap();
    search_of(&mut record).probes[3].requests[0].bytes = u64::MAX;
    assert!(matches!(writer.append(&record), Err(RecordError::TooLarge { what: "bytes of a type", .. })));
}

/// Figures that somebody else published: no load of ours was offered, nothing was sampled, no window is known.
#[test]
fn a_folder_of_published_figures_is_whole() {
    let mut plan = testing::plan(1);
    plan.study.published = Some(Published {
        report: "002".to_owned(),
        title: "A comparison of web serving".to_owned(),
        files: vec![("one.html".to_owned(), "ab".repeat(32))],
        printed: vec![PrintedTotal {
            case: "idle".to_owned(),
            arm: "native".to_owned(),
            value: 0.5,
            ..PrintedTotal::default()
        }],
        claims: vec![Claim {
            text: "13 % more".to_owned(),
            kind: ClaimKind::Score { arm: "native".to_owned(), score: 1940.0 },
        }],
        conditions: vec![Condition { what: "disks".to_owned(), value: "2".to_owned(), ..Condition::default() }],
    });
    plan.study.score = Some(ScoreSpec { references: vec![("idle".to_owned(), 120.0)] });
    let trials: Vec<TrialRecord> = (0..3)
        .map(|index| {
            let mut record = testing::capacity_trial(&plan, index);
            (record.window_ns, record.cpu, record.wall_s, record.load_s) = (None, None, 0.0, 0.0);
            (record.samples, record.parity, record.started_at) = (Vec::new(), Vec::new(), String::new());
            measurement_of(&mut record).histograms.clear();
            for probe in &mut search_of(&mut record).probes {
                (probe.window_ns, probe.cpu, probe.response) = ((0, 0), None, Histogram::default());
            }
            record
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let environment = tare_model::environment::Environment { redacted: true, ..Default::default() };
    let mut writer = RunWriter::create(dir.path(), "", &plan, &environment, testing::RUN_ID, "0.1.0").unwrap();
    trials.iter().for_each(|record| writer.append(record).unwrap());
    writer.journal(&JournalEvent::RunFinished).unwrap();
    drop(writer);
    let folder = RunFolder::open(dir.path()).unwrap();
    assert_eq!(folder.verify(), vec![]);
    assert!(folder.facts().finished);
    assert_eq!(folder.trials().unwrap(), trials);
    assert_eq!(folder.plan(), &plan, "where the figures are from and the score are in the plan");
}

fn any_value() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |value| value.is_finite())
}

fn count() -> impl Strategy<Value = u64> {
    0..i64::MAX as u64
}

fn any_request() -> impl Strategy<Value = RequestType> {
    let counts = [count(), count(), count(), count(), count(), count()];
    ("\\PC{0,12}", counts, any_value(), proptest::option::of(any_value()), any::<u64>()).prop_map(
        |(name, [requests, good, tolerable, failed, validation_errors, bytes], response_s, target, sum)| RequestType {
            name,
            requests,
            good,
            tolerable,
            failed,
            validation_errors,
            bytes,
            response_s,
            target,
            times: Histogram {
                bins: vec![Bin { low: 3, high: 4, count: 2 }],
                min: 3,
                max: 4,
                sum: u128::from(sum) << 40,
                failed: requests,
                given_up: good,
                waited_ns: bytes,
            },
        },
    )
}

fn any_try() -> impl Strategy<Value = Probe> {
    let purposes = vec![ProbePurpose::Bracket, ProbePurpose::Bisect, ProbePurpose::Confirm];
    let causes = vec![None, Some(ProbeCause::Qos), Some(ProbeCause::Invalid), Some(ProbeCause::Failed)];
    let whole = (any_value(), any::<Option<String>>(), (count(), count()), any::<Option<u32>>());
    let maps = (
        proptest::collection::btree_map("\\PC{0,8}", any_value(), 0..3),
        proptest::collection::btree_map("\\PC{0,8}", count(), 0..3),
    );
    let flags = proptest::collection::vec(("\\PC{0,8}", "\\PC{0,20}"), 0..3);
    let words = (prop::sample::select(purposes), prop::sample::select(causes));
    (whole, maps, flags, words, proptest::collection::vec(any_request(), 0..4)).prop_map(
        |((load, failed, window_ns, cpus), (metrics, counts), flags, (purpose, cause), requests)| Probe {
            load,
            purpose,
            failed,
            cause,
            window_ns,
            metrics,
            counts,
            response: Histogram {
                min: window_ns.0,
                max: window_ns.1,
                sum: u128::from(window_ns.0) << 50,
                bins: Vec::new(),
                failed: window_ns.0,
                given_up: window_ns.1,
                waited_ns: window_ns.0,
            },
            requests,
            cpu: cpus.map(|cpus| CpuAccount { window_s: load, cpus, steal_s: load, ..CpuAccount::default() }),
            flags: flags.into_iter().map(|(kind, detail)| Flag { kind, detail }).collect(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_search_is_read_as_it_was_written(
        probes in proptest::collection::vec(any_try(), 0..4),
        held in any_value(),
        missed in proptest::option::of(any_value()),
        ended in "\\PC{0,30}",
        requests in proptest::collection::vec(any_request(), 0..3),
    ) {
        let plan = testing::plan(1);
        let mut record = testing::capacity_trial(&plan, 0);
        *search_of(&mut record) = CapacitySearch { held, missed, probes, ended };
        measurement_of(&mut record).requests = requests;
        prop_assert_eq!(read_back(&plan, &record), record);
    }
}
