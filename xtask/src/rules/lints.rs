//! The lints that the house relies on are on for every member, and off only in tests, or with a reason beside.
//!
//! Without this rule one careless line would turn off what tidy leaves to clippy.

use toml::{Table, Value};

use super::Findings;
use crate::house::House;
use crate::source::{Kind, Source};
use crate::tree::Tree;

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let root = tree.get("Cargo.toml").and_then(|file| toml::from_str::<Table>(&file.text).ok()).unwrap_or_default();
    for lint in house.lints.required.iter().filter(|lint| !is_on(&root, lint)) {
        findings.add("Cargo.toml", 0, format!("{lint} has to be warn or deny in [workspace.lints]"));
    }
    // Cargo's metadata do not say where lints are from.
    for path in tree.packages().iter().map(|package| package.manifest_path.as_str()) {
        let manifest = tree.get(path).and_then(|file| toml::from_str::<Table>(&file.text).ok()).unwrap_or_default();
        if manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool()) != Some(true) {
            findings.add(path, 0, "lacks `[lints] workspace = true`");
        }
    }
    for file in tree.rust().filter(|file| !file.is_test) {
        let source = &file.source;
        for at in 0..source.tokens.len() {
            if let Some(lint) = exemption(source, at, &house.lints.required) {
                let line = source.tokens[at].line;
                findings.add(
                    &file.path,
                    line,
                    format!("{lint} is switched off outside tests without `reason = \"...\"`"),
                );
            }
        }
    }
}

/// Whether the workspace warns of a lint; `.ci/run` makes every warning an error.
fn is_on(root: &Table, lint: &str) -> bool {
    let (tool, name) = lint.split_once("::").unwrap_or(("rust", lint));
    let level = root.get("workspace").and_then(|value| value.get("lints")?.get(tool)?.get(name));
    let level = level.and_then(|value| value.get("level").or(Some(value))).and_then(Value::as_str);
    matches!(level, Some("warn" | "deny" | "forbid"))
}

/// The required lint that the `allow(...)` or `expect(...)` at `at` switches off without a reason.
fn exemption<'a>(source: &Source, at: usize, required: &'a [String]) -> Option<&'a str> {
    let token = &source.tokens[at];
    let in_attribute = matches!(source.text(at.checked_sub(1)), "[" | "," | "(");
    if token.test || !in_attribute || !matches!(token.text.as_str(), "allow" | "expect") {
        return None;
    }
    let Kind::Open { close } = source.tokens.get(at + 1)?.kind else { return None };
    let inside = &source.tokens[at + 2..close];
    if inside.iter().any(|token| token.text == "reason") {
        return None;
    }
    let name = |lint: &'a String| lint.rsplit(':').next().unwrap_or(lint);
    // Groups switch off all that is in them.
    let whole = |text: &str| matches!(text, "all" | "pedantic" | "restriction" | "warnings");
    required.iter().map(name).find(|lint| inside.iter().any(|token| token.text == *lint || whole(&token.text)))
}

#[cfg(test)]
mod tests {
    use super::super::{findings, findings_of_manifests};
    use super::*;
    use crate::house::Lints;

    const ROOT: &str =
        "[workspace.lints.clippy]\nunwrap_used = \"warn\"\n[workspace.lints.rust]\nmissing_docs = { level = \"deny\" }";

    fn check(root: &str, path: &str, text: &str) -> Vec<String> {
        let lints = Lints { required: vec!["clippy::unwrap_used".into(), "missing_docs".into()] };
        findings("lints", &House { lints, ..House::default() }, &[("Cargo.toml", root), (path, text)])
    }

    #[test]
    fn a_lint_that_is_not_on_in_the_workspace_is_found() {
        assert_eq!(check(ROOT, "src/a.rs", ""), [""; 0]);
        assert_eq!(check(&ROOT.replace("warn", "allow"), "src/a.rs", "").len(), 1);
        assert_eq!(check("", "src/a.rs", "").len(), 2);
    }

    #[test]
    fn a_member_that_does_not_take_the_workspaces_lints_is_found() {
        let member = "[package]\nname = \"a\"\nedition = \"2024\"\n";
        let check = |added: &str| {
            let manifests = [
                ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n[workspace.lints]\n"),
                ("crates/a/Cargo.toml", &format!("{member}{added}")),
            ];
            findings_of_manifests("lints", &House::default(), &manifests)
        };
        assert_eq!(check("[lints]\nworkspace = true\n"), [""; 0]);
        for added in ["", "[lints.clippy]\npanic = \"allow\"\n"] {
            assert_eq!(check(added), ["crates/a/Cargo.toml: lacks `[lints] workspace = true` [lints]"]);
        }
    }

    #[test]
    fn switching_it_off_is_found_unless_in_tests_or_with_a_reason() {
        let off = "#![allow(clippy::unwrap_used)]";
        for text in [off, "#[expect(missing_docs)] fn f() {}", "#[cfg_attr(unix, allow(clippy::all))] fn f() {}"] {
            assert_eq!(check(ROOT, "src/a.rs", text).len(), 1, "{text}");
        }
        for text in [
            "#[allow(dead_code)] fn f() {}",
            "#[expect(missing_docs, reason = \"generated\")] fn f() {}",
            "fn f() { x.expect(unwrap_used) }",
        ] {
            assert_eq!(check(ROOT, "src/a.rs", text), [""; 0], "{text}");
        }
        assert_eq!(check(ROOT, "tests/a.rs", off), [""; 0]);
        assert_eq!(check(ROOT, "src/a.rs", &format!("#[cfg(test)] mod tests {{ {off} }}")), [""; 0]);
    }
}
