//! Machines through libvirt, for real, against the conformance checks: with a daemon of the tests' own, so that one of
//! the machine's is never touched.

use crate::common;
use crate::common::libvirtd;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Ground, exec, skipped, this_test};
use libvirtd::Daemon;
use serde_json::{Value, json};
use tare_image::{Extras, GuestConfig, Kernel, Root};
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::{ByteSize, Refusal};
use tare_platform::conformance::{self, Expect};
use tare_platform::{Comparable, Guest, HostView};

/// Says to a test that was started again where its daemon is.
const URI: &str = "TEST_LIBVIRT_URI";

/// Runs the test of this name again with a daemon, for the checks start it again themselves; in there, the URI.
fn with_daemon() -> Option<String> {
    if let Ok(uri) = std::env::var(URI) {
        return Some(uri);
    }
    let _turn = common::turn();
    let daemon = match Daemon::start() {
        Ok(daemon) => daemon,
        Err(why) => {
            skipped(&why);
            return None;
        }
    };
    let inner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &this_test(), "--nocapture"])
        .env(URI, daemon.uri())
        .output()
        .unwrap();
    let said = [inner.stdout, inner.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let log = daemon.log();
    drop(daemon);
    said.lines().filter_map(|line| line.strip_prefix("SKIPPED: ")).for_each(skipped);
    assert!(inner.status.success(), "{said}\nlibvirtd: {log}");
    None
}

fn options(uri: &str, more: &Value) -> Value {
    let mut options = json!({"uri": uri, "accel": "auto", "boot-within": conformance::boot_within(120)});
    for (key, value) in more.as_object().unwrap() {
        options[key] = value.clone();
    }
    options
}

#[test]
fn a_machine_conforms() {
    let Some(uri) = with_daemon() else { return };
    let expect = Expect { data: true, ..Expect::machine() };
    common::conforms("libvirt", "libvirt", &options(&uri, &json!({"data-disk": {"format": "qcow2"}})), &expect);
    assert_eq!(domains(&uri), Vec::<String>::new(), "nothing stays defined");
}

/// One guest with its agent, and what it was made with; none where the platform says that it cannot be.
fn stands(label: &str, options: &Value, check: impl FnOnce(&dyn Guest)) {
    let _turn = common::turn();
    let Some(agent) = common::agent() else { return };
    let platform = common::platform("libvirt", options);
    if let Err(refusal) = platform.check(&HostView::here(&agent)) {
        return skipped(&refusal.to_string());
    }
    let Some(ground) = Ground::new(label, agent) else { return };
    let size = GuestSize { cpus: 2, memory: ByteSize(512 << 20) };
    // Offered where it can be; on other arms it says why it cannot.
    let merge = platform.merging_refusal().is_none();
    let spec = GuestSpec { cpu_set: vec![0, 1], merge, ..GuestSpec::new("one", size) };
    let mut guest = platform.start(&ground.site(), &spec).unwrap_or_else(|error| panic!("{error}"));
    check(&*guest);
    guest.destroy().unwrap();
    drop(guest);
    let left = tare_lab::reap(&ground.run_id, &[], &mut |_, _| Ok(()));
    assert!(left.is_clean() && left.killed.is_empty(), "{left:?}");
}

fn ran(guest: &dyn Guest, argv: &[&str]) -> String {
    String::from_utf8_lossy(&exec(guest, argv).stdout).into_owned()
}

#[test]
fn what_was_asked_is_granted_and_all_time_is_charged() {
    let Some(uri) = with_daemon() else { return };
    stands("granted", &options(&uri, &json!({"pin-vcpus": true})), |guest| {
        for row in guest.parity() {
            assert!(row.equal, "{row:?}");
        }
        assert!(guest.parity().iter().any(|row| row.resource == "CPU of each virtual CPU"), "{:?}", guest.parity());
        let kinds: Vec<String> = guest.charges().into_iter().map(|charge| charge.kind).collect();
        for kind in ["virtual CPUs", "emulator", "file server"] {
            assert!(kinds.iter().any(|known| known == kind), "{kinds:?}");
        }
        let charged: f64 = guest.charges().iter().map(|charge| charge.cpu_s).sum();
        assert!(charged > 0.0);
        // Every thread of the emulator is in the guest's own groups, and each virtual CPU on the CPU it was given.
        let procs = fs::read_to_string(guest.groups()[0].join("cgroup.procs")).unwrap();
        let emulator = procs.lines().find(|pid| vcpu_threads(pid).next().is_some()).expect("an emulator").to_owned();
        let pinned: BTreeSet<String> = vcpu_threads(&emulator)
            .map(|thread| {
                let status = fs::read_to_string(thread.join("status")).unwrap();
                status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
            })
            .collect();
        assert_eq!(pinned, ["0", "1"].map(str::to_owned).into());
        assert!(ran(guest, &["uname", "-r"]).len() > 1);
        common::cannot_write_the_host(|script| ran(guest, &["sh", "-c", script]));
    });
}

/// The threads of a process that are virtual CPUs.
fn vcpu_threads(pid: &str) -> impl Iterator<Item = PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .map(|task| task.path())
        .filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with("CPU ")))
}

#[test]
fn a_debian_built_here_boots_from_its_overlay() {
    let Some(uri) = with_daemon() else { return };
    let asked = json!({"image": {"debian": {}}, "memory": {"free-page-reporting": true}});
    stands("debian", &options(&uri, &asked), |guest| {
        let merging = guest.parity().into_iter().find(|row| row.resource == "memory merging");
        assert!(merging.as_ref().is_some_and(|row| row.equal && row.note.contains("emulator")), "{merging:?}");
        let balloons = ran(guest, &["sh", "-c", "cat /sys/bus/virtio/devices/*/device"]);
        // Number 5 of the virtio standard.
        assert!(balloons.lines().any(|kind| kind == "0x0005"), "{balloons}");
        assert!(ran(guest, &["cat", "/etc/os-release"]).contains("Debian"));
        assert!(ran(guest, &["findmnt", "-no", "SOURCE", "/"]).contains("/dev/vda"), "its own disk");
        assert_eq!(ran(guest, &["sh", "-c", "echo kept > /var/kept && cat /var/kept"]), "kept\n");
    });
}

#[test]
fn a_container_image_from_scratch_is_a_domains_root() {
    let Some(uri) = with_daemon() else { return };
    let Some(agent) = common::agent() else { return };
    let place = tempfile::tempdir().unwrap();
    let (root, image) = (place.path().join("root"), place.path().join("image"));
    fs::create_dir_all(root.join("only")).unwrap();
    fs::copy(agent, root.join("only/here")).unwrap();
    tare_image::testing::image_layout(&image, &root, &json!({"WorkingDir": "/only"}));
    stands("image", &options(&uri, &json!({"image": {"oci": {"path": image}}})), |guest| {
        // Started only where it is static: nothing else is there.
        assert!(ran(guest, &["/only/here", "--version"]).contains("tare-agent"));
        assert_eq!(guest.commands().unwrap().directory.as_deref(), Some("/only"));
    });
}

/// A domain of the user's: the agent in its guest serves a virtio port, and is reached through libvirt.
#[test]
fn a_domain_that_is_there_is_started_reached_and_stopped() {
    let Some(uri) = with_daemon() else { return };
    let Some(agent) = common::agent() else { return };
    let Ok(boot) = Kernel::find(None).and_then(|kernel| tare_image::boot(&kernel, &agent, &Extras::default())) else {
        return skipped("no kernel for virtual machines here; `make platforms` fetches one");
    };
    let config = GuestConfig::new("theirs", "theirs", Root::Initrd);
    let xml = format!(
        "<domain type='qemu'><name>theirs</name><memory unit='MiB'>512</memory><vcpu>2</vcpu>\
         <os><type machine='q35'>hvm</type><kernel>{}</kernel><initrd>{}</initrd>\
         <cmdline>panic=-1 mitigations=off tsc=reliable random.trust_cpu=on {}</cmdline></os>\
         <features><acpi/></features><cpu mode='maximum'/><on_reboot>destroy</on_reboot><devices>\
         <channel type='unix'><target type='virtio' name='org.tare.agent.0'/></channel></devices></domain>",
        boot.kernel.display(),
        boot.initrd.display(),
        config.command_line().unwrap()
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), xml).unwrap();
    let virsh = |words: &[&str]| {
        let done = Command::new("virsh").args(["-c", &uri]).args(words).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    virsh(&["define", &file.path().to_string_lossy()]);
    let there = json!({"domain": {"existing": "theirs", "address": "192.0.2.7"}});
    let comparable = common::platform("libvirt", &options(&uri, &there)).comparable();
    assert!(matches!(comparable, Comparable::No(_)), "it is emulated: {comparable:?}");
    stands("theirs", &options(&uri, &there), |guest| {
        assert_eq!(guest.address().to_string(), "192.0.2.7");
        assert!(guest.groups().is_empty(), "its limits are its own");
        assert_eq!(virsh(&["domstate", "theirs"]), "running");
        let granted = |resource: &str| guest.parity().into_iter().find(|row| row.resource == resource).unwrap().equal;
        assert!(granted("virtual cpus") && granted("guest memory") && !granted("cpu set"));
    });
    assert_eq!(virsh(&["domstate", "theirs"]), "shut off", "it stays, and does not run");
}

#[test]
fn kvm_is_believed_when_a_guest_has_answered_and_not_before() {
    let Some(uri) = with_daemon() else { return };
    let Some(agent) = common::agent() else { return };
    let platform = common::platform("libvirt", &options(&uri, &json!({"accel": "kvm"})));
    match platform.check(&HostView::here(&agent)) {
        Ok(_) => assert_eq!(platform.comparable(), Comparable::Yes),
        Err(Refusal { reason, remedy }) => {
            assert!(!reason.is_empty() && remedy.contains("tcg"), "{reason}. {remedy}");
            skipped(&format!("here KVM runs nothing: {reason}"));
        }
    }
    assert_eq!(domains(&uri), Vec::<String>::new(), "the attempt leaves nothing");
}

/// Names of the domains that the daemon has, by libvirt's own shell.
fn domains(uri: &str) -> Vec<String> {
    let listed = Command::new("virsh").args(["-c", uri, "list", "--all", "--name"]).output();
    let listed = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}
