//! Tiles of guests are added until one of their members fails its objective, or the host carries no more. The host's memory is a
//! made-up one; the guests are real.

use std::path::Path;

use crate::common::{killed_at, killed_in, plan, ready, run_plan};
use tare_controller::{Cancel, Observer, Quiet, RunEnd, ScaleUpNow};
use tare_model::Span;
use tare_model::density::{DensitySpec, GuestSeries, ScaleUp, StopKind, TileGuest, metric};
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::{CaseLoad, QosObjective};
use tare_model::trial::{Measurement, Outcome, TrialRecord};
use tare_model::units::ByteSize;
use tare_record::RunFolder;
use tare_testkit::{AVAILABLE, Crowd, EACH, Mishap, REASON, RESPONSE, TILE_RATE, TileSight, TileWorker, Tiles};

/// Kept in reserve: 8 guests fit above it.
const RESERVE: u64 = 2 << 30;

fn worker(name: &str, slope: f64, mebibytes: u64, clients: u32) -> TileWorker {
    let size = GuestSize { cpus: 1, memory: ByteSize(mebibytes << 20) };
    TileWorker { name: name.into(), slope, rate: 600.0, size, clients, wrong_at: None }
}

fn shop_and_db() -> Vec<TileWorker> {
    vec![worker("shop", 0.001, 64, 20), worker("db", 0.01, 96, 3)]
}

/// One trial of one scale-up by tiles of these members.
fn tiles_plan(guests: GuestSeries, workers: &[TileWorker]) -> Plan {
    let mut plan = plan();
    plan.trials.truncate(1);
    let case = &mut plan.study.cases[0];
    case.neighbours = None;
    case.phases.steady_state = Span::from_millis(150);
    let guest = |worker: &TileWorker| TileGuest { name: worker.name.clone(), size: worker.size };
    let tile = workers.iter().map(guest).collect();
    let (reserve, settle) = (Some(ByteSize(RESERVE)), Span::from_secs(20));
    let spec = DensitySpec { guests, tile, reserve, settle, rest: Span::ZERO, pressure: 0.4 };
    case.load = CaseLoad::Density { load: case.load.largest(), spec };
    plan
}

/// What a run left to be looked at.
struct Ran {
    records: Vec<TrialRecord>,
    seen: Vec<TileSight>,
}

impl Ran {
    /// Its only trial, which completed.
    fn measured(&self) -> (&Measurement, &ScaleUp) {
        let Outcome::Completed(measured) = &self.records[0].outcome else { panic!("{:?}", self.records[0].outcome) };
        (measured, measured.scale_up.as_ref().unwrap())
    }
}

/// Runs a plan on a host with this mishap, and sees that nothing is left of it.
fn ran(agent: &Path, name: &str, plan: &Plan, workers: Vec<TileWorker>, mishap: Mishap) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let crowd = Crowd::new(mishap, &folder.path().join("kernel")).unwrap();
    let tiles = Tiles::new(crowd, workers, folder.path().join("gold"));
    let run_id = format!("tiles-{}-{name}", std::process::id());
    let out = folder.path().join("run");
    let (ended, records) = run_plan(plan, &tiles, (&out, agent, &run_id), &Quiet, &Cancel::new());
    let RunEnd { completed, .. } = ended.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!((completed, tare_lab::leftovers(&run_id)), (1, Vec::<String>::new()), "{name}: {records:?}");
    Ran { records, seen: tiles.seen() }
}

/// (guests, whether they held) of each level.
fn levels(scale_up: &ScaleUp) -> Vec<(u32, bool)> {
    scale_up.levels.iter().map(|level| (level.guests, level.failed.is_none())).collect()
}

fn objective(metric: &str, bound: f64) -> QosObjective {
    QosObjective { metric: metric.into(), bound }
}

#[test]
fn the_first_member_that_misses_its_objective_ends_the_scale_up_and_is_named() {
    let Some(agent) = ready() else { return };
    let mut plan = tiles_plan(GuestSeries::Listed(vec![1, 2, 3]), &shop_and_db());
    // With four guests `db` takes 0.04 s, and `shop` a tenth of that.
    plan.study.cases[0].qos =
        vec![objective("shop:response_time_p99_s", 0.035), objective("db:response_time_p99_s", 0.035)];
    let ran = ran(&agent, "objective", &plan, shop_and_db(), Mishap::None);
    let (measured, scale_up) = ran.measured();
    assert_eq!(levels(scale_up), [(2, true), (4, false)], "only whole tiles are measured, and none after the miss");
    assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (StopKind::Qos, 4));
    let detail = &scale_up.stopped.detail;
    assert!(detail.starts_with("db: response time was 40.0 ms") && !detail.contains("shop"), "{detail}");
    assert_eq!(scale_up.tile, ["shop", "db"]);
    assert_eq!((measured.metrics[metric::HELD], measured.metrics[metric::TILES_HELD]), (2.0, 1.0));
    let of = |level: usize, id: &str| scale_up.levels[level].metrics[id];
    assert_eq!((of(1, "shop:response_time_p99_s"), of(1, "db:response_time_p99_s")), (0.004, 0.04));
    // Each guest has 600/s by the number of guests.
    let close = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9 * expected, "{value} {expected}");
    close(of(0, "shop:work_per_s"), 300.0);
    close(of(1, "shop:work_per_s"), 150.0);
    close(of(0, "db:share_of_single"), 1.0);
    close(of(1, "db:share_of_single"), 0.5);
    // A rate is that of the worst guest, not the sum of all.
    close(of(1, &format!("db:{TILE_RATE}")), 150.0);
    close(of(1, metric::OPERATIONS), 600.0);
    assert_eq!(of(1, metric::PROMISED), 2.0 * f64::from((64 + 96) << 20));
    assert!(!scale_up.levels[1].metrics.contains_key(RESPONSE), "one of all members would be of nothing");
    let record = &ran.records[0];
    let ids: Vec<&str> = record.metrics.iter().map(|spec| spec.id.as_str()).collect();
    assert!(
        ids[0] == metric::HELD && ids.contains(&metric::TILES_HELD) && ids.contains(&"db:share_of_single"),
        "{ids:?}"
    );
    let parts: Vec<(u32, usize)> = scale_up.levels[1]
        .parts
        .iter()
        .map(|part| (part.guest, part.metrics.keys().filter(|id| id.starts_with("db:")).count()))
        .collect();
    assert_eq!(parts, [(1, 0), (2, 2), (3, 0), (4, 2)], "each guest with its own member's figures");
}

#[test]
fn size_load_and_data_go_to_the_right_guests_and_all_start_at_one_moment() {
    let Some(agent) = ready() else { return };
    let plan = tiles_plan(GuestSeries::Listed(vec![1, 2]), &shop_and_db());
    let ran = ran(&agent, "right", &plan, shop_and_db(), Mishap::None);
    assert_eq!(levels(ran.measured().1), [(2, true), (4, true)]);
    let (mut data, mut prepared, mut driven, mut ended) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for sight in ran.seen {
        match sight {
            TileSight::Data { member, guests, size } => data.push((member, guests, size.memory.0 >> 20)),
            TileSight::Prepared { member, index, size, load, instances, found } => {
                let LoadModel::Closed { clients, .. } = load else { panic!("{load:?}") };
                prepared.push((index, member, size.memory.0 >> 20, clients, instances, found));
            }
            TileSight::Driven { index, start_at_ns } => driven.push((start_at_ns, index)),
            TileSight::Ended { index } => ended.push(index),
        }
    }
    assert_eq!(data, [("shop".to_owned(), 2, 64), ("db".to_owned(), 2, 96)]);
    let shop = |index| (index, "shop".to_owned(), 64, 20, 1, "shop".to_owned());
    let db = |index| (index, "db".to_owned(), 96, 3, 1, "db".to_owned());
    assert_eq!(prepared, [shop(0), db(1), shop(2), db(3)]);
    driven.sort_unstable();
    let starts: Vec<u64> = driven.iter().map(|(start, _)| *start).collect();
    let guests: Vec<u32> = driven.iter().map(|(_, index)| *index).collect();
    assert_eq!(guests, [0, 1, 0, 1, 2, 3]);
    assert!(starts[0] == starts[1] && starts[2..].iter().all(|start| *start == starts[2]), "{starts:?}");
    ended.sort_unstable();
    assert_eq!(ended, [0, 1, 2, 3], "what they were driven with is ended, once");
}

#[test]
fn a_tile_that_is_not_whole_is_taken_away_and_its_guest_that_failed_is_named() {
    let Some(agent) = ready() else { return };
    let three = || vec![worker("shop", 0.0, 64, 1), worker("db", 0.0, 64, 1), worker("app", 0.0, 64, 1)];
    let plan = tiles_plan(GuestSeries::Listed(vec![1, 4]), &three());
    // Eight guests fit: the last guest of the third tile is missing.
    let full = ran(&agent, "memory", &plan, three(), Mishap::None);
    let (measured, scale_up) = full.measured();
    assert_eq!(levels(scale_up), [(3, true), (6, true)], "what stands is measured, in whole tiles");
    assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (StopKind::Memory, 6));
    assert!(
        scale_up.stopped.detail.starts_with("`app` of tile 3: the next guest takes 1.00 GiB"),
        "{:?}",
        scale_up.stopped
    );
    assert_eq!((measured.metrics[metric::HELD], measured.metrics[metric::TILES_HELD]), (6.0, 2.0));
    let level = &scale_up.levels[1];
    assert_eq!(level.metrics[metric::AVAILABLE], AVAILABLE as f64 - 6.0 * EACH as f64, "eight stood for a while");
    let fails = ran(&agent, "start", &plan, three(), Mishap::Start(5));
    let (_, scale_up) = fails.measured();
    assert_eq!((levels(scale_up), scale_up.stopped.kind), (vec![(3, true)], StopKind::Start));
    assert!(scale_up.stopped.detail.starts_with("`db` of tile 2: ") && scale_up.stopped.detail.contains(REASON));
}

#[test]
fn a_search_counts_tiles() {
    let Some(agent) = ready() else { return };
    let mut plan = tiles_plan(GuestSeries::Search { from: 1, most: 4 }, &shop_and_db());
    plan.study.cases[0].qos = vec![objective("db:response_time_p99_s", 0.065)];
    let ran = ran(&agent, "search", &plan, shop_and_db(), Mishap::None);
    let (measured, scale_up) = ran.measured();
    assert_eq!(levels(scale_up), [(2, true), (4, true), (6, true), (8, false)]);
    assert_eq!(measured.metrics[metric::TILES_HELD], 3.0);
}

#[test]
fn wrong_work_of_a_member_is_reported_under_its_name() {
    let Some(agent) = ready() else { return };
    let mut workers = shop_and_db();
    workers[1].wrong_at = Some(4);
    let plan = tiles_plan(GuestSeries::Listed(vec![1, 2]), &workers);
    let ran = ran(&agent, "wrong", &plan, workers, Mishap::None);
    let (measured, scale_up) = ran.measured();
    assert_eq!((levels(scale_up), scale_up.stopped.kind), (vec![(2, true), (4, false)], StopKind::Wrong));
    assert!(scale_up.stopped.detail.contains(&format!("db: {REASON}")), "{}", scale_up.stopped.detail);
    assert_eq!(measured.metrics[metric::TILES_HELD], 1.0);
}

#[test]
fn the_wish_to_stop_in_the_midst_of_a_tile_leaves_nothing() {
    struct Stops(Cancel);
    impl Observer for Stops {
        fn ascending(&self, _: &PlannedTrial, now: &ScaleUpNow) {
            assert_eq!(now.most, 8, "guests, as those that stand");
            if now.guests == 3 {
                self.0.cancel("test");
            }
        }
    }
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let crowd = Crowd::new(Mishap::None, &folder.path().join("kernel")).unwrap();
    let tiles = Tiles::new(crowd, shop_and_db(), folder.path().join("gold"));
    let plan = tiles_plan(GuestSeries::Listed(vec![1, 4]), &shop_and_db());
    let (out, cancel) = (folder.path().join("run"), Cancel::new());
    let run_id = format!("tiles-{}-cancel", std::process::id());
    let (ended, records) = run_plan(&plan, &tiles, (&out, &agent, &run_id), &Stops(cancel.clone()), &cancel);
    assert_eq!((ended.unwrap().interrupted.as_deref(), records.len()), (Some("test"), 0));
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
}

#[test]
fn killed_in_the_midst_of_a_tile_it_leaves_guests_that_reaping_takes_away() {
    let Some(agent) = ready() else { return };
    if let Some(out) = killed_in() {
        let crowd = Crowd::new(Mishap::None, &out.with_extension("kernel")).unwrap();
        let tiles = Tiles::new(crowd, shop_and_db(), out.with_extension("gold"));
        let run_id = out.file_name().unwrap().to_str().unwrap().to_owned();
        let plan = tiles_plan(GuestSeries::Listed(vec![2]), &shop_and_db());
        let (ended, _) = run_plan(&plan, &tiles, (&out, &agent, &run_id), &Quiet, &Cancel::new());
        panic!("it was not killed: {ended:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut left = 0;
    for line in (6..60).step_by(6) {
        let out = folder.path().join(format!("tiles-killed-{}-{line}", std::process::id()));
        if !killed_at(line, &out) {
            break;
        }
        let run_id = out.file_name().unwrap().to_str().unwrap();
        left += usize::from(!tare_lab::leftovers(run_id).is_empty());
        tare_controller::reap_dead(&agent).unwrap();
        assert_eq!(tare_lab::leftovers(run_id), Vec::<String>::new(), "killed at line {line}");
        assert!(RunFolder::open(&out).is_ok_and(|folder| folder.trials().unwrap().is_empty()), "line {line}");
    }
    assert!(left > 1, "it was killed with guests {left} times");
}
