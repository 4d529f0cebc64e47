//! Web serving in the report: capacity, request types, resources, score, audit, and figures that others published.

use crate::fixture;
use crate::page::{header as head, html as page, parsed, rows, text};

use roxmltree::{Document, Node};

#[test]
fn the_answer_the_score_and_what_does_not_hold_come_first() {
    let page = page(&fixture::serving());
    let document = parsed(&page);
    let head = head(&document);
    for said in [
        "On sandbox (gVisor), half of the instances meet every objective with 320 sessions, on native with 510: 0.63 times as many \
         (95 % interval 0.62 to 0.64)",
        "Score: 100 times the geometric mean of capacity over reference (banking: 120; e-commerce: 114; support: 162)",
        "0.73 times that of native [0.72, 0.74]",
        "Do not rely on the ratio",
        "A request has 30,117 bytes on native and 25,097 on sandbox (gVisor), 17 % less.",
        "Capacities of this case are of different work and are not compared.",
        "audit of 5 checks: 1 does not hold, 1 holds with a reservation, 1 is unknown, 2 hold",
    ] {
        assert!(head.contains(said), "{said} in {head}");
    }
}

#[test]
fn every_load_that_was_tried_is_shown_and_a_refuted_one_has_both_marks() {
    let page = page(&fixture::serving());
    let document = parsed(&page);
    let found = rows(&document, "The load at which half of the instances meet every objective");
    assert_eq!(found[1][1], "510| |[494, 526]");
    assert_eq!((found[1][2].as_str(), found[1][6].as_str(), found[1][7].as_str()), ("485 |at least 470", "3", "24"));
    let other = &found[2];
    assert!(
        other[3].contains("-37.3 %") && other[3].contains("worse") && other[3].contains("[-38.4, -36.1]"),
        "{other:?}"
    );
    assert!(other[5].contains("312 held, 328 did not"), "{other:?}");
    let tries = rows(&document, "The searches, try by try");
    let refuted = tries.iter().find(|row| row[0] == "sandbox (gVisor), block 2").unwrap();
    assert!(refuted[2].contains("328, 328\u{a0}\u{2717}, 312, 312"), "{refuted:?}");
    assert!(refuted[3].contains("328: good_share was 0.946"), "the last miss: {refuted:?}");
    let drawn = page.split_once("fig-case-1-search-w-d").unwrap().1;
    assert!(
        drawn.contains("native: half of the instances hold 510 sessions; 18 tries held, 6 missed"),
        "the fitted curve"
    );
    for id in ["fig-capacities", "fig-latencies", "fig-case-1-search"] {
        for layout in ["w", "n"] {
            assert!(page.contains(&format!("{id}-{layout}-t")), "{id} {layout}");
        }
    }
}

#[test]
fn requests_are_disclosed_by_type_and_add_up() {
    let document_page = page(&fixture::serving());
    let document = parsed(&document_page);
    let summary = rows(&document, "Quality of service of each arm");
    assert_eq!(summary[0][0], "Arm");
    assert!(summary[1][1] == "502 to 518" && summary[1].last().unwrap() == "6\u{a0}of\u{a0}6", "{summary:?}");
    let quality = rows(&document, "native: quality of service");
    assert_eq!(quality.len(), 7, "one row per iteration");
    assert_eq!(quality[1][0], "block\u{a0}1, iteration\u{a0}1");
    let types = rows(&document, "native, block\u{a0}1, iteration\u{a0}1: 510 sessions, 1 min 00 s.");
    let number = |cell: &str| cell.replace(',', "").parse::<u64>().unwrap();
    let column = |n: usize| types[1..types.len() - 1].iter().map(|row| number(&row[n])).sum::<u64>();
    let total = types.last().unwrap();
    assert_eq!((total[0].as_str(), number(&total[1])), ("Total", column(1)));
    assert!(number(&total[5]).abs_diff(column(5)) <= 4, "weighted byte rates add up to rounding");
    let login = &types[1];
    assert_eq!((login[0].as_str(), login[7].as_str(), login[8].as_str()), ("login", "1.94 s", "34,825"));
    assert_eq!(types[4][7], "\u{2013}", "no p99 of few requests");
}

#[test]
fn resources_and_the_offered_load_are_reported() {
    let page = page(&fixture::serving());
    let document = parsed(&page);
    let used = rows(&document, "Resources used at this load: means");
    let row = |name: &str| used.iter().find(|row| row[0].starts_with(name)).unwrap_or_else(|| panic!("{used:?}"));
    let shares =
        ["user", "system", "idle", "waiting for disks"].map(|kind| row(&format!("Host CPU, {kind}"))[1].clone());
    assert_eq!(shares, ["50.0 %", "40.0 %", "8.0 %", "2.0 %"]);
    assert_eq!(row("CPU as the guest")[2], "\u{2013}");
    assert_eq!(row("Swapped")[1], "0 B / 0 B");
    let offered =
        "408 sessions: 80 % of the median capacity that native had in \u{201c}banking\u{201d}, the same on every arm";
    assert!(page.matches(offered).count() >= 2, "in the case's line and in the disclosure");
    assert!(page.contains("searched from 50 sessions up to 1,600, to within 5.0 %"));
    assert!(
        page.contains("Tomcat 11.0.5 (embedded)") && page.contains("TLS 1.3, session cache"),
        "the workload's facts"
    );
}

#[test]
fn one_arm_in_one_block_is_a_report_of_its_own() {
    let findings = fixture::one_block_of_one_arm();
    let page = page(&findings);
    let document = parsed(&page);
    assert!(head(&document).contains("One arm: there is nothing to compare it with"));
    assert!(head(&document).contains("From a single block, so there is no interval."));
    let found = rows(&document, "The load at which half of the instances meet every objective");
    assert_eq!((found.len(), found[1][1].as_str(), found[1][3].as_str()), (2, "510", "baseline"));
    assert!(!page.contains("Audit: what was checked") && !page.contains("sandbox (gVisor)"));
    let terminal = tare_report::terminal(&findings, 100, false);
    assert!(terminal.contains("native: sessions: 510 held, 536 did not"), "{terminal}");
}

#[test]
fn what_others_published_is_marked_and_nothing_is_pretended_of_it() {
    let findings = fixture::published();
    let page = page(&findings);
    let document = parsed(&page);
    assert!(
        head(&document).starts_with("\n|")
            || head(&document).contains("Figures published by others, not measured by tare")
    );
    let claims = rows(&document, "Claims of the report");
    assert!(claims[1][2].starts_with("It recomputes to 35") && claims[1][3] == "does not follow", "{claims:?}");
    assert!(claims[2][2].contains("510 against 510 is 0.00 % more than native"), "{claims:?}");
    assert!(
        page.contains("line 389")
            && page.contains("Conditions that the report discloses")
            && page.contains("e18c24f4e18c24f4")
    );
    let markdown = tare_report::markdown(&findings);
    let terminal = tare_report::terminal(&findings, 100, false);
    for out in [&page, &markdown, &terminal] {
        assert!(out.contains("Figures published by others, not measured by tare"));
        for pretended in [
            "trials completed",
            "random order",
            "noise floor",
            "was granted what was asked",
            "Order of trials",
            "steady state was",
        ] {
            assert!(!out.contains(pretended), "{pretended}");
        }
    }
    for id in ["parity", "trials"] {
        assert!(!page.contains(&format!("id=\"{id}\"")) && !page.contains(&format!("href=\"#{id}\"")), "{id}");
    }
}

#[test]
fn texts_of_others_stay_text_here_too() {
    let hostile = "<script>alert(1)</script>";
    let mut findings = fixture::published();
    let source = findings.plan.study.published.as_mut().unwrap();
    source.title = hostile.into();
    for own in &mut source.conditions {
        (own.arm, own.subject, own.what, own.value) = (hostile.into(), hostile.into(), hostile.into(), hostile.into());
        (own.case, own.unit, own.source) = (hostile.into(), hostile.into(), hostile.into());
    }
    source.files = vec![(hostile.into(), hostile.into())];
    source.claims.iter_mut().for_each(|claim| claim.text = hostile.into());
    findings.audit.iter_mut().for_each(|entry| (entry.detail, entry.consequence) = (hostile.into(), hostile.into()));
    for case in &mut findings.cases {
        case.requests.iter_mut().flat_map(|own| &mut own.iterations).flat_map(|table| &mut table.rows).for_each(
            |row| {
                row.counts.name = hostile.into();
            },
        );
        case.capacity.iter_mut().flat_map(|own| &mut own.searches).for_each(|search| search.ended = hostile.into());
    }
    let page = page(&findings);
    assert!(!page.contains("<script>"));
    parsed(&page);
}

#[test]
fn markdown_and_terminal_tell_the_same() {
    let findings = fixture::serving();
    insta::assert_snapshot!("serving_markdown", tare_report::markdown(&findings));
    insta::assert_snapshot!("serving_terminal", tare_report::terminal(&findings, 100, false));
    insta::assert_snapshot!("published_terminal", tare_report::terminal(&fixture::published(), 100, false));
}

/// An entry of the audit that holds with a reservation.
fn reservation(case: &str, arm: &str, consequence: &str) -> tare_model::audit::AuditEntry {
    tare_model::audit::AuditEntry {
        check: tare_model::audit::AuditCheck::Enough,
        outcome: tare_model::audit::AuditOutcome::Reservation,
        case: case.into(),
        arms: vec![arm.into()],
        detail: format!("fewer than 100 requests on {arm} in {case}"),
        consequence: consequence.into(),
    }
}

#[test]
fn entries_that_differ_by_case_and_arm_alone_are_one_line_and_what_is_broken_stays_open() {
    let mut findings = fixture::serving();
    let broken = findings.audit.iter().filter(|own| own.outcome == tare_model::audit::AuditOutcome::Broken).count();
    for case in ["banking", "support"] {
        findings.audit.extend(["native", "gvisor"].map(|arm| reservation(case, arm, "Few requests.")));
    }
    let page_one = page(&findings);
    let document = parsed(&page_one);
    let lists = |document: &Document<'_>| -> Vec<(bool, Vec<String>)> {
        let lists = document.descendants().filter(|node| node.attribute("class") == Some("audit"));
        lists
            .map(|list| {
                let folded = list.parent().is_some_and(|parent| parent.has_tag_name("details"));
                (folded, list.children().filter(Node::is_element).map(text).collect())
            })
            .collect()
    };
    let open = lists(&document);
    let all: Vec<&String> = open.iter().flat_map(|(_, entries)| entries).collect();
    assert!(open.iter().all(|(folded, _)| !folded), "{open:?}");
    let grouped: Vec<_> = all.iter().filter(|text| text.contains("Few requests.")).collect();
    assert_eq!(grouped.len(), 1, "{all:?}");
    assert!(grouped[0].contains("(banking, support; native, sandbox (gVisor))"), "{grouped:?}");
    assert!(grouped[0].contains("3 more of the kind"), "{grouped:?}");
    assert!(grouped[0].contains("support; sandbox (gVisor): fewer than 100 requests on gvisor in support."));
    // Many kinds: folded, and what is broken is not.
    for n in 0..8 {
        findings.audit.push(reservation("banking", "native", &format!("For reason {n}.")));
    }
    let page = page(&findings);
    let document = parsed(&page);
    let lists = lists(&document);
    assert_eq!(lists.iter().map(|(folded, _)| *folded).collect::<Vec<_>>(), [true]);
    assert_eq!(page.matches("class=\"broken\"").count(), broken, "what is broken stands with the answer, once");
    assert!(page.contains("13 hold with a reservation, 1 is unknown</summary>"));
    let markdown = tare_report::markdown(&findings);
    assert!(markdown.contains("\n  - support; sandbox"), "the others are below the first");
}
