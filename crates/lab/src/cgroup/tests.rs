//! Version 1 and hybrid groups for real (they need root and a host that has them), version 2 on a
//! directory with the same files.
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tare_model::ByteSize;
use tare_model::guest::GuestSize;

use super::*;
use crate::process;

/// A group of a run of its own, removed also when the test fails.
struct Trial {
    run_id: String,
    group: Cgroup,
    children: Vec<Child>,
}

impl Trial {
    fn new(name: &str, limits: &Limits) -> Option<Self> {
        if let Some(why) = Cgroup::unavailable() {
            eprintln!("SKIPPED: {why}");
            return None;
        }
        let run_id = format!("test-{name}-{}", std::process::id());
        let group = Cgroup::create(Cgroup::plan(&run_id, "guest").unwrap(), limits).unwrap();
        Some(Self { run_id, group, children: Vec::new() })
    }

    /// A shell that moves itself into the group as a launcher does, then runs `script`.
    fn start(&mut self, script: &str) -> u32 {
        let moves: String = self.group.procs_files().iter().map(|f| format!("echo 0 > '{}'; ", f.display())).collect();
        let child = Command::new("sh").args(["-c", &format!("{moves}{script}")]).stdout(Stdio::null()).spawn().unwrap();
        self.children.push(child);
        self.children.last().unwrap().id()
    }

    fn wait(&mut self) {
        for child in &mut self.children {
            child.wait().unwrap();
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let removed = remove_run_groups(&self.run_id);
        self.children.iter_mut().for_each(|child| drop(child.wait()));
        if !std::thread::panicking() {
            removed.unwrap();
        }
    }
}

fn eventually(what: &str, done: impl FnMut() -> bool) {
    assert!(process::wait_until(Duration::from_secs(30), done), "{what}");
}

fn all_equal(rows: &[tare_model::guest::ParityRow]) -> bool {
    rows.iter().all(|row| row.equal)
}

#[test]
fn what_was_asked_is_what_the_kernel_grants() {
    let limits = Limits {
        cpu_quota_cpus: Some(1),
        cpu_set: vec![0],
        memory_bytes: Some(100_000_001),
        processes: Some(PROCESSES),
    };
    let Some(trial) = Trial::new("parity", &limits) else { return };
    let size = GuestSize { cpus: 1, memory: ByteSize(100_000_001) };
    let rows = trial.group.parity(&size, &[0]);
    assert_eq!(
        rows.iter().map(|r| r.resource.as_str()).collect::<Vec<_>>(),
        ["cpu quota", "cpu set", "memory limit", "process limit"]
    );
    // Not every host has the controller for the last.
    let explained = |row: &tare_model::guest::ParityRow| row.equal || row.note.contains("have no controller `pids`");
    assert!(all_equal(&rows[..3]) && explained(&rows[3]), "{rows:?}");
    assert!(rows[2].note.contains("in whole pages"), "{rows:?}");
    assert_ne!(rows[2].granted.as_deref(), Some("100000001B"), "the kernel counts in pages");

    let other = GuestSize { cpus: 2, memory: ByteSize(100_000_001 + (1 << 20)) };
    let rows = trial.group.parity(&other, &[0, 1]);
    assert!(rows[..3].iter().all(|row| !row.equal && row.granted.is_some()), "{rows:?}");
}

#[test]
fn a_group_without_limits_is_distinguished_from_one_with() {
    let Some(trial) = Trial::new("none", &Limits::default()) else { return };
    let rows = trial.group.parity(&GuestSize { cpus: 1, memory: ByteSize(1 << 20) }, &[]);
    assert!(!rows[0].equal && !rows[2].equal, "{rows:?}");
    assert!(rows[1].equal, "an empty set asks for any CPU: {rows:?}");
}

#[test]
fn a_smaller_limit_above_is_what_is_granted() {
    let limits = Limits { memory_bytes: Some(64 << 20), ..Limits::default() };
    let Some(trial) = Trial::new("above", &limits) else { return };
    let run = trial.group.dirs.of("memory").unwrap().parent().unwrap().to_owned();
    let name = if trial.group.dirs.v2_limits { "memory.max" } else { "memory.limit_in_bytes" };
    write(&run.join(name), &(32u64 << 20).to_string()).unwrap();
    let row = &trial.group.parity(&GuestSize { cpus: 1, memory: ByteSize(64 << 20) }, &[])[2];
    assert_eq!((row.granted.as_deref(), row.equal), (Some("32MiB"), false), "{row:?}");
    assert!(row.note.contains(run.to_str().unwrap()), "{row:?}");
}

#[test]
fn a_group_has_no_more_processes_than_its_limit() {
    let Some(mut trial) = Trial::new("fork", &Limits { processes: Some(4), ..Limits::default() }) else { return };
    let Some(dir) = trial.group.dirs.of("pids").map(Path::to_owned) else {
        eprintln!("SKIPPED: this host's control groups have no controller `pids`");
        return;
    };
    trial.start("for n in 1 2 3 4 5 6 7 8 9; do sleep 30 & done; wait");
    eventually("nothing was refused", || {
        let events = read(&dir.join("pids.events")).unwrap();
        events.lines().any(|line| line.strip_prefix("max ").is_some_and(|times| times != "0"))
    });
    assert!(processes_below(trial.group.paths()).len() <= 4);
    let row = &trial.group.parity(&GuestSize { cpus: 1, memory: ByteSize(1 << 20) }, &[])[3];
    assert_eq!((row.granted.as_deref(), row.equal), (Some("4"), false), "{row:?}");
}

#[test]
fn a_quota_throttles_and_the_time_is_accounted() {
    let Some(mut trial) = Trial::new("quota", &Limits::default()) else { return };
    // A twentieth of a CPU, so that even a host with much else to do would give more than the quota.
    let quota_us = limits::PERIOD_US / 20;
    limits::set_quota(trial.group.dirs.of("cpu").unwrap(), trial.group.dirs.v2_limits, quota_us).unwrap();
    trial.start("while :; do :; done");
    eventually("a busy loop was never throttled", || trial.group.cpu().unwrap().nr_throttled >= 3);
    let start = std::time::Instant::now();
    let before = trial.group.cpu().unwrap();
    eventually("no time passed", || start.elapsed() > Duration::from_secs(1));
    let after = trial.group.cpu().unwrap();
    let (used, elapsed) = (after.total_s - before.total_s, start.elapsed().as_secs_f64());
    // The kernel hands the quota out in slices of 5 ms and may overrun by a tick in each period.
    assert!(used > 0.0 && used <= 0.25 * elapsed, "{used} s used in {elapsed} s by a quota of a twentieth");
    assert!(after.throttled_s > before.throttled_s, "{before:?} {after:?}");
    assert!((after.user_s + after.system_s - after.total_s).abs() < 1e-3, "{after:?}");
    trial.group.kill().unwrap();
}

#[test]
fn a_cpu_set_binds_what_is_moved_in() {
    let limits = Limits { cpu_set: vec![0], ..Limits::default() };
    let Some(mut trial) = Trial::new("set", &limits) else { return };
    let mut child = Command::new("sleep").arg("30").spawn().unwrap();
    trial.group.add(child.id()).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    trial.group.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(allowed, "0");
    assert!(trial.group.add(child.id()).is_err(), "a process that is gone was added");
    trial.group.remove().unwrap();
}

#[test]
fn the_memory_limit_holds_and_its_kills_are_counted() {
    let limits = Limits { memory_bytes: Some(16 << 20), ..Limits::default() };
    let Some(mut trial) = Trial::new("memory", &limits) else { return };
    // `tail` keeps the one endless line in memory.
    trial.start("head -c 64M /dev/zero | tail > /dev/null");
    trial.wait();
    let memory = trial.group.memory().unwrap();
    assert!(memory.oom_kills >= 1, "{memory:?}");
    assert!(memory.peak_bytes.is_none_or(|peak| peak <= 16 << 20 && peak > 8 << 20), "{memory:?}");
}

#[test]
fn the_limit_of_all_guests_strikes_among_them_and_is_taken_away() {
    // The guest by itself may take more than all of them together.
    let limits = Limits { memory_bytes: Some(256 << 20), ..Limits::default() };
    let Some(mut trial) = Trial::new("together", &limits) else { return };
    limit_run(&trial.run_id, Some(32 << 20)).unwrap();
    trial.start("head -c 100m /dev/zero | tail");
    trial.wait();
    let groups = run_groups(&trial.run_id).unwrap();
    let killed = trial.group.memory().unwrap().oom_kills;
    assert!(killed > 0);
    assert_eq!(oom_kills_in(&groups), Some(killed), "the run's groups count what happens below them");
    limit_run(&trial.run_id, None).unwrap();
    let before = trial.group.memory().unwrap().oom_kills;
    trial.start("head -c 100m /dev/zero | tail");
    trial.wait();
    assert_eq!(trial.group.memory().unwrap().oom_kills, before);
    assert!(trial.group.memory().unwrap().peak_bytes.is_none_or(|peak| peak > 64 << 20));
}

#[test]
fn a_guest_that_is_being_made_is_killed_by_its_name() {
    let Some(mut trial) = Trial::new("byname", &Limits::default()) else { return };
    kill_guest(&trial.run_id, "other").unwrap();
    // Not every shell runs its last command in its own place.
    let pid = trial.start("exec sleep 600");
    eventually("it moved itself", || processes_in(trial.group.paths()) == [pid]);
    kill_guest(&trial.run_id, "guest").unwrap();
    trial.wait();
    assert_eq!(processes_in(trial.group.paths()), Vec::<u32>::new());
}

#[test]
fn what_forks_without_end_is_killed_and_the_group_goes() {
    let Some(mut trial) = Trial::new("fork", &Limits::default()) else { return };
    let first = trial.start("while :; do sleep 30 & sleep 0.001; done");
    eventually("it never forked", || processes_below(trial.group.paths()).len() > 5);
    // A guest may have made groups inside.
    let inner = trial.group.paths()[0].join("inner");
    fs::create_dir(&inner).unwrap();
    trial.group.kill().unwrap();
    trial.wait();
    assert_eq!(processes_below(trial.group.paths()), Vec::<u32>::new());
    assert!(process::stat(first).is_none());
    trial.group.remove().unwrap();
    assert!(trial.group.paths().iter().all(|path| !path.exists()));
    trial.group.kill().unwrap();
    trial.group.remove().unwrap();
    assert!(!find_run_groups(&trial.run_id).is_empty(), "the run's own directory stays for its other guests");
    // Other programs make groups of the run's name in hierarchies that tare does not use.
    let foreign = hierarchy::every_mount().iter().map(|m| m.join(run_group(&trial.run_id))).find(|g| !g.exists());
    foreign.iter().for_each(|group| fs::create_dir_all(group.join("guest")).unwrap());
    remove_run_groups(&trial.run_id).unwrap();
    assert!(foreign.is_none_or(|group| !group.exists()));
    assert_eq!(find_run_groups(&trial.run_id), Vec::<PathBuf>::new());
}

#[test]
fn a_group_with_processes_is_not_taken_over_and_a_bad_limit_leaves_nothing() {
    let Some(mut trial) = Trial::new("taken", &Limits::default()) else { return };
    let pid = trial.start("sleep 30");
    eventually("it never moved", || processes_below(trial.group.paths()).contains(&pid));
    let plan = Cgroup::plan(&trial.run_id, "guest").unwrap();
    let error = Cgroup::create(plan, &Limits::default()).map(drop).unwrap_err();
    assert!(matches!(error, LabError::Refused { .. }), "{error}");
    assert!(processes_below(trial.group.paths()).contains(&pid), "it was killed");

    let plan = Cgroup::plan(&trial.run_id, "other").unwrap();
    let paths = plan.paths().to_vec();
    let error = Cgroup::create(plan, &Limits { cpu_set: vec![9999], ..Limits::default() }).map(drop).unwrap_err();
    assert!(error.to_string().contains("9999") && error.to_string().contains("cpuset.cpus"), "{error}");
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn where_there_are_no_groups_nothing_is_granted_and_the_reason_is_given() {
    let plan = Hierarchies::default().plan("run", "guest").unwrap();
    assert!(plan.paths().is_empty());
    let mut group = Cgroup::create(plan, &Limits { cpu_quota_cpus: Some(1), ..Limits::default() }).unwrap();
    let rows = group.parity(&GuestSize { cpus: 1, memory: ByteSize(1 << 30) }, &[]);
    assert!(rows.iter().all(|row| row.granted.is_none() && !row.equal && row.note.contains("no control groups")));
    group.add(std::process::id()).unwrap();
    group.kill().unwrap();
    group.remove().unwrap();
    assert!(group.cpu().unwrap_err().to_string().contains("no control groups"));
    assert!(matches!(Hierarchies::default().mode(), CgroupMode::None(_)));
}

/// A directory with the files of a version 2 hierarchy, as the kernel makes them.
struct Version2 {
    dir: tempfile::TempDir,
}

impl Version2 {
    fn new(enabled: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fake = Self { dir };
        for (group, files) in [
            ("", &[("cgroup.controllers", "cpuset cpu io memory pids"), ("cgroup.subtree_control", enabled)][..]),
            ("tare-run", &[("cgroup.subtree_control", ""), ("memory.max", "max"), ("cpu.max", "max 100000")]),
            (
                "tare-run/guest",
                &[
                    ("cgroup.procs", ""),
                    ("cpu.max", ""),
                    ("memory.max", ""),
                    ("pids.max", "max"),
                    ("memory.swap.max", ""),
                    ("cpuset.cpus", ""),
                    (
                        "cpu.stat",
                        "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\nnr_periods 9\nnr_throttled 4\nthrottled_usec 500000",
                    ),
                    ("memory.current", "4096\n"),
                    ("memory.peak", "8192\n"),
                    ("memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n"),
                ],
            ),
        ] {
            fs::create_dir_all(fake.at(group)).unwrap();
            for (file, text) in files {
                fs::write(fake.at(group).join(file), text).unwrap();
            }
        }
        fake
    }

    fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.dir.path().to_owned() } else { self.dir.path().join(path) }
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    fn hierarchies(&self) -> Hierarchies {
        Hierarchies::version_2_at(self.dir.path())
    }
}

#[test]
fn version_2_limits_are_written_as_its_documentation_says() {
    let fake = Version2::new("cpuset cpu memory pids");
    assert_eq!(fake.hierarchies().mode(), CgroupMode::V2);
    let plan = fake.hierarchies().plan("run", "guest").unwrap();
    assert_eq!(plan.resource(), Resource::Cgroup { paths: vec![fake.at("tare-run/guest")] });
    let limits = Limits {
        cpu_quota_cpus: Some(2),
        cpu_set: vec![3, 0, 1],
        memory_bytes: Some(1 << 30),
        processes: Some(PROCESSES),
    };
    let group = Cgroup::create(plan, &limits).unwrap();
    assert_eq!(fake.text("tare-run/guest/cpu.max"), "200000 100000");
    assert_eq!(fake.text("tare-run/guest/memory.max"), "1073741824");
    assert_eq!(fake.text("tare-run/guest/memory.swap.max"), "0");
    assert_eq!(fake.text("tare-run/guest/pids.max"), "16384");
    assert_eq!(fake.text("tare-run/guest/cpuset.cpus"), "0-1,3");
    assert_eq!(fake.text("cgroup.subtree_control"), "cpuset cpu memory pids", "nothing was missing at the root");

    fs::write(fake.at("tare-run/guest/cpuset.cpus.effective"), "0-1,3\n").unwrap();
    let size = GuestSize { cpus: 2, memory: ByteSize(1 << 30) };
    let rows = group.parity(&size, &[0, 1, 3]);
    assert!(all_equal(&rows), "{rows:?}");
    fs::write(fake.at("tare-run/cpu.max"), "150000 100000").unwrap();
    let row = &group.parity(&size, &[])[0];
    assert_eq!((row.granted.as_deref(), row.equal), (Some("1.5 CPUs"), false), "the group above grants less");

    let cpu = group.cpu().unwrap();
    let expected = GroupCpu { user_s: 2.0, system_s: 1.0, total_s: 3.0, throttled_s: 0.5, nr_throttled: 4 };
    assert_eq!(cpu, expected);
    let memory = GroupMemory { current_bytes: 4096, peak_bytes: Some(8192), oom_kills: 2 };
    assert_eq!(group.memory().unwrap(), memory);
}

#[test]
fn all_guests_of_a_run_are_limited_together_in_version_2() {
    let fake = Version2::new("cpuset cpu memory pids");
    let set = |bytes| run::limit_in(&fake.hierarchies(), "run", bytes).unwrap();
    // No file is made where the kernel has none.
    set(Some(1 << 30));
    assert!(
        fake.text("tare-run/memory.max").starts_with("1073741824") && !fake.at("tare-run/memory.swap.max").exists()
    );
    fs::write(fake.at("tare-run/memory.swap.max"), "max").unwrap();
    set(Some(1 << 30));
    assert!(fake.text("tare-run/memory.swap.max").starts_with('0'));
    set(None);
    assert!(["max", "swap.max"].iter().all(|file| fake.text(&format!("tare-run/memory.{file}")).starts_with("max")));
    // What its file tells is of all groups below it, so those are not added.
    assert_eq!(oom_kills_in(&[fake.at("tare-run")]), None, "no account");
    fs::write(fake.at("tare-run/memory.events"), "oom 9\noom_kill 3\n").unwrap();
    assert_eq!(oom_kills_in(&[fake.at("tare-run/guest")]), Some(2));
    assert_eq!(oom_kills_in(&[fake.at("tare-run"), fake.at("tare-other")]), Some(3));
    // A run that has had no guest has nothing to be limited.
    run::limit_in(&fake.hierarchies(), "other", None).unwrap();
    assert!(!fake.at("tare-other").exists());
}

#[test]
fn kills_in_version_1_are_added_up_for_it_counts_them_in_one_group_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("guest/inner");
    fs::create_dir_all(&inner).unwrap();
    for (group, kills) in [(folder.path(), 0), (&folder.path().join("guest"), 1), (&inner, 2)] {
        let text = format!("oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n");
        fs::write(group.join("memory.oom_control"), text).unwrap();
    }
    assert_eq!(oom_kills_in(&[folder.path().to_owned()]), Some(3));
    assert_eq!(oom_kills_in(&[]), None);
}

#[test]
fn version_2_controllers_that_were_enabled_for_a_run_are_put_back() {
    let fake = Version2::new("memory");
    let plan = fake.hierarchies().plan("run", "guest").unwrap();
    Cgroup::create(plan, &Limits::default()).unwrap();
    // A plain file keeps the bytes of the last write, the kernel adds each to the set.
    assert!(fake.text("cgroup.subtree_control").contains("+pids"));
    assert_eq!(end::enabled_for(&fake.at("tare-run")), "cpu cpuset pids");
    fs::create_dir(fake.at("tare-other")).unwrap();
    assert_eq!(end::enabled_for(&fake.at("tare-run")), "", "another run needs them still");
    fs::remove_dir_all(fake.at("tare-run")).unwrap();
    assert_eq!(end::enabled_for(&fake.at("tare-other")), "cpu cpuset pids", "and puts them back when it ends");
    fs::write(fake.at("cgroup.subtree_control"), "").unwrap();
    end::put_back(&fake.at(""), "cpuset").unwrap();
    assert_eq!(fake.text("cgroup.subtree_control"), "-cpuset");
}

#[test]
fn a_controller_in_which_others_have_set_a_limit_meanwhile_is_not_taken_away() {
    let fake = Version2::new("");
    for (group, max) in [("tare-run/fresh", "max 100000"), ("system.slice", "max 100000")] {
        fs::create_dir(fake.at(group)).unwrap();
        fs::write(fake.at(group).join("cpu.max"), max).unwrap();
        fs::write(fake.at(group).join("cpu.stat"), format!("usage_usec {}", group.len())).unwrap();
        fs::write(fake.at(group).join("cpuset.cpus"), "").unwrap();
    }
    let unused = || end::unused(&fake.at("tare-run"), "cpu cpuset");
    assert_eq!(unused(), "cpu cpuset", "what others have used is no setting");
    fs::write(fake.at("system.slice/cpu.max"), "50000 100000").unwrap();
    assert_eq!(unused(), "cpuset", "its quota would be gone");
}

#[test]
fn in_a_container_the_rule_against_internal_processes_is_reported_before_anything_is_made() {
    let fake = Version2::new("");
    fs::write(fake.at("cgroup.type"), "domain\n").unwrap();
    fs::write(fake.at("cgroup.procs"), "1\n").unwrap();
    let why = fake.hierarchies().unavailable().unwrap();
    assert!(why.contains("has processes in it"), "{why}");
    fs::write(fake.at("cgroup.procs"), "").unwrap();
    assert_eq!(fake.hierarchies().unavailable(), None);
    fs::write(fake.at("cgroup.controllers"), "hugetlb").unwrap();
    let why = fake.hierarchies().unavailable().unwrap();
    assert!(why.contains("a controller is missing"), "{why}");
}

#[test]
fn without_cpuset_limits_are_set_and_the_row_says_what_processes_are_bound_to() {
    let fake = Version2::new("cpu memory pids");
    fs::write(fake.at("cgroup.controllers"), "cpu memory pids").unwrap();
    fs::remove_file(fake.at("tare-run/guest/cpuset.cpus")).unwrap();
    assert_eq!(fake.hierarchies().mode(), CgroupMode::V2);
    let limits = Limits { cpu_quota_cpus: Some(1), cpu_set: vec![0], memory_bytes: Some(1 << 30), processes: None };
    let plan = fake.hierarchies().plan("run", "guest").unwrap();
    let group = Cgroup::create(plan, &limits).unwrap();
    assert_eq!(fake.text("tare-run/guest/cpu.max"), "100000 100000");
    let size = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
    let row = || group.parity(&size, &[0]).remove(1);
    assert!(row().granted.is_none() && !row().equal && row().note.contains("no process"), "{:?}", row());

    let mut bound = Command::new("sleep").arg("30").spawn().unwrap();
    fs::write(fake.at("tare-run/guest/cgroup.procs"), format!("{}\n", bound.id())).unwrap();
    crate::set_affinity(Some(bound.id()), &[0]).unwrap();
    let said = row();
    let all = crate::online_cpus().unwrap();
    let widened = crate::set_affinity(Some(bound.id()), &all).map(|_| row());
    bound.kill().unwrap();
    bound.wait().unwrap();
    assert_eq!((said.granted.as_deref(), said.equal), (Some("0"), true), "{said:?}");
    assert!(said.note.contains("have no controller `cpuset`") && said.note.contains("undo"), "{said:?}");
    assert_eq!(widened.unwrap().equal, all == [0], "one that is bound to others is seen");
}

#[test]
fn a_group_that_we_are_in_is_never_killed() {
    let fake = Version2::new("cpuset cpu memory pids");
    let plan = fake.hierarchies().plan("run", "guest").unwrap();
    let group = Cgroup::create(plan, &Limits::default()).unwrap();
    let procs = format!("{}\n", std::process::id());
    fs::write(fake.at("tare-run/guest/cgroup.procs"), procs).unwrap();
    fs::write(fake.at("tare-run/guest/cgroup.kill"), "").unwrap();
    assert!(matches!(end::kill_members(group.paths()), Err(LabError::Refused { .. })));
    assert_eq!(fake.text("tare-run/guest/cgroup.kill"), "");
}

#[test]
fn a_plain_file_named_as_the_kernels_kills_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let group = folder.path().join("tare-run/guest");
    fs::create_dir_all(&group).unwrap();
    let mut child = Command::new("sleep").arg("30").spawn().unwrap();
    fs::write(group.join("cgroup.procs"), format!("{}\n", child.id())).unwrap();
    assert!(!is_control_group(&group) && !is_tare_group(&group, "run"));
    let killed = kill(std::slice::from_ref(&group));
    let removed = kill_and_remove(&[group]);
    let lives = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lives, "it was killed: {killed:?} {removed:?}");
    let why = killed.unwrap_err().to_string();
    assert!(why.contains("file system of control groups"), "{why}");
}
