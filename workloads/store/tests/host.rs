//! The workload `store` for real: a gold copy, a server on a copy of it, drivers, and the count afterwards; all by an agent
//! that is alone in a network of its own.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use crate::common::{self, Agent, GUEST, TIMEOUT, agent, missing};
use serde_json::{Value, json};
use tare_model::guest::{DataPlace, GuestSize};
use tare_model::load::{LoadModel, Phases};
use tare_model::sql::{SqlServer, SqlSpec};
use tare_model::turns::{TurnSpec, Turns, Waiting};
use tare_model::{ByteSize, Span};
use tare_workload::{Driven, DriverSite, SameClock, Schedule, SetupSite, WorkSite, Workload, registry};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// An address at which the server knows nobody without a password.
const LOAD: LoadModel = LoadModel::Closed { clients: 3, think_time: Span::ZERO };
const SIZE: GuestSize = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };

impl Agent {
    fn sql(&self, user: &str, database: &str, statement: &str) -> Vec<Vec<Option<String>>> {
        let server = SqlServer::of((Ipv4Addr::LOCALHOST, 5432).into(), user, database);
        let spec = SqlSpec { server, statements: vec![statement.into()], timeout_ns: 20_000_000_000 };
        self.link().perform(&spec, TIMEOUT).unwrap().unwrap().remove(0).rows
    }
}

/// What the tests need: root, an agent and a PostgreSQL. The agent's program, and where PostgreSQL is, as a study names it.
fn needed() -> Option<(PathBuf, String)> {
    let agent = agent()?;
    let usable = |parameters: Value| made(&parameters).refusal().is_none();
    if usable(json!({})) {
        return Some((agent, "embedded".into()));
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = installed.map(|entry| entry.path().join("bin").display().to_string());
    match installed.into_iter().find(|bin| usable(json!({ "postgres": bin }))) {
        Some(bin) => Some((agent, bin)),
        None => missing("no PostgreSQL: neither fetched (`make platforms`) nor installed"),
    }
}

fn made(parameters: &Value) -> Box<dyn Workload> {
    (registry::find("store").unwrap().make)(parameters, &LOAD).unwrap()
}

/// A directory that everybody may pass.
fn place() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// The notes from making the gold copy, and the directory it is in.
fn set_up_once(agent: &Agent, workload: &dyn Workload, place: &Path) -> (Vec<String>, PathBuf) {
    let notes = Mutex::new(Vec::new());
    let note = |text: &str| notes.lock().unwrap().push(text.to_owned());
    let data = workload.set_up_once(&setup_site(agent, place, &note)).unwrap().guest(0).cloned().unwrap();
    let log = data.log.as_ref().unwrap();
    assert!(data.size.0 > 256 << 20 && log.size.0 > 2 << 30, "{data:?}");
    assert_eq!(log.gold, data.gold.with_file_name("log"));
    (notes.into_inner().unwrap(), data.gold)
}

fn setup_site<'a>(agent: &'a Agent, cache: &'a Path, note: &'a (dyn Fn(&str) + Sync)) -> SetupSite<'a> {
    common::setup_site(agent, cache, SIZE, note)
}

/// A trial on a copy of the gold copy; `meddle` comes between the load and the count. What was measured, and what was
/// wrong.
fn trial(
    agent: &Agent,
    workload: &dyn Workload,
    data: Option<&DataPlace>,
    steady: Duration,
    meddle: impl Fn(&Agent, &mut Driven),
) -> (Driven, Option<String>) {
    trial_by(agent, workload, data, &schedule(steady), meddle)
}

/// The same by any schedule.
fn trial_by(
    agent: &Agent,
    workload: &dyn Workload,
    data: Option<&DataPlace>,
    schedule: &Schedule,
    meddle: impl Fn(&Agent, &mut Driven),
) -> (Driven, Option<String>) {
    let driver = DriverSite { client: agent.link(), clock: &SameClock };
    let drivers = [driver, driver];
    let site = work_site(agent, &drivers, data);
    let mut prepared = workload.prepare(&site).unwrap();
    prepared.connect(&site, schedule).unwrap();
    let mut driven = prepared.drive(&site, schedule).unwrap();
    meddle(agent, &mut driven);
    let wrong = prepared.verify(&site, &mut driven).unwrap();
    (driven, wrong)
}

fn schedule(steady: Duration) -> Schedule {
    let phases = Phases {
        warm_up: Span::from_millis(300),
        ramp_up: Span::ZERO,
        steady_state: Span { ns: u64::try_from(steady.as_nanos()).unwrap() },
        ramp_down: Span::from_millis(100),
    };
    Schedule { phases, start_at_ns: 0, seed: 5, interval_ns: 100_000_000, turns: None, baton: None }
}

fn work_site<'a>(agent: &'a Agent, drivers: &'a [DriverSite<'a>], data: Option<&'a DataPlace>) -> WorkSite<'a> {
    let guest_address = if data.is_some() { GUEST } else { LOCAL };
    WorkSite { guest_address, ..common::work_site(agent, drivers, data, SIZE, LOAD) }
}

/// A copy of the gold copy, as a platform restores one.
fn restored(gold: &Path, place: &Path, name: &str) -> DataPlace {
    let path = place.join(name);
    let copied = Command::new("cp").arg("-a").arg(gold).arg(&path).status().unwrap();
    assert!(copied.success());
    DataPlace {
        path: path.display().to_string(),
        storage: "directory of a test".into(),
        on_host: Some(path),
        restore_s: 0.5,
        restored_by: "copied".into(),
        log: None,
    }
}

#[test]
fn orders_are_driven_on_a_copy_of_the_gold_copy_and_counted() {
    let Some((program, postgres)) = needed() else { return };
    let (agent, place) = (Agent::start(&program), place());
    let workload = made(&json!({"postgres": postgres, "db-size": "5MB", "start-jitter": "100ms"}));
    let (notes, gold) = set_up_once(&agent, &*workload, place.path());
    assert!(notes.iter().any(|note| note.contains("MB made")), "{notes:?}");
    let (again_notes, again) = set_up_once(&agent, &*workload, place.path());
    assert!(again_notes.is_empty() && again == gold, "{again_notes:?}");

    // The first with its log apart, as an arm may have it.
    let log = restored(&gold.with_file_name("log"), place.path(), "log-1");
    let wal = place.path().join("log-1/pg_wal");
    let data = DataPlace { log: Some(Box::new(log)), ..restored(&gold, place.path(), "guest-1") };
    let (driven, wrong) = trial(&agent, &*workload, Some(&data), Duration::from_secs(1), |_, _| {});
    assert_eq!((wrong, driven.invalid.clone()), (None, None), "{driven:?}");
    assert_eq!(std::fs::read_link(place.path().join("guest-1/data/pg_wal")).unwrap(), wal);
    let same =
        Command::new("diff").arg("-rq").args([&wal, &gold.with_file_name("log").join("pg_wal")]).status().unwrap();
    assert_eq!(same.code(), Some(1), "nothing was written to the log there");
    let all = workload.combine(vec![driven]).unwrap();
    println!("{notes:?}\n{:#?}\n{:#?}\n{:#?}", all.measurement.metrics, all.facts, all.measurement.counts);
    for metric in ["orders_per_minute", "response_time_mean_s", "wal_bytes_per_order", "statements_per_s"] {
        assert!(all.measurement.metrics[metric] > 0.0, "{metric}: {:?}", all.measurement.metrics);
    }
    assert_eq!(all.measurement.parts.len(), 3);
    assert!(all.measurement.steps.iter().any(|step| step.name.contains("purchase")), "{:?}", all.measurement.steps);
    assert_eq!((all.facts["data restored in"].as_str(), all.facts["PostgreSQL fsync"].as_str()), ("0.50 s", "on"));
    assert_eq!(all.facts["log on"], "directory of a test");
    let seen: u64 =
        all.measurement.counts.iter().filter(|(name, _)| name.starts_with("server processes: ")).map(|(_, n)| n).sum();
    assert!(seen > 0, "{:?}", all.measurement.counts);
    assert!(all.flags.iter().all(|flag| flag.kind != "unsafe"), "{:?}", all.flags);

    let data = restored(&gold, place.path(), "guest-2");
    let delete = |agent: &Agent, driven: &mut Driven| {
        driven.invalid = Some("2 % failed".to_owned());
        // 6,000 were loaded. One that is as old as this is in no doubt.
        let first = "(SELECT min(order_id) FROM orders WHERE order_id > 6000)";
        agent.sql("tare", "store", &format!("DELETE FROM orderlines WHERE order_id = {first} AND line = 1"));
    };
    let (_, wrong) = trial(&agent, &*workload, Some(&data), Duration::from_millis(300), delete);
    let wrong = wrong.expect("a line was taken away behind the drivers' backs");
    assert!(wrong.contains("lines of new orders") && wrong.ends_with("; 2 % failed"), "both, the worse first: {wrong}");
}

#[test]
fn what_a_server_did_in_turns_is_counted_over_the_time_that_was_measured() {
    let Some((program, postgres)) = needed() else { return };
    let (agent, place) = (Agent::start(&program), place());
    let asked = json!({"postgres": postgres, "db-size": "1MB", "start-jitter": "0s", "statements": "functions"});
    let workload = made(&asked);
    let (_, gold) = set_up_once(&agent, &*workload, place.path());
    let data = restored(&gold, place.path(), "guest-1");
    let schedule = schedule(Duration::from_secs(1));
    let (turn, gap) = (Span::from_millis(200), Span::from_millis(20));
    let spec = TurnSpec { turn, warm_up: Span::ZERO, gap, waiting: Waiting::Idle, commands: None };
    let places = (0..spec.rounds(&schedule.phases)).map(|round| round % 3).collect();
    let turns = Some(Turns { spec, arms: 3, places }.into());
    let (driven, wrong) = trial_by(&agent, &*workload, Some(&data), &Schedule { turns, ..schedule }, |_, _| {});
    assert_eq!((wrong, driven.invalid.clone()), (None, None), "{driven:?}");
    let done = driven.turns.as_ref().unwrap();
    let operations: u64 = done.counts.iter().map(|count| count.operations).sum();
    assert_eq!(operations as f64, driven.work);
    let counts = &driven.measurement.counts;
    assert!(counts.iter().any(|(name, n)| name.starts_with("server processes: ") && *n > 0), "{counts:?}");
    // Each call of a function is a transaction; nobody else has many. Processes report them up to a second late. Over all of the time, in
    // which two other arms had as many turns, it would be a third.
    let transactions =
        counts["server: commits"] as f64 / (driven.measurement.metrics["statements_per_s"] * driven.measured_s());
    assert!((0.45..2.0).contains(&transactions), "{transactions}: {counts:?}");
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing_and_is_flagged() {
    let Some((program, postgres)) = needed() else { return };
    let (agent, place) = (Agent::start(&program), place());
    let safe = json!({
        "postgres": postgres, "db-size": "1MB", "start-jitter": "0s", "kill-after": "500ms", "statements": "functions"
    });
    let (_, gold) = set_up_once(&agent, &*made(&safe), place.path());
    // As a run leaves it that is killed before all is there.
    let key = gold.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let partial = place.path().join("gold").join(format!(".partial-{key}"));
    std::fs::rename(gold.parent().unwrap(), &partial).unwrap();
    let (notes, gold) = set_up_once(&agent, &*made(&safe), place.path());
    assert!(notes.iter().any(|note| note.contains("MB made")) && !partial.exists(), "{notes:?}");

    let data = restored(&gold, place.path(), "guest");
    let (driven, wrong) = trial(&agent, &*made(&safe), Some(&data), Duration::from_secs(4), |_, _| {});
    println!("{:#?}\n{:#?}\n{:#?}", driven.flags, driven.facts, driven.measurement.counts);
    assert_eq!((wrong, driven.invalid.clone()), (None, None), "{driven:?}");
    assert!(driven.measurement.counts["reconnects"] > 0, "{:?}", driven.measurement.counts);
    assert!(driven.facts.contains_key("server killed and recovered in"), "{:?}", driven.facts);
    assert!(driven.flags.iter().any(|flag| flag.kind == "server-killed"));

    // Killed by somebody else, it is started again to be counted, and the trial says what happened.
    let data = restored(&gold, place.path(), "guest-3");
    let die = |_: &Agent, _: &mut Driven| {
        let lock = data.on_host.as_ref().unwrap().join("data/postmaster.pid");
        let process = std::fs::read_to_string(lock).unwrap().lines().next().unwrap().to_owned();
        assert!(Command::new("kill").args(["-KILL", &process]).status().unwrap().success());
    };
    let left_alone = made(&json!({"postgres": postgres, "db-size": "1MB", "start-jitter": "0s"}));
    let (_, wrong) = trial(&agent, &*left_alone, Some(&data), Duration::from_millis(500), die);
    let wrong = wrong.expect("the server died");
    assert!(
        wrong.contains("the server died") && wrong.contains("every order that was acknowledged is there"),
        "{wrong}"
    );

    // Nothing that is in doubt stands in for an order that was acknowledged and is gone.
    let data = restored(&gold, place.path(), "guest-2");
    let lose = |agent: &Agent, _: &mut Driven| {
        for table in ["cust_hist", "orderlines", "orders"] {
            // 1,200 were loaded. One that is as old as this is in no doubt.
            let first = "(SELECT min(order_id) FROM orders WHERE order_id > 1200)";
            agent.sql("tare", "store", &format!("DELETE FROM {table} WHERE order_id = {first}"));
        }
    };
    let (_, wrong) = trial(&agent, &*made(&safe), Some(&data), Duration::from_secs(2), lose);
    assert!(wrong.as_ref().is_some_and(|wrong| wrong.contains("new orders")), "{wrong:?}");
}

#[test]
fn a_server_that_exists_is_used_and_left_as_it_was_or_refused_before_the_first_trial() {
    let Some((program, postgres)) = needed() else { return };
    let (agent, place) = (Agent::start(&program), place());
    let guest = made(&json!({"postgres": postgres, "db-size": "1MB"}));
    let (_, gold) = set_up_once(&agent, &*guest, place.path());
    let data = restored(&gold, place.path(), "server");
    let _server = guest.prepare(&work_site(&agent, &[], Some(&data))).unwrap();

    let with = |url: &str| made(&json!({"url": url, "db-size": "1MB", "start-jitter": "0s"}));
    let refused = |url: &str, words: &[&str]| {
        let error = with(url).set_up_once(&setup_site(&agent, place.path(), &|_| ())).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{url}: {error}");
    };
    refused("postgres://tare:secret@127.0.0.1:1/postgres", &["127.0.0.1:1", "check that the server runs"]);
    refused("postgres://nobody:secret@127.0.0.1/postgres", &["nobody", "28000", "check user"]);
    refused("postgres://tare@127.0.0.1/nosuch", &["nosuch", "3D000", "create the database"]);
    agent.sql("tare", "postgres", "CREATE ROLE visitor LOGIN");
    refused("postgres://visitor@127.0.0.1/postgres", &["may not make a schema", "GRANT CREATE"]);
    agent.sql("tare", "postgres", "CREATE SCHEMA tare_store");
    refused("postgres://tare@127.0.0.1/postgres", &["a schema tare_store already", "drop or rename"]);

    agent.sql(
        "tare",
        "postgres",
        "COMMENT ON SCHEMA tare_store IS 'made by tare for one trial; may be dropped at any time'",
    );
    let theirs = with("postgres://tare@{guest}:5432/postgres");
    assert!(theirs.set_up_once(&setup_site(&agent, place.path(), &|_| ())).unwrap().guest(0).is_none());
    let (driven, wrong) = trial(&agent, &*theirs, None, Duration::from_millis(500), |_, _| {});
    assert_eq!((wrong, driven.invalid.clone()), (None, None), "{driven:?}");
    assert!(driven.measurement.metrics["wal_bytes_per_order"] > 0.0, "{:?}", driven.facts);
    let left = || agent.sql("tare", "postgres", "SELECT nspname FROM pg_namespace WHERE nspname = 'tare_store'");
    assert!(left().is_empty(), "the schema is still there");
    // Nor is anything left of a trial that cannot be counted.
    let driver = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = work_site(&agent, &driver, None);
    let mut prepared = theirs.prepare(&site).unwrap();
    let schedule = schedule(Duration::from_millis(300));
    prepared.connect(&site, &schedule).unwrap();
    let mut driven = prepared.drive(&site, &schedule).unwrap();
    agent.sql("tare", "postgres", "COMMENT ON TABLE tare_store.orders IS NULL");
    let error = prepared.verify(&site, &mut driven).unwrap_err().to_string();
    assert!(error.contains("no whole store"), "{error}");
    assert!(left().is_empty(), "the schema is still there after a failure");
}

#[test]
fn a_guest_without_programs_and_data_is_given_the_one_and_loads_the_other() {
    let Some((program, postgres)) = needed() else { return };
    if postgres != "embedded" {
        println!("SKIPPED: only what `make platforms` fetched can be given to a guest");
        return;
    }
    let cache = std::env::var("TARE_CACHE").unwrap_or_else(|_| "/var/cache/tare".into());
    let agent = Agent::start_hiding(&program, &[&cache, "/opt", "/var/lib"]);
    let workload = made(&json!({"db-size": "1MB", "start-jitter": "0s"}));
    let (driven, wrong) = trial(&agent, &*workload, None, Duration::from_millis(300), |_, _| {});
    assert_eq!((wrong, driven.invalid.clone()), (None, None), "{driven:?}");
    assert!(driven.flags.iter().any(|flag| flag.kind == "data-loaded-in-guest"), "{:?}", driven.flags);
    assert!(driven.facts["data on"].contains("own root"), "{:?}", driven.facts);
}

#[test]
fn a_store_is_driven_again_and_again_and_each_time_all_orders_so_far_are_counted() {
    let Some((program, postgres)) = needed() else { return };
    let (agent, place) = (Agent::start(&program), place());
    let workload = made(&json!({"postgres": postgres, "db-size": "1MB", "start-jitter": "0s", "new-customers": 50.0}));
    assert!(workload.traits(&SIZE, 1).repeats);
    let theirs = made(&json!({"url": "postgres://tare@127.0.0.1/postgres"}));
    assert!(!theirs.traits(&SIZE, 1).repeats, "what others own is left as it was found");
    let (_, gold) = set_up_once(&agent, &*workload, place.path());
    let data = restored(&gold, place.path(), "guest");
    let driver = DriverSite { client: agent.link(), clock: &SameClock };
    let drivers = [driver, driver];
    let site = work_site(&agent, &drivers, Some(&data));
    let steady_state = Span::from_millis(400);
    let phases = Phases { warm_up: Span::from_millis(100), ramp_up: Span::ZERO, steady_state, ramp_down: Span::ZERO };
    let schedule = Schedule { phases, start_at_ns: 0, seed: 5, interval_ns: 100_000_000, turns: None, baton: None };
    let mut prepared = workload.prepare(&site).unwrap();
    prepared.stay();
    let mut once = |meddle: &dyn Fn()| {
        prepared.connect(&site, &schedule).unwrap();
        let mut driven = prepared.drive(&site, &schedule).unwrap();
        meddle();
        let wrong = prepared.verify(&site, &mut driven).unwrap();
        (driven, wrong)
    };
    let mut made = 0;
    for number in 1..=3 {
        let (driven, wrong) = once(&|| ());
        assert_eq!((wrong, driven.invalid.clone()), (None, None), "drive {number}: {:?}", driven.measurement.counts);
        assert!(driven.facts.contains_key("PostgreSQL") && driven.facts["data restored in"] == "0.50 s");
        assert!(!driven.flags.iter().any(|flag| flag.kind == "server-errors"), "{:?}", driven.flags);
        let counts = &driven.measurement.counts;
        assert!(counts["customers made in all phases"] > 0, "{counts:?}");
        assert_eq!(counts["names tried again"], 0, "customers of an earlier drive are there still");
        made += counts["orders committed in all phases"];
    }
    let there = || agent.sql("tare", "store", "SELECT count(*) FROM orders WHERE order_id > 1200");
    assert_eq!(there(), [[Some(made.to_string())]], "the server is at work, with the orders of all drives");
    // One of the first drive.
    let lose = || {
        let first = "(SELECT min(order_id) FROM orders WHERE order_id > 1200)";
        agent.sql("tare", "store", &format!("DELETE FROM orderlines WHERE order_id = {first} AND line = 1"));
    };
    let (_, wrong) = once(&lose);
    assert!(wrong.as_ref().is_some_and(|wrong| wrong.contains("lines of new orders")), "{wrong:?}");
    prepared.end(&site).unwrap();
    assert!(!data.on_host.as_ref().unwrap().join("data/postmaster.pid").exists(), "it was stopped");
}
