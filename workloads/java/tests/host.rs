//! The workload `java` for real: the application in a Java virtual machine, driven again and again, checked, killed; all by
//! an agent that is alone in a network of its own.

use std::path::{Path, PathBuf};

use crate::common::{self, Agent, agent, missing, setup_site};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tare_model::guest::{DataPlace, GuestSize};
use tare_model::load::{Arrivals, LoadModel, Phases};
use tare_model::units::Rate;
use tare_model::{ByteSize, Span};
use tare_workload::{Driven, DriverSite, Prepared, SameClock, Schedule, WorkSite, Workload, WorkloadError, registry};

const TWO: LoadModel = LoadModel::Closed { clients: 2, think_time: Span::ZERO };
const SIZE: GuestSize = GuestSize { cpus: 1, memory: ByteSize(768 << 20) };

/// What the tests need: root, an agent and the application. The agent's program.
fn needed() -> Option<PathBuf> {
    let agent = agent()?;
    match made(json!({}), &TWO).refusal() {
        Some(refusal) => missing(&refusal.to_string()),
        None => Some(agent),
    }
}

/// The workload with a small heap, and whatever is asked beside that.
fn made(mut parameters: Value, load: &LoadModel) -> Box<dyn Workload> {
    let defaults = json!({"heap": "256MiB", "collector": "serial", "options": ["-XX:TieredStopAtLevel=1"]});
    for (name, value) in defaults.as_object().unwrap() {
        parameters.as_object_mut().unwrap().entry(name).or_insert(value.clone());
    }
    (registry::find("java").unwrap().make)(&parameters, load).unwrap()
}

/// The application's data as a platform shows them that shows the gold copy itself.
fn data(agent: &Agent, workload: &dyn Workload) -> DataPlace {
    common::shown_by(workload, &setup_site(agent, Path::new("/nowhere"), SIZE, &|_| ()))
}

fn work_site<'a>(
    agent: &'a Agent,
    drivers: &'a [DriverSite<'a>],
    data: Option<&'a DataPlace>,
    load: LoadModel,
) -> WorkSite<'a> {
    common::work_site(agent, drivers, data, SIZE, load)
}

fn driver(agent: &Agent) -> [DriverSite<'_>; 1] {
    [DriverSite { client: agent.link(), clock: &SameClock }]
}

/// One drive of so many milliseconds, and what was wrong with it.
fn drive(
    site: &WorkSite<'_>,
    prepared: &mut dyn Prepared,
    steady_ms: u64,
) -> Result<(Driven, Option<String>), WorkloadError> {
    let phases = Phases {
        warm_up: Span::from_millis(200),
        ramp_up: Span::ZERO,
        steady_state: Span::from_millis(steady_ms),
        ramp_down: Span::from_millis(100),
    };
    let schedule =
        Schedule { phases, start_at_ns: 0, seed: u64::MAX, interval_ns: 100_000_000, turns: None, baton: None };
    common::drive(site, prepared, &schedule)
}

/// The process whose command line has that word.
fn process_with(word: &str) -> Pid {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let cmdline = |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has = |pid: &i32| cmdline(pid).split(|byte| *byte == 0).any(|argument| argument == word.as_bytes());
    Pid::from_raw(numbers.into_iter().find(has).expect("the application is at work")).unwrap()
}

#[test]
fn the_application_is_driven_again_and_again_checked_and_seen_when_it_is_killed() {
    let Some(program) = needed() else { return };
    let agent = Agent::start(&program);
    let word = "-Dtare.test=again-and-again";
    let workload = made(json!({"options": ["-XX:TieredStopAtLevel=1", word]}), &TWO);
    let (drivers, data) = (driver(&agent), data(&agent, &*workload));
    let site = work_site(&agent, &drivers, Some(&data), TWO);
    let mut prepared = workload.prepare(&site).unwrap();
    let mut seen = Vec::new();
    for steady_ms in [600, 400] {
        let (driven, wrong) = drive(&site, &mut *prepared, steady_ms).unwrap();
        assert_eq!((wrong, driven.invalid.clone()), (None, None), "{driven:?}");
        seen.push(workload.combine(vec![driven]).unwrap());
    }
    println!("{:#?}\n{:#?}\n{:#?}", seen[1].measurement.metrics, seen[1].facts, seen[1].measurement.counts);
    for driven in &seen {
        for metric in ["operations_per_s", "response_time_p99_s", "heap_used_bytes", "allocated_bytes_per_operation"] {
            assert!(driven.measurement.metrics[metric] > 0.0, "{metric}: {:?}", driven.measurement.metrics);
        }
        assert!(driven.measurement.counts["transactions: new-order"] > 0);
        assert!(driven.measurement.counts["application_resident_peak_bytes"] > 64 << 20);
        assert!(driven.facts["live heap at start"].ends_with("of 2 data groups"), "{:?}", driven.facts);
        assert!(driven.facts["application: collector"].contains("Serial"), "{:?}", driven.facts);
    }

    kill_process(process_with(word), Signal::KILL).unwrap();
    let lost = drive(&site, &mut *prepared, 400).unwrap_err();
    assert!(lost.guest_lost() && lost.to_string().contains("signal 9"), "{lost}");
}

#[test]
fn an_application_that_is_killed_under_load_is_reported_as_a_lost_guest() {
    let Some(program) = needed() else { return };
    let agent = Agent::start(&program);
    let word = "-Dtare.test=under-load";
    let load = LoadModel::Open { rate: Rate(300.0), arrivals: Arrivals::Poisson, connections: 2 };
    let workload = made(json!({"options": ["-XX:TieredStopAtLevel=1", word]}), &load);
    // No platform handed data over, but the guest sees this host's.
    let drivers = driver(&agent);
    let site = work_site(&agent, &drivers, None, load);
    let mut prepared = workload.prepare(&site).unwrap();
    let (driven, wrong) = drive(&site, &mut *prepared, 1000).unwrap();
    assert_eq!(wrong, None);
    let rate = driven.measurement.metrics["operations_per_s"];
    assert!((150.0..450.0).contains(&rate), "300 were offered: {rate}");
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(600));
            kill_process(process_with(word), Signal::KILL).unwrap();
        });
        drive(&site, &mut *prepared, 20_000).unwrap_err()
    });
    assert!(error.guest_lost() && error.to_string().contains("signal 9"), "{error}");
}

#[test]
fn the_guests_system_holds_its_memory_beside_the_application_and_gives_way() {
    let Some(program) = needed() else { return };
    let agent = Agent::start(&program);
    let workload = made(json!({"memory": "filled-distinct", "room": "64MiB"}), &TWO);
    assert_eq!(workload.traits(&SIZE, 1).touches(), SIZE.memory);
    let (drivers, data) = (driver(&agent), data(&agent, &*workload));
    let site = work_site(&agent, &drivers, Some(&data), TWO);
    let mut prepared = workload.prepare(&site).unwrap();
    let (driven, wrong) = drive(&site, &mut *prepared, 400).unwrap();
    assert_eq!((wrong, driven.invalid.clone()), (None, None));
    println!("{:#?}\n{:#?}", driven.facts, driven.measurement.counts);
    let (held, resident) =
        (driven.measurement.counts["memory_held_bytes"], driven.measurement.counts["application_resident_peak_bytes"]);
    assert!(held > 128 << 20, "{held}");
    assert!(held + resident <= SIZE.memory.0, "{held} held and {resident} of the application's");
}

#[test]
fn what_cannot_be_started_is_reported_with_its_output_and_no_guest_is_lost() {
    let Some(program) = needed() else { return };
    let agent = Agent::start(&program);
    let drivers = driver(&agent);
    let refused = |parameters: Value, data: Option<&DataPlace>, words: &[&str]| {
        let error = made(parameters, &TWO).prepare(&work_site(&agent, &drivers, data, TWO)).err().unwrap();
        let message = error.to_string();
        assert!(!error.guest_lost() && words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    };
    refused(json!({"options": ["-XX:+NoSuchOption"]}), None, &["code 1", "NoSuchOption", "see what it says"]);
    refused(json!({"java": "/no/such/java"}), None, &["/no/such/java"]);
    refused(json!({"heap": "700MiB"}), None, &["700 MiB", "768 MiB", "do not fit"]);
    let empty = DataPlace { path: "/proc/self/task".into(), ..data(&agent, &*made(json!({}), &TWO)) };
    refused(json!({}), Some(&empty), &["/proc/self/task", "the data that the guest was given"]);
    let both = [drivers[0], drivers[0]];
    let error = made(json!({}), &TWO).prepare(&work_site(&agent, &both, None, TWO)).err().unwrap();
    assert!(error.to_string().contains("2 drivers"), "{error}");

    let cache = std::env::var("TARE_CACHE").unwrap_or_else(|_| "/var/cache/tare".into());
    let elsewhere = Agent::start_hiding(&program, &[&cache]);
    let error = made(json!({}), &TWO).prepare(&work_site(&elsewhere, &drivers, None, TWO)).err().unwrap();
    assert!(error.to_string().contains("its platform can hand no data") && !error.guest_lost(), "{error}");
}

#[test]
fn the_rate_for_a_share_of_the_guests_cpus_is_found_and_then_offered() {
    let Some(program) = needed() else { return };
    let agent = Agent::start(&program);
    let word = "-Dtare.test=share";
    let workload = made(json!({"cpu-share": 0.3, "options": ["-XX:TieredStopAtLevel=1", word]}), &TWO);
    assert!(workload.traits(&SIZE, 1).calibrated);
    let drivers = driver(&agent);
    let mut site = work_site(&agent, &drivers, None, TWO);
    let mut prepared = workload.prepare(&site).unwrap();
    let error = drive(&site, &mut *prepared, 400).unwrap_err();
    assert!(error.to_string().contains("was not found before"), "{error}");
    let error = workload.calibrate(&site, &mut *prepared, &|| None).unwrap_err();
    assert!(error.to_string().contains("cannot count the CPU"), "{error}");

    let stat = format!("/proc/{}/stat", process_with(word).as_raw_nonzero());
    let cpu_s = || {
        let text = std::fs::read_to_string(&stat).ok()?;
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        Some((fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?) / 100.0)
    };
    let found = workload.calibrate(&site, &mut *prepared, &cpu_s).unwrap();
    println!("{found:?}");
    assert!((found.cpu_share - 0.3).abs() <= 0.03 && found.rate_per_s > 0.0, "{found:?}");
    site.rate_per_s = Some(found.rate_per_s);
    let (driven, wrong) = drive(&site, &mut *prepared, 1000).unwrap();
    assert_eq!(wrong, None);
    let share = driven.measurement.metrics["operations_per_s"] / found.rate_per_s;
    assert!((0.5..1.5).contains(&share), "{share} of what was found");
}
