//! Members have what is common from the root, and versions of third-party crates stand there, in one place.

use cargo_metadata::{Dependency, Package};
use toml::{Table, Value};

use super::Findings;
use crate::house::House;
use crate::tree::Tree;

pub fn check(tree: &Tree, _house: &House, findings: &mut Findings) {
    let root = tree.get("Cargo.toml").and_then(|file| toml::from_str::<Table>(&file.text).ok()).unwrap_or_default();
    let section = |name: &str| root.get("workspace").and_then(|own| own.get(name));
    let (common, versions) = (section("package"), section("dependencies"));
    for package in tree.packages() {
        let path = package.manifest_path.as_str();
        for (key, own) in inherited(package) {
            let given = common.and_then(|common| common.get(key)).map(|value| value.to_string().replace('"', ""));
            if own != given {
                let said = own.unwrap_or_else(|| "nothing".to_owned());
                findings.add(path, 0, format!("says {said} as {key}: write `{key}.workspace = true` in [package]"));
            }
        }
        if package.description.is_none() {
            findings.add(path, 0, "lacks a description in [package]");
        }
        // A crate of the workspace has no version.
        for own in package.dependencies.iter().filter(|own| own.path.is_none() && !is_of_root(own, versions)) {
            let (name, req) = (&own.name, &own.req);
            findings.add(
                path,
                0,
                format!("{name} {req}: put the version into the root manifest, and `{name}.workspace = true` here"),
            );
        }
    }
}

/// What every member takes from the workspace, as the root writes it.
fn inherited(package: &Package) -> [(&'static str, Option<String>); 5] {
    let oldest = package.rust_version.as_ref().map(|version| format!("{}.{}", version.major, version.minor));
    let publish = package.publish.as_ref().is_none_or(|registries| !registries.is_empty());
    [
        ("version", Some(package.version.to_string())),
        ("edition", Some(package.edition.to_string())),
        ("rust-version", oldest),
        ("license", package.license.clone()),
        ("publish", Some(publish.to_string())),
    ]
}

/// Whether the root asks for the same versions.
fn is_of_root(dependency: &Dependency, versions: Option<&Value>) -> bool {
    let given = versions.and_then(|versions| versions.get(&dependency.name));
    let given = given.and_then(|given| given.get("version").unwrap_or(given).as_str());
    given.is_some_and(|given| given.parse().is_ok_and(|given| dependency.req == given))
}

#[cfg(test)]
mod tests {
    use super::super::findings_of_manifests;
    use super::*;

    const ROOT: &str = "
[workspace]
members = [\"crates/*\"]
resolver = \"3\"
[workspace.package]
version = \"0.3.0\"
edition = \"2024\"
rust-version = \"1.95\"
license = \"Apache-2.0\"
publish = false
[workspace.dependencies]
serde = { version = \"1.0.229\" }
sha2 = \"0.11\"
";

    const GOOD: &str = "
[package]
name = \"a\"
description = \"A.\"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
publish.workspace = true
[dependencies]
serde = { workspace = true, features = [\"derive\"] }
sha2.workspace = true
";

    fn check(manifest: &str) -> Vec<String> {
        findings_of_manifests(
            "manifests",
            &House::default(),
            &[("Cargo.toml", ROOT), ("crates/a/Cargo.toml", manifest)],
        )
    }

    #[test]
    fn a_member_that_inherits_all_passes() {
        assert_eq!(check(GOOD), [""; 0]);
    }

    #[test]
    fn each_line_that_is_missing_or_says_something_else_is_found() {
        for (line, key) in [
            ("version.workspace = true", "0.0.0 as version"),
            ("edition.workspace = true", "2015 as edition"),
            ("rust-version.workspace = true", "nothing as rust-version"),
            ("license.workspace = true", "nothing as license"),
            ("publish.workspace = true", "true as publish"),
            ("description = \"A.\"", "lacks a description"),
        ] {
            let found = check(&GOOD.replacen(&format!("\n{line}\n"), "\n", 1));
            assert!(found.len() == 1 && found[0].contains(key), "without {line}: {found:?}");
        }
        let found = check(&GOOD.replace("license.workspace = true", "license = \"MIT\""));
        assert!(found.len() == 1 && found[0].contains("says MIT as license"), "{found:?}");
    }

    #[test]
    fn a_version_of_its_own_is_found_in_every_kind_of_section() {
        for section in ["dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let found = check(&format!("{GOOD}[{section}]\nregex = \"1\"\n"));
            assert!(found.len() == 1 && found[0].contains("regex ^1: put the version"), "{section}: {found:?}");
        }
        let found = check(&GOOD.replace("sha2.workspace = true", "sha2 = \"0.10\""));
        assert!(found.len() == 1 && found[0].contains("sha2 ^0.10: put the version"), "{found:?}");
        let own = "[dev-dependencies]\na = { path = \".\" }\n";
        assert_eq!(check(&format!("{GOOD}{own}")), [""; 0]);
    }
}
