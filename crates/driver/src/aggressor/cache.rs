//! Takes the caches from its neighbours.

use std::io;

use tare_model::random::SplitMix64;

use super::{Aggressor, limits};
use crate::memory::{Region, page_bytes};

/// Bytes of a line on x86-64 and on most of aarch64.
const LINE: usize = 64;
/// Most that all threads together touch: twice the caches of the largest processors of one socket (L3 of 1.1 GiB) need no more to be
/// emptied again and again.
const MOST_BYTES: u64 = 1 << 30;
/// Lines of a piece; a fraction of a millisecond when all of them miss.
const LINES: u64 = 4096;

/// Memory of which random lines are read and written.
pub(super) struct Cache {
    region: Region,
    random: SplitMix64,
}

impl Cache {
    /// The part of one of so many threads.
    pub fn begin(memory_bytes: u64, threads: u32) -> io::Result<Self> {
        let bytes = bytes_each(limits::cache_bytes(), limits::memory_bytes(memory_bytes), threads);
        Ok(Self { region: Region::map(bytes)?, random: SplitMix64(bytes as u64) })
    }
}

/// Twice the caches, at most a quarter of the memory, in equal parts of whole pages.
fn bytes_each(caches: u64, memory: u64, threads: u32) -> usize {
    let all = caches.saturating_mul(2).min(memory / 4).min(MOST_BYTES);
    limits::whole_pages(all / u64::from(threads.max(1))).max(page_bytes())
}

impl Aggressor for Cache {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        let lines = (self.region.len() / LINE) as u64;
        let bytes = self.region.bytes();
        for _ in 0..LINES {
            // The upper half of a product: as even as a division, and cheaper than the access.
            let line = (u128::from(self.random.draw()) * u128::from(lines)) >> 64;
            if let Some(byte) = bytes.get_mut(line as usize * LINE) {
                *byte = byte.wrapping_add(1);
            }
        }
        Ok(LINES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn it_takes_twice_the_caches_and_never_more_than_its_bounds() {
        assert_eq!(bytes_each(33 * MIB, 1024 * MIB, 1), 66 << 20);
        assert_eq!(bytes_each(33 * MIB, 1024 * MIB, 2), 33 << 20);
        assert_eq!(bytes_each(33 * MIB, 64 * MIB, 1), 16 << 20, "a quarter of the memory");
        assert_eq!(bytes_each(u64::MAX, u64::MAX, 1) as u64, MOST_BYTES);
        assert_eq!(bytes_each(33 * MIB, 0, 3), page_bytes());
    }

    #[test]
    fn it_touches_all_of_its_memory() {
        let mut cache = Cache { region: Region::map(64 * page_bytes()).unwrap(), random: SplitMix64(1) };
        for _ in 0..10 {
            assert_eq!(cache.piece(0).unwrap(), LINES);
        }
        assert!(
            cache.region.bytes().chunks(LINE).filter(|line| line[0] > 0).count() > 64 * page_bytes() / LINE * 9 / 10
        );
    }
}
