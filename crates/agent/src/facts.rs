//! The guest as it looks from inside.

use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity};
use tare_model::environment::{Environment, Machine};
use tare_wire::{AgentFacts, BALLOON_REPORTS, USER_SPACE_BEGAN};

use crate::{age, confine};

/// Reads the facts. One that cannot be read is there too, its value saying why.
pub fn read() -> AgentFacts {
    let file = |path: &str| read_file(Path::new(path));
    let mut facts = vec![
        ("kernel release".to_owned(), rustix::system::uname().release().to_string_lossy().into_owned()),
        // Of the kernel, not of the guest: guests of one kernel have the same.
        ("boot id".to_owned(), file("/proc/sys/kernel/random/boot_id")),
        ("machine".to_owned(), rustix::system::uname().machine().to_string_lossy().into_owned()),
        ("host name".to_owned(), rustix::system::uname().nodename().to_string_lossy().into_owned()),
        ("cpus allowed".to_owned(), cpus_allowed()),
        ("cpus online".to_owned(), file("/sys/devices/system/cpu/online")),
        ("memory total".to_owned(), line_value(&file("/proc/meminfo"), "MemTotal")),
        ("huge pages reserved".to_owned(), line_value(&file("/proc/meminfo"), "HugePages_Total")),
        ("idle driver".to_owned(), file("/sys/devices/system/cpu/cpuidle/current_driver")),
        ("idle governor".to_owned(), file("/sys/devices/system/cpu/cpuidle/current_governor")),
        ("process id".to_owned(), rustix::process::getpid().as_raw_nonzero().to_string()),
        ("user id".to_owned(), rustix::process::getuid().as_raw().to_string()),
        ("user namespace map".to_owned(), one_line(&file("/proc/self/uid_map"))),
        ("control groups".to_owned(), one_line(&file("/proc/self/cgroup"))),
        ("static program".to_owned(), if cfg!(target_feature = "crt-static") { "yes" } else { "no" }.to_owned()),
        ("clock source".to_owned(), file("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("root file system".to_owned(), root_file_system(&file("/proc/self/mountinfo"))),
        ("congestion control".to_owned(), file("/proc/sys/net/ipv4/tcp_congestion_control")),
        ("clock monotonic ns".to_owned(), monotonic_ns().to_string()),
    ];
    if confine::is_confined() {
        facts.extend(confinement(&file("/proc/self/status")));
        facts.extend(confine::landlock_facts());
    }
    facts.extend(age::user_space_began_ns().map(|ns| (USER_SPACE_BEGAN.to_owned(), ns.to_string())));
    for (name, mtu) in interfaces(&file("/proc/net/dev")) {
        facts.push((format!("mtu {name}"), mtu));
    }
    facts.extend(queues());
    facts.extend(balloon(Path::new("/sys/bus/virtio/drivers/virtio_balloon")));
    AgentFacts { facts }
}

/// The machine that this agent runs on, described as the controller describes its own host.
pub fn machine(redact: bool) -> Machine {
    let own = std::env::current_exe().unwrap_or_default();
    let places = [("the agent", own.as_path()), ("the root file system", Path::new("/"))];
    let Environment { sections, hardware, .. } = tare_probe::environment::capture(redact, &places);
    Machine { name: String::new(), sections, hardware }
}

/// How many queues each network card of virtio's receives in, of those that its driver uses.
fn queues() -> Vec<(String, String)> {
    let cards = std::fs::read_dir("/sys/bus/virtio/drivers/virtio_net").into_iter().flatten().flatten();
    let links = cards.filter_map(|card| std::fs::read_dir(card.path().join("net")).ok()).flatten().flatten();
    let count = |link: &std::fs::DirEntry| {
        let queues = std::fs::read_dir(link.path().join("queues")).into_iter().flatten().flatten();
        queues.filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-")).count()
    };
    links.map(|link| (format!("queues {}", link.file_name().to_string_lossy()), count(&link).to_string())).collect()
}

/// What was agreed with a balloon of virtio's, where there is one that is driven.
fn balloon(driver: &Path) -> Option<(String, String)> {
    // VIRTIO_BALLOON_F_REPORTING; the file has a digit a feature.
    const REPORTING: usize = 5;
    let devices = std::fs::read_dir(driver).ok()?.flatten();
    let features = devices.filter_map(|device| std::fs::read_to_string(device.path().join("features")).ok()).next()?;
    let reports = features.as_bytes().get(REPORTING) == Some(&b'1');
    Some(("balloon".to_owned(), if reports { BALLOON_REPORTS } else { "free pages are not reported" }.to_owned()))
}

/// What this process may do beside others on its kernel, as that tells it.
fn confinement(status: &str) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = [
        ("capabilities bounding", "CapBnd"),
        ("capabilities effective", "CapEff"),
        ("no new privileges", "NoNewPrivs"),
        ("seccomp mode", "Seccomp"),
        ("seccomp filters", "Seccomp_filters"),
    ]
    .into_iter()
    .filter_map(|(name, key)| {
        let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some((name.to_owned(), value.trim().to_owned()))
    })
    .collect();
    let open = confine::open_paths();
    let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
    facts.push(("open paths of the kernel".to_owned(), open));
    facts
}

/// CLOCK_MONOTONIC, nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

fn read_file(path: &Path) -> String {
    match std::fs::read_to_string(path) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => format!("not readable: {error}"),
    }
}

fn one_line(text: &str) -> String {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("; ")
}

fn line_value(text: &str, key: &str) -> String {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    value.map_or_else(|| text.lines().next().unwrap_or("empty").to_owned(), |value| value.trim().to_owned())
}

/// The CPUs that this process may run on, as a list such as `0-3,6`.
fn cpus_allowed() -> String {
    match sched_getaffinity(None) {
        Ok(set) => ranges((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu))),
        Err(error) => format!("not readable: {error}"),
    }
}

fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let written: Vec<String> =
        runs.iter().map(|&(from, to)| if from == to { from.to_string() } else { format!("{from}-{to}") }).collect();
    written.join(",")
}

fn root_file_system(mountinfo: &str) -> String {
    // The last mount on `/` is the one that is seen.
    let mounts = crate::fstab::parse_mountinfo(mountinfo);
    mounts
        .into_iter()
        .rfind(|m| m.at == Path::new("/"))
        .map_or_else(|| "not listed in /proc/self/mountinfo".into(), |m| m.kind)
}

/// The interfaces of this process's network namespace with their MTU.
fn interfaces(net_dev: &str) -> Vec<(String, String)> {
    let names = net_dev.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    names.map(|name| (name.clone(), mtu(&name))).collect()
}

/// Asked of the kernel and not of `/sys`, which shows the network namespace of whoever mounted it.
fn mtu(name: &str) -> String {
    crate::sys::interface_mtu(name).map_or_else(|error| format!("not readable: {error}"), |mtu| mtu.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balloon_says_whether_free_pages_are_reported() {
        let driver = tempfile::tempdir().unwrap();
        assert_eq!(balloon(driver.path()), None);
        std::fs::write(driver.path().join("uevent"), "").unwrap();
        std::fs::create_dir(driver.path().join("virtio3")).unwrap();
        let said = |features: &str| {
            std::fs::write(driver.path().join("virtio3/features"), features).unwrap();
            balloon(driver.path()).unwrap().1
        };
        assert_eq!(said("0100010000\n"), BALLOON_REPORTS);
        assert_ne!(said("0100000000\n"), BALLOON_REPORTS);
    }

    #[test]
    fn cpu_lists_are_written_as_the_kernel_writes_them() {
        assert_eq!(ranges([0, 1, 2, 5, 7, 8].into_iter()), "0-2,5,7-8");
        assert_eq!(ranges([].into_iter()), "");
    }

    #[test]
    fn this_machine_is_described_with_the_disk_under_the_agent() {
        let machine = machine(true);
        let titles: Vec<&str> = machine.hardware.iter().map(|table| table.title.as_str()).collect();
        assert!(titles.contains(&"Disks") && titles.contains(&"Network cards"), "{titles:?}");
        assert!(machine.hardware.iter().all(|table| !table.rows.is_empty() || !table.notes.is_empty()));
        let said = format!("{:?}", machine.hardware);
        assert!(said.contains("the agent") && said.contains("the root file system"), "{said}");
        let kernel = machine.sections.iter().find(|section| section.title == "Kernel").unwrap();
        assert!(kernel.facts.iter().any(|(name, value)| name == "release" && !value.is_empty()));
    }

    #[test]
    fn the_facts_of_this_machine_are_read() {
        let facts = read().facts;
        let value = |name: &str| facts.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str()).unwrap_or_default();
        assert_eq!(value("process id"), std::process::id().to_string());
        assert_eq!(value("boot id").len(), 36, "{}", value("boot id"));
        assert!(value("memory total").ends_with("kB"), "{}", value("memory total"));
        assert_eq!(value("mtu lo").parse::<u32>().ok(), Some(65_536));
    }
}
