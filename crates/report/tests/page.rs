//! A report's page as a reader finds things in it.

use roxmltree::{Document, Node, ParsingOptions};
use tare_model::findings::Findings;

pub fn html(findings: &Findings) -> String {
    tare_report::html(findings).expect("renders")
}

/// The pages are written so that they are XML too: a parser that forgives nothing can check them.
pub fn parsed(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).unwrap_or_else(|e| panic!("not well-formed: {e}"))
}

/// The texts below a node, save those of drawings.
pub fn text(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(|node| node.is_text() && node.ancestors().all(|a| !a.has_tag_name("svg")));
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join("|")
}

/// The rows of the first table whose caption begins so, as the texts of their cells.
pub fn rows(document: &Document<'_>, caption: &str) -> Vec<Vec<String>> {
    let captioned = |table: &Node<'_, '_>| {
        let mut below = table.descendants();
        below.find(|node| node.has_tag_name("caption")).is_some_and(|node| text(node).starts_with(caption))
    };
    let mut tables = document.descendants().filter(|node| node.has_tag_name("table"));
    let table = tables.find(captioned).unwrap_or_else(|| panic!("no table {caption}"));
    let rows = table.descendants().filter(|node| node.has_tag_name("tr"));
    rows.map(|row| row.children().filter(Node::is_element).map(text).collect()).collect()
}

/// The text of the page's head, where the answer stands.
pub fn header(document: &Document<'_>) -> String {
    text(document.descendants().find(|node| node.has_tag_name("header")).expect("a header"))
}
