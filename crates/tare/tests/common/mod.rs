//! What the end-to-end tests share: the real program, small studies, and eyes for what is left behind.
#![allow(dead_code, reason = "one of the programs uses a part of it")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program that ships where TARE_BIN names it, else the one cargo built for this test.
pub fn tare() -> Command {
    let program = std::env::var_os("TARE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_tare").into());
    let mut command = Command::new(program);
    // Tests run side by side.
    command.stdin(Stdio::null()).env("NO_COLOR", "1").env("TARE_ALONGSIDE", "true");
    command
}

/// Runs tare and gives what it printed.
pub fn run(args: &[&str]) -> Output {
    tare().args(args).output().unwrap()
}

/// Runs a study in this folder; the run folder, and what tare printed.
pub fn ran(folder: &Path, text: &str) -> (PathBuf, Output) {
    let study = write_study(folder, text);
    let out = folder.join("run");
    let output = run(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    (out, output)
}

/// Begins to run a study; what it prints is for whoever waits for it.
pub fn begin(study: &Path, out: &Path) -> Child {
    let mut command = tare();
    command.arg("run").arg(study).arg("--out").arg(out);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The journal of a run, as far as it is written.
pub fn journal(out: &Path) -> String {
    std::fs::read_to_string(out.join("journal.jsonl")).unwrap_or_default()
}

/// Kills a process that this test began.
pub fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Sends a signal to a process of a run's.
pub fn signal(pid: u32, signal: rustix::process::Signal) -> rustix::io::Result<()> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal)
}

/// What a run found.
pub fn findings(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(out.join("findings.json")).unwrap()).unwrap()
}

/// Where this host keeps what guests need.
pub fn cache() -> PathBuf {
    std::env::var_os("TARE_CACHE").map_or_else(|| PathBuf::from("/var/cache/tare"), PathBuf::from)
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fails with all that was printed unless tare ended with this code.
#[track_caller]
pub fn expect_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "tare ended otherwise\n--- stdout\n{}\n--- stderr\n{}",
        stdout(output),
        stderr(output)
    );
}

/// Whether tests may make namespaces and control groups; tells why not.
pub fn is_root() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n");
    if !root {
        tare_testkit::skipped("needs root");
    }
    root
}

/// Whether tests may make guests, and have this bundle for them; tells why not.
pub fn has_bundle(name: &str) -> bool {
    let there = cache().join(format!("bundle/{name}/runtime/bin/java")).exists();
    if !there {
        tare_testkit::skipped(&format!("no `{name}` for guests: `make build` makes it"));
    }
    there && is_root()
}

/// A Python with numpy and scipy, as tare looks for one; `None` after a word that the test is skipped.
pub fn python() -> Option<&'static str> {
    let has = |program: &&str| {
        let mut python = Command::new(program);
        python.args(["-I", "-c", "import numpy, scipy"]).stdout(Stdio::null()).stderr(Stdio::null());
        python.status().is_ok_and(|status| status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    if found.is_none() {
        tare_testkit::skipped("no python3 with numpy and scipy is installed");
    }
    found
}

/// The programs of the PostgreSQL that is installed on this host; tells where there is none.
pub fn postgres() -> Option<String> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = installed.map(|entry| entry.path().join("bin")).find(|bin| bin.join("initdb").exists());
    if found.is_none() {
        tare_testkit::skipped("no PostgreSQL is installed in /usr/lib/postgresql");
    }
    found.map(|bin| bin.display().to_string())
}

/// Where a PostgreSQL for guests is, as a study names it: the one that comes with tare, or an installed one; tells what is missing.
pub fn postgres_for_guests() -> Option<String> {
    let fetched = |entry: std::fs::DirEntry| entry.path().join("bin/postgres").exists();
    if std::fs::read_dir(cache().join("bundle")).into_iter().flatten().flatten().any(fetched) {
        return Some("embedded".into());
    }
    postgres()
}

/// Whether the slow variants of what other tests cover are wanted, too: `make test-all`.
pub fn all_variants() -> bool {
    std::env::var_os("TARE_TEST_ALL").is_some()
}

/// A study whose guests have one CPU each and so much memory; `top` is its baseline, its blocks and what else belongs there.
pub fn study_of(top: &str, arms: &str, memory: &str, phases: &[(&str, &str)], cases: &str) -> String {
    let phases: String = phases.iter().map(|(name, time)| format!("{name} = \"{time}\"\n")).collect();
    format!(
        r#"
schema = 1
name = "small"
question = "Does it work?"
{top}
noise-floor = false
seed = 7

{arms}

[guest]
cpus = 1
memory = "{memory}"

[phases]
{phases}
{cases}"#
    )
}

/// A study of native guests and of further arms.
pub fn study(blocks: u32, arms: &str, memory: &str, phases: &[(&str, &str)], cases: &str) -> String {
    let arms = format!("[arms.native]\nplatform = \"native\"\n{arms}");
    study_of(&format!("baseline = \"native\"\nblocks = {blocks}"), &arms, memory, phases, cases)
}

/// A study of a few trials, each a fraction of a second.
pub fn small_study(blocks: u32, arms: &str) -> String {
    let idle = "[cases.idle]\nworkload = \"rr\"\nparameters = { request = \"128B\", response = \"128B\" }\n";
    study(blocks, arms, "128MiB", &[("warm-up", "50ms"), ("steady-state", "200ms")], idle)
}

pub const CONTAINER: &str = "[arms.container]\nplatform = \"container\"";

/// Writes a study into a folder.
pub fn write_study(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("study.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// The command that runs a study as the user nobody, into the folder `run` of a place of the user's.
pub fn run_as_nobody(study: &str) -> (tempfile::TempDir, Command) {
    let place = tempfile::Builder::new().prefix("tare-nobody").tempdir_in("/tmp").unwrap();
    // The program may lie where others cannot look.
    let program = std::env::var_os("TARE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_tare").into());
    let agent = std::env::var_os("TARE_AGENT").map(PathBuf::from);
    let agent = agent.unwrap_or_else(|| Path::new(&program).with_file_name("tare-agent"));
    std::fs::copy(&program, place.path().join("tare")).unwrap();
    std::fs::copy(agent, place.path().join("tare-agent")).unwrap();
    let study = write_study(place.path(), study);
    std::fs::set_permissions(&study, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(place.path(), Some(65_534), Some(65_534)).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", "./tare", "run", "study.toml", "--out", "run"])
        .env_remove("TARE_AGENT")
        .env_remove("XDG_RUNTIME_DIR")
        .env("TARE_ALONGSIDE", "true")
        // Where the user may keep what is made once.
        .env("HOME", place.path())
        .current_dir(place.path());
    (place, command)
}

/// Everything on this host that carries the name of a run of tare's: control groups, processes, state
/// directories, mounts. Other tests run at the same time, so only runs into `folder` count.
pub fn left_by_runs_into(folder: &Path) -> Vec<String> {
    let mut left = Vec::new();
    for run in run_ids(folder) {
        for line in Command::new("find")
            .args(["/sys/fs/cgroup", "/run/tare", "/run/lxc", "/var/lib/tare", "/var/lib/tare-data"])
            .args(["-maxdepth", "6", "-name", &format!("*{run}*")])
            .output()
            .map(|out| stdout(&out))
            .unwrap_or_default()
            .lines()
        {
            left.push(line.to_owned());
        }
        left.extend(processes_of(&run).into_iter().map(|pid| format!("process {pid} of {run}")));
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        left.extend(mounts.lines().filter(|line| line.contains(&run)).map(str::to_owned));
    }
    left
}

/// What the runs are called on this host whose folders are in `folder`, or that is one itself: each part of a run that was
/// resumed has an id of its own. Of a run that is there now, also before its folder is.
pub fn run_ids(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders: Vec<PathBuf> = entries.chain([folder.to_owned()]).collect();
    let mut ids = Vec::new();
    for dir in &folders {
        let journal = std::fs::read_to_string(dir.join("journal.jsonl")).unwrap_or_default();
        let named = journal.split("\"run_id\":\"").skip(1);
        ids.extend(named.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    for state in std::fs::read_dir("/run/tare").into_iter().flatten().flatten() {
        let info = std::fs::read(state.path().join("run.json")).unwrap_or_default();
        let info: serde_json::Value = serde_json::from_slice(&info).unwrap_or_default();
        if folders.iter().any(|dir| info["run_folder"].as_str() == dir.to_str()) {
            ids.push(state.file_name().to_string_lossy().into_owned());
        }
    }
    ids.sort();
    ids.dedup();
    ids
}

/// Processes that carry a run's id in their environment.
pub fn processes_of(run: &str) -> Vec<u32> {
    let mark = format!("TARE_RUN={run}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// Polls until something is so; fails the test when it is not within a minute.
#[track_caller]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < deadline, "waited a minute for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Trials in a run folder, by outcome.
pub fn outcomes(folder: &Path) -> Vec<String> {
    query(folder, "SELECT outcome FROM trials ORDER BY 1")
}

/// One column of the results in a run folder.
#[track_caller]
pub fn query<T: rusqlite::types::FromSql>(folder: &Path, sql: &str) -> Vec<T> {
    let results = rusqlite::Connection::open(folder.join("results.sqlite")).unwrap();
    let mut statement = results.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(|value| value.unwrap_or_else(|error| panic!("{sql}: {error}"))).collect()
}

/// One number out of the results in a run folder.
#[track_caller]
pub fn number(folder: &Path, sql: &str) -> f64 {
    query(folder, sql).pop().unwrap_or_else(|| panic!("no row: {sql}"))
}

/// The metric of a case that is least among its trials.
#[track_caller]
pub fn least_metric(folder: &Path, case: &str, metric: &str) -> f64 {
    let of = "FROM metrics JOIN trials USING (trial)";
    number(folder, &format!("SELECT min(value) {of} WHERE case_id = '{case}' AND metric = '{metric}'"))
}

/// The count of a case that is least among its trials.
#[track_caller]
pub fn least_count(folder: &Path, case: &str, name: &str) -> f64 {
    let of = "FROM counts JOIN trials USING (trial)";
    number(folder, &format!("SELECT min(value) {of} WHERE case_id = '{case}' AND name = '{name}'"))
}
