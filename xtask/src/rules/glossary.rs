//! Words that the glossary replaces by others: in code, in messages and in documents. What is left of each is counted, and may only
//! become less.

use std::collections::BTreeMap;

use super::Findings;
use crate::house::{House, PATH};
use crate::ratchet::{self, Exception};
use crate::tree::Tree;

/// The glossary. Its second table lists the words, each in backquotes at the beginning of a row.
const GLOSSARY: &str = "docs/glossary.md";
/// What is read: code, scripts and documents.
const READ: [&str; 4] = [".rs", ".md", ".sh", ".toml"];

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let Some(glossary) = tree.get(GLOSSARY) else {
        return findings.add(GLOSSARY, 0, "is missing: it says which words mean what");
    };
    let mut counts: BTreeMap<String, usize> = replaced(&glossary.text).map(|word| (word, 0)).collect();
    if counts.is_empty() {
        return findings.add(GLOSSARY, 0, "replaces no word: its second table begins each row with one in backquotes");
    }
    let files = tree.files().iter().filter(|file| READ.iter().any(|end| file.path.ends_with(end)));
    for file in files.filter(|file| file.path != GLOSSARY && file.path != PATH) {
        for word in words(&file.text) {
            if let Some(count) = counts.get_mut(&word) {
                *count += 1;
            }
        }
    }
    let left: Vec<Exception<'_>> = house.glossary.left.iter().map(|(word, &size)| left(word, size)).collect();
    for (word, complaint) in ratchet::compare(&counts, 0, "uses", &left) {
        findings.add(GLOSSARY, 0, format!("`{word}` {complaint}"));
    }
}

fn left(word: &str, size: usize) -> Exception<'_> {
    Exception { subject: word.to_owned(), size, reason: "written before the glossary" }
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
    use crate::house::Glossary;

    const TABLE: &str = "# Glossary\n\n| Not | But |\n|---|---|\n| `gadget` | timeout |\n";

    fn check(text: &str, left: &[(&str, usize)]) -> Vec<String> {
        let left = left.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
        let house = House { glossary: Glossary { left }, ..House::default() };
        findings("glossary", &house, &[(GLOSSARY, TABLE), ("a.rs", text)])
    }

    #[test]
    fn a_replaced_word_is_found_in_names_and_in_prose() {
        for text in ["// Gadget.", "let gadget = 1;", "site.gadget_s", "struct HisGadget;", "const GADGET: u8 = 1;"] {
            let found = check(text, &[]);
            assert!(found.len() == 1 && found[0].contains("`gadget` has 1 uses"), "{text}: {found:?}");
        }
        for text in ["// gadgetry", "let gadgets = 1;", "struct Gadgetry;"] {
            assert_eq!(check(text, &[]), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn what_is_left_may_only_become_less() {
        let text = "// gadget, gadget";
        assert_eq!(check(text, &[("gadget", 2)]), Vec::<String>::new());
        assert!(check(text, &[("gadget", 1)])[0].contains("allows 1"));
        assert!(check(text, &[("gadget", 3)])[0].contains("from 3 to 2"));
        assert!(check("", &[("gadget", 1)])[0].contains("remove its exception"));
    }

    #[test]
    fn a_glossary_that_replaces_nothing_is_no_gate() {
        let found = findings("glossary", &House::default(), &[(GLOSSARY, "# Glossary\n")]);
        assert!(found[0].contains("replaces no word"), "{found:?}");
        assert!(findings("glossary", &House::default(), &[])[0].contains("is missing"));
    }
}
