//! A run whose controller is killed is taken down by its own reaper, with no further command; and nothing is taken down but what
//! the ledger in the run's state directory names.

use crate::common;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{
    CONTAINER, begin, expect_code, is_root, journal, kill, left_by_runs_into, outcomes, run, run_as_nobody, run_ids,
    signal, small_study, stdout, until, write_study,
};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Set in a process that runs one test, in namespaces of its own.
const APART: &str = "TARE_TEST_APART";
/// How many times a controller is killed at a random moment.
const ROUNDS: &str = "TARE_TEST_KILL_ROUNDS";

/// Runs `body` in a process of its own that sees no other process, mount and link, and has a /run and a /var/lib of its own: there a
/// look at everything tells what a run has left.
fn apart(body: impl FnOnce()) {
    if std::env::var_os(APART).is_some() {
        return body();
    }
    if !is_root() {
        return;
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap();
    // On a disk, for guests' layers.
    let place = tempfile::Builder::new().permissions(Permissions::from_mode(0o711)).tempdir_in("/var/tmp").unwrap();
    let script = "mount -t proc proc /proc && ip link set lo up || exit 99; \
        for name in run lib; do mkdir -m 755 \"$1/$name\" || exit 99; done; \
        mount --bind \"$1/run\" /run && mount --bind \"$1/lib\" /var/lib || exit 99; \
        \"$2\" --exact --nocapture \"$3\"; exit $?";
    let ran = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--net", "--propagation", "private", "sh", "-c", script, "apart"])
        .arg(place.path())
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(APART, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    let _ = writeln!(std::io::stdout(), "{said}");
    match ran.status.code() {
        Some(99) => tare_testkit::skipped(&format!("no namespaces can be made here: {said}")),
        code => assert_eq!(code, Some(0), "{said}"),
    }
    assert!(said.contains("1 passed") || said.contains("SKIPPED"), "no such test: {test}");
}

/// All that a run may have made, as it is now: processes, mounts, links, files of /run and /var/lib, and what carries one of these
/// ids among control groups and in places that others use, too.
fn snapshot(ids: &BTreeSet<String>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (pid, words) in processes() {
        seen.insert(format!("process {pid}: {words}"));
    }
    let text = |path: &str| fs::read_to_string(path).unwrap();
    seen.extend(text("/proc/self/mountinfo").lines().map(|line| format!("mount {line}")));
    let links = text("/proc/self/net/dev");
    seen.extend(links.lines().skip(2).filter_map(|line| Some(format!("link {}", line.split_once(':')?.0.trim()))));
    for place in ["/run", "/var/lib"] {
        below(Path::new(place), u32::MAX, &mut |path| {
            seen.insert(format!("file {}", path.display()));
        });
    }
    for (place, depth) in [("/sys/fs/cgroup", 8), ("/tmp", 0), ("/var/tmp", 0), ("/dev/shm", 0)] {
        below(Path::new(place), depth, &mut |path| {
            let name = path.file_name().unwrap().to_string_lossy();
            if ids.iter().any(|id| name.contains(id)) {
                seen.insert(format!("file {}", path.display()));
            }
        });
    }
    seen
}

fn below(directory: &Path, depth: u32, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        visit(&entry.path());
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), depth - 1, visit);
        }
    }
}

/// Processes that have not ended, with their command lines.
fn processes() -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if state != Some('Z') {
            found.push((pid, String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned()));
        }
    }
    found
}

/// Ids of the runs that have a state directory now.
fn ids_now() -> BTreeSet<String> {
    let entries = fs::read_dir("/run/tare").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Kills controllers at random moments and waits, with no further command, until the host is as it was before.
fn kill_at_random_moments(arms: &str, rounds: u64, moments: Duration, limit: Duration) {
    let rounds = std::env::var(ROUNDS).ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(rounds);
    let folder = tempfile::tempdir().unwrap();
    // Those that are missing on this host are left out.
    let text = small_study(4, arms).replace("noise-floor", "skip-unavailable = true\nnoise-floor");
    let study = write_study(folder.path(), &text);
    // What runtimes make once on a host, such as the directory of their locks, is there after this.
    let warm = folder.path().join("warm");
    expect_code(&run(&["run", study.to_str().unwrap(), "--blocks", "1", "--out", warm.to_str().unwrap()]), 0);
    let before = snapshot(&ids_now());
    let (mut killed, mut found, mut longest) = (0, 0, Duration::ZERO);
    for round in 0..rounds {
        let out = folder.path().join(format!("run{round}"));
        let mut child = begin(&study, &out);
        std::thread::sleep(moments.mul_f64(rand::random()));
        if child.try_wait().unwrap().is_some() {
            continue;
        }
        let ids = ids_now();
        child.kill().unwrap();
        let at = Instant::now();
        child.wait().unwrap();
        killed += 1;
        found += u64::from(snapshot(&ids) != before);
        while snapshot(&ids) != before {
            let now = snapshot(&ids);
            assert!(at.elapsed() < limit, "{limit:?} after a kill: {:?}", now.symmetric_difference(&before));
            std::thread::sleep(Duration::from_millis(2));
        }
        longest = longest.max(at.elapsed());
        fs::remove_dir_all(&out).or_else(|error| if out.exists() { Err(error) } else { Ok(()) }).unwrap();
    }
    let seen = format!("killed at {killed} random moments, {found} times with something to take down");
    let _ = writeln!(std::io::stdout(), "{seen}; all was gone within {longest:?}");
    assert!(found > 0, "nothing was there to be taken down in {killed} kills");
}

#[test]
fn killed_at_a_random_moment_everything_is_gone_with_no_further_command() {
    apart(|| {
        let runsc = "[arms.runsc]\nplatform = \"oci\"\noptions = { runtime = \"runsc\" }";
        let more =
            "[arms.runc]\nplatform = \"oci\"\n[arms.nspawn]\nplatform = \"nspawn\"\n[arms.lxc]\nplatform = \"lxc\"";
        let arms = format!("{CONTAINER}\n{more}\n{runsc}");
        kill_at_random_moments(&arms, 6, Duration::from_secs(5), Duration::from_secs(10));
    });
}

#[test]
fn machines_of_a_killed_run_are_gone_with_no_further_command() {
    apart(|| {
        if !Path::new("/dev/kvm").exists() {
            tare_testkit::skipped("needs /dev/kvm");
            return;
        }
        let arms = "[arms.qemu]\nplatform = \"qemu\"\noptions = { accel = \"tcg\" }";
        kill_at_random_moments(arms, 3, Duration::from_secs(8), Duration::from_secs(30));
    });
}

/// The reaper of a run: a process of this program's with the run's id.
fn reaper_of(id: &str) -> Option<u32> {
    let wanted = format!("tare reaper {id}");
    processes().into_iter().find(|(_, words)| *words == wanted).map(|(pid, _)| pid)
}

/// A run that drives, its id and its reaper.
fn driving(folder: &Path) -> (Child, PathBuf, String, u32) {
    let study = write_study(folder, &small_study(1, CONTAINER).replace("200ms", "60s"));
    let out = folder.join("run");
    let child = begin(&study, &out);
    until("the first trial to drive", || journal(&out).contains("\"drive\""));
    let id = run_ids(&out).remove(0);
    let reaper = reaper_of(&id).expect("the run has a reaper");
    (child, out, id, reaper)
}

#[test]
fn a_reaper_is_apart_from_its_run_and_does_its_work_whatever_signal_came() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut child, out, id, reaper) = driving(folder.path());
    let own = |file: &str| Path::new("/proc").join(reaper.to_string()).join(file);
    let mut open: Vec<(String, String)> = Vec::new();
    for entry in fs::read_dir(own("fd")).unwrap().flatten() {
        let target = fs::read_link(entry.path()).unwrap().to_string_lossy().into_owned();
        open.push((entry.file_name().to_string_lossy().into_owned(), target));
    }
    open.sort();
    assert!(open[0].1.starts_with("pipe:") && open[1..].iter().all(|(_, target)| target == "/dev/null"), "{open:?}");
    assert_eq!(open.len(), 3, "{open:?}");
    let environ = fs::read(own("environ")).unwrap();
    assert!(!environ.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"TARE_RUN=")));
    assert_eq!(fs::read_link(own("cwd")).unwrap(), Path::new("/"));
    assert!(!fs::read_to_string(own("cgroup")).unwrap().contains(&id));
    let stat = fs::read_to_string(own("stat")).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap();
    assert_eq!(session, reaper.to_string(), "it is in a session of its own");

    [Signal::INT, Signal::HUP, Signal::TERM].into_iter().for_each(|sent| signal(reaper, sent).unwrap());
    kill(&mut child);
    until("the reaper to take everything down", || left_by_runs_into(&out).is_empty() && reaper_of(&id).is_none());
}

#[test]
fn a_run_that_ends_by_itself_or_lost_its_reaper_leaves_none() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let study = write_study(folder.path(), &small_study(1, CONTAINER));
    let out = folder.path().join("whole");
    expect_code(&run(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]), 0);
    assert_eq!(outcomes(&out), ["completed", "completed"]);
    assert!(run_ids(&out).iter().all(|id| reaper_of(id).is_none()));
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());

    // Where both are killed, reaping by hand is what is left.
    let (mut child, out, id, reaper) = driving(folder.path());
    signal(reaper, Signal::KILL).unwrap();
    until("the reaper to end", || reaper_of(&id).is_none());
    assert!(child.try_wait().unwrap().is_none(), "the run ended with its reaper");
    kill(&mut child);
    assert!(!left_by_runs_into(&out).is_empty());
    expect_code(&run(&["reap"]), 0);
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn without_root_the_reaper_takes_a_killed_run_down_too() {
    if !is_root() {
        return;
    }
    let (place, mut command) = run_as_nobody(&small_study(1, CONTAINER).replace("200ms", "60s"));
    let out = place.path().join("run");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut ended = false;
    until("the first trial to drive", || {
        ended = child.try_wait().unwrap().is_some();
        ended || journal(&out).contains("\"drive\"")
    });
    if ended {
        tare_testkit::skipped("needs setpriv and unprivileged user namespaces");
        return;
    }
    let id = run_ids(&out).remove(0);
    assert!(reaper_of(&id).is_some() && common::processes_of(&id).len() > 1);
    kill(&mut child);
    until("the reaper to take everything down", || reaper_of(&id).is_none());
    assert_eq!(common::processes_of(&id), Vec::<u32>::new());
    assert!(!Path::new("/tmp/tare-65534").join(&id).exists());
}

/// What must stay: a directory, a process, and a file that is not there.
struct Canaries {
    folder: tempfile::TempDir,
    process: Child,
    id: String,
}

impl Canaries {
    fn new(id: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in [format!("{id}/theirs"), format!("tare-{id}/guest")] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let process = Command::new("sleep").arg("600").spawn().unwrap();
        let procs = folder.path().join(format!("tare-{id}/guest/cgroup.procs"));
        fs::write(procs, format!("{}\n", process.id())).unwrap();
        Self { folder, process, id: id.to_owned() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Deletes a directory of somebody else's, kills the process, runs a program.
    fn attack(&self) -> Vec<Value> {
        let id = &self.id;
        let group = self.at(&format!("tare-{id}/guest"));
        let to =
            json!({"host": "127.0.0.1", "user": null, "port": 1, "host-key": null, "identity": null, "config": null});
        let place = json!({"directory": format!("/tmp/tare-{id}-x"), "mark": format!("{id} x")});
        let stop = json!(["touch", self.at("ran")]);
        let ssh = json!({"run": id, "to": to, "place": place, "stop": stop, "limit_ns": 5_000_000_000_u64});
        vec![
            json!({"directory": {"path": self.at(&format!("{id}/theirs"))}}),
            json!({"cgroup": {"paths": [group]}}),
            json!({"held": {"platform": "nspawn", "token": {"run_id": id, "strays": [group]}}}),
            json!({"held": {"platform": "ssh", "token": ssh}}),
        ]
    }

    #[track_caller]
    fn assert_untouched(&mut self) {
        assert!(self.process.try_wait().unwrap().is_none(), "a process was killed");
        assert!(self.at(&format!("{}/theirs", self.id)).is_dir(), "a directory of somebody else's is gone");
        assert!(!self.at("ran").exists(), "a program was run");
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The state directory of a dead run whose results are in that folder.
fn dead_run(id: &str, folder: &Path) -> PathBuf {
    let state = Path::new("/run/tare").join(id);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&state).unwrap();
    let info = json!({"run_id": id, "run_folder": folder, "controller_pid": 4_000_000, "controller_started": 1,
        "tare_version": "0.1.0"});
    fs::write(state.join("run.json"), info.to_string()).unwrap();
    state
}

/// A line of a journal with its checksum, as tare itself once wrote them.
fn journal_line(seq: usize, resource: &Value) -> String {
    let event = json!({"kind": "resource-planned", "resource": resource});
    let text = format!("{{\"seq\":{seq},\"at\":\"2026-11-01T00:00:00Z\",\"event\":{event}");
    let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    sum.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let sum = stdout(&sum.wait_with_output().unwrap());
    format!("{text},\"check\":\"{}\"}}\n", &sum[..16])
}

#[test]
fn nothing_that_a_run_folder_says_is_acted_on() {
    apart(|| {
        let mut canaries = Canaries::new("20261101-000000-abcd");
        let folder = canaries.at("folder");
        fs::create_dir(&folder).unwrap();
        let lines: String = canaries.attack().iter().enumerate().map(|(seq, what)| journal_line(seq, what)).collect();
        fs::write(folder.join("journal.jsonl"), &lines).unwrap();
        fs::write(folder.join("ledger.jsonl"), &lines).unwrap();
        let state = dead_run(&canaries.id, &folder);
        let reaped = run(&["reap"]);
        expect_code(&reaped, 0);
        assert!(stdout(&reaped).contains("0 processes killed"), "{}", stdout(&reaped));
        canaries.assert_untouched();
        assert!(!state.exists() && folder.exists());
    });
}

#[test]
fn a_ledger_that_names_what_is_not_the_runs_is_refused_entry_by_entry() {
    apart(|| {
        let mut canaries = Canaries::new("20261101-000000-abcd");
        let state = dead_run(&canaries.id, canaries.folder.path());
        // Without the program: a ledger that is the run's own is where the user's commands come from.
        let entries = &canaries.attack()[..3];
        let lines = (1..).zip(entries).map(|(id, what)| json!({"planned": {"id": id, "resource": what}}).to_string());
        let ledger = state.join("ledger.jsonl");
        fs::write(&ledger, lines.map(|line| line + "\n").collect::<String>()).unwrap();
        fs::set_permissions(&ledger, Permissions::from_mode(0o600)).unwrap();
        let reaped = run(&["reap"]);
        expect_code(&reaped, 1);
        let said = stdout(&reaped);
        assert_eq!(said.matches("still there").count(), 3, "{said}");
        for why in ["is neither below", "not in a control group", "could not be removed"] {
            assert!(said.contains(why), "{why}: {said}");
        }
        canaries.assert_untouched();
        assert!(ledger.exists(), "what is left cannot be tried again");
    });
}

#[test]
fn a_ledger_of_another_owner_or_mode_or_behind_a_link_is_refused_with_the_reason() {
    apart(|| {
        let mut canaries = Canaries::new("20261101-000000-abcd");
        let state = dead_run(&canaries.id, canaries.folder.path());
        let (ledger, named) = (state.join("ledger.jsonl"), canaries.at(&format!("tare-{}", canaries.id)));
        // The run's own, had the run itself written it.
        let entry = json!({"planned": {"id": 1, "resource": {"directory": {"path": named}}}});
        let write = |path: &Path| {
            fs::write(path, format!("{entry}\n")).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        };
        let mut refused = |reason: &str| {
            let reaped = run(&["reap"]);
            expect_code(&reaped, 1);
            let said = stdout(&reaped);
            assert!(said.contains("ledger.jsonl") && said.contains(reason), "{reason}: {said}");
            assert!(named.is_dir() && state.exists());
            canaries.assert_untouched();
        };
        write(&ledger);
        fs::set_permissions(&ledger, Permissions::from_mode(0o644)).unwrap();
        refused("mode 100644");
        write(&ledger);
        chown(&ledger, Some(65_534), None).unwrap();
        refused("owner 65534");
        fs::remove_file(&ledger).unwrap();
        let elsewhere = state.with_file_name("elsewhere.jsonl");
        write(&elsewhere);
        symlink(&elsewhere, &ledger).unwrap();
        refused("it is a link");
        fs::remove_file(&ledger).unwrap();
        // As the run itself writes it, it is believed.
        write(&ledger);
        expect_code(&run(&["reap"]), 0);
        assert!(!named.exists() && !state.exists());
    });
}
