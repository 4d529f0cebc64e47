//! Takes the bandwidth of memory from its neighbours: the triad of STREAM (McCalpin, "Memory bandwidth and machine balance in current
//! high performance computers", IEEE TCCA Newsletter, 1995).

use std::io;

use super::{Aggressor, limits};
use crate::memory::{Region, page_bytes};

/// Each array is so many times what the caches hold, as STREAM's rules ask.
const TIMES_CACHES: u64 = 4;
/// Most that all threads together touch: more does not take more bandwidth.
const MOST_BYTES: u64 = 2 << 30;
/// Numbers of an array that a piece works on: a fraction of a millisecond.
const NUMBERS: usize = 32 << 10;
/// Bytes that STREAM counts for one step of the triad: two numbers read, one written.
const STEP_BYTES: u64 = 24;
const NUMBER: usize = size_of::<f64>();

/// Three arrays of numbers, of which the triad is computed again and again.
pub(super) struct MemoryStream {
    arrays: [Region; 3],
    /// Where the next piece begins, bytes.
    at: usize,
    /// Whether all three arrays are written once. Memory that never was is one page of zeros to readers.
    written: bool,
}

impl MemoryStream {
    /// The part of one of so many threads.
    pub fn begin(memory_bytes: u64, threads: u32) -> io::Result<Self> {
        let bytes = bytes_each(limits::cache_bytes(), limits::memory_bytes(memory_bytes), threads);
        let arrays = [Region::map(bytes)?, Region::map(bytes)?, Region::map(bytes)?];
        Ok(Self { arrays, at: 0, written: false })
    }
}

/// Bytes of one array of one thread: all arrays of all threads take at most half of the memory.
fn bytes_each(caches: u64, memory: u64, threads: u32) -> usize {
    let all = caches.saturating_mul(3 * TIMES_CACHES).min(memory / 2).min(MOST_BYTES);
    limits::whole_pages(all / 3 / u64::from(threads.max(1))).max(page_bytes())
}

impl Aggressor for MemoryStream {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        let length = self.arrays[0].len();
        let from = self.at;
        let to = length.min(from + NUMBERS * NUMBER);
        let [a, b, c] = self.arrays.each_mut().map(|array| array.bytes().get_mut(from..to).unwrap_or_default());
        let bytes = if self.written {
            let (b, c) = (b.as_chunks().0, c.as_chunks().0);
            for (a, (b, c)) in a.as_chunks_mut().0.iter_mut().zip(b.iter().zip(c)) {
                *a = (f64::from_ne_bytes(*b) + 3.0 * f64::from_ne_bytes(*c)).to_ne_bytes();
            }
            ((to - from) / NUMBER) as u64 * STEP_BYTES
        } else {
            for (array, value) in [(a, 0.0_f64), (b, 2.0), (c, 1.0)] {
                array.as_chunks_mut().0.fill(value.to_ne_bytes());
            }
            (to - from) as u64 * 3
        };
        self.at = if to == length { 0 } else { to };
        self.written |= to == length;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn its_arrays_are_four_times_the_caches_and_never_more_than_its_bounds() {
        assert_eq!(bytes_each(32 * MIB, 4096 * MIB, 1), 128 << 20);
        assert_eq!(bytes_each(32 * MIB, 4096 * MIB, 2), 64 << 20);
        assert_eq!(bytes_each(32 * MIB, 96 * MIB, 2), 8 << 20, "half of the memory in all");
        assert!(3 * bytes_each(u64::MAX, u64::MAX, 1) as u64 <= MOST_BYTES);
        assert_eq!(bytes_each(32 * MIB, 0, 1), page_bytes());
    }

    #[test]
    fn it_computes_the_triad_of_all_numbers() {
        let map = || Region::map(80 * page_bytes()).unwrap();
        let mut stream = MemoryStream { arrays: [map(), map(), map()], at: 0, written: false };
        let pieces = (80 * page_bytes()).div_ceil(NUMBERS * NUMBER);
        let first: u64 = (0..pieces).map(|_| stream.piece(0).unwrap()).sum();
        assert!(stream.written && first == 3 * 80 * page_bytes() as u64);
        assert!(stream.arrays[0].bytes().iter().all(|&byte| byte == 0));
        let bytes: u64 = (0..pieces).map(|_| stream.piece(0).unwrap()).sum();
        assert_eq!(bytes, 80 * page_bytes() as u64 * 3);
        let five = 5.0_f64.to_ne_bytes();
        assert!(stream.arrays[0].bytes().as_chunks::<NUMBER>().0.iter().all(|number| *number == five));
    }
}
