//! Hosts on which what a run needs is missing or forbidden: what was tried, why it failed and the remedy are said before anything
//! starts, and nothing is left. Each is made of this one, in a mount namespace of its own.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{
    CONTAINER, expect_code, findings, is_root, left_by_runs_into, outcomes, run_as_nobody, small_study, stderr, stdout,
    tare, write_study,
};

const RUNC: &str = "[arms.runc]\nplatform = \"oci\"\noptions = { runtime = \"runc\" }";
/// Root with all of its rights, but held to the modes of files: as under SELinux, the kernel answers EACCES.
const HELD: &str = "setpriv --bounding-set -dac_override,-dac_read_search --inh-caps -dac_override,-dac_read_search";
/// A /run of the test's own: runs of others are not seen.
const OWN: &str = "mount -t tmpfs -o mode=755 none /run";

/// Runs a study where `made` was run before, as `user`; `None`, and the test is skipped, where there can be no such host.
fn run_on(made: &str, user: &str, arms: &str, folder: &Path) -> Option<Output> {
    if !is_root() {
        return None;
    }
    let program = tare();
    let script = format!("{{ {made}; }} || exit 77; exec {user} \"$@\"");
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
    shell.arg(program.get_program()).arg("run").arg(write_study(folder, &small_study(1, arms)));
    shell.arg("--out").arg(folder.join("out"));
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Ok(output) = shell.output() else {
        tare_testkit::skipped("needs unshare");
        return None;
    };
    if output.status.code() == Some(77) {
        tare_testkit::skipped(&format!("such a host cannot be made of this one: {}", stderr(&output)));
        return None;
    }
    Some(output)
}

/// It does not start there, says all of these, and leaves nothing.
#[track_caller]
fn refused(made: &str, user: &str, arms: &str, says: &[&str]) {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let Some(output) = run_on(made, user, arms, folder.path()) else { return };
    let said = stderr(&output);
    assert!(!output.status.success(), "{said}{}", stdout(&output));
    for word in says {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(left_by_runs_into(&folder.path().join("out")), Vec::<String>::new());
    let completed = folder.path().join("out/findings.json").exists();
    assert!(!completed, "something was measured: {said}");
}

#[test]
fn nothing_is_executed_from_run() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let made = "mount -t tmpfs -o noexec,nosuid,mode=755 none /run";
    let arms = if Path::new("/usr/sbin/runc").exists() { format!("{CONTAINER}\n{RUNC}") } else { CONTAINER.into() };
    let Some(output) = run_on(made, "", &arms, folder.path()) else { return };
    expect_code(&output, 0);
    assert!(outcomes(&folder.path().join("out")).iter().all(|own| own == "completed"), "{}", stderr(&output));
}

#[test]
fn a_run_directory_that_is_read_only_is_named() {
    refused("mount -t tmpfs -o ro none /run", "", CONTAINER, &["/run/tare", "Read-only file system", "can be written"]);
}

#[test]
fn root_that_is_denied_something_is_shown_where_the_denial_is_written() {
    let closed = "mount -t tmpfs -o mode=555,uid=1,gid=1 none /run";
    refused(closed, HELD, "", &["/run/tare", "Permission denied", "SELinux or AppArmor", "ausearch"]);
}

#[test]
fn control_groups_that_cannot_be_written_are_named() {
    let made = format!(
        "{OWN}; for at in $(awk '$3 ~ /^cgroup/ {{print $2}}' /proc/mounts); do mount -o remount,ro,bind $at || exit 77; done"
    );
    refused(&made, "", RUNC, &["/sys/fs/cgroup", "Read-only file system", "remedy"]);
}

/// A user makes namespaces where the host lets him; limits are for systemd to give, and may be missing.
#[test]
fn a_user_without_root_has_sandboxes_of_bubblewrap_and_rules_of_landlock() {
    if !is_root() {
        return;
    }
    if Command::new("bwrap").arg("--version").output().is_err() {
        return tare_testkit::skipped("needs bwrap");
    }
    let ruled = |arm: &str, platform: &str| {
        format!(
            "[arms.{arm}]\nplatform = \"{platform}\"\n[arms.{arm}-ruled]\nplatform = \"{platform}\"\noptions = {{ landlock = true }}\n"
        )
    };
    let arms = ruled("container", "container") + &ruled("sandbox", "bubblewrap");
    let (place, mut command) = run_as_nobody(&small_study(1, &arms));
    let output = command.output().unwrap();
    let said = stderr(&output);
    if ["user namespace", "Landlock"].iter().any(|missing| said.contains(missing)) && !output.status.success() {
        return tare_testkit::skipped(&format!("needs setpriv, unprivileged user namespaces and Landlock: {said}"));
    }
    expect_code(&output, 0);
    let out = place.path().join("run");
    assert!(outcomes(&out).iter().all(|own| own == "completed"), "{said}");
    let found = findings(&out);
    let ruled = |arm: &serde_json::Value| arm["arm"].as_str().unwrap().ends_with("-ruled");
    let arms = found["parity"].as_array().unwrap();
    assert_eq!((arms.iter().filter(|arm| ruled(arm)).count(), arms.len()), (2, 5), "{arms:?}");
    for arm in arms {
        let row = arm["rows"].as_array().unwrap().iter().find(|row| row["resource"] == "Landlock");
        assert_eq!(row.map(|row| row["granted"].as_str().unwrap()), ruled(arm).then_some("in force"), "{arm}");
    }
}
