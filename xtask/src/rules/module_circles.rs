//! The modules of a crate use each other in one direction: no circle leads from a module over others back to itself.
//!
//! A module here is a file or a folder directly below `src`. It uses another one where a path outside of tests names it:
//! `crate::x::..`, the same over `super`, or a name that the crate's root makes public for it. The root itself, which names all
//! of its modules, is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::house::House;
use crate::source::{Kind, Source};
use crate::tree::{File, Tree};

/// For a module, the modules that it uses, each with a place where it does.
type Uses = BTreeMap<String, BTreeMap<String, Place>>;

/// A file and a line.
type Place = (String, usize);

pub fn check(tree: &Tree, _: &House, findings: &mut Findings) {
    let mut crates: BTreeMap<&str, Vec<(&str, &File)>> = BTreeMap::new();
    for file in tree.rust().filter(|file| !file.is_test) {
        if let Some((of, within)) = file.path.split_once("/src/") {
            crates.entry(of).or_default().push((within, file));
        }
    }
    for (of, files) in crates {
        let uses = uses(&files);
        for circle in circles(&uses) {
            report(of, &circle, &uses, findings);
        }
    }
}

/// One finding a circle, at the first use that is part of it, with all that are.
fn report(of: &str, circle: &BTreeSet<String>, uses: &Uses, findings: &mut Findings) {
    let mut edges = Vec::new();
    let mut first = None;
    for module in circle {
        for (used, (path, line)) in uses.get(module).into_iter().flatten().filter(|(used, _)| circle.contains(*used)) {
            let short = path.rsplit("/src/").next().unwrap_or(path);
            edges.push(format!("{module} uses {used} ({short}:{line})"));
            first.get_or_insert((path, *line));
        }
    }
    if let Some((path, line)) = first {
        let text = format!(
            "{} modules of {of} use each other in a circle: {}; move what they share to a module below them",
            circle.len(),
            edges.join(", ")
        );
        findings.add(path, line, text);
    }
}

/// What the modules of a crate use of each other.
fn uses(files: &[(&str, &File)]) -> Uses {
    let modules: BTreeSet<&str> = files.iter().map(|(within, _)| top(within)).filter(|name| !is_root(name)).collect();
    let roots = files.iter().filter(|(within, _)| is_root(top(within)));
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for path in roots.flat_map(|(_, file)| paths(&file.source)) {
        let names: Vec<&String> = path.names.iter().filter(|name| !matches!(name.as_str(), "crate" | "self")).collect();
        if let [module, .., _] = names.as_slice()
            && modules.contains(module.as_str())
            && path.is_use
        {
            shown.insert(path.name, (*module).clone());
        }
    }
    let mut uses = Uses::new();
    for (within, file) in files.iter().filter(|(within, _)| !is_root(top(within))) {
        let depth = within.trim_end_matches(".rs").trim_end_matches("/mod").split('/').count();
        for path in paths(&file.source) {
            let Some(name) = path.below_root(depth) else { continue };
            let used = if modules.contains(name) { Some(name) } else { shown.get(name).map(String::as_str) };
            if let Some(used) = used.filter(|used| *used != top(within)) {
                let place = (file.path.clone(), path.line);
                uses.entry(top(within).to_owned()).or_default().entry(used.to_owned()).or_insert(place);
            }
        }
    }
    uses
}

fn is_root(module: &str) -> bool {
    matches!(module, "lib" | "main")
}

/// The module right below `src` that a file belongs to.
fn top(within: &str) -> &str {
    within.split('/').next().unwrap_or(within).trim_end_matches(".rs")
}

/// A path as it is written.
struct Path {
    names: Vec<String>,
    /// What it is called where it stands: its last name, or that behind `as`.
    name: String,
    line: usize,
    /// Whether it is one of a `use`.
    is_use: bool,
}

impl Path {
    /// Its first name below the crate's root, where it begins there; `depth`: that of the module that it stands in.
    fn below_root(&self, depth: usize) -> Option<&str> {
        let above = self.names.iter().take_while(|name| *name == "super").count();
        let first = match self.names.first()?.as_str() {
            "crate" => self.names.get(1),
            "super" if above >= depth => self.names.get(above),
            _ => None,
        };
        first.map(String::as_str)
    }
}

/// Every path outside of tests: those of `use` in full, and others that begin at `crate` or `super`.
fn paths(source: &Source) -> Vec<Path> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(token) = source.tokens.get(at) {
        let is_use = token.kind == Kind::Word && token.text == "use";
        let follows = [1, 2].iter().all(|back| source.text(at.checked_sub(*back)) == ":");
        let starts = matches!(token.text.as_str(), "crate" | "super") && !follows;
        if token.test || !(is_use || starts) {
            at += 1;
            continue;
        }
        at = read(source, at + usize::from(is_use), &[], is_use, &mut all).max(at + 1);
    }
    all
}

/// Reads one path, or a tree of them, that begins at `at` below `before`; the place behind it.
fn read(source: &Source, mut at: usize, before: &[String], is_use: bool, all: &mut Vec<Path>) -> usize {
    let mut names = before.to_vec();
    let line = source.tokens.get(at).map_or(0, |token| token.line);
    loop {
        match source.tokens.get(at) {
            Some(token) if token.kind == Kind::Word && token.text != "as" => names.push(token.text.clone()),
            Some(token) if token.text == "*" => names.push(token.text.clone()),
            Some(token) if is_use && token.text == "{" => {
                let Kind::Open { close } = token.kind else { return at + 1 };
                at += 1;
                while at < close {
                    at = read(source, at, &names, is_use, all) + 1;
                }
                return close + 1;
            }
            // A leading `::`.
            Some(token) if token.text == ":" && names.is_empty() => {
                at += 1;
                continue;
            }
            _ => break,
        }
        at += 1;
        if source.text(Some(at)) != ":" || source.text(Some(at + 1)) != ":" {
            break;
        }
        at += 2;
    }
    let mut name = names.last().cloned().unwrap_or_default();
    if is_use && source.text(Some(at)) == "as" {
        source.text(Some(at + 1)).clone_into(&mut name);
        at += 2;
    }
    all.push(Path { names, name, line, is_use });
    at
}

/// The sets of more than one module that all reach each other.
fn circles(uses: &Uses) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &str| {
        let (mut found, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(module) = next.pop() {
            for used in uses.get(&module).into_iter().flat_map(BTreeMap::keys) {
                if found.insert(used.clone()) {
                    next.push(used.clone());
                }
            }
        }
        found
    };
    let all: BTreeMap<&String, BTreeSet<String>> = uses.keys().map(|module| (module, reached(module))).collect();
    let back = |from: &String, to: &String| all.get(to).is_some_and(|reached| reached.contains(from));
    let circle = |from: &String| all[from].iter().filter(|to| back(from, to)).cloned().collect::<BTreeSet<_>>();
    all.keys().map(|module| circle(module)).filter(|circle| circle.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        findings("module-circles", &House::default(), files)
    }

    const LIB: (&str, &str) = ("crates/a/src/lib.rs", "mod b; mod c; mod d; pub use d::{D, E as F};");

    #[test]
    fn a_circle_is_found_over_every_kind_of_path() {
        let to_c = ("crates/a/src/b/deep.rs", "use super::super::{d::Other, c::C};");
        let all = [
            "use crate::b::B;",
            "use super::b;",
            "fn f() { crate::b::f() }",
            "impl super::b::T for C {}",
            "struct C { b: crate::b::B }",
        ];
        for back in all {
            let found = check(&[LIB, to_c, ("crates/a/src/c.rs", back)]);
            assert_eq!(found.len(), 1, "{back}: {found:?}");
            assert!(found[0].starts_with("crates/a/src/b/deep.rs:1: 2 modules"), "{found:?}");
            assert!(found[0].contains("b uses c (b/deep.rs:1)") && found[0].contains("c uses b (c.rs:1)"), "{found:?}");
        }
        let over_the_root = ("crates/a/src/b/mod.rs", "use crate::{F, std_like};");
        assert_eq!(check(&[LIB, over_the_root, ("crates/a/src/d.rs", "use crate::b;")]).len(), 1);
        let three = [LIB, to_c, ("crates/a/src/c.rs", "use crate::d;"), ("crates/a/src/d.rs", "use crate::b;")];
        assert!(check(&three)[0].contains("3 modules"));
    }

    #[test]
    fn one_direction_and_tests_are_no_circle() {
        let to_c = ("crates/a/src/b/mod.rs", "use crate::c::C; mod deep; use self::deep::c;");
        for text in [
            "",
            "use crate::d::D;",
            "#[cfg(test)] mod tests { use crate::b::B; }",
            "use b::crate_like; fn f() { x::crate::b() }",
        ] {
            let found = check(&[LIB, to_c, ("crates/a/src/c.rs", text)]);
            assert_eq!(found, [""; 0], "{text}");
        }
        let deep = [LIB, ("crates/a/src/b/x.rs", "use super::y;"), ("crates/a/src/b/y.rs", "use super::x;")];
        assert_eq!(check(&deep), [""; 0], "within one module");
        let elsewhere = [to_c, ("crates/x/src/c.rs", "use crate::b::B;")];
        assert_eq!(check(&elsewhere), [""; 0], "another crate");
    }
}
