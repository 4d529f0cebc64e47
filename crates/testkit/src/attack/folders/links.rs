//! Files that are no plain files.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tare_record::layout;

use super::{Case, Must};

const INPUTS: [&str; 8] = [
    layout::STUDY,
    layout::PLAN,
    layout::ENVIRONMENT,
    layout::JOURNAL,
    layout::RESULTS,
    layout::RESULTS_WAL,
    layout::RESULTS_SHM,
    layout::RESULTS_JOURNAL,
];
const OUTPUTS: [&str; 5] =
    [layout::FINDINGS, layout::REPORT_HTML, layout::REPORT_MARKDOWN, "trials.csv", "comparisons.csv"];
const BESIDE: [&str; 2] = [layout::JOURNAL_TORN, layout::README];

const KINDS: [&str; 8] = [
    "a link to a canary",
    "a link to /dev/zero",
    "a link to itself",
    "a FIFO",
    "a directory",
    "a socket",
    "another name of a canary",
    "a sparse file of 1 TiB",
];

/// How many cases there are.
pub(super) const CASES: u32 = ((INPUTS.len() + OUTPUTS.len() + BESIDE.len()) * KINDS.len()) as u32;

/// Makes a case.
pub(super) fn make(number: u32, folder: &Path, canary: &Path) -> Case {
    let (which, kind) = (number as usize / KINDS.len(), KINDS[number as usize % KINDS.len()]);
    let name = INPUTS.into_iter().chain(OUTPUTS).chain(BESIDE).nth(which).unwrap();
    let at = folder.join(name);
    let _ = std::fs::remove_file(&at);
    place(kind, &at, canary);
    Case::new(format!("{name} is {kind}"), if INPUTS.contains(&name) { Must::Refused } else { Must::Whole })
}

fn place(kind: &str, at: &Path, canary: &Path) {
    match kind {
        "a link to a canary" => symlink(canary, at).unwrap(),
        "a link to /dev/zero" => symlink("/dev/zero", at).unwrap(),
        "a link to itself" => symlink(at, at).unwrap(),
        "a FIFO" => assert!(Command::new("mkfifo").arg(at).status().unwrap().success()),
        "a directory" => std::fs::create_dir(at).unwrap(),
        "a socket" => drop(std::os::unix::net::UnixListener::bind(at).unwrap()),
        "another name of a canary" => std::fs::hard_link(canary, at).unwrap(),
        _ => std::fs::File::create(at).unwrap().set_len(1 << 40).unwrap(),
    }
}
