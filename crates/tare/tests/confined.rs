//! What a guest gets of the host: nothing that was open where tare was started, and of root's power what container engines leave.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{
    CONTAINER, cache, expect_code, is_root, outcomes, processes_of, ran, run_ids, small_study, tare, write_study,
};

/// Descriptors that nobody but the shell of the test opens under these numbers.
const DIRECTORY: u32 = 97;
const LOCKED: u32 = 98;

/// Starts tare from a shell that has the host's root directory and a locked file open.
fn careless(study: &Path, out: &Path, lock: &Path) -> Child {
    let program = tare();
    let script = format!("exec {DIRECTORY}</ {LOCKED}>\"$1\" && flock {LOCKED} && shift && exec \"$@\"");
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script, "bash"])
        .arg(lock)
        .arg(program.get_program())
        // Machines too where KVM runs none.
        .args(["run", "--emulated"])
        .arg(study)
        .arg("--out")
        .arg(out);
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    shell.spawn().unwrap()
}

/// What a process calls itself.
fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Every process below this one.
fn below(head: u32) -> BTreeSet<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = BTreeSet::from([head]);
    while all.iter().fold(false, |more, (pid, parent)| more | (found.contains(parent) && found.insert(*pid))) {}
    found.remove(&head);
    found
}

/// Open files of a process that are the careless shell's.
fn inherited(pid: u32, lock: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let ours = entries.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let leads = std::fs::read_link(entry.path()).ok()?;
        let is_ours = leads == lock || number == LOCKED || (number == DIRECTORY && leads == Path::new("/"));
        is_ours.then(|| format!("{} ({pid}): {number} -> {}", name(pid), leads.display()))
    });
    ours.collect()
}

#[test]
fn nothing_that_was_open_where_tare_was_started_reaches_a_guest_or_a_helper() {
    if !is_root() {
        return;
    }
    let bash = Command::new("bash").args(["-c", "command -v flock"]).stdout(Stdio::null()).status();
    if !bash.is_ok_and(|status| status.success()) {
        return tare_testkit::skipped("needs bash and flock");
    }
    let folder = tempfile::tempdir().unwrap();
    let others = ["lxc", "nspawn", "qemu"].map(|name| format!("[arms.{name}]\nplatform = \"{name}\"\n")).concat();
    let runtimes = ["runc", "runsc"];
    let runtimes =
        runtimes.map(|name| format!("[arms.{name}]\nplatform = \"oci\"\noptions = {{ runtime = \"{name}\" }}\n"));
    // Those that are missing on this host are left out.
    let text = small_study(1, &format!("{CONTAINER}\n{others}{}", runtimes.concat()))
        .replace("128MiB", "256MiB")
        .replace("noise-floor", "skip-unavailable = true\nnoise-floor");
    let study = write_study(folder.path(), &text);
    let (out, lock) = (folder.path().join("run"), folder.path().join("lock"));
    let mut child = careless(&study, &out, &lock);
    let (mut seen, mut wrong) = (BTreeMap::new(), BTreeSet::new());
    let program = std::fs::canonicalize(tare().get_program()).unwrap();
    let is_tare = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    // One that is ending has no program any more, and may still have its files.
    let is_other = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe != program);
    while child.try_wait().unwrap().is_none() {
        if !is_tare(child.id()) {
            // The shell is still busy.
            continue;
        }
        let marked = run_ids(&out).iter().flat_map(|id| processes_of(id)).collect::<BTreeSet<u32>>();
        // tare itself, and a copy of it that is about to become another program, have what they were given.
        for pid in marked.union(&below(child.id())).filter(|pid| is_other(pid)) {
            let found = inherited(*pid, &lock);
            // Looked at again: between two looks it may have become that program.
            wrong.extend(if is_other(pid) { found } else { Vec::new() });
            seen.insert(*pid, name(*pid));
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let ended = child.wait_with_output().unwrap();
    expect_code(&ended, 0);
    assert_eq!(wrong, BTreeSet::new(), "open files of the caller's were handed on");
    // Every trial has a driver and a guest at least, and each was looked at.
    let trials = outcomes(&out).len();
    assert!(trials >= 2 && seen.len() >= 2 * trials, "{trials} trials, and only these were seen: {seen:?}");
    assert!(seen.values().any(|name| name.starts_with("tare-agent")), "{seen:?}");
}

/// Tries what a guest must not do, and fails where it can. Nothing is changed where it can: a file is opened, or given its own
/// value, and what was made is removed.
const ATTEMPTS: &str = "
can() { echo \"a guest can $1\" >&2; exit 1; }
for f in /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger; do
    if (: >>$f) 2>/dev/null; then can \"write to $f\"; fi
done
forward=/proc/sys/net/ipv4/ip_forward
if (cat $forward >/tmp/forward-$$ && cat /tmp/forward-$$ >$forward) 2>/dev/null; then can \"write to $forward\"; fi
rm -f /tmp/forward-$$
if [ -n \"$(dd if=/proc/kcore bs=4 count=1 2>/dev/null)\" ]; then can 'read /proc/kcore'; fi
if mount -t tmpfs none /mnt 2>/dev/null; then can mount; fi
if unshare --net true 2>/dev/null; then can 'make namespaces'; fi
if mknod /tmp/disk-$$ b 7 0 2>/dev/null; then rm /tmp/disk-$$; can 'make device files'; fi
grep -q '^NoNewPrivs:.1' /proc/self/status || can 'gain privileges'
grep -q \"^Seccomp:.$1\" /proc/self/status || can 'make calls that its level of the filter has not'
";

#[test]
fn a_guest_cannot_change_the_host_at_either_level_of_the_filter() {
    if !is_root() {
        return;
    }
    if std::fs::read_to_string("/proc/self/status").unwrap().contains("Seccomp:\t2") {
        return tare_testkit::skipped("this host's own filter of system calls stands in for that of guests");
    }
    let folder = tempfile::tempdir().unwrap();
    let arms = ["lxc", "nspawn"].map(|name| format!("[arms.{name}]\nplatform = \"{name}\"\n")).concat();
    let arms = format!("{CONTAINER}\n[arms.runc]\nplatform = \"oci\"\n{arms}");
    let study = small_study(1, &arms).replace("noise-floor", "skip-unavailable = true\nnoise-floor");
    let (study, _) = study.split_once("[cases.idle]").unwrap();
    let case = |name: &str, mode: u32| {
        let command = serde_json::json!(["sh", "-c", ATTEMPTS, "attempts", mode.to_string()]);
        format!(
            "[cases.{name}]\nworkload = \"exec\"\nguest = {{ seccomp = \"{name}\" }}\nparameters = {{ command = {command} }}\n"
        )
    };
    let (out, output) = ran(folder.path(), &format!("{study}{}{}", case("default", 2), case("off", 0)));
    expect_code(&output, 0);
    let outcomes = outcomes(&out);
    assert!(outcomes.len() >= 4 && outcomes.iter().all(|outcome| outcome == "completed"), "{outcomes:?}");
}

/// The user of a process.
fn owner(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok())
}

/// Arm and case of each trial, and as whom its application ran, as the trial has it.
fn users_by_trial(out: &Path) -> Vec<(String, String, Option<String>)> {
    let results = rusqlite::Connection::open(out.join("results.sqlite")).unwrap();
    let query = "SELECT arm, case_id, value FROM trials LEFT JOIN facts ON facts.trial = trials.trial \
                 AND name IN ('application runs as', 'server runs as', 'instances run as')";
    let mut statement = results.prepare(query).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

const APPLICATIONS: &str = r#"
[phases]
warm-up = "1s"
steady-state = "2s"

[cases.java]
workload = "java"
load = { closed = { clients = 1 } }
parameters = { heap = "96MiB", room = "64MiB" }

[cases.web]
workload = "web-support"
load = { closed = { clients = 2 } }
parameters = { file-sessions = 4, heap = "128MiB", server = "nginx" }

[cases.social]
workload = "social"
load = { closed = { clients = 8 } }
parameters = { scale-users = 25, java = { heap = "160MiB" }, cycle = { mean = "250ms", most = "1250ms" }, pool = 8, threads = 40 }
"#;

#[test]
fn no_application_runs_as_root_on_any_arm() {
    if !is_root() {
        return;
    }
    let cache = cache();
    let is_missing = |bundle: &str| !cache.join(format!("bundle/{bundle}/runtime/bin/java")).exists();
    if let Some(bundle) = ["java", "web", "social"].into_iter().find(|bundle| is_missing(bundle)) {
        return tare_testkit::skipped(&format!("no `{bundle}` for guests: `make build` makes it"));
    }
    if !Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return tare_testkit::skipped("needs nginx");
    }
    let folder = tempfile::tempdir().unwrap();
    let text = small_study(1, &format!("{CONTAINER}\n[arms.lxc]\nplatform = \"lxc\"\n"))
        .replace("noise-floor", "skip-unavailable = true\nnoise-floor")
        .replace("128MiB", "1GiB");
    let study = write_study(folder.path(), &(text.split_once("[phases]").unwrap().0.to_owned() + APPLICATIONS));
    let out = folder.path().join("run");
    let mut child =
        tare().arg("run").arg(&study).arg("--out").arg(&out).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap();
    let mut seen: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    while child.try_wait().unwrap().is_none() {
        for pid in run_ids(&out).iter().flat_map(|id| processes_of(id)) {
            let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let (Some(user), true) = (owner(pid), ["java", "nginx", "postgres"].contains(&program.as_str())) {
                seen.entry(program).or_default().insert(user);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let outcomes = outcomes(&out);
    // So short a time is too short for some of what a site must show to be believed, and for nothing that is looked at here.
    assert!(outcomes.len() >= 6 && !outcomes.contains(&"failed".to_owned()), "{outcomes:?}");
    for (arm, case, user) in users_by_trial(&out) {
        assert_eq!(user.as_deref(), Some("nobody"), "{case} on {arm}");
    }
    for program in ["java", "nginx", "postgres"] {
        let users = seen.get(program).cloned().unwrap_or_default();
        assert!(!users.is_empty() && !users.contains(&0), "{program} was seen to run as {users:?}");
    }
}
