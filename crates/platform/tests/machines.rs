//! Virtual machines, for real: conformance, what they are granted and charged, and what hostile ones can do.

use crate::common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{agent, conforms, is_variant_wanted, platform, skipped, turn};
use serde_json::{Value, json};
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::{ByteSize, Refusal};
use tare_platform::conformance::{self, Expect};
use tare_platform::{Comparable, Guest, HostView, Platform, PlatformError};
use tare_wire::ExecResult;

/// So much of a console is kept at most, for each process and console of a guest.
const KEPT: usize = 64 << 10;

/// A place to start machines in.
pub struct Ground(pub common::Ground);

impl Ground {
    /// `None`, and the test is skipped, where there can be no guests.
    pub fn new(test: &str, platform: &dyn Platform) -> Option<Self> {
        let agent = agent()?;
        if let Err(refusal) = platform.check(&HostView::here(&agent)) {
            skipped(&refusal.to_string());
            return None;
        }
        common::Ground::new(test, agent).map(Self)
    }

    fn start(&self, platform: &dyn Platform, name: &str, cpus: u32) -> Result<Box<dyn Guest>, PlatformError> {
        let size = GuestSize { cpus, memory: ByteSize(256 << 20) };
        self.start_as(platform, &GuestSpec { cpu_set: vec![0, 1], ..GuestSpec::new(name, size) })
    }

    pub fn start_as(&self, platform: &dyn Platform, spec: &GuestSpec) -> Result<Box<dyn Guest>, PlatformError> {
        platform.start(&self.0.site(), spec)
    }

    /// Nothing is left: what was written down was taken back, and no process carries the run's id.
    pub fn end(self) {
        assert!(self.0.notes.left().is_empty(), "still written down: {:?}", self.0.notes.left());
        assert_eq!(processes_of(&self.0.run_id), Vec::<String>::new());
        let swept = tare_lab::reap(&self.0.run_id, &[], &mut |_, _| Ok(()));
        assert!(swept.left.is_empty(), "{:?}", swept.left);
        self.0.state.remove().unwrap();
    }
}

fn processes_of(run_id: &str) -> Vec<String> {
    let places = places_of(run_id).into_iter();
    places.map(|place| std::fs::read_to_string(place.join("comm")).unwrap_or_default()).collect()
}

/// The directory in /proc of every process that carries the run's id.
fn places_of(run_id: &str) -> Vec<PathBuf> {
    let mark = format!("TARE_RUN={run_id}");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let marked = entries.filter(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    });
    marked.map(|entry| entry.path()).collect()
}

pub fn exec(guest: &dyn Guest, script: &str) -> ExecResult {
    common::exec(guest, &["sh", "-c", script])
}

/// A machine, and how long it is tried: emulated ones take seconds to boot.
fn machine(cycles: u32) -> Expect {
    Expect { cycles, data: true, ..Expect::machine() }
}

#[test]
fn a_machine_over_the_hosts_root_conforms() {
    conforms("q35", "qemu", &json!({"boot-within": conformance::boot_within(120)}), &machine(5));
}

#[test]
fn a_microvm_conforms() {
    let options = json!({"machine": "microvm", "data-disk": {"format": "qcow2"}});
    conforms("microvm", "qemu", &options, &machine(1));
}

#[test]
fn a_machine_that_logs_in_to_a_target_by_itself_conforms() {
    if !is_variant_wanted() {
        return;
    }
    conforms("iscsi-guest", "qemu", &json!({"data-disk": {"iscsi": "guest"}}), &machine(1));
}

#[test]
fn a_machine_with_a_disk_conforms() {
    let options = json!({"image": {"debian": {}}, "disk": {"iothread": true}});
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
        "data-disk": {"size": "64MiB", "format": "qcow2", "mount": "/data", "iothread": true}, "memory": {"free-page-reporting": true},
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
    let mut sorted = (inside.clone(), processes_of(&ground.0.run_id));
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
        assert!(platform.disclosures().iter().any(|text| text.contains("emulated")), "{:?}", platform.disclosures());
    }
    guest.destroy().unwrap();
    assert!(guest.charges().iter().all(|charge| charge.cpu_s == 0.0), "a machine that is gone is charged");
    drop(guest);
    ground.end();
}

/// Fails unless a process is a user of its own with these capabilities, as /proc writes them, and cannot get others; gives the user.
#[test]
fn what_serves_a_machine_is_outside_its_quota_where_that_is_asked_for_and_nowhere_else() {
    let _turn = turn();
    for outside in [true, false] {
        let platform = platform("qemu", &json!({ "outside-quota": outside }));
        let name = format!("quota-{outside}");
        let Some(ground) = Ground::new(&name, &*platform) else { return };
        let guest = ground.start(&*platform, "quota", 1).unwrap();
        let row = guest.parity().into_iter().find(|row| row.resource == "cpu quota").unwrap();
        assert!(row.equal, "{row:?}");
        assert_eq!(row.granted.as_deref(), Some(if outside { "no limit" } else { "1 CPUs" }));
        assert_eq!(platform.disclosures().iter().any(|text| text.contains("outside the CPU quota")), outside);
        drop(guest);
        ground.end();
    }
}

fn is_confined(place: &Path, capabilities: &str, seccomp: &str) -> String {
    let status = std::fs::read_to_string(place.join("status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let name = field("Name:");
    let uid = field("Uid:").split(' ').next().unwrap().to_owned();
    assert!((0x7400_0000..0x7500_0000).contains(&uid.parse::<u32>().unwrap()), "{name}: {uid}");
    assert_eq!(field("Uid:"), [&*uid; 4].join(" "), "{name}");
    assert_eq!(field("Gid:"), [&*uid; 4].join(" "), "{name}");
    assert!(["", uid.as_str()].contains(&field("Groups:").as_str()), "{name}: {}", field("Groups:"));
    assert_eq!((field("CapEff:").as_str(), field("CapPrm:").as_str()), (capabilities, capabilities), "{name}");
    assert_eq!((field("NoNewPrivs:").as_str(), field("Seccomp:").as_str()), ("1", seccomp), "{name}");
    for kind in ["mnt", "ipc", "uts", "net"] {
        let of = |place: &Path| std::fs::read_link(place.join("ns").join(kind)).unwrap();
        assert_ne!(of(place), of(Path::new("/proc/self")), "{name} is in the host's {kind} namespace");
    }
    uid
}

#[test]
fn the_programs_that_carry_a_machine_are_users_of_their_own_with_hardly_a_right() {
    let _turn = turn();
    let platform = platform("qemu", &json!({"data-disk": {"iscsi": "guest"}}));
    let Some(ground) = Ground::new("rights", &*platform) else { return };
    let mut guest = ground.start(&*platform, "rights", 1).unwrap();
    let places = places_of(&ground.0.run_id);
    let named = |name: &str| {
        let comm = |place: &PathBuf| std::fs::read_to_string(place.join("comm")).unwrap_or_default();
        let found: Vec<_> = places.iter().filter(|place| comm(place).starts_with(name)).collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found[0].clone()
    };
    let none = "0000000000000000";
    let qemu = named("qemu");
    let mut users = vec![is_confined(&qemu, none, "2"), is_confined(&named("tgtd"), none, "0")];
    assert_eq!(std::fs::read_dir(qemu.join("root")).unwrap().count(), 0, "QEMU sees files");
    let server = named("virtiofsd");
    // That of QEMU 7.2 has no option of that name; later ones are root with the capabilities that they keep.
    let command = std::fs::read(server.join("cmdline")).unwrap();
    if !String::from_utf8_lossy(&command).contains("--shared-dir") {
        // CAP_DAC_OVERRIDE is bit 1, CAP_FOWNER bit 3.
        users.push(is_confined(&server, "000000000000000a", "2"));
    }
    let links = std::fs::read_to_string(server.join("net/dev")).unwrap();
    assert!(links.lines().skip(2).all(|line| line.trim_start().starts_with("lo:")), "{links}");
    let apart: std::collections::BTreeSet<&String> = users.iter().collect();
    assert_eq!(apart.len(), users.len(), "{users:?}");
    // The report says so, as it was seen.
    for program in ["QEMU", "virtiofsd", "tgtd"] {
        let rows = guest.parity();
        let row = rows.iter().find(|row| row.resource == format!("rights of {program}")).unwrap();
        assert!(row.equal && row.granted.is_some(), "{row:?}");
    }
    guest.destroy().unwrap();
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
fn the_start_of_a_machine_is_split_by_its_kernels_clock() {
    let _turn = turn();
    let platform = platform("qemu", &json!({}));
    let Some(ground) = Ground::new("split", &*platform) else { return };
    let mut guest = ground.start(&*platform, "split", 1).unwrap();
    let parts = guest.start_parts().expect("its kernel has a clock, and its agent tells when it began");
    let sum = parts.firmware_s + parts.kernel_s + parts.agent_s;
    assert!((sum - guest.start_time_s()).abs() < 1e-6, "{parts:?} are not {}", guest.start_time_s());
    assert!([parts.firmware_s, parts.kernel_s, parts.agent_s].iter().all(|part| *part > 0.0), "{parts:?}");
    // The kernel itself logs when it runs the first program, which is the agent: the same moment by another way.
    let logged = exec(&*guest, "timeout 5 grep -m 1 'as init process' /dev/kmsg");
    let record = String::from_utf8_lossy(&logged.stdout).into_owned();
    let logged_s = record.split(',').nth(2).and_then(|us| us.parse::<f64>().ok()).expect(&record) / 1e6;
    let after = parts.kernel_s - logged_s;
    assert!(after >= 0.0 && after < parts.kernel_s / 2.0 + parts.agent_s, "logged at {logged_s}, {parts:?}");
    show(&format!(
        "a start of {:.2} s: {parts:?}; user space by the kernel's log: {logged_s:.3} s",
        guest.start_time_s()
    ));
    guest.destroy().unwrap();
    drop(guest);
    ground.end();
    let process = common::platform("native", &json!({}));
    let Some(ground) = Ground::new("nosplit", &*process) else { return };
    let mut guest = ground.start(&*process, "nosplit", 1).unwrap();
    assert_eq!(guest.start_parts(), None, "it has no kernel of its own");
    guest.destroy().unwrap();
    drop(guest);
    ground.end();
}

#[test]
fn a_guest_boots_quietly_and_still_says_why_it_cannot() {
    let _turn = turn();
    // What the kernel says first; it is on the console before anything can fail.
    let chatter = "Linux version";
    for (append, talks) in [(json!([]), false), (json!(["loglevel=7"]), true)] {
        let platform = platform("qemu", &json!({"append": append}));
        let Some(ground) = Ground::new("quiet", &*platform) else { return };
        let mut guest = ground.start(&*platform, "quiet", 1).unwrap();
        assert_eq!(guest.diagnostics().contains(chatter), talks, "{append}: {}", guest.diagnostics());
        guest.destroy().unwrap();
        drop(guest);
        ground.end();
    }
    // The agent as the first process does not understand its words, and the machine ends.
    let Some(error) = fails("mute", &json!({"append": ["tare.nothing=1"]})) else { return };
    assert!(error.contains("`tare.nothing=1` is not understood") && !error.contains(chatter), "{error}");
    assert!(error.contains("loglevel=7"), "it says how to see more: {error}");
}

#[test]
fn a_qemu_that_refuses_is_reported_in_its_own_words() {
    let _turn = turn();
    let Some(error) = fails("refuses", &json!({"cpu-model": "no-such-processor"})) else { return };
    assert!(error.contains("no-such-processor"), "{error}");
}

#[test]
fn a_qemu_that_stays_root_carries_no_guest() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("qemu");
    // A QEMU that does not do as it is asked.
    let script = "#!/bin/bash\nwords=()\nwhile [ $# -gt 0 ]; do\n  case $1 in\n  -runas | -chroot | -run-with) shift 2 ;;\n  \
                  *) words+=(\"$1\"); shift ;;\n  esac\ndone\nexec qemu-system-x86_64 \"${words[@]}\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let Some(error) = fails("stays-root", &json!({"program": program, "accel": "tcg", "append": ["loglevel=7"]}))
    else {
        return;
    };
    assert!(error.contains("confine QEMU") && error.contains("is root, capabilities"), "{error}");
    assert!(!error.contains("Linux version"), "the guest ran: {error}");
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
        let Err(Refusal { reason, .. }) = hostile.check(&HostView::here(&ground.0.agent)) else {
            panic!("as {format} it was taken");
        };
        assert!(reason.contains("hostile.qcow2"), "{reason}");
        assert!(format == "raw" || reason.contains("backing"), "{reason}");
        let Err(error) = ground.start(&*hostile, "hostile", 1) else { panic!("as {format} it was started") };
        assert!(error.to_string().contains("hostile.qcow2"), "{error}");
        assert_eq!(ground.0.notes.count(), 0, "something was about to be made");
    }
    ground.end();
}

#[test]
fn kvm_that_boots_nothing_is_refused_and_the_refusal_is_remembered() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let host = HostView::here(&agent);
    let check = || platform("qemu", &json!({"accel": "kvm"})).check(&host);
    let Err(Refusal { reason, .. }) = check() else {
        return skipped("KVM runs guests here");
    };
    if !reason.contains("KVM runs no guest here") {
        return skipped(&reason);
    }
    let began = Instant::now();
    let Err(Refusal { reason, .. }) = check() else { panic!("it was taken the second time") };
    assert!(reason.contains("/dev/kvm"), "{reason}");
    assert!(reason.contains("tare doctor --again") || !reason.contains("a guest was tried"), "{reason}");
    // A guest that stands still would be watched for thirty seconds.
    assert!(began.elapsed() < Duration::from_secs(5), "it was tried again: {reason}");
    // Where the study leaves the choice to tare, it makes an emulated machine, and a note says so.
    let auto = platform("qemu", &json!({}));
    let Ok(notes) = auto.check(&host) else { return skipped("no machines here") };
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

/// Figures for people who look at a test.
pub fn show(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
