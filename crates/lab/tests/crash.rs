//! What stays when the controller is killed, and that reaping takes it away.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tare_lab::{Resource, StateDir, is_rootless, left_by_guests, leftovers, make_disk_directory, reap};

/// Reaps the run also when the test fails.
struct Held {
    run_id: String,
    child: Child,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        reap(&self.run_id, &[], &mut |_, _| Ok(()));
    }
}

fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/lab");
    assert!(path.exists(), "`cargo build -p tare-lab --examples` makes {}", path.display());
    path
}

/// Whether this is the inner one of two runs of a test. The outer one runs it again in a mount namespace with a
/// `/run` and `/var/lib` of its own, for a tare that works on this host at the same time would reap the dead runs of the test.
fn apart() -> bool {
    if std::env::var_os("TEST_APART").is_some() {
        return true;
    }
    if is_rootless() {
        eprintln!("SKIPPED: needs root, for control groups and mounts");
        return false;
    }
    let script = "for place in /run /var/lib; do mount -t tmpfs -o mode=755 none $place || exit 1; done; exec \"$0\" --exact --nocapture \"$1\"";
    let inner = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(std::thread::current().name().unwrap())
        .env("TEST_APART", "1")
        .output();
    let Ok(inner) = inner else {
        eprintln!("SKIPPED: needs unshare");
        return false;
    };
    let (out, err) = (String::from_utf8_lossy(&inner.stdout), String::from_utf8_lossy(&inner.stderr));
    assert!(inner.status.success() && out.contains("1 passed"), "{out}{err}");
    eprint!("{err}");
    false
}

fn hold(name: &str) -> (Held, u32, BTreeSet<u64>) {
    let run_id = format!("test-{name}-{}", std::process::id());
    let child = Command::new(example()).args(["hold", &run_id]).stdout(Stdio::piped()).spawn().unwrap();
    ready(Held { run_id, child })
}

/// Waits until the example is ready; its guest's process and its namespaces.
fn ready(mut held: Held) -> (Held, u32, BTreeSet<u64>) {
    let mut line = String::new();
    BufReader::new(held.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut words = line.strip_prefix("ready ").expect("the example is ready").split_whitespace();
    let guest = words.next().unwrap().parse().unwrap();
    (held, guest, words.map(|w| w.parse().unwrap()).collect())
}

/// The network namespaces among `wanted` that some process is in or holds a descriptor of.
fn namespaces_held(wanted: &BTreeSet<u64>) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let mut links = vec![process.path().join("ns/net")];
        links.extend(fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten().map(|fd| fd.path()));
        for link in links {
            let Ok(target) = fs::read_link(link) else { continue };
            let inode = target.to_str().and_then(|t| t.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok());
            found.extend(inode.filter(|inode| wanted.contains(inode)));
        }
    }
    found
}

fn kinds(found: &[String]) -> BTreeSet<&str> {
    found.iter().map(|line| line.rsplit_once(" /").map_or(line.as_str(), |(kind, _)| kind)).collect()
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_controller_leaves_what_reaping_finds_and_nothing_else() {
    if !apart() {
        return;
    }
    let (mut held, guest, namespaces) = hold("crash");
    assert_eq!(namespaces.len(), 4);
    assert_eq!(namespaces_held(&namespaces), namespaces);
    let guests = left_by_guests(&held.run_id).unwrap();
    assert!(guests.contains(&format!("process {guest} (sleep)")), "{guests:?}");
    assert!(guests.iter().any(|line| line.ends_with("/target")), "its group is not listed: {guests:?}");
    let report = reap(&held.run_id, &[], &mut |_, _| Ok(()));
    assert!(report.left[0].1.contains("is alive"), "a live run was reaped: {report:?}");

    held.child.kill().unwrap();
    held.child.wait().unwrap();
    // The guest's process was orphaned and keeps its namespace; the other three went with the controller.
    eventually("namespaces stayed", || namespaces_held(&namespaces).len() == 1);
    let before = leftovers(&held.run_id);
    let process = format!("process {guest} (sleep)");
    assert_eq!(kinds(&before), BTreeSet::from(["control group", "directory", process.as_str()]), "{before:?}");

    let report = reap(&held.run_id, &[], &mut |_, _| Ok(()));
    assert!(report.is_clean(), "{report:?}");
    assert!(report.killed.iter().any(|killed| killed.pid == guest && killed.name == "sleep"), "{report:?}");
    assert_eq!(leftovers(&held.run_id), Vec::<String>::new());
    assert_eq!(left_by_guests(&held.run_id).unwrap(), Vec::<String>::new());
    assert_eq!(namespaces_held(&namespaces), BTreeSet::new());
    assert_eq!(reap(&held.run_id, &[], &mut |_, _| Ok(())), tare_lab::ReapReport::default());
}

#[test]
fn a_list_that_names_what_is_not_the_runs_does_no_harm() {
    if !apart() {
        return;
    }
    let (mut held, _, _) = hold("list");
    held.child.kill().unwrap();
    held.child.wait().unwrap();
    let state = Path::new("/run/tare").join(&held.run_id);
    let kept = tempfile::tempdir().unwrap();
    fs::write(kept.path().join("file"), "x").unwrap();
    let named = kept.path().join(format!("tare-{}", held.run_id));
    fs::create_dir_all(named.join("inside")).unwrap();
    // A run's id in the midst of a path makes it none of the run's.
    let midst = kept.path().join(&held.run_id).join("theirs");
    fs::create_dir_all(&midst).unwrap();
    std::os::unix::fs::symlink(kept.path(), state.join("link")).unwrap();
    let directory = |path: &Path| Resource::Directory { path: path.to_owned() };
    let resources = [
        directory(kept.path()),
        directory(&state.join("link/file")),
        directory(&state.join("../../../tmp")),
        directory(&named),
        directory(&midst),
        Resource::Mount { path: "/".into() },
        Resource::Cgroup { paths: vec!["/sys/fs/cgroup".into()] },
        Resource::Held { platform: "engine".into(), token: "one".into() },
        Resource::Held { platform: "engine".into(), token: "two".into() },
    ];
    let mut asked = Vec::new();
    let report = reap(&held.run_id, &resources, &mut |platform, token| {
        asked.push(format!("{platform} {token}"));
        if token == "two" { Err("the engine does not answer".into()) } else { Ok(()) }
    });
    let left: Vec<&Resource> = report.left.iter().map(|(resource, _)| resource).collect();
    let expected = [6, 8, 5, 0, 1, 2, 4].map(|at| &resources[at]);
    assert_eq!(left, expected, "{report:?}");
    assert_eq!(asked, ["engine \"one\"", "engine \"two\""]);
    assert!(kept.path().join("file").exists() && midst.exists() && !named.exists());
    assert!(state.join("ledger.jsonl").exists(), "it cannot be tried again");
    assert!(reap(&held.run_id, &[], &mut |_, _| Ok(())).is_clean() && !state.exists());
}

#[test]
fn several_that_reap_a_run_at_once_do_no_harm() {
    if !apart() {
        return;
    }
    for round in 0..10 {
        let (mut held, _, _) = hold(&format!("several-{round}"));
        held.child.kill().unwrap();
        held.child.wait().unwrap();
        let start = std::sync::Barrier::new(4);
        let reports: Vec<_> = std::thread::scope(|scope| {
            let reaping = || {
                start.wait();
                reap(&held.run_id, &[], &mut |_, _| Ok(()))
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(reaping)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(reports.iter().all(tare_lab::ReapReport::is_clean), "{reports:?}");
        assert_eq!(leftovers(&held.run_id), Vec::<String>::new());
    }
}

#[test]
fn a_run_whose_ledger_is_refused_stays_until_somebody_looked() {
    if !apart() {
        return;
    }
    let (mut held, guest, _) = hold("refused");
    held.child.kill().unwrap();
    held.child.wait().unwrap();
    let state = Path::new("/run/tare").join(&held.run_id);
    let ledger = state.join("ledger.jsonl");
    fs::set_permissions(&ledger, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(tare_lab::still_planned(&state).is_err());
    let report = reap(&held.run_id, &[], &mut |_, _| Ok(()));
    assert!(report.killed.iter().any(|killed| killed.pid == guest), "what carries the run's id goes: {report:?}");
    let [(Resource::Directory { path }, why)] = report.left.as_slice() else { panic!("{report:?}") };
    assert!(*path == ledger && why.contains("mode 100666"), "{why}");
    assert!(ledger.exists());
    fs::set_permissions(&ledger, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(reap(&held.run_id, &[], &mut |_, _| Ok(())).is_clean() && !state.exists());
}

#[test]
fn a_mount_on_the_list_is_taken_away_and_one_that_is_not_is_left_alone() {
    if !apart() {
        return;
    }
    let run_id = format!("test-mount-{}", std::process::id());
    let state = Path::new("/run/tare").join(&run_id);
    let (listed, other) = (state.join("listed"), state.join("other"));
    for point in [&listed, &other] {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(point).unwrap();
        rustix::mount::mount("none", point, "tmpfs", rustix::mount::MountFlags::empty(), None).unwrap();
    }
    let resources = [Resource::Mount { path: listed.clone() }];
    let report = reap(&run_id, &resources, &mut |_, _| Ok(()));
    assert_eq!(report.removed, resources, "{report:?}");
    assert_eq!(report.left.len(), 1, "{report:?}");
    assert!(report.left[0].1.contains("something is mounted there"), "{report:?}");
    assert!(leftovers(&run_id).contains(&format!("mount {}", other.display())));
    assert!(!listed.exists());

    let resources = [Resource::Mount { path: other }];
    assert!(reap(&run_id, &resources, &mut |_, _| Ok(())).is_clean());
    assert_eq!(leftovers(&run_id), Vec::<String>::new());
}

#[test]
fn layers_on_disk_are_found_by_the_runs_id_when_a_reboot_has_taken_its_state() {
    if !apart() {
        return;
    }
    let run_id = format!("test-disk-{}", std::process::id());
    let disk = make_disk_directory(&run_id).unwrap();
    let layers = disk.join("guests/target");
    fs::create_dir_all(layers.join("upper")).unwrap();
    let found = StateDir::list().unwrap();
    assert_eq!(found.iter().map(|run| (run.run_id.as_str(), run.live)).collect::<Vec<_>>(), [(run_id.as_str(), false)]);
    assert_eq!(leftovers(&run_id), [format!("directory {}", disk.display())]);
    assert_eq!(left_by_guests(&run_id).unwrap(), [format!("directory {}", layers.display())]);
    let report = reap(&run_id, &[], &mut |_, _| Ok(()));
    assert!(report.is_clean() && report.removed == [Resource::Directory { path: disk.clone() }], "{report:?}");
    assert_eq!(leftovers(&run_id), Vec::<String>::new());
    assert!(!disk.parent().unwrap().exists(), "the last one takes the directory above with it");
}

#[test]
fn what_another_user_may_have_made_is_not_reaped() {
    if !apart() {
        return;
    }
    let mut asked = 0;
    let held = [Resource::Held { platform: "engine".into(), token: "one".into() }];
    let mut try_it = || {
        reap("x", &held, &mut |_, _| {
            asked += 1;
            Ok(())
        })
    };
    let state = Path::new("/run/tare/x");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(state).unwrap();
    let base = state.parent().unwrap();
    for open in [state, base] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(try_it().left[0].1.contains("mode 755"), "{}", open.display());
        fs::set_permissions(open, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(open, Some(65_534), None).unwrap();
        assert!(try_it().left[0].1.contains("owner 65534"), "{}", open.display());
        std::os::unix::fs::chown(open, Some(0), None).unwrap();
    }
    assert!(try_it().is_clean() && !state.exists());
    assert_eq!(asked, 1, "a list was acted upon that another may have named");
}

/// The example as user nobody, copied to where nobody may read it; `None` where this host does not allow it.
fn as_nobody(dir: &Path, arguments: &[&str]) -> Option<Command> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.join("lab");
    fs::copy(example(), &program).unwrap();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let allowed = Command::new("setpriv").args(user).args(["unshare", "--user", "true"]).output();
    if is_rootless() || !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: needs root to become nobody, setpriv, and unprivileged user namespaces");
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args(user).arg(program).args(arguments).env_remove("XDG_RUNTIME_DIR");
    Some(command)
}

#[test]
fn without_root_a_lab_passes_traffic_in_a_user_namespace() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut talk) = as_nobody(dir.path(), &["talk"]) else { return };
    let output = talk.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("rootless: true") && out.contains("answered `HELLO`"), "{out}");
}

#[test]
fn without_root_what_a_killed_controller_left_is_reaped() {
    let dir = tempfile::tempdir().unwrap();
    let run_id = format!("test-nobody-{}", std::process::id());
    let Some(mut command) = as_nobody(dir.path(), &["hold", &run_id]) else { return };
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let (mut held, guest, namespaces) = ready(Held { run_id: run_id.clone(), child });
    assert_eq!(namespaces_held(&namespaces), namespaces);
    held.child.kill().unwrap();
    held.child.wait().unwrap();

    let dir = tempfile::tempdir().unwrap();
    let output = as_nobody(dir.path(), &["reap", &run_id]).unwrap().output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let state = format!("directory /tmp/tare-65534/{run_id}");
    assert!(output.status.success(), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.contains(&format!("killed {guest} (sleep)")) && out.contains(&format!("removed {state}")), "{out}");
    eventually("namespaces stayed", || namespaces_held(&namespaces).is_empty());
    assert!(!Path::new("/tmp/tare-65534").join(&run_id).exists());
}
