//! Hosts beside this one: they are asked, and start their drivers, at one time; what is wrong with each is said.

use std::path::Path;

use crate::common::{plan, ready, run_plan};
use tare_controller::{Cancel, ControllerError, Quiet, RunEnd};
use tare_model::fact;
use tare_model::plan::Plan;
use tare_model::study::{CaseLoad, Guests, Host, Roles};
use tare_model::trial::{Outcome, TrialRecord};
use tare_record::RunFolder;
use tare_testkit::{Meeting, REASON};

/// A plan of one guest and a driver on each of these hosts.
fn driven_from(kinds: &[&str]) -> Plan {
    let mut plan = plan();
    let study = &mut plan.study;
    study.arms.iter_mut().for_each(|arm| arm.platform = "null".into());
    let hosts = kinds.iter().enumerate().map(|(n, kind)| Host {
        id: format!("client-{n}"),
        platform: (*kind).to_owned(),
        options: serde_json::json!({}),
    });
    study.hosts = hosts.collect();
    study.roles = Roles { drivers: study.hosts.iter().map(|host| host.id.clone()).collect(), ..Roles::default() };
    let case = &mut study.cases[0];
    let drivers = u32::try_from(kinds.len()).unwrap();
    case.neighbours = None;
    case.load = CaseLoad::Fixed { load: case.load.largest(), guests: Guests { count: 1, drivers } };
    plan
}

fn driven(kinds: &[&str], out: &Path, agent: &Path) -> (Result<RunEnd, ControllerError>, Vec<TrialRecord>) {
    let run_id = format!("hosts-{}-{}", std::process::id(), kinds.iter().map(|kind| &kind[..1]).collect::<String>());
    let ran = run_plan(&driven_from(kinds), &Meeting::of(kinds.len()), (out, agent, &run_id), &Quiet, &Cancel::new());
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
    ran
}

#[test]
fn eight_hosts_are_asked_and_start_their_drivers_at_one_time() {
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let (ended, records) = driven(&["waits"; 8], &out, &agent);
    assert_eq!(ended.unwrap().completed, 2, "{records:?}");
    for record in &records {
        let clocks = record.facts.keys().filter(|name| name.starts_with(&fact::clock_of("client-"))).count();
        assert_eq!(clocks, 8, "{:?}", record.facts);
    }
    // Each is described once a run, in the order of the study.
    let folder = RunFolder::open(&out).unwrap();
    let machines = folder.environment().machines.iter().map(|machine| machine.name.as_str());
    let described: Vec<&str> = machines.filter(|name| name.starts_with("host ")).collect();
    let expected: Vec<String> = (0..8).map(|n| format!("host client-{n}")).collect();
    assert_eq!(described, expected);
}

#[test]
fn all_hosts_that_cannot_be_used_are_named_before_anything_is_started() {
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let (ended, _) = driven(&["refuses", "waits", "refuses"], &out, &agent);
    let said = ended.unwrap_err().to_string();
    for host in ["client-0", "client-2"] {
        assert!(said.contains(&format!("host `{host}`: it refuses\nremedy: name another")), "{said}");
    }
    assert!(!said.contains("client-1") && !out.exists(), "{said}");
}

#[test]
fn all_hosts_that_start_no_agent_are_named_and_the_others_agents_are_taken_away() {
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (ended, records) = driven(&["waits", "fails", "waits", "fails"], &folder.path().join("run"), &agent);
    assert_eq!(ended.unwrap().failed, 2, "{records:?}");
    for record in records {
        let Outcome::Failed { reason, .. } = record.outcome else { panic!("completed") };
        for host in ["client-1", "client-3"] {
            assert!(reason.contains(&format!("on host `{host}`: ")), "{reason}");
        }
        assert!(reason.contains(REASON) && !reason.contains("client-0") && !reason.contains("client-2"), "{reason}");
    }
}
