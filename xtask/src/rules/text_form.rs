//! The form of text files: Rust that is Rust, LF, a newline at the end, no trailing blanks, no tabs in Rust.

use super::Findings;
use crate::house::House;
use crate::tree::Tree;

pub fn check(tree: &Tree, _house: &House, findings: &mut Findings) {
    for file in tree.files().iter().filter(|file| !is_verbatim(&file.path)) {
        if let Some(why) = &file.broken {
            findings.add(&file.path, 0, format!("is not valid Rust, so no other rule could read it: {why}"));
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            findings.add(&file.path, 0, "lacks a newline at its end");
        }
        if file.text.ends_with("\n\n") {
            findings.add(&file.path, 0, "ends with an empty line");
        }
        for (at, line) in file.text.split('\n').enumerate() {
            if line.ends_with('\r') {
                findings.add(&file.path, at + 1, "ends with CR LF");
            } else if line.ends_with([' ', '\t']) {
                findings.add(&file.path, at + 1, "ends with a blank");
            }
            if file.path.ends_with(".rs") && line.contains('\t') {
                findings.add(&file.path, at + 1, "has a tab");
            }
        }
    }
}

/// Files kept byte for byte: captured output that tests read, what fuzzing starts from, snapshots, and the licence.
fn is_verbatim(path: &str) -> bool {
    path.ends_with(".snap")
        || path == "LICENSE"
        || path.split('/').any(|part| matches!(part, "fixtures" | "golden" | "seeds" | "snapshots"))
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn each_fault_of_form_is_found() {
        let check = |path: &str, text: &str| findings("text-form", &House::default(), &[(path, text)]).len();
        for text in ["", "a\n", "a\n\nb\n"] {
            assert_eq!(check("a.rs", text), 0, "{text:?}");
        }
        for text in ["fn f( {\n", "a", "a\n\n", "a \nb\n", "a\r\n", "a\tb\n"] {
            assert_eq!(check("a.rs", text), 1, "{text:?}");
        }
        assert_eq!(check("Makefile", "\tcargo\n"), 0);
        assert_eq!(check("tests/fixtures/proc.txt", "a\t\n\n"), 0);
    }
}
