//! No code reaches into a workload's folder from outside of it, so that adding or removing one touches its folder and two lines.
//!
//! Each sub-folder of a workload that `workloads.parts` names is compiled into the crate that it gives. What is looked for, outside
//! tests and in these crates: a path through the module of such a part, from the root of its crate (`crate::store::...`) or from the
//! list of workloads (`workloads::store::...`).
//!
//! A workload's tests are compiled where a `#[path]` names them, in the workload's own folder or in a crate: one that nothing names
//! would be lost without a word. `tests/trial.rs` needs no name: `crates/tare/build.rs` finds it.

use std::collections::BTreeSet;

use super::Findings;
use crate::house::House;
use crate::source::Source;
use crate::tree::Tree;

/// Tests of a workload that a build script finds.
const FOUND: &str = "/tests/trial.rs";

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let folder = format!("{}/", house.workloads.folder);
    let of_workload =
        |path: &str| path.strip_prefix(&folder)?.split_once('/').map(|(_, rest)| rest.starts_with("tests/"));
    for test in tree.rust().filter(|file| of_workload(&file.path) == Some(true) && !file.path.ends_with(FOUND)) {
        if !is_named(tree, &test.path) {
            findings.add(
                &test.path,
                0,
                "is compiled nowhere: name it by a #[path] in its workload, or in the tests of a crate",
            );
        }
    }
    for (part, its_crate) in &house.workloads.parts {
        // Workload, part, and the rest of the path.
        let split = |path: &'_ str| -> Option<(String, bool)> {
            let (name, rest) = path.strip_prefix(&folder)?.split_once('/')?;
            Some((name.to_owned(), rest.starts_with(&format!("{part}/"))))
        };
        let here = |path: &str| path.starts_with(its_crate) || split(path).is_some_and(|(_, in_part)| in_part);
        let names: BTreeSet<String> = tree
            .rust()
            .filter_map(|file| split(&file.path))
            .filter(|(_, in_part)| *in_part)
            .map(|(name, _)| name)
            .collect();
        for file in tree.rust().filter(|file| !file.is_test && here(&file.path)) {
            let own = split(&file.path).map(|(name, _)| name);
            let other = |text: &str| names.contains(text) && own.as_deref() != Some(text);
            for (at, token) in file.source.tokens.iter().enumerate() {
                let exempt = house.workloads.exempt.contains(&file.path);
                if !token.test && !exempt && other(&token.text) && is_path(&file.source, at) {
                    let text = format!(
                        "reaches into the workload `{}`: what several need lies beside the workloads",
                        token.text
                    );
                    findings.add(&file.path, token.line, text);
                }
            }
        }
    }
}

/// Whether some file names this one: by its whole path, or from a folder of the same workload.
fn is_named(tree: &Tree, test: &str) -> bool {
    let (workload, name) = test.split_once("/tests/").unwrap_or((test, ""));
    let (from_afar, from_beside) = (format!("../{test}\""), format!("../tests/{name}\""));
    tree.rust().any(|file| {
        let beside = file.path.strip_prefix(workload).is_some_and(|rest| rest.starts_with('/'));
        let names = |text: &str| text.ends_with(&from_afar) || beside && text.ends_with(&from_beside);
        file.source.tokens.iter().any(|token| names(&token.text))
    })
}

/// Whether the word at `at` is a module right below the crate or the list of workloads, on the way to something.
fn is_path(source: &Source, at: usize) -> bool {
    let before = |back: usize| source.text(at.checked_sub(back));
    let rooted = before(1) == ":" && before(2) == ":" && matches!(before(3), "crate" | "workloads");
    rooted && (1..=2).all(|next| source.text(Some(at + next)) == ":")
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;
    use crate::house::Workloads;

    fn house() -> House {
        let exempt = vec!["crates/workload/src/workloads.rs".to_owned()];
        let parts = [("host", "crates/workload/"), ("agent", "crates/driver/")];
        let parts = parts.map(|(part, its_crate)| (part.to_owned(), its_crate.to_owned())).into();
        House {
            workloads: Workloads { folder: "workloads".into(), parts, exempt, ..Workloads::default() },
            ..House::default()
        }
    }

    fn check_at(path: &str, text: &str) -> Vec<String> {
        let parts = ["kv/host", "store/host", "store/agent"].map(|part| format!("workloads/{part}/mod.rs"));
        let mut files: Vec<(&str, &str)> = parts.iter().map(|path| (path.as_str(), "")).collect();
        files.push((path, text));
        findings("workload-paths", &house(), &files)
    }

    #[test]
    fn a_workload_is_reached_from_its_own_folder_alone() {
        let text = "use crate::store::spec::Size;\nuse crate::fill::words;\n";
        let found = check_at("workloads/kv/agent/load.rs", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("workloads/kv/agent/load.rs:1: reaches into the workload `store`"), "{found:?}");
        assert_eq!(check_at("workloads/store/agent/load.rs", text), [""; 0]);
        assert_eq!(check_at("crates/workload/src/site.rs", "use workloads::kv::Kv;").len(), 1);
        assert_eq!(check_at("crates/workload/src/workloads.rs", "use workloads::kv::Kv;"), [""; 0]);
    }

    #[test]
    fn tests_and_other_things_of_the_name_are_left_alone() {
        // It has no part in the agent, where a module of that name is another.
        assert_eq!(check_at("crates/driver/src/crew.rs", "use crate::kv::Kv;"), [""; 0]);
        assert_eq!(check_at("crates/record/src/lib.rs", "use crate::store::Store;"), [""; 0], "another crate");
        let test = "#[cfg(test)] mod tests { use crate::store::spec; }";
        for text in [test, "fn f() { record::store::open(); self.store.get(); }", "mod store;"] {
            assert_eq!(check_at("crates/workload/src/lib.rs", text), [""; 0], "{text}");
        }
        let tests = [("workloads/kv/tests/flow.rs", "use crate::store::spec;"), ("crates/driver/tests/main.rs", "")];
        let found = |main: &'static str| findings("workload-paths", &house(), &[tests[0], (tests[1].0, main)]);
        assert_eq!(found("#[path = \"../../../workloads/kv/tests/flow.rs\"] mod kv;"), [""; 0]);
        assert!(found("mod flow;")[0].contains("is compiled nowhere"));
    }
}
