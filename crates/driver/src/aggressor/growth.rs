//! Takes memory up to its limit, again and again.

use std::io;

use super::{Aggressor, limits};
use crate::memory::{Region, page_bytes};

/// Most that it takes, whatever the limit is: what it takes from a host is no different beyond.
const MOST_BYTES: u64 = 64 << 30;
/// Pages of a piece: a millisecond where each is handed out by itself, some where a host has to find it.
const PAGES: usize = 256;
/// How often every page is written to before all are given back: the first time makes the kernel hand it out.
const PASSES: usize = 2;

/// Memory that grows and is given back.
pub(super) struct MemoryGrowth {
    memory_bytes: u64,
    /// Mapped whole, and taken as its pages are written to.
    region: Option<Region>,
    /// Pages written to so far, in all passes.
    written: usize,
}

impl MemoryGrowth {
    pub const fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, region: None, written: 0 }
    }
}

/// Nine tenths of the limit, or of what is free at the start where that is less: whole pages, at least one.
fn target(limit: u64, free: u64) -> usize {
    limits::whole_pages((limit.min(free) / 10 * 9).min(MOST_BYTES)).max(page_bytes())
}

impl Aggressor for MemoryGrowth {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        let region = match &mut self.region {
            Some(region) => region,
            none => {
                let memory = self.memory_bytes;
                let bytes = target(limits::memory_bytes(memory), limits::free_memory_bytes(memory));
                none.insert(Region::map(bytes)?)
            }
        };
        let all = region.len() / page_bytes();
        let from = self.written % all;
        let to = all.min(from + PAGES);
        let pages = region.bytes().get_mut(from * page_bytes()..to * page_bytes()).unwrap_or_default();
        for page in pages.chunks_mut(page_bytes()) {
            page[0] = page[0].wrapping_add(1);
        }
        self.written += to - from;
        if self.written >= PASSES * all {
            (self.region, self.written) = (None, 0);
        }
        Ok((to - from) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn it_stays_below_the_limit_and_what_is_free() {
        assert_eq!(target(100 * MIB, 1000 * MIB) as u64, limits::whole_pages(90 * MIB) as u64);
        assert!(target(1000 * MIB, 100 * MIB) as u64 <= 90 * MIB);
        assert_eq!(target(u64::MAX, u64::MAX) as u64, MOST_BYTES);
        assert_eq!(target(0, 0), page_bytes());
    }

    #[test]
    fn it_writes_to_every_page_and_begins_again() {
        let pages = 3 * PAGES + 5;
        let mut growth =
            MemoryGrowth { region: Some(Region::map(pages * page_bytes()).unwrap()), ..MemoryGrowth::new(MIB) };
        let first: u64 = (0..4).map(|_| growth.piece(0).unwrap()).sum();
        assert_eq!(first, pages as u64);
        let region = growth.region.as_mut().unwrap();
        assert!(region.bytes().chunks(page_bytes()).all(|page| page[0] == 1));
        let second: u64 = (0..4).map(|_| growth.piece(0).unwrap()).sum();
        assert!(second == pages as u64 && growth.region.is_none() && growth.written == 0, "all is given back");
        growth.piece(0).unwrap();
        assert!(growth.region.as_ref().unwrap().len() as u64 <= MIB / 10 * 9);
    }
}
