//! The report of a real run opens in a real browser that reaches no network, and holds no script.

use crate::common;

use std::path::Path;
use std::process::Command;

use crate::common::{CONTAINER, expect_code, is_root, ran, run, small_study};

/// The name of a browser that is installed here.
fn program() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success()));
    if found.is_none() {
        tare_testkit::skipped("no Chromium is installed");
    }
    found
}

/// Opens a file in a browser without a window; gives what it printed.
fn browser(file: &Path, profile: &Path, action: &[&str]) -> Option<std::process::Output> {
    let output = Command::new(program()?)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1200,1600"])
        .args(action)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    Some(output)
}

/// Printed pages of a file.
fn pages(file: &Path, folder: &Path) -> Option<usize> {
    let pdf = folder.join("printed.pdf");
    browser(file, &folder.join("profile-print"), &[&format!("--print-to-pdf={}", pdf.display())])?;
    let bytes = std::fs::read(&pdf).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    // An object a page, and one of the kind `Pages` for all.
    Some(text.matches("/Type /Page").count() - text.matches("/Type /Pages").count())
}

/// What a script finds out in a page of this width, in CSS pixels. A window is never narrower than 500, so the page lies in a frame.
/// The page itself has no script: this one is put into a copy of it. It calls `done` with its finding.
fn found(file: &Path, folder: &Path, width: u32, options: &[&str], script: &str) -> Option<String> {
    let html = std::fs::read_to_string(file).unwrap();
    let (page, frame) = (folder.join(format!("page-{width}.html")), folder.join(format!("frame-{width}.html")));
    let script = format!(
        "<script>const done = text => parent.postMessage(text, '*');\naddEventListener('load', () => {{ {script} }});</script></body>"
    );
    std::fs::write(&page, html.replace("</body>", &script)).unwrap();
    let name = page.file_name().unwrap().to_str().unwrap();
    let around = format!(
        "<body><iframe src=\"{name}\" style=\"border:0;width:{width}px;height:900px\"></iframe>\
         <script>onmessage = own => document.body.textContent = 'FOUND ' + own.data + ' END'</script></body>"
    );
    std::fs::write(&frame, around).unwrap();
    let actions: Vec<&str> = options.iter().copied().chain(["--virtual-time-budget=20000", "--dump-dom"]).collect();
    let dom = common::stdout(&browser(&frame, &folder.join(format!("profile-{width}")), &actions)?);
    let text = dom.split_once("FOUND ").and_then(|(_, rest)| rest.split_once(" END"));
    Some(text.unwrap_or_else(|| panic!("the script found nothing: {dom:.400}")).0.to_owned())
}

/// Follows every link within the page, each time with all folds closed, and names those whose target is missing or stays hidden.
const LINKS: &str = r"
    const folds = () => document.querySelectorAll('details');
    const links = [...document.querySelectorAll('a[href^=\'#\']')];
    const bad = [];
    const next = i => {
        if (i === links.length) { done(links.length + ' links; bad: ' + bad.join(' ')); return; }
        folds().forEach(fold => fold.open = false);
        const target = document.getElementById(links[i].hash.slice(1));
        if (!target) { bad.push(links[i].hash + ' leads nowhere'); next(i + 1); return; }
        links[i].click();
        setTimeout(() => {
            const closed = [...folds()].some(fold => !fold.open && fold !== target && fold.contains(target));
            if (closed || !target.checkVisibility()) bad.push(links[i].hash + ' stays hidden');
            history.replaceState(null, '', '#');
            next(i + 1);
        }, 30);
    };
    next(0);";

/// What is wider than the page, of that which does not scroll within itself; and texts of figures that are cut off by their figure.
const WIDTHS: &str = r"
    const wide = document.documentElement.scrollWidth;
    const seen = [...document.querySelectorAll('svg')].filter(svg => svg.checkVisibility());
    const cut = seen.flatMap(svg => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter(text => {
            const own = text.getBoundingClientRect();
            return own.left < frame.left - 2 || own.right > frame.right + 2;
        }).map(text => text.textContent);
    });
    const small = seen.flatMap(svg => [...svg.querySelectorAll('text')])
        .filter(text => parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a < 9);
    done('page ' + wide + '; cut: ' + cut.join(' / ') + '; small: ' + small.length);";

/// The colours of paper and ink, and all folds opened by a click on their summaries.
const FOLDS: &str = r"
    const style = getComputedStyle(document.body);
    const before = document.documentElement.scrollHeight;
    document.querySelectorAll('summary').forEach(summary => summary.click());
    const closed = [...document.querySelectorAll('details')].filter(fold => !fold.open).length;
    done(style.backgroundColor + ' ' + style.color + '; closed ' + closed + '; grew ' + (document.documentElement.scrollHeight > 3 * before));";

#[test]
fn the_report_of_a_run_is_drawn_by_a_browser_without_network_and_needs_no_script() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &small_study(2, CONTAINER));
    expect_code(&output, 0);
    let html = out.join("report.html");
    let Some(dom) = browser(&html, &folder.path().join("profile"), &["--dump-dom"]) else { return };
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
    let Some(dom) = browser(&html, &folder.path().join("profile"), &["--dump-dom"]) else { return };
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

/// The quickstart with fewer and shorter blocks, and one more arm.
fn quickstart() -> String {
    let study = include_str!("../../../studies/quickstart.toml");
    let change = |text: String, (from, to): (&str, &str)| {
        assert!(text.contains(from), "the quickstart has no {from}");
        text.replace(from, to)
    };
    let guest = "\n[arms.second]\nplatform = \"container\"\n\n[guest]";
    let changes = [("blocks = 12", "blocks = 2"), ("\"400ms\"", "\"150ms\""), ("\n[guest]", guest)];
    changes.into_iter().fold(study.to_owned(), change)
}

#[test]
fn the_quickstart_of_four_arms_prints_ten_pages_and_reads_on_a_phone() {
    if !is_root() || program().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // On a busy host some of so short trials are invalid: the report tells that, too.
    let (out, output) = ran(folder.path(), &quickstart());
    let html = out.join("report.html");
    assert!(html.exists(), "{}", common::stderr(&output));
    let printed = pages(&html, folder.path()).unwrap();
    assert!((1..=10).contains(&printed), "{printed} pages");
    let of = |width, options: &[&str], script| found(&html, folder.path(), width, options, script).unwrap();
    for width in [390, 1280] {
        let links = of(width, &[], LINKS);
        let number: u32 = links.split_once(' ').unwrap().0.parse().unwrap();
        assert!(number > 12 && links.ends_with("bad: "), "{width}: {links}");
        assert_eq!(of(width, &[], WIDTHS), format!("page {width}; cut: ; small: 0"));
    }
    let (dark, light) = ("--blink-settings=preferredColorScheme=0", "--blink-settings=preferredColorScheme=1");
    assert_eq!(of(1280, &[dark], FOLDS), "rgb(18, 22, 28) rgb(231, 235, 240); closed 0; grew true");
    assert_eq!(of(1280, &[light], FOLDS), "rgb(255, 255, 255) rgb(23, 32, 43); closed 0; grew true");
}

#[test]
fn published_reports_open_their_folds_by_links_and_do_not_scroll_sideways_on_a_phone() {
    if program().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs");
    expect_code(&run(&["import", "--out", out.to_str().unwrap()]), 0);
    for name in ["published-000", "published-002", "published-004"] {
        let of = out.join(name);
        expect_code(&run(&["report", of.to_str().unwrap()]), 0);
        let html = of.join("report.html");
        let links = found(&html, folder.path(), 390, &[], LINKS).unwrap();
        assert!(links.ends_with("bad: "), "{name}: {links}");
        assert_eq!(found(&html, folder.path(), 390, &[], WIDTHS).unwrap(), "page 390; cut: ; small: 0", "{name}");
        let printed = pages(&html, folder.path()).unwrap();
        assert!(printed <= 12, "{name}: {printed} pages");
    }
}
