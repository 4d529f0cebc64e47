//! What the probe itself costs: samples this host for 10 s, five times a second, with eight control groups, and prints
//! the share of one CPU that its thread took.
//!
//! `cargo run -p tare-probe --example cost --release [SECONDS]`; as root, so that groups can be made.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use tare_model::Span;
use tare_model::sample::{Sample, Source};
use tare_probe::{Group, HostConfig, HostProbe, Interface, now_ns};

const GROUPS: usize = 8;

/// Groups of version 1 and 2, as a guest has them on a host with both; removed at the end.
struct Groups(Vec<Vec<PathBuf>>);

impl Groups {
    fn make() -> Self {
        let mounts = ["cpuacct", "cpu", "memory", "cpu,cpuacct", "unified", "."];
        let made = (0..GROUPS).map(|index| {
            let name = format!("tare-test-{}-cost{index}", std::process::id());
            let dirs = mounts.iter().map(|mount| PathBuf::from("/sys/fs/cgroup").join(mount).join(&name));
            dirs.filter(|dir| dir.parent().is_some_and(|p| p.join("cgroup.procs").exists()))
                .filter(|dir| std::fs::create_dir(dir).is_ok())
                .collect()
        });
        Self(made.collect())
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for dir in self.0.iter().flatten() {
            let _ = std::fs::remove_dir(dir);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let made = Groups::make();
    let guests = made.0.iter().enumerate().filter(|(_, dirs)| !dirs.is_empty());
    let groups: Vec<_> = guests
        .map(|(index, dirs)| Group { source: Source::Guest(format!("guest{index}")), directories: dirs.clone() })
        .collect();
    let watched = groups.len();
    let interfaces = vec![Interface { name: "lo".into(), label: "lo".into(), namespace: None }];
    let probe = HostProbe::start(HostConfig { sut_cpus: vec![0], groups, interfaces, ..HostConfig::default() })?;
    let start_ns = now_ns();
    std::thread::sleep(Span::from_secs(seconds).duration() + Duration::from_millis(1));
    let elapsed_ns = now_ns() - start_ns;
    let data = probe.stop()?;
    drop(made);
    let of_host = |sample: &&Sample| sample.source == Source::Host && sample.series == "cpu_user_s";
    let samples = data.samples.iter().filter(of_host).count();
    let share = data.cpu_ns as f64 / elapsed_ns as f64;
    println!("{samples} samples, {} values each, {watched} groups", data.samples.len() / samples.max(1));
    println!("probe: {:.3} % of one CPU, {:.0} us a sample", 100.0 * share, data.cpu_ns as f64 / 1e3 / samples as f64);
    println!("lost: {}, latest sample: {:.3} ms late", data.lost, data.lateness_max_ns as f64 / 1e6);
    println!("not there:\n  {}", data.absent.join("\n  "));
    Ok(())
}
