//! Virtual machines, for real: conformance, what they are granted and charged, and what hostile ones can do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{agent, conforms, platform, skipped, turn};
use serde_json::{Value, json};
use tare_lab::{Lab, LabConfig, Ledger, LedgerError, Resource, StateDir};
use tare_model::ByteSize;
use tare_model::guest::{GuestSize, GuestSpec};
use tare_platform::conformance::Expect;
use tare_platform::{Availability, Comparable, Guest, HostView, Platform, PlatformError, Site};
use tare_wire::{ExecResult, ExecSpec, Reply, Request};

/// So much of a console is kept at most, for each process and console of a guest.
const KEPT: usize = 64 << 10;

/// What was written down and not taken back.
#[derive(Default)]
struct Notes(Mutex<(u64, Vec<(u64, Resource)>)>);

impl Ledger for Notes {
    fn planned(&self, resource: &Resource) -> Result<u64, LedgerError> {
        let mut notes = self.0.lock().unwrap();
        notes.0 += 1;
        let number = notes.0;
        notes.1.push((number, resource.clone()));
        Ok(number)
    }

    fn released(&self, number: u64) -> Result<(), LedgerError> {
        self.0.lock().unwrap().1.retain(|(known, _)| *known != number);
        Ok(())
    }
}

/// A lab and a state directory of a test's own.
struct Ground {
    run_id: String,
    agent: PathBuf,
    lab: Lab,
    state: StateDir,
    notes: Arc<Notes>,
}

impl Ground {
    /// `None`, and the test is skipped, where there can be no guests.
    fn new(test: &str, platform: &dyn Platform) -> Option<Self> {
        let agent = agent()?;
        if let Availability::Unavailable { reason, remedy } = platform.check(&HostView::here(&agent)) {
            skipped(&format!("{reason}. {remedy}"));
            return None;
        }
        let run_id = format!("test-{}-{test}", std::process::id());
        let lab = Lab::create(LabConfig::new(run_id.clone())).unwrap();
        let state = StateDir::create(&run_id, Path::new("/nonexistent")).unwrap();
        Some(Self { run_id, agent, lab, state, notes: Arc::default() })
    }

    fn start(&self, platform: &dyn Platform, name: &str, cpus: u32) -> Result<Box<dyn Guest>, PlatformError> {
        let ledger: Arc<dyn Ledger> = Arc::clone(&self.notes) as Arc<dyn Ledger>;
        let site = Site {
            run_id: &self.run_id,
            agent: &self.agent,
            lab: &self.lab,
            mtu: 1500,
            state: self.state.path(),
            ledger: &ledger,
            lifetime: Duration::from_secs(300),
            patience: Duration::from_secs(120),
        };
        let size = GuestSize { cpus, memory: ByteSize(256 << 20) };
        platform.start(&site, &GuestSpec { name: name.to_owned(), size, cpu_set: vec![0, 1], data: None })
    }

    /// Nothing is left: what was written down was taken back, and no process carries the run's id.
    fn end(self) {
        assert!(self.notes.0.lock().unwrap().1.is_empty(), "still written down: {:?}", self.notes.0.lock().unwrap().1);
        assert_eq!(processes_of(&self.run_id), Vec::<String>::new());
        let swept = tare_lab::reap(&self.run_id, &[], &mut |_, _| Ok(()));
        assert!(swept.left.is_empty(), "{:?}", swept.left);
        self.state.remove().unwrap();
    }
}

fn processes_of(run_id: &str) -> Vec<String> {
    let mark = format!("TARE_RUN={run_id}");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let marked = entries.filter(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    });
    marked.map(|entry| std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default()).collect()
}

fn exec(guest: &dyn Guest, script: &str) -> ExecResult {
    let spec = ExecSpec {
        user: None,
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        env: Vec::new(),
        directory: None,
        timeout_ns: 60_000_000_000,
        output_limit_bytes: 65_536,
    };
    match guest.link().call(Request::Exec(spec), Duration::from_secs(90)) {
        Ok(Reply::Executed(result)) => result,
        other => panic!("{other:?}; it said: {}", guest.diagnostics()),
    }
}

/// A machine, and how long it is tried: emulated ones take seconds to boot.
fn machine(cycles: u32) -> Expect {
    Expect { cycles, data: true, ..Expect::machine() }
}

#[test]
fn a_machine_over_the_hosts_root_conforms() {
    conforms("q35", "qemu", &json!({}), &machine(5));
}

#[test]
fn a_microvm_conforms() {
    let options = json!({"machine": "microvm", "data-disk": {"format": "qcow2"}});
    conforms("microvm", "qemu", &options, &machine(1));
}

#[test]
fn a_machine_that_logs_in_to_a_target_by_itself_conforms() {
    conforms("iscsi-guest", "qemu", &json!({"data-disk": {"iscsi": "guest"}}), &machine(1));
}

#[test]
fn a_machine_with_a_disk_conforms() {
    let options = json!({"image": {"debian": {}}, "disk": {"iothread": true}, "memory": {"merge": true}});
    conforms("disk", "qemu", &options, &machine(2));
}

/// CPUs that each thread of a process may run on, by the thread's name.
fn affinity_of_threads(process: u32) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let value = |status: &str, key: &str| {
        status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim().to_owned()
    };
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
        .map(|status| (value(&status, "Name:"), value(&status, "Cpus_allowed_list:")))
        .collect()
}

#[test]
fn a_machine_has_what_was_asked_and_is_charged_for_all_of_it() {
    let _turn = turn();
    let options = json!({
        "data-disk": {"size": "64MiB", "format": "qcow2", "mount": "/data", "iothread": true}, "memory": {"balloon": true},
    });
    let platform = platform("qemu", &options);
    let Some(ground) = Ground::new("whole", &*platform) else { return };
    let mut guest = ground.start(&*platform, "whole", 2).unwrap();
    let unequal: Vec<_> = guest.parity().into_iter().filter(|row| !row.equal).collect();
    assert!(unequal.is_empty(), "{unequal:?}");
    assert!(guest.parity().iter().any(|row| row.resource == "machine memory"), "{:?}", guest.parity());

    let ran = exec(
        &*guest,
        "mkdir -p /data/x && dd if=/dev/zero of=/data/x/y bs=1M count=8 conv=fsync 2>&1 && grep ' /data ' /proc/mounts && nproc && cat /etc/os-release > /dev/null",
    );
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.code == Some(0) && said.contains("/dev/vda /data ext4") && said.ends_with("2\n"), "{ran:?}");

    common::cannot_write_the_host(|script| String::from_utf8_lossy(&exec(&*guest, script).stdout).into_owned());

    // Every process that was started for it is in its control group, the file server too.
    let group = std::fs::read_to_string(guest.groups()[0].join("cgroup.procs")).unwrap();
    let comm = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let inside: Vec<String> = group.lines().map(comm).collect();
    let mut sorted = (inside.clone(), processes_of(&ground.run_id));
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1);
    assert!(inside.iter().any(|name| name.starts_with("virtiofsd")), "{inside:?}");

    let qemu = group.lines().find(|pid| comm(pid).starts_with("qemu")).unwrap().parse().unwrap();
    let threads = affinity_of_threads(qemu);
    let cpu = |number: u32| threads.iter().find(|(name, _)| name.starts_with(&format!("CPU {number}/"))).unwrap();
    assert_eq!((cpu(0).1.as_str(), cpu(1).1.as_str()), ("0", "1"), "{threads:?}");

    let charges = guest.charges();
    let cpu_s = |kind: &str| charges.iter().find(|charge| charge.kind == kind).map(|charge| charge.cpu_s);
    for kind in ["virtual CPUs", "main loop and others", "I/O threads", "file server"] {
        assert!(cpu_s(kind).is_some(), "{kind}: {charges:?}");
    }
    assert!(cpu_s("virtual CPUs").unwrap() > cpu_s("main loop and others").unwrap(), "{charges:?}");
    if platform.comparable() != Comparable::Yes {
        assert!(platform.disclosures().iter().any(|told| told.contains("emulated")), "{:?}", platform.disclosures());
    }
    guest.destroy().unwrap();
    assert!(guest.charges().iter().all(|charge| charge.cpu_s == 0.0), "a machine that is gone is charged");
    drop(guest);
    ground.end();
}

/// Starts a machine that cannot come up; what the error says.
fn fails(test: &str, options: &Value) -> Option<String> {
    let platform = platform("qemu", options);
    let ground = Ground::new(test, &*platform)?;
    let began = Instant::now();
    let error = ground.start(&*platform, "fails", 1).err().expect("it came up").to_string();
    // Not a measure: it must not have waited for the whole of some other time.
    assert!(began.elapsed() < Duration::from_secs(50), "given up after {:?}", began.elapsed());
    ground.end();
    Some(error)
}

#[test]
fn a_machine_that_never_comes_up_is_given_up_with_the_end_of_its_console() {
    let _turn = turn();
    // The kernel stops before the agent is started, and says so.
    let halts = json!({"append": ["panic=0", "rdinit=/nowhere", "root=/dev/nothing"], "boot-within": "12s"});
    let Some(error) = fails("halts", &halts) else { return };
    assert!(error.contains("Kernel panic") && error.contains("12"), "{error}");
    // One that ends is not waited for.
    let ends = json!({"append": ["rdinit=/nowhere", "root=/dev/nothing"], "boot-within": "600s"});
    let Some(error) = fails("ends", &ends) else { return };
    assert!(error.contains("Kernel panic"), "{error}");
}

#[test]
fn a_qemu_that_refuses_is_told_in_its_own_words() {
    let _turn = turn();
    let Some(error) = fails("refuses", &json!({"cpu-model": "no-such-processor"})) else { return };
    assert!(error.contains("no-such-processor"), "{error}");
}

#[test]
fn megabytes_on_the_console_are_bounded() {
    let _turn = turn();
    let platform = platform("qemu", &json!({}));
    let Some(ground) = Ground::new("flood", &*platform) else { return };
    let mut guest = ground.start(&*platform, "flood", 1).unwrap();
    let ran = exec(&*guest, "head -c 1100000 /dev/zero | tr '\\0' x > /dev/ttyS0 && echo the last words > /dev/ttyS0");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = guest.diagnostics();
    // One tail each for QEMU and the file server.
    assert!(said.len() <= 2 * KEPT + 1, "{}", said.len());
    assert!(said.contains("the last words"), "{}", &said[said.len().saturating_sub(100)..]);
    guest.destroy().unwrap();
    drop(guest);
    ground.end();
}

#[test]
fn an_image_that_refers_to_another_file_is_refused_before_anything_is_made() {
    let _turn = turn();
    let plain = platform("qemu", &json!({}));
    let Some(ground) = Ground::new("backing", &*plain) else { return };
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("hostile.qcow2");
    let made = Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2", "-u", "-F", "raw", "-b", "/etc/shadow"])
        .arg(&image)
        .arg("1M")
        .status()
        .unwrap();
    assert!(made.success());
    for format in ["qcow2", "raw"] {
        let hostile = platform("qemu", &json!({"image": {"file": {"path": image, "format": format}}}));
        let Availability::Unavailable { reason, .. } = hostile.check(&HostView::here(&ground.agent)) else {
            panic!("as {format} it was taken");
        };
        assert!(reason.contains("hostile.qcow2"), "{reason}");
        assert!(format == "raw" || reason.contains("backing"), "{reason}");
        let Err(error) = ground.start(&*hostile, "hostile", 1) else { panic!("as {format} it was started") };
        assert!(error.to_string().contains("hostile.qcow2"), "{error}");
        assert_eq!(ground.notes.0.lock().unwrap().0, 0, "something was about to be made");
    }
    ground.end();
}

#[test]
fn kvm_that_boots_nothing_is_refused_and_the_refusal_is_remembered() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let host = HostView::here(&agent);
    let check = || platform("qemu", &json!({"accel": "kvm"})).check(&host);
    let Availability::Unavailable { reason, .. } = check() else {
        return skipped("KVM runs guests here");
    };
    if !reason.contains("KVM runs no guest here") {
        return skipped(&reason);
    }
    let began = Instant::now();
    let Availability::Unavailable { reason, .. } = check() else { panic!("it was taken the second time") };
    assert!(reason.contains("/dev/kvm"), "{reason}");
    // A probe that boots a guest would take twenty seconds.
    assert!(began.elapsed() < Duration::from_secs(5), "it was tried again: {reason}");
    // Whoever leaves the choice to tare gets an emulated machine, and is told.
    let auto = platform("qemu", &json!({}));
    let Availability::Available { notes } = auto.check(&host) else { return skipped("no machines here") };
    assert!(notes.iter().any(|note| note.contains("emulated")), "{notes:?}");
    assert!(matches!(auto.comparable(), Comparable::No(reason) if reason.starts_with("emulated")));
}

#[test]
fn four_machines_start_at_once() {
    let _turn = turn();
    let platform = platform("qemu", &json!({}));
    let Some(ground) = Ground::new("four", &*platform) else { return };
    let (ground_ref, platform_ref) = (&ground, &*platform);
    std::thread::scope(|scope| {
        let starts: Vec<_> = (0..4)
            .map(|number| scope.spawn(move || ground_ref.start(platform_ref, &format!("m{number}"), 1).unwrap()))
            .collect();
        let mut guests: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
        let addresses: std::collections::BTreeSet<_> = guests.iter().map(|guest| guest.address()).collect();
        assert_eq!(addresses.len(), 4);
        for guest in &mut guests {
            assert_eq!(exec(&**guest, "hostname").stdout, format!("{}\n", guest.spec().name).into_bytes());
            guest.destroy().unwrap();
        }
    });
    ground.end();
}
