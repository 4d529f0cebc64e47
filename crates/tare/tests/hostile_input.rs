//! Studies and tables of figures that others wrote do no harm: a plan runs nothing, nothing crashes or hangs, and nothing that
//! commands a terminal is printed.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{all_variants, run, stderr, stdout, tare};
use tare_testkit::attack::imports::{IMPORTS, import};
use tare_testkit::attack::studies::{STUDIES, program, study};
use tare_testkit::attack::{Observed, observe, programs_run_by};

/// After so long a command hangs.
const HANGS: Duration = Duration::from_secs(20);
/// Most memory that reading any of them may take, bytes.
const MEMORY: u64 = 200 << 20;
/// A command in an empty working directory, with a home and a cache of its own.
fn attacked(arguments: &[&Path], place: &Path) -> Command {
    let mut command = tare();
    let empty = place.join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    command.args(arguments).current_dir(&empty).env("HOME", &empty).env("TARE_CACHE", place.join("cache"));
    command
}

/// All cases, or every third, as each takes the start of a program.
fn numbers(of: u32) -> impl Iterator<Item = u32> {
    let step = if all_variants() { 1 } else { 3 };
    (0..of).step_by(step)
}

/// Files below a folder with what they are long, sorted.
fn listed(folder: &Path) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<(PathBuf, u64)> =
        entries.map(|entry| (entry.path(), entry.metadata().map_or(0, |found| found.len()))).collect();
    all.sort();
    all
}

/// What must hold of every command, whatever it was given.
fn harmless(what: &str, seen: &Observed) {
    let shown: String = format!("{seen:?}").chars().take(3000).collect();
    let said = format!("{what}: {shown}");
    assert!(!seen.hung, "hung: {said}");
    assert!(!seen.crashed(), "crashed: {said}");
    assert!(seen.unfit().is_empty(), "printed {:?}: {said}", seen.unfit());
    assert!(seen.peak_bytes < MEMORY, "took {} MB: {said}", seen.peak_bytes >> 20);
}

/// Tells which took longest.
fn print_times(kind: &str, mut times: Vec<(Duration, String)>) {
    times.sort();
    let slow = times.iter().filter(|(time, _)| *time > Duration::from_secs(2)).count();
    println!("{kind}: {} tried, {slow} took over 2 s, the longest {:?}", times.len(), times.last());
}

#[test]
fn hostile_studies_are_planned_or_refused_and_nothing_else() {
    let mut times = Vec::new();
    for number in numbers(STUDIES) {
        let place = tempfile::tempdir().unwrap();
        let (folder, canary) = (place.path().join("study"), place.path().join("canary"));
        std::fs::create_dir(&folder).unwrap();
        let path = study(number, &folder, &canary).unwrap();
        let before = listed(&folder);
        let seen = observe(&mut attacked(&[Path::new("plan"), &path], place.path()), HANGS).unwrap();
        let what = format!("study {number}");
        harmless(&what, &seen);
        assert!(!canary.exists(), "{what} ran a program");
        assert_eq!(listed(&folder), before, "{what} wrote beside the study");
        assert_eq!(listed(&place.path().join("empty")), [], "{what} wrote into the working directory");
        times.push((seen.wall, what));
    }
    print_times("studies", times);
}

#[test]
fn hostile_tables_are_imported_or_refused_and_nothing_else() {
    let mut times = Vec::new();
    for number in numbers(IMPORTS) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("tables");
        std::fs::create_dir(&folder).unwrap();
        let path = import(number, &folder).unwrap();
        let before = listed(&folder);
        let out = place.path().join("out");
        let arguments = [Path::new("import"), &path, Path::new("--out"), &out];
        let seen = observe(&mut attacked(&arguments, place.path()), HANGS).unwrap();
        let what = format!("import {number}");
        harmless(&what, &seen);
        assert_eq!(listed(&folder), before, "{what} wrote beside the tables");
        assert_eq!(listed(&place.path().join("empty")), [], "{what} wrote into the working directory");
        times.push((seen.wall, what));
    }
    print_times("imports", times);
}

#[test]
fn a_plan_runs_no_program_whatever_a_study_names() {
    let place = tempfile::tempdir().unwrap();
    let canary = place.path().join("canary");
    let names = stdout(&run(&["list", "studies"]));
    let shipped = names.split_whitespace().filter(|word| {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(format!("{word}.toml")).exists()
    });
    let mut all: Vec<PathBuf> = shipped.map(PathBuf::from).collect();
    assert!(all.len() > 10, "{names}");
    all.dedup();
    // Those that name programs, and a plain one for each platform that runs programs of the distribution.
    for number in (3..STUDIES).step_by(8) {
        let folder = place.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        all.push(study(number, &folder, &canary).unwrap());
    }
    let folder = place.path().join("evil");
    std::fs::create_dir(&folder).unwrap();
    let evil = program(&folder, &canary).unwrap();
    for options in [
        "platform = \"nspawn\"",
        "platform = \"lxc\"",
        "platform = \"qemu\"",
        "platform = \"libvirt\"",
        &format!("platform = \"oci\"\noptions = {{ runtime = \"{}\" }}", evil.display()),
    ] {
        let name = format!("{}.toml", all.len());
        let path = place.path().join(name);
        std::fs::write(&path, common::small_study(1, &format!("[arms.other]\n{options}"))).unwrap();
        all.push(path);
    }
    for study in &all {
        let command = attacked(&[Path::new("plan"), study], place.path());
        let Some(programs) = programs_run_by(command, Duration::from_secs(60)).unwrap() else {
            tare_testkit::skipped("processes may not be followed here (ptrace)");
            return;
        };
        assert_eq!(programs, Vec::<String>::new(), "the plan of {} ran programs", study.display());
    }
    assert!(!canary.exists());
}

#[test]
fn a_plan_says_what_it_did_not_try_and_doctor_says_what_it_runs() {
    let place = tempfile::tempdir().unwrap();
    let canary = place.path().join("canary");
    let evil = program(place.path(), &canary).unwrap();
    let file = place.path().join("study.toml");
    let arm = format!("[arms.other]\nplatform = \"oci\"\noptions = {{ runtime = \"{}\" }}", evil.display());
    std::fs::write(&file, common::small_study(1, &arm)).unwrap();
    let file = file.to_str().unwrap();
    let plan = run(&["plan", file]);
    assert!(stdout(&plan).contains("Not tried: a plan runs no program"), "{}{}", stdout(&plan), stderr(&plan));
    let doctor = run(&["doctor", file, "--quick"]);
    let note = format!("runs programs that the study names: {}", evil.display());
    assert!(stdout(&doctor).contains(&note), "{}{}", stdout(&doctor), stderr(&doctor));
}

#[test]
fn a_file_in_the_working_directory_does_not_take_the_place_of_a_shipped_study() {
    let place = tempfile::tempdir().unwrap();
    let other = common::small_study(1, "").replace("\"small\"", "\"impostor\"");
    std::fs::write(place.path().join("quickstart"), &other).unwrap();
    std::fs::write(place.path().join("mine"), &other).unwrap();
    let plan = |name: &str| tare().args(["plan", name, "--format", "json"]).current_dir(place.path()).output().unwrap();
    assert!(stdout(&plan("quickstart")).contains("\"name\": \"quickstart\""));
    let named = plan("./quickstart");
    assert!(stdout(&named).contains("\"name\": \"impostor\""), "{}", stderr(&named));
    let refused = plan("mine");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("`./mine`"), "{}", stderr(&refused));
}
