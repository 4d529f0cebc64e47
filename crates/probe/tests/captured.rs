//! The probe of a host on captured and made-up texts of the kernel.

use std::path::Path;

use tare_model::Span;
use tare_model::sample::Source;
use tare_probe::{Group, HostConfig, HostProbe, Interface, ProbeData, ProbeError};

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A host of three CPUs, of which number 1 is offline.
fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "proc/stat", include_str!("fixtures/stat"));
    write(root.path(), "proc/meminfo", include_str!("fixtures/meminfo"));
    write(root.path(), "proc/diskstats", include_str!("fixtures/diskstats"));
    write(root.path(), "proc/thread-self/net/dev", include_str!("fixtures/net_dev"));
    write(root.path(), "proc/loadavg", "1.25 0.80 0.40 3/210 4711\n");
    write(root.path(), "proc/pressure/memory", include_str!("fixtures/pressure_memory"));
    // Linux before 5.13 has no line `full` here.
    write(root.path(), "proc/pressure/cpu", "some avg10=4.09 avg60=1.62 avg300=3.26 total=33744126\n");
    root
}

fn config(root: &Path) -> HostConfig {
    HostConfig { root: root.to_owned(), interval: Span::from_secs(3600), ..HostConfig::default() }
}

fn probe(config: HostConfig) -> ProbeData {
    HostProbe::start(config).unwrap().stop().unwrap()
}

fn value(data: &ProbeData, source: &Source, series: &str) -> Option<f64> {
    data.samples.iter().find(|sample| sample.source == *source && sample.series == series).map(|sample| sample.value)
}

fn guest() -> Source {
    Source::Guest("target".into())
}

fn group(dirs: &[std::path::PathBuf]) -> Group {
    Group { source: guest(), directories: dirs.to_vec() }
}

#[test]
fn a_cpu_is_found_by_its_number_not_by_its_line() {
    let root = root();
    let data = probe(HostConfig { sut_cpus: vec![2], ..config(root.path()) });
    let host = |series| value(&data, &Source::Host, series);
    assert_eq!((host("cpu_user_s"), host("sut_cpu_user_s")), (Some(180.68), Some(108.99)));
    assert_eq!((host("sut_cpu_idle_s"), host("sut_cpu_steal_s")), (Some(1238.84), Some(0.19)));
    assert_eq!((host("context_switches"), host("interrupts")), (Some(537_906.0), Some(382_958.0)));
    assert_eq!((host("run_queue_tasks"), host("load_1min_tasks")), (Some(3.0), Some(1.25)));
    assert_eq!((host("sut_cpus"), host("irq_time_accounting")), (Some(1.0), Some(0.0)));
}

#[test]
fn the_drivers_cpus_are_counted_apart_from_the_suts() {
    let root = root();
    let data = probe(HostConfig { sut_cpus: vec![2], client_cpus: vec![0, 2], ..config(root.path()) });
    let host = |series| value(&data, &Source::Host, series).unwrap();
    assert_eq!((host("sut_cpu_user_s"), host("sut_cpus"), host("client_cpus")), (108.99, 1.0, 2.0));
    // This host has no other CPUs, so those two are all of it, but for rounding.
    assert!((host("client_cpu_user_s") - host("cpu_user_s")).abs() < 0.02);
    let none = probe(config(root.path()));
    assert_eq!(value(&none, &Source::Host, "client_cpu_user_s"), None);
}

#[test]
fn an_offline_cpu_cannot_be_the_suts() {
    let root = root();
    let error = HostProbe::start(HostConfig { sut_cpus: vec![1], ..config(root.path()) }).err();
    assert!(matches!(error, Some(ProbeError::NoSuchCpu { cpu: 1 })), "{error:?}");
}

#[test]
fn units_are_bytes_and_seconds() {
    let root = root();
    let interface = Interface { name: "eth0".into(), label: "uplink".into(), namespace: None };
    let data = probe(HostConfig { interfaces: vec![interface], disks: vec!["vda".into()], ..config(root.path()) });
    let host = |series| value(&data, &Source::Host, series);
    assert_eq!(host("memory_available_bytes"), Some(23_456_788.0 * 1024.0));
    assert_eq!(host("memory_page_cache_bytes"), Some(2_345_676.0 * 1024.0));
    assert_eq!(host("disk_vda_read_bytes"), Some(7_973_442.0 * 512.0));
    assert_eq!(host("disk_vda_busy_s"), Some(13.844));
    // Requests and their time, so that one over the other is the mean time of a request.
    assert_eq!((host("disk_vda_read_requests"), host("disk_vda_read_s")), (Some(71_376.0), Some(64.401)));
    assert_eq!((host("disk_vda_write_requests"), host("disk_vda_write_s")), (Some(19_757.0), Some(20.299)));
    assert_eq!(host("disk_vda_written_bytes"), Some(6_528_640.0 * 512.0));
    assert_eq!((host("nic_uplink_rx_bytes"), host("nic_uplink_tx_dropped_packets")), (Some(905_782_624.0), Some(5.0)));
    assert!((host("pressure_memory_some_s").unwrap() - 7.824_832).abs() < 1e-9);
}

#[test]
fn what_a_kernel_does_not_have_is_listed_and_nothing_is_made_up() {
    let root = root();
    let data = probe(config(root.path()));
    let absent = data.absent.join("\n");
    for what in ["pressure_cpu_full_s: not in", "proc/pressure/io", "proc/vmstat", "sut_cpu_sleep_s", "sut_cpu_task_s"]
    {
        assert!(absent.contains(what), "{what} in {absent}");
    }
    assert!(value(&data, &Source::Host, "pressure_cpu_some_s").is_some());
    assert_eq!(value(&data, &Source::Host, "pressure_cpu_full_s"), None);
    assert_eq!(value(&data, &Source::Host, "swap_in_bytes"), None);
}

#[test]
fn a_group_of_version_2_is_read_in_its_units() {
    let root = root();
    let dir = root.path().join("sys/fs/cgroup/target");
    write(
        &dir,
        "cpu.stat",
        "usage_usec 2500000\nuser_usec 1500000\nsystem_usec 1000000\nnr_throttled 4\nthrottled_usec 250000\n",
    );
    write(&dir, "memory.current", "1048576\n");
    write(&dir, "memory.peak", "2097152\n");
    write(&dir, "memory.events", "low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\noom_group_kill 0\n");
    write(&dir, "cpu.pressure", include_str!("fixtures/pressure_memory"));
    let data = probe(HostConfig { groups: vec![group(&[dir])], ..config(root.path()) });
    let expected = [
        ("cpu_total_s", 2.5),
        ("cpu_user_s", 1.5),
        ("cpu_system_s", 1.0),
        ("throttled_s", 0.25),
        ("throttled_periods", 4.0),
        ("memory_bytes", 1_048_576.0),
        ("memory_peak_bytes", 2_097_152.0),
        ("oom_kills", 1.0),
        ("pressure_cpu_some_s", 7.824_832),
    ];
    for (series, expected) in expected {
        let value = value(&data, &guest(), series).unwrap_or_else(|| panic!("{series} is missing"));
        assert!((value - expected).abs() < 1e-9, "{series}: {value}");
    }
}

#[test]
fn a_group_of_version_1_is_put_together_from_its_directories() {
    let root = root();
    let dirs = ["cpuacct", "cpu", "memory"].map(|name| root.path().join("sys/fs/cgroup").join(name).join("target"));
    write(&dirs[0], "cpuacct.usage", "2500000000\n");
    write(&dirs[0], "cpuacct.usage_user", "1500000000\n");
    write(&dirs[0], "cpuacct.usage_sys", "900000000\n");
    write(&dirs[1], "cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 250000000\n");
    write(&dirs[2], "memory.usage_in_bytes", "1048576\n");
    write(&dirs[2], "memory.max_usage_in_bytes", "2097152\n");
    write(&dirs[2], "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    let data = probe(HostConfig { groups: vec![group(&dirs)], ..config(root.path()) });
    let expected = [
        ("cpu_total_s", 2.5),
        ("cpu_system_s", 0.9),
        ("throttled_s", 0.25),
        ("memory_bytes", 1_048_576.0),
        ("memory_peak_bytes", 2_097_152.0),
        ("oom_kills", 1.0),
    ];
    for (series, expected) in expected {
        assert_eq!(value(&data, &guest(), series), Some(expected), "{series}");
    }
}

#[test]
fn what_was_named_and_is_not_there_is_an_error_with_the_remedy() {
    let root = root();
    let base = config(root.path());
    let empty = root.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let interface = Interface { name: "eth9".into(), label: "x".into(), namespace: None };
    let wrong = [
        (HostConfig { groups: vec![group(&[empty])], ..base.clone() }, "cpuacct"),
        (HostConfig { interfaces: vec![interface], ..base.clone() }, "eth9"),
        (HostConfig { disks: vec!["sdz".into()], ..base.clone() }, "/sys/block"),
        (HostConfig { interval: Span::ZERO, ..base.clone() }, "at least 1 ms"),
        (HostConfig { probe_cpus: vec![100_000], ..base }, "100000"),
    ];
    for (config, reason) in wrong {
        let error = HostProbe::start(config).err().expect("refused").to_string();
        assert!(error.contains(reason), "{reason} in {error}");
    }
}
