//! The rules: each one file, one function from the tree and the table to findings, its tests below it.
//!
//! Nothing here repeats what cargo, clippy, rustfmt, cargo-deny and git see (`unwrap`, `panic!`, missing SAFETY comments, `todo!`,
//! long functions, blanks at ends of lines); [`lints`] makes sure instead that clippy goes on looking.

mod adr_index;
mod dependencies;
mod glossary;
mod leftovers;
mod libraries;
mod lints;
mod module_circles;
mod module_docs;
mod platform_names;
mod sizes;
mod unsafe_code;
mod workload_names;
mod workload_paths;

use std::fmt;

use crate::house::House;
use crate::tree::Tree;

/// One rule of the house.
pub struct Rule {
    /// Its name in findings.
    pub name: &'static str,
    /// What it asks, in a line.
    pub what: &'static str,
    check: fn(&Tree, &House, &mut Findings),
}

const fn rule(name: &'static str, what: &'static str, check: fn(&Tree, &House, &mut Findings)) -> Rule {
    Rule { name, what, check }
}

/// All rules, from structure to spelling.
pub const ALL: &[Rule] = &[
    rule("dependencies", "a crate uses only the crates that the table allows it", dependencies::check),
    rule("libraries", "the tests of all crates use the same libraries", libraries::check),
    rule("platform-names", "no platform is named outside its own folder", platform_names::check),
    rule("workload-paths", "no code reaches into a workload's folder from outside of it", workload_paths::check),
    rule("module-circles", "the modules of a crate use each other in one direction", module_circles::check),
    rule("workload-names", "analysis and report name no workload", workload_names::check),
    rule("sizes", "files stay short", sizes::check),
    rule("unsafe-code", "unsafe stands in files of its own", unsafe_code::check),
    rule("lints", "the lints we rely on are on for every member, and off only in tests or for a reason", lints::check),
    rule("module-docs", "every module begins by saying what it is about", module_docs::check),
    rule("adr-index", "every decision is in the index, numbered once, with a status", adr_index::check),
    rule("glossary", "words that the glossary replaces are not used", glossary::check),
    rule("leftovers", "no unfinished work and no developer's own paths", leftovers::check),
];

/// What is wrong, where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// File, from the workspace's root.
    pub path: String,
    /// Line, from 1; 0 for the whole file.
    pub line: usize,
    /// What is wrong and what would be right.
    pub text: String,
    /// The rule's name.
    pub rule: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = if self.line == 0 { String::new() } else { format!(":{}", self.line) };
        write!(f, "{}{line}: {} [{}]", self.path, self.text, self.rule)
    }
}

/// Collects the findings of one rule.
pub struct Findings {
    rule: &'static str,
    list: Vec<Finding>,
}

impl Findings {
    /// Adds a finding at a line of a file; line 0 means the whole file.
    pub fn add(&mut self, path: &str, line: usize, text: impl Into<String>) {
        self.list.push(Finding { path: path.into(), line, text: text.into(), rule: self.rule });
    }
}

/// Every finding of every rule, by file and line.
pub fn check(tree: &Tree, house: &House) -> Vec<Finding> {
    let mut all: Vec<Finding> = ALL.iter().flat_map(|rule| run(rule, tree, house)).collect();
    all.sort();
    all
}

fn run(rule: &Rule, tree: &Tree, house: &House) -> Vec<Finding> {
    let mut findings = Findings { rule: rule.name, list: Vec::new() };
    (rule.check)(tree, house, &mut findings);
    findings.list
}

/// The findings of one rule over files made up for a test, as they would be printed.
#[cfg(test)]
pub fn findings(rule: &str, house: &House, files: &[(&str, &str)]) -> Vec<String> {
    findings_in(rule, house, &Tree::of(files, Vec::new()))
}

/// The same over a workspace made of manifests, (path, text) with the root's first, which cargo reads.
#[cfg(test)]
pub fn findings_of_manifests(rule: &str, house: &House, manifests: &[(&str, &str)]) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in manifests {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.with_file_name("src")).unwrap();
        std::fs::write(path.with_file_name("src/lib.rs"), "").unwrap();
        std::fs::write(path, text).unwrap();
    }
    findings_in(rule, house, &Tree::of(manifests, crate::tree::members(root.path()).unwrap()))
}

#[cfg(test)]
fn findings_in(rule: &str, house: &House, tree: &Tree) -> Vec<String> {
    let rules = ALL.iter().filter(|known| known.name == rule);
    rules.flat_map(|rule| run(rule, tree, house)).map(|finding| finding.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_editors_expect() {
        let finding = Finding { path: "a.rs".into(), line: 3, text: "is odd".into(), rule: "sizes" };
        assert_eq!(finding.to_string(), "a.rs:3: is odd [sizes]");
        assert_eq!(Finding { line: 0, ..finding }.to_string(), "a.rs: is odd [sizes]");
    }

    #[test]
    fn rules_have_different_names() {
        let mut names: Vec<_> = ALL.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
