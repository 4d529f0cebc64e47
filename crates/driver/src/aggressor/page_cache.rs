//! Fills the page cache, and so takes from neighbours what the kernel keeps of their files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::file::{self, BLOCK, PART_OF_MEMORY};
use super::{Aggressor, limits};
use crate::memory::Region;

/// Largest file.
const MOST_BYTES: u64 = 1 << 30;
/// The file is so many times the guest's memory, so that it never fits.
const TIMES_MEMORY: u64 = 2;
/// Bytes of a page as it is counted, whatever the kernel's pages are.
const PAGE: u64 = 4096;

/// A file that is written, read again, and written again.
pub(super) struct PageCache {
    file: File,
    block: Region,
    bytes: u64,
    /// Bytes that are there to be read.
    filled: u64,
    at: u64,
    reads: bool,
}

impl PageCache {
    /// Makes the file.
    ///
    /// # Errors
    /// The system's, and when there is no room for a block.
    pub fn begin(directory: &Path, memory_bytes: u64) -> io::Result<Self> {
        let memory = limits::memory_bytes(memory_bytes);
        let file = file::nameless(directory)?;
        let bytes = file::room(&file, most_bytes(memory, file::is_in_memory(directory)))?;
        Ok(Self { file, block: file::block()?, bytes, filled: 0, at: 0, reads: false })
    }

    fn turn(&mut self, reads: bool) {
        (self.reads, self.at) = (reads, 0);
    }
}

fn most_bytes(memory: u64, in_memory: bool) -> u64 {
    let wanted = if in_memory { memory / PART_OF_MEMORY } else { memory.saturating_mul(TIMES_MEMORY) };
    wanted.min(MOST_BYTES)
}

impl Aggressor for PageCache {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        if self.reads {
            let read = self.file.read_exact_at(self.block.bytes(), self.at);
            self.at += BLOCK;
            if read.is_err() || self.at >= self.filled {
                self.turn(false);
            }
            read?;
        } else {
            let written = self.file.write_all_at(self.block.bytes(), self.at);
            if written.is_ok() {
                self.at += BLOCK;
                self.filled = self.filled.max(self.at);
            }
            if self.at >= self.bytes || (written.is_err() && self.filled > 0) {
                self.turn(true);
            }
            written?;
        }
        Ok(BLOCK / PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_file_does_not_fit_into_the_memory_but_for_its_bounds() {
        assert_eq!(most_bytes(256 * MIB, false), 512 * MIB);
        assert_eq!(most_bytes(u64::MAX, false), MOST_BYTES);
        assert_eq!(most_bytes(256 * MIB, true), 64 * MIB, "of files in memory a quarter fits");
    }

    #[test]
    fn it_is_filled_then_read_then_filled_again() {
        let begun = PageCache::begin(&std::env::temp_dir(), 256 * MIB).unwrap();
        let mut cache = PageCache { bytes: 3 * BLOCK, ..begun };
        for (reads, at) in [(false, 1), (false, 2), (true, 0), (true, 1), (true, 2), (false, 0), (false, 1)] {
            assert_eq!(cache.piece(0).unwrap(), 256);
            assert_eq!((cache.reads, cache.at), (reads, at * BLOCK));
        }
        assert_eq!(cache.file.metadata().unwrap().len(), 3 * BLOCK);
    }

    #[test]
    fn without_room_it_reads_what_is_there() {
        // Nothing can be written to what was opened to read.
        let begun = PageCache::begin(&std::env::temp_dir(), 256 * MIB).unwrap();
        let file = File::open("/proc/self/stat").unwrap();
        let mut cache = PageCache { file, filled: BLOCK, at: BLOCK, ..begun };
        assert!(cache.piece(0).is_err() && cache.reads && cache.at == 0);
        assert!(cache.piece(0).is_err() && !cache.reads, "what cannot be read is refused as well");
    }
}
