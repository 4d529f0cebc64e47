//! What a process can still do that reads strangers' folders.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{geteuid, getgid, getuid};
use tare_lab::{NamedPath, confine_reader};

/// Where the folders are that the confined process is given.
const FOLDER: &str = "TARE_TEST_FOLDER";

fn is_root() -> bool {
    if !geteuid().is_root() {
        // Standard output that cannot be written must not fail the test that skips.
        let _ = writeln!(std::io::stdout(), "SKIPPED: needs root");
    }
    geteuid().is_root()
}

/// Runs one of the tests below, which are not run otherwise, in a process of its own.
#[track_caller]
fn run_apart(name: &str, folder: &Path) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("reader::{name}"), "--ignored", "--nocapture", "--test-threads=1"]);
    let ran = command.env(FOLDER, folder).output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

fn given() -> PathBuf {
    std::env::var_os(FOLDER).unwrap().into()
}

#[test]
fn a_confined_reader_has_no_way_out() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["read", "written", "beside"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("file"), name).unwrap();
        fs::set_permissions(at(name).join("file"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o700)).unwrap();
    }
    chown(at("written"), Some(4321), Some(4322)).unwrap();
    symlink("/etc/passwd", at("written").join("link")).unwrap();
    symlink(at("read"), at("way")).unwrap();
    run_apart("confined", folder.path());
    let made = fs::metadata(at("written").join("new")).unwrap();
    assert_eq!((made.uid(), made.gid()), (4321, 4322), "what it wrote belongs to whom the folder belongs to");
    assert!(!at("read").join("new").exists() && !Path::new("/tmp/tare-reader-was-here").exists());
    // The host's own mounts are untouched.
    assert_eq!(fs::read_to_string(at("beside").join("file")).unwrap(), "beside");
}

#[test]
#[ignore = "run in a process of its own by another test"]
fn confined() {
    let folder = given();
    let at = |name: &str| folder.join(name);
    confine_reader(&[NamedPath::read(&at("way")), NamedPath::written(&at("written"))]).unwrap();
    // What it was given works, by the names it was given.
    assert_eq!(fs::read_to_string(at("way").join("file")).unwrap(), "read");
    assert_eq!(fs::read_to_string(at("written").join("file")).unwrap(), "written");
    fs::write(at("written").join("new"), "mine").unwrap();
    fs::rename(at("written").join("new"), at("written").join("newer")).unwrap();
    fs::rename(at("written").join("newer"), at("written").join("new")).unwrap();
    tempfile::tempfile().unwrap().write_all(b"temporary").unwrap();
    // Nothing else is there.
    for path in ["/etc/passwd", "/proc/self/status", "/dev/null", "/usr", "/sys"] {
        assert!(!Path::new(path).exists(), "{path}");
    }
    assert!(fs::read(at("written").join("link")).is_err() && !at("beside").exists());
    // Nothing else can be written.
    assert!(fs::write(at("way").join("new"), "x").is_err() && fs::write(at("way").join("file"), "x").is_err());
    for path in ["/new", "/tmp/tare-reader-was-here"].map(Path::new).into_iter().chain([at("new").as_path()]) {
        assert!(fs::write(path, "x").is_err(), "{}", path.display());
    }
    // Nobody can be reached.
    assert!(TcpStream::connect("127.0.0.1:9").is_err_and(|error| error.raw_os_error() == Some(libc::ENETUNREACH)));
    // Nothing can be got back.
    assert_eq!((getuid().as_raw(), geteuid().as_raw(), getgid().as_raw()), (65_534, 65_534, 65_534));
    let root = rustix::process::Uid::ROOT;
    assert!(rustix::thread::set_thread_res_uid(root, root, root).is_err());
    assert!(rustix::mount::mount("tmpfs", at("written"), "tmpfs", rustix::mount::MountFlags::empty(), c"").is_err());
    assert!(rustix::process::chroot(at("written")).is_err());
    assert!(confine_reader(&[]).is_err());
    let held = rustix::thread::capabilities(None).unwrap();
    let kept = rustix::thread::CapabilitySet::DAC_OVERRIDE;
    assert_eq!(
        (held.effective, held.permitted, held.inheritable),
        (kept, kept, rustix::thread::CapabilitySet::empty())
    );
    assert!(rustix::thread::no_new_privs().unwrap());
}

#[test]
fn the_working_directory_and_folders_within_folders_stay_where_they_are() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("outer/inner")).unwrap();
    fs::write(folder.path().join("outer/inner/file"), "inner").unwrap();
    fs::write(folder.path().join("single"), "single").unwrap();
    run_apart("nested", folder.path());
}

#[test]
#[ignore = "run in a process of its own by another test"]
fn nested() {
    std::env::set_current_dir(given().join("outer/inner")).unwrap();
    let paths = ["../inner", "..", ".", "../../single", "../../none"].map(Path::new).map(NamedPath::read);
    let paths: Vec<NamedPath> = paths.into_iter().chain([NamedPath::written(Path::new("../inner"))]).collect();
    confine_reader(&paths).unwrap();
    assert_eq!(std::env::current_dir().unwrap(), given().join("outer/inner"));
    for path in ["file", "../inner/file", "../../outer/inner/file"] {
        assert_eq!(fs::read_to_string(path).unwrap(), "inner");
    }
    assert_eq!(fs::read_to_string("../../single").unwrap(), "single");
    assert!(!Path::new("../../none").exists());
    fs::write("new", "written, for one of its names may be").unwrap();
    assert!(fs::write("../new", "only read").is_err());
}
