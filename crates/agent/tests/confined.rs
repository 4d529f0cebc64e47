//! What the programs of a guest have left of root's power, and of whatever was open where the agent was started.

use std::process::{Command, Output};

use tare_model::guest::Seccomp;
use tare_wire::confine::{Confinement, Landlock, MASKED, READ_ONLY, capability_bits, landlock_version};

const AGENT: &str = env!("CARGO_BIN_EXE_tare-agent");

fn skipped(reason: &str) {
    println!("SKIPPED: {reason}");
}

/// What a script of a guest's says, whose agent is started by a shell that runs `before`, as `by`.
fn said(by: &[&str], before: &str, confine: Option<Seccomp>, script: &str) -> Output {
    confined(by, before, confine.map(Confinement::from), script)
}

fn confined(by: &[&str], before: &str, confine: Option<Confinement>, script: &str) -> Output {
    let launch = serde_json::json!({
        "cgroup_procs": [], "netns": null, "cpu_set": [], "unshare": [], "root": null, "hostname": null,
        "confine": confine, "argv": ["sh", "-c", script],
    });
    let start = format!("{before} exec \"$0\" enter \"$1\"");
    let words = ["sh", "-c", &start, AGENT, &launch.to_string()];
    let argv: Vec<&str> = by.iter().chain(&words).copied().collect();
    Command::new(argv[0]).args(&argv[1..]).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Root, or root of a user namespace where this is no root.
fn roots() -> Vec<&'static [&'static str]> {
    const USER_NAMESPACE: &[&str] = &["unshare", "--user", "--map-root-user"];
    let user = Command::new(USER_NAMESPACE[0]).args(&USER_NAMESPACE[1..]).arg("true").output();
    let root = rustix::process::geteuid().is_root().then_some(&[][..]);
    root.into_iter().chain(user.is_ok_and(|ran| ran.status.success()).then_some(USER_NAMESPACE)).collect()
}

#[test]
fn what_engines_leave_is_left_also_in_a_user_namespace() {
    for (by, seccomp) in roots().into_iter().flat_map(|by| Seccomp::ALL.map(|(_, level)| (by, level))) {
        let status = text(&said(by, "", Some(seccomp), "cat /proc/self/status"));
        let bits = format!("{:016x}", capability_bits());
        let mode = if seccomp == Seccomp::Default { "2" } else { "0" };
        for (key, value) in
            [("CapBnd", bits.as_str()), ("CapEff", &bits), ("CapPrm", &bits), ("NoNewPrivs", "1"), ("Seccomp", mode)]
        {
            let line = format!("{key}:\t{value}");
            assert!(status.lines().any(|known| known == line), "{by:?}: no line `{line}` in\n{status}");
        }
    }
}

#[test]
fn paths_of_the_kernel_are_closed_inside_and_nowhere_else() {
    let before = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    for by in roots() {
        let look = READ_ONLY.map(|path| format!("[ ! -e {path} ] || findmnt -no OPTIONS --target {path}")).join("; ");
        let options = text(&said(by, "", Some(Seccomp::Default), &look));
        assert!(
            options.lines().count() >= 3 && options.lines().all(|line| line.starts_with("ro")),
            "{by:?}: {options}"
        );
        let look =
            MASKED.map(|path| format!("[ ! -d {path} ] || ls -A {path}; [ ! -f {path} ] || cat {path}")).join("; ");
        assert_eq!(text(&said(by, "", Some(Seccomp::Default), &look)), "", "{by:?}");
        let tried = said(by, "", Some(Seccomp::Off), "mount -t tmpfs none /mnt || unshare --mount true");
        assert!(!tried.status.success(), "{by:?}: also without the filter nothing is mounted");
    }
    assert_eq!(std::fs::read_to_string("/proc/self/mountinfo").unwrap(), before);
}

#[test]
fn a_writable_mount_below_a_closed_directory_is_closed_too() {
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root, to mount what runtimes mount");
    }
    let mounts = "for closed in /sys /proc/sys; do \
                  mount --rbind $closed $closed && mount -o remount,bind,ro $closed || exit 9; done; \
                  for below in /sys/fs /proc/sys/net; do mount -t tmpfs none $below || exit 9; done;";
    let attempt = "for below in /sys/fs /proc/sys/net; do mkdir $below/x && echo $below; done; true";
    let by = ["unshare", "--mount"];
    assert_eq!(text(&said(&by, mounts, None, attempt)), "/sys/fs\n/proc/sys/net", "what this test is about");
    assert_eq!(text(&said(&by, mounts, Some(Seccomp::Default), attempt)), "");
}

#[test]
fn what_was_open_where_it_was_started_is_not_handed_on() {
    for confine in [None, Some(Seccomp::Default)] {
        if confine.is_some() && roots().is_empty() {
            return skipped("needs root or user namespaces");
        }
        let by = if confine.is_some() { roots()[0] } else { &[] };
        let open = text(&said(by, "exec 7</ 9</etc/passwd;", confine, "ls -l /proc/$$/fd"));
        assert!(!open.contains("-> /\n") && !open.contains("/etc/passwd"), "{open}");
    }
}

/// What the rules let a program do ends well, and all else is refused; whoever is root might do it by the modes of the files. `bash` connects
/// to a port by a path.
const UNDER_RULES: &str = r#"
cat "$BESIDE" && cd "$FOLDER" && mkdir a b && echo x >a/f && mv a/f b/f && ln b/f a/g && true >/dev/null || exit 9
connect() { bash -c ": </dev/tcp/127.0.0.1/$1"; }
for try in 'true >>"$BESIDE"' 'true >"$BESIDE"' 'rm "$BESIDE"' 'ln b/f "$BESIDE.new"' 'mkdir /tare-test' 'mkdir link/tare-test' 'connect 9'; do
    if eval "$try" 2>errors; then echo "can: $try"; fi
    grep -q 'Permission denied' errors || { echo "$try is refused otherwise:"; cat errors; }
done
connect 11 2>errors
grep -q refused errors || cat errors
rm -r a b errors
"#;

#[test]
fn under_landlock_files_are_written_and_ports_used_only_where_the_rules_let_it() {
    match landlock_version() {
        Ok(4..) => {}
        other => return skipped(&format!("this kernel has no Landlock for ports: {other:?}")),
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/usr", folder.path().join("link")).unwrap();
    let beside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(beside.path(), "kept").unwrap();
    let before = format!("export FOLDER='{}' BESIDE='{}';", folder.path().display(), beside.path().display());
    for by in roots() {
        let write = vec!["/dev".into(), folder.path().into(), "/not/there".into()];
        let landlock = Landlock { write, tcp_bind: None, tcp_connect: Some(vec![11]) };
        let under = Confinement { seccomp: Seccomp::Default, landlock: Some(landlock) };
        assert_eq!(text(&confined(by, &before, Some(under), UNDER_RULES)), "kept", "{by:?}");
    }
    assert_eq!(std::fs::read_to_string(beside.path()).unwrap(), "kept");
}
