//! Moving bulk data, the same way at both ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tare_model::drive::{ReceiveMethod, SendMethod};

use crate::sys::{HUGE_PAGE, collapse};

/// Bytes asked of one read: as many as one call usually sends. It stays in a CPU's second-level cache, and was
/// never slower than 64 or 128 KiB.
const READ_BYTES: usize = 256 * 1024;
/// Bytes asked of one receive that drops them; none of it is copied, so it costs no cache.
const TRUNCATE_BYTES: usize = 1024 * 1024;

/// How data is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendSettings {
    pub method: SendMethod,
    pub chunk_bytes: u32,
    pub window_bytes: u32,
}

/// A file in memory that sendfile() cycles through. Each stream has its own, so that streams on several CPUs do
/// not share the counters of its pages.
#[derive(Debug)]
pub(crate) struct Window {
    file: OwnedFd,
    bytes: u64,
    /// Whether it lies in huge pages.
    pub huge: bool,
}

impl Window {
    /// Makes the file that the settings ask for; none where nothing is sent from a file.
    ///
    /// It is laid in huge pages where the kernel lets it: a socket buffer then holds one long fragment where
    /// single pages from all over the memory make one each, which costs the sender twice the CPU.
    pub fn new(settings: &SendSettings) -> Result<Option<Self>, Errno> {
        if settings.method != SendMethod::Sendfile {
            return Ok(None);
        }
        let file = memfd_create("tare-stream", MemfdFlags::CLOEXEC)?;
        let bytes = settings.window_bytes as usize;
        // Only whole huge pages that are filled can be laid together; what lies behind the window is never sent.
        let content = pattern(bytes.next_multiple_of(HUGE_PAGE));
        let mut written = 0;
        while written < content.len() {
            written += rustix::io::write(&file, &content[written..])?;
        }
        let huge = collapse(file.as_fd(), content.len()).is_ok();
        Ok(Some(Self { file, bytes: bytes as u64, huge }))
    }
}

/// The sending end of a stream.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// write() from a buffer.
    Write(Vec<u8>),
    /// sendfile() from a file in memory, over and over.
    Sendfile { window: &'a Window, chunk: u64, offset: u64 },
}

impl<'a> Source<'a> {
    pub fn new(settings: &SendSettings, window: Option<&'a Window>) -> Self {
        match window {
            Some(window) => Self::Sendfile { window, chunk: settings.chunk_bytes.into(), offset: 0 },
            None => Self::Write(pattern(settings.chunk_bytes as usize)),
        }
    }

    /// Hands one chunk to the kernel, blocking while its buffer is full; returns the bytes it took.
    #[inline]
    pub fn send(&mut self, to: BorrowedFd<'_>) -> Result<u64, Errno> {
        loop {
            let sent = match self {
                Self::Write(buffer) => send(to, buffer, SendFlags::NOSIGNAL),
                Self::Sendfile { window, chunk, offset } => {
                    let count = (*chunk).min(window.bytes - *offset);
                    let sent = sendfile(to, &window.file, Some(offset), count as usize);
                    if *offset >= window.bytes {
                        *offset = 0;
                    }
                    sent
                }
            };
            match sent {
                Err(Errno::INTR) => {}
                other => return other.map(|n| n as u64),
            }
        }
    }
}

/// Bytes that no layer finds easy to shorten: neighbouring bytes and pages differ.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The receiving end of a stream.
#[derive(Debug)]
pub(crate) struct Sink {
    buffer: Vec<u8>,
    flags: RecvFlags,
}

impl Sink {
    pub fn new(method: ReceiveMethod) -> Self {
        match method {
            ReceiveMethod::Read => Self { buffer: vec![0; READ_BYTES], flags: RecvFlags::empty() },
            ReceiveMethod::Truncate => Self { buffer: vec![0; TRUNCATE_BYTES], flags: RecvFlags::TRUNC },
        }
    }

    /// Takes what is there, blocking while nothing is; 0 is the end of the stream.
    #[inline]
    pub fn receive(&mut self, from: BorrowedFd<'_>) -> Result<u64, Errno> {
        loop {
            match recv(from, self.buffer.as_mut_slice(), self.flags) {
                Err(Errno::INTR) => {}
                other => return other.map(|(_, n)| n as u64),
            }
        }
    }

    /// From now on copies what it receives, whatever the method was.
    pub fn copy_from_now_on(&mut self) {
        self.flags = RecvFlags::empty();
    }

    /// The first bytes of what was received last.
    pub fn last(&self, length: u64) -> &[u8] {
        &self.buffer[..(length as usize).min(self.buffer.len())]
    }
}
