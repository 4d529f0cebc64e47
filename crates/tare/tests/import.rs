//! Published figures from their CSV files to run folders, audit, report and comparison.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{expect_code, run, stderr, stdout};
use serde_json::Value;

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/published")
}

/// Imports files into a folder and gives the run folder.
fn import(from: &Path, out: &Path) {
    expect_code(&run(&["import", from.to_str().unwrap(), "--out", out.to_str().unwrap()]), 0);
}

/// The audit of a run and the exit code.
fn audit(run_folder: &Path) -> (Vec<Value>, i32) {
    let output = run(&["audit", run_folder.to_str().unwrap(), "--format", "json"]);
    let json: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    (json["runs"][0]["entries"].as_array().unwrap().clone(), output.status.code().unwrap())
}

fn findings(run_folder: &Path) -> Value {
    let output = run(&["report", run_folder.to_str().unwrap(), "--format", "json"]);
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// The entries of a check: (outcome, case, detail).
fn of<'a>(entries: &'a [Value], check: &str) -> Vec<(&'a str, &'a str, &'a str)> {
    let text = |entry: &'a Value, name: &str| entry[name].as_str().unwrap();
    let own = entries.iter().filter(|entry| entry["check"] == check);
    own.map(|entry| (text(entry, "outcome"), text(entry, "case"), text(entry, "detail"))).collect()
}

#[track_caller]
fn has(entries: &[Value], check: &str, outcome: &str, case: &str, says: &str) {
    let own = of(entries, check);
    let found = own.iter().any(|(had, at, detail)| *had == outcome && *at == case && detail.contains(says));
    assert!(found, "no `{check}` that is {outcome} in `{case}` and says `{says}`: {own:#?}");
}

#[test]
fn all_published_figures_become_runs_and_each_is_audited_reported_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs");
    let published = published();
    let said = run(&["import", published.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    expect_code(&said, 0);
    let text = stdout(&said);
    assert!(text.contains("not read, because they are not CSV files: README.md"), "{text}");
    assert!(text.contains("next: `tare audit") && text.contains("12 trials of native, virtual"), "{text}");
    for (report, code) in [("000", 0), ("002", 5), ("004", 0)] {
        let own = out.join(format!("published-{report}"));
        assert!(text.contains(own.to_str().unwrap()), "{text}");
        assert_eq!(audit(&own).1, code, "{report}");
        let own = own.to_str().unwrap();
        expect_code(&run(&["report", own]), 0);
        expect_code(&run(&["compare", own, own]), 0);
        assert!(Path::new(own).join("report.html").is_file());
    }
    // Runs are called by their folders.
    let copy = out.join("again");
    fs::create_dir(&copy).unwrap();
    for file in fs::read_dir(out.join("published-004")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    let compared = run(&["compare", out.join("published-004").to_str().unwrap(), copy.to_str().unwrap()]);
    expect_code(&compared, 0);
    let said = stdout(&compared);
    assert!(said.starts_with("again against published-004\n"), "{said}");
    assert!(said.contains("published-004 222,048") && said.contains("again 222,048"), "{said}");
    // Three runs at once: broken if one is.
    let runs: Vec<String> =
        ["000", "002", "004"].map(|n| out.join(format!("published-{n}")).display().to_string()).into();
    let all = run(&["audit", &runs[0], &runs[1], &runs[2]]);
    expect_code(&all, 5);
    let text = stdout(&all);
    assert!(
        text.contains("broken: do not base a verdict on it (1)") && text.contains("with a reservation (6)"),
        "{text}"
    );
}

#[test]
fn the_published_web_tables_recompute_and_banking_is_not_the_same_work() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs");
    import(&published(), &out);
    let run_folder = out.join("published-002");
    let (entries, _) = audit(&run_folder);
    let totals = of(&entries, "totals");
    assert_eq!(totals.len(), 6, "two arms in three cases: {totals:#?}");
    assert!(totals.iter().all(|(outcome, ..)| *outcome == "holds"), "{totals:#?}");
    let findings = findings(&run_folder);
    let printed = findings["plan"]["study"]["published"]["printed"].as_array().unwrap();
    let tables: BTreeSet<String> =
        printed.iter().map(|total| format!("{}{}{}", total["case"], total["arm"], total["iteration"])).collect();
    assert_eq!(tables.len(), 18);
    has(&entries, "bytes-a-request", "broken", "banking", "36.6 kB on native and 30.5 kB on virtual");
    has(&entries, "bytes-a-request", "holds", "ecommerce", "134.1 kB on native and 133.7 kB on virtual");
    has(&entries, "bytes-a-request", "holds", "support", "538.0 kB on native and 538.1 kB on virtual");
    has(&entries, "bytes-a-request", "reservation", "banking-latency", "not reported here");
    has(&entries, "score", "holds", "", "it recomputes to 2,321.2");
    has(&entries, "score", "holds", "", "it recomputes to 1,940.4");
    has(&entries, "base", "holds", "ecommerce", "3,200 against 4,100 is 21.95 % less than native");
    has(&entries, "conditions", "reservation", "", "11 client machines");
    has(&entries, "conditions", "holds", "support-latency", "2,200 sessions on native and on virtual");
    has(&entries, "repeated", "reservation", "", "one trial");
    let answer = findings["answer"].as_array().unwrap();
    let banking = answer.iter().find(|own| own["case"] == "banking").unwrap();
    assert_eq!(banking["verdict"], "not-comparable");
    assert!(banking["sentence"].as_str().unwrap().contains("36.6 kB on native and 30.5 kB"), "{banking}");
    assert!(
        answer.iter().filter(|own| own["case"] != "banking").all(|own| own["verdict"] == "cannot-say"),
        "{answer:#?}"
    );
}

#[test]
fn published_orders_and_guests_are_audited_for_their_base_and_their_unit() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs");
    import(&published(), &out);
    let (orders, _) = audit(&out.join("published-004"));
    assert_eq!(of(&orders, "totals").len(), 3);
    assert!(of(&orders, "totals").iter().all(|(outcome, ..)| *outcome == "holds"));
    has(
        &orders,
        "base",
        "reservation",
        "orders",
        "222,048 against 211,919 is 4.78 % more than Hyper-V, virtual disks; 4.56 % is of KVM, SR-IOV itself",
    );
    has(&orders, "base", "holds", "orders", "213,422 against 211,919 is 0.71 % more");
    has(&orders, "conditions", "holds", "orders", "4 guests with 8 drivers");
    let (guests, _) = audit(&out.join("published-000"));
    has(
        &guests,
        "per-run",
        "reservation",
        "density",
        "189,871,385 of 32 guests are of a run of 1,800 s, 105,484.1 in a second; its 190,191,751 of 28 guests are 105,662.1",
    );
    has(&guests, "per-run", "reservation", "density", "no figure of 8 guests, only of 1, 4 and 7");
    let follows =
        |n: usize| guests.iter().filter(|own| own["check"] == "per-run").nth(n).unwrap()["consequence"].clone();
    assert_eq!(follows(0), "The text's figure is that of 28 guests, not of 32.");
    assert_eq!(follows(1), "The text's figure is that of 7 guests, not of 8.");
    // The report tells what the audit found, and judges nothing by itself.
    for (report, says) in [
        ("000", "The text\u{2019}s figure is that of 28 guests, not of 32."),
        ("004", "222,048 against 211,919 is 4.78 % more than Hyper-V, virtual disks"),
        ("002", "It recomputes to 2,321.2"),
    ] {
        let shown = run(&["report", out.join(format!("published-{report}")).to_str().unwrap(), "--format", "html"]);
        let html = stdout(&shown).replace("&#x27;", "\u{2019}").replace('\'', "\u{2019}");
        assert!(html.contains(says), "{report}: {says}");
    }
}

/// The web tables with one change.
fn tampered(folder: &Path, change: impl Fn(&str) -> String) -> PathBuf {
    let from = folder.join("tampered");
    fs::create_dir_all(&from).unwrap();
    let text = fs::read_to_string(published().join("002-web-iterations.csv")).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed);
    fs::write(from.join("web.csv"), changed).unwrap();
    let out = folder.join("run");
    import(&from, &out);
    out
}

#[test]
fn one_digit_in_a_total_and_one_line_that_is_missing_are_caught() {
    let total = "virtual,banking,2300,2,Total,611119,593047,18070,2,49739.0,0.612,30462";
    for (other, says) in [
        (
            "virtual,banking,2300,2,Total,611118,593047,18070,2,49739.0,0.612,30462",
            "iteration 2, requests: 611,118 is printed, but its parts add up to 611,119",
        ),
        ("virtual,banking,2300,2,Total,611119,593147,18070,2,49739.0,0.612,30462", "iteration 2, good: 593,147"),
        ("virtual,banking,2300,2,Total,611119,593047,18070,3,49739.0,0.612,30462", "iteration 2, failed: 3 is printed"),
        ("virtual,banking,2300,2,Total,611119,593047,18070,2,49749.0,0.612,30462", "iteration 2, byte_rate: 49,749.0"),
        ("virtual,banking,2300,2,Total,611119,593047,18070,2,49739.0,0.622,30462", "iteration 2, response_s: 0.622"),
        (
            "virtual,banking,2300,2,Total,611119,593047,18070,2,49739.0,0.612,30472",
            "iteration 2, bytes_per_request: 30,472",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (entries, code) = audit(&tampered(folder.path(), |text| text.replace(total, other)));
        assert_eq!(code, 5);
        has(&entries, "totals", "broken", "banking", says);
    }
    for (gone, case, says) in [
        (
            "native,ecommerce,4100,3,cart,",
            "ecommerce",
            "iteration 3, requests: 693,456 is printed, but its parts add up to 656,767",
        ),
        ("native,support,2600,1,download,", "support", "iteration 1, requests"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let without =
            |text: &str| text.lines().filter(|line| !line.starts_with(gone)).map(|line| format!("{line}\n")).collect();
        let (entries, code) = audit(&tampered(folder.path(), without));
        assert_eq!(code, 5);
        has(&entries, "totals", "broken", case, says);
        has(&entries, "totals", "holds", "banking", "add up");
    }
    let folder = tempfile::tempdir().unwrap();
    let without = |text: &str| {
        text.lines()
            .filter(|line| !line.contains("native,banking,2600,2,Total"))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let (entries, _) = audit(&tampered(folder.path(), without));
    has(&entries, "totals", "unknown", "banking", "no total is printed on native for iteration 2");
    assert!(
        of(&entries, "score").is_empty() || of(&entries, "score").iter().all(|(outcome, ..)| *outcome != "holds"),
        "claims are of the known file alone"
    );
}

#[test]
fn totals_and_claims_of_an_own_report_are_read_from_beside_its_tables() {
    let folder = tempfile::tempdir().unwrap();
    let claims = r#"
[[report]]
format = "store"
name = "own"
title = "Orders of two ways to storage"
[[report.printed]]
case = "orders"
arm = "hyperv_virtual_disks"
iteration = 0
figure = "orders_per_minute"
value = 211919
rounding = 0.5
"#;
    let text = fs::read_to_string(published().join("004-store.csv")).unwrap();
    for (name, text, code) in [("whole", text.clone(), 0), ("tampered", text.replace("27350", "27450"), 5)] {
        let from = folder.path().join(name);
        fs::create_dir(&from).unwrap();
        fs::write(from.join("any-name.csv"), text).unwrap();
        fs::write(from.join("claims.toml"), claims).unwrap();
        let out = folder.path().join(format!("run-{name}"));
        import(&from, &out);
        assert_eq!(audit(&out).1, code, "{name}");
    }
    let (entries, _) = audit(&folder.path().join("run-tampered"));
    has(&entries, "totals", "broken", "orders", "211,919 is printed, but its parts add up to 212,019");
}

#[test]
fn nothing_is_written_unless_every_file_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    fs::create_dir(&from).unwrap();
    for name in ["000-density.csv", "004-store.csv"] {
        fs::copy(published().join(name), from.join(name)).unwrap();
    }
    let text = fs::read_to_string(from.join("004-store.csv")).unwrap();
    fs::write(from.join("004-store.csv"), text.replace("25931", "25,931")).unwrap();
    let out = folder.path().join("out");
    let refused = run(&["import", from.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    expect_code(&refused, 2);
    assert!(
        stderr(&refused).contains("004-store.csv, line 4: 5 cells, where the header has 4 columns"),
        "{}",
        stderr(&refused)
    );
    assert!(!out.exists());
    // Nor over what is there.
    let csv = published().join("000-density.csv");
    import(&csv, &out);
    let again = run(&["import", csv.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    expect_code(&again, 2);
    assert!(stderr(&again).contains("never written over"), "{}", stderr(&again));
    expect_code(&run(&["audit", folder.path().join("from").to_str().unwrap()]), 2);
}

#[test]
fn the_published_reports_ship_with_tare() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("shipped");
    let said = run(&["import", "--out", out.to_str().unwrap()]);
    expect_code(&said, 0);
    assert!(!stdout(&said).contains("note:"), "their claims are known: {}", stdout(&said));
    let made: BTreeSet<String> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(made.into_iter().collect::<Vec<_>>(), ["published-000", "published-002", "published-004"]);
    let (entries, code) = audit(&out.join("published-002"));
    has(&entries, "bytes-a-request", "broken", "banking", "36.6 kB");
    assert_eq!(code, 5);
}
