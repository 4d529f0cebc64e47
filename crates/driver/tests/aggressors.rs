//! What aggressors achieve in their stretches, and that they hold nothing between them. One test, for what a process holds is counted.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::thread;
use std::time::Duration;

use tare_driver::busy::{self, Busy};
use tare_driver::clock::now_ns;
use tare_model::drive::{BusyDone, BusyStretch, BusyWork};

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;
/// Longest that a piece and the end of a stretch may take beyond it on a busy host.
const LATE_MS: u64 = 2_000;

/// What this process holds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Holds {
    resident_bytes: u64,
    files: usize,
    children: usize,
}

impl Holds {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
        Self {
            resident_bytes: kib << 10,
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            children: children(),
        }
    }
}

/// Processes, ended ones too, whose parent this is.
fn children() -> usize {
    let own = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)) == Some(&own)).count()
}

fn stretch(busy: &Busy, for_ms: u64) -> BusyDone {
    let stretch = BusyStretch { warm_up_ns: 10 * MS, for_ns: for_ms * MS, ..BusyStretch::default() };
    let done = busy.run(now_ns(), &stretch).unwrap();
    assert!(done.ended_ns >= done.asked_ns + for_ms * MS, "it stopped early: {done:?}");
    assert!(done.ended_ns < done.asked_ns + (for_ms + LATE_MS) * MS, "it did not stop: {done:?}");
    done
}

fn achieved(done: &BusyDone) -> u64 {
    done.loops.iter().map(|one| one.iterations).sum()
}

/// It works in each of its stretches, and not between; and holds nothing then.
fn works_in_stretches(work: &BusyWork, threads: usize) {
    let before = Holds::now();
    let busy = busy::start(2, work).unwrap();
    thread::sleep(Duration::from_millis(30));
    assert_eq!(busy.iterations().unwrap(), 0, "{work:?} works before it is asked");
    for _ in 0..2 {
        let done = stretch(&busy, 300);
        let held = Holds::now();
        println!("{}: {} {} in 0.3 s, {} refused; {held:?}", work.name(), achieved(&done), work.unit(), done.refused);
        assert_eq!(done.loops.len(), threads, "{work:?}");
        assert!(done.loops.iter().all(|one| one.iterations > 0) && done.refused == 0, "{work:?}: {done:?}");
        assert_eq!((held.files, held.children), (before.files, before.children), "{work:?}");
        assert!(held.resident_bytes < before.resident_bytes + 2 * MIB, "{work:?}: {before:?}, {held:?}");
        let stood = busy.iterations().unwrap();
        thread::sleep(Duration::from_millis(30));
        assert_eq!(busy.iterations().unwrap(), stood, "{work:?} does not stand still");
    }
    busy.stop().unwrap();
}

fn a_polite_one_rests() {
    let (polite, spin) = (busy::start(1, &BusyWork::Polite).unwrap(), busy::start(1, &BusyWork::Spin).unwrap());
    let (polite, spin) = (achieved(&stretch(&polite, 1000)), achieved(&stretch(&spin, 1000)));
    let share = polite as f64 / spin as f64;
    assert!((0.02..0.25).contains(&share), "a polite neighbour takes {share} of a CPU");
}

#[test]
fn aggressors_work_in_stretches_and_hold_nothing_between_them() {
    // The first of all threads makes what a process has once.
    busy::start(2, &BusyWork::Mixed).unwrap().stop().unwrap();
    let memory_bytes = 256 * MIB;
    works_in_stretches(&BusyWork::Polite, 2);
    works_in_stretches(&BusyWork::Cache { memory_bytes }, 2);
    works_in_stretches(&BusyWork::MemoryStream { memory_bytes }, 2);
    works_in_stretches(&BusyWork::Syscalls, 2);
    a_polite_one_rests();
    let busy = busy::start(1, &BusyWork::Syscalls).unwrap();
    let hour = BusyStretch { for_ns: 3_600_000 * MS, ..BusyStretch::default() };
    let error = busy.run(now_ns(), &hour).unwrap_err().to_string();
    assert!(error.contains("3600 s") && error.contains("600 s"), "{error}");
}
