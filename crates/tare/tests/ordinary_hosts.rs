//! tare on ordinary hosts: systemd, control groups of version 2 alone, AppArmor and a KVM that boots guests, emulated whole.
//!
//! `make test-host` builds the hosts and runs these. Outcomes and limits are asserted, never speeds: a host here is 20 to 50
//! times slower than a real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_testkit::emulated::{AMD64, ARM64, EmulatedHost};

use common::outcomes;

/// The folder with the host's disk: what `scripts/test-host-disk.sh` prints.
const DISK: &str = "TARE_TEST_HOST_DISK";
/// tare's package, which is installed there.
const PACKAGE: &str = "TARE_TEST_HOST_PACKAGE";
/// gVisor's runtime for it, if there is one.
const GVISOR: &str = "TARE_TEST_HOST_RUNSC";
/// The folder with the disk of an arm64 host, and the tarball for it.
const ARM64_DISK: &str = "TARE_TEST_HOST_ARM64_DISK";
const TARBALL: &str = "TARE_TEST_HOST_TARBALL";

/// A host that tare was installed on, and what went wrong there so far.
struct Ground {
    host: EmulatedHost,
    folder: tempfile::TempDir,
    failed: Vec<&'static str>,
}

impl Ground {
    /// Boots a host and installs tare as a user would; `None` where no host was asked for or this machine has none.
    fn new() -> Option<Self> {
        let (Some(disk), Some(package)) = (std::env::var_os(DISK), std::env::var_os(PACKAGE)) else {
            tare_testkit::skipped("boots a whole host: make test-host");
            return None;
        };
        if let Some(why) = tare_testkit::emulated::lack(AMD64) {
            tare_testkit::skipped(&why);
            return None;
        }
        let began = Instant::now();
        let host = EmulatedHost::boot(&PathBuf::from(disk), AMD64);
        eprintln!("{} booted in {:.0} s", host.sh(". /etc/os-release; echo $PRETTY_NAME").trim(), seconds(began));
        host.put(Path::new(&package), "tare.deb");
        host.sh("DEBIAN_FRONTEND=noninteractive apt-get install -y -qq ./tare.deb >/dev/null");
        if let Some(runsc) = std::env::var_os(GVISOR) {
            host.put(Path::new(&runsc), "/usr/local/bin/runsc");
            host.sh("chmod 755 /usr/local/bin/runsc");
        }
        Some(Self { host, folder: tempfile::tempdir().unwrap(), failed: Vec::new() })
    }

    /// One thing that must be so; the next is looked at whatever comes of it. It has a second chance, which is printed: guests of
    /// an emulated KVM stand still now and then, for a minute or for good.
    fn check(&mut self, name: &'static str, check: impl Fn(&Self)) {
        let began = Instant::now();
        let holds = || catch_unwind(AssertUnwindSafe(|| check(self))).is_ok();
        let passed = holds() || {
            eprintln!("{name}: did not hold ({:.0} s); once more", seconds(began));
            holds()
        };
        eprintln!("{name}: {} ({:.0} s)", if passed { "holds" } else { "FAILED" }, seconds(began));
        if !passed {
            self.failed.push(name);
        }
    }

    fn finish(self) {
        assert!(self.failed.is_empty(), "did not hold: {:?}", self.failed);
    }

    /// Runs a study there as `user` and gives its folder here, with what was printed.
    #[track_caller]
    fn study(&self, user: &str, name: &str, text: &str) -> (PathBuf, String) {
        // A folder that every user may write to and that no home is in.
        let there = format!("/var/tmp/{name}");
        self.host.write(text, &format!("{there}.toml"));
        let ran = self.host.run(user, &format!("rm -rf {there}; NO_COLOR=1 tare run {there}.toml --out {there} 2>&1"));
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success(), "{user} ran {name}: {}\n{said}", ran.status);
        let here = self.folder.path().join(name);
        self.host.fetch(&there, &here);
        (here, said)
    }

    /// Runs the quickstart, shortened, from tare's files in `share`: every trial is completed, and nothing is left behind.
    #[track_caller]
    fn quickstart(&self, share: &str) {
        let before = self.snapshot();
        let said = self.host.sh(&format!(
            "rm -rf quickstart; NO_COLOR=1 tare run {share}/studies/quickstart.toml --scale 0.05 --blocks 2 --out quickstart 2>&1"
        ));
        let here = self.folder.path().join("quickstart");
        self.host.fetch("quickstart", &here);
        let outcomes = outcomes(&here);
        assert!(outcomes.len() == 30 && outcomes.iter().all(|own| own == "completed"), "{outcomes:?}\n{said}");
        let left: Vec<String> = self.snapshot().difference(&before).cloned().collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// All that tare may have made there, as it is now.
    fn snapshot(&self) -> BTreeSet<String> {
        // What systemd and the kernel start by themselves is not tare's: programs are looked for by what runs guests.
        let look = "find /sys/fs/cgroup -type d -name '*tare*' 2>/dev/null; \
            find /run/tare /var/lib/tare /var/lib/tare-data -mindepth 1 2>/dev/null; \
            ls /run/netns 2>/dev/null; ls /sys/class/net; \
            sed 's/^/subtree_control /' /sys/fs/cgroup/cgroup.subtree_control; \
            grep tare /proc/mounts; \
            for own in /proc/[0-9]*; do tr '\\0' '\\n' <$own/environ 2>/dev/null | grep -s ^TARE_RUN && cat $own/cmdline; done; true";
        self.host.sh(look).lines().map(str::to_owned).collect()
    }
}

fn seconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

/// A study of one block with these arms beside the native one.
fn study(arms: &str) -> String {
    format!(
        r#"
schema = 1
name = "hosts"
question = "Does every arm run here?"
baseline = "native"
blocks = 1
noise-floor = false

[arms.native]
platform = "native"
{arms}
[guest]
cpus = 1
memory = "256MiB"

[phases]
warm-up = "300ms"
steady-state = "1s"

[cases.rr]
workload = "rr"
parameters = {{ request = "128B", response = "128B" }}
"#
    )
}

fn arm(id: &str, platform: &str, options: &str) -> String {
    format!("[arms.{id}]\nplatform = \"{platform}\"\noptions = {options}\n")
}

/// A machine by KVM, which takes most of a minute to boot here.
fn machine(id: &str, more: &str) -> String {
    arm(id, "qemu", &format!("{{ accel = \"kvm\", boot-within = \"5m\"{more} }}"))
}

fn findings(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("findings.json")).unwrap()).unwrap()
}

/// Every trial completed, and every limit that was asked for was read back equal, but for these resources.
#[track_caller]
fn completed_with_parity(folder: &Path, trials: usize, said: &str, but_for: &[&str]) {
    assert_eq!(outcomes(folder), vec!["completed"; trials], "{said}");
    let findings = findings(folder);
    let parity = findings["parity"].as_array().unwrap();
    assert_eq!(parity.len(), trials, "{parity:?}");
    for arm in parity {
        let rows = arm["rows"].as_array().unwrap();
        assert!(!rows.is_empty());
        let unequal: Vec<&Value> = rows
            .iter()
            .filter(|row| row["equal"] != true && !but_for.iter().any(|name| row["resource"] == *name))
            .collect();
        assert!(unequal.is_empty(), "{}: {unequal:?}", arm["arm"]);
    }
}

/// A run that is killed while its machine boots leaves nothing, with no further command.
fn killed_with_a_machine(ground: &Ground) {
    let before = ground.snapshot();
    ground.host.write(&study(&machine("kvm", "")), "killed.toml");
    ground.host.sh("rm -rf killed; setsid -f tare run killed.toml --out killed >/dev/null 2>&1 </dev/null");
    let deadline = Instant::now() + Duration::from_secs(120);
    while !ground.host.run("root", "pgrep qemu-system").status.success() {
        assert!(Instant::now() < deadline, "no machine was started");
        std::thread::sleep(Duration::from_secs(1));
    }
    let during = ground.snapshot();
    assert!(during.difference(&before).count() > 3, "nothing was made: {during:?}");
    ground.host.sh("pkill -KILL -x -o tare");
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let left: Vec<String> = ground.snapshot().difference(&before).cloned().collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left behind: {left:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A user has what systemd gives every user; what is lacking comes by the command that doctor prints for root.
fn a_user_is_given_every_controller(ground: &Ground) {
    let doctor = || {
        let ran = ground.host.run("someone", "tare doctor --quick");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    let before = doctor();
    let command = before.lines().find_map(|line| line.split_once("root runs: mkdir"));
    let (_, command) = command.unwrap_or_else(|| panic!("doctor says no command: {before}"));
    ground.host.sh(&format!("mkdir{command}"));
    let after = doctor();
    assert!(!after.contains("root runs: mkdir"), "{after}");
    let (folder, said) = ground.study("someone", "delegated", &study(&arm("container", "container", "{}")));
    completed_with_parity(&folder, 2, &said, &["process limit"]);
}

/// A newer package takes the place of this one, and nothing of it is left when it is removed.
fn upgraded_and_removed(ground: &Ground) {
    ground.host.sh("dpkg-deb -R tare.deb newer && sed -i 's/^Version: .*/&+1/' newer/DEBIAN/control");
    ground.host.sh("dpkg-deb --root-owner-group --build newer newer.deb >/dev/null");
    ground.host.sh("DEBIAN_FRONTEND=noninteractive apt-get install -y -qq ./newer.deb >/dev/null");
    assert!(ground.host.sh("dpkg-query --show tare").trim().ends_with("+1"));
    ground.host.sh("tare --version");
    ground.host.sh("DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq tare >/dev/null");
    let left = ground.host.sh("find /usr /etc /opt /var/lib/dpkg/info -name '*tare*'");
    assert_eq!(left, "");
}

/// What must hold on every host before anything is published: install, doctor, a container, a machine, and teardown.
#[test]
#[ignore = "boots a whole host: make test-host"]
fn the_package_installs_and_a_container_and_a_machine_are_measured() {
    let Some(mut ground) = Ground::new() else { return };
    let text = study(&format!("{}{}", arm("container", "container", "{}"), machine("kvm", "")));
    ground.check("doctor finds every arm usable", |ground| {
        ground.host.write(&text, "three.toml");
        let said = ground.host.sh("tare doctor --again three.toml");
        for id in ["native", "container", "kvm"] {
            let line = said.lines().find(|line| line.trim_start().starts_with(&format!("{id} ")));
            assert!(line.is_some_and(|line| line.contains("works")), "{said}");
        }
        assert!(said.contains("version 2"), "{said}");
    });
    ground.check("native, container and KVM are measured with equal limits", |ground| {
        let before = ground.snapshot();
        let (folder, said) = ground.study("root", "three", &text);
        completed_with_parity(&folder, 3, &said, &[]);
        let left: Vec<String> = ground.snapshot().difference(&before).cloned().collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    });
    ground.check("a killed run with a machine leaves nothing", killed_with_a_machine);
    ground.check("a user has limits by a scope of systemd's", |ground| {
        let (folder, said) = ground.study("someone", "user", &study(&arm("container", "container", "{}")));
        // The slice of a user is closed to that user, and systemd gives it a third of the host's processes.
        completed_with_parity(&folder, 2, &said, &["process limit"]);
    });
    ground.finish();
}

/// Every platform that a host can have, each once.
#[test]
#[ignore = "boots a whole host for many minutes: make test-host"]
fn every_arm_runs_on_an_ordinary_host() {
    let Some(mut ground) = Ground::new() else { return };
    ground.check("the quickstart, shortened", |ground| ground.quickstart("/usr/share/tare"));
    ground.check("all arms of one study", |ground| {
        let mut arms = vec![
            arm("container", "container", "{}"),
            arm("runc", "oci", "{ runtime = \"runc\" }"),
            arm("crun", "oci", "{ runtime = \"crun\" }"),
            arm("nspawn", "nspawn", "{}"),
            arm("lxc", "lxc", "{}"),
            machine("kvm-vhost", ", network = { vhost = \"on\" }"),
            machine("kvm-without-vhost", ", network = { vhost = \"off\" }"),
            arm("libvirt", "libvirt", "{ accel = \"kvm\", boot-within = \"5m\" }"),
        ];
        if std::env::var_os(GVISOR).is_some() {
            arms.push(arm("gvisor", "oci", "{ runtime = \"runsc\" }"));
        }
        let before = ground.snapshot();
        let (folder, said) = ground.study("root", "all", &study(&arms.concat()));
        let left: Vec<String> = ground.snapshot().difference(&before).cloned().collect();
        completed_with_parity(&folder, arms.len() + 1, &said, &[]);
        assert!(left.is_empty(), "left behind: {left:?}");
    });
    ground.check("a user has every controller after one command of root's", a_user_is_given_every_controller);
    ground.check("the package is upgraded and removed", upgraded_and_removed);
    ground.finish();
}

/// The static programs, unpacked and not installed, on a host of another architecture. It has containers and no machines.
#[test]
#[ignore = "boots a whole host: scripts/test-host.sh arm64"]
fn the_tarball_measures_on_an_arm64_host() {
    let (Some(disk), Some(tarball)) = (std::env::var_os(ARM64_DISK), std::env::var_os(TARBALL)) else {
        return tare_testkit::skipped("boots a whole host: scripts/test-host.sh arm64");
    };
    if let Some(why) = tare_testkit::emulated::lack(ARM64) {
        return tare_testkit::skipped(&why);
    }
    let began = Instant::now();
    let host = EmulatedHost::boot(&PathBuf::from(disk), ARM64);
    let system = host.sh(". /etc/os-release; echo $PRETTY_NAME, $(uname -rm), $(runc --version | head -n1)");
    eprintln!("{} booted in {:.0} s", system.trim(), seconds(began));
    host.put(Path::new(&tarball), "tare.tar.gz");
    host.sh("mkdir /opt/tare && tar -C /opt/tare --strip-components 1 -xf tare.tar.gz && ln -s /opt/tare/bin/tare /usr/local/bin/");
    let mut ground = Ground { host, folder: tempfile::tempdir().unwrap(), failed: Vec::new() };
    ground.check("doctor finds containers usable, and says what this build and this host lack", |ground| {
        let said = ground.host.sh("tare doctor; true");
        eprintln!("{said}");
        for (platform, verdict) in
            [("native", "usable"), ("container", "usable"), ("libvirt", "static program"), ("qemu", "x86_64")]
        {
            let line = said.lines().find(|line| line.contains(platform) && line.contains(verdict));
            assert!(line.is_some(), "{platform}: {said}");
        }
    });
    ground.check("the quickstart, shortened", |ground| ground.quickstart("/opt/tare/share/tare"));
    ground.finish();
}
