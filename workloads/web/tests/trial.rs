//! Web serving run for real: users of a site against its server, checked, searched for the most, and faults reported.

use std::path::{Path, PathBuf};

use crate::common::{
    self, CONTAINER, all_variants, expect_code, findings, has_bundle, is_root, left_by_runs_into, outcomes, ran, run,
    stderr, stdout, write_study,
};
use serde_json::Value;

/// The tables of a shipped site whose users think and throttle less, so that seconds show what minutes would.
pub fn hasty_tables(folder: &Path, site: &str) -> PathBuf {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../workloads/web/host/sites/{site}.toml"));
    let text = std::fs::read_to_string(shipped).unwrap();
    let think = text.lines().find(|line| line.starts_with("think = ")).unwrap();
    let hasty = r#"think = { mean = "100ms", most = "1500ms", granularity = "20ms" }"#;
    let path = folder.join(format!("hasty-{site}.toml"));
    std::fs::write(&path, text.replace(think, hasty)).unwrap();
    path
}

/// One site in small guests for some seconds.
fn study(arms: &str, case: &str) -> String {
    let phases = [("warm-up", "2s"), ("ramp-up", "500ms"), ("steady-state", "5s"), ("ramp-down", "100ms")];
    common::study(1, arms, "768MiB", &phases, &format!("[cases.site]\n{case}\n"))
}

/// What the run folder says of its trials, as one text.
fn facts(out: &Path) -> String {
    let report = run(&["report", out.to_str().unwrap(), "--format", "json"]);
    expect_code(&report, 0);
    stdout(&report)
}

/// The totals of an arm's first table of requests.
fn total<'a>(findings: &'a Value, arm: &str) -> &'a Value {
    let arms = findings["cases"][0]["requests"].as_array().unwrap();
    let own = arms.iter().find(|own| own["arm"] == arm).unwrap_or_else(|| panic!("no requests of {arm}: {arms:?}"));
    &own["iterations"][0]["total"]
}

/// Every site, natively and in a container: pages, files and proofs are right, and the books of driver, server and backend agree.
#[test]
fn users_of_each_site_are_served_rightly_on_every_arm() {
    if !has_bundle("web") {
        return;
    }
    // Each site is served with an agent alone by the tests of tare-workload.
    let sites = ["ecommerce", "banking", "support"];
    for site in if all_variants() { &sites[..] } else { &sites[..1] } {
        let folder = tempfile::tempdir().unwrap();
        let tables = hasty_tables(folder.path(), site);
        let case = format!(
            r#"workload = "web-{site}"
load = {{ closed = {{ clients = 12 }} }}
parameters = {{ tables = "{}", receive-rate = "unlimited", file-sessions = 4, heap = "256MiB" }}"#,
            tables.display()
        );
        let (out, output) = ran(folder.path(), &study(CONTAINER, &case));
        expect_code(&output, 0);
        assert_eq!(outcomes(&out), ["completed", "completed"], "{site}: {}", stdout(&output));
        assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
        let findings = findings(&out);
        for arm in ["native", "container"] {
            let total = total(&findings, arm);
            let count = |name: &str| total["counts"][name].as_u64().unwrap();
            assert!(count("requests") > 0, "{site} {arm}: {total}");
            assert_eq!(count("validation_errors"), 0, "{site} {arm}: {total}");
            assert_eq!(count("requests"), count("good") + count("tolerable") + count("failed"), "{total}");
            assert!(total["bytes_per_request"].as_f64().unwrap() > 10_000.0, "{total}");
        }
    }
}

/// A search finds a load between the bounds, and each load was tried in an instance of its own.
#[test]
fn the_largest_load_that_meets_the_objectives_is_searched_for_and_confirmed() {
    if !has_bundle("web") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tables = hasty_tables(folder.path(), "support");
    let text = study(
        "",
        &format!(
            r#"workload = "web-support"
parameters = {{ tables = "{}", receive-rate = "unlimited", file-sessions = 4, heap = "256MiB" }}
capacity = {{ from = 4, most = 8, precision = 0.5, iterations = 2 }}
qos = {{ good_share = 0.01 }}

[cases.later]
workload = "web-support"
parameters = {{ tables = "{}", receive-rate = "unlimited", file-sessions = 4, heap = "256MiB" }}
load-from = {{ case = "site", share = 0.5 }}"#,
            tables.display(),
            tables.display()
        ),
    );
    let text = text.replace("steady-state = \"5s\"", "steady-state = \"2s\"");
    let (out, output) = ran(folder.path(), &text);
    expect_code(&output, 0);
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
    let findings = findings(&out);
    let search = &findings["cases"][0]["capacity"][0]["searches"][0];
    // The objective is so loose that the largest load holds, twice.
    assert_eq!(search["held"].as_f64(), Some(8.0), "{search}");
    assert_eq!((search["iterations"].as_u64(), search["missed"].is_null()), (Some(2), true), "{search}");
    let later = &findings["cases"][1]["requests"][0]["iterations"][0];
    assert_eq!(later["load"].as_f64(), Some(4.0), "half of the 8 that held: {later}");
}

/// What is slow behind the server is no fault of the arm, and is reported beside figures of which none is good.
#[test]
fn a_backend_that_takes_longer_than_users_wait_is_reported_and_no_page_of_it_is_good() {
    if !has_bundle("web") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tables = hasty_tables(folder.path(), "support");
    let text = std::fs::read_to_string(&tables).unwrap();
    let bounds = text.lines().find(|line| line.starts_with("pages = ")).unwrap();
    std::fs::write(&tables, text.replace(bounds, r#"pages = { good = "50ms", tolerable = "150ms" }"#)).unwrap();
    let case = format!(
        r#"workload = "web-support"
load = {{ closed = {{ clients = 4 }} }}
parameters = {{ tables = "{}", receive-rate = "unlimited", file-sessions = 4, heap = "256MiB", backend-delay = "300ms" }}"#,
        tables.display()
    );
    let (out, output) = ran(folder.path(), &study("", &case));
    expect_code(&output, 0);
    let findings = findings(&out);
    let iteration = &findings["cases"][0]["requests"][0]["iterations"][0];
    let pages = iteration["rows"].as_array().unwrap().iter().filter(|row| row["counts"]["name"] != "download");
    let count = |row: &Value, name: &str| row["counts"][name].as_u64().unwrap();
    let (mut all, mut failed) = (0, 0);
    for row in pages {
        all += count(row, "requests");
        failed += count(row, "failed");
    }
    assert!(all > 0 && failed == all, "{failed} of {all} pages were late: {iteration}");
    // The delay was asked for, so it is reported as a deviation from the published form, and not as a limit of the instrument.
    let facts = facts(&out);
    let deviations = findings["deviations"].to_string();
    assert!(deviations.contains("waits 300ms before each answer"), "{deviations}");
    assert!(!facts.contains("backend-limit"), "{facts}");
}

/// Nothing listens where the user says that a server is: the trial ends before load, with the address and the remedy.
#[test]
fn a_server_that_is_not_there_is_reported_before_any_load() {
    if !has_bundle("web") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = r#"workload = "web-support"
load = { closed = { clients = 2 } }
parameters = { url = "http://{guest}:9", file-sessions = 4 }"#;
    let (out, output) = ran(folder.path(), &study("", case));
    expect_code(&output, 3);
    assert_eq!(outcomes(&out), ["failed"]);
    let printed = stderr(&output);
    assert!(printed.contains(":9") && printed.contains("refused"), "{printed}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

/// More files than the disk holds are refused by the plan, with the figures.
#[test]
fn a_file_set_that_the_disk_does_not_hold_is_refused_before_anything_starts() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = study(
        "",
        r#"workload = "web-support"
load = { closed = { clients = 100 } }
parameters = { file-sessions = 1000000 }"#,
    );
    let study = write_study(folder.path(), &text);
    let output = run(&["plan", study.to_str().unwrap()]);
    assert_ne!(output.status.code(), Some(0));
    let printed = stderr(&output);
    assert!(printed.contains("disk") && printed.contains("GiB for its folder"), "{printed}");
}
