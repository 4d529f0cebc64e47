//! What a probe has found is remembered, said to be, and found anew on demand.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{run, small_study, stderr, stdout};

/// A sandbox that runs nothing, and counts how often it was tried.
fn sandbox(place: &Path) -> std::path::PathBuf {
    let program = place.join("runsc-fails");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) echo runsc version 1; exit 0;; esac\n\
         echo tried >> {}/tries\necho 'it runs nothing' >&2\nexit 1\n",
        place.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// Takes away what was remembered of a program.
fn forget(program: &Path) {
    let kept = std::fs::read_dir("/var/cache/tare/probes").into_iter().flatten().flatten();
    for file in kept.map(|entry| entry.path()) {
        if std::fs::read_to_string(&file).unwrap_or_default().contains(&*program.to_string_lossy()) {
            std::fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn a_doctor_looks_again_on_demand() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = sandbox(place.path());
    let file = place.path().join("study.toml");
    let arm = format!("[arms.other]\nplatform = \"oci\"\noptions = {{ runtime = \"{}\" }}", program.display());
    std::fs::write(&file, small_study(1, &arm)).unwrap();
    let file = file.to_str().unwrap();
    let tries = || std::fs::read_to_string(place.path().join("tries")).unwrap_or_default().lines().count();
    let first = run(&["doctor", file, "--quick"]);
    if tries() == 0 {
        return tare_testkit::skipped(&format!("no sandbox is tried here: {}{}", stdout(&first), stderr(&first)));
    }
    let tried = tries();
    let second = stdout(&run(&["doctor", file, "--quick"]));
    assert_eq!(tries(), tried, "it was tried although it is remembered");
    let again = stdout(&run(&["doctor", file, "--quick", "--again"]));
    assert_eq!(tries(), tried * 2, "it was not tried again, or more than once");
    forget(&program);
    assert!(second.contains("it runs nothing") && second.contains("tare doctor --again"), "{second}");
    assert!(again.contains("it runs nothing") && !again.contains("remembered"), "{again}");
}
