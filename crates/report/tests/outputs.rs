//! The report as a reader gets it: whole, safe, and sensible where something is missing.

use crate::fixture;
use crate::page::{html, parsed};

use std::collections::BTreeSet;

use roxmltree::{Document, Node};
use tare_model::findings::{
    ArmIncomplete, Compared, Comparison, Estimate, Findings, RunComparison, RunComparisonRow, RunSide, Standing,
    Verdict,
};
use tare_model::metric::{Unit, common};
use tare_model::trial::Incomplete;

/// Texts that users could write, by accident or not.
const HOSTILE: [&str; 5] = [
    "<script>alert(1)</script>",
    "\" onmouseover=\"alert(1)",
    "' ]]> --> </style></svg><img src=x onerror=alert(1)>",
    "a,b\r\n\"c\"|d",
    "{{ 7 * 7 }} {% raw %} &amp; \u{1b}[2J",
];

fn elements<'a>(document: &'a Document<'a>, name: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.tag_name().name() == name).collect()
}

#[test]
fn the_page_is_well_formed_and_its_ids_are_unique() {
    let page = html(&fixture::findings());
    let document = parsed(&page);
    let mut seen = BTreeSet::new();
    for id in document.descendants().filter_map(|node| node.attribute("id")) {
        assert!(seen.insert(id.to_owned()), "id {id} twice");
    }
    for link in elements(&document, "a").iter().filter_map(|a| a.attribute("href")).filter(|h| h.starts_with('#')) {
        assert!(seen.contains(&link[1..]), "link to {link} leads nowhere");
    }
    for figure in elements(&document, "svg").iter().filter(|svg| svg.attribute("aria-hidden").is_none()) {
        assert_eq!(figure.attribute("role"), Some("img"));
        let labels = figure.attribute("aria-labelledby").expect("a name");
        assert!(labels.split(' ').all(|id| seen.contains(id)), "{labels}");
    }
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let page = html(&fixture::findings());
    let document = parsed(&page);
    for node in document.descendants().filter(Node::is_element) {
        assert!(!["script", "link", "img", "iframe", "object"].contains(&node.tag_name().name()), "{node:?}");
        for attribute in node.attributes() {
            let value = attribute.value();
            match attribute.name() {
                "href" => assert!(value.starts_with('#') || value.starts_with("data:text/csv"), "{value}"),
                "fill" | "clip-path" => assert!(!value.contains("url(") || value.starts_with("url(#"), "{value}"),
                name => assert!(!name.starts_with("on") && name != "src", "{name}={value}"),
            }
        }
    }
    let style = elements(&document, "style")[0].text().expect("a style sheet");
    assert!(!style.contains("url(") && !style.contains("@import"));
}

#[test]
fn headings_are_in_order_and_tables_have_heads() {
    let page = html(&fixture::findings());
    let document = parsed(&page);
    let mut last = 0;
    let main = elements(&document, "main")[0];
    for level in main.descendants().filter_map(|node| node.tag_name().name().strip_prefix('h')?.parse::<u32>().ok()) {
        assert!(last == 0 || level <= last + 1, "h{level} after h{last}");
        last = level;
    }
    for table in elements(&document, "table") {
        let heads: Vec<_> = table.descendants().filter(|node| node.tag_name().name() == "th").collect();
        assert!(heads.iter().any(|head| head.attribute("scope") == Some("col")));
        assert!(heads.iter().all(|head| head.attribute("scope").is_some()));
        assert!(table.children().any(|node| node.tag_name().name() == "caption"));
    }
}

#[test]
fn the_answer_comes_first_and_has_its_verdict() {
    let findings = fixture::findings();
    let page = html(&findings);
    let document = parsed(&page);
    let header = elements(&document, "header")[0];
    let text: String = header.descendants().filter(Node::is_text).filter_map(|n| n.text()).collect();
    assert!(text.contains(&findings.plan.study.question));
    for answer in &findings.answer {
        assert!(text.contains(&answer.sentence), "{}", answer.sentence);
        assert!(text.contains(tare_report::words::verdict(answer.verdict)));
    }
    assert!(page.find("<header>") < page.find("<table>"));
}

#[test]
fn what_users_write_stays_text_everywhere() {
    for text in HOSTILE {
        let findings = fixture::hostile(text);
        let page = html(&findings);
        for markup in ["<script", "<img", "onmouseover=\"", "</style></svg>"] {
            assert!(!page.contains(markup), "{markup} from {text:?}");
        }
        assert!(!page.contains(">49 "), "a template in a text was evaluated");
        // Control characters are no XML; they are no markup either, so they may be left out of this check.
        let printable: String = page.chars().filter(|c| !c.is_control() || c.is_whitespace()).collect();
        let document = parsed(&printable);
        let heading = elements(&document, "h1")[0].text().unwrap_or_default().to_owned();
        let expected: String = text.chars().filter(|c| *c != '\u{1b}').collect();
        assert_eq!(heading.replace("\r\n", "\n").replace('\r', ""), expected.replace("\r\n", "\n"));
        let markdown = tare_report::markdown(&findings);
        assert!(!markdown.contains("<script") && !markdown.contains("<img"));
        let terminal = tare_report::terminal(&findings, 80, false);
        assert!(!terminal.contains('\u{1b}'));
    }
}

#[test]
fn csv_files_read_back_as_they_were_written() {
    let findings = fixture::hostile("a,b\r\n\"c\"");
    for (name, content) in tare_report::csv(&findings) {
        let records = records(&content);
        assert!(records.len() > 1, "{name} is empty");
        assert!(records.iter().all(|record| record.len() == records[0].len()), "{name}: uneven");
    }
}

/// The records of one of the files, its head first.
fn file(findings: &Findings, name: &str) -> Vec<Vec<String>> {
    let files = tare_report::csv(findings);
    records(&files.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("no {name}")).1)
}

#[test]
fn csv_files_have_the_figures_of_the_findings_in_full() {
    let findings = fixture::findings();
    let names: Vec<String> = tare_report::csv(&findings).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["trials.csv", "comparisons.csv", "percentiles.csv", "samples.csv"]);
    let number = |field: &String| field.parse::<f64>().unwrap();
    let case = &findings.cases[0];
    let metric = &case.metrics[0];

    let trials = file(&findings, "trials.csv");
    assert_eq!(trials[0], ["case", "arm", "metric", "unit", "block", "value", "label"]);
    assert_eq!(trials[1][..5], ["idle", "native", "response_time_p50_s", "s", "1"]);
    assert_eq!(number(&trials[1][5]), metric.arms[0].blocks[0].1);
    let metrics = findings.cases.iter().flat_map(|case| &case.metrics).chain(&findings.across);
    assert_eq!(trials.len() - 1, metrics.clone().flat_map(|own| &own.arms).map(|arm| arm.blocks.len()).sum::<usize>());

    let comparisons = file(&findings, "comparisons.csv");
    assert_eq!(comparisons.len() - 1, metrics.map(|own| own.arms.len()).sum::<usize>(), "each arm once a metric");
    let of = |arm: &str| comparisons.iter().find(|row| row[0] == "idle" && row[1] == arm && row[2] == metric.spec.id);
    let baseline = of("native").unwrap();
    assert_eq!(
        (number(&baseline[5]), &baseline[10..23]),
        (metric.arms[0].estimate.value, vec![String::new(); 13].as_slice())
    );
    let against = &metric.comparisons[0];
    let compared = of(&against.arm).unwrap();
    assert_eq!((compared[10].as_str(), number(&compared[11])), ("native", against.ratio.value));
    assert_eq!(compared[22], serde_json::to_value(against.verdict).unwrap().as_str().unwrap());
    assert_eq!(compared[25], against.sentence);

    let percentiles = file(&findings, "percentiles.csv");
    let (q, estimate) = &case.distributions[0].quantiles[0];
    assert_eq!((number(&percentiles[1][4]), number(&percentiles[1][5])), (*q, estimate.value));

    let samples = file(&findings, "samples.csv");
    let timeline = &case.timelines[0];
    let (series, points) = timeline.series.first_key_value().unwrap();
    assert_eq!(samples[0], ["case", "arm", "block", "series", "at_s", "value", "label"]);
    assert_eq!(samples[1][..4], ["idle".to_owned(), timeline.arm.clone(), timeline.block.to_string(), series.clone()]);
    assert_eq!((number(&samples[1][4]), number(&samples[1][5])), points[0]);
    let all = findings.cases.iter().flat_map(|case| &case.timelines).flat_map(|own| own.series.values());
    assert_eq!(samples.len() - 1, all.map(Vec::len).sum::<usize>());
    assert!(!html(&findings).contains("Save samples.csv") && html(&findings).contains("Save trials.csv"));
}

/// A small RFC 4180 reader.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut out, mut record, mut field, mut quoted) = (vec![], vec![], String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => field.extend(chars.next()),
            ('"', _) => quoted = !quoted,
            (',', false) => record.push(std::mem::take(&mut field)),
            ('\r', false) => {
                assert_eq!(chars.next(), Some('\n'), "a record ends in CRLF");
                record.push(std::mem::take(&mut field));
                out.push(std::mem::take(&mut record));
            }
            (c, _) => field.push(c),
        }
    }
    out
}

#[test]
fn a_run_without_a_completed_trial_still_reports() {
    let findings = fixture::nothing_completed();
    let page = html(&findings);
    parsed(&page);
    assert!(page.contains("No comparison could be made") && page.contains("the run was cut short"));
    assert!(!page.contains("NaN") && !page.contains("id=\"overview\""));
    let terminal = tare_report::terminal(&findings, 80, false);
    assert!(terminal.contains("no completed trial"), "{terminal}");
    tare_report::markdown(&findings);
}

#[test]
fn numbers_that_are_none_never_reach_a_reader_as_nan() {
    let mut findings = fixture::findings();
    for metric in findings.cases.iter_mut().flat_map(|case| &mut case.metrics) {
        for arm in &mut metric.arms {
            arm.estimate.value = f64::NAN;
            arm.blocks.iter_mut().for_each(|block| block.1 = f64::INFINITY);
        }
        for comparison in &mut metric.comparisons {
            comparison.ratio.value = f64::NAN;
            comparison.ratio.low = Some(f64::NEG_INFINITY);
            comparison.blocks.iter_mut().for_each(|block| block.1 = f64::NAN);
            comparison.floor = Some(f64::NAN);
        }
    }
    for case in &mut findings.cases {
        case.cpu.iter_mut().for_each(|cpu| cpu.work = 0.0);
        case.distributions.iter_mut().for_each(|d| d.ccdf.truncate(1));
        case.timelines.iter_mut().for_each(|t| t.steady_s = (f64::NAN, f64::NAN));
    }
    let page = html(&findings);
    parsed(&page);
    for output in [page, tare_report::markdown(&findings), tare_report::terminal(&findings, 100, false)] {
        assert!(!output.contains("NaN") && !output.contains("inf "), "not a number got through");
    }
}

#[test]
fn every_missing_piece_is_named() {
    let page = html(&fixture::findings());
    assert!(page.contains("No trial of native, again completed in this case."));
    assert!(page.contains("container: 1 completed trial, too few for an interval."));
    assert!(page.contains("No CPU account"));
    assert!(page.contains("not granted, not equal"));
}

#[test]
fn what_is_missing_or_late_is_shown_also_when_it_is_nothing() {
    let findings = fixture::findings();
    let markdown = tare_report::markdown(&findings);
    assert!(markdown.contains("| container | 2,030,000 | 3 (3 connection reset) | 0 | 0 | 48.300 kop/s"), "{markdown}");
    assert!(
        markdown.contains("| native | 2,030,000 | 0 | 0 | 0 | 2.00 us | 31.0 us | 12 | 50.0 kop/s |"),
        "an open loop"
    );
    let terminal = tare_report::terminal(&findings, 200, false);
    assert!(terminal.contains("operations of native; native, again: 0 failed, 0 lost, 0 unfinished"), "{terminal}");
    assert!(
        terminal
            .contains("operations of container: 3 failed over all phases (3 connection reset), 0 lost, 0 unfinished"),
        "{terminal}"
    );
}

#[test]
fn objectives_checks_platforms_and_facts_reach_the_reader() {
    let findings = fixture::findings();
    for output in [html(&findings), tare_report::markdown(&findings)] {
        assert!(output.contains("objective met") && output.contains("objective not met"));
        assert!(output.contains("Steady state was not checked in 2 of 91"));
        assert!(output.contains("Not measured here: service demand"));
        assert!(output.contains("driver CPU, user") && output.contains("MTU of the driver"));
        let disclosed = "the guest sees the host";
        assert_eq!(output.matches(disclosed).count(), 2, "near parity, and in the disclosure");
    }
}

#[test]
fn one_line_an_arm_counts_its_findings() {
    let mut findings = fixture::findings();
    let verdicts = [Verdict::Worse, Verdict::Worse, Verdict::Lead, Verdict::TooNoisy];
    findings.answer.truncate(4);
    findings.answer.iter_mut().zip(verdicts).for_each(|(answer, verdict)| answer.verdict = verdict);
    let text = tare_report::terminal(&findings, 400, false);
    assert!(text.contains("\ncontainer against native: 2 worse, 1 lead, 1 too noisy to tell.\n"), "{text}");
    assert_eq!(text.matches("\n- worse (").count(), 2, "the sentences that do not say so themselves: {text}");
}

#[test]
fn the_name_of_an_emulated_arm_says_so_in_every_output_and_no_ratio_of_it_is_shown() {
    let findings = fixture::platforms();
    let page = html(&findings);
    parsed(&page);
    let marked = "full machine (emulated)";
    let csv: String = tare_report::csv(&findings).into_iter().map(|(_, text)| text).collect();
    let outputs = [page, tare_report::markdown(&findings), tare_report::terminal(&findings, 200, false), csv];
    for output in &outputs {
        assert!(output.contains(marked) && output.contains(fixture::WHY));
        assert_eq!(output.matches("full machine").count(), output.matches(marked).count(), "named without its mark");
    }
    let comparisons = file(&findings, "comparisons.csv");
    let of_vm: Vec<_> = comparisons.into_iter().filter(|record| record[1] == "vm").collect();
    let nothing = |record: &Vec<String>| !record[5].is_empty() && record[11..14].iter().all(String::is_empty);
    assert!(!of_vm.is_empty() && of_vm.iter().all(nothing), "{of_vm:?}");
    for line in outputs[2].lines().filter(|line| line.contains(marked) && line.contains("not comparable")) {
        assert!(!line.contains('%') && !line.contains("x  "), "{line}");
    }
}

#[test]
fn what_was_not_measured_is_reported_with_its_reason_and_remedy() {
    let findings = fixture::platforms();
    for output in [html(&findings), tare_report::markdown(&findings), tare_report::terminal(&findings, 200, false)] {
        assert!(output.contains("no libvirtd answers.") && output.contains("install and start libvirtd."));
    }
}

#[test]
fn json_is_the_findings() {
    let findings = fixture::findings();
    let back: Findings = serde_json::from_str(&tare_report::json(&findings).unwrap()).unwrap();
    assert_eq!(back.plan, findings.plan);
    assert_eq!(back.cases.len(), findings.cases.len());
}

#[test]
fn the_terminal_keeps_to_its_width() {
    for width in [60, 80, 100, 140] {
        let text = tare_report::terminal(&fixture::findings(), width, false);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    let coloured = tare_report::terminal(&fixture::findings(), 100, true);
    let mut bare = String::new();
    let mut inside = false;
    for c in coloured.chars() {
        match c {
            '\u{1b}' => inside = true,
            'm' if inside => inside = false,
            c if !inside => bare.push(c),
            _ => {}
        }
    }
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&bare), trimmed(&tare_report::terminal(&fixture::findings(), 100, false)));
}

#[test]
fn terminal_snapshots() {
    insta::assert_snapshot!("terminal_100", tare_report::terminal(&fixture::findings(), 100, false));
    insta::assert_snapshot!("terminal_60", tare_report::terminal(&fixture::findings(), 60, false));
}

#[test]
fn markdown_snapshot() {
    insta::assert_snapshot!("markdown", tare_report::markdown(&fixture::findings()));
}

/// One figure of three runs against three: its place, the ratio, and the verdict.
fn compared(case: &str, compared: Compared, ratio: f64, verdict: Verdict) -> RunComparisonRow {
    let estimate = |value: f64| Estimate { value, n: 3, level: 0.95, ..Estimate::default() };
    let (low, high) = (Some(ratio - 0.01), Some(ratio + 0.01));
    let standing = match compared {
        Compared::Effect => Standing::Primary { of: 2, p_equal: Some(0.01), p_margin: None },
        Compared::Value => Standing::Lead,
    };
    RunComparisonRow {
        id: "idle/container/response_time_p50_s".to_owned(),
        case: Some("idle".to_owned()),
        arm: "container".to_owned(),
        metric: "response_time_p50_s".to_owned(),
        primary: true,
        compared,
        case_label: case.to_owned(),
        arm_label: "container".to_owned(),
        label: "response time".to_owned(),
        unit: Unit::Seconds,
        before: estimate(15.4e-6),
        after: estimate(15.4e-6 * ratio),
        comparison: Comparison {
            ratio: Estimate { low, high, ..estimate(ratio) },
            sentence: format!("container: response time changed by a factor of {ratio}"),
            standing,
            verdict,
            ..Comparison::default()
        },
    }
}

fn comparison(case: &str) -> RunComparison {
    let side = |label: &str| RunSide { label: label.to_owned(), runs: ["1", "2", "3"].map(str::to_owned).into() };
    RunComparison {
        before: side("old"),
        after: side("new"),
        withheld: None,
        warnings: vec!["In every run: fsync is off.".into()],
        differences: vec!["Seed: 1 in the first runs, 2 in the second runs.".into()],
        rows: vec![
            compared(case, Compared::Value, 1.0, Verdict::NoDifferenceSeen),
            compared(case, Compared::Effect, 1.045, Verdict::Worse),
            compared(case, Compared::Value, 1.3, Verdict::Lead),
            compared(case, Compared::Effect, 0.5, Verdict::Better),
        ],
    }
}

#[test]
fn a_comparison_prints_in_three_ways() {
    let found = comparison("idle");
    insta::assert_snapshot!("comparison_text", tare_report::comparison_text(&found, false, 72, false));
    insta::assert_snapshot!("comparison_text_all", tare_report::comparison_text(&found, true, 72, false));
    insta::assert_snapshot!("comparison_markdown", tare_report::comparison_markdown(&found));
    let page = tare_report::comparison_html(&found).unwrap();
    let document = parsed(&page);
    // Three changes below a head, and all four figures below another, folded.
    assert_eq!((elements(&document, "tr").len(), elements(&document, "details").len()), (4 + 5, 2));
    let hostile = tare_report::comparison_html(&comparison(HOSTILE[0])).unwrap();
    assert!(!hostile.contains("<script"));
}

#[test]
fn an_answer_that_is_withheld_gives_its_reason_in_the_summary() {
    let mut found = comparison("idle");
    found.rows[1].comparison.verdict = Verdict::CannotSay;
    found.rows[1].comparison.withheld = Some("1 of 6 runs have no such figure".to_owned());
    let text = tare_report::comparison_text(&found, false, 100, false);
    let said = "Figures that answer, 2: 1 better, 1 cannot say.\nCannot say in 1: 1 of 6 runs have no such figure.\n";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_comparison_without_verdicts_says_why_once_and_shows_primary_metrics() {
    let mut found = comparison("idle");
    found.withheld = Some("one run is no sample".to_owned());
    for row in &mut found.rows {
        row.comparison.verdict = Verdict::CannotSay;
        (row.comparison.ratio.low, row.comparison.ratio.high) = (None, None);
    }
    for text in [
        tare_report::comparison_text(&found, false, 72, false),
        tare_report::comparison_text(&found, true, 72, false),
        tare_report::comparison_markdown(&found),
        tare_report::comparison_html(&found).unwrap(),
    ] {
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said.to_lowercase().matches("cannot say").count(), 1, "{text}");
        assert!(said.contains("one run is no sample") && said.contains("+30") && !said.contains("Changes"), "{text}");
    }
}

#[test]
fn a_machines_start_is_shown_with_its_parts_and_those_in_one_place() {
    let mut findings = fixture::platforms();
    let parts = common::START_PARTS;
    for metrics in findings.cases.iter_mut().map(|case| &mut case.metrics).chain([&mut findings.across]) {
        let whole = metrics.iter().find(|metric| metric.spec.id == common::START_TIME).expect("it has starts").clone();
        for (id, label) in parts.into_iter().zip(["firmware", "kernel", "agent"]) {
            let mut part = whole.clone();
            (part.spec.id, part.spec.label) = (id.to_owned(), format!("guest start, {label}"));
            part.arms.retain(|arm| arm.arm == "vm");
            part.comparisons.clear();
            metrics.push(part);
        }
    }
    let text = tare_report::markdown(&findings);
    let section =
        text.split("\n## ").find(|section| section.contains("to the first answer of its agent")).expect("a section");
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| of which ")).collect();
    assert_eq!(rows.len(), 3 * findings.cases.len(), "{section}");
    assert!(section.contains("the clock of the guest's kernel splits it"), "{section}");
    // Of all arms only the machine has a figure.
    assert!(rows.iter().all(|row| row.matches("n = ").count() == 1), "{rows:#?}");
    let glance = text.split("\n## ").find(|section| section.contains("Memory, idle")).expect("a first table");
    assert!(!glance.contains("guest start, kernel"), "{glance}");
    html(&findings);
    let bare = tare_report::markdown(&fixture::platforms());
    assert!(!bare.contains("of which host") && !bare.contains("the clock of the guest's kernel"), "{bare}");
}

#[test]
fn what_was_not_reached_says_so_in_its_cell_and_never_shows_the_completed_ones_alone() {
    let mut findings = fixture::findings();
    let gone = Incomplete { missing: 0.021, completed_only: Some(1.25e-3) };
    let metric = &mut findings.cases[0].metrics[0];
    let arm = metric.arms.remove(1).arm;
    let note = "not reached: up to 2.1 % of operations did not complete; completed only: 1.25 ms".to_owned();
    let (blocks, not_reached) = (vec![(0, gone)], vec![0]);
    metric.incomplete.push(ArmIncomplete { arm: arm.clone(), blocks, not_reached, note: note.clone() });
    let found = findings.cases[0].distributions.iter_mut().find(|own| own.arm == arm).unwrap();
    found.quantiles.retain(|(q, _)| *q < 0.99);
    (found.not_completed, found.incomplete) = (27_560, vec![(0.99, gone)]);
    let text = tare_report::markdown(&findings);
    assert!(text.contains(&note), "{text}");
    let row = text.lines().find(|line| line.starts_with("| p99 |")).unwrap();
    assert!(
        row.contains("not reached: 2.1 % of operations did not complete") && row.contains("completed only: 1.25 ms"),
        "{row}"
    );
    assert!(text.contains("27,560 did not complete"));
    let percentiles = file(&findings, "percentiles.csv");
    assert_eq!(percentiles[0][12..], ["not_completed", "completed_only_s"]);
    let row = percentiles.iter().find(|row| row[0] == "idle" && row[1] == arm && row[4] == "0.99").unwrap();
    assert_eq!((row[5].as_str(), row[10].as_str(), row[12].as_str()), ("", "not reached", "27560"));
    assert_eq!(row[13].parse::<f64>().unwrap(), 1.25e-3);
}
