//! Density run for real: guests are added, driven and merged, the scale-up stops by itself, and the host is as it was.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{
    begin, expect_code, findings, has_bundle, kill, left_by_runs_into, outcomes, ran, run, stderr, stdout, study_of,
    write_study,
};
use serde_json::Value;

/// Merging is a setting of the whole host: one test at a time, also of other test programs.
struct Host {
    _lock: fs::File,
    before: Vec<(PathBuf, String)>,
}

impl Host {
    /// Tells what is missing.
    fn take() -> Option<Self> {
        if !has_bundle("java") {
            return None;
        }
        let ksm = Path::new("/sys/kernel/mm/ksm");
        if !ksm.join("run").exists() {
            tare_testkit::skipped("this kernel cannot merge equal pages (no /sys/kernel/mm/ksm)");
            return None;
        }
        let lock = fs::OpenOptions::new().create(true).append(true).open("/run/lock/tare-ksm-test.lock").unwrap();
        lock.lock().unwrap();
        Some(Self { _lock: lock, before: Self::settings() })
    }

    /// Everything that can be set of merging and of huge pages.
    fn settings() -> Vec<(PathBuf, String)> {
        let names =
            ["run", "pages_to_scan", "sleep_millisecs", "use_zero_pages", "advisor_mode", "advisor_target_scan_time"];
        let mut files: Vec<PathBuf> = names.iter().map(|name| Path::new("/sys/kernel/mm/ksm").join(name)).collect();
        files.push("/sys/kernel/mm/transparent_hugepage/enabled".into());
        files.into_iter().filter_map(|file| fs::read_to_string(&file).ok().map(|text| (file, text))).collect()
    }

    /// Whether all is as it was.
    fn is_as_found(&self) {
        assert_eq!(Self::settings(), self.before, "what tare changed on the host is not put back");
    }
}

/// Bytes of the host that are available.
fn available() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|line| line.starts_with("MemAvailable:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Guests of 320 MiB in which an application of one data group runs.
fn study(arms: &str, density: &str, parameters: &str) -> String {
    let top = "baseline = \"plain\"\nblocks = 1\ntrust-domain = \"this test's own guests\"";
    let arms = format!("[arms.plain]\nplatform = \"container\"\n{arms}");
    let phases = [("warm-up", "1s"), ("steady-state", "2s"), ("ramp-down", "100ms")];
    let case = format!(
        r#"[lab]
placement = "unpinned"

[cases.density]
workload = "java"
load = {{ closed = {{ clients = 1 }} }}
parameters = {{ heap = "96MiB", room = "64MiB", {parameters} }}
density = {{ {density} }}
"#
    );
    study_of(top, &arms, "352MiB", &phases, &case)
}

const MERGED: &str = r#"
[arms.merged]
platform = "container"
merging = "tare"
huge-pages = "never"
"#;

fn arm<'a>(findings: &'a Value, id: &str) -> &'a Value {
    let arms = findings["cases"][0]["density"]["arms"].as_array().unwrap();
    arms.iter().find(|arm| arm["arm"] == id).unwrap_or_else(|| panic!("no arm {id}: {arms:?}"))
}

fn metric(level: &Value, id: &str) -> f64 {
    level["metrics"][id]["value"].as_f64().unwrap_or_else(|| panic!("no {id}: {level}"))
}

/// Runs a study of two trials to its end: both completed, nothing is left, and the host is as it was.
#[track_caller]
fn completed(host: &Host, folder: &Path, text: &str) -> PathBuf {
    let (out, output) = ran(folder, text);
    expect_code(&output, 0);
    host.is_as_found();
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
    assert_eq!(outcomes(&out), vec!["completed"; 2], "{}", stdout(&output));
    out
}

#[test]
fn guests_are_added_driven_and_merged_and_the_host_is_as_it_was() {
    let Some(host) = Host::take() else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = study(MERGED, "guests = [1, 2, 4], settle = \"60s\"", "memory = \"zeroed\", cpu-share = 0.1");
    let out = completed(&host, folder.path(), &text);
    let findings = findings(&out);
    for id in ["plain", "merged"] {
        let arm = arm(&findings, id);
        assert_eq!((arm["held"].as_u64(), arm["end_of_series"].as_bool()), (Some(4), Some(true)), "{arm}");
        let levels = arm["levels"].as_array().unwrap();
        assert_eq!(levels.iter().map(|level| level["guests"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 4]);
        // The load of one guest was found once, and every guest is offered the same.
        let (one, four) = (metric(&levels[0], "operations_per_s"), metric(&levels[2], "operations_per_s"));
        assert!(one > 0.0 && four > 1.5 * one, "{one} {four}");
    }
    let last = |id: &str| arm(&findings, id)["levels"].as_array().unwrap().last().unwrap().clone();
    let (plain, merged) = (last("plain"), last("merged"));
    // Of each guest 160 MiB and more are zeros.
    assert!(metric(&merged, "merging_saved_bytes") > f64::from(200 << 20), "{merged}");
    assert!(metric(&merged, "guest_unique_bytes") < 0.7 * metric(&plain, "guest_unique_bytes"), "{merged} {plain}");
    assert!(merged["saved_from"]["zero_bytes"].as_u64().unwrap() > 0, "{merged}");
    let warnings = findings["warnings"].as_array().unwrap();
    assert!(
        warnings.iter().any(|warning| warning.as_str().unwrap().contains("this test's own guests")),
        "{warnings:?}"
    );
    let journal = fs::read_to_string(out.join("journal.jsonl")).unwrap();
    // What was found on the host is in the ledger, which is gone.
    assert!(journal.contains("calibrated") && !journal.contains("/sys/kernel"), "{journal}");
}

/// The host is called short of memory whatever it has free, so the policy takes what the machine does not use.
const BALLOONED: &str = r#"
[arms.ballooned]
platform = "qemu"
options = { accel = "tcg" }
ballooning = { rule = "mom", pressure = 1.0, critical = 0.01, guaranteed = "200MiB" }
"#;

#[test]
fn machines_give_memory_back_by_balloons_that_the_policy_sizes() {
    let Some(host) = Host::take() else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = study(BALLOONED, "guests = [1], settle = \"30s\"", "memory = \"lazy\", cpu-share = 0.05");
    let text = text.replace("memory = \"352MiB\"", "memory = \"768MiB\"");
    let out = completed(&host, folder.path(), &text);
    let findings = findings(&out);
    let level = arm(&findings, "ballooned")["levels"][0].clone();
    assert!(metric(&level, "ballooned_bytes") > f64::from(16 << 20), "{level}");
    let plain = &arm(&findings, "plain")["levels"][0];
    assert!(plain["metrics"]["ballooned_bytes"].is_null(), "{plain}");
    let report = fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("balloons by mom") && report.contains("Given back by balloons"), "{report}");
}

#[test]
fn the_scale_up_stops_by_itself_before_the_reserve_is_touched() {
    let Some(host) = Host::take() else { return };
    // Other tests may free memory meanwhile, which is then room, or take some, and then no guest holds: once more in that case.
    let run = |_: u32| {
        let folder = tempfile::tempdir().unwrap();
        // Room for two guests and a half.
        let reserve = (available() - 800 * (1 << 20)) >> 20;
        let density = format!("guests = [1, 2, 3, 4, 5, 6], settle = \"1s\", reserve = \"{reserve}MiB\"");
        let (out, output) = ran(folder.path(), &study("", &density, "memory = \"filled-distinct\""));
        if output.status.code() != Some(0) && stderr(&output).contains("are kept") {
            return None;
        }
        expect_code(&output, 0);
        let plain = arm(&findings(&out), "plain").clone();
        let held = plain["held"].as_u64().unwrap();
        (1..=3).contains(&held).then_some((plain, output))
    };
    let (plain, output) =
        (0..4).find_map(run).expect("a host whose memory nobody else takes or frees by hundreds of MiB");
    assert_eq!(plain["stopped"][0][2], "memory", "{plain}");
    assert!(stdout(&output).contains("memory"), "{}", stdout(&output));
    host.is_as_found();
}

#[test]
fn a_host_without_room_for_one_guest_and_an_arm_without_a_trust_domain_are_refused_before_anything_starts() {
    let Some(host) = Host::take() else { return };
    let folder = tempfile::tempdir().unwrap();
    let reserve = available() >> 20;
    let density = format!("guests = [1, 2], reserve = \"{reserve}MiB\"");
    let (out, output) = ran(folder.path(), &study("", &density, "memory = \"zeroed\""));
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("reserve") && stderr(&output).contains("352"), "{}", stderr(&output));
    assert!(!out.join("journal.jsonl").exists(), "the run began");

    let text = study(MERGED, "guests = [1, 2]", "memory = \"zeroed\"")
        .replace("trust-domain = \"this test's own guests\"", "");
    let (_, output) = ran(folder.path(), &text);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("trust-domain"), "{}", stderr(&output));
    host.is_as_found();
}

#[test]
fn a_run_that_is_killed_while_it_merges_leaves_settings_that_are_put_back_though_its_folder_is_gone() {
    let Some(host) = Host::take() else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = study(MERGED, "guests = [1, 2]", "memory = \"zeroed\"").replace("blocks = 1", "blocks = 2");
    let study = write_study(folder.path(), &text);
    let out = folder.path().join("run");
    let mut child = begin(&study, &out);
    let began = std::time::Instant::now();
    let merging = || fs::read_to_string("/sys/kernel/mm/ksm/run").unwrap().trim() == "1";
    while !merging() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it merged");
        assert!(began.elapsed().as_secs() < 300, "nothing was merged in five minutes");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    kill(&mut child);
    // Somebody throws the run folder away: what was found is in the ledger. The reaper may be at it when reap is asked.
    fs::remove_dir_all(&out).unwrap();
    expect_code(&run(&["reap"]), 0);
    host.is_as_found();
}
