//! What guests said that did not come up: the terminal has the end of it, a file has all.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{expect_code, is_root, run, small_study, stderr, stdout, write_study};

/// A runtime that says its version, and instead of starting a guest prints 150 lines.
fn talker(folder: &Path) -> PathBuf {
    let program = folder.join("talker");
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 1.0\ncase \"$*\" in *' run '*) ;; *) exit 0 ;; esac\n\
                  n=0; while [ $n -lt 150 ]; do n=$((n + 1)); echo \"boot line $n\"; echo; done >&2\nexit 1\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// A study with an arm of that runtime, under a name that no other test has.
fn study(folder: &Path, arm: &str) -> PathBuf {
    let options = format!("platform = \"oci\"\noptions = {{ runtime = {:?} }}\n", talker(folder));
    write_study(folder, &small_study(1, &format!("[arms.{arm}]\n{options}")))
}

/// Whether the last five lines that hold something are there, and none before them.
fn has_the_end(text: &str) -> bool {
    (146..=150).all(|n| text.contains(&format!("boot line {n}\n"))) && !text.contains("boot line 145\n")
}

#[test]
fn the_doctor_shows_the_end_of_a_guests_log_and_keeps_the_whole() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arm = format!("talker-{}", std::process::id());
    let doctor = run(&["doctor", study(folder.path(), &arm).to_str().unwrap()]);
    let text = stdout(&doctor);
    if !text.contains("no guest came up") {
        return tare_testkit::skipped(&format!("no guest is started here: {text}{}", stderr(&doctor)));
    }
    expect_code(&doctor, 4);
    assert!(has_the_end(&text), "{text}");
    let file = PathBuf::from(format!("/var/cache/tare/doctor/{arm}.log"));
    assert!(text.contains(&format!("all of it is in {}", file.display())), "{text}");
    let (whole, seen) = (std::fs::read_to_string(&file).unwrap(), file.symlink_metadata().unwrap());
    std::fs::remove_file(&file).unwrap();
    assert!(
        (1..=150).all(|n| whole.contains(&format!("boot line {n}\n"))) || whole.ends_with("boot line 150"),
        "{whole}"
    );
    assert!(seen.is_file() && seen.permissions().mode() & 0o7777 == 0o600, "{seen:?}");
    let above = file.parent().unwrap().metadata().unwrap();
    assert_eq!(above.permissions().mode() & 0o7777, 0o700);
}

#[test]
fn a_run_shows_the_end_of_a_guests_log_and_its_folder_has_the_whole() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let ran = run(&["run", study(folder.path(), "talker").to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let text = stderr(&ran);
    if !text.contains("failed in provision") {
        return tare_testkit::skipped(&format!("no guest is started here: {text}"));
    }
    expect_code(&ran, 3);
    assert!(has_the_end(&text), "{text}");
    assert!(text.contains(&format!("all of it is in {}", out.join("report.html").display())), "{text}");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(["boot line 1\n", "boot line 100\n", "boot line 150"].iter().all(|line| report.contains(line)));
}
