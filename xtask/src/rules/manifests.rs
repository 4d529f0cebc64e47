//! Members inherit what is common, and versions of third-party crates stand in one place, the root.

use toml::{Table, Value};

use super::Findings;
use crate::house::House;
use crate::tree::Tree;

/// What every member takes from the workspace.
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

pub fn check(tree: &Tree, _house: &House, findings: &mut Findings) {
    for (_, file) in tree.manifests() {
        // A manifest that is not TOML is reported by the rule on dependencies.
        let Ok(manifest) = toml::from_str::<Table>(&file.text) else { continue };
        if !inherits(manifest.get("lints")) {
            findings.add(&file.path, 0, "lacks `[lints] workspace = true`");
        }
        let package = manifest.get("package").and_then(Value::as_table);
        for key in INHERITED {
            if !inherits(package.and_then(|package| package.get(key))) {
                findings.add(&file.path, 0, format!("lacks `{key}.workspace = true` in [package]"));
            }
        }
        if package.and_then(|package| package.get("description")).is_none() {
            findings.add(&file.path, 0, "lacks a description in [package]");
        }
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let dependencies = manifest.get(section).and_then(Value::as_table).into_iter().flatten();
            for (name, _) in dependencies.filter(|(name, value)| !inherits(Some(value)) && !is_self(package, name)) {
                findings.add(
                    &file.path,
                    0,
                    format!("{name}: put the version into the root manifest, and `{name}.workspace = true` here"),
                );
            }
        }
    }
}

/// Whether a crate names itself, as it does to give its own tests a feature.
fn is_self(package: Option<&Table>, name: &str) -> bool {
    package.and_then(|package| package.get("name")).and_then(Value::as_str) == Some(name)
}

/// Whether a value is `{ workspace = true, ... }`.
fn inherits(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    const GOOD: &str = "
[package]
name = \"a\"
description = \"A.\"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
publish.workspace = true
[lints]
workspace = true
[dependencies]
serde = { workspace = true, features = [\"derive\"] }
";

    fn check(manifest: &str) -> Vec<String> {
        findings("manifests", &House::default(), &[("crates/a/Cargo.toml", manifest), ("Cargo.toml", "[workspace]")])
    }

    #[test]
    fn a_member_that_inherits_all_passes() {
        assert_eq!(check(GOOD), [""; 0]);
    }

    #[test]
    fn each_line_that_is_missing_is_found() {
        for line in GOOD.lines().filter(|line| line.contains("workspace = true") && !line.starts_with("serde")) {
            let found = check(&GOOD.replacen(&format!("\n{line}\n"), "\n", 1));
            assert_eq!(found.len(), 1, "without {line}: {found:?}");
        }
        assert_eq!(check(&GOOD.replace("description", "homepage")).len(), 1);
    }

    #[test]
    fn a_version_of_its_own_is_found() {
        let found = check(&format!("{GOOD}regex = \"1\"\n"));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("regex: put the version"), "{found:?}");
        assert_eq!(check(&format!("{GOOD}[dev-dependencies]\na = {{ path = \".\" }}\n")), [""; 0]);
    }
}
