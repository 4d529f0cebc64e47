//! What a reader sees before opening anything.

use crate::fixture;
use crate::page::{html, parsed};

use std::collections::BTreeMap;

use roxmltree::{Document, Node};
use tare_model::findings::Findings;

/// Elements that hold a text of their own.
const BLOCKS: [&str; 6] = ["p", "li", "figcaption", "caption", "summary", "h1"];

fn shipped() -> Vec<(&'static str, Findings)> {
    vec![
        ("findings", fixture::findings()),
        ("platforms", fixture::platforms()),
        ("store", fixture::store()),
        ("ten arms", fixture::many_store()),
        ("density", fixture::density()),
        ("tiles", fixture::tiles()),
        ("serving", fixture::serving()),
        ("one arm", fixture::one_block_of_one_arm()),
        ("instances", fixture::instances()),
        ("published", fixture::published()),
    ]
}

/// Whether a node lies in a fold that is closed, and not in its summary.
fn is_folded(node: Node<'_, '_>) -> bool {
    let mut at = node;
    while let Some(parent) = at.parent() {
        if parent.has_tag_name("details") && parent.attribute("open").is_none() && !at.has_tag_name("summary") {
            return true;
        }
        at = parent;
    }
    false
}

/// The text of a node without that of the blocks below it, of links, which are names, and of drawings.
fn own_text(node: Node<'_, '_>) -> String {
    let mut out = String::new();
    for child in node.children() {
        if child.is_text() {
            out.push_str(child.text().unwrap_or_default());
        } else if child.is_element() && !["svg", "a"].contains(&child.tag_name().name()) && !is_block(child) {
            out.push_str(&own_text(child));
        }
    }
    out
}

fn is_block(node: Node<'_, '_>) -> bool {
    BLOCKS.contains(&node.tag_name().name()) || ["ul", "ol", "table", "details"].contains(&node.tag_name().name())
}

/// Sentences of five words and more outside of folds.
fn sentences(document: &Document<'_>) -> Vec<String> {
    let blocks = document.descendants().filter(|node| BLOCKS.contains(&node.tag_name().name()));
    // The advice for each arm stands for itself.
    let apart = |own: Node<'_, '_>| own.has_tag_name("nav") || own.attribute("class") == Some("advice");
    let seen = blocks.filter(|node| !is_folded(*node) && !node.ancestors().any(apart));
    let texts = seen.map(own_text).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let split =
        texts.flat_map(|text| text.split(". ").map(|own| own.trim_end_matches('.').to_owned()).collect::<Vec<_>>());
    split.filter(|sentence| sentence.split(' ').count() >= 5).collect()
}

#[test]
fn no_sentence_is_seen_twice() {
    for (name, findings) in shipped() {
        let page = html(&findings);
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let found = sentences(&parsed(&page));
        assert!(found.len() > 10, "{name}: {found:?}");
        found.into_iter().for_each(|sentence| *seen.entry(sentence).or_default() += 1);
        let twice: Vec<_> = seen.into_iter().filter(|(_, times)| *times > 1).collect();
        assert!(twice.is_empty(), "{name}: {twice:#?}");
    }
}

#[test]
fn labels_of_what_is_seen_are_whole_on_a_phone_and_on_a_desk() {
    for (name, findings) in shipped() {
        let page = html(&findings);
        let document = parsed(&page);
        let drawn = document.descendants().filter(|node| node.has_tag_name("svg") && !is_folded(*node));
        for text in drawn.flat_map(|svg| svg.descendants()).filter_map(|node| node.text()) {
            assert!(!text.contains('\u{2026}'), "{name}: {text}");
        }
    }
}

#[test]
fn the_method_is_ten_lines_at_most_and_the_answer_a_line_a_finding() {
    for (name, findings) in shipped() {
        let page = html(&findings);
        let document = parsed(&page);
        let section = |name: &str| {
            let mut all = document.descendants().filter(|node| node.has_tag_name("section"));
            all.find(|node| node.attribute("aria-labelledby") == Some(name))
        };
        let lines = section("method").unwrap().descendants().filter(|node| node.has_tag_name("li")).count();
        assert!(lines <= 10, "{name}: {lines}");
        let answers = document.descendants().filter(|node| node.attribute("class") == Some("answers"));
        let said: usize = answers.map(|list| list.children().filter(Node::is_element).count()).sum();
        assert_eq!(said, findings.answer.len(), "{name}");
    }
}

#[test]
fn a_flag_is_one_line_with_its_trials_and_the_case_that_has_most() {
    let mut findings = fixture::findings();
    let flag = |detail: &str| tare_model::trial::Flag { kind: "steal".to_owned(), detail: detail.to_owned() };
    findings.flagged.truncate(1);
    findings.flagged[0].flags = vec![flag("3.1 % was taken")];
    let first = findings.flagged[0].clone();
    for case in ["send", "send"] {
        findings.flagged.push(tare_model::findings::FlaggedTrial { case: case.to_owned(), ..first.clone() });
    }
    let page = html(&findings);
    let said =
        "<li>steal: 3 of 91 trials, most in \u{201c}bulk throughput, send\u{201d} (2), such as: 3.1 % was taken.</li>";
    assert!(page.contains(said), "{}", &page[page.find("id=\"audit\"").unwrap()..][..900]);
}
