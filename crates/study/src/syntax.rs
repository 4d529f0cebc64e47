//! Errors of TOML itself, in words for people who do not know TOML.

use std::ops::Range;

use toml::de::DeTable;

use crate::error::{Problem, line_and_column};

/// Most errors of syntax that are reported: they tend to have one cause.
const MOST: usize = 5;

/// The errors of syntax of a text; none when it is TOML.
///
/// A parser that goes on after an error reports echoes (after one missing quote, every later line). Here each
/// erroneous line is blanked instead and the text parsed again: what is then still wrong is another error.
pub(crate) fn problems(text: &str) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    let mut rest = text.to_owned();
    while problems.len() < MOST {
        let Some(next) = first(&rest) else { break };
        if problems.last().is_some_and(|last| next.line <= last.line) {
            break;
        }
        rest = blanked(&rest, next.span.start);
        problems.push(next);
    }
    problems
}

/// The first error of a text in its order. (The parser itself reports in the order in which it finds out.)
fn first(text: &str) -> Option<Problem> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let first = errors.iter().min_by_key(|error| error.span().map_or(0, |span| span.start))?;
    Some(problem(text, first.message(), first.span()))
}

/// The text with the line at `offset` blanked, and where that is the head of a table, all of the table: its
/// fields would fall to the table before it.
fn blanked(text: &str, offset: usize) -> String {
    let offset = offset.min(text.len());
    let start = text.as_bytes()[..offset].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let line_end = |from: usize| text[from..].find('\n').map_or(text.len(), |newline| from + newline);
    let mut end = line_end(start);
    if text[start..].trim_start().starts_with('[') {
        while end < text.len() && !text[end + 1..].trim_start_matches([' ', '\t']).starts_with('[') {
            end = line_end(end + 1);
        }
    }
    let blank: String =
        text[start..end].chars().map(|c| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) }).collect();
    format!("{}{blank}{}", &text[..start], &text[end..])
}

fn problem(text: &str, message: &str, span: Option<Range<usize>>) -> Problem {
    let span = span.unwrap_or(0..0);
    let (line, column) = line_and_column(text, span.start);
    let (message, help) = if let Some((key, value)) = unquoted(text.lines().nth(line - 1).unwrap_or_default()) {
        (format!("not TOML: `{value}` stands without quotes"), Some(format!("write `{key} = \"{value}\"`")))
    } else if message.contains("duplicate key") {
        let help = "rename one of the two, or delete it";
        ("not TOML: this name is there already, and each can be given once".to_owned(), Some(help.to_owned()))
    } else {
        (format!("not TOML: {}", message.trim().replace('\n', "; ")), None)
    };
    Problem { path: Vec::new(), message, help, span, line, column }
}

/// Key and value of a line whose value is a word or a quantity without quotes.
fn unquoted(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next().unwrap_or_default().trim();
    let is_word = value.starts_with(|c: char| c.is_ascii_alphanumeric()) && !value.contains(['"', '\'', '{', '[']);
    // What is a value of TOML as it stands is not what is wrong with the line.
    (is_word && DeTable::parse(&format!("x = {value}")).is_err()).then(|| (key.trim(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<(usize, String)> {
        problems(text).into_iter().map(|problem| (problem.line, problem.message)).collect()
    }

    #[test]
    fn one_slip_is_one_error() {
        assert_eq!(said("a = \"open\nb = 1\nc = 2\n").len(), 1);
        assert_eq!(said("[a]\nx = 1\n[a]\nx = 2\n").len(), 1);
        assert_eq!(said("a = { b = 1\n[c]\nd = 1\n").len(), 1);
    }

    #[test]
    fn independent_slips_are_all_found() {
        let text = "a = native\nb = 1\nc = 300ms # short\n[d]\nb = 1\nb = 2\n";
        let expected = [
            (1, "not TOML: `native` stands without quotes".to_owned()),
            (3, "not TOML: `300ms` stands without quotes".to_owned()),
            (6, "not TOML: this name is there already, and each can be given once".to_owned()),
        ];
        assert_eq!(said(text), expected);
    }

    #[test]
    fn blanking_keeps_every_place() {
        let text = "µ = 1\n[a]\nx = 1\n\n [b]\n";
        assert_eq!(blanked(text, 2), "      \n[a]\nx = 1\n\n [b]\n");
        assert_eq!(blanked(text, 8), "µ = 1\n   \n     \n\n [b]\n");
        assert_eq!(blanked(text, 999), text);
    }
}
