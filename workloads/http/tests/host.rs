//! Services for real, by an agent that is alone in a network of its own: one that is there, and ones that are started.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{self, Agent, TIMEOUT, agent, missing};
use serde_json::{Value, json};
use tare_model::guest::GuestSize;
use tare_model::load::{LoadModel, Phases};
use tare_model::{ByteSize, Span};
use tare_wire::{ExecSpec, Reply, Request};
use tare_workload::{Driven, DriverSite, Prepared, SameClock, Schedule, WorkSite, Workload, WorkloadError, registry};

const SIZE: GuestSize = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
const TWO: LoadModel = LoadModel::Closed { clients: 2, think_time: Span::ZERO };
const PYTHON: &str = "/usr/bin/python3";

/// Answers until it has been asked so often, and then ends. Its words are an address, a port and that number.
const SERVICE: &str = r#"
import http.server, os, sys
class Service(http.server.BaseHTTPRequestHandler):
    protocol_version, asked = "HTTP/1.1", 0
    def do_GET(self):
        Service.asked += 1
        if Service.asked > int(sys.argv[3]):
            print("out of ideas", file=sys.stderr, flush=True)
            os._exit(7)
        body = b"right as user %d" % os.getuid()
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Service).serve_forever()
"#;

fn needed() -> Option<PathBuf> {
    if Path::new(PYTHON).exists() { agent() } else { missing(&format!("there is no {PYTHON}")) }
}

fn workload(parameters: &Value) -> Box<dyn Workload> {
    (registry::find("http").unwrap().make)(parameters, &TWO).unwrap()
}

/// A service that ends when it has been asked more often than this.
fn started(most: u32) -> Box<dyn Workload> {
    let command = json!([PYTHON, "-c", SERVICE, "{address}", "{port}", most.to_string()]);
    workload(&json!({"command": command, "requests": [{"path": "/", "expect": {"contains": "right as user 65534"}}]}))
}

fn drive(site: &WorkSite<'_>, prepared: &mut dyn Prepared) -> Result<(Driven, Option<String>), WorkloadError> {
    let phases = Phases { warm_up: Span::from_millis(100), ..Phases::measuring(Span::from_millis(500)) };
    let schedule = Schedule { phases, start_at_ns: 0, seed: 7, interval_ns: 100_000_000, turns: None, baton: None };
    common::drive(site, prepared, &schedule)
}

#[test]
fn a_service_that_is_there_is_asked_and_one_that_is_not_is_waited_for_no_longer_than_said() {
    let Some(program) = needed() else { return };
    let agent = Agent::start(&program);
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = common::work_site(&agent, &drivers, None, SIZE, TWO);
    let address = site.guest_address.to_string();
    let spec = ExecSpec::new(&[PYTHON, "-c", SERVICE, &address, "9090", "9999999"], Duration::from_secs(120), 1 << 16);
    assert!(matches!(agent.link().call(Request::Start(spec), TIMEOUT), Ok(Reply::Started { .. })));
    let mut prepared = workload(&json!({"url": "http://{guest}:9090", "requests": ["/"]})).prepare(&site).unwrap();
    let (driven, wrong) = drive(&site, &mut *prepared).unwrap();
    assert!(wrong.is_none() && driven.work > 5.0, "{wrong:?} {:?}", driven.measurement.counts);
    assert_eq!(driven.facts["service"], "one that was there, http://{guest}:9090");
    let absent = json!({"url": "http://{guest}:9091", "requests": ["/"], "ready-within": "100ms"});
    let error = workload(&absent).prepare(&site).err().unwrap().to_string();
    assert!(error.contains("not ready within 100ms") && error.contains(":9091"), "{error}");
}

#[test]
fn a_service_runs_as_nobody_and_is_driven_again_until_it_is_ended() {
    let Some(program) = needed() else { return };
    let agent = Agent::start(&program);
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = common::work_site(&agent, &drivers, None, SIZE, TWO);
    let mut prepared = started(9_999_999).prepare(&site).unwrap();
    prepared.stay();
    for _ in 0..2 {
        let (driven, wrong) = drive(&site, &mut *prepared).unwrap();
        assert!(wrong.is_none() && driven.work > 5.0, "{wrong:?} {:?}", driven.measurement.counts);
    }
    prepared.end(&site).unwrap();
    assert!(drive(&site, &mut *prepared).is_err(), "it was ended");
}

#[test]
fn a_service_that_ends_under_load_is_lost_with_what_it_said() {
    let Some(program) = needed() else { return };
    let agent = Agent::start(&program);
    let drivers = [DriverSite { client: agent.link(), clock: &SameClock }];
    let site = common::work_site(&agent, &drivers, None, SIZE, TWO);
    let mut prepared = started(20).prepare(&site).unwrap();
    let error = drive(&site, &mut *prepared).unwrap_err();
    let words = error.to_string();
    assert!(error.guest_lost() && words.contains("code 7") && words.contains("out of ideas"), "{words}");
}
