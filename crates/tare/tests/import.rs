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
    assert!(!text.contains("wrong total"), "{text}");
    for (report, code) in [("000", 0), ("001", 0), ("002", 5), ("003", 0), ("004", 0)] {
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
        text.contains("broken: do not base a verdict on it (1)") && text.contains("with a reservation (5)"),
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
    has(
        &entries,
        "conditions",
        "reservation",
        "",
        "clients, machines: 11 on virtual (line 389); 2 on native (line 920",
    );
    assert!(
        of(&entries, "validation").iter().all(|(outcome, ..)| *outcome == "holds"),
        "0 is printed, and none is unknown"
    );
    has(&entries, "validation", "holds", "support", "no answer on virtual was wrong");
    has(&entries, "conditions", "holds", "support-latency", "2,200 sessions on native and on virtual");
    has(&entries, "repeated", "reservation", "", "one figure");
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

#[test]
fn what_the_reports_contradict_themselves_in_is_found_in_their_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs");
    import(&published(), &out);
    let found = |report: &str| audit(&out.join(format!("published-{report}"))).0;
    let web = found("002");
    for (case, says) in [
        ("ecommerce", "web server cache_memory_size: 8192 on virtual (line 675); 2048 on native (line 1209)"),
        ("ecommerce", "web server port_getn: 256 on virtual (line 677); 1 on native (line 1217)"),
        ("ecommerce", "script engine session_timeout: 600 on virtual (line 706); 900 on native (line 1247)"),
        ("banking", "-Xms2g -Xmx2g -Xss512k -Xcompactexplicitgc on native (line 1137); none on virtual"),
    ] {
        has(&web, "claims", "reservation", case, says);
    }
    has(&web, "base", "reservation", "support", "is 84.62 % of 2600");
    has(&web, "base", "holds", "banking", "is 80.77 % of 2600");
    let several = found("003");
    has(
        &several,
        "claims",
        "reservation",
        "",
        "come to 15,360 MB, more than 6144 MB (native system, memory, line 240)",
    );
    has(&several, "claims", "reservation", "", "come to 8, not 16 (database host, cores, line 216)");
    has(&several, "claims", "holds", "", "come to 12, as many as 12 (host, cores, line 86)");
    has(&several, "conditions", "reservation", "", "VM of 1 CPU, memory: 24 GB on virtual machine (line 79); 5 GB");
    let orders = found("004");
    has(&orders, "conditions", "reservation", "", "database, size: 4 GB (line 43); R (line 1171");
    has(
        &orders,
        "conditions",
        "reservation",
        "",
        "client 2, address: 192.168.30.22 (line 1187); 192.168.50.22 (line 1212)",
    );
    has(
        &orders,
        "conditions",
        "reservation",
        "",
        "guest, memory: 10 GB (line 87); 6 GB on KVM, vhost-net and KVM, SR-IOV",
    );
    let network = found("001");
    has(&network, "base", "unknown", "receive", "the report prints no figure of XenServer 5.6");
    let guests = found("000");
    has(&guests, "conditions", "reservation", "", "8 on Hyper-V (line 18 and line 31); 7 on Hyper-V (line 47)");
    // A report tells it beside the claim, and shows the figures that the text states.
    let page = |report: &str| {
        let own = out.join(format!("published-{report}"));
        stdout(&run(&["report", own.to_str().unwrap(), "--format", "html"])).replace("&#x27;", "'")
    };
    let html = page("003");
    assert!(html.contains("two X5460 are 16 cores (line 216)") && html.contains("with a reservation"));
    assert!(html.contains("Conditions that the report discloses"));
    let html = page("001");
    assert!(
        html.contains("9.70 Gbit/s") && html.contains("9.87 Gbit/s") && !html.contains("4.85"),
        "nothing is derived"
    );
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
        let place = of(&entries, "totals").into_iter().find(|(outcome, ..)| *outcome == "broken").unwrap().2;
        assert!(place.contains("(web.csv, line 35, field `"), "{place}");
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
    assert_eq!(
        made.into_iter().collect::<Vec<_>>(),
        ["published-000", "published-001", "published-002", "published-003", "published-004"]
    );
    let (entries, code) = audit(&out.join("published-002"));
    has(&entries, "bytes-a-request", "broken", "banking", "36.6 kB");
    assert_eq!(code, 5);
}

#[test]
fn bad_tables_and_claims_are_refused_with_file_line_field_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let table = "configuration,client,guest,orders_per_minute\na,1,1,100\nb,1,1,110\n";
    let claims = "[[report]]\nformat = \"store\"\nname = \"own\"\ntitle = \"Ours\"\n\n[[report.claims]]\ntext = \"b is 10 % better\"\n\
                  kind = { percent = { case = \"orders\", arm = \"b\", percent = 10, rounding = 0.5 } }\n";
    let conditions = "report,case,arm,subject,what,value,unit,source\nown,,a,guest,memory,10,,7\n";
    for (name, files, says) in [
        (
            "base",
            vec![("t.csv", table), ("claims.toml", claims)],
            "claims.toml, line 6, field `than`: the claim is a `percent` without a base. Name what it is of",
        ),
        (
            "unit",
            vec![
                ("t.csv", table),
                ("claims.toml", &claims.replace("percent = 10", "than = \"a\", percent = 10")),
                ("u.csv", conditions),
            ],
            "u.csv, line 2, column `unit`: the figure has no unit. Units: s, ms",
        ),
    ] {
        let from = folder.path().join(name);
        fs::create_dir(&from).unwrap();
        files.iter().for_each(|(file, text)| fs::write(from.join(file), text).unwrap());
        let out = folder.path().join("out");
        let said = run(&["import", from.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        expect_code(&said, 2);
        assert!(stderr(&said).contains(says), "{}", stderr(&said));
        assert!(!out.exists(), "nothing is written");
    }
    // A total that is wrong is the report's own: it is imported as it is printed, and said at once.
    let from = folder.path().join("total");
    fs::create_dir(&from).unwrap();
    let text = fs::read_to_string(published().join("002-web-iterations.csv")).unwrap();
    let line = "virtual,banking,2300,2,Total,611119,";
    fs::write(from.join("web.csv"), text.replace(line, &line.replace("611119", "611118"))).unwrap();
    let out = folder.path().join("out");
    let said = run(&["import", from.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    expect_code(&said, 0);
    let says = "wrong total: iteration 2, requests: 611,118 is printed, but its parts add up to 611,119 (web.csv, line 35, field `requests`)";
    let shown = stdout(&said).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(says), "{shown}");
}

#[test]
fn wrong_answers_that_a_report_prints_are_counted_by_iteration() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("web");
    fs::create_dir(&from).unwrap();
    for name in ["002-web-iterations.csv", "002-web-errors.csv"] {
        let text = fs::read_to_string(published().join(name)).unwrap();
        // 611,119 requests: half a hundredth is 3,055.
        fs::write(from.join(name), text.replace("virtual,banking,2,0,", "virtual,banking,2,3100,")).unwrap();
    }
    let out = folder.path().join("run");
    import(&from, &out);
    let (entries, code) = audit(&out);
    assert_eq!(code, 5);
    has(&entries, "validation", "broken", "banking", "3,100 of 611,119 answers of an iteration on virtual were wrong");
    has(&entries, "validation", "holds", "banking", "no answer on native was wrong");
}
