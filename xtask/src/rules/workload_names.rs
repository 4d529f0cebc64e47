//! Analysis and report name no workload: what only one of them can say, its view says.
//!
//! The names are the sub-folders of `workloads.folder`; the crates are those of `workloads.nameless`. Outside tests and comments no word of
//! a string and no part of an identifier may be one. Of a name that is also plain English (`workloads.everyday`) only the string that is
//! that word and no more is looked for; one that means something else in these crates (`workloads.elsewhere`) is left alone.

use std::collections::BTreeSet;

use super::Findings;
use super::platform_names::{parts, quoted};
use crate::house::House;
use crate::source::Kind;
use crate::tree::Tree;

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let table = &house.workloads;
    let below = tree.rust().filter_map(|file| file.path.strip_prefix(&format!("{}/", table.folder)));
    let names = below.filter_map(|path| Some(path.split_once('/')?.0));
    let names: BTreeSet<&str> = names.filter(|name| table.elsewhere.iter().all(|own| own != name)).collect();
    let held = |path: &str| table.nameless.iter().any(|folder| path.starts_with(folder.as_str()));
    for file in tree.rust().filter(|file| !file.is_test && held(&file.path)) {
        for token in file.source.tokens.iter().filter(|token| !token.test) {
            let uses = |name: &&&str| match token.kind {
                Kind::Literal if table.everyday.iter().any(|own| own == **name) => quoted(&token.text) == Some(**name),
                Kind::Word | Kind::Literal if table.everyday.iter().all(|own| own != **name) => {
                    parts(&token.text).iter().any(|part| part == **name)
                }
                _ => false,
            };
            if let Some(name) = names.iter().find(uses) {
                findings.add(
                    &file.path,
                    token.line,
                    format!("names the workload `{name}`: its own view says what only it has"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;
    use crate::house::Workloads;

    fn check_at(path: &str, text: &str) -> Vec<String> {
        let workloads = Workloads {
            folder: "workloads".into(),
            nameless: vec!["crates/report/src/".into()],
            everyday: vec!["store".into()],
            ..Workloads::default()
        };
        let house = House { workloads, ..House::default() };
        let folders = [("workloads/java/host/mod.rs", ""), ("workloads/store/host/mod.rs", ""), (path, text)];
        findings("workload-names", &house, &folders)
    }

    #[test]
    fn names_are_found_in_the_crates_that_must_not_know_them() {
        for text in ["const A: &str = \"a Java machine\";", "fn of_java() {}", "if name == \"store\" {}"] {
            assert_eq!(check_at("crates/report/src/lib.rs", text).len(), 1, "{text}");
            assert_eq!(check_at("crates/import/src/lib.rs", text), [""; 0], "{text}");
        }
        for text in ["let store = \"they store it\";", "// java", "#[cfg(test)] mod tests { fn java() {} }"] {
            assert_eq!(check_at("crates/report/src/lib.rs", text), [""; 0], "{text}");
        }
    }
}
