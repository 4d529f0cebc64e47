//! Repository chores written in Rust: `cargo xtask tidy` and `cargo xtask test`.
//!
//! Arguments are read by hand here, unlike anywhere else in the workspace, so that a fresh clone
//! builds this program in seconds.

mod error;
mod house;
mod rules;
mod source;
mod suite;
mod tree;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use error::Error;
use house::House;
use tree::Tree;

const USAGE: &str = "\
cargo xtask COMMAND

  tidy                         check the house rules (xtask/house.toml); exit code 1 when one is broken
  tidy --rules                 list the rules, one a line
  test [PROGRAM...]            build and run all tests, or those of the programs and modules whose names contain one of
                               the words (platform/machines, lab/lib, scripts/test-apt); lists what was skipped
                               and why. All output is kept in target/test.log. Run `make build` before
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["tidy"] => tidy(&workspace_root()),
        ["tidy", "--rules"] => list_rules(),
        ["test", words @ ..] => suite::run(&workspace_root(), words),
        ["help" | "--help" | "-h"] => say(USAGE).map(|()| true),
        _ => Err(Error::Usage(USAGE)),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

/// The workspace: the folder above this crate.
fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Prints what is wrong with the tree at `root`; true when no rule is broken.
fn tidy(root: &Path) -> Result<bool, Error> {
    let (tree, findings) = check(root)?;
    let mut text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    text.push_str(&match findings.len() {
        0 => format!("tidy: {} rules hold over {} files\n", rules::ALL.len(), tree.files().len()),
        broken => format!("tidy: {broken} to put right (the rules and their exceptions: {})\n", house::PATH),
    });
    say(&text)?;
    Ok(findings.is_empty())
}

fn check(root: &Path) -> Result<(Tree, Vec<rules::Finding>), Error> {
    let house = House::read(&root.join(house::PATH))?;
    let tree = Tree::read(root)?;
    let findings = rules::check(&tree, &house);
    Ok((tree, findings))
}

fn list_rules() -> Result<bool, Error> {
    let text: String = rules::ALL.iter().map(|rule| format!("{:<16} {}\n", rule.name, rule.what)).collect();
    say(&text).map(|()| true)
}

/// Prints without the panic that `println!` makes of a closed pipe.
fn say(text: &str) -> Result<(), Error> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Write(PathBuf::from("stdout"), error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
