//! libvirt's daemon, one of the tests' own, so that one of the machine's is never touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// In a mount namespace of its own: all of libvirt's places are empty, and go with the daemon, but for what it learns of the emulators, which
/// takes it seconds. `$1` is the tests' place, `$2` where that is kept.
const SCRIPT: &str = r#"
for place in /run/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /etc/libvirt; do
    mkdir -p "$place" && mount -t tmpfs -o mode=755 none "$place" || exit 1
done
mount --bind "$2" /var/cache/libvirt || exit 1
mkdir -p /var/lib/libvirt/qemu /etc/libvirt/qemu
printf 'security_driver = "none"\nuser = "root"\ngroup = "root"\nstdio_handler = "file"\n' > /etc/libvirt/qemu.conf
exec libvirtd --config "$1/libvirtd.conf" --pid-file "$1/libvirtd.pid" --timeout 120
"#;

/// A daemon of the tests' own. It ends with this, and by itself when nobody has used it for two minutes.
pub struct Daemon {
    child: Child,
    place: tempfile::TempDir,
    groups: BTreeSet<PathBuf>,
}

impl Daemon {
    /// Starts it; why there is none.
    pub fn start() -> Result<Self, String> {
        if tare_lab::is_rootless() {
            return Err("libvirt's daemon needs root".into());
        }
        let place = tempfile::tempdir().unwrap();
        let sockets = place.path().join("sockets");
        fs::create_dir(&sockets).unwrap();
        // Cargo names the folder to programs of tests, and not to the tests beside a library's code.
        let learnt = option_env!("CARGO_TARGET_TMPDIR").map_or(place.path(), Path::new).join("libvirt");
        fs::create_dir_all(&learnt).unwrap();
        let log = place.path().join("log");
        let config = format!(
            "unix_sock_dir = \"{}\"\nauth_unix_rw = \"none\"\nauth_unix_ro = \"none\"\nlog_outputs = \"3:file:{}\"\n",
            sockets.display(),
            log.display()
        );
        fs::write(place.path().join("libvirtd.conf"), config).unwrap();
        let groups = machine_groups();
        let said = fs::File::create(&log).unwrap();
        let child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"])
            .args([place.path(), &learnt])
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn();
        let child = child.map_err(|error| format!("needs unshare: {error}"))?;
        let mut daemon = Self { child, place, groups };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !daemon.socket().exists() {
            if let Some(status) = daemon.child.try_wait().unwrap() {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("libvirtd does not run here ({status}): {said}"));
            }
            assert!(Instant::now() < deadline, "libvirtd does not listen: {}", fs::read_to_string(&log).unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(daemon)
    }

    /// What it said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.place.path().join("log")).unwrap_or_default()
    }

    fn socket(&self) -> PathBuf {
        self.place.path().join("sockets/libvirt-sock")
    }

    /// How it is connected to.
    pub fn uri(&self) -> String {
        format!("qemu:///system?socket={}", self.socket().display())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let deadline = Instant::now() + Duration::from_secs(10);
            while self.child.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // libvirt leaves the group above those of its domains.
        for group in machine_groups().difference(&self.groups) {
            let _ = fs::remove_dir(group);
        }
    }
}

/// libvirt's groups for machines, by hierarchy.
fn machine_groups() -> BTreeSet<PathBuf> {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    hierarchies.map(|entry| entry.path().join("machine")).filter(|group| group.is_dir()).collect()
}
