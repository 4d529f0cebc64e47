//! The changelog has a place for what is not released yet.

use super::Findings;
use crate::house::House;
use crate::tree::Tree;

const CHANGELOG: &str = "CHANGELOG.md";

pub fn check(tree: &Tree, _house: &House, findings: &mut Findings) {
    let Some(file) = tree.get(CHANGELOG) else { return findings.add(CHANGELOG, 0, "is missing") };
    let mut releases = file.text.lines().enumerate().filter(|(_, line)| line.starts_with("## "));
    match releases.next() {
        Some((_, "## [Unreleased]")) => {}
        Some((at, _)) => findings.add(CHANGELOG, at + 1, "the first section has to be `## [Unreleased]`"),
        None => findings.add(CHANGELOG, 0, "lacks a section `## [Unreleased]`"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn unreleased_comes_first() {
        let check = |text: &str| findings("changelog", &House::default(), &[(CHANGELOG, text)]);
        assert_eq!(check("# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n"), [""; 0]);
        assert!(check("## [0.1.0]\n## [Unreleased]\n")[0].contains("CHANGELOG.md:1:"));
        assert!(check("# Changelog\n")[0].contains("lacks"));
        assert!(findings("changelog", &House::default(), &[])[0].contains("is missing"));
    }
}
