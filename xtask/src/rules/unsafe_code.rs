//! `unsafe` stands in small files of its own, where a reader knows to look for it.
//!
//! That each block says why it is sound is clippy's to check (`undocumented_unsafe_blocks`).

use super::Findings;
use crate::house::{House, PATH};
use crate::tree::{File, Tree};

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let table = &house.unsafe_code;
    for file in tree.rust() {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let may = table.file_names.iter().any(|allowed| allowed == name)
            || table.files.iter().any(|entry| entry.path == file.path);
        for line in lines(file).into_iter().filter(|_| !may) {
            findings.add(&file.path, line, format!("unsafe outside {}", table.file_names.join(", ")));
        }
    }
    for entry in &table.files {
        let used = tree.get(&entry.path).is_some_and(|file| !lines(file).is_empty());
        if !used {
            findings.add(PATH, 0, format!("lets {} be unsafe, which it is not: remove it", entry.path));
        } else if entry.reason.trim().is_empty() {
            findings.add(PATH, 0, format!("gives no reason why {} may be unsafe", entry.path));
        }
    }
}

/// The lines of a file that open something unsafe; `unsafe_op_in_unsafe_fn` and the like are other words.
fn lines(file: &File) -> Vec<usize> {
    file.source.tokens.iter().filter(|token| token.text == "unsafe").map(|token| token.line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;
    use crate::house::{Reasoned, UnsafeCode};

    fn check(exceptions: &[(&str, &str)], path: &str, text: &str) -> Vec<String> {
        let files = exceptions.iter().map(|(path, reason)| Reasoned { path: (*path).into(), reason: (*reason).into() });
        let unsafe_code = UnsafeCode { file_names: vec!["sys.rs".into()], files: files.collect() };
        findings("unsafe-code", &House { unsafe_code, ..House::default() }, &[(path, text)])
    }

    #[test]
    fn unsafe_is_found_in_every_form_and_word_is_not() {
        for text in [
            "unsafe fn f() {}",
            "fn f() { unsafe { g() } }",
            "unsafe impl Send for A {}",
            "#[unsafe(no_mangle)] fn f() {}",
        ] {
            assert_eq!(check(&[], "src/a.rs", text), ["src/a.rs:1: unsafe outside sys.rs [unsafe-code]"], "{text}");
            assert_eq!(check(&[], "src/sys.rs", text), [""; 0], "{text}");
        }
        assert_eq!(check(&[], "src/a.rs", "// unsafe\nconst A: &str = \"unsafe\"; fn unsafe_f() {}"), [""; 0]);
    }

    #[test]
    fn an_exception_needs_a_reason_and_a_use() {
        let unsafe_text = "unsafe fn f() {}";
        assert_eq!(check(&[("src/a.rs", "hot loop")], "src/a.rs", unsafe_text), [""; 0]);
        assert!(check(&[("src/a.rs", "")], "src/a.rs", unsafe_text)[0].contains("gives no reason"));
        assert!(check(&[("src/a.rs", "hot loop")], "src/a.rs", "")[0].contains("remove it"));
        assert!(check(&[("src/b.rs", "hot loop")], "src/a.rs", "")[0].contains("remove it"));
    }
}
