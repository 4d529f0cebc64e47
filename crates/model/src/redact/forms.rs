//! Secrets that a text shows by its form, and the forms in which one may be shown.

use super::{SECRET_TABLE, SHORTEST_CHARS, is_secret};

/// Longer names are no fields.
const LONGEST_KEY: usize = 100;
/// Schemes of HTTP's `Authorization`, after which a secret follows.
const AUTHORIZATIONS: [&str; 2] = ["Bearer ", "Basic "];

/// A secret that a text holds, and the names beside it.
pub(super) struct Found<'a> {
    /// Where it begins in the text, bytes.
    pub at: usize,
    pub secret: &'a str,
    pub names: Vec<&'a str>,
}

/// Secrets that a text shows by its form: the password in `scheme://user:password@host`, what follows `Bearer`, and the
/// value of `password=value`.
pub(super) fn secrets_in(text: &str) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`');
        let authority = &text[start..];
        let authority = &authority[..authority.find(ends).unwrap_or(authority.len())];
        let Some((login, place)) = authority.rsplit_once('@') else { continue };
        let host = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, _)) => host,
            None => place.split(':').next().unwrap_or_default(),
        };
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        found.push(Found { at: start + user.len() + 1, secret: password, names: vec![user, host] });
    }
    for scheme in AUTHORIZATIONS {
        for (at, _) in text.match_indices(scheme) {
            let secret = &text[at + scheme.len()..];
            let secret =
                &secret[..secret.find(|c: char| c.is_whitespace() || "\"'`,;".contains(c)).unwrap_or(secret.len())];
            // Shorter ones are words of a sentence.
            if secret.chars().count() >= 2 * SHORTEST_CHARS {
                found.push(Found { at: at + scheme.len(), secret, names: Vec::new() });
            }
        }
    }
    let mut end = 0;
    // What begins within a value belongs to it.
    for (at, _) in text.match_indices('=') {
        if at < end {
            continue;
        }
        let before = &text[..at];
        let start = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
        let start = start.map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let key = before[start..].trim_start_matches('-');
        if key.len() > LONGEST_KEY || key == SECRET_TABLE || !is_secret(key) {
            continue;
        }
        let value = &text[at + 1..];
        let ends = |c: char| c.is_whitespace() || matches!(c, '&' | '"' | '\'' | '`' | ';');
        let value = &value[..value.find(ends).unwrap_or(value.len())];
        end = at + 1 + value.len();
        if !value.is_empty() {
            found.push(Found { at: at + 1, secret: value, names: Vec::new() });
        }
    }
    found.retain(|one| !one.secret.is_empty() || !one.names.is_empty());
    found
}

/// The text with the secrets that it shows by its form replaced, however short they are.
pub fn masked(text: &str, mask: &str) -> String {
    let mut spans: Vec<(usize, usize)> = secrets_in(text)
        .iter()
        .filter(|found| !found.secret.is_empty())
        .map(|found| (found.at, found.at + found.secret.len()))
        .collect();
    spans.sort_unstable();
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for (from, to) in spans {
        if from >= end {
            shown.push_str(&text[end..from]);
            shown.push_str(mask);
        }
        end = end.max(to);
    }
    shown.push_str(&text[end..]);
    shown
}

/// A text of an address with `%41` for `A`; as it is where that is none.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| byte == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// A text as an address may hold it.
pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The source of a study with the secrets masked that it holds or seems to hold, each byte by one `*`, so that every
/// place in it stays where it is. Made for errors that show lines of a file, which need not be a study or even TOML.
pub fn masked_source(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut table_is_secret = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with('[') && !trimmed.contains('=') {
            let path = trimmed.trim_matches(['[', ']', ' ']);
            table_is_secret = path.split('.').any(|key| is_secret(key.trim_matches(['"', '\'', ' '])));
            masked.push_str(line);
            continue;
        }
        masked.push_str(&masked_line(line, table_is_secret));
    }
    masked
}

/// A line of a study with its quoted texts masked where they belong to a field that holds a secret.
fn masked_line(line: &str, table_is_secret: bool) -> String {
    let mut spans: Vec<(usize, usize)> =
        secrets_in(line).iter().map(|one| (one.at, one.at + one.secret.len())).collect();
    let keys = line.match_indices('=').filter_map(|(at, _)| {
        let before = line[..at].trim_end();
        let from = before.rfind([' ', '{', ',', '\t']).map_or(0, |at| at + 1);
        let secret = before[from..].split('.').any(|key| is_secret(key.trim_matches(['"', '\''])));
        (secret || table_is_secret).then_some(at + 1)
    });
    if let Some(from) = keys.min() {
        spans.extend(quoted(line, from));
    }
    let mut bytes = line.as_bytes().to_vec();
    for (from, to) in spans {
        for byte in bytes.get_mut(from..to.min(line.len())).unwrap_or_default() {
            *byte = if *byte == b'\n' { b'\n' } else { b'*' };
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| "*".repeat(line.len()))
}

/// What stands between quotes from `from` on; a quote that nothing closes goes to the end of the line.
fn quoted(line: &str, from: usize) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut escaped = false;
    for (at, c) in line[from..].char_indices().map(|(at, c)| (from + at, c)) {
        match open {
            Some((start, quote)) if c == quote && !escaped => {
                spans.push((start, at));
                open = None;
            }
            None if c == '"' || c == '\'' => open = Some((at + 1, c)),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    spans.extend(open.map(|(start, _)| (start, line.trim_end().len().max(start))));
    spans
}
