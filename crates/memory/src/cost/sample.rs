//! What merged pages hold, found on a bounded sample of them.
//!
//! A window of a mapping's page table is read (`/proc/PID/pagemap`), some of the pages in it that have several users are looked
//! up in the kernel's lists of pages (is it merged, how many use it) and read (is it empty). A window that holds more such pages
//! counts for more. The places are random but the same every time, so that two looks at one state say the same.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::smaps::Mapping;

/// Windows that are read of one process, about: 12 us each.
const WINDOWS: u64 = 128;
/// Windows that are read of a mapping at least, if it has as many.
const WINDOWS_LEAST: u64 = 4;
/// Pages in a window: those of one page of a page table.
const WINDOW_PAGES: u64 = 512;
/// Pages that are looked at in a window, about: 3 us each.
const PICKS: usize = 4;

/// Bytes that merging saved, as estimated, by what they were.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Kinds {
    zero: f64,
    code: f64,
    data: f64,
    unknown: f64,
}

impl Kinds {
    /// Of these names, for tests.
    #[cfg(test)]
    pub fn of(parts: &[(&str, f64)]) -> Self {
        let one = |wanted: &str| parts.iter().filter(|(name, _)| *name == wanted).map(|(_, bytes)| bytes).sum();
        Self { zero: one("zero"), code: one("code"), data: one("data"), unknown: one("unknown") }
    }

    /// Adds those of another process.
    pub fn add(&mut self, other: &Self) {
        self.zero += other.zero;
        self.code += other.code;
        self.data += other.data;
        self.unknown += other.unknown;
    }

    fn all(&self) -> f64 {
        self.zero + self.code + self.data + self.unknown
    }

    /// Parts (0 to 1) of all that was saved: empty pages, code, data. What is missing to 1 is of unknown kind.
    pub fn shares(&self) -> [f64; 3] {
        let all = self.all();
        [self.zero, self.code, self.data].map(|kind| if all > 0.0 { kind / all } else { 0.0 })
    }

    /// Whether something was found, and all of it is of known kind.
    pub fn is_known(&self) -> bool {
        self.all() > 0.0 && self.unknown <= 0.0
    }
}

/// Samples the merged pages of a process. `merge_any`: whether all its memory is open to merging; a mapping that the program
/// opened by itself is the memory of a machine that it runs, in which only empty pages can be identified.
pub fn of_process(pid: u32, mappings: &[Mapping], merge_any: Option<bool>, page: u64) -> Kinds {
    let mut merged: Vec<&Mapping> = mappings.iter().filter(|mapping| mapping.merged > 0).collect();
    // The small ones beyond a bounded number do not matter.
    merged.sort_by_key(|mapping| std::cmp::Reverse(mapping.merged));
    merged.truncate(WINDOWS as usize);
    let all: u64 = merged.iter().map(|mapping| mapping.merged).sum();
    let merge_any = merge_any.unwrap_or_else(|| is_open_as_a_whole(mappings));
    let eyes = Eyes::open(pid, page);
    let mut dice = Dice(u64::from(pid));
    let mut kinds = Kinds::default();
    for mapping in merged {
        let windows = (mapping.size / page).div_ceil(WINDOW_PAGES).max(1);
        let share = (u128::from(WINDOWS) * u128::from(mapping.merged) / u128::from(all.max(1))) as u64;
        let tries = share.max(WINDOWS_LEAST).min(windows);
        let found = eyes.as_ref().map_or_else(Found::default, |eyes| eyes.look(mapping, tries, windows, &mut dice));
        let bytes = mapping.merged as f64;
        let rest = match (mapping.file, merge_any) {
            (true, _) => &mut kinds.code,
            (false, true) => &mut kinds.data,
            (false, false) => &mut kinds.unknown,
        };
        if found.seen > 0.0 {
            *rest += bytes * found.other / found.seen;
            kinds.zero += bytes * found.zero / found.seen;
            kinds.unknown += bytes * found.unread / found.seen;
        } else if !found.nobody_else || tries < windows {
            // What is empty among it is not known either, but a mapping of a file is code.
            *(if mapping.file { rest } else { &mut kinds.unknown }) += bytes;
        }
    }
    kinds
}

/// Whether more is open than what a program would open for a machine's memory: a mapping of a file.
fn is_open_as_a_whole(mappings: &[Mapping]) -> bool {
    mappings.iter().any(|mapping| mapping.file && mapping.mergeable)
}

/// What the sample of one mapping found, in pages that it stands for.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Merged pages.
    seen: f64,
    /// Saved pages that are empty.
    zero: f64,
    /// Saved pages that are not.
    other: f64,
    /// Saved pages that could not be read.
    unread: f64,
    /// Whether pages were read, and none that had several users.
    nobody_else: bool,
}

/// Views of one process's pages.
struct Eyes {
    pagemap: File,
    memory: Option<File>,
    flags: Option<File>,
    users: Option<File>,
    page: u64,
}

impl Eyes {
    fn open(pid: u32, page: u64) -> Option<Self> {
        let process = Path::new("/proc").join(pid.to_string());
        Some(Self {
            pagemap: File::open(process.join("pagemap")).ok()?,
            memory: File::open(process.join("mem")).ok(),
            flags: File::open("/proc/kpageflags").ok(),
            users: File::open("/proc/kpagecount").ok(),
            page,
        })
    }

    fn look(&self, mapping: &Mapping, tries: u64, windows: u64, dice: &mut Dice) -> Found {
        let mut found = Found { nobody_else: true, ..Found::default() };
        let pages = mapping.size / self.page;
        for number in 0..tries {
            // One in each of as many equal stretches, so that they lie all over the mapping.
            let (from, to) = (windows * number / tries, windows * (number + 1) / tries);
            let first = (from + dice.below(to.saturating_sub(from).max(1))) * WINDOW_PAGES;
            let Some(window) = self.window(mapping.start / self.page + first, WINDOW_PAGES.min(pages - first)) else {
                found.nobody_else = false;
                continue;
            };
            let mut several: Vec<(u64, Entry)> =
                (first..).zip(window).filter(|(_, entry)| entry.may_be_merged()).collect();
            found.nobody_else &= several.is_empty();
            let all = several.len();
            let picks = all.min(PICKS);
            for pick in 0..picks {
                let other = pick + dice.below((all - pick) as u64) as usize;
                several.swap(pick, other);
                let (at, entry) = several[pick];
                self.weigh(mapping.start + at * self.page, entry, all as f64 / picks as f64, &mut found);
            }
        }
        found
    }

    /// A stretch of the page table.
    fn window(&self, first: u64, pages: u64) -> Option<Vec<Entry>> {
        let mut bytes = vec![0; pages as usize * 8];
        let read = self.pagemap.read_at(&mut bytes, first * 8).ok()?;
        Some(bytes[..read].as_chunks().0.iter().map(|entry| Entry(u64::from_ne_bytes(*entry))).collect())
    }

    /// Notes one page that stands for `weight` of them.
    fn weigh(&self, address: u64, entry: Entry, weight: f64, found: &mut Found) {
        let of_kernel = |file: &Option<File>| {
            let number = entry.frame().filter(|_| file.is_some())?;
            let mut bytes = [0; 8];
            file.as_ref()?.read_exact_at(&mut bytes, number * 8).ok().map(|()| u64::from_ne_bytes(bytes))
        };
        // Without the kernel's lists, which are root's, what has several users is taken to be merged.
        if of_kernel(&self.flags).is_some_and(|flags| flags & MERGED == 0) {
            return;
        }
        found.seen += weight;
        let saved = of_kernel(&self.users).map_or(1.0, |users| 1.0 - 1.0 / (users.max(1) as f64)) * weight;
        match self.is_empty(address) {
            Some(true) => found.zero += saved,
            Some(false) => found.other += saved,
            None => found.unread += saved,
        }
    }

    /// Whether a page holds nothing but zeros; `None` when it cannot be read. Reading does not take a merged page apart.
    fn is_empty(&self, address: u64) -> Option<bool> {
        let mut held = vec![0; self.page as usize];
        self.memory.as_ref()?.read_exact_at(&mut held, address).ok()?;
        Some(held.iter().all(|byte| *byte == 0))
    }
}

/// `KPF_KSM` of `/proc/kpageflags`.
const MERGED: u64 = 1 << 21;

/// An entry of `/proc/PID/pagemap`.
#[derive(Debug, Clone, Copy)]
struct Entry(u64);

impl Entry {
    /// Whether it is there, of no file, and not this process's alone.
    const fn may_be_merged(self) -> bool {
        const PRESENT: u64 = 1 << 63;
        const OF_FILE: u64 = 1 << 61;
        const EXCLUSIVE: u64 = 1 << 56;
        self.0 & (PRESENT | OF_FILE | EXCLUSIVE) == PRESENT
    }

    /// The page of the host; hidden from all but root.
    const fn frame(self) -> Option<u64> {
        match self.0 & ((1 << 55) - 1) {
            0 => None,
            frame => Some(frame),
        }
    }
}

/// Numbers that look random (splitmix64).
struct Dice(u64);

impl Dice {
    /// A number below `end`.
    const fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % if end == 0 { 1 } else { end }
    }
}
