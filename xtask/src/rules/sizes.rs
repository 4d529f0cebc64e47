//! Files have one subject and functions fit a screen; the exceptions of the table only shrink.
//!
//! A file's test modules do not count towards its limit. A function in an `impl` is `Type::name`; where a file
//! has two of one name, the longer counts.

use std::collections::BTreeMap;

use super::Findings;
use crate::house::{House, SizeException};
use crate::ratchet::{self, Exception};
use crate::tree::{File, Tree};

/// What was measured: name to lines.
type Measured = BTreeMap<String, usize>;

pub fn check(tree: &Tree, house: &House, findings: &mut Findings) {
    let limits = &house.sizes;
    let mut lines_of = BTreeMap::new();
    let [mut files, mut test_files, mut functions, mut test_functions] = [const { Measured::new() }; 4];
    for file in tree.rust() {
        let list = if file.is_test { &mut test_files } else { &mut files };
        list.insert(file.path.clone(), file_lines(file));
        for function in file.source.functions() {
            let list = if file.is_test || function.test { &mut test_functions } else { &mut functions };
            let name = format!("{} {}", file.path, function.name);
            let longest = list.entry(name.clone()).or_default();
            if function.lines > *longest {
                *longest = function.lines;
                lines_of.insert(name, function.line);
            }
        }
    }
    let mut complaints = Vec::new();
    complaints.extend(compare(&files, limits.file_lines, &limits.files, |path| test_files.contains_key(path)));
    complaints
        .extend(compare(&test_files, limits.test_file_lines, &limits.files, |path| !test_files.contains_key(path)));
    let is_test = |name: &str| test_functions.contains_key(name);
    complaints.extend(compare(&functions, limits.function_lines, &limits.functions, is_test));
    complaints.extend(compare(&test_functions, limits.test_function_lines, &limits.functions, |name| !is_test(name)));
    for (subject, complaint) in complaints {
        let (path, function) = subject.split_once(' ').unwrap_or((&subject, "the file"));
        findings.add(path, lines_of.get(&subject).copied().unwrap_or(0), format!("{function} {complaint}"));
    }
}

/// Lines of a file; the test items within count only where the whole file is tests.
fn file_lines(file: &File) -> usize {
    let all = file.text.lines().count();
    if file.is_test { all } else { all - file.source.test_lines() }
}

fn compare(
    measured: &Measured,
    limit: usize,
    exceptions: &[SizeException],
    is_of_another_list: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let subject = |entry: &SizeException| format!("{} {}", entry.path, entry.name).trim_end().to_owned();
    let mine: Vec<Exception<'_>> = exceptions
        .iter()
        .map(|entry| Exception { subject: subject(entry), size: entry.lines, reason: &entry.reason })
        .filter(|entry| !is_of_another_list(&entry.subject))
        .collect();
    ratchet::compare(measured, limit, "lines", &mine)
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;
    use crate::house::Sizes;

    fn exception(path: &str, name: &str, lines: usize) -> SizeException {
        SizeException { path: path.into(), name: name.into(), lines, reason: "a table".into() }
    }

    fn check(files: Vec<SizeException>, functions: Vec<SizeException>, path: &str, text: &str) -> Vec<String> {
        let sizes =
            Sizes { file_lines: 8, test_file_lines: 12, function_lines: 4, test_function_lines: 6, files, functions };
        findings("sizes", &House { sizes, ..House::default() }, &[(path, text)])
    }

    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_at_the_limit_passes_and_one_line_more_does_not() {
        assert_eq!(check(vec![], vec![], "src/a.rs", &function(4)), [""; 0]);
        assert_eq!(
            check(vec![], vec![], "src/a.rs", &format!("\n{}", function(5))),
            ["src/a.rs:2: f has 5 lines; the limit is 4 [sizes]"]
        );
    }

    #[test]
    fn a_file_is_measured_without_its_tests() {
        let tests = "#[cfg(test)]\nmod tests {\n\n\n\n}\n";
        assert_eq!(check(vec![], vec![], "src/a.rs", &format!("{}{tests}", "\n".repeat(8))), [""; 0]);
        let found = check(vec![], vec![], "src/a.rs", &format!("{}{tests}", "\n".repeat(9)));
        assert_eq!(found, ["src/a.rs: the file has 9 lines; the limit is 8 [sizes]"]);
    }

    #[test]
    fn tests_have_limits_of_their_own() {
        assert_eq!(check(vec![], vec![], "tests/a.rs", &function(6)), [""; 0]);
        assert_eq!(check(vec![], vec![], "tests/a.rs", &function(7)).len(), 1);
        assert_eq!(check(vec![], vec![], "tests/a.rs", &"\n".repeat(13)).len(), 1);
    }

    #[test]
    fn an_exception_holds_at_the_present_size_and_asks_to_be_lowered() {
        let named = |lines| vec![exception("src/a.rs", "f", lines)];
        assert_eq!(check(vec![], named(6), "src/a.rs", &function(6)), [""; 0]);
        assert!(check(vec![], named(5), "src/a.rs", &function(6))[0].contains("its exception allows 5"));
        assert!(check(vec![], named(7), "src/a.rs", &function(6))[0].contains("lower its exception from 7 to 6"));
        assert!(check(vec![], named(7), "src/a.rs", &function(3))[0].contains("remove its exception"));
        let whole = |lines| vec![exception("src/a.rs", "", lines)];
        assert_eq!(check(whole(9), vec![], "src/a.rs", &"\n".repeat(9)), [""; 0]);
        assert!(check(whole(9), vec![], "src/a.rs", &"\n".repeat(10))[0].contains("its exception allows 9"));
    }

    #[test]
    fn an_exception_for_what_is_gone_is_found() {
        assert!(check(vec![exception("src/b.rs", "", 20)], vec![], "src/a.rs", "").concat().contains("src/b.rs"));
    }

    #[test]
    fn an_exception_for_a_test_is_held_to_the_limit_of_tests() {
        assert_eq!(check(vec![], vec![exception("tests/a.rs", "f", 7)], "tests/a.rs", &function(7)), [""; 0]);
        assert_eq!(check(vec![exception("tests/a.rs", "", 13)], vec![], "tests/a.rs", &"\n".repeat(13)), [""; 0]);
    }
}
