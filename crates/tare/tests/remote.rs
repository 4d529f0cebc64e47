//! Studies with machines that exist already, by the real program: against sshd in a network namespace of each test's own.

#[path = "../../platform/tests/common/sshd.rs"]
pub mod sshd;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{
    begin, expect_code, journal, kill, left_by_runs_into, outcomes, processes_of, query, ran, run, run_ids,
    small_study, stderr, stdout, study_of, tare, until, write_study,
};
use serde_json::{Value, json};
use sshd::{PLAIN, Sshd, apart};
use tare_model::density::{StopKind, metric};
use tare_model::sample::Source;
use tare_model::trial::{Outcome, TrialRecord};
use tare_record::RunFolder;
use tare_testkit::skipped;

/// The options of a machine, as TOML.
fn machine(sshd: &Sshd, more: &str) -> String {
    in_toml(&sshd.options(PLAIN), more)
}

pub fn in_toml(options: &Value, more: &str) -> String {
    let fields: Vec<String> =
        options.as_object().unwrap().iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {}{more} }}", fields.join(", "))
}

fn arm(sshd: &Sshd, more: &str) -> String {
    format!("[arms.far]\nplatform = \"ssh\"\noptions = {}\n", machine(sshd, more))
}

/// Copies of the agent on the "other" machine of runs into that folder.
fn copies(folder: &Path) -> Vec<String> {
    let ids = run_ids(folder);
    let entries = std::fs::read_dir("/tmp").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| ids.iter().any(|id| name.starts_with(&format!("tare-{id}-")))).collect()
}

#[track_caller]
fn is_clean(out: &Path) {
    assert_eq!((copies(out), left_by_runs_into(out)), (Vec::new(), Vec::new()));
}

pub fn trials(out: &Path) -> Vec<TrialRecord> {
    RunFolder::open(out).unwrap().trials().unwrap()
}

#[test]
fn an_arm_in_the_lab_and_one_behind_ssh_take_turns_from_this_host() {
    apart(skipped, |sshd| {
        let folder = tempfile::tempdir().unwrap();
        let study = write_study(folder.path(), &small_study(2, &arm(sshd, "")));
        let (study, out) = (study.to_str().unwrap().to_owned(), folder.path().join("run"));
        let planned = run(&["plan", &study]);
        expect_code(&planned, 0);
        assert!(stdout(&planned).contains("one of these networks"), "{}", stdout(&planned));
        expect_code(&run(&["run", &study, "--out", out.to_str().unwrap()]), 0);
        assert_eq!(outcomes(&out), vec!["completed"; 4]);
        is_clean(&out);
        let findings = std::fs::read_to_string(out.join("findings.json")).unwrap();
        for expected in ["network-path", "no service demand", "Not measured here on far: service demand"] {
            assert!(findings.contains(expected), "{expected} is not in the findings");
        }
        let facts = query::<String>(&out, "SELECT DISTINCT name FROM facts ORDER BY 1");
        for expected in ["guest clock", "machine CPU, by its own kernel"] {
            assert!(facts.iter().any(|fact| fact == expected), "{expected}: {facts:?}");
        }
        described(&out, "arm far", "the agent");
        in_turns(&trials(&out));
        // What is known of the machine's CPUs is said where it is shown.
        let whole = "turns of other arms included";
        let shown = query::<String>(&out, "SELECT value FROM facts WHERE name = 'machine CPU, by its own kernel'");
        assert!(shown.len() == 2 && shown.iter().all(|fact| fact.ends_with(whole)), "{shown:?}");
        let report = std::fs::read_to_string(out.join("report.md")).unwrap();
        assert!(stdout(&planned).contains(whole) && report.contains(whole), "{report}");
    });
}

/// Checks that a machine described itself once, with what its agent lies on, and that the report shows it.
#[track_caller]
fn described(out: &Path, name: &str, holds: &str) {
    let folder = RunFolder::open(out).unwrap();
    let machines = &folder.environment().machines;
    let machine = machines.iter().find(|machine| machine.name == name).unwrap_or_else(|| panic!("{machines:?}"));
    let disks = machine.hardware.iter().find(|table| table.title == "Disks").expect("its disks");
    let words = disks.rows.iter().flatten().chain(&disks.notes);
    assert!(words.into_iter().any(|text| text.contains(holds)), "{disks:?}");
    assert!(machine.sections.iter().any(|section| section.title == "Kernel"), "{machine:?}");
    let lines = journal(out).lines().filter(|line| line.contains(&format!("\"name\":\"{name}\""))).count();
    assert_eq!(lines, 1, "once a run");
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains(&format!("**{name}: Kernel**")), "{report}");
}

/// Checks that the trials of each set were driven in turns, and that CPU is charged to the arm in the lab alone.
#[track_caller]
fn in_turns(trials: &[TrialRecord]) {
    for set in trials.chunks(2) {
        let of = |trial: &TrialRecord| trial.turns.clone().expect("its arm took turns");
        let mut windows: Vec<_> = set.iter().flat_map(|trial| of(trial).windows()).collect();
        windows.sort_unstable();
        assert!(windows.windows(2).all(|pair| pair[0].1 < pair[1].0), "{windows:?}");
        for trial in set {
            let Outcome::Completed(measured) = &trial.outcome else { panic!("{trial:?}") };
            let counted: u64 = of(trial).done.counts.iter().map(|count| count.operations).sum();
            assert!(counted > 0 && measured.counts.get("operations") == Some(&counted), "{measured:?}");
            let far = trial.planned.arm == "far";
            assert_eq!((trial.cpu.is_none(), of(trial).waiting_cpus.is_none()), (far, far), "{}", trial.planned.arm);
        }
    }
}

#[test]
fn a_machine_that_dies_in_its_turns_fails_its_set_whole_with_the_reason() {
    apart(skipped, |sshd| {
        let folder = tempfile::tempdir().unwrap();
        let text = small_study(2, &arm(sshd, "")).replace("steady-state = \"200ms\"", "steady-state = \"2s\"");
        let (study, out) = (write_study(folder.path(), &text), folder.path().join("run"));
        let mut command = tare();
        command.args(["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]).stdout(Stdio::null());
        let running = command.stderr(Stdio::piped()).spawn().unwrap();
        until("both arms to be driven", || {
            let journal = std::fs::read_to_string(out.join("journal.jsonl")).unwrap_or_default();
            journal.lines().filter(|line| line.contains("\"drive\"")).count() >= 2
        });
        // Drivers connect first; then turns go on for four seconds.
        std::thread::sleep(Duration::from_secs(2));
        let id = run_ids(folder.path()).pop().expect("the run has an id");
        let is_agent = |pid: &u32| {
            let name = std::fs::read_link(format!("/proc/{pid}/exe"));
            name.is_ok_and(|name| name.starts_with("/tmp") && name.ends_with("tare-agent"))
        };
        let agent = processes_of(&id).into_iter().find(is_agent).expect("its agent runs");
        let agent = rustix::process::Pid::from_raw(i32::try_from(agent).unwrap()).unwrap();
        rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let (mut failed, mut completed) = (std::collections::BTreeMap::new(), 0);
        for trial in trials(&out) {
            match trial.outcome {
                Outcome::Failed { reason, .. } => drop(failed.insert(trial.planned.arm, reason)),
                _ => completed += 1,
            }
        }
        assert_eq!((failed.len(), completed), (2, 2), "the other block: {failed:?}");
        let of_all = format!("arm `far`, with which it took turns, failed: {}", failed["far"]);
        assert_eq!(failed["native"], of_all);
        is_clean(&out);
    });
}

#[test]
fn load_comes_from_a_machine_behind_ssh() {
    apart(skipped, |sshd| {
        let folder = tempfile::tempdir().unwrap();
        let client = format!("\n[hosts.client-1]\nssh = {}\n[roles]\ndrivers = [\"client-1\"]\n", machine(sshd, ""));
        // With an arm in the lab it is refused before anything is started, with the line.
        let mixed = write_study(folder.path(), &(small_study(1, &arm(sshd, "")) + &client));
        let refused = run(&["run", mixed.to_str().unwrap(), "--out", folder.path().join("no").to_str().unwrap()]);
        expect_code(&refused, 2);
        assert!(stderr(&refused).contains("cannot reach `native`"), "{}", stderr(&refused));
        assert!(!folder.path().join("no").exists());

        let text = small_study(2, &arm(sshd, "")).replace("[arms.native]\nplatform = \"native\"\n", "") + &client;
        let (out, output) = ran(folder.path(), &text.replace("baseline = \"native\"", "baseline = \"far\""));
        expect_code(&output, 0);
        assert_eq!(outcomes(&out), vec!["completed"; 2]);
        is_clean(&out);
        let facts = query::<String>(&out, "SELECT value FROM facts WHERE name = 'clock of host client-1'");
        assert!(facts.len() == 2 && facts.iter().all(|fact| fact.contains("us")), "{facts:?}");
        described(&out, "arm far", "the agent");
        described(&out, "host client-1", "the agent");
    });
}

#[test]
fn a_killed_run_leaves_nothing_there_and_its_reaper_stops_the_machine() {
    apart(skipped, |sshd| {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("stopped");
        let stop = format!(", stop = [\"touch\", \"{}\"]", log.display());
        // It prints once and then never notices that nobody reads.
        let metrics = ", host-metrics = { command = [\"sh\", \"-c\", \"echo up 1; exec sleep 600\"] }";
        let stop = format!("{stop}{metrics}");
        let text = small_study(1, &arm(sshd, &stop)).replace("steady-state = \"200ms\"", "steady-state = \"60s\"");
        let text = text.replace("[arms.native]\nplatform = \"native\"\n", "");
        let study = write_study(folder.path(), &text.replace("baseline = \"native\"", "baseline = \"far\""));
        let out = folder.path().join("run");
        let mut running = begin(&study, &out);
        until("load", || journal(&out).contains("\"drive\""));
        kill(&mut running);
        // The kernel ends the connection, that ends the agent, and its shell there takes the copy away.
        until("the agent to end with its controller", || copies(&out).is_empty());
        until("the reaper to run the stop command", || log.exists());
        until("the reaper to take the rest away", || left_by_runs_into(&out).is_empty());
        is_clean(&out);
    });
}

#[test]
fn the_study_of_the_reference_is_planned() {
    // In a namespace of its own, so that nobody out there could be asked for the machines of the example.
    apart(skipped, |_| {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/hosts.md");
        let text = std::fs::read_to_string(page).unwrap();
        let example = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let study = write_study(folder.path(), example);
        let planned = run(&["plan", "--format", "json", study.to_str().unwrap()]);
        let plan: serde_json::Value = serde_json::from_str(&stdout(&planned)).unwrap();
        assert_eq!(plan["trials"].as_array().unwrap().len(), 12 * 3);
        assert_eq!(plan["study"]["hosts"][0]["options"]["host"], "[redacted]");
        // No machine is asked, so none is missing.
        expect_code(&planned, 0);
        assert_eq!(stderr(&planned), "");
    });
}

/// Where kv's server is on both ends.
const REDIS: &str = "/usr/bin/redis-server";

/// A study of the machine alone, of this case and with these phases.
pub fn far_alone(arm: &str, steady_state: &str, case: &str) -> String {
    let phases = [("warm-up", "200ms"), ("steady-state", steady_state)];
    study_of("baseline = \"far\"\nblocks = 1", arm, "256MiB", &phases, case)
}

#[test]
fn a_machine_behind_ssh_is_held_to_a_share_of_cpu_by_its_own_account() {
    apart(skipped, |sshd| {
        if !Path::new(REDIS).exists() {
            return skipped("there is no redis-server here");
        }
        let folder = tempfile::tempdir().unwrap();
        let held = "[cases.held]\nworkload = \"kv\"\nparameters = { keys = 1000 }\n\
                    load = { closed = { think-time = \"1ms\" } }\n\
                    cpu-target = { share = 0.5, tolerance = 0.2, from = 4, most = 64, step = \"1s\", steps = 8 }\n";
        let text = far_alone(&arm(sshd, ""), "2s", held);
        let study = write_study(folder.path(), &text);
        let planned = run(&["plan", study.to_str().unwrap()]);
        expect_code(&planned, 0);
        assert!(stdout(&planned).contains("that its own kernel counts"), "{}", stdout(&planned));
        let (out, output) = ran(folder.path(), &text);
        is_clean(&out);
        let trials = trials(&out);
        let [trial] = trials.as_slice() else { panic!("{}", stderr(&output)) };
        assert!(
            trial.facts["the guests' CPU is counted by"].starts_with("each guest's own kernel"),
            "{:?}",
            trial.facts
        );
        // What else runs on this machine is in its kernel's account, too, and may take all that is asked.
        match &trial.outcome {
            Outcome::Completed(measured) => {
                let found = measured.cpu_search.as_ref().expect("what was held");
                assert!((found.share - 0.5).abs() <= 0.2 && !found.course.is_empty(), "{found:?}");
                assert!(found.steps.iter().all(|step| step.share > 0.0 && step.share < 1.1), "{found:?}");
                assert_eq!(measured.metrics["guest_cpu_share"].to_bits(), found.share.to_bits());
            }
            Outcome::Invalid { reason } => {
                assert!(reason.contains("of the guests' CPUs") && trial.facts.contains_key("step 01"), "{reason}");
            }
            failed @ Outcome::Failed { .. } => panic!("{failed:?}"),
        }
    });
}

/// An arm of several machines, which are all the one behind the sshd, each with an address of its own. Their commands write what they do to a
/// log; the one of this number does not start.
fn several(sshd: &Sshd, machines: u32, broken: u32, log: &Path) -> String {
    let config = sshd.folder().join("several");
    std::fs::write(&config, "Host vm*\n  HostName 127.0.0.1\n").unwrap();
    let log = log.display();
    let mut options = sshd.options(PLAIN);
    let own = [
        ("host", json!("vm{guest}")),
        ("machines", json!(machines)),
        ("address", json!("127.0.0.{guest}")),
        ("config", json!(config)),
        ("start", json!(["sh", "-c", format!("[ {{guest}} != {broken} ] && echo start {{guest}} >> {log}")])),
        ("stop", json!(["sh", "-c", format!("echo stop {{guest}} >> {log}")])),
    ];
    own.into_iter().for_each(|(key, value)| options[key] = value);
    format!("[arms.far]\nplatform = \"ssh\"\noptions = {}\n", in_toml(&options, ""))
}

#[test]
fn machines_behind_ssh_are_added_by_their_start_commands_until_one_does_not_start() {
    apart(skipped, |sshd| {
        if !Path::new(REDIS).exists() {
            return skipped("there is no redis-server here");
        }
        let folder = tempfile::tempdir().unwrap();
        let log = sshd.folder().join("log");
        let many = "[cases.many]\nworkload = \"tile\"\ndensity = { guests = { search = { most = 3 } } }\n\
                    [[cases.many.parameters.members]]\nname = \"cache\"\nworkload = \"kv\"\n\
                    parameters = { keys = 1000 }\nload = { closed = { clients = 1, think-time = \"5ms\" } }\n";
        let text = far_alone(&several(sshd, 3, 3, &log), "500ms", many);
        let study = write_study(folder.path(), &text);
        let planned = run(&["plan", study.to_str().unwrap()]);
        expect_code(&planned, 0);
        let said = stdout(&planned);
        assert!(said.contains("is added machine by machine") && !said.contains("kept back, at most"), "{said}");
        let (out, output) = ran(folder.path(), &text);
        expect_code(&output, 0);
        let trials = trials(&out);
        let [trial] = trials.as_slice() else { panic!("{trials:?}") };
        let Outcome::Completed(measured) = &trial.outcome else { panic!("{:?}", trial.outcome) };
        let scale_up = measured.scale_up.as_ref().unwrap();
        let levels: Vec<(u32, Option<&String>)> =
            scale_up.levels.iter().map(|level| (level.guests, level.failed.as_ref())).collect();
        assert_eq!(levels, [(1, None), (2, None)]);
        assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (StopKind::Start, 2));
        assert!(scale_up.stopped.detail.contains("`start`"), "{}", scale_up.stopped.detail);
        for level in &scale_up.levels {
            let seen = [metric::OPERATIONS, metric::HOST_CPU, metric::OVERCOMMIT, metric::AVAILABLE, metric::PROMISED];
            assert_eq!(seen.map(|id| level.metrics.contains_key(id)), [true, false, false, false, false]);
        }
        let done = std::fs::read_to_string(&log).unwrap();
        let mut stops: Vec<&str> = done.lines().filter(|line| line.starts_with("stop")).collect();
        stops.sort_unstable();
        assert_eq!(stops, ["stop 1", "stop 2", "stop 3"], "{done}");
        assert!(done.starts_with("start 1\nstart 2\n"), "{done}");
        is_clean(&out);
        let report = std::fs::read_to_string(out.join("report.md")).unwrap();
        assert!(report.contains("a guest that did not start") && !report.contains("on a host of"), "{report}");
        // More than there are is refused at its line, before anything is started.
        let more = write_study(folder.path(), &text.replace("most = 3", "most = 4"));
        let refused = run(&["plan", more.to_str().unwrap()]);
        expect_code(&refused, 2);
        assert!(
            stderr(&refused).contains("asks for 4 guests at one time, of which the arm has 3"),
            "{}",
            stderr(&refused)
        );
    });
}

/// What a command of the user's prints is in the trial, as its own; what it prints wrongly is reported, and nothing else.
#[test]
fn a_command_tells_of_the_host_under_a_machine_while_its_trials_last() {
    apart(skipped, |sshd| {
        let folder = tempfile::tempdir().unwrap();
        let began = sshd.folder().join("began");
        let script = |print: &str| format!("echo began >> {}; while :; do {print}; sleep 0.05; done", began.display());
        let text = |print: &str| {
            let command = json!(["sh", "-c", script(print), "metrics", "--password=hunter2"]);
            let metrics = format!(", host-metrics = {{ command = {command} }}");
            far_alone(&arm(sshd, &metrics), "500ms", "[cases.idle]\nworkload = \"rr\"\n")
        };
        let fine = text("echo hv:ready_percent 2.5; echo hv_free_bytes 1e9");
        let study = write_study(folder.path(), &fine);
        let study = study.to_str().unwrap();
        expect_code(&run(&["plan", study]), 0);
        let examined = stdout(&run(&["doctor", "--verbose", study]));
        assert!(examined.contains("its `host-metrics` command, `sh`, will be run"), "{examined}");
        assert!(!began.exists(), "neither has run it");

        let (out, output) = ran(folder.path(), &fine);
        expect_code(&output, 0);
        let [trial] = &trials(&out)[..] else { panic!("{}", stderr(&output)) };
        let of = |name: &str| {
            let own =
                trial.samples.iter().filter(|sample| sample.source == Source::UserCommand && sample.series == name);
            own.map(|sample| sample.value).collect::<Vec<_>>()
        };
        assert!(of("hv:ready_percent").len() > 5 && of("hv:ready_percent").iter().all(|value| *value == 2.5));
        assert!(of("hv_free_bytes").iter().all(|value| *value == 1e9));
        assert!(trial.facts["host metrics"].contains("of 2 names by a command of the user's, which ran once"));
        assert!(trial.flags.iter().all(|flag| flag.kind != "host-metrics"), "{:?}", trial.flags);
        assert_eq!(std::fs::read_to_string(&began).unwrap(), "began\n", "once a trial");
        is_clean(&out);
        let findings = std::fs::read_to_string(out.join("findings.json")).unwrap();
        assert!(findings.contains("by_command_hv_free_bytes") && findings.contains("by the user's command"));
        for entry in std::fs::read_dir(&out).unwrap().flatten().filter(|entry| entry.path().is_file()) {
            let bytes = std::fs::read(entry.path()).unwrap();
            assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{}", entry.path().display());
        }

        std::fs::remove_dir_all(&out).unwrap();
        let (out, output) = ran(folder.path(), &text("echo ok 1; echo some words"));
        expect_code(&output, 0);
        let [trial] = &trials(&out)[..] else { panic!("{}", stderr(&output)) };
        let flag = trial.flags.iter().find(|flag| flag.kind == "host-metrics").expect("it is reported");
        assert!(flag.detail.contains("line 2 of what it printed is no figure: \"some words\""), "{}", flag.detail);
        assert!(!flag.detail.contains("hunter2") && matches!(trial.outcome, Outcome::Completed(_)));
        is_clean(&out);
    });
}
