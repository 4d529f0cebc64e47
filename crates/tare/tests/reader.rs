//! Strangers' folders are read without root's rights, and nobody who reads a report sees a difference.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use crate::common::{expect_code, is_root, stderr, stdout, tare};
use tare_record::{RunFolder, testing};

/// Writes the folder of a small run.
fn write_run(dir: &Path) {
    let plan = testing::plan(4);
    let trials: Vec<_> = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    testing::write_run(dir, &plan, &trials);
}

/// Runs tare in a directory.
fn run_in(directory: &Path, args: &[&str]) -> Output {
    tare().current_dir(directory).args(args).output().unwrap()
}

#[test]
fn a_report_is_the_same_as_without_confinement_and_belongs_to_the_owner_of_the_folder() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    write_run(&dir);
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    chown(&dir, Some(4321), Some(4322)).unwrap();
    let expected = tare_report::json(&tare_analysis::analyse(&RunFolder::open(&dir).unwrap()).unwrap()).unwrap();
    let printed = run_in(folder.path(), &["report", "run", "--format", "json"]);
    expect_code(&printed, 0);
    assert_eq!((stdout(&printed).trim_end(), stderr(&printed).as_str()), (expected.trim_end(), ""));
    let written = run_in(folder.path(), &["report", "run"]);
    expect_code(&written, 0);
    assert_eq!(stderr(&written), "");
    for name in ["findings.json", "report.html", "report.md"] {
        let made = fs::metadata(dir.join(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (4321, 4322), "{name}");
    }
    // What root wrote there before is replaced all the same.
    chown(dir.join("report.html"), Some(0), Some(0)).unwrap();
    fs::set_permissions(dir.join("report.html"), fs::Permissions::from_mode(0o600)).unwrap();
    expect_code(&run_in(folder.path(), &["report", "run"]), 0);
}

/// A program that has begun to print, and goes on when more is read.
fn printing(args: &[&str]) -> Child {
    let mut child = tare().args(args).stdout(Stdio::piped()).spawn().unwrap();
    let pipe = child.stdout.as_mut().unwrap();
    rustix::pipe::fcntl_setpipe_size(&*pipe, 4096).unwrap();
    pipe.read_exact(&mut [0]).unwrap();
    child
}

#[test]
fn while_it_reads_it_is_nobody_and_sees_nothing_else() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    write_run(&dir);
    // A descriptor that a caller left open.
    let left = fs::File::open("/").unwrap();
    rustix::io::fcntl_setfd(&left, rustix::io::FdFlags::empty()).unwrap();
    let path = dir.to_str().unwrap();
    for args in [vec!["report", path, "--format", "html"], vec!["compare", path, path, "--format", "html"]] {
        let mut child = printing(&args);
        let proc = Path::new("/proc").join(child.id().to_string());
        let status = fs::read_to_string(proc.join("status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(field("Uid:"), "65534 65534 65534 65534");
        assert_eq!(field("Gid:"), "65534 65534 65534 65534");
        assert_eq!((field("Groups:").as_str(), field("NoNewPrivs:").as_str()), ("", "1"));
        // CAP_DAC_OVERRIDE is bit 1.
        assert_eq!((field("CapEff:").as_str(), field("CapPrm:").as_str()), ("0000000000000002", "0000000000000002"));
        assert_eq!((field("CapBnd:").as_str(), field("CapInh:").as_str()), ("0000000000000000", "0000000000000000"));
        for kind in ["mnt", "net", "ipc", "uts"] {
            let of = |proc: &Path| fs::read_link(proc.join("ns").join(kind)).unwrap();
            assert_ne!(of(&proc), of(Path::new("/proc/self")), "{kind}");
        }
        let root = proc.join("root");
        assert!(!root.join("etc").exists() && !root.join("proc").exists());
        assert!(root.join(dir.strip_prefix("/").unwrap()).join("plan.json").exists());
        let open = fs::read_dir(proc.join("fd")).unwrap().count();
        assert_eq!(open, 3, "only the standard streams are open while it prints");
        let mut rest = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        assert!(child.wait().unwrap().success() && rest.len() > 4096, "{args:?}");
    }
}

#[test]
fn folders_are_found_however_they_are_named() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(folder.path()).unwrap();
    for name in ["a", "b"] {
        write_run(&base.join(name));
    }
    symlink("a", base.join("link")).unwrap();
    symlink(base.join("link"), base.join("b/link")).unwrap();
    let absolute = base.join("b").display().to_string();
    for name in ["a", "./a/", "b/../a", "link", "b/link", &absolute] {
        let said = run_in(&base, &["report", name]);
        expect_code(&said, 0);
        assert!(
            stdout(&said).contains(&format!("report: {}", Path::new(name).join("report.html").display())),
            "{name}"
        );
        assert_eq!(stderr(&said), "", "{name}");
    }
    expect_code(&run_in(&base.join("a"), &["report", "."]), 0);
    expect_code(&run_in(&base.join("a"), &["report", "../b"]), 0);
    for pair in [["a", "b"], ["a", "a"], ["link", "a"], ["b", absolute.as_str()]] {
        let said = run_in(&base, &["compare", pair[0], pair[1]]);
        expect_code(&said, 0);
        assert_eq!(stderr(&said), "", "{pair:?}");
    }
    let said = run_in(&base, &["audit", "a", "link", "b", &absolute]);
    assert!(matches!(said.status.code(), Some(0 | 5)) && stdout(&said).contains("link:"), "{}", stderr(&said));
}

#[test]
fn what_is_no_run_is_refused_as_ever() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_run(&folder.path().join("run"));
    fs::create_dir(folder.path().join("empty")).unwrap();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    for name in ["none", "none/deeper", "empty", "dangling", "run/plan.json", "/", "/none"] {
        let expected = RunFolder::open(&folder.path().join(name)).unwrap_err().to_string();
        let expected = expected.replace(&folder.path().join(name).display().to_string(), name);
        for args in [&["report", name][..], &["compare", "run", name], &["audit", "run", name], &["size", name]] {
            let said = run_in(folder.path(), args);
            expect_code(&said, 2);
            assert_eq!(stderr(&said), format!("tare: {expected}\n"), "{args:?}");
        }
        for (args, code) in
            [(&["gate", name, "--fail-on", "worse:2%"][..], 64), (&["export", name, "--format", "bencher"], 2)]
        {
            let said = run_in(folder.path(), args);
            expect_code(&said, code);
            assert_eq!(stderr(&said), format!("tare: {expected}\n"), "{args:?}");
        }
    }
}

#[test]
fn what_a_gate_and_an_export_write_belongs_to_the_owner_of_the_folder_in_which_it_is() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_run(&folder.path().join("run"));
    fs::create_dir(folder.path().join("out")).unwrap();
    chown(folder.path().join("out"), Some(4321), Some(4322)).unwrap();
    for args in [
        &["gate", "run", "--fail-on", "worse:50%", "--junit", "out/gate.xml"][..],
        &["export", "run", "--format", "otava", "--append", "--out", "out/history.csv"],
        &["export", "run", "--format", "otava", "--append", "--out", "out/history.csv"],
    ] {
        let said = run_in(folder.path(), args);
        expect_code(&said, 0);
        assert_eq!(stderr(&said), "");
    }
    for name in ["gate.xml", "history.csv"] {
        let made = fs::metadata(folder.path().join("out").join(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (4321, 4322), "{name}");
    }
}

#[test]
fn an_import_reads_files_and_folders_and_writes_where_it_is_asked_to() {
    if !is_root() {
        return;
    }
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/published");
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(4321), Some(4322)).unwrap();
    let one = published.join("004-store.csv");
    let (one, all) = (one.to_str().unwrap(), published.to_str().unwrap());
    for (args, made) in [
        (vec!["import", one, "--out", "new/one"], "new/one"),
        (vec!["import", all, "--out", "all"], "all/published-004"),
        (vec!["import", one], "runs"),
    ] {
        let said = run_in(folder.path(), &args);
        expect_code(&said, 0);
        assert_eq!(stderr(&said), "", "{args:?}");
        let made = fs::metadata(folder.path().join(made)).unwrap();
        assert_eq!((made.uid(), made.gid()), (4321, 4322), "{args:?}");
    }
    assert!(folder.path().join("new/one/plan.json").is_file());
    let results = fs::metadata(folder.path().join("new/one/results.sqlite")).unwrap();
    assert_eq!((results.uid(), results.gid()), (4321, 4322));
}

#[test]
fn where_no_namespaces_can_be_made_it_says_so_and_goes_on() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_run(&folder.path().join("run"));
    let program = tare().get_program().to_owned();
    // As root in a container: without CAP_SYS_ADMIN.
    let mut command = std::process::Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin", "--"]).arg(program).args(["report", "run"]).current_dir(folder.path());
    let Ok(said) = command.output() else { return tare_testkit::skipped("there is no setpriv") };
    expect_code(&said, 0);
    let lines: Vec<String> = stderr(&said).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("tare: reading run with all rights of this user: could not make namespaces"),
        "{lines:?}"
    );
    assert!(lines[0].contains("Start tare as a user who is not root"), "{lines:?}");
    assert!(folder.path().join("run/report.html").is_file());
}

#[test]
fn a_log_that_a_crash_left_is_read_where_nothing_may_be_written() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (dir, left) = (folder.path().join("run"), folder.path().join("left"));
    write_run(&dir);
    let results = rusqlite::Connection::open(dir.join("results.sqlite")).unwrap();
    results.pragma_update(None, "journal_mode", "WAL").unwrap();
    // Changed and changed back: what is written as it was is not written at all.
    for change in ["value || 'x'", "substr(value, 1, length(value) - 1)"] {
        results.execute(&format!("UPDATE meta SET value = {change} WHERE key = 'study'"), []).unwrap();
    }
    fs::create_dir(&left).unwrap();
    for entry in
        fs::read_dir(&dir).unwrap().flatten().filter(|entry| !entry.file_name().to_string_lossy().contains("shm"))
    {
        fs::copy(entry.path(), left.join(entry.file_name())).unwrap();
    }
    drop(results);
    assert!(fs::metadata(left.join("results.sqlite-wal")).is_ok_and(|log| log.len() > 0));
    let before: Vec<_> = fs::read_dir(&left).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let printed = |name: &str| {
        let said = run_in(folder.path(), &["report", name, "--format", "json"]);
        expect_code(&said, 0);
        stdout(&said)
    };
    assert_eq!(printed("left"), printed("run"));
    let after: Vec<_> = fs::read_dir(&left).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(before, after, "a command that only reads wrote into the folder");
    expect_code(&run_in(folder.path(), &["report", "left"]), 0);
}
