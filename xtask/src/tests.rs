//! Tidy as a whole, over a repository made for the test, and over this one's table.

use std::process::Command;

use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A repository with this house's table and one file of the text given.
fn repository(path: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(folder.path()).status().unwrap();
    assert!(made.success());
    write(folder.path(), house::PATH, include_str!("../house.toml"));
    write(folder.path(), ".gitignore", "/target\n");
    write(folder.path(), "Cargo.toml", "[workspace]\n");
    write(folder.path(), path, text);
    folder
}

fn findings_of(folder: &tempfile::TempDir, path: &str) -> Vec<String> {
    check(folder.path()).unwrap().1.iter().filter(|finding| finding.path == path).map(ToString::to_string).collect()
}

#[test]
fn a_file_that_is_not_committed_yet_is_checked_as_well() {
    let folder = repository("crates/lab/src/link.rs", "//! Links.\nfn f() {\n    unsafe { g() }\n}\n");
    assert_eq!(
        findings_of(&folder, "crates/lab/src/link.rs"),
        ["crates/lab/src/link.rs:3: unsafe outside sys.rs [unsafe-code]"]
    );
}

#[test]
fn what_git_ignores_is_left_alone() {
    let folder = repository("target/generated.rs", "\tunsafe");
    assert_eq!(findings_of(&folder, "target/generated.rs"), [""; 0]);
}

#[test]
fn an_unknown_key_of_the_table_is_an_error() {
    let folder = repository(house::PATH, &include_str!("../house.toml").replace("test_file_lines", "test_file_length"));
    let error = check(folder.path()).err().map(|error| error.to_string()).unwrap();
    assert!(error.contains("test_file_length"), "{error}");
}

#[test]
fn outside_a_clone_the_error_says_what_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), house::PATH, include_str!("../house.toml"));
    let error = check(folder.path()).err().map(|error| error.to_string()).unwrap();
    assert!(error.contains("git"), "{error}");
}
