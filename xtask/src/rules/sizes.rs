//! Files have one subject. How long a function may be, clippy checks.
//!
//! A file's test modules do not count towards its limit.

use super::Findings;
use crate::house::House;
use crate::tree::{File, Tree};

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    for file in tree.rust() {
        let limit = if file.is_test { house.sizes.test_file_lines } else { house.sizes.file_lines };
        let lines = file_lines(file);
        if lines > limit {
            findings.add(&file.path, 0, format!("the file has {lines} lines; the limit is {limit}"));
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

    fn check(path: &str, text: &str) -> Vec<String> {
        let sizes = Sizes { file_lines: 8, test_file_lines: 12 };
        findings("sizes", &House { sizes, ..House::default() }, &[(path, text)])
    }

    #[test]
    fn a_file_is_measured_without_its_tests() {
        let tests = "#[cfg(test)]\nmod tests {\n\n\n\n}\n";
        assert_eq!(check("src/a.rs", &format!("{}{tests}", "\n".repeat(8))), [""; 0]);
        let found = check("src/a.rs", &format!("{}{tests}", "\n".repeat(9)));
        assert_eq!(found, ["src/a.rs: the file has 9 lines; the limit is 8 [sizes]"]);
    }

    #[test]
    fn files_of_tests_have_a_limit_of_their_own() {
        assert_eq!(check("tests/a.rs", &"\n".repeat(12)), [""; 0]);
        assert_eq!(check("tests/a.rs", &"\n".repeat(13)).len(), 1);
    }
}
