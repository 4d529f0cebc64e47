//! Storage paths of virtual machines: what `plan` refuses, and `run` before its first trial.

#[path = "../../platform/tests/common/loop_device.rs"]
mod loop_device;

use std::path::Path;

use crate::common::{self, is_root, outcomes, postgres, ran, run, stderr, stdout, write_study};
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
