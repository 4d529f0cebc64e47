//! What a guest said, and errors that quote it, fit for a terminal and a table.

/// So many characters at the beginning are kept: what was tried and why it failed.
const HEAD: usize = 1000;
/// So many at the end: the last that a console said.
const TAIL: usize = 3000;

/// So many characters are kept of those who did not fail.
const LAST: usize = 400;

/// The text without control characters, and of what is long the beginning and the end.
pub fn fit(text: &str) -> String {
    let shown = tare_model::text::readable(text);
    let middle = shown.char_indices().nth(HEAD).map(|(at, _)| at);
    let end = shown.char_indices().rev().nth(TAIL - 1).map(|(at, _)| at);
    match middle.zip(end) {
        Some((middle, end)) if middle < end => format!("{} ... {}", &shown[..middle], &shown[end..]),
        _ => shown,
    }
}

/// The end of what another guest said, where one guest's words are quoted in full.
pub fn last(text: &str) -> String {
    let shown = tare_model::text::readable(text);
    match shown.char_indices().rev().nth(LAST - 1) {
        Some((from, _)) if from > 0 => format!("... {}", &shown[from..]),
        _ => shown,
    }
}

/// The errors of several guests in one: the first with all that was said, of the others only what failed and why.
pub fn together(failures: &[String]) -> String {
    let Some((first, others)) = failures.split_first() else { return String::new() };
    // The first line of an error is tare's own; the guest's console follows.
    let brief = others.iter().map(|failure| fit(failure.lines().next().unwrap_or_default()));
    let mut messages: Vec<String> = brief.collect();
    messages.push(fit(first));
    messages.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_keeps_what_failed_and_the_last_that_was_said() {
        assert_eq!(fit("short\u{1b}"), "short\u{fffd}");
        let whole = "é".repeat(HEAD + TAIL);
        assert_eq!(fit(&whole), whole);
        let long = format!("guest: no answer It said:\n{}the last line", "boot\n".repeat(10_000));
        let shown = fit(&long);
        assert!(shown.starts_with("guest: no answer") && shown.ends_with("the last line") && shown.contains(" ... "));
        assert!(shown.chars().count() <= HEAD + TAIL + 5, "{}", shown.chars().count());
    }

    #[test]
    fn of_others_only_the_end_is_kept() {
        assert_eq!(last("short"), "short");
        let shown = last(&("x".repeat(1000) + "end"));
        assert!(shown.starts_with("... x") && shown.ends_with("end") && shown.len() == LAST + 4, "{shown}");
    }

    #[test]
    fn of_several_failures_one_is_quoted_with_its_console_and_none_is_left_out() {
        let failure =
            |n: u32| format!("neighbour n{n}: no answer within 60s It said:\n{}end of {n}", "line\n".repeat(9));
        let failures: Vec<String> = (0..3).map(failure).collect();
        let text = together(&failures);
        assert_eq!(text.matches("no answer within 60s").count(), 3, "{text}");
        assert!(text.contains("neighbour n2") && text.ends_with("end of 0") && !text.contains("end of 1"), "{text}");
        assert_eq!(together(&[]), "");
    }
}
