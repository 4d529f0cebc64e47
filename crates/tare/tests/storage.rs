//! Storage paths of virtual machines: what `plan` refuses, and `run` before its first trial.

#[path = "../../platform/tests/common/in_memory.rs"]
mod in_memory;
#[path = "../../platform/tests/common/loop_device.rs"]
mod loop_device;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{self, expect_code, is_root, outcomes, postgres, ran, run, stderr, stdout, write_study};
use in_memory::InMemory;
use loop_device::Loop;
use tare_testkit::skipped;

/// Two guests at one time; `disk` are the options of the machines' data disk.
fn study(postgres: &str, disk: &str) -> String {
    let arm = format!("[arms.vm]\nplatform = \"qemu\"\noptions = {{ accel = \"tcg\", data-disk = {disk} }}");
    let case = format!(
        r#"[cases.orders]
workload = "store"
guests = 2
load = {{ closed = {{ clients = 2 }} }}
parameters = {{ db-size = "10MB", postgres = "{postgres}", settings = {{ max_wal_size = "64MB", min_wal_size = "32MB" }} }}
"#
    );
    common::study(1, &arm, "512MiB", &[("warm-up", "1s"), ("steady-state", "2s")], &case)
}

/// Two devices of so many bytes and the name by which a study has one for each guest; `None` where there can be none.
fn devices(place: &Path, bytes: u64) -> Option<([Loop; 2], String)> {
    let device = |number: u32| {
        let device = Loop::of(&place.join(format!("file-{number}")), bytes)?;
        let link = place.join(format!("disk-{number}"));
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&device.0, link).unwrap();
        Some(device)
    };
    let devices = [device(1)?, device(2)?];
    Some((devices, place.join("disk-{guest}").display().to_string()))
}

/// A study, and why it cannot be run here whatever its storage.
fn usable(folder: &Path, postgres: &str) -> bool {
    let path = write_study(folder, &study(postgres, "{}"));
    let output = run(&["plan", path.to_str().unwrap()]);
    if output.status.code() != Some(0) {
        skipped(&format!("machines cannot be run here: {}", stderr(&output)));
    }
    output.status.code() == Some(0)
}

#[test]
fn plan_refuses_disks_that_are_not_there_too_small_or_one_for_two() {
    let Some(postgres) = is_root().then(postgres).flatten() else { return };
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    if !usable(folder.path(), &postgres) {
        return;
    }
    let refused = |disk: &str, words: &[&str]| {
        let text = study(&postgres, disk);
        let path = write_study(folder.path(), &text);
        let output = run(&["plan", path.to_str().unwrap()]);
        let said = stderr(&output);
        assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
        assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {said}");
        // And the same before the first trial of a run.
        let (out, output) = ran(folder.path(), &text);
        assert!(output.status.code() != Some(0) && stderr(&output).contains(words[0]), "{}", stderr(&output));
        assert!(!out.join("results.sqlite").exists() || outcomes(&out).is_empty(), "a trial was run");
        let _ = std::fs::remove_dir_all(out);
    };
    refused("{ size = \"16MiB\" }", &["16MiB", "`size`"]);
    let Some((devices, each)) = devices(folder.path(), 32 << 20) else {
        return skipped("there are no loop devices here");
    };
    refused(&format!("{{ device = \"{each}\" }}"), &["overwrite", "disk-"]);
    refused(&format!("{{ device = \"{each}\", overwrite = true }}"), &["disk-1", "it has 32 MiB", "data need"]);
    let one = format!("{{ device = \"{}\", overwrite = true }}", devices[0].0);
    refused(&one, &["only one of them can have", "{guest}"]);
    refused("{ device = \"/dev/no-such-{guest}\", overwrite = true }", &["/dev/no-such-1"]);
}

/// One guest on containers whose options for data are these.
fn in_containers(postgres: &str, data: &str) -> String {
    let arm = format!("[arms.container]\nplatform = \"container\"\noptions = {{ data = {data} }}");
    let case = format!(
        r#"[cases.orders]
workload = "store"
load = {{ closed = {{ clients = 2 }} }}
parameters = {{ db-size = "10MB", postgres = "{postgres}", settings = {{ max_wal_size = "64MB", min_wal_size = "32MB" }} }}
"#
    );
    common::study_of(
        "baseline = \"container\"\nblocks = 1",
        &arm,
        "512MiB",
        &[("warm-up", "200ms"), ("steady-state", "2s")],
        &case,
    )
}

#[test]
fn a_run_has_the_log_of_a_database_in_a_directory_of_its_own() {
    let Some(postgres) = is_root().then(postgres).flatten() else { return };
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let Some(log) = InMemory::at(folder.path().join("log")) else {
        return skipped("no file system can be mounted here");
    };
    let options =
        format!("{{ directory = \"{}\", log-directory = \"{}\", in-memory = true }}", data.display(), log.0.display());
    let (study, out) = (write_study(folder.path(), &in_containers(&postgres, &options)), folder.path().join("run"));
    let mut child = common::begin(&study, &out);
    // While it runs, what lies where.
    let find = |place: &Path, what: &[&str]| stdout(&Command::new("find").arg(place).args(what).output().unwrap());
    let (mut segments, mut links) = (String::new(), String::new());
    while child.try_wait().unwrap().is_none() {
        let now = find(&log.0, &["-path", "*/pg_wal/0*", "-printf", "%P\n"]);
        segments = if now.is_empty() { segments } else { now };
        let now = find(&data, &["-name", "pg_wal", "-type", "l", "-printf", "%l\n"]);
        links = if now.is_empty() { links } else { now };
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), ["completed"], "{}", stderr(&output));
    assert!(segments.contains("/pg_wal/0"), "no log was there: {segments}");
    assert_eq!(links, "/.tare/log/pg_wal\n");
    let findings = common::findings(&out).to_string();
    let place = format!("directory {} on tmpfs of the host; the guest sees tmpfs", log.0.display());
    assert!(findings.contains(&place) && findings.contains("Log on"), "{findings}");
    assert!(findings.contains("storage of the log"), "the parity check has no line of it");
    assert_eq!(find(&log.0, &["-mindepth", "1"]), "", "something is left");
}

#[test]
fn one_place_for_data_and_log_is_refused_where_it_is_written() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let refused = |text: &str, words: &[&str]| {
        let path = write_study(folder.path(), text);
        let output = run(&["plan", path.to_str().unwrap()]);
        expect_code(&output, 2);
        let line = text.lines().position(|line| line.starts_with("options")).unwrap() + 1;
        let place = format!("{}:{line}:", path.display());
        let said = stderr(&output);
        assert!(said.contains(&place) && words.iter().all(|word| said.contains(word)), "{place} {words:?}: {said}");
    };
    let directory = in_containers("embedded", "{ directory = \"/srv/pool\", log-directory = \"/srv/pool/\" }");
    refused(&directory, &["log-directory", "/srv/pool", "disk of its own"]);
    let device = "{ device = \"/dev/vg0/{guest}\", overwrite = true }";
    let device = study("embedded", &format!("{device}, log-disk = {device}"));
    refused(&device, &["log-disk.device", "/dev/vg0/{guest}"]);
    let queue = study("embedded", "{ format = \"raw\", queue-depth = 128 }");
    refused(&queue, &["data-disk.queue-depth", "has a session"]);
}
