//! No platform is named outside its own folder, so that adding one touches one folder and one line.
//!
//! The names are the sub-folders of `platforms.folder`, save those of `platforms.shared`, and the further words that
//! the table gives for each. Where one platform's name means something of another's, such as a driver of a library,
//! `platforms.elsewhere` says so.
//! What is looked for, outside tests and comments:
//!
//! - Of a word that means nothing else (`crun`): any part of an identifier in snake or camel case, and any whole
//!   word of a string.
//! - Of a word that is also plain English (`native`) only what the table asks: the string that is that word and no
//!   more, a path through a module of that name, a type of that name. "Native speed" in a message names no platform.

use std::collections::BTreeSet;

use super::Findings;
use crate::house::{Everyday, House, PATH, Platforms};
use crate::source::{Kind, Source};
use crate::tree::{File, Tree};

/// A word that gives a platform away.
struct Word {
    text: String,
    /// The folder of its platform, with a `/` at the end: there it may be used.
    home: String,
    /// What is looked for, when the word has another meaning as well.
    everyday: Option<Everyday>,
}

impl Word {
    /// Whether it may be used in the file.
    fn is_at_home(&self, path: &str, table: &Platforms) -> bool {
        let elsewhere = table.elsewhere.get(&self.text);
        path.starts_with(&self.home) || elsewhere.into_iter().flatten().any(|folder| path.starts_with(folder.as_str()))
    }
}

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let table = &house.platforms;
    let names = platforms(tree, table);
    let words = words(&names, table);
    for name in table.words.keys().chain(table.everyday.keys()).filter(|name| !names.contains(*name)) {
        findings.add(PATH, 0, format!("has words for the platform {name}, which has no folder: remove them"));
    }
    for name in table.elsewhere.keys().filter(|name| !words.iter().any(|word| word.text == **name)) {
        findings.add(PATH, 0, format!("says where else {name} is used, which is no platform's word: remove it"));
    }
    for file in tree.rust().filter(|file| !file.is_test && !is_exempt(&file.path, table)) {
        for word in words.iter().filter(|word| !word.is_at_home(&file.path, table)) {
            for line in occurrences(file, word, file.path.starts_with(&table.folder)) {
                findings.add(&file.path, line, format!("names a platform outside its folder: `{}`", word.text));
            }
        }
    }
}

/// The sub-folders of the platforms' folder that are platforms.
fn platforms(tree: &Tree, table: &Platforms) -> BTreeSet<String> {
    let below = tree.rust().filter_map(|file| file.path.strip_prefix(&format!("{}/", table.folder)));
    let folders = below.filter_map(|path| path.split_once('/')).map(|(folder, _)| folder.to_owned());
    folders.filter(|folder| !table.shared.contains(folder)).collect()
}

fn words(names: &BTreeSet<String>, table: &Platforms) -> Vec<Word> {
    let mut words = Vec::new();
    for name in names {
        let home = format!("{}/{name}/", table.folder);
        let everyday = table.everyday.get(name).copied();
        words.push(Word { text: name.clone(), home: home.clone(), everyday });
        for further in table.words.get(name).into_iter().flatten() {
            words.push(Word { text: further.clone(), home: home.clone(), everyday: None });
        }
    }
    words
}

fn is_exempt(path: &str, table: &Platforms) -> bool {
    table.exempt.iter().any(|entry| if entry.ends_with('/') { path.starts_with(entry.as_str()) } else { path == entry })
}

/// The lines on which a word is used.
fn occurrences(file: &File, word: &Word, in_crate: bool) -> Vec<usize> {
    let source = &file.source;
    let uses = |at: &usize| {
        let token = &source.tokens[*at];
        match (token.kind, word.everyday) {
            _ if token.test || (in_crate && is_declaration(source, *at)) => false,
            (Kind::Word | Kind::Literal, None) => parts(&token.text).contains(&word.text),
            (Kind::Literal, Some(asked)) => asked.literal && quoted(&token.text) == Some(&word.text),
            (Kind::Word, Some(asked)) => {
                (asked.type_name && token.text == camel_case(&word.text))
                    || (asked.module && token.text == word.text && is_module(source, *at, in_crate))
            }
            _ => false,
        }
    };
    (0..source.tokens.len()).filter(uses).map(|at| source.tokens[at].line).collect()
}

/// Whether the word at `at` stands in `mod word;`: a folder has to be declared beside the registry.
fn is_declaration(source: &Source, at: usize) -> bool {
    source.text(at.checked_sub(1)) == "mod" && source.text(Some(at + 1)) == ";"
}

/// Whether the word at `at` is the platform's module on the way to something. Within the platforms' crate that is any
/// path through a module of the name; elsewhere, where a module of one's own may have it, a path that comes from there.
fn is_module(source: &Source, at: usize, in_crate: bool) -> bool {
    // `end` is where the second colon after the crate's name would be.
    let follows_crate = |end: Option<usize>| {
        let named = matches!(source.text(end.and_then(|end| end.checked_sub(2))), "platform" | "tare_platform");
        named && source.text(end) == ":"
    };
    let open = (0..at).rev().find(|&before| matches!(source.tokens[before].kind, Kind::Open { close } if close > at));
    let in_group = open.filter(|&open| source.text(Some(open)) == "{").and_then(|open| open.checked_sub(1));
    // `value::<u8>()` is a function with its type.
    let leads_on = (1..=2).all(|next| source.text(Some(at + next)) == ":") && source.text(Some(at + 3)) != "<";
    (in_crate && leads_on) || follows_crate(at.checked_sub(1)) || follows_crate(in_group)
}

/// The text of a plain string literal.
pub(super) fn quoted(literal: &str) -> Option<&str> {
    let start = literal.find('"')?;
    let end = literal.rfind('"').filter(|&end| end > start)?;
    literal.get(start + 1..end)
}

/// The lower-case words of an identifier or a text: `runRunc_v2` gives run, runc, v2.
pub(super) fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for character in text.chars() {
        let begins = !character.is_alphanumeric() || (character.is_uppercase() && before.is_lowercase());
        if begins {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| character.is_alphanumeric()) {
            part.extend(character.to_lowercase());
        }
        before = character;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn camel_case(word: &str) -> String {
    let capital = |part: &str| {
        part.char_indices().map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c }).collect::<String>()
    };
    word.split('_').map(capital).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::findings;
    use super::*;

    fn house() -> House {
        let all = Everyday { literal: true, module: true, type_name: true };
        House {
            platforms: Platforms {
                folder: "crates/platform/src".into(),
                exempt: vec!["crates/platform/src/registry.rs".into(), "crates/testkit/".into()],
                words: BTreeMap::from([("oci".into(), vec!["crun".into()])]),
                everyday: BTreeMap::from([("native".into(), all)]),
                shared: vec!["rootfs".into()],
                elsewhere: BTreeMap::from([("crun".into(), vec!["crates/image/".into()])]),
            },
            ..House::default()
        }
    }

    fn check_at(path: &str, text: &str) -> Vec<String> {
        let folders = [("crates/platform/src/oci/mod.rs", "struct Crun;"), ("crates/platform/src/native/mod.rs", "")];
        findings("platform-names", &house(), &[folders[0], folders[1], (path, text)])
    }

    fn found(text: &str) -> bool {
        !check_at("crates/controller/src/lib.rs", text).is_empty()
    }

    #[test]
    fn a_distinctive_word_is_found_in_identifiers_and_strings() {
        for text in [
            "fn start_crun() {}",
            "struct OciSpec;",
            "const A: &str = \"install crun first\";",
            "let x = format!(\"{crun} now\");",
            "use platform::oci;",
        ] {
            assert!(found(text), "{text}");
        }
        for text in
            ["// crun\n/// crun\nstruct A;", "struct Society;", "fn scrunch() {}", "const A: &str = \"crunch\";"]
        {
            assert!(!found(text), "{text}");
        }
    }

    #[test]
    fn an_everyday_word_is_found_only_where_it_names_the_platform() {
        for text in [
            "if name == \"native\" {}",
            "tare_platform::native::start();",
            "use tare_platform::{model, native};",
            "use tare_platform::{native::Guest};",
            "Kind::Native;",
        ] {
            assert!(found(text), "{text}");
        }
        for text in [
            "let native = 1;",
            "\"native speed\";",
            "x.native();",
            "native::<u8>();",
            "struct NativeEndian;",
            "mod native; native::own();",
        ] {
            assert!(!found(text), "{text}");
        }
    }

    #[test]
    fn a_platform_may_be_named_at_home_in_the_registry_and_in_tests_and_nowhere_else() {
        let names = "fn crun() {}";
        for path in [
            "crates/platform/src/oci/run.rs",
            "crates/platform/src/registry.rs",
            "crates/testkit/src/lib.rs",
            "crates/tare/tests/e2e.rs",
        ] {
            assert_eq!(check_at(path, names), [""; 0], "{path}");
        }
        assert_eq!(check_at("crates/tare/src/main.rs", "#[cfg(test)] mod tests { fn crun() {} }"), [""; 0]);
        assert_eq!(check_at("crates/platform/src/native/mod.rs", names).len(), 1);
        assert_eq!(check_at("crates/platform/src/lib.rs", names).len(), 1);
        assert_eq!(check_at("crates/platform/src/lib.rs", "mod oci; mod native;"), [""; 0]);
        assert_eq!(check_at("crates/platform/src/lib.rs", "fn f() { native::start() }").len(), 1);
    }

    #[test]
    fn what_platforms_share_is_no_platform_and_a_word_may_mean_something_elsewhere() {
        let shared = "crates/platform/src/rootfs/mod.rs";
        assert_eq!(check_at(shared, "fn f() { rootfs() }"), [""; 0]);
        assert_eq!(check_at(shared, "fn crun() {}").len(), 1);
        assert_eq!(check_at("crates/image/src/lib.rs", "fn crun() {}"), [""; 0]);
        let mut house = house();
        house.platforms.elsewhere.insert("gone".into(), vec!["crates/image/".into()]);
        let files = [("crates/platform/src/oci/mod.rs", ""), ("crates/platform/src/native/mod.rs", "")];
        assert!(findings("platform-names", &house, &files)[0].contains("says where else gone is used"));
    }

    #[test]
    fn words_of_a_platform_that_is_gone_are_found() {
        let gone = findings("platform-names", &house(), &[("crates/platform/src/oci/mod.rs", "")]);
        assert_eq!(gone.len(), 1);
        assert!(gone[0].contains("native, which has no folder"), "{gone:?}");
    }
}
