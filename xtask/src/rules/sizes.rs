//! Files have one subject; the exceptions of the table only shrink. How long a function may be, clippy checks.
//!
//! A file's test modules do not count towards its limit.

use std::collections::BTreeMap;

use super::Findings;
use crate::house::{House, SizeException};
use crate::ratchet::{self, Exception};
use crate::tree::{File, Tree};

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let limits = &house.sizes;
    for (is_test, limit) in [(false, limits.file_lines), (true, limits.test_file_lines)] {
        let files = tree.rust().filter(|file| file.is_test == is_test);
        let measured: BTreeMap<String, usize> = files.map(|file| (file.path.clone(), file_lines(file))).collect();
        // An exception for a file that is gone is one for a file that is no test.
        let of_test = |entry: &&SizeException| tree.get(&entry.path).is_some_and(|file| file.is_test) == is_test;
        let exceptions: Vec<Exception<'_>> = limits
            .files
            .iter()
            .filter(of_test)
            .map(|entry| Exception { subject: entry.path.clone(), size: entry.lines, reason: &entry.reason })
            .collect();
        for (path, complaint) in ratchet::compare(&measured, limit, "lines", &exceptions) {
            findings.add(&path, 0, format!("the file {complaint}"));
        }
    }
}

/// Lines of a file; the test items within count only where the whole file is tests.
fn file_lines(file: &File) -> usize {
    let all = file.text.lines().count();
    if file.is_test { all } else { all - file.source.test_lines() }
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;
    use crate::house::Sizes;

    fn check(files: Vec<SizeException>, path: &str, text: &str) -> Vec<String> {
        let sizes = Sizes { file_lines: 8, test_file_lines: 12, files };
        findings("sizes", &House { sizes, ..House::default() }, &[(path, text)])
    }

    fn exception(path: &str, lines: usize) -> Vec<SizeException> {
        vec![SizeException { path: path.into(), lines, reason: "a table".into() }]
    }

    #[test]
    fn a_file_is_measured_without_its_tests() {
        let tests = "#[cfg(test)]\nmod tests {\n\n\n\n}\n";
        assert_eq!(check(vec![], "src/a.rs", &format!("{}{tests}", "\n".repeat(8))), [""; 0]);
        let found = check(vec![], "src/a.rs", &format!("{}{tests}", "\n".repeat(9)));
        assert_eq!(found, ["src/a.rs: the file has 9 lines; the limit is 8 [sizes]"]);
    }

    #[test]
    fn files_of_tests_have_a_limit_of_their_own() {
        assert_eq!(check(vec![], "tests/a.rs", &"\n".repeat(12)), [""; 0]);
        assert_eq!(check(vec![], "tests/a.rs", &"\n".repeat(13)).len(), 1);
        assert_eq!(check(exception("tests/a.rs", 13), "tests/a.rs", &"\n".repeat(13)), [""; 0]);
    }

    #[test]
    fn an_exception_holds_at_the_present_size_and_asks_to_be_lowered() {
        let of = |allowed, lines| check(exception("src/a.rs", allowed), "src/a.rs", &"\n".repeat(lines)).concat();
        assert_eq!(of(9, 9), "");
        assert!(of(9, 10).contains("its exception allows 9"));
        assert!(of(10, 9).contains("lower its exception from 10 to 9"));
        assert!(of(10, 8).contains("remove its exception"));
    }

    #[test]
    fn an_exception_for_what_is_gone_is_found() {
        assert!(check(exception("src/b.rs", 20), "src/a.rs", "").concat().contains("src/b.rs"));
    }
}
