//! Every module begins by saying what it is about.

use super::Findings;
use crate::house::House;
use crate::tree::Tree;

pub fn check(tree: &Tree, _house: &House, findings: &mut Findings) {
    for file in tree.rust().filter(|file| !file.is_test) {
        let documented = file.text.lines().next().is_some_and(|line| {
            line.strip_prefix("//!").is_some_and(|text| text.trim().chars().filter(|c| c.is_alphabetic()).count() > 1)
        });
        if !documented {
            findings.add(&file.path, 1, "has to begin with `//!` and what it is about");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn a_module_without_words_at_its_head_is_found() {
        let check = |path: &str, text: &str| findings("module-docs", &House::default(), &[(path, text)]).len();
        assert_eq!(check("src/a.rs", "//! Counts sheep.\nfn f() {}"), 0);
        assert_eq!(check("tests/a.rs", "fn f() {}"), 0);
        for text in ["", "//!\n//! Late.", "fn f() {}", "// Counts sheep.", "\n//! Counts sheep."] {
            assert_eq!(check("src/a.rs", text), 1, "{text:?}");
        }
    }
}
