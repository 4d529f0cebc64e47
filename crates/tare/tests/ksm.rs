//! What `tare ksm` changes on the host is put back exactly: after Ctrl-C, after kill -9 by `restore`, by `reap` and by the next
//! tuning. Needs root and KSM.

use crate::common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::common::{expect_code, run, stderr, stdout, tare};
use serde_json::Value;
use tare_memory::Kernel;

const KSM: &str = "/sys/kernel/mm/ksm";
/// What tare may set.
const SET: [&str; 7] = [
    "run",
    "pages_to_scan",
    "sleep_millisecs",
    "use_zero_pages",
    "advisor_mode",
    "advisor_target_scan_time",
    "advisor_max_cpu",
];
const DOMAIN: [&str; 2] = ["--trust-domain", "this test alone"];
/// A rule whose values differ from any kernel's defaults.
const FIXED: [&str; 6] = ["--rule", "fixed", "--pages-to-scan", "123", "--sleep", "45ms"];

/// The one test of this host that may switch merging on; `None`: it cannot be done here, and the reason is printed.
struct Alone {
    _lock: File,
    found: BTreeMap<&'static str, String>,
}

impl Alone {
    fn new() -> Option<Self> {
        if !common::is_root() {
            return None;
        }
        if let Some(refusal) = Kernel::host().refusal() {
            tare_testkit::skipped(&refusal.reason);
            return None;
        }
        let lock = File::create("/run/lock/tare-ksm-test.lock").unwrap();
        lock.lock().unwrap();
        let run = fs::read_to_string(Path::new(KSM).join("run")).unwrap();
        if run.trim() == "1" {
            tare_testkit::skipped("this host merges memory, for others than this test");
            return None;
        }
        Some(Self { _lock: lock, found: settings() })
    }

    #[track_caller]
    fn assert_as_found(&self) {
        assert_eq!(settings(), self.found);
    }
}

impl Drop for Alone {
    /// Where a test failed, the host is put back all the same.
    fn drop(&mut self) {
        let _ = run(&["ksm", "restore"]);
        for (name, was) in &self.found {
            let value =
                was.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(was.as_str(), |(word, _)| word);
            let _ = fs::write(Path::new(KSM).join(name), value);
        }
    }
}

/// All that tare may set, as the kernel spells it.
fn settings() -> BTreeMap<&'static str, String> {
    let held =
        |name: &&'static str| Some((*name, fs::read_to_string(Path::new(KSM).join(name)).ok()?.trim().to_owned()));
    SET.iter().filter_map(held).collect()
}

/// A tuning that is under way; killed when the test ends.
struct Tuning {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    run: String,
}

impl Tuning {
    fn start(options: &[&str]) -> Self {
        let mut command = tare();
        command.args(["ksm", "tune", "--every", "200ms"]).args(DOMAIN).args(options);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // It first reports what it cleaned up.
        let begun = lines.by_ref().map(Result::unwrap).find(|line| line.contains("governs merging by"));
        let Some(begun) = begun else {
            let ended = child.wait_with_output().unwrap();
            panic!("it did not begin: {}", stderr(&ended));
        };
        let run = begun.split_whitespace().next().unwrap().to_owned();
        Self { child, lines, run }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, and waits for the end; all that it printed until then.
    fn end(mut self, signal: &str) -> Output {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
        let rest: Vec<String> = self.lines.by_ref().map(Result::unwrap).collect();
        let status = self.child.wait().unwrap();
        let mut errors = Vec::new();
        std::io::Read::read_to_end(&mut self.child.stderr.take().unwrap(), &mut errors).unwrap();
        Output { status, stdout: rest.join("\n").into_bytes(), stderr: errors }
    }
}

impl Drop for Tuning {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn assert_fixed() {
    let now = settings();
    assert_eq!(
        (now["run"].as_str(), now["pages_to_scan"].as_str(), now["sleep_millisecs"].as_str()),
        ("1", "123", "45")
    );
}

fn status() -> Value {
    let output = run(&["ksm", "status", "--format", "json"]);
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn without_a_trust_domain_or_with_figures_of_another_rule_nothing_is_begun() {
    let output = run(&["ksm", "tune"]);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("by timing") && said.contains("--trust-domain"), "{said}");
    let other = ["ksm", "tune", "--rule", "ksmtuned", "--sleep", "5ms", "--trust-domain", "x"];
    expect_code(&run(&other), 2);
}

#[test]
fn a_host_that_cannot_gets_the_reason_and_the_remedy() {
    if !common::is_root() {
        return;
    }
    // The kernel's settings are out of sight where nothing is mounted.
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "mount -t tmpfs none /sys && exec \"$@\"", "sh"]);
    let tare = tare();
    command.arg(tare.get_program());
    for arguments in [&["ksm", "status"][..], &["ksm", "watch"], &["ksm", "tune", "--trust-domain", "x"]] {
        let mut here = Command::new(command.get_program());
        let output = here.args(command.get_args()).args(arguments).stdin(Stdio::null()).output().unwrap();
        if stderr(&output).contains("unshare") {
            tare_testkit::skipped("no mount namespace can be made here");
            return;
        }
        expect_code(&output, 4);
        let said = stderr(&output);
        assert!(said.contains("KSM") && said.contains("remedy"), "{said}");
    }
}

#[test]
fn status_and_watch_show_the_kernels_settings_and_counts() {
    let Some(alone) = Alone::new() else { return };
    let shown = status();
    assert_eq!(shown["settings"]["pages-to-scan"].to_string(), alone.found["pages_to_scan"]);
    assert!(shown["counters"]["full_scans"].is_u64() && shown["changed_by"].as_array().unwrap().is_empty(), "{shown}");
    assert!(shown["side_channels"].as_str().unwrap().contains("timing"));
    let text = stdout(&run(&["ksm", "status"]));
    assert!(text.contains("pages/pause") && text.contains("Side channels") && text.contains("no run"), "{text}");
    let watched = run(&["ksm", "watch", "--every", "50ms", "--for", "120ms", "--format", "json"]);
    expect_code(&watched, 0);
    let lines: Vec<Value> = stdout(&watched).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 2, "{lines:?}");
    assert!(lines[0]["scanner_cpu_share"].is_null() && lines[1]["scanner_cpu_share"].is_f64(), "{lines:?}");
    alone.assert_as_found();
}

#[test]
fn ctrl_c_and_the_end_of_its_time_put_everything_back() {
    let Some(alone) = Alone::new() else { return };
    for signal in ["-INT", "-TERM"] {
        let tuning = Tuning::start(&FIXED);
        assert_fixed();
        let shown = status();
        let by = &shown["changed_by"][0];
        assert_eq!(
            (by["run"].as_str(), by["pid"].as_u64()),
            (Some(tuning.run.as_str()), Some(u64::from(tuning.pid())))
        );
        assert_eq!(by["alive"], true);
        let restore = run(&["ksm", "restore"]);
        expect_code(&restore, 1);
        assert!(stdout(&restore).contains(&tuning.pid().to_string()), "{}", stdout(&restore));
        let second = run(&["ksm", "tune", "--trust-domain", "x"]);
        expect_code(&second, 4);
        assert!(stderr(&second).contains(&tuning.run), "{}", stderr(&second));
        assert_fixed();
        let ended = tuning.end(signal);
        expect_code(&ended, 130);
        assert!(stdout(&ended).contains("as it was found"), "{}", stdout(&ended));
        alone.assert_as_found();
    }
    let mut arguments = vec!["ksm", "tune", "--for", "300ms"];
    arguments.extend(DOMAIN);
    expect_code(&run(&arguments), 0);
    alone.assert_as_found();
    assert!(status()["changed_by"].as_array().unwrap().is_empty());
}

#[test]
fn after_kill_9_each_way_puts_everything_back_once() {
    let Some(alone) = Alone::new() else { return };
    for (way, says) in [(&["ksm", "restore"][..], "put back"), (&["reap"], "things removed")] {
        let tuning = Tuning::start(&FIXED);
        let run_id = tuning.run.clone();
        tuning.end("-KILL");
        assert_fixed();
        assert_eq!(status()["changed_by"][0]["alive"], false);
        let text = stdout(&run(&["ksm", "status"]));
        assert!(text.contains("tare ksm restore"), "{text}");
        let output = run(way);
        expect_code(&output, 0);
        assert!(stdout(&output).contains(says) && stdout(&output).contains(&run_id), "{}", stdout(&output));
        alone.assert_as_found();
        assert!(!Path::new("/run/tare").join(&run_id).exists());
        let again = run(&["ksm", "restore"]);
        expect_code(&again, 0);
        assert!(stdout(&again).contains("nothing to restore"), "{}", stdout(&again));
    }
}

#[test]
fn a_tuning_begins_with_what_was_there_before_a_dead_one() {
    let Some(alone) = Alone::new() else { return };
    Tuning::start(&FIXED).end("-KILL");
    assert_fixed();
    let tuning = Tuning::start(&["--rule", "advisor"]);
    assert_ne!(settings()["sleep_millisecs"], "45", "the dead one's pause was taken for the host's");
    expect_code(&tuning.end("-INT"), 130);
    alone.assert_as_found();
}

#[test]
fn a_run_waits_for_the_end_of_a_tuning() {
    let Some(alone) = Alone::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let study = common::write_study(folder.path(), &common::small_study(1, common::CONTAINER));
    let tuning = Tuning::start(&FIXED);
    let out = folder.path().join("run");
    let mut command = tare();
    command.env_remove("TARE_ALONGSIDE").arg("run").arg(&study).arg("--out").arg(&out);
    let output = command.output().unwrap();
    expect_code(&output, 4);
    let said = stderr(&output);
    assert!(said.contains("alive") && !out.exists(), "{said}");
    assert_fixed();
    drop(tuning.end("-INT"));
    alone.assert_as_found();
}

#[test]
fn what_cannot_be_put_back_stays_on_the_list() {
    if !common::is_root() {
        return;
    }
    // A dead tuning whose ledger names what tare never sets, on a /run of its own so that no other test meets it.
    let folder = tempfile::tempdir().unwrap();
    let found = vec![(Path::new(KSM).join("smart_scan"), "1".to_owned())];
    let resource = tare_lab::Resource::Settings { found };
    let line = serde_json::json!({"planned": {"id": 1, "resource": resource}});
    fs::write(folder.path().join("ledger.jsonl"), format!("{line}\n")).unwrap();
    let info = serde_json::json!({"run_id": "ksm-test", "run_folder": folder.path(), "controller_pid": 1,
        "controller_started": 0, "tare_version": "0"});
    fs::write(folder.path().join("run.json"), info.to_string()).unwrap();
    let script = "mount -t tmpfs -o mode=755 none /run && mkdir -m 700 /run/tare /run/tare/ksm-test && \
                  cp \"$1\"/* /run/tare/ksm-test/ && chmod 600 /run/tare/ksm-test/* || exit 77; \
                  \"$2\" ksm restore; \"$2\" reap; ls /run/tare";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(folder.path()).arg(tare().get_program());
    let output = command.output().unwrap();
    if output.status.code() != Some(0) {
        tare_testkit::skipped(&format!("no mount namespace can be made here: {}", stderr(&output)));
        return;
    }
    let printed = stdout(&output);
    assert_eq!(printed.matches("it is not a setting that tare changes").count(), 2, "{printed}");
    assert!(printed.trim_end().ends_with("ksm-test"), "{printed}");
}
