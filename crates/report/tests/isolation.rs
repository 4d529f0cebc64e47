//! What neighbours do: the matrix of a victim in all forms of the report.

use crate::fixture;
use crate::page::{header, html, parsed};

#[test]
fn the_page_opens_with_the_matrix_and_every_shade_has_its_figure() {
    let page = html(&fixture::isolation());
    let document = parsed(&page);
    let said = header(&document);
    for part in [
        "\u{201c}memory-stream\u{201d} slows it most",
        "What neighbours do to small requests",
        "neighbour at 31 %, starved",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let shaded: Vec<_> = document
        .descendants()
        .filter(|node| node.attribute("class").is_some_and(|class| class.contains("harm-")))
        .collect();
    assert_eq!(shaded.len(), 6, "from 1.05 on, where the interval lies above 1");
    for cell in shaded {
        let text: String = cell.descendants().filter_map(|node| node.text()).collect();
        assert!(text.contains('.') && text.contains('['), "{text}");
    }
    assert!(!said.contains("No comparison could be made"), "{said}");
}

#[test]
fn markdown_and_terminal_have_the_same_matrix() {
    let findings = fixture::isolation();
    let markdown = tare_report::markdown(&findings);
    let from = markdown.find("## What neighbours do").unwrap();
    let to = markdown[from + 3..].find("\n## ").unwrap() + from + 3;
    insta::assert_snapshot!("isolation_markdown", &markdown[from..to]);
    let terminal = tare_report::terminal(&findings, 100, false);
    let to = terminal.find("\n\n").unwrap();
    insta::assert_snapshot!("isolation_terminal", &terminal[..to]);
}
