//! The tests of each crate use the libraries that the tests of all crates use: with the same features, so that cargo compiles each once.
//!
//! One crate asks for all libraries with all features, and each other crate has it for its tests.

use cargo_metadata::{Dependency, DependencyKind};

use super::Findings;
use crate::house::House;
use crate::tree::Tree;

/// The crate that asks for all of them.
const ALL: &str = "tare-libraries";

pub fn check(tree: &Tree, _house: &House, findings: &mut Findings) {
    let Some(all) = tree.packages().iter().find(|package| *package.name == ALL) else { return };
    for package in tree.packages().iter().filter(|package| package.name != all.name) {
        let path = package.manifest_path.as_str();
        let has_it = |used: &Dependency| used.name == ALL && used.kind == DependencyKind::Development;
        if !package.dependencies.iter().any(has_it) {
            findings.add(
                path,
                0,
                format!("lacks the dev-dependency {ALL}: its tests would compile their libraries anew"),
            );
        }
        for used in package.dependencies.iter().filter(|used| used.path.is_none()) {
            let offered = all.dependencies.iter().find(|offered| offered.name == used.name);
            if let Some(lacks) = lacking(offered, used) {
                findings.add(all.manifest_path.as_str(), 0, format!("{lacks}, which {path} asks for"));
            }
        }
    }
}

/// What of a library that a crate uses is not asked for.
fn lacking(offered: Option<&Dependency>, used: &Dependency) -> Option<String> {
    let name = &used.name;
    let Some(offered) = offered else { return Some(format!("lacks {name}")) };
    if used.uses_default_features && !offered.uses_default_features {
        return Some(format!("lacks the default features of {name}"));
    }
    let feature = used.features.iter().find(|feature| !offered.features.contains(feature))?;
    Some(format!("lacks the feature {feature} of {name}"))
}

#[cfg(test)]
mod tests {
    use super::super::findings_of_manifests;
    use super::*;

    /// The findings where crate `a` has these sections, and the libraries are asked for with these lines.
    fn check(a: &str, libraries: &str) -> Vec<String> {
        let package = |name: &str| format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n");
        let all = format!("{}[dependencies]\n{libraries}\n", package(ALL));
        let manifests = [
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n"),
            ("crates/a/Cargo.toml", &format!("{}{a}", package("a"))),
            ("crates/libraries/Cargo.toml", &all),
        ];
        findings_of_manifests("libraries", &House::default(), &manifests)
    }

    const HAS_IT: &str = "[dev-dependencies]\ntare-libraries = { path = \"../libraries\" }\n";

    #[test]
    fn a_crate_that_would_compile_libraries_anew_is_found() {
        assert_eq!(check(HAS_IT, ""), [""; 0]);
        let found = check("", "");
        assert!(found.len() == 1 && found[0].starts_with("crates/a/Cargo.toml: lacks the dev-dependency"), "{found:?}");
    }

    #[test]
    fn what_a_crate_asks_for_beside_the_list_is_found() {
        let uses = format!("{HAS_IT}[dependencies]\nb = {{ version = \"1\", features = [\"c\"] }}\n");
        assert_eq!(check(&uses, "b = { version = \"1\", features = [\"c\", \"d\"] }"), [""; 0]);
        let cases = [
            ("", "lacks b,"),
            ("b = \"1\"", "lacks the feature c of b,"),
            (
                "b = { version = \"1\", default-features = false, features = [\"c\"] }",
                "lacks the default features of b,",
            ),
        ];
        for (libraries, what) in cases {
            let found = check(&uses, libraries);
            assert!(found.len() == 1 && found[0].contains(what) && found[0].contains("crates/a/"), "{found:?}");
        }
    }
}
