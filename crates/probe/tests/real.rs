//! The probe on the machine that runs the tests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use procfs::process::Process;
use tare_model::Span;
use tare_model::sample::Source;
use tare_probe::{Group, GuestProbe, HostConfig, HostProbe, Interface, cpu_account, now_ns};

/// A control group of the test's own, removed when it ends.
struct OwnGroup(PathBuf);

impl OwnGroup {
    /// Under the mount of the hierarchy that `of` tells, or why not.
    fn make(test: &str, fs_type: &str, option: Option<&str>) -> Result<Self, String> {
        let mounts = Process::myself().and_then(|me| me.mountinfo()).map_err(|error| error.to_string())?;
        let mount = mounts
            .into_iter()
            .find(|m| m.fs_type == fs_type && option.is_none_or(|key| m.super_options.contains_key(key)))
            .ok_or_else(|| format!("no {fs_type} {} is mounted", option.unwrap_or_default()))?;
        let dir = mount.mount_point.join(format!("tare-test-{}-{test}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(Self(dir))
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        // A group is busy until the kernel has reaped its last process.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A shell that waits for a line and then eats CPU; killed when dropped.
struct Eater(Child);

impl Eater {
    fn waiting() -> Self {
        let script = "read line; while :; do :; done";
        Self(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap())
    }

    fn waiting_in(group: &Path) -> Self {
        let eater = Self::waiting();
        std::fs::write(group.join("cgroup.procs"), eater.0.id().to_string()).unwrap();
        eater
    }

    fn go(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// CPU it used, by the kernel's account of the process.
    fn cpu_s(&self) -> f64 {
        let stat = Process::new(self.0.id() as i32).unwrap().stat().unwrap();
        (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64
    }
}

impl Drop for Eater {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn guest() -> Source {
    Source::Guest("eater".into())
}

/// Runs an eater in a group and compares what the probe bills with what the process was charged.
fn busy_loop_is_billed(test: &str, fs_type: &str, option: Option<&str>) {
    let group = match OwnGroup::make(test, fs_type, option) {
        Ok(group) => group,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let mut eater = Eater::waiting_in(&group.0);
    let probe = HostProbe::start(HostConfig { interval: Span::from_millis(50), ..HostConfig::default() }).unwrap();
    probe.add_group(&Group { source: guest(), directories: vec![group.0.clone()] }).unwrap();
    // The group is sampled from the next sample on; let one pass.
    std::thread::sleep(Duration::from_millis(100));
    let (start_ns, before_s) = (now_ns(), eater.cpu_s());
    eater.go();
    std::thread::sleep(Duration::from_millis(1500));
    let (end_ns, after_s) = (now_ns(), eater.cpu_s());
    probe.add_instants(&[end_ns]);
    let data = probe.stop().unwrap();
    let account =
        cpu_account(&data.samples, &[(start_ns, end_ns)], &[], &[guest()], &[]).expect("the window is covered");
    let (charged_s, billed_s) = (after_s - before_s, account.guest_user_s + account.guest_system_s);
    if charged_s < 0.2 {
        // Both figures are rounded to 10 ms: less than this and rounding alone comes near the tolerance.
        return println!("SKIPPED: the machine is so busy that the loop got only {charged_s} s of CPU");
    }
    assert!((billed_s / charged_s - 1.0).abs() < 0.1, "charged {charged_s} s, billed {billed_s} s");
    let parts =
        billed_s + account.neighbours_s + account.softirq_s + account.irq_s + account.kernel_s + account.foreign_s;
    assert!((parts - account.total_s).abs() < 1e-9, "{account:?}");
    let capacity_s = account.window_s * f64::from(account.cpus);
    assert!(account.total_s + account.steal_s <= 1.1 * capacity_s, "{account:?}");
}

#[test]
fn a_program_outside_all_guests_is_foreign_and_no_part_of_what_the_guest_cost() {
    let group = match OwnGroup::make("foreign", "cgroup", Some("cpuacct")) {
        Ok(group) => group,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let idle = Eater::waiting_in(&group.0);
    let mut eater = Eater::waiting();
    let groups = vec![Group { source: guest(), directories: vec![group.0.clone()] }];
    let probe =
        HostProbe::start(HostConfig { interval: Span::from_millis(50), groups, ..HostConfig::default() }).unwrap();
    let (start_ns, before_s) = (now_ns(), eater.cpu_s());
    eater.go();
    std::thread::sleep(Duration::from_millis(1500));
    let (end_ns, after_s) = (now_ns(), eater.cpu_s());
    probe.add_instants(&[end_ns]);
    let data = probe.stop().unwrap();
    drop(idle);
    let account = cpu_account(&data.samples, &[(start_ns, end_ns)], &[], &[guest()], &[]).unwrap();
    let charged_s = after_s - before_s;
    assert!(charged_s > 0.0 && account.foreign_s >= charged_s - 0.03, "charged {charged_s} s: {account:?}");
    // Interrupts and kernel threads remain, whatever else the machine does.
    assert!(
        account.work_s() < account.foreign_s && account.guest_user_s + account.guest_system_s < 0.01,
        "{account:?}"
    );
    let kernel = data.samples.iter().filter(|sample| sample.series == "sut_kernel_thread_s");
    assert!(kernel.count() > 1, "kernel threads are seen: {:?}", data.absent);
}

#[test]
fn a_busy_loop_in_a_group_of_version_1_is_billed_as_it_was_charged() {
    busy_loop_is_billed("v1", "cgroup", Some("cpuacct"));
}

#[test]
fn a_busy_loop_in_a_group_of_version_2_is_billed_as_it_was_charged() {
    busy_loop_is_billed("v2", "cgroup2", None);
}

#[test]
fn a_group_that_goes_away_ends_its_series_and_no_other() {
    let group = match OwnGroup::make("gone", "cgroup2", None) {
        Ok(group) => group,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let dir = group.0.clone();
    let groups = vec![Group { source: guest(), directories: vec![dir.clone()] }];
    let probe =
        HostProbe::start(HostConfig { interval: Span::from_millis(20), groups, ..HostConfig::default() }).unwrap();
    drop(group);
    let removed_ns = now_ns();
    std::thread::sleep(Duration::from_millis(60));
    let data = probe.stop().unwrap();
    let last = |source: &Source| data.samples.iter().rev().find(|s| s.source == *source).map(|s| s.at_ns);
    assert!(last(&guest()).is_some_and(|at_ns| at_ns <= removed_ns + 20_000_000), "{:?}", last(&guest()));
    assert!(last(&Source::Host) > Some(removed_ns));
    let place = dir.display().to_string();
    assert!(data.absent.iter().any(|note| note.contains(&place) && note.contains("gone")), "{:?}", data.absent);
}

#[test]
fn samples_are_taken_at_instants_given_before_and_after_the_start() {
    let soon = |ms: u64| now_ns() + ms * 1_000_000;
    let first = soon(30);
    let config = HostConfig { interval: Span::from_secs(3600), at_ns: vec![first], ..HostConfig::default() };
    let probe = HostProbe::start(config).unwrap();
    let second = soon(80);
    probe.add_instants(&[second]);
    while now_ns() < second + 100_000_000 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let data = probe.stop().unwrap();
    let times: Vec<_> = data.samples.iter().filter(|s| s.series == "cpu_user_s").map(|s| s.at_ns).collect();
    // The first of all, the two instants, and the last of all; on a machine that is very busy one may serve two.
    assert!((3..=4).contains(&times.len()), "{times:?}");
    assert!(times.iter().any(|&at| at >= first) && times[1] >= first && times[times.len() - 2] >= second, "{times:?}");
}

#[test]
fn an_interface_in_another_namespace_is_read_there() {
    let mut holder = match Command::new("unshare").args(["-n", "sleep", "30"]).spawn() {
        Ok(child) => child,
        Err(error) => return println!("SKIPPED: unshare: {error}"),
    };
    let namespace = PathBuf::from(format!("/proc/{}/ns/net", holder.id()));
    let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
    let entered = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        std::fs::read_link(&namespace).is_ok_and(|theirs| theirs != ours)
    });
    let interface = |label: &str, namespace| Interface { name: "lo".into(), label: label.into(), namespace };
    let interfaces = vec![interface("here", None), interface("there", Some(namespace))];
    let probe = HostProbe::start(HostConfig { interfaces, ..HostConfig::default() });
    let traffic = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    traffic.send_to(&[0; 100], traffic.local_addr().unwrap()).unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    if !entered {
        return println!("SKIPPED: no network namespace can be made here");
    }
    let data = probe.unwrap().stop().unwrap();
    let last = |series: &str| data.samples.iter().rev().find(|s| s.series == series).map(|s| s.value);
    assert_eq!(last("nic_there_tx_bytes"), Some(0.0), "a new namespace has sent nothing");
    assert!(last("nic_here_tx_bytes") >= Some(100.0));
}

#[test]
fn inside_a_guest_the_kernels_view_is_reported_and_the_probe_counts_its_own_cpu() {
    let probe = GuestProbe::start("g", Span::from_millis(10)).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let (samples, cpu_ns) = probe.stop().unwrap();
    for series in ["cpu_user_s", "cpu_steal_s", "memory_available_bytes", "run_queue_tasks", "probe_cpu_s"] {
        let values: Vec<_> = samples.iter().filter(|s| s.series == series).collect();
        assert!(values.len() >= 2, "{series}: {values:?}");
        assert!(values.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns), "{series} runs forward in time");
    }
    assert!(cpu_ns > 0);
}
