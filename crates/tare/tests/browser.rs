//! The report of a real run opens in a real browser that reaches no network, and holds no script.

use crate::common;

use std::path::Path;
use std::process::Command;

use crate::common::{CONTAINER, expect_code, is_root, ran, run, small_study};

/// Opens a file in a browser without a window; gives what it printed.
fn browser(file: &Path, profile: &Path, action: &[&str]) -> Option<std::process::Output> {
    let program = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success()))?;
    let output = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1200,1600"])
        .args(action)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    Some(output)
}

#[test]
fn the_report_of_a_run_is_drawn_by_a_browser_without_network_and_needs_no_script() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &small_study(2, CONTAINER));
    expect_code(&output, 0);
    let html = out.join("report.html");
    let Some(dom) = browser(&html, &folder.path().join("profile"), &["--dump-dom"]) else {
        return tare_testkit::skipped("no Chromium is installed");
    };
    let dom = common::stdout(&dom);
    assert!(dom.contains("Does it work?") && dom.contains("</html>"), "{dom:.300}");
    assert!(dom.matches("<svg").count() >= 3 && !dom.contains("<script"), "the figures are there, and no script");
    let picture = folder.path().join("report.png");
    browser(&html, &folder.path().join("profile2"), &[&format!("--screenshot={}", picture.display())]);
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 20_000, "{} bytes of picture", bytes.len());
}

#[test]
fn published_figures_their_audit_and_their_tables_are_drawn_wide_and_narrow() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs");
    expect_code(&run(&["import", "--out", out.to_str().unwrap()]), 0);
    let published = out.join("published-002");
    expect_code(&run(&["report", published.to_str().unwrap()]), 0);
    let html = published.join("report.html");
    let Some(dom) = browser(&html, &folder.path().join("profile"), &["--dump-dom"]) else {
        return tare_testkit::skipped("no Chromium is installed");
    };
    let dom = common::stdout(&dom);
    assert!(dom.contains("</html>") && !dom.contains("<script"), "whole, and no script");
    // What stands in the browser's own tree, so that nothing was lost in a place where HTML does not allow it.
    for part in [
        "id=\"published\"",
        "id=\"audit\"",
        "class=\"score\"",
        "class=\"audit\"",
        "fig-capacities-w-t",
        "fig-latencies-n-t",
        "Requests and quality of service",
        "virtual: 3 iterations, requests by type",
        "What host and guest used",
    ] {
        assert!(dom.contains(part), "{part}");
    }
    assert_eq!(
        dom.matches("Weighted byte rate: bytes of the type").count() / 2,
        18,
        "a table an iteration, and its label"
    );
    for (name, size) in [("wide", "--window-size=1250,3000"), ("narrow", "--window-size=600,3000")] {
        let picture = folder.path().join(format!("{name}.png"));
        let profile = folder.path().join(name);
        browser(&html, &profile, &[size, &format!("--screenshot={}", picture.display())]);
        let bytes = std::fs::read(&picture).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 50_000, "{name}: {} bytes of picture", bytes.len());
    }
}
