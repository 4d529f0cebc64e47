//! Text that others wrote, made fit to be shown.
//!
//! An escape sequence could clear a screen, rewrite what was said before or set a title; a sign that turns the direction of
//! writing could make a line read as another.

/// The text without control characters other than line feeds and tabs, and without signs that change the direction of
/// writing; each is replaced by U+FFFD. A carriage return before a line feed, as consoles print it, is dropped.
pub fn readable(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.chars().map(|c| if is_unfit(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// So many lines at the end of a long text are shown: the last that somebody said before the end.
const LAST_LINES: usize = 5;

/// The first line and the last five of a long text, of those lines that hold something; `None` where the text has no more.
pub fn brief(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let (first, rest) = lines.split_first()?;
    let left_out = rest.len().checked_sub(LAST_LINES).filter(|&left_out| left_out > 0)?;
    let last = rest.get(left_out..).unwrap_or_default().join("\n");
    Some(format!("{first}\n... ({left_out} lines before these)\n{last}"))
}

/// The same with a `?` for every byte of what is replaced, so that every place in the text stays where it is.
pub fn readable_in_place(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unfit(c) { shown.extend(std::iter::repeat_n('?', c.len_utf8())) } else { shown.push(c) }
    }
    shown
}

/// JSON of which no text and no name, once it is read, holds what is not fit to be shown; `None` where none did.
pub fn readable_json(json: &str) -> Option<String> {
    let mut shown = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let (taken, unfit) = match (c, escape(rest)) {
            (_, Some((taken, meant))) => (taken, is_unfit(meant)),
            _ => (c.len_utf8(), is_unfit(c) && c != '\r'),
        };
        if unfit {
            shown.push(char::REPLACEMENT_CHARACTER)
        } else {
            shown.push_str(&rest[..taken])
        }
        rest = &rest[taken..];
    }
    (shown != json).then_some(shown)
}

/// The escape of JSON with which the text begins, as its length and what it means. Halves of pairs mean nothing that is unfit.
fn escape(text: &str) -> Option<(usize, char)> {
    let rest = text.strip_prefix('\\')?;
    let meant = match rest.chars().next()? {
        'u' => {
            let number = rest.get(1..5).and_then(|digits| u32::from_str_radix(digits, 16).ok())?;
            return Some((6, char::from_u32(number).unwrap_or(' ')));
        }
        'b' => '\u{8}',
        'f' => '\u{c}',
        'r' => '\r',
        other => return Some((1 + other.len_utf8(), ' ')),
    };
    Some((2, meant))
}

/// Control characters (Unicode's Cc) other than line feed and tab, line and paragraph separators, and the bidirectional
/// marks, embeddings, overrides and isolates of UAX #9.
pub fn is_unfit(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_turned_writing_do_not_come_through() {
        assert_eq!(readable("two\nlines,\tnaïve, 日本"), "two\nlines,\tnaïve, 日本");
        assert_eq!(readable("login: \r\nhello\rworld\r\r\n"), "login: \nhello\u{fffd}world\u{fffd}\n");
        let hostile = "\u{1b}[2J\u{1b}]0;title\u{7}\r\u{9b}31m\u{202e}gnp.exe";
        let shown = readable(hostile);
        assert!(shown.contains("[2J") && !shown.contains(is_unfit), "{shown:?}");
        let shown = readable_in_place(hostile);
        assert!(shown.len() == hostile.len() && !shown.contains(is_unfit), "{shown:?}");
    }

    #[test]
    fn of_a_long_text_the_first_line_and_the_last_are_shown() {
        let log = |lines: u32| (0..lines).map(|n| format!("\nline {n}\n \n")).collect::<String>();
        let long = format!("no answer. It said:\n{}", log(100));
        let shown = brief(&long).unwrap();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[..2], ["no answer. It said:", "... (95 lines before these)"], "{shown}");
        assert_eq!(lines[2..], ["line 95", "line 96", "line 97", "line 98", "line 99"], "{shown}");
        assert_eq!(brief(&format!("no answer. It said:\n{}", log(5))), None);
        assert_eq!((brief(""), brief("short"), brief("\n\n")), (None, None, None));
    }

    #[test]
    fn what_json_means_is_fit_to_be_shown_and_else_the_same() {
        let hostile = "\u{1b}[2J\r\u{202e}\u{9b}\n\t\\u001b \"quoted\" \u{8}日本😀";
        let json = serde_json::to_string(&serde_json::json!({ hostile: [hostile, 1.5, null] })).unwrap();
        // The same with everything escaped.
        let escaped: String = json
            .chars()
            .map(|c| {
                if c.is_ascii() {
                    c.to_string()
                } else {
                    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
                }
            })
            .collect();
        for json in [json, escaped] {
            let shown = readable_json(&json).unwrap();
            let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
            let (name, value) = read.as_object().unwrap().iter().next().unwrap();
            assert!(!name.contains(is_unfit) && value[0] == name.as_str() && value[1] == 1.5, "{read}");
            assert!(name.ends_with("\n\t\\u001b \"quoted\" \u{fffd}日本😀"), "{name:?}");
        }
        assert_eq!(readable_json("{\n \"a\\n\\\\\": [1]\r\n}"), None);
    }
}
