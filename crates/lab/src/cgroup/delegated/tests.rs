//! On directories with a group's files: a real group that systemd hands out needs systemd.
use rustix::fs::XattrFlags;

use super::*;

const MOUNT: &str =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const SCOPE: &str = "/user.slice/user-1000.slice/user@1000.service/app.slice/tare-7-99.scope";

/// A group as systemd hands it out, with `members` in it.
fn group(controllers: &str, members: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("cgroup.type", "domain\n"),
        ("cgroup.controllers", controllers),
        ("cgroup.subtree_control", ""),
        ("cgroup.procs", members),
    ];
    for (file, text) in files {
        fs::write(dir.path().join(file), text).unwrap();
    }
    dir
}

fn own_pid() -> String {
    format!("{}\n", std::process::id())
}

/// Where groups are made, by the texts that a process sees.
fn base(own: &str, rootless: bool) -> std::path::PathBuf {
    Hierarchies::parse(MOUNT, own, rootless).v2_base().unwrap().to_owned()
}

#[test]
fn without_root_groups_are_made_in_our_own_group_and_else_at_the_root() {
    let at = |group: &str| Path::new("/sys/fs/cgroup").join(group.trim_start_matches('/'));
    let session = "/user.slice/user-1000.slice/session-3.scope";
    assert_eq!(base(&format!("0::{session}\n"), true), at(session));
    assert_eq!(base(&format!("0::{session}\n"), false), at(""), "root makes them at the root of the hierarchy");
    // Once it has moved, also in the processes that it starts.
    let moved = format!("0::{SCOPE}/{LEAF}\n");
    assert_eq!((base(&moved, true), base(&moved, false)), (at(SCOPE), at(SCOPE)));
    assert_eq!(base(&format!("0::/{LEAF}\n"), false), at(""), "root in a container, whose group looks like the root");
    let hybrid = format!("{MOUNT}31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    let found = Hierarchies::parse(&hybrid, "2:memory:/\n0::/user.slice\n", true);
    assert_eq!(found.v2_base(), None, "limits are those of version 1 there");
}

#[test]
fn only_a_group_that_was_handed_out_to_us_alone_is_taken() {
    let alone = group("cpu memory pids\n", &own_pid());
    assert!(is_ours_alone(alone.path(), false), "nobody manages the host's groups");
    assert!(!is_ours_alone(alone.path(), true), "systemd did not hand it out, and would change it");
    rustix::fs::setxattr(alone.path(), DELEGATED_ATTRIBUTE, b"1", XattrFlags::empty()).unwrap();
    assert!(is_ours_alone(alone.path(), true));
    fs::write(alone.path().join("cgroup.procs"), format!("{}1\n", own_pid())).unwrap();
    assert!(!is_ours_alone(alone.path(), true), "another process is in it, and is not ours to move");

    let no_cpu = group("memory pids\n", &own_pid());
    assert!(!is_ours_alone(no_cpu.path(), false), "no limits could be set in it");
    let own_scope = tempfile::tempdir().unwrap();
    let named = own_scope.path().join(scope());
    fs::rename(group("cpu memory\n", &own_pid()).keep(), &named).unwrap();
    assert!(is_ours_alone(&named, true), "systemd before 251 marks nothing, but we have asked for this one");
    fs::remove_file(named.join("cgroup.subtree_control")).unwrap();
    assert!(!is_ours_alone(&named, true));
}

#[test]
fn we_move_below_and_the_group_is_fit_for_guests() {
    let scope = group("cpu memory pids\n", &own_pid());
    assert!(crowded(scope.path()).is_some());
    fs::create_dir(scope.path().join(LEAF)).unwrap();
    fs::write(scope.path().join(LEAF).join("cgroup.procs"), "").unwrap();
    move_below(scope.path(), std::process::id()).unwrap();
    assert_eq!(fs::read_to_string(scope.path().join(LEAF).join("cgroup.procs")).unwrap(), own_pid().trim());
    // As the kernel does.
    fs::write(scope.path().join("cgroup.procs"), "").unwrap();
    let found = Hierarchies::version_2_at(scope.path());
    assert_eq!(found.unavailable(), None);
    assert_eq!(found.v2_controllers(), ["cpu", "memory", "pids"]);
    let said = found.particulars().join("\n");
    assert!(said.contains(&scope.path().display().to_string()) && said.contains("they have no `cpuset`"), "{said}");
    fs::write(scope.path().join("cgroup.controllers"), "cpuset cpu memory pids").unwrap();
    assert_eq!(found.particulars().len(), 1 + usize::from(ends_with_session().is_some()), "nothing is missing");
}

#[test]
fn what_a_user_is_not_given_comes_with_the_one_command_that_gives_it() {
    let command = command_for_all(1000);
    assert_eq!(command.lines().count(), 1);
    for part in ["Delegate=cpu cpuset memory pids", "daemon-reload && ", "--machine=1000@.host daemon-reexec"] {
        assert!(command.contains(part), "{command}");
    }
    // A shell takes it whole.
    let parsed = Command::new("sh").args(["-n", "-c", &command]).status().unwrap();
    assert!(parsed.success(), "{command}");
    let why = refused(Path::new("/sys/fs/cgroup/x"), &["cpu", "memory"]);
    assert!(why.contains("/sys/fs/cgroup/x does not have cpu and memory"), "{why}");
}

#[test]
fn a_process_of_the_users_manager_is_known() {
    assert!(is_managed(&format!("0::{SCOPE}/{LEAF}\n"), 1000));
    assert!(!is_managed(&format!("0::{SCOPE}\n"), 1001));
    assert!(!is_managed("0::/user.slice/user-1000.slice/session-3.scope\n", 1000));
    assert!(!is_managed("1:name=systemd:/user@1000.service\n0::/\n", 1000));
    let users = "root:x:0:0:root:/root:/bin/bash\nsomeone:x:1000:1000::/home/someone:/bin/bash\n";
    assert_eq!((rootless::name_of(users, 1000), rootless::name_of(users, 1001)), (Some("someone"), None));
}

#[test]
fn a_scope_is_asked_for_once_by_one_process() {
    assert_eq!(scope(), scope());
    assert!(scope().starts_with(&format!("tare-{}-", std::process::id())) && scope().ends_with(".scope"));
    let command = scoped(Some("tare-7-99.scope"));
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
    assert!(arguments.contains(&"--unit=tare-7-99.scope".to_owned()), "{arguments:?}");
    assert_eq!(arguments.last().map(String::as_str), Some("--"), "what follows is the program, whatever its name");
}
