//! Every platform of the registry, for real, against the conformance checks.
//!
//! The agent's program is found through `TARE_AGENT`, or beside the tests in the target directory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tare_lab::StateDir;
use tare_platform::{conformance, registry};

const CYCLES: u32 = 20;

/// One at a time: the checks count this process's descriptors and threads.
static TURN: Mutex<()> = Mutex::new(());

fn agent() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.ancestors().nth(2)?.join("tare-agent"));
    std::env::var_os("TARE_AGENT").map(PathBuf::from).or_else(beside).filter(|path| path.exists())
}

fn conforms(test: &str, platform: &str, options: &Value) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(agent) = agent() else {
        println!("SKIPPED: no agent: `cargo build -p tare-agent` first, or set TARE_AGENT");
        return;
    };
    let entry = registry::find(platform).unwrap();
    let platform = (entry.make)(&(entry.check_options)(options).unwrap()).unwrap();
    let run_id = format!("test-{}-{test}", std::process::id());
    // Its lock keeps a tare that works on this host at the same time from reaping the run.
    let state = StateDir::create(&run_id, std::path::Path::new("/nonexistent")).unwrap();
    match conformance::check(&*platform, &agent, &run_id, state.path(), CYCLES) {
        Err(conformance::Skipped(reason)) => println!("SKIPPED: {reason}"),
        Ok(result) => result.unwrap(),
    }
}

#[test]
fn null_conforms() {
    conforms("null", "null", &json!({}));
}

#[test]
fn native_conforms() {
    conforms("native", "native", &json!({}));
}

#[test]
fn container_conforms() {
    conforms("container", "container", &json!({}));
}

#[test]
fn container_on_disk_conforms() {
    conforms("disk", "container", &json!({"upper": "disk"}));
}

/// Runs itself again in a mount namespace where the place for layers is in memory.
#[test]
fn layers_on_disk_are_refused_where_that_is_memory() {
    const TEST: &str = "layers_on_disk_are_refused_where_that_is_memory";
    if std::env::var_os("TEST_APART").is_some() {
        return conforms("memory", "container", &json!({"upper": "disk"}));
    }
    if agent().is_none() || tare_lab::is_rootless() {
        println!("SKIPPED: needs the agent, and root for mounts");
        return;
    }
    let script = "mount -t tmpfs -o mode=755 none /var/lib && exec \"$0\" --exact --nocapture \"$1\"";
    let inner = std::process::Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(TEST)
        .env("TEST_APART", "1")
        .output();
    let Ok(inner) = inner else {
        println!("SKIPPED: needs unshare");
        return;
    };
    let said = [inner.stdout, inner.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if said.contains("SKIPPED") {
        println!("{said}");
        return;
    }
    assert!(!inner.status.success(), "a layer in memory was taken for one on disk: {said}");
    assert!(said.contains("it is on a tmpfs") && said.contains("upper = "), "{said}");
}

#[test]
fn oci_conforms_with_the_first_runtime() {
    conforms("runc", "oci", &json!({"runtime": "runc"}));
}

#[test]
fn oci_conforms_with_the_second_runtime() {
    conforms("crun", "oci", &json!({"runtime": "crun", "upper": "disk"}));
}

/// The programs that the checks run, with the libraries they need, from this host.
fn small_root(at: &std::path::Path) -> Option<()> {
    // The agent too, where it is one of the tests' own and not the static one.
    let agent = agent()?.to_string_lossy().into_owned();
    for program in ["/bin/sh", "/bin/true", "/bin/sleep", &agent] {
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

#[test]
fn oci_conforms_on_a_directory_and_on_an_archive() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    if small_root(&root).is_none() {
        println!("SKIPPED: the programs for a small root file system are not here (`ldd /bin/sh` failed)");
        return;
    }
    let archive = place.path().join("root.tar");
    let mut builder = tar::Builder::new(std::fs::File::create(&archive).unwrap());
    builder.append_dir_all(".", &root).unwrap();
    builder.finish().unwrap();
    conforms("directory", "oci", &json!({"rootfs": {"directory": root}}));
    conforms("archive", "oci", &json!({"rootfs": {"archive": archive}}));
}
