//! Keeps the disk writing: its queue and the journal of its file system are its neighbours' too.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::file::{self, BLOCK, PART_OF_MEMORY};
use super::{Aggressor, limits};
use crate::memory::Region;

/// Largest file: more room on the disk does not make it busier.
const MOST_BYTES: u64 = 256 << 20;
/// Blocks that the disk is asked to keep at once. A disk of 100 MB/s takes 40 ms for them.
const BLOCKS: u64 = 4;

/// A file that is written round and round.
pub(super) struct DiskWrite {
    file: File,
    block: Region,
    bytes: u64,
    at: u64,
}

impl DiskWrite {
    /// Makes the file.
    ///
    /// # Errors
    /// The system's, and when there is no room for a block.
    pub fn begin(directory: &Path) -> io::Result<Self> {
        let in_memory = file::is_in_memory(directory);
        let most = if in_memory { limits::memory_bytes(u64::MAX) / PART_OF_MEMORY } else { u64::MAX };
        let file = file::nameless(directory)?;
        let bytes = file::room(&file, most.min(MOST_BYTES))?;
        Ok(Self { file, block: file::block()?, bytes, at: 0 })
    }
}

impl Aggressor for DiskWrite {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        for _ in 0..BLOCKS {
            // Refused, it goes on from the start, where there is room already.
            let at = std::mem::take(&mut self.at);
            self.file.write_all_at(self.block.bytes(), at)?;
            self.at = (at + BLOCK) % self.bytes;
        }
        self.file.sync_data()?;
        Ok(BLOCKS * BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_written_round_and_round_and_never_larger_than_its_bound() {
        let mut disk = DiskWrite { bytes: 6 * BLOCK, ..DiskWrite::begin(&std::env::temp_dir()).unwrap() };
        for at in [4, 2, 0, 4] {
            assert_eq!(disk.piece(0).unwrap(), BLOCKS * BLOCK);
            assert_eq!(disk.at, at * BLOCK);
            assert!(disk.file.metadata().unwrap().len() <= disk.bytes);
        }
        let mut first = vec![0; BLOCK as usize];
        disk.file.read_exact_at(&mut first, 5 * BLOCK).unwrap();
        assert!(first == disk.block.bytes());
    }

    #[test]
    fn a_refused_write_is_an_error_and_the_next_begins_anew() {
        // Nothing can be written to what was opened to read.
        let file = File::open("/proc/self/stat").unwrap();
        let mut disk = DiskWrite { file, block: file::block().unwrap(), bytes: 8 * BLOCK, at: 4 * BLOCK };
        assert!(disk.piece(0).is_err());
        assert_eq!(disk.at, 0);
    }
}
