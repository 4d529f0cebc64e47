//! A crate uses only the crates that the table allows it: the arrows of the design, checked.

use toml::Table;

use super::Findings;
use crate::house::{Dependencies, House, PATH};
use crate::tree::Tree;

/// The prefix of the names of the workspace's libraries.
const PREFIX: &str = "tare-";

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let members: Vec<&str> = tree.manifests().map(|(name, _)| name).collect();
    for (name, file) in tree.manifests() {
        let manifest: Table = match toml::from_str(&file.text) {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.add(&file.path, 0, format!("is not valid TOML: {error}"));
                continue;
            }
        };
        if !is_known(&house.dependencies, name) {
            findings.add(&file.path, 0, format!("{name} is not in the table: say in {PATH} what it may use"));
            continue;
        }
        for (dependency, for_tests) in local_dependencies(&manifest) {
            if let Err(why) = judge(&house.dependencies, name, &dependency, for_tests) {
                let line = file.text.lines().position(|line| line.starts_with(&format!("{PREFIX}{dependency}")));
                findings.add(&file.path, line.map_or(0, |line| line + 1), why);
            }
        }
    }
    for name in house.dependencies.allowed.keys().filter(|name| !members.contains(&name.as_str())) {
        findings.add(PATH, 0, format!("allows {name}, which is no member of the workspace: remove it"));
    }
}

fn is_known(table: &Dependencies, name: &str) -> bool {
    table.allowed.contains_key(name) || table.unrestricted.iter().any(|free| free == name)
}

/// Whether crate `name` may use `dependency`, and why not.
fn judge(table: &Dependencies, name: &str, dependency: &str, for_tests: bool) -> Result<(), String> {
    let listed = |list: &[String], wanted: &str| list.iter().any(|entry| entry == wanted);
    if for_tests && !listed(&table.strict, name) {
        return Ok(());
    }
    if listed(&table.dev_only, dependency) && !listed(&table.dev_only, name) {
        return Err(format!("{name} uses {dependency}, which is for tests: make it a dev-dependency"));
    }
    let allowed = table.allowed.get(name).map(Vec::as_slice).unwrap_or_default();
    if listed(&table.unrestricted, name) || listed(allowed, dependency) {
        return Ok(());
    }
    let may = if allowed.is_empty() { "no other crate".to_owned() } else { allowed.join(", ") };
    Err(format!("{name} may not use {dependency}; it may use {may}"))
}

/// The workspace's crates that a manifest depends on, without the prefix, and whether for tests only.
fn local_dependencies(manifest: &Table) -> Vec<(String, bool)> {
    let mut sections = vec![manifest];
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    sections.extend(targets.into_iter().flat_map(|table| table.values().filter_map(toml::Value::as_table)));
    let mut found = Vec::new();
    for section in sections {
        for (key, for_tests) in [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)] {
            let Some(dependencies) = section.get(key).and_then(toml::Value::as_table) else { continue };
            for (name, value) in dependencies {
                // A dependency may be renamed: `wire = { package = "tare-wire" }`.
                let name = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
                found.extend(name.strip_prefix(PREFIX).map(|short| (short.to_owned(), for_tests)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    fn house() -> House {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let allowed = [("model", &[][..]), ("wire", &["model"]), ("lab", &["model"])];
        House {
            dependencies: Dependencies {
                unrestricted: list(&["testkit"]),
                dev_only: list(&["testkit"]),
                strict: list(&["model"]),
                allowed: allowed.iter().map(|(name, uses)| ((*name).to_owned(), list(uses))).collect(),
            },
            ..House::default()
        }
    }

    /// The findings when `name` has this manifest and the other crates an empty one.
    fn check(name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{name}/Cargo.toml");
        let others = ["model", "wire", "lab"].map(|other| format!("crates/{other}/Cargo.toml"));
        let mut files: Vec<(&str, &str)> =
            others.iter().filter(|other| **other != path).map(|other| (other.as_str(), "")).collect();
        files.push((&path, manifest));
        findings("dependencies", &house(), &files)
    }

    #[test]
    fn what_the_table_allows_passes() {
        assert_eq!(check("wire", "[dependencies]\nserde = \"1\"\ntare-model.workspace = true"), [""; 0]);
        assert_eq!(
            check("wire", "[dev-dependencies]\ntare-lab.workspace = true\ntare-testkit.workspace = true"),
            [""; 0]
        );
        assert_eq!(check("testkit", "[dependencies]\ntare-lab.workspace = true"), [""; 0]);
    }

    #[test]
    fn what_it_does_not_allow_is_found_in_every_kind_of_section() {
        for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let found = check("wire", &format!("[{section}]\ntare-lab.workspace = true"));
            assert_eq!(found, ["crates/wire/Cargo.toml:2: wire may not use lab; it may use model [dependencies]"]);
        }
    }

    #[test]
    fn renaming_hides_nothing() {
        let found = check("wire", "[dependencies]\nbench = { package = \"tare-lab\", path = \"../lab\" }");
        assert!(found[0].contains("may not use lab"), "{found:?}");
    }

    #[test]
    fn the_model_knows_nobody_even_in_tests() {
        let found = check("model", "[dev-dependencies]\ntare-wire.workspace = true");
        assert!(found[0].contains("it may use no other crate"), "{found:?}");
    }

    #[test]
    fn the_testkit_is_for_tests() {
        let found = check("wire", "[dependencies]\ntare-testkit.workspace = true");
        assert!(found[0].contains("make it a dev-dependency"), "{found:?}");
    }

    #[test]
    fn the_table_and_the_workspace_name_the_same_crates() {
        assert!(check("novel", "")[0].contains("novel is not in the table"));
        let gone =
            findings("dependencies", &house(), &[("crates/model/Cargo.toml", ""), ("crates/wire/Cargo.toml", "")]);
        assert_eq!(
            gone,
            ["xtask/house.toml: allows lab, which is no member of the workspace: remove it [dependencies]"]
        );
    }
}
