//! What aggressors achieve in their stretches, and that they hold nothing between them. One test, for what a process holds is counted.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_thread_res_uid;
use rustix::time::{ClockId, clock_gettime};

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

/// CPU time of this process, nanoseconds.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn a_polite_one_rests() {
    let busy = busy::start(1, &BusyWork::Polite).unwrap();
    let before = cpu_ns();
    let done = stretch(&busy, 1000);
    let used_ms = (cpu_ns() - before) / MS;
    println!("polite: {used_ms} ms of CPU in 1 s");
    assert!(achieved(&done) > 0 && (5..150).contains(&used_ms), "{used_ms} ms");
}

/// What arrives is what was sent, but for what a full queue lost.
fn a_receiver_takes_what_is_sent() {
    let receiver = busy::start(2, &BusyWork::NetReceive { listen: IpAddr::V4(Ipv4Addr::LOCALHOST) }).unwrap();
    let address = receiver.address().unwrap();
    let sender = busy::start(2, &BusyWork::NetSend { to: address }).unwrap();
    assert_eq!(sender.address(), None);
    let before = Holds::now();
    for _ in 0..2 {
        let (sent, received) = thread::scope(|scope| {
            let sending = scope.spawn(|| stretch(&sender, 300));
            let received = stretch(&receiver, 400);
            (sending.join().unwrap(), received)
        });
        println!("net: {} bytes sent, {} received", achieved(&sent), achieved(&received));
        assert!(achieved(&sent) > 0 && achieved(&sent).is_multiple_of(1400) && received.loops.len() == 1);
        assert!((1400..=sender.iterations().unwrap()).contains(&achieved(&received)), "{sent:?}, {received:?}");
        let held = Holds::now();
        assert_eq!((held.files, held.children), (before.files, before.children));
    }
    let nobody = stretch(&receiver, 50);
    assert_eq!((achieved(&nobody), nobody.refused), (0, 0), "that nobody sends is no refusal");
}

/// It takes most of its limit, and at no moment more.
fn growth_stays_below_its_limit() {
    let memory_bytes = 64 * MIB;
    let (before, over) = (Holds::now().resident_bytes, AtomicBool::new(false));
    let busy = busy::start(4, &BusyWork::MemoryGrowth { memory_bytes }).unwrap();
    let most = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                most = most.max(Holds::now().resident_bytes);
            }
            most
        });
        let done = stretch(&busy, 500);
        over.store(true, Ordering::Relaxed);
        assert!(achieved(&done) > memory_bytes / 4096, "it does not begin again: {done:?}");
        watch.join().unwrap()
    });
    println!("memory-growth: most {} KiB of {} KiB", (most - before) >> 10, memory_bytes >> 10);
    assert!(most < before + memory_bytes, "{most}");
    assert!(most > before + memory_bytes / 4, "{most}");
}

/// Has a limit while something is done.
fn limited<T>(resource: Resource, bytes: u64, work: impl FnOnce() -> T) -> T {
    let before = getrlimit(resource);
    setrlimit(resource, Rlimit { current: Some(bytes), ..before }).unwrap();
    let done = work();
    setrlimit(resource, before).unwrap();
    done
}

fn only_refused(work: &BusyWork, done: &BusyDone) {
    assert!(achieved(done) == 0 && done.refused > 0, "{work:?}: {done:?}");
}

fn refusals_are_counted_and_no_failure(directory: &str) {
    let work = BusyWork::MemoryGrowth { memory_bytes: 512 * MIB };
    let busy = busy::start(1, &work).unwrap();
    // A thread that begins needs memory of its own.
    assert!(achieved(&stretch(&busy, 50)) > 0);
    only_refused(&work, &limited(Resource::As, 64 * MIB, || stretch(&busy, 50)));
    assert!(achieved(&stretch(&busy, 50)) > 0, "what was refused is granted the next time");
    // Its directory goes away.
    let gone = format!("{directory}/gone");
    std::fs::create_dir(&gone).unwrap();
    let work = BusyWork::DiskWrite { directory: gone.clone() };
    let busy = busy::start(1, &work).unwrap();
    std::fs::remove_dir(&gone).unwrap();
    only_refused(&work, &stretch(&busy, 50));
    let error = busy::start(1, &work).unwrap_err().to_string();
    assert!(error.contains(&gone), "{error}");
    // The limit of processes holds for none that may do all, so those threads become another user's.
    let forked = thread::spawn(|| {
        if rustix::process::getuid().is_root() {
            let user = rustix::process::Uid::from_raw(0x7400_ff00);
            set_thread_res_uid(user, user, user).unwrap();
        }
        let busy = busy::start(2, &BusyWork::Fork).unwrap();
        assert!(achieved(&stretch(&busy, 50)) > 0);
        let refused = limited(Resource::Nproc, 1, || stretch(&busy, 50));
        (refused, stretch(&busy, 50))
    });
    let (refused, granted) = forked.join().unwrap();
    only_refused(&BusyWork::Fork, &refused);
    assert!(achieved(&granted) > 0);
}

/// A directory that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("tare-aggressors-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn aggressors_work_in_stretches_and_hold_nothing_between_them() {
    // The first of all threads makes what a process has once.
    busy::start(2, &BusyWork::Mixed).unwrap().stop().unwrap();
    let (memory_bytes, folder) = (256 * MIB, Folder::new());
    let directory = folder.0.to_str().unwrap().to_owned();
    works_in_stretches(&BusyWork::Polite, 2);
    works_in_stretches(&BusyWork::Cache { memory_bytes }, 2);
    works_in_stretches(&BusyWork::MemoryStream { memory_bytes }, 2);
    works_in_stretches(&BusyWork::Syscalls, 2);
    works_in_stretches(&BusyWork::MemoryGrowth { memory_bytes }, 1);
    works_in_stretches(&BusyWork::Fork, 2);
    works_in_stretches(&BusyWork::DiskWrite { directory: directory.clone() }, 1);
    works_in_stretches(&BusyWork::PageCache { directory: directory.clone(), memory_bytes }, 1);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "files are left");
    a_polite_one_rests();
    a_receiver_takes_what_is_sent();
    growth_stays_below_its_limit();
    refusals_are_counted_and_no_failure(&directory);
    let busy = busy::start(1, &BusyWork::Syscalls).unwrap();
    let hour = BusyStretch { for_ns: 3_600_000 * MS, ..BusyStretch::default() };
    let error = busy.run(now_ns(), &hour).unwrap_err().to_string();
    assert!(error.contains("3600 s") && error.contains("600 s"), "{error}");
}
