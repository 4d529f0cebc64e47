//! Order entry run for real: a database for every guest, restored, driven, counted and reported.

use crate::common::{
    self, CONTAINER, expect_code, findings, is_root, left_by_runs_into, number, outcomes, postgres_for_guests, ran, stderr,
    stdout,
};

/// Two guests, two drivers each, for two seconds; `parameters` come beside the size of the database.
fn study(postgres: &str, arms: &str, blocks: u32, parameters: &str) -> String {
    let phases = [("warm-up", "1s"), ("steady-state", "2s"), ("ramp-down", "100ms")];
    let case = format!(
        r#"[cases.orders]
workload = "store"
guests = 2
drivers = 2
load = {{ closed = {{ clients = 3 }} }}
parameters = {{ db-size = "10MB", postgres = "{postgres}"{parameters} }}
"#
    );
    common::study(blocks, arms, "512MiB", &phases, &case)
}

#[test]
fn two_guests_with_two_drivers_each_are_restored_driven_counted_and_reported() {
    let Some(postgres) = is_root().then(postgres_for_guests).flatten() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &study(&postgres, CONTAINER, 2, ""));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 4], "the database was counted and agreed");
    let rate = number(&out, "SELECT min(value) FROM metrics WHERE metric = 'orders_per_minute'");
    assert!(rate > 0.0, "{rate}");
    let findings = findings(&out);
    let case = &findings["cases"][0];
    let parts = case["parts"][0]["parts"].as_array().unwrap();
    let drivers = parts.iter().filter(|part| !part["driver"].is_null()).count();
    assert_eq!((drivers, parts.len() - drivers), (4, 2), "{parts:?}");
    let steps: Vec<&str> =
        case["steps"][0]["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert!(steps.contains(&"log in"), "{steps:?}");
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(markdown.contains("data restored in"), "{markdown}");
    // The published table: a line a driver, a line a guest, the sum and its ratio, medians all of them.
    let line = |name: &str| {
        let found = markdown.lines().find(|line| line.trim_start_matches(['|', ' ', '*', '#']).starts_with(name));
        found.unwrap_or_else(|| panic!("no line {name} in {markdown}")).to_owned()
    };
    assert!(line("By guest and driver").contains("medians of 2 trials"), "{markdown}");
    for name in ["guest 1, driver 1", "guest 1, both", "guest 2, driver 2", "Sum over the 4 drivers", "The sum against"]
    {
        assert_eq!(line(name).matches('|').count(), 4, "two arms: {}", line(name));
    }
    for name in
        ["Where the time of an order goes", "Outcomes of the orders", "of them rolled back"]
    {
        line(name);
    }
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn statements_functions_and_orders_at_a_rate_are_cases_of_one_study() {
    let Some(postgres) = is_root().then(postgres_for_guests).flatten() else { return };
    let folder = tempfile::tempdir().unwrap();
    let case = |name: &str, load: &str, parameters: &str| {
        format!(
            "\n[cases.{name}]\nworkload = \"store\"\nload = {{ {load} }}\n\
             parameters = {{ db-size = \"10MB\", postgres = \"{postgres}\", {parameters} }}\n"
        )
    };
    let functions = case("functions", "closed = { clients = 3, think-time = \"20ms\" }", "statements = \"functions\"");
    let rate = case("rate", "open = { rate = \"10/s\", connections = 4 }", "verdict = \"mean\"");
    let (out, output) = ran(folder.path(), &(study(&postgres, "", 1, "") + &functions + &rate));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 3], "{}", stdout(&output));
    let of = |case: &str, metric: &str| {
        number(
            &out,
            &format!(
                "SELECT value FROM metrics JOIN trials USING (trial) WHERE case_id = '{case}' AND metric = '{metric}'"
            ),
        )
    };
    let statements = |case: &str| 60.0 * of(case, "statements_per_s") / of(case, "orders_per_minute");
    // About 28 round trips an order, and 10.
    assert!(
        statements("orders") > 1.5 * statements("functions"),
        "{} {}",
        statements("orders"),
        statements("functions")
    );
    let printed = stdout(&output);
    assert!(printed.contains("offered 10.0 op/s"), "an open loop says what was offered: {printed}");
    for (case, step) in [("functions", "purchase"), ("orders", "purchase: commit")] {
        let of = format!("steps JOIN trials USING (trial) WHERE case_id = '{case}' AND step = '{step}'");
        assert!(number(&out, &format!("SELECT sum(count) FROM {of}")) > 0.0, "{case} has no step {step}");
    }
}

#[test]
fn a_server_that_is_killed_under_load_comes_back_with_every_order_that_was_acknowledged() {
    let Some(postgres) = is_root().then(postgres_for_guests).flatten() else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = study(&postgres, "", 1, ", kill-after = \"500ms\"").replace("\"2s\"", "\"6s\"");
    let (out, output) = ran(folder.path(), &text);
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"], "{}", stdout(&output));
    let lost = number(&out, "SELECT sum(value) FROM counts WHERE name LIKE '%reconnects%'");
    assert!(lost > 0.0, "nobody noticed that the server was gone");
}

#[test]
fn durability_that_is_switched_off_stands_at_the_top_of_the_report() {
    let Some(postgres) = is_root().then(postgres_for_guests).flatten() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &study(&postgres, "", 1, ", settings = { fsync = \"off\" }"));
    expect_code(&output, 0);
    let findings = findings(&out);
    let warnings = findings["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning.as_str().unwrap().contains("fsync")), "{warnings:?}");
    assert!(stdout(&output).contains("fsync"), "{}", stdout(&output));
}

#[test]
fn what_cannot_work_is_refused_before_the_first_trial_with_the_reason() {
    let Some(postgres) = is_root().then(postgres_for_guests).flatten() else { return };
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str, words: &[&str]| {
        let (out, output) = ran(folder.path(), text);
        assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
        let said = stderr(&output);
        assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {said}");
        assert!(!out.join("results.sqlite").exists() || outcomes(&out).is_empty(), "a trial was run");
        let _ = std::fs::remove_dir_all(out);
    };
    refused(&study("/no/such/bin", "", 1, ""), &["/no/such/bin"]);
    refused(&study(&postgres, "", 1, "").replace("10MB", "900GB"), &["disk", "GiB"]);
    refused(&study(&postgres, "", 1, ", serchez = 3"), &["serchez"]);
    let url = ", url = \"postgres://nobody:wrong@127.0.0.1:1/orders\"";
    refused(&study(&postgres, "", 1, url).replace(&format!(", postgres = \"{postgres}\""), ""), &["127.0.0.1:1"]);
    let rr = "\n[cases.rr]\nworkload = \"rr\"\nguests = 2\n";
    refused(&(study(&postgres, "", 1, "") + rr), &["guests", "rr"]);
}
