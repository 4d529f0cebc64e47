//! No unfinished work and no developer's own paths, in any text that is tracked.

use super::Findings;
use crate::house::{House, PATH};
use crate::tree::Tree;

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    for file in tree.files().iter().filter(|file| file.path != PATH) {
        for (at, line) in file.text.lines().enumerate() {
            for word in house.text.leftovers.iter().filter(|word| has_word(line, word)) {
                findings.add(&file.path, at + 1, format!("{word}: finish it, or file it as an issue"));
            }
            for path in house.text.host_paths.iter().filter(|path| has_path(line, path)) {
                findings.add(&file.path, at + 1, format!("{path} is a path of one machine"));
            }
        }
    }
}

/// Whether `word` stands in the line by itself, and not within a longer one such as the blanks of `mktemp`.
fn has_word(line: &str, word: &str) -> bool {
    occurs(line, word, |before, after| !is_part(before) && !is_part(after))
}

/// Whether a path begins with `path`: `/a/b`, not `/tmp/a/b`.
fn has_path(line: &str, path: &str) -> bool {
    occurs(line, path, |before, _| {
        !is_part(before) && !matches!(before, Some('.' | '/' | '-' | '~' | '}' | ')' | '*' | '>' | '$'))
    })
}

fn occurs(line: &str, wanted: &str, fits: impl Fn(Option<char>, Option<char>) -> bool) -> bool {
    line.match_indices(wanted)
        .any(|(at, _)| fits(line[..at].chars().next_back(), line[at + wanted.len()..].chars().next()))
}

fn is_part(neighbour: Option<char>) -> bool {
    neighbour.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;
    use crate::house::Text;

    fn check(line: &str) -> usize {
        let text = Text { leftovers: vec!["LATER".into()], host_paths: vec!["/mine/".into()] };
        findings("leftovers", &House { text, ..House::default() }, &[("a.md", &format!("first\n{line}\n"))]).len()
    }

    #[test]
    fn words_of_unfinished_work_are_found_by_themselves_only() {
        for line in ["// LATER", "LATER: this", "(LATER)"] {
            assert_eq!(check(line), 1, "{line}");
        }
        for line in ["later", "LATERAN", "A_LATER", "x.LATERLATER"] {
            assert_eq!(check(line), 0, "{line}");
        }
    }

    #[test]
    fn paths_of_one_machine_are_found_at_their_beginning_only() {
        for line in ["cd /mine/tare", "\"/mine/x\"", "A=/mine/x"] {
            assert_eq!(check(line), 1, "{line}");
        }
        for line in ["/tmp/mine/x", "{}/mine/x", "./mine/x", "$DIR/mine/x", "mine/"] {
            assert_eq!(check(line), 0, "{line}");
        }
    }
}
