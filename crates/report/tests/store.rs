//! Order entry in the report: guests and drivers, steps, storage, and unsafe settings.

use crate::fixture;
use crate::page::{html, parsed, rows};

use std::collections::BTreeSet;

use tare_model::findings::Findings;

#[test]
fn the_published_table_comes_out_as_it_was_published() {
    let page = html(&fixture::store());
    let document = parsed(&page);
    let table = rows(
        &document,
        "By guest and driver: orders a minute (OPM), in orders/min, more is better; medians of 3 trials",
    );
    assert_eq!(table[0], ["Guest and driver", "virtual disks", "iSCSI by vhost-net", "iSCSI by SR-IOV"]);
    assert_eq!(table.len(), 1 + 4 * 3 + 2, "four guests of two drivers, the sum, and its ratio");
    let row =
        |name: &str| table.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("no row {name}: {table:?}"));
    assert_eq!(row("guest 1, driver 2")[1..], ["27,521", "27,795", "27,765"]);
    assert_eq!(row("guest 4, driver 1")[1..], ["25,604", "26,648", "27,871"]);
    assert_eq!(row("guest 3, both")[1..], ["53,889", "54,796", "56,932"]);
    assert_eq!(row("Sum over the 8 drivers")[1..], ["211,919", "213,422", "222,048"]);
    let ratio = row("The sum against virtual disks");
    assert_eq!(ratio[1], "1");
    assert!(ratio[2].starts_with("1.0071") && ratio[3].starts_with("1.0478") && ratio[3].contains("[1.0414, 1.0542]"));
    let terminal = tare_report::terminal(&fixture::store(), 400, false);
    let line = "iSCSI by SR-IOV by guest: 55,865, 53,239, 56,932, 56,012; sum over the 8 drivers 222,048 orders/min, 1.0478 times the baseline's";
    assert!(terminal.contains(line), "{terminal}");
    let json = tare_report::json(&fixture::store()).unwrap();
    assert_eq!(serde_json::from_str::<Findings>(&json).unwrap().cases[0].parts, fixture::store().cases[0].parts);
}

#[test]
fn a_guest_of_one_driver_is_one_line_and_trials_of_one_guest_have_no_table() {
    let mut findings = fixture::store();
    for arm in &mut findings.cases[0].parts {
        arm.parts.retain(|part| part.driver != Some(2));
    }
    let page = html(&findings);
    let table = rows(&parsed(&page), "By guest: orders a minute (OPM)");
    assert_eq!(table[1][0], "guest 1");
    assert!(table.iter().any(|row| row[0] == "Sum over the 4 guests") && table.len() == 1 + 4 + 2);
    findings.cases[0].parts.clear();
    findings.cases[0].steps.clear();
    let page = html(&findings);
    assert!(!page.contains("By guest") && !page.contains("Where the time of an order goes"));
}

#[test]
fn the_steps_of_an_order_are_drawn_and_tabled_with_their_shares() {
    let findings = fixture::store();
    let page = html(&findings);
    let document = parsed(&page);
    let table = rows(&document, "Where the time of an order goes");
    let row = |name: &str| table.iter().find(|row| row[0].starts_with(name)).unwrap_or_else(|| panic!("no row {name}"));
    assert_eq!(row("purchase")[1].replace('|', ""), "29.3 ms 68 % [29.0, 29.6]");
    assert!(row("log in")[0].contains("0.80 times an order"));
    assert_eq!(row("One order as a whole")[1].replace('|', ""), "43.4 ms [43.0, 43.7]");
    assert!(row("read prices")[0].contains("outside the time of an order"));
    let each = rows(&document, "Time of a single step");
    assert!(
        each.iter().any(|row| row[0] == "purchase" && row[1].replace('|', "") == "23.4 ms p99 120 ms, p99.9 264 ms"),
        "{each:?}"
    );
    let described = "virtual disks: 43.4 ms in all: log in 3.36 ms, new customer 1.02 ms,";
    assert!(page.contains(described), "the figure tells those who cannot see it");
    assert!(!page.contains("read prices 1.20 ms"), "what is outside the time of an order is not in the figure");
    let terminal = tare_report::terminal(&findings, 400, false);
    assert!(
        terminal.contains("time of an order on virtual disks: 43.4 ms, of which purchase 68 %; browse by title 9 %;")
    );
}

#[test]
fn what_the_workload_says_is_shown_with_the_marks_of_the_arms_and_in_the_form_of_the_report() {
    let findings = fixture::store();
    let page = html(&findings);
    let document = parsed(&page);
    let table = rows(&document, "All completed trials together");
    assert_eq!(table[0], ["Orders", "virtual disks", "iSCSI by vhost-net", "iSCSI by SR-IOV"]);
    assert_eq!(
        table[1].iter().map(|cell| cell.replace('|', "")).collect::<Vec<_>>()[..2],
        ["orders in the window", "9,536,355"]
    );
    assert_eq!(table[2][1..], ["2.0 %", "\u{2013}", "2.0 %"], "what is unknown is no zero");
    let fold = document.descendants().find(|node| {
        node.has_tag_name("details") && node.descendants().any(|own| own.text() == Some("The clients in figures"))
    });
    let folded = rows(&document, "Orders a minute by clients");
    assert!(fold.is_some_and(|node| node.descendants().any(|own| own.has_tag_name("table"))));
    assert_eq!(folded[1][1].replace('|', ""), "25.60 ms [25.09, 26.11]; of one client");
    assert!(page.contains("<p>Every order is counted in the database.</p>"));
    for layout in ["w", "n"] {
        assert!(page.contains(&format!("fig-case-1-section-0-1-{layout}-t")), "the figure, {layout}");
    }
    let answer = page.find("<h4>As clients are added</h4>").unwrap();
    let detail = page.find("<h4>Outcomes of the orders</h4>").unwrap();
    let figures = page.find("<h4>Where the time of an order goes</h4>").unwrap();
    assert!(answer < figures && figures < detail && detail < page.find("<h4>Figures as tables</h4>").unwrap());
    let markdown = tare_report::markdown(&findings);
    assert!(markdown.contains("### Outcomes of the orders\n\n**All completed trials together.**"), "{markdown}");
    assert!(tare_report::terminal(&findings, 80, false).contains("  Every order is counted in the database.\n"));
}

#[test]
fn the_share_of_orders_rolled_back_is_reported_in_per_cent() {
    let page = html(&fixture::store());
    let metrics = rows(&parsed(&page), "Metrics, with one value per trial");
    let row = metrics.iter().find(|row| row[0].starts_with("share of orders rolled back")).unwrap();
    assert!(row[1].starts_with("2.10 %"), "{row:?}");
}

#[test]
fn several_guests_and_drivers_are_said_where_the_case_is_described() {
    for output in [html(&fixture::store()), tare_report::markdown(&fixture::store())] {
        assert!(output.contains("2 drivers for each guest, each closed loop, 20 clients"));
        assert!(output.contains("4 guests at the same time, each of 4 CPUs and 1GiB"));
    }
}

#[test]
fn unsafe_settings_come_before_every_answer() {
    let findings = fixture::unsafe_store();
    let page = html(&findings);
    let warning = page.find("fsync is off: orders that were acknowledged").unwrap();
    let answers = page.find("<ul class=\"answers\"").or_else(|| page.find("<section class=\"glance\"")).unwrap();
    assert!(page.find("id=\"answer\"").unwrap() < warning && warning < answers);
    assert!(page[..warning].contains("class=\"warning\""));
    let markdown = tare_report::markdown(&findings);
    assert!(markdown.lines().nth(2).unwrap().starts_with("> **WARNING: Unsafe settings: fsync is off"), "{markdown}");
    let coloured = tare_report::terminal(&findings, 80, true);
    assert!(coloured.starts_with("\u{1b}[1;31mWARNING: Unsafe settings: fsync is off"), "{coloured}");
    assert!(coloured.contains("; unsafe: fsync"));
    let safe = html(&fixture::store());
    assert!(!safe.contains("class=\"warning\""));
}

#[test]
fn an_emulated_arm_keeps_its_label_and_has_no_ratio_of_the_sum() {
    let findings = fixture::unsafe_store();
    let page = html(&findings);
    let document = parsed(&page);
    let table = rows(&document, "By guest and driver");
    assert_eq!(table[0][4], "full machine (emulated)");
    let ratio = table.last().unwrap();
    assert_eq!(ratio[4].replace('|', ""), "\u{2013} not comparable");
    let line = tare_report::terminal(&findings, 400, false);
    let line = line.lines().find(|line| line.contains("full machine (emulated) by guest")).unwrap();
    assert!(!line.contains("times the baseline"), "{line}");
    assert!(page.contains("not shown: see the table"), "it would leave the others no room in the figure");
}

#[test]
fn pages_are_well_formed_whatever_users_and_guests_write() {
    let texts = [
        "<script>alert(1)</script>",
        "' ]]> --> </style></svg><img src=x onerror=alert(1)>",
        "a,b\r\n\"c\"|d",
        "{{ 7 * 7 }}",
    ];
    for text in texts {
        let findings = fixture::hostile_store(text);
        let page = html(&findings);
        let document = parsed(&page);
        let mut seen = BTreeSet::new();
        for id in document.descendants().filter_map(|node| node.attribute("id")) {
            assert!(seen.insert(id.to_owned()), "id {id} twice");
        }
        for output in [page.clone(), tare_report::markdown(&findings)] {
            assert!(!output.contains("<script") && !output.contains("<img") && !output.contains("| 49"), "{text}");
        }
        let terminal = tare_report::terminal(&findings, 80, false);
        assert!(!terminal.contains('\u{1b}') && !terminal.contains('\r'));
    }
}

#[test]
fn numbers_that_are_none_never_reach_a_reader_as_nan() {
    let mut findings = fixture::unsafe_store();
    let case = &mut findings.cases[0];
    for arm in &mut case.parts {
        arm.total.value = f64::NAN;
        arm.parts.iter_mut().for_each(|part| part.estimate.value = f64::INFINITY);
    }
    for arm in &mut case.steps {
        arm.operation_s.iter_mut().for_each(|whole| whole.value = f64::NAN);
        arm.rest_s = Some(f64::NAN);
        arm.steps.iter_mut().for_each(|step| step.of_operation_s.value = f64::NAN);
        arm.steps.iter_mut().for_each(|step| step.per_operation = f64::NAN);
    }
    for comparison in case.metrics.iter_mut().flat_map(|metric| &mut metric.comparisons) {
        comparison.ratio.value = f64::NAN;
    }
    let page = html(&findings);
    parsed(&page);
    for output in [page, tare_report::markdown(&findings), tare_report::terminal(&findings, 100, false)] {
        let at = output.find("NaN").or_else(|| output.find("inf "));
        assert!(at.is_none(), "not a number got through: {}", &output[at.unwrap_or(0).saturating_sub(60)..]);
    }
}

#[test]
fn the_terminal_keeps_to_its_width() {
    for (width, findings) in
        [60, 80, 140].into_iter().flat_map(|w| [(w, fixture::unsafe_store()), (w, fixture::many_store())])
    {
        let text = tare_report::terminal(&findings, width, false);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn the_published_table_comes_before_the_other_figures() {
    let page = html(&fixture::store());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = [
        "id=\"fig-case-1-dots-w-t\"",
        "<h4>Orders a minute (OPM) by guest and driver</h4>",
        "<h4>Where the time of an order goes</h4>",
        "<h4>Every metric against the baseline</h4>",
        "<h4>Figures as tables</h4>",
    ];
    assert!(order.map(at).is_sorted(), "{:?}", order.map(at));
}

#[test]
fn ten_arms_are_answered_by_a_table_and_secondary_metrics_are_folded() {
    let findings = fixture::many_store();
    let page = html(&findings);
    let document = parsed(&page);
    let glance = rows(&document, "Each cell: the estimate over the blocks");
    assert_eq!(glance.len(), 1 + 9, "an emulated arm stands by itself");
    assert!(glance[0].iter().any(|head| head.starts_with("order entry")), "{:?}", glance[0]);
    assert!(page.contains("<h4>Main metrics against the baseline</h4>"));
    let folded = document.descendants().find(|node| {
        node.has_tag_name("details")
            && node.descendants().any(|n| n.text() == Some("Other metrics against the baseline"))
    });
    assert!(folded.is_some_and(|node| node.descendants().any(|n| n.has_tag_name("svg"))));
    let same =
        rows(&document, "Driver and guest, first completed trial of each arm: order entry, the same on every arm");
    assert!(same.iter().any(|row| row == &["PostgreSQL shared_buffers", "4GB"]), "said once: {same:?}");
    let terminal = tare_report::terminal(&findings, 100, false);
    assert!(terminal.lines().count() < 90, "{}", terminal.lines().count());
}

#[test]
fn markdown_of_order_entry_snapshot() {
    let markdown = tare_report::markdown(&fixture::unsafe_store());
    let (case, _) = markdown.split_once("## Parity").unwrap();
    insta::assert_snapshot!("store_markdown", case);
}
