//! Every decision is in the index of `docs/adr`, numbered once, with a status; the index names nothing else.

use std::collections::BTreeMap;

use super::Findings;
use crate::house::House;
use crate::tree::Tree;

const FOLDER: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";
const STATUSES: [&str; 4] = ["accepted", "proposed", "rejected", "superseded by"];

pub fn check(tree: &Tree, _house: &House, findings: &mut Findings) {
    let Some(index) = tree.get(INDEX) else {
        return findings.add(INDEX, 0, "is missing: it is the index of the decisions");
    };
    let mut numbers: BTreeMap<&str, &str> = BTreeMap::new();
    for file in tree.files().iter().filter(|file| file.path.starts_with(FOLDER) && file.path != INDEX) {
        let name = &file.path[FOLDER.len()..];
        let Some((number, _)) =
            name.split_once('-').filter(|(number, rest)| is_number(number) && rest.ends_with(".md"))
        else {
            findings.add(&file.path, 0, "has to be called NNNN-what-was-decided.md");
            continue;
        };
        if let Some(other) = numbers.insert(number, name) {
            findings.add(&file.path, 0, format!("has the number of {other}"));
        }
        if !links(&index.text).any(|(_, target)| target == name) {
            findings.add(INDEX, 0, format!("lacks a link to {name}"));
        }
        if !has_status(&file.text) {
            findings.add(&file.path, 0, format!("lacks a line `Status: ...`: one of {}", STATUSES.join(", ")));
        }
    }
    for (line, target) in links(&index.text) {
        if target.split_once('-').is_some_and(|(number, _)| is_number(number))
            && tree.get(&format!("{FOLDER}{target}")).is_none()
        {
            findings.add(INDEX, line, format!("links to {target}, which is not there"));
        }
    }
}

fn is_number(text: &str) -> bool {
    text.len() == 4 && text.chars().all(|c| c.is_ascii_digit())
}

/// The targets of the links of a Markdown text, each with its line.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .flat_map(|(at, line)| line.split("](").skip(1).filter_map(move |rest| Some((at + 1, rest.split_once(')')?.0))))
}

fn has_status(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start_matches(['-', '*', ' ']).replace('*', "").to_lowercase();
        let status = line.strip_prefix("status:").map(str::trim_start);
        status.is_some_and(|status| STATUSES.iter().any(|known| status.starts_with(known)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    const FIRST: (&str, &str) = ("docs/adr/0001-study.md", "# Study\n\n- Status: accepted\n");

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        findings("adr-index", &House::default(), files)
    }

    #[test]
    fn an_indexed_decision_with_a_status_passes() {
        assert_eq!(check(&[FIRST, (INDEX, "- [Study](0001-study.md)\n- [design](../design.md)\n")]), [""; 0]);
    }

    #[test]
    fn what_is_missing_on_either_side_is_found() {
        assert_eq!(check(&[FIRST]), ["docs/adr/README.md: is missing: it is the index of the decisions [adr-index]"]);
        assert_eq!(check(&[FIRST, (INDEX, "")]), ["docs/adr/README.md: lacks a link to 0001-study.md [adr-index]"]);
        assert_eq!(
            check(&[(INDEX, "\n[Gone](0002-gone.md)")]),
            ["docs/adr/README.md:2: links to 0002-gone.md, which is not there [adr-index]"]
        );
    }

    #[test]
    fn a_number_taken_twice_a_bad_name_and_a_missing_status_are_found() {
        let index = (INDEX, "[a](0001-study.md) [b](0001-twice.md)");
        let found = check(&[FIRST, ("docs/adr/0001-twice.md", "**Status:** Superseded by 0001"), index]);
        assert_eq!(found, ["docs/adr/0001-twice.md: has the number of 0001-study.md [adr-index]"]);
        let found = check(&[("docs/adr/notes.md", ""), (INDEX, "")]);
        assert!(found[0].contains("has to be called"), "{found:?}");
        let found = check(&[("docs/adr/0001-study.md", "Status: perhaps"), (INDEX, "[a](0001-study.md)")]);
        assert!(found[0].contains("lacks a line `Status"), "{found:?}");
    }
}
