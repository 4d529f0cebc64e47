//! Files that are computed: filler with a marker at the start of each block.

use std::os::fd::BorrowedFd;

use crate::social::spec::StoredFile;
use rustix::io::Errno;
use rustix::net::SendFlags;
use tare_model::marker::{MARKER_BYTES, MARKER_EVERY, marker};

use super::answer::Answer;
use crate::net;

/// Blocks that are sent at once.
const BLOCKS: u64 = 16;
/// Before the first block, for the head of the answer.
const HEAD: usize = 256;

/// A buffer of blocks of which only the markers are ever written anew. Made with the first file that needs it.
#[derive(Debug, Default)]
pub struct Filler {
    buffer: Vec<u8>,
}

impl Filler {
    /// One that holds nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a loaded file whose markers are made with `file`. Returns the bytes sent.
    pub fn send(&mut self, fd: BorrowedFd<'_>, file: u64, kind: StoredFile) -> Result<u64, Errno> {
        if self.buffer.is_empty() {
            self.buffer = vec![b'.'; HEAD + (BLOCKS * MARKER_EVERY) as usize];
        }
        let mut room = [0; HEAD];
        let head = Answer::OK.head(content_type(kind), kind.bytes(), false, &mut room);
        // Just before the first block, so that both go in one piece.
        self.buffer[HEAD - head..HEAD].copy_from_slice(&room[..head]);
        let (mut from, mut block, mut left) = (HEAD - head, 0, kind.bytes());
        while left > 0 {
            let bytes = left.min(BLOCKS * MARKER_EVERY);
            self.mark(file, block, bytes.div_ceil(MARKER_EVERY));
            left -= bytes;
            let more = if left > 0 { SendFlags::MORE } else { SendFlags::empty() };
            net::send_full(fd, &self.buffer[from..HEAD + bytes as usize], more)?;
            (from, block) = (HEAD, block + BLOCKS);
        }
        Ok(head as u64 + kind.bytes())
    }

    /// Writes the markers of so many blocks from `first` on.
    fn mark(&mut self, file: u64, first: u64, blocks: u64) {
        for (at, block) in self.buffer[HEAD..].chunks_exact_mut(MARKER_EVERY as usize).zip(first..first + blocks) {
            at[..MARKER_BYTES].copy_from_slice(&marker(file, block));
        }
    }
}

/// What a file of a kind is.
pub fn content_type(kind: StoredFile) -> &'static str {
    match kind {
        StoredFile::EventDocument => "application/pdf",
        StoredFile::PersonImage | StoredFile::PersonThumbnail | StoredFile::EventImage | StoredFile::EventThumbnail => {
            "image/jpeg"
        }
    }
}
