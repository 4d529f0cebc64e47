//! A gate in each of its forms, with names that were chosen to break them.

use roxmltree::{Document, Node};
use tare_model::findings::{Estimate, Gate, GateAnswer, GateOutcome, GatedComparison, GatedRun, Verdict};
use tare_model::metric::{Better, Unit};
use tare_report::{annotations, gate_page, junit, page_markdown, page_text};

/// Names that end attributes, elements, lines and commands, or are no XML at all.
const HOSTILE: [&str; 5] = [
    "\"/></testcase><testcase name=\"<b>&amp;",
    "]]> --> <!-- <![CDATA[ & ' \"",
    "line\n::error::own\r\n%0A::stop-commands::x",
    "\u{0}\u{1}\u{8}\u{1b}[2J\u{fffe}\u{ffff}\u{202e}",
    "a|b](http://x) `c` <script>",
];

fn comparison(id: &str, outcome: GateOutcome) -> GatedComparison {
    let ratio = Estimate { value: 1.05, low: Some(1.04), high: Some(1.06), level: 0.95, n: 12, method: String::new() };
    GatedComparison {
        id: format!("write/{id}/wall_time_s"),
        case: Some("write".to_owned()),
        arm: id.to_owned(),
        metric: "wall_time_s".to_owned(),
        label: format!("write and sync, {id}, wall time"),
        unit: Some(Unit::Seconds),
        better: Some(Better::Lower),
        ratio: (outcome != GateOutcome::NoVerdict).then_some(ratio),
        p_worse: Some(0.01),
        verdict: Verdict::Worse,
        outcome,
        reason: format!("reason of {id}"),
    }
}

fn gate(names: &[&str], fails_on: &[GateOutcome]) -> Gate {
    let outcomes = [GateOutcome::Within, GateOutcome::Worse, GateOutcome::Unsure, GateOutcome::NoVerdict];
    let run = |name: &&str| GatedRun {
        folder: format!("runs/{name}"),
        study: (*name).to_owned(),
        run: format!("{name}-1"),
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        wall_s: 61.5,
        baseline: (*name).to_owned(),
        warnings: vec![format!("A/A alarm: {name}")],
        comparisons: outcomes
            .iter()
            .enumerate()
            .map(|(at, outcome)| comparison(&format!("{name} {at}"), *outcome))
            .collect(),
    };
    Gate {
        limit: 0.02,
        fails_on: fails_on.to_vec(),
        answer: GateAnswer::Regression,
        sentence: "Regression: a regression of more than 2 % is proven.".to_owned(),
        runs: names.iter().map(run).collect(),
    }
}

/// What the readers of JUnit XML know: an element, its attributes (those that it must have with a `!`), and the elements within it.
type Known = (&'static str, &'static [&'static str], &'static [&'static str]);
const SCHEMA: [Known; 10] = [
    ("testsuites", &["name", "tests!", "failures!", "errors!", "skipped", "time"], &["testsuite"]),
    (
        "testsuite",
        &["name!", "timestamp", "tests!", "failures!", "errors!", "skipped", "time!"],
        &["properties", "testcase"],
    ),
    ("properties", &[], &["property"]),
    ("property", &["name!", "value!"], &[]),
    ("testcase", &["classname!", "name!", "time!"], &["skipped", "failure", "error", "system-out"]),
    ("skipped", &["message"], &[]),
    ("failure", &["message", "type!"], &[]),
    ("error", &["message", "type!"], &[]),
    ("system-out", &[], &[]),
    ("system-err", &[], &[]),
];

fn check(node: Node<'_, '_>) {
    let name = node.tag_name().name();
    let (_, attributes, within) = SCHEMA.iter().find(|known| known.0 == name).unwrap_or_else(|| panic!("{name}"));
    for known in attributes.iter().filter_map(|known| known.strip_suffix('!')) {
        assert!(node.attribute(known).is_some(), "{name} has no {known}");
    }
    for attribute in node.attributes() {
        assert!(
            attributes.iter().any(|known| known.trim_end_matches('!') == attribute.name()),
            "{name}: {attribute:?}"
        );
    }
    for number in ["tests", "failures", "errors", "skipped", "time"].iter().filter_map(|own| node.attribute(*own)) {
        assert!(number.parse::<f64>().is_ok_and(|number| number >= 0.0), "{name}: {number}");
    }
    for child in node.children().filter(Node::is_element) {
        assert!(within.contains(&child.tag_name().name()), "{name} in it: {child:?}");
        check(child);
    }
}

fn count(node: Node<'_, '_>, name: &str) -> usize {
    node.descendants().filter(|own| own.has_tag_name(name)).count()
}

#[test]
fn junit_is_what_its_readers_know_and_its_counts_are_right_whatever_the_names() {
    let both = [GateOutcome::Worse, GateOutcome::Unsure];
    for (fails_on, errors, skipped) in [(&both[..1], 0, 2), (&both, 1, 1)] {
        let names = [&HOSTILE[..], &["two-settings"]].concat();
        let xml = junit(&gate(&names, fails_on)).unwrap();
        let document = Document::parse(&xml).unwrap_or_else(|error| panic!("{error}\n{xml}"));
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "testsuites");
        check(root);
        assert_eq!(count(root, "testsuite"), names.len());
        for suite in root.descendants().filter(|node| node.has_tag_name("testsuite")) {
            let number = |name: &str| suite.attribute(name).unwrap().parse::<usize>().unwrap();
            assert_eq!((count(suite, "testcase"), number("tests")), (4, 4));
            assert_eq!((count(suite, "failure"), number("failures")), (1, 1));
            assert_eq!((count(suite, "error"), number("errors")), (errors, errors));
            assert_eq!((count(suite, "skipped"), number("skipped")), (skipped, skipped));
        }
    }
}

#[test]
fn a_failure_has_the_ratio_and_its_interval_and_what_was_skipped_its_reason() {
    let xml = junit(&gate(&["two.settings"], &[GateOutcome::Worse])).unwrap();
    let document = Document::parse(&xml).unwrap();
    let find = |name: &str| document.descendants().find(|node| node.has_tag_name(name)).unwrap();
    let failure = find("failure");
    assert_eq!(
        failure.attribute("message"),
        Some("+5.0 % [+4.0, +6.0] against two.settings: reason of two.settings 1")
    );
    let text = failure.text().unwrap();
    for part in ["ratio: 1.05\n", "95.0 % interval: 1.04 to 1.06\n", "corrected probability by chance: 0.0100\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(find("skipped").attribute("message").unwrap().ends_with("reason of two.settings 2"));
    let case = find("testcase");
    assert_eq!(case.attribute("classname"), Some("two_settings.write"), "a dot of a name would be another level");
    assert_eq!(case.attribute("name"), Some("two.settings 0: wall_time_s"));
}

#[test]
fn every_annotation_is_one_line_of_one_command() {
    let lines = annotations(&gate(&HOSTILE[..2], &[GateOutcome::Worse, GateOutcome::NoVerdict]));
    let of = |kind: &str| lines.iter().filter(|line| line.starts_with(kind)).count();
    assert_eq!((of("::error title="), of("::warning title="), lines.len()), (4, 2, 6));
    for line in annotations(&gate(&HOSTILE, &[GateOutcome::Worse])) {
        assert!(!line.contains(['\n', '\r', '\u{1b}']), "{line:?}");
        let (head, _) = line.strip_prefix("::").and_then(|rest| rest.split_once("::")).unwrap();
        let (_, properties) = head.split_once(' ').unwrap();
        assert!(properties.starts_with("title=") && !properties.contains([',', ':']), "{properties}");
    }
}

#[test]
fn the_page_has_the_answer_first_and_then_the_gravest() {
    let gate = gate(&["two-settings"], &[GateOutcome::Worse]);
    let text = page_text(&gate_page(&gate), 200);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], gate.sentence);
    let rows: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("  ")?.split("  ").next()).collect();
    assert_eq!(rows, ["worse", "no verdict", "unsure", "ok"]);
    assert!(text.contains("! A/A alarm: two-settings") && text.contains("+5.0 % [+4.0, +6.0] against two-settings"));
    let hostile = page_markdown(&gate_page(&super::gate::gate(&HOSTILE, &[])));
    let active = hostile.replace("\\]", "");
    assert!(!active.contains("<script>") && !active.contains("](http"), "{hostile}");
}
