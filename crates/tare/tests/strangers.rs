//! Who connects to a trial's servers and is none of its drivers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::{
    CONTAINER, expect_code, is_root, journal, outcomes, processes_of, query, run_ids, stderr, stdout, study, tare,
    until, write_study,
};
use tare_model::flag::STRANGER_CONNECTED;
use tare_record::RunFolder;
use tare_testkit::skipped;

/// Addresses and ports on which something listens in a process's network namespace, as the kernel writes them.
fn listening(pid: u32, table: &str) -> Vec<(String, u16)> {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let listens = lines.filter(|fields| fields[3] == "0A").map(|fields| fields[1].split_once(':').unwrap());
    listens.map(|(address, port)| (address.to_owned(), u16::from_str_radix(port, 16).unwrap())).collect()
}

/// A process in each network namespace of a run that is not this one.
fn namespaces(run_id: &str) -> BTreeMap<PathBuf, u32> {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net"));
    let own = namespace("self").unwrap();
    let all = processes_of(run_id).into_iter().filter_map(|pid| Some((namespace(&pid.to_string()).ok()?, pid)));
    all.filter(|(other, _)| *other != own).collect()
}

#[test]
fn a_stranger_is_closed_and_named_in_a_flag_and_the_trials_figures_stand() {
    if !is_root() {
        return skipped("needs root");
    }
    let idle = "[cases.idle]\nworkload = \"rr\"\nparameters = { request = \"128B\", response = \"128B\" }\n";
    let text = study(1, CONTAINER, "128MiB", &[("warm-up", "100ms"), ("steady-state", "3s")], idle);
    let folder = tempfile::tempdir().unwrap();
    let (study, out) = (write_study(folder.path(), &text), folder.path().join("run"));
    let mut command = tare();
    command.args(["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]).stdout(Stdio::null());
    let running = command.stderr(Stdio::piped()).spawn().unwrap();
    until("load", || journal(&out).contains("\"drive\""));
    let id = run_ids(folder.path()).pop().expect("the run has an id");
    let mut door = None;
    until("a server", || {
        let found = namespaces(&id).into_values().find_map(|pid| Some((pid, listening(pid, "tcp").first()?.clone())));
        door = found;
        door.is_some()
    });
    let (guest, (address, port)) = door.unwrap();
    // All that listens in a guest listens on its one address of the lab, and nothing on all addresses.
    let all = [listening(guest, "tcp"), listening(guest, "tcp6")].concat();
    assert!(all.iter().all(|(other, _)| *other == address) && !address.starts_with("00000000"), "{all:?}");
    let bytes = u32::from_str_radix(&address, 16).unwrap().to_le_bytes();
    let target = std::net::Ipv4Addr::from(bytes);
    let elsewhere = namespaces(&id).into_values().find(|&pid| listening(pid, "tcp").is_empty()).expect("a driver");
    let knock = format!(
        "exec 3<>/dev/tcp/{target}/{port}; printf 'GET / HTTP/1.1\\r\\nHost: somebody-of-this-network\\r\\n\\r\\n' >&3; cat <&3"
    );
    let mut stranger = Command::new("nsenter");
    let answered = stranger.args(["-t", &elsewhere.to_string(), "-n", "bash", "-c", &knock]).output().unwrap();
    assert!(answered.stdout.is_empty() && !stderr(&answered).contains("refused"), "{answered:?}");
    let output = running.wait_with_output().unwrap();
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 2], "{}", stdout(&output));
    let records = RunFolder::open(&out).unwrap().trials().unwrap();
    let flagged: Vec<_> =
        records.iter().flat_map(|trial| &trial.flags).filter(|flag| flag.kind == STRANGER_CONNECTED).collect();
    assert!(flagged.len() == 1 && flagged[0].detail.starts_with("1 connections"), "{flagged:?}");
    // The server counts no error, and what it answered is what the driver counts, or the trial were invalid.
    assert!(records.iter().flat_map(|trial| &trial.flags).all(|flag| flag.kind != "server-errors"), "{records:?}");
    assert_eq!(query::<String>(&out, "SELECT kind FROM flags WHERE kind = 'stranger-connected'").len(), 1);
}
