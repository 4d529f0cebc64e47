//! The social workload for real: PostgreSQL with a database for each instance, the file store, instances in Java virtual machines, users of each;
//! all by agents that are in one network of their own.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Agent, GUEST, TIMEOUT, agent, missing, setup_site, shown};
use serde_json::{Value, json};
use tare_model::guest::{DataPlace, GuestData, GuestSize};
use tare_model::load::{LoadModel, Phases};
use tare_model::sql::{SqlServer, SqlSpec};
use tare_model::traits::TurnTraits;
use tare_model::{ByteSize, Span};
use tare_workload::{
    Data, Driven, DriverSite, Prepared, SameClock, Schedule, ServicesSite, SetupSite, WorkSite, Workload,
    WorkloadError, registry,
};

const SIZE: GuestSize = GuestSize { cpus: 1, memory: ByteSize(2 << 30) };

const fn users(clients: u32) -> LoadModel {
    LoadModel::Closed { clients, think_time: Span::ZERO }
}

/// Users in a hurry, small data and quick starts, so that seconds show what minutes would.
fn hasty() -> Value {
    json!({
        "scale-users": 25, "pool": 4, "threads": 20, "timeout": "20s",
        "java": {"heap": "128MiB", "flags": ["-XX:TieredStopAtLevel=1"]},
        "cycle": {"mean": "250ms", "most": "1250ms"},
    })
}

fn made(parameters: &Value, clients: u32) -> Box<dyn Workload> {
    (registry::find("social").unwrap().make)(parameters, &users(clients)).unwrap()
}

/// What the tests need: root, an agent, the application and a PostgreSQL. The agent's program, and parameters with which it works.
fn needed() -> Option<(PathBuf, Value)> {
    let agent = agent()?;
    let mut parameters = hasty();
    let Some(refusal) = made(&parameters, 1).refusal() else { return Some((agent, parameters)) };
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    for bin in installed.map(|entry| entry.path().join("bin").display().to_string()) {
        parameters["postgres"] = json!(bin);
        if made(&parameters, 1).refusal().is_none() {
            return Some((agent, parameters));
        }
    }
    missing(&refusal.reason)
}

/// A directory that everybody may pass.
fn place() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn data(agent: &Agent, workload: &dyn Workload, cache: &Path, instances: u32) -> Result<Data, WorkloadError> {
    let note = |text: &str| println!("{text}");
    workload.set_up_once(&SetupSite { instances, ..setup_site(agent, cache, SIZE, &note) })
}

/// A copy of the gold copy, as a platform restores one.
fn restored(data: &GuestData, place: &Path) -> DataPlace {
    let path = place.join("copy");
    let copied = Command::new("cp").arg("-a").arg(&data.gold).arg(&path).status().unwrap();
    assert!(copied.success());
    DataPlace { path: path.display().to_string(), ..shown(data) }
}

/// A guest, and what it uses beside it.
struct Bench {
    agent: Agent,
    guest: DataPlace,
    services: DataPlace,
    instances: u32,
    workload: Box<dyn Workload>,
    /// Goes when all else has gone.
    _place: tempfile::TempDir,
}

impl Bench {
    fn new(program: &Path, parameters: &Value, clients: u32, instances: u32) -> Self {
        let (agent, place) = (Agent::start(program), place());
        let workload = made(parameters, clients);
        let data = data(&agent, &*workload, place.path(), instances).unwrap();
        let guest = shown(data.guest(0).unwrap());
        let services = restored(data.service(0).unwrap(), place.path());
        Self { agent, guest, services, instances, workload, _place: place }
    }

    /// What happens at this bench with so many users.
    fn at<R>(&self, clients: u32, act: impl FnOnce(&WorkSite<'_>) -> R) -> R {
        let drivers = [DriverSite { client: self.agent.link(), clock: &SameClock }];
        let services = ServicesSite { link: self.agent.link(), address: GUEST, data: Some(&self.services) };
        act(&WorkSite {
            instances: self.instances,
            services: Some(services),
            ..common::work_site(&self.agent, &drivers, Some(&self.guest), SIZE, users(clients))
        })
    }

    fn drive(
        &self,
        prepared: &mut dyn Prepared,
        clients: u32,
        turns: Option<TurnTraits>,
        meddle: impl Fn(&Agent),
    ) -> Result<(Driven, Option<String>), WorkloadError> {
        let phases = Phases {
            warm_up: Span::from_millis(2000),
            ramp_up: Span::ZERO,
            steady_state: Span::from_millis(6000),
            ramp_down: Span::from_millis(100),
        };
        let turns = turns.map(|turns| common::in_turns(turns, &phases));
        let schedule = Schedule { phases, start_at_ns: 0, seed: 7, interval_ns: 100_000_000, turns, baton: None };
        self.at(clients, |site| {
            prepared.connect(site, &schedule)?;
            let mut driven = prepared.drive(site, &schedule)?;
            meddle(&self.agent);
            let wrong = prepared.verify(site, &mut driven)?;
            Ok((driven, wrong))
        })
    }
}

fn sql(agent: &Agent, database: &str, statement: &str) -> String {
    let server = SqlServer::of((Ipv4Addr::LOCALHOST, 5432).into(), "tare", database);
    let spec = SqlSpec { server, statements: vec![statement.into()], timeout_ns: 20_000_000_000 };
    agent.link().perform(&spec, TIMEOUT).unwrap().unwrap()[0]
        .rows
        .first()
        .and_then(|row| row[0].clone())
        .unwrap_or_default()
}

#[test]
fn users_of_two_instances_are_served_twice_and_what_they_bring_is_there() {
    let Some((program, parameters)) = needed() else { return };
    let bench = Bench::new(&program, &parameters, 16, 2);
    let mut prepared = bench.at(16, |site| bench.workload.prepare(site)).unwrap();
    assert_eq!(sql(&bench.agent, "social2", "SELECT count(*) FROM person"), "2500");
    // Another load in the same instances, as a search for one offers it; and one in turns.
    for (clients, turns) in [(16, None), (10, bench.workload.traits(&SIZE, 2).turns)] {
        let (driven, wrong) = bench.drive(&mut *prepared, clients, turns, |_| ()).unwrap();
        println!("{:#?}\n{:#?}", driven.measurement.metrics, driven.measurement.counts);
        println!("{:#?}\n{:#?}", driven.facts, driven.flags);
        for one in &driven.measurement.requests {
            println!("{} {} of which wrong {}", one.requests, one.name, one.validation_errors);
        }
        assert_eq!((wrong, driven.invalid.clone()), (None, None));
        let driven = bench.workload.combine(vec![driven]).unwrap();
        let metrics = &driven.measurement.metrics;
        let declared: Vec<String> = bench.workload.metrics().into_iter().map(|spec| spec.id).collect();
        assert!(metrics.keys().all(|id| declared.contains(id)), "{metrics:?}");
        for metric in
            ["response_time_p90_s", "operations_per_s", "instance_memory_bytes", "not_modified_share", "cycle_ratio"]
        {
            assert!(metrics[metric] > 0.0, "{metric}: {metrics:?}");
        }
        assert_eq!(driven.measurement.counts["users"], u64::from(clients));
        let parts: Vec<Option<u32>> = driven.measurement.parts.iter().map(|part| part.instance).collect();
        assert_eq!(parts, [Some(1), Some(2)]);
        let rates: f64 = driven.measurement.parts.iter().map(|part| part.metrics["operations_per_s"]).sum();
        assert!((rates / metrics["operations_per_s"] - 1.0).abs() < 1e-6, "{rates}");
        assert!(driven.facts["databases made in"].contains("2 of them"), "{:?}", driven.facts);
    }
    let added = sql(&bench.agent, "social1", "SELECT count(*) FROM person WHERE username LIKE 'new-%'");
    assert!(added.parse::<u32>().unwrap() > 0, "nobody was added in two drives");
}

#[test]
fn what_is_lost_or_changed_behind_the_application_makes_a_trial_invalid() {
    let Some((program, parameters)) = needed() else { return };
    let bench = Bench::new(&program, &parameters, 12, 1);
    let mut prepared = bench.at(12, |site| bench.workload.prepare(site)).unwrap();
    let (_, wrong) = bench
        .drive(&mut *prepared, 12, None, |agent| {
            sql(agent, "social1", "DELETE FROM person_socialevent WHERE socialeventid = 1");
        })
        .unwrap();
    let wrong = wrong.expect("attendances are missing");
    assert!(wrong.contains("instance 1: attendances: the database has"), "{wrong}");
}

/// The process that was started with this argument.
fn with_argument(word: &str) -> rustix::process::Pid {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ours = |pid: &i32| {
        let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        cmdline.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    rustix::process::Pid::from_raw(numbers.find(ours).unwrap()).unwrap()
}

#[test]
fn an_instance_that_hangs_makes_a_trial_invalid_by_what_its_users_saw() {
    let Some((program, mut parameters)) = needed() else { return };
    let word = format!("-Dtare.test=hangs-{}", std::process::id());
    parameters["java"]["flags"].as_array_mut().unwrap().push(json!(word));
    parameters["timeout"] = json!("1s");
    let bench = Bench::new(&program, &parameters, 8, 1);
    let mut prepared = bench.at(8, |site| bench.workload.prepare(site)).unwrap();
    let pid = with_argument(&word);
    // In the middle of what is measured.
    let hang = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(4));
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    });
    let (_, wrong) = bench.drive(&mut *prepared, 8, None, |_| ()).unwrap();
    hang.join().unwrap();
    let wrong = wrong.expect("nobody was answered any more");
    assert!(wrong.contains("had a wrong answer or none") && wrong.contains("ask instance 1"), "{wrong}");
}

#[test]
fn an_instance_that_is_killed_is_reported_as_a_lost_guest() {
    let Some((program, mut parameters)) = needed() else { return };
    let word = format!("-Dtare.test=social-{}", std::process::id());
    parameters["java"]["flags"].as_array_mut().unwrap().push(json!(word));
    let bench = Bench::new(&program, &parameters, 8, 1);
    let mut prepared = bench.at(8, |site| bench.workload.prepare(site)).unwrap();
    let kill = |_: &Agent| {
        let pid = with_argument(&word);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        while Path::new(&format!("/proc/{}/cmdline", pid.as_raw_nonzero())).exists()
            && !std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default().is_empty()
        {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    let error = bench.drive(&mut *prepared, 8, None, kill).unwrap_err();
    assert!(error.guest_lost() && error.to_string().contains("instance 1"), "{error}");
    // What it could not remove lies where it goes with the run.
    let left = std::fs::read_dir(Path::new(&bench.services.path).join("instances")).unwrap().flatten();
    let left: Vec<String> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(matches!(left.as_slice(), [one] if one.starts_with("tare-social-")), "{left:?}");
}

#[test]
fn what_cannot_be_is_refused_before_the_first_trial_or_reported_with_what_was_said() {
    let Some((program, parameters)) = needed() else { return };
    let bench = Bench::new(&program, &parameters, 8, 1);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut parameters = parameters.clone();
        change(&mut parameters);
        parameters
    };
    let refused_ahead = |parameters: &Value, clients: u32, instances: u32, words: &[&str]| {
        let cache = place();
        let error = data(&bench.agent, &*made(parameters, clients), cache.path(), instances).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    };
    refused_ahead(&parameters, 100, 8, &["8 instances", "388 MiB", "2048 MiB", "`instances` at most"]);
    refused_ahead(&parameters, 2, 3, &["offer 2 users to 3 instances"]);
    refused_ahead(&parameters, 26, 1, &["scale-users = 26"]);
    let unknown = with(&|parameters| parameters["settings"] = json!({"no_such_setting": 1}));
    refused_ahead(&unknown, 8, 1, &["no_such_setting", "`settings`"]);
    let refused = |parameters: &Value, words: &[&str]| {
        let error = bench.at(8, |site| made(parameters, 8).prepare(site)).err().unwrap().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    };
    let flags = |flag: &str| with(&|parameters| parameters["java"]["flags"] = json!([flag]));
    refused(&flags("-XX:+NoSuchOption"), &["instance 1", "code 1", "NoSuchOption", "see what it says"]);
    // What failed has left nothing behind, or the next could not begin: address and data are the same.
    refused(&flags("-XX:+NoSuchToo"), &["NoSuchToo"]);
    let large = with(&|parameters| parameters["java"]["large-pages"] = json!("on"));
    if std::fs::read_to_string("/proc/meminfo").unwrap().contains("HugePages_Free:        0") {
        refused(&large, &["large pages", "vm.nr_hugepages"]);
    }
    let alone = bench.at(8, |site| {
        let site = WorkSite { services: None, ..*site };
        bench.workload.prepare(&site).err().unwrap().to_string()
    });
    assert!(alone.contains("lab's network"), "{alone}");
}
