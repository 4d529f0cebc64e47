//! What must survive: kill -9 of the controller at every line of journal and ledger, Ctrl-C, a guest that is
//! killed, a full disk, a run folder that was cut short or altered, no root.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::common::{
    CONTAINER, all_variants, begin, expect_code, is_root, journal, left_by_runs_into, outcomes, processes_of, ran, run,
    run_ids, signal, small_study, stderr, stdout, tare, until, write_study,
};
use rustix::process::Signal;
use tare_record::RunFolder;

#[test]
fn killed_at_every_line_of_journal_and_ledger_it_leaves_nothing_and_resume_completes_the_plan() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let runc = Command::new("runc").arg("--version").output().is_ok();
    let arm = if runc { "[arms.runc]\nplatform = \"oci\"" } else { CONTAINER };
    // Long enough that a busy host lets the driver work in it.
    let text = small_study(1, arm).replace("200ms", "150ms").replace("50ms", "10ms")
        + "neighbours = { count = 1, cpus = 1, memory = \"64MiB\" }\n";
    let study = write_study(folder.path(), &text);
    let study = study.to_str().unwrap();
    let mut line = 1;
    loop {
        let out = folder.path().join(format!("run{line}"));
        let out_text = out.to_str().unwrap();
        let killed = tare()
            .args(["run", study, "--out", out_text])
            .env("TARE_TEST_KILL_AT_LINE", line.to_string())
            .output()
            .unwrap();
        if killed.status.success() {
            // The run has fewer lines than that: every one was tried.
            assert!(line > 20, "only {line} lines were tried");
            break;
        }
        assert_eq!(killed.status.signal(), Some(9), "{}", stderr(&killed));
        let acknowledged = outcomes(&out).len();
        // In turn by its reaper alone, and by it with `tare reap` or the next run at the same time.
        match line % 3 {
            0 => until("the reaper to take everything down", || left_by_runs_into(&out).is_empty()),
            1 => {
                expect_code(&run(&["reap"]), 0);
                assert_eq!(left_by_runs_into(&out), Vec::<String>::new(), "after reaping a run killed at line {line}");
            }
            _ => {}
        }
        let resumed = run(&["run", study, "--out", out_text, "--resume"]);
        // A busy host may leave the driver no time in a window that is so short: that trial is invalid (3), and none fails.
        assert!(matches!(resumed.status.code(), Some(0 | 3)), "after a kill at line {line}: {}", stderr(&resumed));
        assert!(outcomes(&out).len() >= acknowledged);
        let resumed = outcomes(&out);
        let ended = |own: &&String| ["completed", "invalid"].contains(&own.as_str());
        assert_eq!(resumed.iter().filter(ended).count(), 2, "resumed after a kill at line {line}: {resumed:?}");
        assert_eq!(resumed.len(), 2);
        assert_eq!(left_by_runs_into(&out), Vec::<String>::new(), "after resuming a run killed at line {line}");
        // A step that is no multiple of three, for each way to take a run down.
        line += if all_variants() { 1 } else { 4 };
    }
}

/// A study of two trials that names no seed, its run folder, and its run. One trial follows the other, so that one is whole when the next
/// is under way.
fn two_trials(folder: &Path) -> (PathBuf, PathBuf, Child) {
    let text = small_study(1, CONTAINER).replace("200ms", "2s").replace("seed = 7\n", "");
    let study = write_study(folder, &text.replace("\nblocks =", "\nschedule = \"trials\"\nblocks ="));
    let out = folder.join("run");
    let child = begin(&study, &out);
    (study, out, child)
}

#[test]
fn ctrl_c_takes_everything_down_and_says_what_was_kept() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (study, out, child) = two_trials(folder.path());
    until("the second trial to begin", || {
        let text = journal(&out);
        text.matches("\"trial-started\"").count() == 2 && text.ends_with("\n")
    });
    signal(child.id(), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    expect_code(&ended, 130);
    assert!(stdout(&ended).contains("1 trials are kept") && stdout(&ended).contains("--resume"), "{}", stdout(&ended));
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
    let seed = RunFolder::open(&out).unwrap().plan().study.seed;
    assert_ne!(seed, 7, "drawn by the run");
    expect_code(&run(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap(), "--resume"]), 0);
    assert_eq!(outcomes(&out), ["completed", "completed"]);
    assert_eq!(RunFolder::open(&out).unwrap().plan().study.seed, seed, "the run goes on with it");
}

#[test]
fn a_guest_that_is_killed_fails_its_trial_with_the_reason_and_the_run_goes_on() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, out, child) = two_trials(folder.path());
    until("the first trial to drive", || journal(&out).contains("\"drive\""));
    let run_id = run_ids(&out).remove(0);
    // All agents of the first trial: the guest's and the driver's.
    for pid in processes_of(&run_id) {
        let _ = signal(pid, Signal::KILL);
    }
    let ended = child.wait_with_output().unwrap();
    expect_code(&ended, 3);
    assert_eq!(outcomes(&out), ["completed", "failed"]);
    assert!(stderr(&ended).contains("failed in drive"), "{}", stderr(&ended));
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn a_disk_that_fills_up_ends_the_run_with_a_clear_error_and_what_was_acknowledged_is_readable() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let study = write_study(folder.path(), &small_study(6, CONTAINER));
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tare-test"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        tare_testkit::skipped("no tmpfs can be mounted here");
        return;
    }
    let out = disk.join("run");
    let child = begin(&study, &out);
    until("the first trial to be acknowledged", || journal(&out).contains("trial-acknowledged"));
    let filled =
        Command::new("dd").args(["if=/dev/zero", "bs=1M"]).arg(format!("of={}/filler", disk.display())).output();
    let ended = child.wait_with_output().unwrap();
    let left = left_by_runs_into(&out);
    let kept = folder.path().join("kept");
    let copied = Command::new("cp").arg("-r").arg(&out).arg(&kept).status();
    let unmounted = Command::new("umount").arg(&disk).status();
    assert!(!filled.unwrap().status.success(), "the disk was not filled");
    assert!(copied.unwrap().success() && unmounted.unwrap().success());
    let said = stderr(&ended);
    expect_code(&ended, 1);
    assert!(said.contains("No space left") || said.contains("full"), "{said}");
    assert_eq!(left, Vec::<String>::new());
    // Counted where there is room again: SQLite needs some even to read what a crash may have left.
    let kept_trials = outcomes(&kept).len();
    assert!((1..12).contains(&kept_trials), "{kept_trials} trials were kept; {said}");
    expect_code(&run(&["report", kept.to_str().unwrap()]), 0);
}

#[test]
fn a_run_folder_that_was_altered_or_cut_short_is_reported() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &small_study(1, CONTAINER));
    expect_code(&output, 0);
    let copy = |name: &str| {
        let to = folder.path().join(name);
        assert!(Command::new("cp").arg("-r").arg(&out).arg(&to).status().unwrap().success());
        to
    };

    let altered = copy("altered");
    let results = rusqlite::Connection::open(altered.join("results.sqlite")).unwrap();
    results.execute("UPDATE metrics SET value = value * 0.9", []).unwrap();
    drop(results);
    let said = stderr(&run(&["report", altered.to_str().unwrap()]));
    assert!(said.contains("results.sqlite"), "{said}");

    let cut = copy("cut");
    let file = std::fs::OpenOptions::new().write(true).open(cut.join("results.sqlite")).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let output = run(&["report", cut.to_str().unwrap()]);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("results.sqlite"), "{}", stderr(&output));

    let no_run = run(&["report", folder.path().to_str().unwrap()]);
    expect_code(&no_run, 2);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one host is prepared for all that is tried on it")]
fn without_root_native_container_and_machines_run_in_a_user_namespace() {
    if !is_root() {
        return;
    }
    let nobody = |args: &[&str]| {
        let program = std::env::var_os("TARE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_tare").into());
        let agent = std::env::var_os("TARE_AGENT").map(std::path::PathBuf::from);
        let agent = agent.unwrap_or_else(|| Path::new(&program).with_file_name("tare-agent"));
        // The program may lie where others cannot look.
        let folder = Path::new("/tmp").join(format!("tare-nobody-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Its home, for what it keeps.
        let cache = folder.join(".cache/tare");
        std::fs::create_dir_all(&cache).unwrap();
        for own in [&folder, &folder.join(".cache"), &cache] {
            std::os::unix::fs::chown(own, Some(65534), Some(65534)).unwrap();
        }
        // The kernel that `make platforms` fetched for root, where the host's own is not there.
        let _ = std::os::unix::fs::symlink("/var/cache/tare/kernel", cache.join("kernel"));
        for (from, to) in [(Path::new(&program), "tare"), (agent.as_path(), "tare-agent")] {
            if !folder.join(to).exists() {
                std::fs::copy(from, folder.join(to)).unwrap();
            }
        }
        let output = Command::new("setpriv")
            // With a further group, as users have who may use devices: it cannot be given up in a user namespace.
            .args(["--reuid=65534", "--regid=65534", "--groups=65534,65533", "--"])
            .arg(folder.join("tare"))
            .args(args)
            .env_remove("TARE_AGENT")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("XDG_CACHE_HOME")
            .env("HOME", &folder)
            // Other tests have runs of this user's at the same time.
            .env("TARE_ALONGSIDE", "true")
            .current_dir("/")
            .output()
            .unwrap();
        (folder, output)
    };
    let place = tempfile::Builder::new().prefix("tare-nobody-run").tempdir_in("/tmp").unwrap();
    std::os::unix::fs::chown(place.path(), Some(65534), Some(65534)).unwrap();
    let write = |name: &str, arms: &str| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(65534), Some(65534)).unwrap();
        write_study(&folder, &small_study(1, arms))
    };
    let contained = write("contained", CONTAINER);
    let (folder, doctor) = nobody(&["doctor", contained.to_str().unwrap()]);
    let text = stdout(&doctor);
    if text.is_empty() || stderr(&doctor).contains("user namespace") {
        std::fs::remove_dir_all(folder).unwrap();
        tare_testkit::skipped(&format!("user namespaces are not available here: {}", stderr(&doctor)));
        return;
    }
    assert!(text.contains("not root") && text.contains("none:"), "{text}");
    let runs = |study: &Path| {
        let out = study.with_file_name("run");
        let (_, ran) = nobody(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        expect_code(&ran, 0);
        assert!(outcomes(&out).iter().all(|outcome| outcome == "completed"), "{:?}", outcomes(&out));
        std::fs::read_to_string(out.join("report.md")).unwrap()
    };
    assert!(runs(&contained).contains("parity"), "that no limit was granted is reported");
    let closed = |device: &str| std::fs::metadata(device).is_ok_and(|seen| MetadataExt::mode(&seen) & 0o7 == 0);
    if closed("/dev/kvm") {
        let kvm = write("kvm", "[arms.qemu]\nplatform = \"qemu\"\noptions = { accel = \"kvm\" }");
        let said = stdout(&nobody(&["doctor", kvm.to_str().unwrap()]).1);
        assert!(said.contains("Root runs `"), "one command lets this user in: {said}");
    }
    let emulated = write("emulated", "[arms.qemu]\nplatform = \"qemu\"\noptions = { accel = \"tcg\" }");
    let fit = run(&["doctor", "--quick", emulated.to_str().unwrap()]);
    if fit.status.success() {
        let markdown = runs(&emulated);
        assert!(markdown.contains("the user who runs tare, no capabilities, seccomp filter"), "{markdown}");
        assert_eq!(left_by_runs_into(&emulated.with_file_name("run")), Vec::<String>::new());
    } else {
        tare_testkit::skipped(&format!("this host runs no machine: {}", stdout(&fit)));
    }
    std::fs::remove_dir_all(folder).unwrap();
}
