//! System containers and sandboxes, for real, against the conformance checks.

use crate::common::engines;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::{ByteSize, Refusal};
use tare_platform::conformance::Expect;
use tare_platform::{Guest, HostView, Site, registry};
use tare_wire::ExecResult;

use crate::common::{
    self, agent, all_variants, archive_of, conforms, is_variant_wanted, platform, skipped, small_root, this_test, turn,
};
use engines::{engine, podman_flags, with_containerd, with_docker, with_podman};

const CYCLES: u32 = 20;

fn fully() -> Expect {
    Expect { cycles: CYCLES, ..Expect::default() }
}

/// For a second set of options: what every start does is known from the first.
fn shortly() -> Expect {
    Expect { cycles: 3, printed_bytes: 1 << 20, ..Expect::default() }
}

#[test]
fn a_sandbox_conforms() {
    conforms("runsc", "oci", &json!({"runtime": "runsc"}), &Expect { own_kernel: true, ..fully() });
}

#[test]
fn a_sandbox_with_the_hosts_network_and_the_guests_overlay_conforms() {
    if !is_variant_wanted() {
        return;
    }
    let options = json!({"runtime": "runsc", "upper": "disk", "gvisor": {"overlay": "none", "network": "host", "data": "exclusive"}});
    conforms("runsc-disk", "oci", &options, &Expect { own_kernel: true, ..shortly() });
}

#[test]
fn a_container_of_systemd_conforms() {
    conforms("nspawn", "nspawn", &json!({}), &fully());
}

#[test]
fn a_container_of_lxc_conforms() {
    conforms("lxc", "lxc", &json!({}), &fully());
}

#[test]
fn a_sandbox_of_bubblewrap_conforms() {
    conforms("bubblewrap", "bubblewrap", &json!({}), &fully());
}

#[test]
fn a_service_of_systemd_conforms() {
    conforms("systemd-run", "systemd-run", &json!({}), &fully());
}

/// A small root file system with the directories that all containers have.
fn root_in(place: &Path) -> Option<PathBuf> {
    let root = place.join("root");
    small_root(&root)?;
    for directory in ["usr", "etc", "dev", "proc", "sys", "run", "tmp"] {
        std::fs::create_dir_all(root.join(directory)).ok()?;
    }
    Some(root)
}

#[test]
fn containers_conform_on_a_directory_an_archive_and_an_image_and_write_to_disk() {
    let place = tempfile::tempdir().unwrap();
    let Some(root) = root_in(place.path()) else { return };
    let archive = archive_of(&root);
    let image = place.path().join("image");
    tare_image::testing::image_layout(&image, &root, &json!({}));
    let image = json!({"rootfs": {"image": image}});
    conforms("container-image", "container", &image, &shortly());
    conforms("runtime-image", "oci", &image, &shortly());
    for name in ["nspawn", "lxc"] {
        conforms(&format!("{name}-image"), name, &image, &shortly());
        let (directory, disk) = (format!("{name}-directory"), format!("{name}-disk"));
        if all_variants() {
            conforms(&directory, name, &json!({"rootfs": {"directory": root}}), &shortly());
        }
        conforms(&disk, name, &json!({"rootfs": {"archive": archive}, "upper": "disk"}), &shortly());
    }
}

/// Whether the platform says that it can be used.
fn check(name: &str, options: &Value, agent: &Path) -> Result<(), Refusal> {
    platform(name, options).check(&HostView::here(agent)).map(drop)
}

#[test]
fn a_root_that_is_not_there_is_refused_by_every_container() {
    let Some(agent) = agent() else { return };
    if tare_lab::is_rootless() {
        return skipped("needs root: without it these platforms are refused for that");
    }
    let bubblewrap = ("bubblewrap", json!({}));
    for (name, options) in [("nspawn", json!({})), ("lxc", json!({})), bubblewrap, ("oci", json!({"runtime": "runc"}))]
    {
        if let Err(refusal) = check(name, &options, &agent) {
            skipped(&format!("{name}: {refusal}"));
            continue;
        }
        for root in
            [json!({"directory": "/nowhere/at/all"}), json!({"archive": "/"}), json!({"directory": "/etc/hosts"})]
        {
            let mut options = options.clone();
            options["rootfs"] = root;
            let Refusal { reason, remedy } = check(name, &options, &agent).unwrap_err();
            assert!(reason.contains("root file system") && remedy.contains("path"), "{name}: {reason} {remedy}");
        }
    }
}

/// A mode that does not work here is refused with the reason, in bounded time, and at once when asked again.
#[test]
fn a_sandbox_mode_that_hangs_is_refused_and_remembered() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    if let Err(refusal) = check("oci", &json!({"runtime": "runsc"}), &agent) {
        return skipped(&refusal.reason);
    }
    let kvm = json!({"runtime": "runsc", "gvisor": {"platform": "kvm"}});
    let mounted = || std::fs::read_to_string("/proc/self/mounts").unwrap().matches("/runsc-do").count();
    let before = mounted();
    let first = check("oci", &kvm, &agent);
    assert!(mounted() <= before, "a sandbox that was tried left a mount behind");
    let asked = Instant::now();
    let again = check("oci", &kvm, &agent);
    // The second answer starts nothing but `--version`.
    assert!(asked.elapsed() < Duration::from_secs(9), "it tried again");
    assert_eq!(first.is_ok(), again.is_ok());
    let Err(Refusal { reason, remedy }) = again else {
        return skipped("the sandbox's KVM mode works on this host");
    };
    assert!(reason.contains("--platform=kvm") && remedy.contains("systrap"), "{reason} {remedy}");
}

/// A place to start guests in.
struct Ground(common::Ground);

impl Ground {
    fn new(label: &str, agent: &Path) -> Option<Self> {
        common::Ground::new(label, agent.to_owned()).map(Self)
    }

    /// Whether a guest came up; it is gone then.
    fn starts(&self, name: &str, options: &Value, guest: &str) -> Result<(), String> {
        let mut started = self.start(name, options, guest, 0)?;
        started.destroy().map_err(|error| error.to_string())
    }

    /// A guest on one CPU.
    fn start(&self, name: &str, options: &Value, guest: &str, cpu: u32) -> Result<Box<dyn Guest>, String> {
        let site = Site { timeout: Duration::from_secs(10), ..self.0.site() };
        let size = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
        let spec = GuestSpec { cpu_set: vec![cpu], ..GuestSpec::new(guest, size) };
        platform(name, options).start(&site, &spec).map_err(|error| error.to_string())
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let left = tare_lab::reap(&self.0.run_id, &[], &mut |_, _| Ok(())).left;
        if !std::thread::panicking() {
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

/// A root whose `/dev`, `/proc` ... are links out of it: whatever becomes of the guest, nothing is written where they
/// lead, and nothing is mounted there for the host to see.
#[test]
fn links_in_a_root_do_not_lead_out_of_it() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let place = tempfile::tempdir().unwrap();
    if tare_lab::is_rootless() {
        return skipped("needs root");
    }
    let Some(root) = root_in(place.path()) else { return };
    let outside = place.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let Some(ground) = Ground::new("links", &agent) else { return };
    let arms = [("nspawn", json!({})), ("lxc", json!({})), ("oci", json!({})), ("oci", json!({"runtime": "runsc"}))];
    let mut tried = 0;
    for (number, (name, options)) in arms.into_iter().enumerate() {
        let mut options = options;
        if let Err(refusal) = check(name, &options, &agent) {
            skipped(&format!("{name}: {refusal}"));
            continue;
        }
        options["rootfs"] = json!({"directory": root});
        ground.starts(name, &options, &format!("plain-{number}")).unwrap();
        for link in ["dev", "proc", "sys", "run", "etc", ".tare"] {
            let at = root.join(link);
            // What an earlier start has made there is the guest's overlay's, so this is what the root came with.
            let _ = std::fs::remove_dir(&at);
            symlink(&outside, &at).unwrap();
            let came = ground.starts(name, &options, &format!("{}-{number}", link.trim_start_matches('.')));
            let refused = came.as_ref().is_err_and(|why| why.contains(&format!("a link at /{link}")));
            assert!(refused, "{name} took a root with a link at /{link}: {came:?}");
            std::fs::remove_file(&at).unwrap();
            if link != ".tare" {
                std::fs::create_dir(&at).unwrap();
            }
            let written: Vec<_> = std::fs::read_dir(&outside).unwrap().flatten().map(|entry| entry.path()).collect();
            assert!(written.is_empty(), "{name} wrote {written:?} through /{link}: {came:?}");
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
            assert!(!mounts.contains("/outside"), "{name} mounted something through /{link}: {mounts}");
            tried += 1;
        }
    }
    assert!(tried > 0 || tare_lab::Cgroup::unavailable().is_some(), "nothing was tried");
}

/// A start that is still on its way when its run is taken down must not make the run's directory anew: others could
/// read it, so every later run would refuse it.
#[test]
fn a_late_start_does_not_bring_back_the_directory_of_a_run() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let Some(ground) = Ground::new("late", &agent) else { return };
    if let Err(refusal) = check("oci", &json!({}), &agent) {
        return skipped(&refusal.to_string());
    }
    std::fs::remove_dir_all(ground.0.state.path()).unwrap();
    let came = ground.starts("oci", &json!({}), "late");
    assert!(came.as_ref().is_err_and(|why| why.contains("make its directory")), "{came:?}");
    assert!(!ground.0.state.path().exists());
}

/// CPU time that a guest's control group has used, seconds.
fn charged_s(guest: &dyn Guest) -> f64 {
    let read = |file: &str| guest.groups().iter().find_map(|group| std::fs::read_to_string(group.join(file)).ok());
    let version_1 = read("cpuacct.usage").map(|text| text.trim().parse::<f64>().unwrap() / 1e9);
    version_1.unwrap_or_else(|| {
        let text = read("cpu.stat").unwrap();
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
        usage.parse::<f64>().unwrap() / 1e6
    })
}

/// Command lines of the run's processes that are in none of the groups.
fn outside_of(groups: &[PathBuf], run_id: &str) -> Vec<String> {
    let mark = format!("TARE_RUN={run_id}");
    let inside: Vec<String> = groups
        .iter()
        .flat_map(|group| {
            let below = ["", "payload", "supervisor"].map(|name| group.join(name).join("cgroup.procs"));
            below.map(|file| std::fs::read_to_string(file).unwrap_or_default())
        })
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
    let strangers = processes.filter(|process| !inside.contains(&process.file_name().to_string_lossy().into_owned()));
    strangers
        .map(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ")
        })
        .collect()
}

/// Runs a script in a guest, to its good end.
fn executed(guest: &dyn Guest, script: &str) -> ExecResult {
    let ran = common::exec(guest, &["sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{}: {ran:?}", guest.spec().name);
    ran
}

/// What programs that start containers like to set by themselves is the same in all of them.
#[test]
fn limits_and_places_in_memory_are_alike_in_every_container() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    if tare_lab::is_rootless() {
        return skipped("needs root: without it these platforms are refused for that");
    }
    let Some(ground) = Ground::new("alike", &agent) else { return };
    let printed = |label: &str, name: &str, options: &Value, script: &str| {
        if let Err(refusal) = check(name, options, &agent) {
            skipped(&format!("{label}: {refusal}"));
            return None;
        }
        let mut guest = ground.start(name, options, label, 0).unwrap();
        let ran = executed(&*guest, script);
        guest.destroy().unwrap();
        Some(String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    let limits = "cat /proc/self/limits | tr -s ' '; ";
    let places = "stat -f -c %b /dev/shm; stat -f -c %T /tmp; cat /proc/self/oom_score_adj /proc/self/coredump_filter";
    let script = format!("{limits}{places}");
    let expected = printed("container", "container", &json!({}), &script).unwrap();
    assert!(expected.contains("Max locked memory"), "{expected}");
    for (label, name, options) in
        [("nspawn", "nspawn", json!({})), ("lxc", "lxc", json!({})), ("runc", "oci", json!({"runtime": "runc"}))]
    {
        let seen = printed(label, name, &options, &script);
        assert!(seen.as_ref().is_none_or(|seen| *seen == expected), "{label}: {seen:?}, not {expected:?}");
    }
    // A kernel of its own counts its memory by itself.
    if let Some(seen) = printed("runsc", "oci", &json!({"runtime": "runsc"}), limits) {
        let rows = |text: &str| -> Vec<String> {
            // It has no real-time scheduling and no queue of signals to limit.
            let known = |line: &&str| !line.contains("pending signals") && !line.contains("realtime");
            text.lines().filter(|line| line.starts_with("Max ")).filter(known).map(str::to_owned).collect()
        };
        assert_eq!(rows(&seen), rows(&expected));
    }
}

/// What a guest does, and all that is done for it by others of its processes, is charged to it.
#[test]
fn the_work_of_a_guest_is_charged_to_it() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    if let Some(why) = tare_lab::Cgroup::unavailable() {
        return skipped(&why);
    }
    let Some(ground) = Ground::new("charged", &agent) else { return };
    // Not the first, which a kernel of the guest's own would number the same.
    let cpu = std::thread::available_parallelism().map_or(0, |count| u32::try_from(count.get() - 1).unwrap_or(0));
    for (name, options) in [("nspawn", json!({})), ("lxc", json!({})), ("oci", json!({"runtime": "runsc"}))] {
        if let Err(refusal) = check(name, &options, &agent) {
            skipped(&format!("{name}: {refusal}"));
            continue;
        }
        let mut guest = ground.start(name, &options, name, cpu).unwrap();
        for row in guest.parity() {
            assert!(row.equal, "{name}: {row:?}");
        }
        let before = charged_s(&*guest);
        let ran = executed(&*guest, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
        let (charged, wall) = (charged_s(&*guest) - before, ran.wall_ns as f64 / 1e9);
        // Others may have kept it from the CPU, so only the order is known; idle processes take a hundredth of it.
        assert!(charged > wall / 10.0, "{name}: {charged} s were charged for {wall} s of work");
        // What is left outside is the program that waits for the runtime's end, if any.
        let outside = outside_of(&guest.groups(), &ground.0.run_id);
        assert!(outside.iter().all(|line| line.contains(" run ")), "{name}: outside of its group: {outside:?}");
        guest.destroy().unwrap();
    }
}

/// Guests that are started at the same time do not wait for each other's locks, nor refuse for them.
#[test]
fn guests_start_side_by_side() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let Some(ground) = Ground::new("many", &agent) else { return };
    for (name, options) in [("nspawn", json!({})), ("lxc", json!({})), ("oci", json!({"runtime": "runsc"}))] {
        if let Err(refusal) = check(name, &options, &agent) {
            skipped(&format!("{name}: {refusal}"));
            continue;
        }
        let guests: Vec<String> = (0..6).map(|number| format!("{name}-{number}")).collect();
        std::thread::scope(|scope| {
            let starts = guests.iter().map(|guest| scope.spawn(|| ground.start(name, &options, guest, 0)));
            let starts: Vec<_> = starts.collect::<Vec<_>>();
            // All stand at the same time before the first is taken away.
            let standing: Vec<_> = starts.into_iter().map(|start| start.join().unwrap().unwrap()).collect();
            standing.into_iter().for_each(|mut guest| guest.destroy().unwrap());
        });
    }
}

/// As [`check`], of what needs no agent for that.
fn checked(name: &str, options: &Value) -> Result<(), Refusal> {
    check(name, options, Path::new("/none"))
}

fn with(options: &Value, field: &str, value: &str) -> Value {
    let mut options = options.clone();
    options[field] = value.into();
    options
}

/// Makes an image of the programs that the checks run, with a variable, a volume and a user of its own; whether that could be had.
fn image(name: &str, options: &Value, reference: &str) -> bool {
    let place = tempfile::tempdir().unwrap();
    let Some(root) = root_in(place.path()) else { return false };
    let archive = archive_of(&root);
    let changes = ["--change", "ENV COLOUR=red", "--change", "VOLUME /kept", "--change", "USER 65534"];
    let archive = archive.to_string_lossy();
    engine(name, options, &[&["import"], &changes[..], &[&archive, reference]].concat());
    true
}

/// Nothing of the tests' guests is left with the engine: no container, and no volume that its image asked for.
fn is_empty(name: &str, options: &Value) {
    for list in [["container", "ls", "--all", "--quiet"].as_slice(), &["volume", "ls", "--quiet"]] {
        assert_eq!(engine(name, options, list).trim(), "", "{list:?}");
    }
}

fn conforms_with_and_without_an_image(name: &str, options: &Value) {
    const IMAGE: &str = "localhost/tare-test:1";
    if let Err(refusal) = checked(name, options) {
        return skipped(&format!("{name}: {refusal}"));
    }
    let Refusal { reason, remedy } = checked(name, &with(options, "image", "localhost/none:1")).unwrap_err();
    assert!(reason.contains("localhost/none:1") && remedy.contains("pull"), "{reason} {remedy}");
    conforms(name, name, options, &Expect { cycles: 5, ..shortly() });
    if image(name, options, IMAGE) {
        let label = format!("{name}-image");
        conforms(&label, name, &with(options, "image", IMAGE), &Expect { cycles: 1, ..shortly() });
    }
    is_empty(name, options);
}

#[test]
fn containers_of_a_daemon_conform() {
    let Some(options) = with_docker() else { return };
    conforms_with_and_without_an_image("docker", &options);
    let Refusal { reason, remedy } = checked("docker", &with(&options, "runtime", "no-such-runtime")).unwrap_err();
    assert!(reason.contains("no-such-runtime") && remedy.contains("daemon.json"), "{reason} {remedy}");
}

#[test]
fn containers_without_a_daemon_conform() {
    let Some(options) = with_podman() else { return };
    conforms_with_and_without_an_image("podman", &options);
}

/// Sockets of shims, whoever's they are.
fn shim_sockets() -> usize {
    std::fs::read_dir("/run/containerd/s").map_or(0, Iterator::count)
}

#[test]
fn containers_of_a_shim_conform() {
    let Some(options) = with_containerd() else { return };
    if let Err(refusal) = checked("containerd", &options) {
        return skipped(&format!("containerd: {refusal}"));
    }
    let Refusal { reason, remedy } = checked("containerd", &with(&options, "runtime", "no-such")).unwrap_err();
    assert!(reason.contains("no `containerd-shim-no-such-v2`: it looks in /"), "{reason}");
    assert!(remedy.contains("PATH"), "{remedy}");
    let sockets = shim_sockets();
    conforms("containerd", "containerd", &options, &Expect { cycles: 5, ..shortly() });
    let place = tempfile::tempdir().unwrap();
    let Some(root) = root_in(place.path()) else { return };
    let mut small = with(&options, "upper", "disk");
    small["rootfs"] = json!({"directory": root});
    small["namespace"] = "tare-tests".into();
    conforms("containerd-disk", "containerd", &small, &Expect { cycles: 1, ..shortly() });
    for namespace in ["tare", "tare-tests"] {
        for list in ["containers", "tasks", "snapshots"] {
            let left = engine("ctr", &options, &["--namespace", namespace, list, "ls"]);
            assert_eq!(left.lines().count(), 1, "{namespace}: {left}");
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("/stage"), "{mounts}");
    assert_eq!(shim_sockets(), sockets, "shims that were killed left their sockets");
}

/// A machine that cannot be made is refused for what is missing, and the remedy says where to get it.
#[test]
fn a_machine_of_a_shim_is_refused_where_something_is_missing() {
    let Some(options) = with_containerd() else { return };
    let Err(Refusal { reason, remedy }) = checked("containerd", &with(&options, "runtime", "kata")) else {
        return skipped("Kata Containers can be had here");
    };
    match Path::new("/dev/kvm").exists() {
        true => {
            assert!(reason.contains("containerd-shim-kata-v2") && remedy.contains("docs/install"), "{reason} {remedy}")
        }
        false => assert!(reason.contains("/dev/kvm") && remedy.contains("modprobe"), "{reason} {remedy}"),
    }
}

/// Runs itself again as a user, in a user namespace as tare makes it.
#[test]
fn containers_of_a_user_conform() {
    const USER: &str = "64123";
    if let Some(place) = std::env::var_os("TEST_USERS_PLACE") {
        let options = json!({"runtime": "runc", "flags": podman_flags(Path::new(&place))});
        if let Err(refusal) = checked("podman", &options) {
            return skipped(&refusal.to_string());
        }
        assert!(checked("docker", &json!({})).unwrap_err().reason.contains("needs root"));
        conforms("users", "podman", &options, &shortly());
        return is_empty("podman", &options);
    }
    let Some(agent) = agent().filter(|_| !tare_lab::is_rootless()) else {
        return skipped("needs the agent, and root to become a user");
    };
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    std::os::unix::fs::chown(place.path(), Some(USER.parse().unwrap()), Some(USER.parse().unwrap())).unwrap();
    // Where the tests were built may be closed to users.
    let copies = [("test", std::env::current_exe().unwrap()), ("agent", agent)].map(|(name, from)| {
        let copy = place.path().join(name);
        std::fs::copy(from, &copy).unwrap();
        copy
    });
    let ran = Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups", "unshare", "--user", "--map-root-user", "--mount"])
        .arg(&copies[0])
        .args(["--exact", &this_test(), "--nocapture"])
        .current_dir(place.path())
        .env("TEST_USERS_PLACE", place.path())
        .env("TARE_AGENT", &copies[1])
        .env("HOME", place.path())
        .env("XDG_RUNTIME_DIR", place.path())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .output();
    let Ok(ran) = ran else { return skipped("needs setpriv and unshare") };
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if said.contains("unshare failed") || said.contains("unshare: ") {
        return skipped(&format!("a user may make no user namespace here: {said}"));
    }
    said.lines().filter_map(|line| line.strip_prefix("SKIPPED: ")).for_each(skipped);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn an_engine_that_cannot_be_used_says_why() {
    let host = json!({"host": "unix:///nonexistent/socket"});
    let Refusal { reason, remedy } = checked("docker", &host).unwrap_err();
    let named = ["there is no `docker`", "/nonexistent/socket", "needs root"];
    assert!(named.iter().any(|word| reason.contains(word)) && !remedy.is_empty(), "{reason} {remedy}");
    for name in ["docker", "podman"] {
        let entry = registry::find(name).unwrap();
        let error = (entry.check_options)(&json!({"runtime": "kata-runtime"})).unwrap_err();
        assert_eq!(error.path, ["runtime"], "{error}");
    }
}

/// Tries what the rules of Landlock refuse, and does what they allow; says what differs.
const UNDER_RULES: &str = "
for there in /tmp /var/tmp /dev/shm; do echo x >$there/a && mkdir $there/d && mv $there/a $there/d/b && rm -r $there/d || echo no $there; done
for there in / /usr /etc; do if mkdir $there/tare-test 2>/dev/null; then echo can $there; fi; done
if (: >>/etc/hostname) 2>/dev/null; then echo can /etc/hostname; fi
cat /etc/hostname >/dev/null || echo no reading
";

#[test]
fn a_container_is_under_rules_of_landlock_where_its_arm_says_so() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let ports = json!({"landlock": {"tcp-bind": [0], "tcp-connect": []}});
    let Some(ground) = Ground::new("landlock", &agent) else { return };
    for (number, name) in ["container", "bubblewrap", "nspawn", "lxc"].into_iter().enumerate() {
        for (options, rows) in [(json!({"landlock": true}), 1), (ports.clone(), 1), (json!({"landlock": false}), 0)] {
            if let Err(refusal) = check(name, &options, &agent) {
                skipped(&format!("{name} {options}: {refusal}"));
                continue;
            }
            let mut guest = ground.start(name, &options, &format!("ruled-{number}-{rows}"), 0).unwrap();
            let found: Vec<_> = guest.parity().into_iter().filter(|row| row.resource == "Landlock").collect();
            assert_eq!(found.len(), rows, "{name}: {found:?}");
            assert!(found.iter().all(|row| row.equal && row.note.contains("version")), "{name}: {found:?}");
            let said = executed(&*guest, UNDER_RULES).stdout;
            let free = "can /\ncan /usr\ncan /etc\ncan /etc/hostname\n";
            assert_eq!(String::from_utf8_lossy(&said), if rows == 0 { free } else { "" }, "{name} {options}");
            guest.destroy().unwrap();
        }
    }
}

#[test]
fn a_container_under_rules_of_landlock_conforms() {
    conforms("landlock", "container", &json!({"landlock": true}), &shortly());
}
