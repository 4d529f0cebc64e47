//! Words that the glossary replaces by others are not used: not in code, in messages or in documents.

use std::collections::BTreeSet;

use super::Findings;
use crate::house::{House, PATH};
use crate::tree::Tree;

/// The glossary. Its second table lists the words, each in backquotes at the beginning of a row.
const GLOSSARY: &str = "docs/glossary.md";
/// What is read: code, scripts and documents.
const READ: [&str; 4] = [".rs", ".md", ".sh", ".toml"];

pub fn check(tree: &Tree, _house: &House, findings: &mut Findings) {
    let Some(glossary) = tree.get(GLOSSARY) else {
        return findings.add(GLOSSARY, 0, "is missing: it says which words mean what");
    };
    let replaced: BTreeSet<String> = replaced(&glossary.text).collect();
    if replaced.is_empty() {
        return findings.add(GLOSSARY, 0, "replaces no word: its second table begins each row with one in backquotes");
    }
    let files = tree.files().iter().filter(|file| READ.iter().any(|end| file.path.ends_with(end)));
    for file in files.filter(|file| file.path != GLOSSARY && file.path != PATH) {
        for (at, line) in file.text.lines().enumerate() {
            for word in words(line).filter(|word| replaced.contains(word)) {
                findings.add(&file.path, at + 1, format!("`{word}` is a word that {GLOSSARY} replaces"));
            }
        }
    }
}

/// The words that the table replaces.
fn replaced(glossary: &str) -> impl Iterator<Item = String> {
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(word, _)| word.to_lowercase())
}

/// The words of a text in lower case, those within a name of code included: `wordOf`, `WordOf`, `word_of`.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphabetic()).flat_map(|run| {
        let mut parts: Vec<String> = Vec::new();
        let mut was_upper = true;
        for c in run.chars() {
            match parts.last_mut() {
                Some(part) if was_upper || !c.is_ascii_uppercase() => part.push(c.to_ascii_lowercase()),
                _ => parts.push(c.to_ascii_lowercase().to_string()),
            }
            was_upper = c.is_ascii_uppercase();
        }
        parts
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    const TABLE: &str = "# Glossary\n\n| Not | But |\n|---|---|\n| `gadget` | timeout |\n";

    fn check(text: &str) -> Vec<String> {
        findings("glossary", &House::default(), &[(GLOSSARY, TABLE), ("a.rs", text)])
    }

    #[test]
    fn a_replaced_word_is_found_in_names_and_in_prose() {
        for text in ["// Gadget.", "let gadget = 1;", "site.gadget_s", "struct HisGadget;", "const GADGET: u8 = 1;"] {
            assert_eq!(check(text), ["a.rs:1: `gadget` is a word that docs/glossary.md replaces [glossary]"], "{text}");
        }
        for text in ["// gadgetry", "let gadgets = 1;", "struct Gadgetry;"] {
            assert_eq!(check(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_glossary_that_replaces_nothing_is_no_gate() {
        let found = findings("glossary", &House::default(), &[(GLOSSARY, "# Glossary\n")]);
        assert!(found[0].contains("replaces no word"), "{found:?}");
        assert!(findings("glossary", &House::default(), &[])[0].contains("is missing"));
    }
}
