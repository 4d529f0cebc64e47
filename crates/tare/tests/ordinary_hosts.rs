//! tare on ordinary hosts: systemd, control groups of version 2 alone, AppArmor and a KVM that boots guests, emulated whole.
//!
//! `make test-host` builds the hosts and runs these. Outcomes and limits are asserted, never speeds: a host here is 20 to 50
//! times slower than a real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "ordinary_hosts/pair.rs"]
mod pair;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_testkit::emulated::{AMD64, ARM64, EmulatedHost, Hardware};

use common::{findings, outcomes, study_of};

/// The folder with the host's disk: what `scripts/test-host-disk.sh` prints.
const DISK: &str = "TARE_TEST_HOST_DISK";
/// tare's package, which is installed there.
const PACKAGE: &str = "TARE_TEST_HOST_PACKAGE";
/// gVisor's runtime for it, if there is one.
const GVISOR: &str = "TARE_TEST_HOST_RUNSC";
/// The test program of the platforms.
const CONFORMANCE: &str = "TARE_TEST_HOST_CONFORMANCE";
/// An archive of the Debian 12 that `tare image build` made.
const IMAGE: &str = "TARE_TEST_HOST_IMAGE";
/// The command of a QEMU of version 8 or newer: it emulates a network card with functions (SR-IOV).
const QEMU_8: &str = "TARE_TEST_HOST_QEMU_8";
/// Parts of checks' names, separated by `|`: only these checks are made.
const ONLY: &str = "TARE_TEST_HOST_ONLY";
/// The folder with the disk of an arm64 host, and tare as one static program for it.
const ARM64_DISK: &str = "TARE_TEST_HOST_ARM64_DISK";
const PROGRAM: &str = "TARE_TEST_HOST_PROGRAM";

/// A host that tare was installed on, and what went wrong there so far.
struct Ground {
    host: EmulatedHost,
    hardware: Hardware,
    folder: tempfile::TempDir,
    failed: Vec<String>,
}

impl Ground {
    /// Boots a host and installs tare as a user would; `None` where no host was asked for or this machine has none.
    fn new(hardware: Hardware) -> Option<Self> {
        if !can_boot() {
            return None;
        }
        Some(Self::on(boot(&hardware), hardware))
    }

    fn on(host: EmulatedHost, hardware: Hardware) -> Self {
        Self { host, hardware, folder: tempfile::tempdir().unwrap(), failed: Vec::new() }
    }

    /// One thing that must be so; the next is looked at whatever comes of it. It has a second chance, which is printed: guests of
    /// an emulated KVM stand still now and then, for a minute or for good, and an emulated host's kernel has been seen to panic in its
    /// own KVM. The second chance is then on a new host.
    fn check(&mut self, name: &str, check: impl Fn(&Self)) {
        if std::env::var(ONLY).is_ok_and(|only| !only.split('|').any(|word| name.contains(word))) {
            return eprintln!("{name}: left out");
        }
        let began = Instant::now();
        let holds = |ground: &Self| catch_unwind(AssertUnwindSafe(|| check(ground))).is_ok();
        if self.host.is_over() {
            self.host = boot(&self.hardware);
        }
        let passed = holds(self) || {
            eprintln!("{name}: did not hold ({:.0} s); once more", seconds(began));
            // A run that is still under way would be taken for the next one's, and a guest that stood still for KVM's verdict.
            let cleaned = self.host.run(
                "root",
                "pkill -KILL -x tare; for _ in $(seq 60); do pgrep tare >/dev/null || break; sleep 1; done; \
                 rm -rf /var/cache/tare/probes /home/someone/.cache/tare/probes",
            );
            if !cleaned.status.success() {
                self.host = boot(&self.hardware);
            }
            holds(self)
        };
        eprintln!("{name}: {} ({:.0} s)", if passed { "holds" } else { "FAILED" }, seconds(began));
        if !passed {
            self.failed.push(name.to_owned());
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

    /// Runs the quickstart, shortened, from tare's files in `share`: most trials are
    /// completed, none fails, the limits are equal, and nothing is left behind.
    #[track_caller]
    fn quickstart(&self) {
        let before = self.snapshot();
        let said = self.host.sh(
            "rm -rf quickstart; NO_COLOR=1 tare run quickstart --scale 0.5 --blocks 2 --out quickstart 2>&1 || test $? = 3",
        );
        let here = self.folder.path().join("quickstart");
        self.host.fetch("quickstart", &here);
        let outcomes = outcomes(&here);
        assert_eq!(outcomes.len(), 24, "{said}");
        // A slow host may do too few operations in a trial of a quarter of a second, which is then invalid.
        let completed = outcomes.iter().filter(|own| *own == "completed").count();
        assert!(completed > 16 && !outcomes.iter().any(|own| own == "failed"), "{outcomes:?}\n{said}");
        equal_limits(&here, 12, &[]);
        let left: Vec<String> = self.snapshot().difference(&before).cloned().collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// All that tare may have made there, as it is now.
    fn snapshot(&self) -> BTreeSet<String> {
        // What systemd and the kernel start by themselves is not tare's: programs are looked for by what runs guests.
        let look = "find /sys/fs/cgroup -type d -name '*tare*' 2>/dev/null; \
            find /run/tare /var/lib/tare /var/lib/tare-data /var/log/libvirt/qemu -mindepth 1 2>/dev/null; \
            ls /run/netns 2>/dev/null; ls /sys/class/net; \
            sed 's/^/subtree_control /' /sys/fs/cgroup/cgroup.subtree_control; \
            grep tare /proc/mounts; \
            for own in $(grep -slz ^TARE_RUN= /proc/[0-9]*/environ); do cat ${own%environ}cmdline; echo; done; true";
        self.host.sh(look).lines().map(str::to_owned).collect()
    }
}

/// Whether hosts were asked for and this machine emulates them; tells why not.
fn can_boot() -> bool {
    let asked = [DISK, PACKAGE].iter().all(|variable| std::env::var_os(variable).is_some());
    let unmet =
        if asked { tare_testkit::emulated::unmet(AMD64) } else { Some("boots a whole host: make test-host".into()) };
    unmet.iter().for_each(|why| tare_testkit::skipped(why));
    unmet.is_none()
}

fn path_in(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(variable).unwrap_or_default())
}

/// A host with tare's package.
fn boot(hardware: &Hardware) -> EmulatedHost {
    let began = Instant::now();
    let host = EmulatedHost::boot(&path_in(DISK), AMD64, hardware);
    eprintln!("{} booted in {:.0} s", host.sh(". /etc/os-release; echo $PRETTY_NAME").trim(), seconds(began));
    with_package(host)
}

fn with_package(host: EmulatedHost) -> EmulatedHost {
    host.put(&path_in(PACKAGE), "tare.deb");
    host.sh("DEBIAN_FRONTEND=noninteractive apt-get install -y -qq ./tare.deb >/dev/null");
    if let Some(runsc) = std::env::var_os(GVISOR) {
        host.put(Path::new(&runsc), "/usr/local/bin/runsc");
        host.sh("chmod 755 /usr/local/bin/runsc");
    }
    host
}

/// The words of that command; none where there is no such QEMU.
fn qemu_8() -> Vec<String> {
    std::env::var(QEMU_8).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn seconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

/// A study of one block with these arms beside the native one.
fn study(arms: &str) -> String {
    with_baseline("native", &format!("{}{arms}", arm("native", "native", "{}")), "1s")
}

fn with_baseline(baseline: &str, arms: &str, steady_state: &str) -> String {
    let top = format!("baseline = \"{baseline}\"\nblocks = 1\ntrust-domain = \"this test alone\"");
    let case = "[cases.rr]\nworkload = \"rr\"\nparameters = { request = \"128B\", response = \"128B\" }\n";
    study_of(&top, arms, "256MiB", &[("warm-up", "300ms"), ("steady-state", steady_state)], case)
}

fn arm(id: &str, platform: &str, options: &str) -> String {
    format!("[arms.{id}]\nplatform = \"{platform}\"\noptions = {options}\n")
}

/// A machine by KVM, which takes most of a minute to boot here.
fn machine(id: &str, more: &str) -> String {
    arm(id, "qemu", &format!("{{ accel = \"kvm\", boot-within = \"5m\"{more} }}"))
}

/// Every trial completed, and every limit that was asked for was read back equal, but for these resources.
#[track_caller]
fn completed_with_parity(folder: &Path, trials: usize, said: &str, but_for: &[&str]) {
    assert_eq!(outcomes(folder), vec!["completed"; trials], "{said}");
    equal_limits(folder, trials, but_for);
}

/// Every limit that was asked for was read back equal, of each arm in each case, but for these resources.
#[track_caller]
fn equal_limits(folder: &Path, arms: usize, but_for: &[&str]) {
    let findings = findings(folder);
    let parity = findings["parity"].as_array().unwrap();
    assert_eq!(parity.len(), arms, "{parity:?}");
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

/// The containers that every host has programs for.
fn containers() -> Vec<(&'static str, String)> {
    let mut arms = vec![
        ("container", arm("container", "container", "{}")),
        ("runc", arm("runc", "oci", "{ runtime = \"runc\" }")),
        ("crun", arm("crun", "oci", "{ runtime = \"crun\" }")),
        ("nspawn", arm("nspawn", "nspawn", "{}")),
        ("lxc", arm("lxc", "lxc", "{}")),
        ("systemd-run", arm("systemd-run", "systemd-run", "{}")),
        ("docker", arm("docker", "docker", "{}")),
        ("podman", arm("podman", "podman", "{}")),
        ("containerd", arm("containerd", "containerd", "{}")),
    ];
    if std::env::var_os(GVISOR).is_some() {
        arms.push(("gvisor", arm("gvisor", "oci", "{ runtime = \"runsc\" }")));
    }
    arms
}

fn by_libvirt() -> String {
    arm("libvirt", "libvirt", "{ accel = \"kvm\", boot-within = \"5m\" }")
}

/// Starts a run and waits until `seen` succeeds there.
fn run_until(ground: &Ground, text: &str, seen: &str) {
    ground.host.write(text, "under-way.toml");
    ground
        .host
        .sh("rm -rf under-way; setsid -f tare run under-way.toml --out under-way >under-way.log 2>&1 </dev/null");
    let deadline = Instant::now() + Duration::from_secs(180);
    while !ground.host.run("root", seen).status.success() {
        let over = !ground.host.run("root", "pgrep -x tare").status.success();
        assert!(!over && Instant::now() < deadline, "`{seen}` was not seen: {}", ground.host.sh("cat under-way.log"));
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A run of this arm that is killed once its guest is under way leaves nothing, with no further command.
fn killed(ground: &Ground, id: &str, arm: &str, seen: &str) {
    let (before, began) = (ground.snapshot(), Instant::now());
    run_until(ground, &with_baseline(id, arm, "2m"), seen);
    let (started, killed) = (seconds(began), Instant::now());
    let during = ground.snapshot();
    assert!(during.difference(&before).count() > 3, "nothing was made: {during:?}");
    ground.host.sh("pkill -KILL -x -o tare");
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let left: Vec<String> = ground.snapshot().difference(&before).cloned().collect();
        if left.is_empty() {
            return eprintln!(
                "  {id}: under way after {started:.0} s, gone {:.0} s after it was killed",
                seconds(killed)
            );
        }
        assert!(Instant::now() < deadline, "left behind by {id}: {left:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// While its machine boots.
fn killed_with_a_machine(ground: &Ground) {
    killed(ground, "kvm", &machine("kvm", ""), "pgrep qemu-system");
}

/// Each kind of guest, once its control group has a process. A machine that is only started to see whether machines can be is none.
fn killed_with_every_guest(ground: &Ground) {
    let seen = "find /sys/fs/cgroup -path '*tare*' ! -path '*probe*' -name cgroup.procs -exec cat {} + 2>/dev/null | grep -q .";
    for (id, arm) in containers() {
        killed(ground, id, &arm, seen);
    }
    killed(ground, "libvirt", &by_libvirt(), seen);
}

/// The memory of a machine is merged where the study says so, and the host is put back. A machine over the host's root shares
/// its memory with the file server, so this one boots an image that another host built.
fn merged(ground: &Ground) {
    ground.host.put(Path::new(&std::env::var(IMAGE).unwrap()), "image.tar");
    ground.host.sh("mkdir -p /var/cache/tare/images && tar -C /var/cache/tare/images -xf image.tar && rm image.tar");
    let merging = "merging = { rule = \"fixed\", pages-to-scan = 5000, sleep = \"20ms\" }\n";
    let settings = || ground.host.sh("cd /sys/kernel/mm/ksm; grep . run pages_to_scan sleep_millisecs");
    let before = settings();
    let image = machine("kvm", ", image = { debian = { suite = \"bookworm\" } }");
    let text = with_baseline("kvm", &format!("{image}{merging}"), "20s");
    run_until(ground, &text, "test $(cat /sys/kernel/mm/ksm/pages_sharing) -gt 1000");
    assert_ne!(settings(), before);
    while ground.host.run("root", "pgrep -x tare").status.success() {
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_eq!(settings(), before, "{}", ground.host.sh("cat under-way.log"));
    let here = ground.folder.path().join("merged");
    ground.host.fetch("under-way", &here);
    assert_eq!(outcomes(&here), ["completed"]);
}

/// The tests that check a platform's conformance, one a platform, with the time that this host takes.
fn conforms(ground: &Ground) {
    const TESTS: [&str; 9] = [
        "platforms::native_conforms",
        "platforms::container_conforms",
        "platforms::oci_conforms_with_the_first_runtime",
        "containers::a_sandbox_conforms",
        "containers::a_container_of_systemd_conforms",
        "containers::a_container_of_lxc_conforms",
        "containers::a_service_of_systemd_conforms",
        "machines::a_machine_over_the_hosts_root_conforms",
        "libvirt::a_machine_conforms",
    ];
    ground.host.put(Path::new(&std::env::var(CONFORMANCE).unwrap()), "conformance");
    let said = ground.host.sh(&format!(
        "chmod 755 conformance; TARE_AGENT=$(find /usr -name tare-agent) TARE_CYCLES=1 TARE_SLOWER=5 \
         ./conformance --exact --test-threads 1 --nocapture {} 2>&1 || echo FAILED",
        TESTS.join(" ")
    ));
    assert!(!said.contains("FAILED"), "{said}");
    assert!(said.contains(&format!("ok. {} passed", TESTS.len())), "a test has another name now: {said}");
    said.lines().filter(|line| line.starts_with("SKIPPED")).for_each(|line| eprintln!("  {line}"));
}

/// Where the kernel cannot load a module, the run is refused before anything is started, with the module and what loads it.
fn a_missing_module_is_named(ground: &Ground) {
    let container = arm("container", "container", "{}");
    let machine = machine("kvm", ", network = { vhost = \"on\" }");
    for (module, arm) in [("overlay", &container), ("veth", &container), ("tun", &machine), ("vhost_net", &machine)] {
        let before = ground.snapshot();
        ground.host.write(&study(arm), "missing.toml");
        ground.host.write(&format!("install {module} /bin/false\n"), "/etc/modprobe.d/missing.conf");
        // What is not loaded need not be unloaded.
        ground.host.sh(&format!("! grep -q '^{module} ' /proc/modules || modprobe -r {module}"));
        let ran = ground.host.run("root", "NO_COLOR=1 tare run missing.toml --out missing 2>&1");
        ground.host.sh("rm -rf missing /etc/modprobe.d/missing.conf");
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(!ran.status.success(), "{module}: {said}");
        assert!(said.contains(&format!("modprobe {module}")), "{module}: {said}");
        assert_eq!(ground.snapshot(), before, "{module}");
    }
}

/// A user whom nobody gives a control group: guests run, and no limit is claimed.
fn a_user_without_a_session(ground: &Ground) {
    ground.host.write(&study(&arm("container", "container", "{}")), "/var/tmp/plain.toml");
    let plain = "env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS NO_COLOR=1 tare run /var/tmp/plain.toml --out /var/tmp/plain 2>&1";
    let ran = ground.host.run("someone", &format!("rm -rf /var/tmp/plain; {plain}"));
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}");
    let here = ground.folder.path().join("plain");
    ground.host.fetch("/var/tmp/plain", &here);
    assert_eq!(outcomes(&here), ["completed"; 2], "{said}");
    let findings = findings(&here);
    let rows: Vec<&Value> =
        findings["parity"].as_array().unwrap().iter().flat_map(|arm| arm["rows"].as_array().unwrap()).collect();
    let memory: Vec<&&Value> = rows.iter().filter(|row| row["resource"] == "memory limit").collect();
    assert!(!memory.is_empty() && memory.iter().all(|row| row["equal"] != true), "{rows:?}");
}

/// A user has what systemd gives every user; for what is missing, doctor prints the command for root.
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
    completed_with_parity(&folder, 2, &said, &["process limit", "receive steering"]);
}

/// KVM's counts are in the findings of these arms, by reason, and of no other.
#[track_caller]
fn exits_are_counted(folder: &Path, arms: &[&str]) {
    let findings = findings(folder);
    let metrics = findings["cases"][0]["metrics"].as_array().unwrap();
    let of = |id: &str| {
        let found = metrics.iter().find(|metric| metric["spec"]["id"] == id);
        let own = found.unwrap_or_else(|| panic!("no {id}: {metrics:?}"))["arms"].as_array().unwrap();
        own.iter()
            .map(|arm| (arm["arm"].as_str().unwrap().to_owned(), arm["estimate"]["value"].as_f64().unwrap()))
            .collect::<Vec<_>>()
    };
    let exits = of("kvm_exits_per_operation");
    assert!(exits.iter().all(|(arm, exits)| arms.contains(&arm.as_str()) && *exits > 0.0), "{exits:?}");
    assert_eq!(exits.len(), arms.len(), "{exits:?}");
    // A guest that serves one request after the other halts between them.
    assert!(of("kvm_halt_exits_per_operation").iter().all(|(_, exits)| *exits > 0.0));
    let report = std::fs::read_to_string(folder.join("report.md")).unwrap();
    assert!(report.contains("KVM exits an operation, by reason"), "{report}");
}

/// The resources that were read back of an arm.
fn parity_of(folder: &Path, arm: &str) -> Vec<String> {
    let findings = findings(folder);
    let own = findings["parity"].as_array().unwrap().iter().find(|own| own["arm"] == arm).unwrap().clone();
    own["rows"].as_array().unwrap().iter().map(|row| row["resource"].as_str().unwrap().to_owned()).collect()
}

/// A user who may use KVM has machines with limits. doctor prints the command that lets the user in.
fn a_user_has_machines(ground: &Ground) {
    let text = study(&machine("kvm", ""));
    ground.host.sh("gpasswd --delete someone kvm || true");
    ground.host.write(&text, "/var/tmp/user-kvm.toml");
    let doctor = || {
        let ran = ground.host.run("someone", "tare doctor --again /var/tmp/user-kvm.toml");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    let before = doctor();
    assert!(before.contains("Root runs `usermod -aG kvm someone`"), "{before}");
    ground.host.sh("usermod -aG kvm someone");
    let (folder, said) = ground.study("someone", "user-kvm", &text);
    // Without root there is nobody else to run as.
    completed_with_parity(
        &folder,
        2,
        &said,
        &["process limit", "receive steering", "rights of QEMU", "rights of virtiofsd"],
    );
    exits_are_counted(&folder, &["kvm"]);
}

/// A newer package takes the place of this one, and nothing of it is left when it is removed.
fn upgraded_and_removed(ground: &Ground) {
    ground.host.sh("rm -rf newer; dpkg-deb -R tare.deb newer && sed -i 's/^Version: .*/&+1/' newer/DEBIAN/control");
    ground.host.sh("dpkg-deb --root-owner-group --build newer newer.deb >/dev/null");
    ground.host.sh("DEBIAN_FRONTEND=noninteractive apt-get install -y -qq ./newer.deb >/dev/null");
    assert!(ground.host.sh("dpkg-query --show tare").trim().ends_with("+1"));
    ground.host.sh("tare --version");
    ground.host.sh("DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq tare >/dev/null");
    // What doctor's command gave the user's sessions is root's, and Santarem is a town.
    let left = ground.host.sh(
        "find /usr /etc /opt /var/lib/dpkg/info -name '*tare*' ! -path '/usr/share/zoneinfo/*' ! -path '/etc/systemd/system/user@.service.d/*'",
    );
    assert_eq!(left, "");
}

/// What must hold on every host before anything is published: install, doctor, a container, a machine, and teardown.
#[test]
#[ignore = "boots a whole host: make test-host"]
fn the_package_installs_and_a_container_and_a_machine_are_measured() {
    let Some(mut ground) = Ground::new(Hardware::default()) else { return };
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
        exits_are_counted(&folder, &["kvm"]);
        let left: Vec<String> = ground.snapshot().difference(&before).cloned().collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    });
    ground.check("a killed run with a machine leaves nothing", killed_with_a_machine);
    ground.check("a user has limits by a scope of systemd's", |ground| {
        let (folder, said) = ground.study("someone", "user", &study(&arm("container", "container", "{}")));
        // The slice of a user is closed to that user, and systemd gives it a third of the host's processes.
        completed_with_parity(&folder, 2, &said, &["process limit", "receive steering"]);
    });
    ground.finish();
}

/// Every platform that a host can have, each once.
#[test]
#[ignore = "boots a whole host for many minutes: make test-host"]
fn every_arm_runs_on_an_ordinary_host() {
    let Some(mut ground) = Ground::new(Hardware { qemu: qemu_8(), ..Hardware::default() }) else { return };
    ground.check("the quickstart, shortened", |ground| ground.quickstart());
    ground.check("a missing module is named, and nothing is started", a_missing_module_is_named);
    // Docker's bridge and groups come with its daemon, at whoever's first command; with its first container it enables every
    // controller at the host's root and leaves it so, as its disclosure says. That container runs no program.
    ground.host.sh("systemctl start docker; tar -cf - -T /dev/null | docker import - empty:1 >/dev/null; \
         docker run --rm empty:1 /none 2>/dev/null; docker image rm empty:1 >/dev/null");
    ground.check("all arms of one study", |ground| {
        let mut arms: Vec<String> = containers().into_iter().map(|(_, arm)| arm).collect();
        arms.extend([
            machine("kvm-vhost", ", network = { vhost = \"on\" }"),
            machine("kvm-without-vhost", ", network = { vhost = \"off\" }"),
            by_libvirt(),
        ]);
        let before = ground.snapshot();
        let (folder, said) = ground.study("root", "all", &study(&arms.concat()));
        let left: Vec<String> = ground.snapshot().difference(&before).cloned().collect();
        completed_with_parity(&folder, arms.len() + 1, &said, &[]);
        exits_are_counted(&folder, &["kvm-vhost", "kvm-without-vhost", "libvirt"]);
        assert!(left.is_empty(), "left behind: {left:?}");
    });
    ground.check("a killed run of any guest leaves nothing", killed_with_every_guest);
    ground.check("a machine's memory is merged, and the host put back", merged);
    ground.check("platforms conform", conforms);
    ground.check("a user without a session has guests, and no limit is claimed", a_user_without_a_session);
    ground.check("a user has every controller after one command of root's", a_user_is_given_every_controller);
    ground.check("a user of the group kvm has machines", a_user_has_machines);
    ground.check("a machine has the queues and huge pages, and reports free pages, as was asked for", |ground| {
        ground.host.sh("sysctl -q vm.nr_hugepages=160");
        let more =
            ", network = { queues = 2 }, memory = { huge-pages = true, free-page-reporting = true }, append = [\"hugepages=4\"]";
        let libvirt = "{ accel = \"kvm\", boot-within = \"5m\", append = [\"hugepages=4\"] }";
        let arms = format!("{}{}", machine("kvm", more), arm("libvirt", "libvirt", libvirt));
        let text = study(&arms).replace("cpus = 1", "cpus = 2");
        let (folder, said) = ground.study("root", "asked", &text);
        ground.host.sh("sysctl -q vm.nr_hugepages=0");
        completed_with_parity(&folder, 3, &said, &[]);
        let resources = parity_of(&folder, "kvm");
        for asked in ["pairs of queues", "memory in huge pages", "free page reporting", "huge pages of the guest's kernel"] {
            assert!(resources.iter().any(|own| own == asked), "{asked}: {resources:?}");
        }
        assert!(parity_of(&folder, "libvirt").iter().any(|own| own == "huge pages of the guest's kernel"));
    });
    ground.check("the package is upgraded and removed", upgraded_and_removed);
    ground.finish();
}

/// A function of a network card (SR-IOV) is handed to a machine, which boots tare's own initial file system.
#[test]
#[ignore = "boots a whole host: make test-host"]
fn a_function_of_a_card_is_passed_through() {
    let qemu = qemu_8();
    if qemu.is_empty() {
        return tare_testkit::skipped("needs a QEMU that emulates a card with functions (8 or newer): make test-host");
    }
    let devices = [
        ["-device", "intel-iommu,intremap=off,caching-mode=on"],
        ["-device", "pcie-root-port,id=rp1,chassis=1,slot=1"],
        ["-netdev", "hubport,id=card,hubid=1"],
        ["-device", "igb,bus=rp1,netdev=card,romfile="],
    ];
    let hardware =
        Hardware { qemu, devices: devices.concat().into_iter().map(str::to_owned).collect(), kernel: "intel_iommu=on" };
    let Some(mut ground) = Ground::new(hardware) else { return };
    ground.check("a function is passed through", |ground| {
        // As docs/reference/vfio.md says; the card's own side is the client's.
        let function = ground.host.sh(
            "set -e; card=$(for c in /sys/class/net/*; do test -e $c/device/sriov_numvfs && basename $c && break; done);
             grep -q 1 /sys/class/net/$card/device/sriov_numvfs || echo 1 >/sys/class/net/$card/device/sriov_numvfs;
             ip link set $card up; ip address replace 192.0.2.1/24 dev $card;
             ip link set $card vf 0 mac 02:00:00:00:00:01;
             function=$(basename $(readlink /sys/class/net/$card/device/virtfn0));
             modprobe vfio-pci; echo 1 >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts;
             echo vfio-pci >/sys/bus/pci/devices/$function/driver_override;
             test ! -e /sys/bus/pci/devices/$function/driver || echo $function >/sys/bus/pci/devices/$function/driver/unbind;
             echo $function >/sys/bus/pci/drivers_probe; echo $function",
        );
        let card = format!(
            ", network = {{ vfio = {{ device = \"{}\", mac = \"02:00:00:00:00:01\", address = \"192.0.2.7/24\" }} }}",
            function.trim()
        );
        let (folder, said) = ground.study("root", "function", &with_baseline("kvm", &machine("kvm", &card), "1s"));
        completed_with_parity(&folder, 1, &said, &[]);
    });
    ground.finish();
}

/// The one static program, copied and not installed, on a host of another architecture. It has containers and no machines.
#[test]
#[ignore = "boots a whole host: scripts/test-host.sh arm64"]
fn one_program_measures_on_an_arm64_host() {
    let (Some(disk), Some(program)) = (std::env::var_os(ARM64_DISK), std::env::var_os(PROGRAM)) else {
        return tare_testkit::skipped("boots a whole host: scripts/test-host.sh arm64");
    };
    if let Some(why) = tare_testkit::emulated::unmet(ARM64) {
        return tare_testkit::skipped(&why);
    }
    let began = Instant::now();
    let host = EmulatedHost::boot(&PathBuf::from(disk), ARM64, &Hardware::default());
    let system = host.sh(". /etc/os-release; echo $PRETTY_NAME, $(uname -rm), $(runc --version | head -n1)");
    eprintln!("{} booted in {:.0} s", system.trim(), seconds(began));
    host.put(Path::new(&program), "tare");
    host.sh("install -m 755 tare /usr/local/bin/");
    let mut ground = Ground::on(host, Hardware::default());
    ground.check("doctor finds containers usable, and says what is missing in this build and on this host", |ground| {
        let said = ground.host.sh("tare doctor");
        for id in ["native", "container", "oci runc"] {
            let line = said.lines().find(|line| line.trim_start().starts_with(&format!("{id} ")));
            assert!(line.is_some_and(|line| line.contains("works")), "{id}: {said}");
        }
        assert!(said.contains("its machines are those of x86_64"), "{said}");
        assert!(said.contains("one static program, which cannot load libvirt's library"), "{said}");
    });
    ground.check("the quickstart, shortened", |ground| ground.quickstart());
    ground.finish();
}
