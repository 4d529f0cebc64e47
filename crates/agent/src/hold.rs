//! Memory that the agent holds beside the commands that it started: what a guest's system has touched and its programs
//! do not use.
//!
//! All of it is written once. Then a thread looks at what the commands use at most, and gives back from the end what
//! does not fit beside them any more, as a system gives free memory to its programs. It never grows again: what programs
//! give back is not written to by a system either.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tare_driver::memory::{Region, page_bytes};
use tare_model::hold::{GuestMemory, HoldSpec};

use crate::started::Started;

/// How often the commands are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The same until they have grown and come to rest for the first time: a program that touches all its memory when it starts
/// takes gigabytes a second in huge pages, and what it takes between two looks must fit into the room.
const LOOK_AT_START: Duration = Duration::from_millis(3);

/// The same while they do not grow, and the time without growth that is taken for that. A look takes about 70 us
/// on a busy host, which is 0.4 % of a CPU a guest at the pace of [`LOOK_EVERY`].
const AT_REST: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How much is written before anybody looks whether it is still wanted.
const SLICE: usize = 16 << 20;

/// Seed of the data that are the same in every guest.
const SAME: u64 = 0x7461_7265_7361_6d65;

/// Why no memory is held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// It is asked for a second time.
    #[error("it holds memory already, or is about to; an agent does that once: start another guest")]
    Taken,
    /// Nothing is left beside the room.
    #[error(
        "{room} bytes of room leave nothing of the {promised} bytes that are promised to the guest; give it more memory"
    )]
    NoRoom { promised: u64, room: u64 },
    /// There is not so much.
    #[error(
        "cannot hold {bytes} bytes: {available} bytes are available in this guest (MemAvailable and SwapFree of /proc/meminfo); leave more room beside them, or give the guest more memory"
    )]
    Short { bytes: u64, available: u64 },
    /// The kernel refused.
    #[error(
        "cannot map {bytes} bytes of memory: {source}; look at the limits of the guest and at vm.overcommit_memory"
    )]
    Map { bytes: u64, source: io::Error },
    /// The kernel did not take memory back.
    #[error("cannot give memory back: {0}; look at vm.max_map_count")]
    Unmap(io::Error),
    /// No thread for the looks.
    #[error("cannot start the thread that gives memory back: {0}")]
    Thread(io::Error),
    /// The agent was asked to end its work.
    #[error("holding memory was cancelled")]
    Cancelled,
}

/// The memory that this agent holds.
#[derive(Debug, Default)]
pub struct Hold {
    taken: AtomicBool,
    region: Arc<Mutex<Option<Region>>>,
    first_bytes: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How much may be held beside the commands.
#[derive(Debug, Clone)]
struct Limit {
    bytes: u64,
    started: Arc<Started>,
}

impl Limit {
    /// Bytes that may be held now, whole pages.
    fn now(&self) -> usize {
        let bytes = self.bytes.saturating_sub(self.started.peak_bytes());
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        bytes - bytes % page_bytes()
    }
}

impl Hold {
    /// Takes and writes the memory; from then on it gives way to the commands.
    ///
    /// # Errors
    /// See [`HoldError`]. Nothing is held then, and it may be tried again, unless it held something before.
    pub fn take(&self, spec: &HoldSpec, started: &Arc<Started>, cancel: &AtomicBool) -> Result<(), HoldError> {
        if self.taken.swap(true, Ordering::AcqRel) {
            return Err(HoldError::Taken);
        }
        let held = self.fill(spec, started, cancel);
        if held.is_err() {
            *lock(&self.region) = None;
            self.first_bytes.store(0, Ordering::Relaxed);
            self.taken.store(false, Ordering::Release);
        }
        held
    }

    fn fill(&self, spec: &HoldSpec, started: &Arc<Started>, cancel: &AtomicBool) -> Result<(), HoldError> {
        if !spec.fill.is_touched() {
            return Ok(());
        }
        let (promised, room) = (spec.promised_bytes, spec.room_bytes);
        let bytes = promised.checked_sub(room).ok_or(HoldError::NoRoom { promised, room })?;
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let bytes = beside_own_system(&meminfo, promised, room, bytes);
        let limit = Limit { bytes, started: Arc::clone(started) };
        let Some(region) = written(&limit, spec, cancel)? else { return Ok(()) };
        self.first_bytes.store(region.len() as u64, Ordering::Relaxed);
        *lock(&self.region) = Some(region);
        let region = Arc::clone(&self.region);
        let looks = std::thread::Builder::new().name("hold".into()).spawn(move || give_way(&region, &limit));
        looks.map(drop).map_err(HoldError::Thread)
    }

    /// Bytes that are held now, and that were at first.
    pub fn bytes(&self) -> (u64, u64) {
        let now = lock(&self.region).as_ref().map_or(0, Region::len);
        (now as u64, self.first_bytes.load(Ordering::Relaxed))
    }
}

/// Maps what may be held and writes all of it; `None` where that is nothing. It may become less on the way.
fn written(limit: &Limit, spec: &HoldSpec, cancel: &AtomicBool) -> Result<Option<Region>, HoldError> {
    let most = limit.now();
    if most == 0 {
        return Ok(None);
    }
    let bytes = most as u64;
    if let Some(available) = available_bytes().filter(|&available| available < bytes) {
        return Err(HoldError::Short { bytes, available });
    }
    let mut region = Region::map(most).map_err(|source| HoldError::Map { bytes, source })?;
    let mut done = 0;
    while done < region.len() {
        if cancel.load(Ordering::Relaxed) {
            return Err(HoldError::Cancelled);
        }
        region.shrink(limit.now()).map_err(HoldError::Unmap)?;
        let end = region.len().min(done + SLICE);
        if let Some(slice) = region.bytes().get_mut(done..end) {
            write(slice, done / page_bytes(), spec);
        }
        done = end.max(done);
    }
    Ok((!region.is_empty()).then_some(region))
}

/// Writes to every page of a slice that begins with this page.
fn write(slice: &mut [u8], first_page: usize, spec: &HoldSpec) {
    for (page, index) in slice.chunks_mut(page_bytes()).zip(first_page as u64..) {
        match spec.fill {
            GuestMemory::Lazy => {}
            // The kernel hands out pages of zeros. Writing makes it hand one out.
            GuestMemory::Zeroed => page[0] = 0,
            GuestMemory::FilledSame => scramble(page, SAME, index),
            GuestMemory::FilledDistinct => scramble(page, spec.seed, index),
        }
    }
}

/// Fills a page with data that no other page of this seed has: SplitMix64 (Steele, Lea, Flood 2014), begun at a place of
/// its own for each page.
fn scramble(page: &mut [u8], seed: u64, index: u64) {
    // A seed next to another one must not give the pages of that one, moved by some.
    let mut state = mixed(mixed(seed) ^ index);
    for word in page.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = mixed(state).to_le_bytes();
        let (value, _) = value.split_at(word.len());
        word.copy_from_slice(value);
    }
}

const fn mixed(state: u64) -> u64 {
    let value = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// When the commands are looked at again.
struct Pace {
    most: usize,
    changed_at: Instant,
    /// At first [`LOOK_AT_START`], from the first rest on [`LOOK_EVERY`].
    quick: Duration,
    has_grown: bool,
}

impl Pace {
    fn new(most: usize, now: Instant) -> Self {
        Self { most, changed_at: now, quick: LOOK_AT_START, has_grown: false }
    }

    /// The pause after a look by which so much may be held.
    fn after(&mut self, most: usize, now: Instant) -> Duration {
        if most < self.most {
            (self.most, self.changed_at, self.has_grown) = (most, now, true);
        }
        if !self.has_grown || now.duration_since(self.changed_at) < AT_REST.1 {
            return self.quick;
        }
        self.quick = LOOK_EVERY;
        AT_REST.0
    }
}

/// Gives back what does not fit beside the commands, until nothing is left.
fn give_way(region: &Mutex<Option<Region>>, limit: &Limit) {
    let mut pace = Pace::new(limit.now(), Instant::now());
    loop {
        let most = limit.now();
        {
            let mut held = lock(region);
            let Some(region) = held.as_mut().filter(|region| !region.is_empty()) else { return };
            // Refused, it is tried again at the next look.
            let _ = region.shrink(most);
        }
        std::thread::sleep(pace.after(most, Instant::now()));
    }
}

/// Memory that can be had here without taking it from programs, bytes; `None` where nothing tells.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    bytes_of(&text, "MemAvailable").map(|available| available.saturating_add(bytes_of(&text, "SwapFree").unwrap_or(0)))
}

/// What may be held of `bytes` in a guest of `promised` bytes. A system of the guest's own has taken a part of what was promised
/// before anybody could ask, and needs the room beside what is left. Its memory in all is then most of what was promised and
/// no more; where the host's is seen it is more than any guest may be promised at once.
fn beside_own_system(text: &str, promised: u64, room: u64, bytes: u64) -> u64 {
    match (bytes_of(text, "MemTotal"), bytes_of(text, "MemAvailable")) {
        (Some(total), Some(available)) if (promised / 2..=promised).contains(&total) => {
            bytes.min(available.saturating_sub(room))
        }
        _ => bytes,
    }
}

/// A value of `/proc/meminfo`, which counts in KiB.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const MIB: u64 = 1 << 20;

    fn spec(fill: GuestMemory, seed: u64) -> HoldSpec {
        HoldSpec { promised_bytes: 24 * MIB, room_bytes: 4 * MIB, fill, seed }
    }

    /// The pages that such a guest holds.
    fn pages(fill: GuestMemory, seed: u64) -> Vec<Vec<u8>> {
        let hold = Hold::default();
        hold.take(&spec(fill, seed), &Arc::default(), &AtomicBool::new(false)).unwrap();
        assert_eq!(hold.bytes(), (20 * MIB, 20 * MIB));
        let mut region = lock(&hold.region);
        region.as_mut().unwrap().bytes().chunks(page_bytes()).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn data_are_the_same_or_their_own_as_asked_and_no_two_pages_are_equal() {
        let (same, other) = (pages(GuestMemory::FilledSame, 1), pages(GuestMemory::FilledSame, 2));
        assert!(same == other, "what is the same in every guest depends on its seed");
        let (first, second) = (pages(GuestMemory::FilledDistinct, 1), pages(GuestMemory::FilledDistinct, 2));
        let mut all = HashSet::new();
        assert!(same.into_iter().chain(first).chain(second).all(|page| all.insert(page)), "two pages are equal");
        let mut zeros = pages(GuestMemory::Zeroed, 1);
        zeros.dedup();
        assert_eq!(zeros, [vec![0; page_bytes()]]);
    }

    #[test]
    fn it_looks_often_until_the_first_rest_and_seldom_at_rest() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut pace = Pace::new(100, began);
        // However long nothing has been started.
        assert_eq!(pace.after(100, at(60_000)), LOOK_AT_START);
        assert_eq!(pace.after(90, at(60_003)), LOOK_AT_START);
        assert_eq!(pace.after(90, at(61_000)), LOOK_AT_START);
        assert_eq!(pace.after(90, at(61_003)), AT_REST.0);
        // A program that ended takes less, and grows later.
        assert_eq!(pace.after(95, at(61_103)), AT_REST.0);
        assert_eq!(pace.after(80, at(61_203)), LOOK_EVERY);
        assert_eq!(pace.after(80, at(62_203)), AT_REST.0);
    }

    #[test]
    fn a_system_of_the_guests_own_keeps_what_it_has_taken_and_its_room() {
        let own = "MemTotal:        2990000 kB\nMemFree:         2800000 kB\nMemAvailable:    2793372 kB\n";
        let (promised, room) = (3072 * MIB, 256 * MIB);
        assert_eq!(beside_own_system(own, promised, room, promised - room), 2_793_372 * 1024 - room);
        let hosts = "MemTotal:       24683520 kB\nMemAvailable:    2000000 kB\n";
        assert_eq!(
            beside_own_system(hosts, promised, room, promised - room),
            promised - room,
            "the host's is not the guest's"
        );
        assert_eq!(beside_own_system("", promised, room, 5), 5);
    }

    #[test]
    fn a_lazy_guest_holds_nothing() {
        let hold = Hold::default();
        hold.take(&spec(GuestMemory::Lazy, 1), &Arc::default(), &AtomicBool::new(false)).unwrap();
        assert_eq!(hold.bytes(), (0, 0));
    }

    #[test]
    fn what_cannot_be_held_is_refused_and_what_can_be_is_held_once() {
        let (hold, never, started) = (Hold::default(), AtomicBool::new(false), Arc::<Started>::default());
        let mut spec = spec(GuestMemory::Zeroed, 1);
        let (promised, room) = (spec.promised_bytes, spec.room_bytes);
        spec.room_bytes = promised + 1;
        assert!(matches!(hold.take(&spec, &started, &never), Err(HoldError::NoRoom { .. })));
        spec.room_bytes = room;
        assert!(matches!(hold.take(&spec, &started, &AtomicBool::new(true)), Err(HoldError::Cancelled)));
        assert_eq!(hold.bytes(), (0, 0));
        if available_bytes().is_some() {
            spec.promised_bytes = 1 << 55;
            assert!(matches!(hold.take(&spec, &started, &never), Err(HoldError::Short { .. })));
            spec.promised_bytes = promised;
        }
        hold.take(&spec, &started, &never).unwrap();
        assert!(matches!(hold.take(&spec, &started, &never), Err(HoldError::Taken)));
        assert_eq!(hold.bytes().0, 20 * MIB);
    }
}
