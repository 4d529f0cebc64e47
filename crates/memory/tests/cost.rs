//! What merging saved, by what it was, in real processes whose memory is known. Needs root, KSM and Python.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tare_memory::Kernel;
use tare_memory::cost::{self, Cost};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Maps memory that is half empty and half data, the same in every process, opens it to merging, and says so. With `own`, the
/// program opens that mapping alone, as one that runs a machine does; with `all`, everything that the process has.
const PROGRAM: &str = "
import ctypes, mmap, random, sys
how, mib = sys.argv[1], int(sys.argv[2])
if how == 'all':
    assert ctypes.CDLL(None).prctl(67, 1, 0, 0, 0) == 0
size = mib << 20
held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
if how == 'own':
    held.madvise(mmap.MADV_MERGEABLE)
page = mmap.PAGESIZE
for at in range(0, size // 2, page):
    held[at:at + 1] = b'x'
    held[at:at + 1] = b'\\0'
numbers = random.Random(7)
for at in range(size // 2, size, page):
    held[at:at + page] = numbers.randbytes(page)
print('ready', flush=True)
sys.stdin.read()
";

/// Ends with the test, however that ends.
struct Held(Child);

impl Held {
    fn start(how: &str, mib: u64) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM, how, &mib.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The host's settings, put back when the test ends.
struct Switched(Vec<(&'static str, String)>);

impl Switched {
    fn on(settings: &[(&'static str, &str)]) -> Self {
        let path = |name: &str| Path::new("/sys/kernel/mm/ksm").join(name);
        let found = settings.iter().map(|(name, _)| (*name, fs::read_to_string(path(name)).unwrap())).collect();
        let switched = Self(found);
        for (name, value) in settings {
            fs::write(path(name), value).unwrap();
        }
        switched
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        for (name, value) in self.0.iter().rev() {
            let _ = fs::write(Path::new("/sys/kernel/mm/ksm").join(name), value.trim());
        }
    }
}

/// Why the test cannot be run here.
fn unmet() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".into());
    }
    if Command::new("python3").args(["-c", "import ctypes, random"]).output().is_ok_and(|ran| ran.status.success()) {
        let kernel = Kernel::host();
        return kernel.refusal().or_else(|| kernel.opening_refusal()).map(|refusal| refusal.reason);
    }
    Some("there is no python3".into())
}

/// The one test at a time that may switch merging on.
fn alone() -> File {
    let lock = File::create("/run/lock/tare-ksm-test.lock").unwrap();
    lock.lock().unwrap();
    lock
}

fn until_merged(pages: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = Kernel::host().counters().unwrap();
        if now.pages_sharing + now.zero_pages >= pages {
            return;
        }
        assert!(Instant::now() < deadline, "{pages} pages were not saved within a minute: {now:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn near(what: &str, measured: u64, right: u64) {
    let off = measured.abs_diff(right);
    assert!(off * 10 <= right, "{what}: measured {} MiB, expected {} MiB", measured / MIB, right / MIB);
}

fn saved_by_kernel() -> u64 {
    let now = Kernel::host().counters().unwrap();
    (now.pages_sharing + now.zero_pages) * PAGE
}

fn all(cost: &Cost) -> u64 {
    let saved = cost.saved;
    saved.zero_bytes + saved.code_bytes + saved.data_bytes + saved.unknown_bytes
}

#[test]
fn the_kinds_of_what_was_saved_are_distinguished_and_add_up() {
    if let Some(reason) = unmet() {
        println!("SKIPPED: {reason}");
        return;
    }
    let _lock = alone();
    let run = Path::new("/sys/kernel/mm/ksm/run");
    let merges = fs::read_to_string(run).unwrap().trim() == "1";
    if merges || cost::mergers().unwrap().iter().any(|merger| merger.merging_pages + merger.zero_pages > 0) {
        println!("SKIPPED: other programs of this host merge their memory");
        return;
    }
    // While it is stopped, the kernel counts what processes had merged that are gone: that is cleared away, and what is found is kept.
    {
        let _found = Switched::on(&[("run", "2")]);
    }
    let before = Kernel::host().counters().unwrap();
    assert_eq!(before.pages_sharing + before.zero_pages, 0, "{before:?}");
    let mib = 48;
    let settings = [("run", "1"), ("sleep_millisecs", "1"), ("pages_to_scan", "20000"), ("use_zero_pages", "0")];
    for (how, zero_pages) in [("all", "0"), ("own", "0"), ("own", "1")] {
        let _settings = Switched::on(&settings);
        fs::write("/sys/kernel/mm/ksm/use_zero_pages", zero_pages).unwrap();
        let guests: Vec<Held> = (0..3).map(|_| Held::start(how, mib)).collect();
        let pids: Vec<u32> = guests.iter().map(|guest| guest.0.id()).collect();
        // Two of three copies of the data, and almost all that is empty.
        until_merged((mib * MIB / PAGE) * 2 + (mib / 2 * MIB / PAGE) - 600);
        let cost = cost::of_processes(&pids).unwrap();
        let what = format!("{how}, zero pages {zero_pages}");
        near(&format!("all, {what}"), all(&cost), saved_by_kernel());
        near(&format!("zero, {what}"), cost.saved.zero_bytes, 3 * mib / 2 * MIB);
        let (data, not) = match how {
            "all" => (cost.saved.data_bytes, cost.saved.unknown_bytes),
            _ => (cost.saved.unknown_bytes, cost.saved.data_bytes + cost.saved.code_bytes),
        };
        near(&format!("data, {what}"), data, mib * MIB);
        assert!(not * 10 < data, "{what}: {cost:?}");
        // What is merged with the kernel's own page is resident nowhere.
        let resident = if zero_pages == "1" { 3 * mib / 2 * MIB } else { 3 * mib * MIB };
        assert!(cost.resident_bytes >= resident && cost.virtual_bytes > cost.resident_bytes, "{what}: {cost:?}");
        // The libraries of the interpreter are shared, too.
        let shared = cost.shared_bytes / MIB;
        assert!((mib / 2 - 1..mib).contains(&shared), "{what}: {shared} MiB are shared");
        let mergers = cost::mergers().unwrap();
        assert!(pids.iter().all(|pid| mergers.iter().any(|merger| merger.pid == *pid)), "{mergers:?}");
    }
}
