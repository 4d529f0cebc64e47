//! A crate uses only the crates that the table allows it: the arrows of the design, checked.

use cargo_metadata::DependencyKind;

use super::Findings;
use crate::house::{Dependencies, House, PATH};
use crate::tree::Tree;

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let table = &house.dependencies;
    for package in tree.packages() {
        let (name, path) = (short(&package.name), package.manifest_path.as_str());
        if !table.allowed.contains_key(name) && !table.unrestricted.iter().any(|free| free == name) {
            findings.add(path, 0, format!("{name} is not in the table: say in {PATH} what it may use"));
            continue;
        }
        for dependency in &package.dependencies {
            let (used, for_tests) = (short(&dependency.name), dependency.kind == DependencyKind::Development);
            if let (true, Err(why)) = (dependency.path.is_some(), judge(table, name, used, for_tests)) {
                findings.add(path, 0, why);
            }
        }
    }
    let is_member = |name: &str| tree.packages().iter().any(|package| short(&package.name) == name);
    for name in table.allowed.keys().filter(|name| !is_member(name)) {
        findings.add(PATH, 0, format!("allows {name}, which is no member of the workspace: remove it"));
    }
}

/// Name of a member without the prefix of the workspace's libraries.
fn short(name: &str) -> &str {
    name.strip_prefix("tare-").unwrap_or(name)
}

/// Whether crate `name` may use `dependency`, and why not.
fn judge(table: &Dependencies, name: &str, dependency: &str, for_tests: bool) -> Result<(), String> {
    let listed = |list: &[String], wanted: &str| list.iter().any(|entry| entry == wanted);
    // A crate names itself to give its own tests a feature.
    if name == dependency || for_tests && !listed(&table.strict, name) {
        return Ok(());
    }
    if !for_tests && listed(&table.dev_only, dependency) && !listed(&table.dev_only, name) {
        return Err(format!("{name} uses {dependency}, which is for tests: make it a dev-dependency"));
    }
    let allowed = table.allowed.get(name).map(Vec::as_slice).unwrap_or_default();
    if listed(&table.unrestricted, name) || listed(allowed, dependency) {
        return Ok(());
    }
    let may = if allowed.is_empty() { "no other crate".to_owned() } else { allowed.join(", ") };
    Err(format!("{name} may not use {dependency}; it may use {may}"))
}

#[cfg(test)]
mod tests {
    use super::super::findings_of_manifests;
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

    /// The findings in a workspace of these crates, when `name` has this added to its manifest.
    fn check_in(crates: &[&str], name: &str, added: &str) -> Vec<String> {
        let mut root = "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n[workspace.dependencies]\n".to_owned();
        let mut members = Vec::new();
        for own in crates {
            root.push_str(&format!("tare-{own} = {{ path = \"crates/{own}\" }}\n"));
            let added = if *own == name { added } else { "" };
            let text = format!("[package]\nname = \"tare-{own}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{added}");
            members.push((format!("crates/{own}/Cargo.toml"), text));
        }
        let members = members.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        let manifests: Vec<(&str, &str)> = std::iter::once(("Cargo.toml", root.as_str())).chain(members).collect();
        findings_of_manifests("dependencies", &house(), &manifests)
    }

    fn check(name: &str, added: &str) -> Vec<String> {
        check_in(&["model", "wire", "lab", "testkit"], name, added)
    }

    #[test]
    fn what_the_table_allows_passes() {
        assert_eq!(check("wire", "[dependencies]\ntare-model.workspace = true"), [""; 0]);
        assert_eq!(
            check("wire", "[dev-dependencies]\ntare-lab.workspace = true\ntare-testkit.workspace = true"),
            [""; 0]
        );
        assert_eq!(check("testkit", "[dependencies]\ntare-lab.workspace = true"), [""; 0]);
        assert_eq!(check("model", "[dev-dependencies]\ntare-model = { path = \".\" }"), [""; 0]);
    }

    #[test]
    fn what_it_does_not_allow_is_found_in_every_kind_of_section() {
        for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let found = check("wire", &format!("[{section}]\ntare-lab.workspace = true"));
            assert_eq!(found, ["crates/wire/Cargo.toml: wire may not use lab; it may use model [dependencies]"]);
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
        let novel = check_in(&["model", "wire", "lab", "novel"], "", "");
        assert_eq!(
            novel,
            [
                "crates/novel/Cargo.toml: novel is not in the table: say in xtask/house.toml what it may use [dependencies]"
            ]
        );
        let gone = check_in(&["model", "wire"], "", "");
        assert_eq!(
            gone,
            ["xtask/house.toml: allows lab, which is no member of the workspace: remove it [dependencies]"]
        );
    }
}
