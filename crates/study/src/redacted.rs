//! The text of a study without its secrets.

use tare_model::redact::{Redactor, masked_source};

use crate::node::Node;

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

    const STUDY: &str = r#"
# The password is Sesame-open-1, on Db7.example.org.
schema = 1
name = "some"
question = "Which?"
baseline = "a"
[arms.a]
platform = "ssh"
host = "db7.example.org"
port = 2222
[cases.idle]
workload = "exec"
command = ["sh", "-c", "x --token=tkn9"]
env = { LONG = "Sesame\u002dopen-1", SHORT = "q7", MULTI = """two
lines-of-it""", FROM = { from-env = "NAME" } }
url = "postgres://u:xy@h/db"
"#;

    #[test]
    fn secrets_leave_the_text_however_they_are_written() {
        let mut redactor = Redactor::default();
        redactor.add_secret("Sesame-open-1");
        redactor.add_name("db7.example.org");
        let with_names = redacted(STUDY, &redactor.clone().taking_names());
        for kept_out in ["Sesame", "open-1", "q7", "lines-of-it", ":xy@", "tkn9"] {
            assert!(!redacted(STUDY, &redactor).contains(kept_out), "{kept_out}");
            assert!(!with_names.contains(kept_out), "{kept_out}: {with_names}");
        }
        assert!(!with_names.to_lowercase().contains("db7") && !with_names.contains("2222"), "{with_names}");
        assert!(redacted(STUDY, &redactor).contains("port = 2222"));
        for kept in ["from-env = \"NAME\"", "workload = \"exec\"", "question = \"Which?\""] {
            assert!(with_names.contains(kept), "{kept}: {with_names}");
        }
        assert!(Node::parse(&with_names).is_ok(), "{with_names}");
    }

    #[test]
    fn a_text_that_is_no_toml_shows_no_secret_either() {
        let broken = "[cases.a.env]\nTOKEN = \"abc\n[arms]\nurl = postgres://u:xy@h/db password = \"zz\"\n";
        let shown = redacted(broken, &Redactor::default());
        assert!(!shown.contains("abc") && !shown.contains("xy") && !shown.contains("zz"), "{shown}");
        assert_eq!(shown.len(), broken.len());
    }
}
