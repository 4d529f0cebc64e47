//! What the tests of real platforms share.
//!
//! The agent's program is found through `TARE_AGENT`, or beside the tests in the target directory.

pub mod engines;
pub mod libvirtd;
pub mod sshd;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tare_lab::StateDir;
use tare_platform::conformance::{self, Expect};
use tare_platform::{Platform, registry};

/// So many guests come and go in a check, unless all variants are wanted: growth shows with few.
const CYCLES: u32 = 3;

static TURN: Mutex<()> = Mutex::new(());

/// One at a time: the checks count this process's descriptors, threads and children.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells that a test is skipped and why, in the form that `cargo xtask test` counts.
pub fn skipped(reason: &str) {
    println!("SKIPPED: {reason}");
}

/// The calling test's name: the test harness names its thread so. A test gives it to this program, to run itself once more.
pub fn this_test() -> String {
    std::thread::current().name().unwrap().to_owned()
}

/// Whether the slow variants of what other tests cover are wanted, too: `make test-all`.
pub fn all_variants() -> bool {
    std::env::var_os("TARE_TEST_ALL").is_some()
}

/// As [`all_variants`]; tells that the test is skipped where they are not.
pub fn is_variant_wanted() -> bool {
    if !all_variants() {
        skipped("a slow variant: make test-all");
    }
    all_variants()
}

/// The agent's program; says that the test is skipped where there is none.
pub fn agent() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.ancestors().nth(2)?.join("tare-agent"));
    let found = std::env::var_os("TARE_AGENT").map(PathBuf::from).or_else(beside).filter(|path| path.exists());
    if found.is_none() {
        skipped("no agent: `cargo build -p tare-agent` first, or set TARE_AGENT");
    }
    found
}

/// The path of a small program of this host's, by its name.
pub fn program(name: &str) -> String {
    let place = ["/bin", "/usr/bin"].into_iter().find(|place| Path::new(place).join(name).exists());
    format!("{}/{name}", place.unwrap_or("/bin"))
}

/// A platform of the registry with these options.
pub fn platform(name: &str, options: &Value) -> Box<dyn Platform> {
    let entry = registry::find(name).unwrap();
    (entry.make)(&(entry.check_options)(options).unwrap()).unwrap()
}

/// What a guest's root tries on the host's files through the share, mounted anew and for writing, and how each attempt
/// must end: the host refuses it. `run` runs a script in the guest and gives what it printed.
pub fn cannot_write_the_host(run: impl FnOnce(&str) -> String) {
    // Not below /tmp, which may be in memory and is then not shared.
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let (there, at) = (place.path().join("there"), place.path().display());
    std::fs::write(&there, "the host's\n").unwrap();
    let attempts = [
        format!("echo x > $m{at}/new"),
        format!("echo x >> $m{at}/there"),
        format!("rm $m{at}/there"),
        format!("mv $m{at}/there $m{at}/moved"),
        format!("chmod 777 $m{at}/there"),
        format!("mkdir $m{at}/directory"),
    ];
    let tried: Vec<String> = attempts.iter().map(|attempt| format!("({attempt}) 2>&1")).collect();
    let said = run(&format!(
        "export LC_ALL=C; m=/tmp/again; mkdir $m; mount -t virtiofs root $m && mount -o remount,rw $m; \
         grep \" $m \" /proc/mounts; cat $m{at}/there; {}",
        tried.join("; ")
    ));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains(" virtiofs rw"), "the guest itself still refuses, so nothing is shown: {said}");
    assert_eq!(lines[1], "the host's", "{said}");
    // The server has no right to make files for others, and the tree that it has cannot be written.
    let refusals = ["Read-only file system", "Operation not permitted"];
    let refused = lines[2..].iter().filter(|line| refusals.iter().any(|refusal| line.contains(refusal)));
    assert_eq!((refused.count(), lines.len()), (attempts.len(), attempts.len() + 2), "{said}");
    assert!(lines[2..].iter().any(|line| line.contains(refusals[0])), "{said}");
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "the host's\n");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

/// The programs that the checks run, with the libraries they need, from this host; says that the test is skipped where they are
/// not here.
pub fn small_root(at: &Path) -> Option<()> {
    let made = copy_small_root(at);
    if made.is_none() {
        skipped("the programs for a small root file system are not here (`ldd /bin/sh` failed)");
    }
    made
}

fn copy_small_root(at: &Path) -> Option<()> {
    std::fs::create_dir_all(at.join("tmp")).ok()?;
    // The agent too, where it is one of the tests' own and not the static one.
    let agent = agent()?.to_string_lossy().into_owned();
    let tools =
        ["sh", "true", "sleep", "rm", "mkdir", "sync", "dd", "head", "cat", "ls", "stat", "readlink"].map(program);
    for program in tools.iter().chain([&agent]).map(String::as_str) {
        let listed = std::process::Command::new("ldd").arg(program).output().ok()?;
        let text = String::from_utf8(listed.stdout).ok()?;
        let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
        for file in libraries.chain([program]) {
            let inside = at.join(file.trim_start_matches('/'));
            std::fs::create_dir_all(inside.parent()?).ok()?;
            std::fs::copy(file, inside).ok()?;
        }
    }
    Some(())
}

/// That root as an archive beside it.
pub fn archive_of(root: &Path) -> PathBuf {
    let archive = root.with_extension("tar");
    let mut builder = tar::Builder::new(std::fs::File::create(&archive).unwrap());
    builder.append_dir_all(".", root).unwrap();
    builder.finish().unwrap();
    archive
}

/// Checks a platform. `label` is a word that no other check of this test program has.
pub fn conforms(label: &str, name: &str, options: &Value, expect: &Expect) {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let platform = platform(name, options);
    // A process that was started to be killed does nothing but what it was started for.
    let Some(run_id) = conformance::run_id(label) else { return };
    // Its lock keeps a tare that works on this host at the same time from reaping the run.
    let state = StateDir::create(&run_id, Path::new("/nonexistent")).unwrap();
    let most = if all_variants() { u32::MAX } else { CYCLES };
    let expect = Expect { cycles: expect.cycles.min(most), ..expect.clone() };
    let result = conformance::check(&*platform, &agent, &run_id, state.path(), &expect);
    state.remove().unwrap();
    match result {
        Err(conformance::Skipped(reason)) => skipped(&reason),
        Ok(result) => result.unwrap(),
    }
}
