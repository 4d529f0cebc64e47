//! The text of a study without its secrets.

use tare_model::redact::{Redactor, masked_source};

use crate::tree::Node;

/// The text of a study file as a run folder keeps it: every value as the redactor has it, and what is known taken out of
/// comments too. A text that is no TOML keeps its lines with what seems a secret masked.
pub fn redacted(text: &str, redactor: &Redactor) -> String {
    let Ok(tree) = Node::parse(text) else { return redactor.text(&masked_source(text)) };
    let mut replaced = Vec::new();
    tree.scalars(&mut Vec::new(), &mut |path, value, span| {
        let written = redactor.written(path, &value);
        if written != value {
            // What JSON escapes in a text TOML reads alike.
            replaced.push((span, written.to_string()));
        }
    });
    replaced.sort_by_key(|(span, _)| span.start);
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for (span, written) in replaced {
        if let Some(between) = text.get(end..span.start) {
            shown.push_str(between);
            shown.push_str(&written);
            end = span.end;
        }
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    redactor.text(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::catalog;

    #[test]
    fn secrets_leave_the_text_however_they_are_written() {
        let _ = catalog;
    }
}
