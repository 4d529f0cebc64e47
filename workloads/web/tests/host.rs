//! The web workloads for real: the server in a Java virtual machine and the backend, users that ask it, all checked; all by an
//! agent that is alone in a network of its own.

use std::path::{Path, PathBuf};

use crate::common::{self, Agent, GUEST, TIMEOUT, agent, missing, setup_site};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tare_model::guest::{DataPlace, GuestSize};
use tare_model::load::{LoadModel, Phases};
use tare_model::traits::TurnTraits;
use tare_model::{ByteSize, Span};
use tare_wire::{ExecSpec, Reply, Request};
use tare_workload::{
    BackendSite, Driven, DriverSite, Prepared, SameClock, Schedule, SetupSite, WorkSite, Workload, WorkloadError,
    registry,
};

const SIZE: GuestSize = GuestSize { cpus: 1, memory: ByteSize(768 << 20) };
const EIGHT: LoadModel = LoadModel::Closed { clients: 8, think_time: Span::ZERO };

/// What the tests need: root, an agent and the server. The agent's program.
fn needed() -> Option<PathBuf> {
    let agent = agent()?;
    let workload = (registry::find("web-support").unwrap().make)(&json!({}), &EIGHT).unwrap();
    match workload.refusal() {
        Some(refusal) => missing(&refusal.to_string()),
        None => Some(agent),
    }
}

/// A site whose users think less, so that seconds show what minutes would, with a small file set.
struct Hasty {
    /// Where file sets are kept, and the tables.
    folder: tempfile::TempDir,
}

impl Hasty {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn workload(&self, site: &str, mut parameters: Value) -> Box<dyn Workload> {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../workloads/web/host/sites/{site}.toml"));
        let text = std::fs::read_to_string(shipped).unwrap();
        let think = text.lines().find(|line| line.starts_with("think = ")).unwrap();
        let hasty = r#"think = { mean = "100ms", most = "1500ms", granularity = "20ms" }"#;
        let path = self.folder.path().join(format!("{site}.toml"));
        std::fs::write(&path, text.replace(think, hasty)).unwrap();
        parameters["tables"] = json!(path);
        if parameters.get("url").is_none() {
            let options = parameters.as_object_mut().unwrap().entry("options").or_insert(json!([]));
            options.as_array_mut().unwrap().push(json!("-XX:TieredStopAtLevel=1"));
        }
        (registry::find(&format!("web-{site}")).unwrap().make)(&parameters, &EIGHT).unwrap()
    }

    /// The data as a platform shows them that shows the gold copy itself.
    fn data(&self, agent: &Agent, workload: &dyn Workload) -> DataPlace {
        common::shown_by(workload, &setup_site(agent, self.folder.path(), SIZE, &|text| println!("{text}")))
    }
}

fn work_site<'a>(agent: &'a Agent, drivers: &'a [DriverSite<'a>], data: Option<&'a DataPlace>) -> WorkSite<'a> {
    let backend = BackendSite { link: agent.link(), address: Some(GUEST), listen: Some(GUEST), host: None };
    WorkSite { backend, ..common::work_site(agent, drivers, data, SIZE, EIGHT) }
}

/// One drive of so many milliseconds, and what was wrong with it.
fn drive(
    site: &WorkSite<'_>,
    prepared: &mut dyn Prepared,
    steady_ms: u64,
) -> Result<(Driven, Option<String>), WorkloadError> {
    drive_as(site, prepared, steady_ms, None)
}

/// The same where the arm may take turns with two others.
fn drive_as(
    site: &WorkSite<'_>,
    prepared: &mut dyn Prepared,
    steady_ms: u64,
    turns: Option<TurnTraits>,
) -> Result<(Driven, Option<String>), WorkloadError> {
    let phases = Phases {
        warm_up: Span::from_millis(1000),
        ramp_up: Span::from_millis(200),
        steady_state: Span::from_millis(steady_ms),
        ramp_down: Span::from_millis(100),
    };
    let turns = turns.map(|turns| common::in_turns(turns, &phases));
    let schedule = Schedule { phases, start_at_ns: 0, seed: 7, interval_ns: 100_000_000, turns, baton: None };
    common::drive(site, prepared, &schedule)
}

/// Words after an option in the commands of the servers that have these data.
fn words_of_servers(data: &DataPlace, option: &str) -> Vec<String> {
    let of = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("cmdline")).ok();
    let commands = std::fs::read_dir("/proc").unwrap().flatten().filter_map(of);
    let ours = commands.filter(|command| command.contains("tare.web.Main") && command.contains(&data.path));
    let word = |command: String| {
        let mut words = command.split('\0').map(str::to_owned);
        words.find(|word| word == option).and_then(|_| words.next())
    };
    ours.filter_map(word).collect()
}

/// Runs a site for some seconds and tells what came of it, which must be right.
fn served(site: &str, parameters: Value) -> Option<Driven> {
    let program = needed()?;
    let (agent, hasty) = (Agent::start(&program), Hasty::new());
    let workload = hasty.workload(site, parameters);
    let data = hasty.data(&agent, &*workload);
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let at = work_site(&agent, &drivers, Some(&data));
    let mut prepared = workload.prepare(&at).unwrap();
    // The server has read its key, which is nowhere any more.
    assert_eq!(words_of_servers(&data, "--data"), std::slice::from_ref(&data.path));
    for key in words_of_servers(&data, "--key") {
        assert!(!Path::new(&key).parent().unwrap().exists(), "{key}");
    }
    let (driven, wrong) = drive(&at, &mut *prepared, 4000).unwrap();
    assert_eq!(words_of_servers(&data, "--data"), Vec::<String>::new(), "it ends with its trial");
    println!("{:#?}\n{:#?}\n{:#?}", driven.measurement.metrics, driven.measurement.counts, driven.facts);
    println!("{:#?}", driven.flags);
    assert_eq!((wrong, driven.invalid.clone()), (None, None));
    let driven = workload.combine(vec![driven]).unwrap();
    let metrics = &driven.measurement.metrics;
    let declared: Vec<String> = workload.metrics().into_iter().map(|spec| spec.id).collect();
    assert!(metrics.keys().all(|id| declared.contains(id)), "{metrics:?}");
    for metric in ["response_time_mean_s", "pages_per_s", "bits_per_s", "bytes_per_request", "backend_cpu_share"] {
        assert!(metrics[metric] > 0.0, "{metric}: {metrics:?}");
    }
    assert!(metrics["validation_error_share"].abs() < 1e-12, "{metrics:?}");
    assert!(metrics["not_modified_share"] > 0.05, "users have images already: {metrics:?}");
    let requests: u64 = driven.measurement.requests.iter().map(|one| one.requests).sum();
    assert!(requests > 30, "{:?}", driven.measurement.requests);
    assert!(driven.measurement.counts["backend_requests"] >= requests / 3, "{:?}", driven.measurement.counts);
    assert!(driven.flags.iter().any(|flag| flag.kind == "few-requests"), "{:?}", driven.flags);
    Some(driven)
}

#[test]
fn a_bank_is_driven_in_turns_and_its_rates_are_those_of_its_own_time() {
    let Some(program) = needed() else { return };
    let (agent, hasty) = (Agent::start(&program), Hasty::new());
    let workload = hasty.workload("banking", json!({}));
    let data = hasty.data(&agent, &*workload);
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = work_site(&agent, &drivers, Some(&data));
    let mut prepared = workload.prepare(&site).unwrap();
    let (driven, wrong) = drive_as(&site, &mut *prepared, 3000, workload.traits(&SIZE, 1).turns).unwrap();
    println!("{:#?}\n{:#?}\n{:#?}", driven.measurement.metrics, driven.measurement.counts, driven.facts);
    assert_eq!((wrong, driven.invalid.clone()), (None, None));
    let driven = workload.combine(vec![driven]).unwrap();
    assert!((driven.measured_s() - 3.0).abs() < 1e-9, "{}", driven.measured_s());
    let metrics = &driven.measurement.metrics;
    assert!((metrics["pages_per_s"] * 3.0 - driven.work).abs() < 1e-6 && driven.work > 30.0, "{metrics:?}");
    assert_eq!(driven.turns.unwrap().counts.iter().map(|turn| turn.operations).sum::<u64>() as f64, driven.work);
    assert_eq!(driven.measurement.counts["requests sent again after a kept connection was closed"], 0);
}

#[test]
fn turns_are_for_pages_and_not_for_downloads_that_take_minutes_or_a_server_that_exists() {
    let turns = |site: &str, parameters: Value| {
        (registry::find(site).unwrap().make)(&parameters, &EIGHT).unwrap().traits(&SIZE, 1).turns
    };
    assert!(turns("web-banking", json!({})).is_some_and(|turns| !turns.freezes));
    assert!(turns("web-support", json!({})).is_none());
    assert!(turns("web-support", json!({"receive-rate": "unlimited"})).is_some());
    assert!(turns("web-banking", json!({"url": "http://127.0.0.1:80"})).is_none());
}

#[test]
fn a_bank_is_served_over_tls_and_every_page_is_checked() {
    let Some(driven) = served("banking", json!({"users-per-session": 2})) else { return };
    let full: u64 = driven.facts["TLS handshakes in full, all phases"].parse().unwrap();
    let resumed: u64 = driven.facts["TLS handshakes resumed, all phases"].parse().unwrap();
    assert!(full > 0 && full + resumed >= 16, "{full} handshakes in full, {resumed} resumed");
    let of_files = |own: &tare_model::deviation::Deviation| own.what == "file set" && own.here == "2 users a session";
    assert!(driven.deviations.iter().any(of_files), "{:?}", driven.deviations);
    assert!(driven.measurement.requests.iter().any(|one| one.name == "check_image" && one.requests > 0));
}

#[test]
fn a_shop_is_served_by_tomcat_behind_nginx() {
    if !Path::new("/usr/sbin/nginx").exists() {
        return missing("there is no /usr/sbin/nginx").unwrap_or_default();
    }
    let parameters = json!({"server": "nginx", "directories-per-session": 1.0, "receive-rate": "unlimited"});
    let Some(driven) = served("ecommerce", parameters) else { return };
    assert_eq!(driven.facts["server"], "Tomcat behind nginx");
    assert!(driven.facts["nginx"].contains('.'), "{:?}", driven.facts);
}

#[test]
fn support_is_served_without_tls() {
    let parameters = json!({"file-sessions": 1, "receive-rate": "unlimited"});
    let Some(driven) = served("support", parameters) else { return };
    assert_eq!(driven.facts["TLS handshakes in full, all phases"], "0");
    let made = driven.deviations.iter().find(|own| own.what == "file set, sessions");
    assert!(made.is_some_and(|own| own.here.contains("made for 1 sessions, 8")), "{:?}", driven.deviations);
    assert!(driven.measurement.requests.iter().any(|one| one.name == "download" && one.bytes > 1_000_000));
}

/// The process whose command line has that word.
fn process_with(word: &str) -> Pid {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let cmdline = |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has = |pid: &i32| cmdline(pid).split(|byte| *byte == 0).any(|argument| argument == word.as_bytes());
    Pid::from_raw(numbers.into_iter().find(has).expect("the server is at work")).unwrap()
}

#[test]
fn a_server_that_is_killed_under_load_is_reported_as_a_lost_guest_and_leaves_no_key() {
    let Some(program) = needed() else { return };
    let (agent, hasty) = (Agent::start(&program), Hasty::new());
    let word = "-Dtare.test=killed-under-load";
    let workload = hasty.workload("banking", json!({"users-per-session": 1, "options": [word], "timeout": "2s"}));
    let data = hasty.data(&agent, &*workload);
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = work_site(&agent, &drivers, Some(&data));
    let mut prepared = workload.prepare(&site).unwrap();
    // It was read, and whatever ends the server leaves none.
    let [key] = &words_of_servers(&data, "--key")[..] else { panic!("it was given a key") };
    assert!(!Path::new(key).parent().unwrap().exists(), "{key} is left");
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(1500));
            kill_process(process_with(word), Signal::KILL).unwrap();
        });
        drive(&site, &mut *prepared, 4000).unwrap_err()
    });
    assert!(error.guest_lost() && error.to_string().contains("signal 9"), "{error}");
}

#[test]
fn what_cannot_be_started_is_reported_with_its_output() {
    let Some(program) = needed() else { return };
    let (agent, hasty) = (Agent::start(&program), Hasty::new());
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let small = || json!({"file-sessions": 1, "directories-per-session": 1.0});
    let with = |name: &str, value: Value| {
        let mut parameters = small();
        parameters[name] = value;
        parameters
    };
    let plain = hasty.workload("ecommerce", small());
    let data = hasty.data(&agent, &*plain);
    let site = work_site(&agent, &drivers, Some(&data));
    let refused = |parameters: Value, site: &WorkSite<'_>, words: &[&str]| {
        let error = hasty.workload("ecommerce", parameters).prepare(site).err().unwrap();
        let message = error.to_string();
        assert!(!error.guest_lost() && words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    };
    refused(with("options", json!(["-XX:+NoSuchOption"])), &site, &["code 1", "NoSuchOption", "see what it says"]);
    refused(with("java", json!("/no/such/java")), &site, &["/no/such/java"]);
    refused(with("heap", json!("700MiB")), &site, &["700 MiB", "768 MiB", "do not fit"]);
    let mut nginx = with("server", json!("nginx"));
    nginx["nginx"] = json!("/no/such/nginx");
    refused(nginx, &site, &["/no/such/nginx"]);
    let nowhere = WorkSite { backend: BackendSite { address: None, ..site.backend }, ..site };
    refused(small(), &nowhere, &["start the backend", "no address is known", "`address`"]);
    let empty = DataPlace { path: "/proc/self/task".into(), ..data.clone() };
    refused(
        small(),
        &work_site(&agent, &drivers, Some(&empty)),
        &["/proc/self/task", "the data that the guest was given"],
    );
    refused(small(), &work_site(&agent, &drivers, None), &["can hand no data"]);
}

/// A server in the agent's network whose pages are none of ours: so many connections are answered.
const OTHER_SERVER: &str = r#"
import http.server, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b"ready\n" if self.path == "/tare/ready" else b"<html>somebody else's page</html>\n"
        self.send_response(404 if self.path == "/tare/stats" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
server = Server(("10.97.0.2", 9090), Handler)
print("listening", flush=True)
server.serve_forever()
"#;

#[test]
fn pages_of_another_server_are_not_believed() {
    let Some(program) = needed() else { return };
    if !Path::new("/usr/bin/python3").exists() {
        return missing("there is no /usr/bin/python3").unwrap_or_default();
    }
    let (agent, hasty) = (Agent::start(&program), Hasty::new());
    let spec = ExecSpec::new(&["/usr/bin/python3", "-c", OTHER_SERVER], std::time::Duration::from_secs(120), 1 << 16);
    let Ok(Reply::Started { command, .. }) = agent.link().call(Request::Start(spec), TIMEOUT) else {
        panic!("not started")
    };
    let listening = || match agent.link().call(Request::Look { command }, TIMEOUT) {
        Ok(Reply::Looked { stdout, ended: None, .. }) => stdout.starts_with(b"listening"),
        other => panic!("{other:?}"),
    };
    while !listening() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let workload = hasty.workload("support", json!({"url": "http://{guest}:9090"}));
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = work_site(&agent, &drivers, None);
    let mut prepared = workload.prepare(&site).unwrap();
    let (driven, wrong) = drive(&site, &mut *prepared, 1000).unwrap();
    let wrong = wrong.unwrap();
    println!("{wrong}\n{:?}", driven.facts);
    assert!(wrong.contains("100.00 %") && wrong.contains("wrong answer or none"), "{wrong}");
    assert!(driven.facts["server's own counts"].contains("404"), "{:?}", driven.facts);

    let refused = hasty.workload("support", json!({"url": "http://{guest}:9091"})).prepare(&site).err().unwrap();
    assert!(refused.to_string().contains("/tare/backend?address="), "{refused}");
}

#[test]
fn a_file_set_is_made_once_and_one_that_does_not_fit_is_refused_before_a_byte_is_written() {
    let Some(program) = needed() else { return };
    let (agent, hasty) = (Agent::start(&program), Hasty::new());
    let workload = hasty.workload("banking", json!({"file-sessions": 3, "users-per-session": 1}));
    let first = hasty.data(&agent, &*workload);
    let notes = std::sync::Mutex::new(Vec::new());
    let site = SetupSite {
        here: agent.link(),
        client: agent.link(),
        cache: hasty.folder.path(),
        size: SIZE,
        guests: 1,
        instances: 1,
        timeout: TIMEOUT,
        note: &|text| notes.lock().unwrap().push(text.to_owned()),
    };
    // One that a killed run has left is taken away by the next that is made.
    let begun = hasty.folder.path().join("gold/.partial-web-banking-0123");
    std::fs::create_dir_all(begun.join("tree")).unwrap();
    let again = workload.set_up_once(&site).unwrap().guest(0).cloned().unwrap();
    assert_eq!((Some(again.gold), notes.lock().unwrap().len()), (first.on_host, 0), "it is there already");
    let other = hasty.workload("banking", json!({"file-sessions": 4, "users-per-session": 1}));
    let made = other.set_up_once(&site).unwrap().guest(0).cloned().unwrap();
    assert!(!begun.exists() && notes.lock().unwrap().iter().any(|note| note.starts_with("file set made:")));
    assert!(made.gold.join("files/banking/checks/0000000004/000049-back.gif").is_file());
    assert!(made.gold.join("runtime/bin/java").is_file() && made.gold.join("pages.tsv").is_file());

    let huge = hasty.workload("support", json!({"file-sessions": 1_000_000, "directories-per-session": 1}));
    let error = huge.set_up_once(&site).err().unwrap().to_string();
    assert!(error.contains("file set larger than the disk") && error.contains("file-sessions"), "{error}");
    let plan = huge.footprint(&SIZE, 1).kept.0;
    assert!(plan > 6_000_000_000_000, "99,999 directories of 68 MB: {plan}");
    let names = std::fs::read_dir(hasty.folder.path().join("gold")).unwrap().flatten();
    let begun: Vec<_> = names.filter(|entry| entry.file_name().to_string_lossy().contains("support")).collect();
    assert!(begun.iter().all(|entry| entry.path().is_file()), "only a lock: {begun:?}");
}

#[test]
fn a_site_is_driven_again_and_again_on_one_server_and_each_time_checked_by_what_was_counted_since() {
    let Some(program) = needed() else { return };
    let (agent, hasty) = (Agent::start(&program), Hasty::new());
    let workload = hasty.workload("support", json!({"file-sessions": 1, "receive-rate": "unlimited"}));
    assert!(workload.traits(&SIZE, 1).repeats);
    let data = hasty.data(&agent, &*workload);
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = work_site(&agent, &drivers, Some(&data));
    let mut prepared = workload.prepare(&site).unwrap();
    prepared.stay();
    let mut counted = Vec::new();
    for number in 1..=3 {
        let (driven, wrong) = drive(&site, &mut *prepared, 1500).unwrap();
        assert_eq!((wrong, driven.invalid.clone()), (None, None), "drive {number}: {:?}", driven.facts);
        assert_eq!(words_of_servers(&data, "--data").len(), 1, "it serves on after drive {number}");
        let of = |name: &str| driven.facts[name].parse::<u64>().unwrap();
        counted.push((of("server: pages, all phases"), of("server: backend called, all phases")));
        assert!(driven.measurement.metrics["pages_per_s"] > 0.0 && driven.facts.contains_key("server started as"));
        assert!(!driven.measurement.metrics.contains_key("backend_cpu_share"), "it is reported when the server ends");
    }
    println!("{counted:?}");
    // Each is of its own drive: of sums since the start, the third would be thrice the first.
    assert!(counted.iter().all(|(pages, calls)| *pages > 0 && calls >= pages), "{counted:?}");
    assert!(counted[2].0 < counted[0].0 + counted[1].0, "{counted:?}");
    prepared.end(&site).unwrap();
    assert_eq!(words_of_servers(&data, "--data"), Vec::<String>::new(), "then it is gone");
}
