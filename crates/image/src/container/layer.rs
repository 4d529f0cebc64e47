//! One layer: its bytes, uncompressed and checked.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use sha2::{Digest, Sha256};

use super::source::Source;
use super::{Bad, Found, bad};

/// How much is read at a time, bytes.
const BUFFER: usize = 256 << 10;

/// Where a layer is and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layer {
    /// Name of its blob.
    pub blob: String,
    /// Digest and size of the blob, where the manifest says them.
    pub packed: Option<(String, u64)>,
    /// Digest of the archive in it.
    pub uncompressed: String,
}

/// How much may be unpacked.
pub(super) struct Budget {
    /// Bytes that are left.
    pub bytes: u64,
    /// What helps when there are none.
    pub remedy: &'static str,
}

impl Layer {
    /// Whether its blob is there in its size. None of it is read.
    pub(super) fn look(&self, source: &Source) -> Found<()> {
        let size = source.needed(&self.blob)?.size;
        match self.packed {
            Some((_, said)) if said != size => {
                Err(bad(format!("its {} has {size} bytes, and the manifest says {said}", self.blob)))
            }
            _ => Ok(()),
        }
    }

    /// Hands the archive in it to `each`, and checks what was read.
    pub(super) fn read(
        &self,
        source: &Source,
        budget: &mut Budget,
        each: impl FnOnce(&mut dyn Read) -> Found<()>,
    ) -> Found<()> {
        let mut packed = Hashed::new(source.needed(&self.blob)?.reader);
        let (digest, spent) = (packed.digest(), Rc::new(RefCell::new(false)));
        let done = self.uncompressed(&mut packed, budget, &spent, each);
        if *spent.borrow() {
            return Err(Bad::new("it unpacks to more than there is room for", budget.remedy));
        }
        // The rest, if the archive ended before or was no archive: then the digest says better what is wrong.
        io::copy(&mut packed, &mut io::sink()).map_err(|error| self.unreadable(&error))?;
        match &self.packed {
            Some((said, _)) if *said != finished(&digest) => {
                Err(bad(format!("its layer {} is not what its digest says", self.blob)))
            }
            _ => done,
        }
    }

    fn uncompressed(
        &self,
        packed: &mut Hashed<impl Read>,
        budget: &mut Budget,
        spent: &Rc<RefCell<bool>>,
        each: impl FnOnce(&mut dyn Read) -> Found<()>,
    ) -> Found<()> {
        let mut packed = BufReader::with_capacity(BUFFER, packed);
        let magic = packed.fill_buf().map_err(|error| self.unreadable(&error))?;
        let reader: Box<dyn Read + '_> = match magic {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(packed)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Box::new(Frames::new(packed)),
            [0xfd, b'7', b'z', b'X', ..] | [b'B', b'Z', b'h', ..] => {
                let why = format!("its layer {} is compressed by neither gzip nor zstd", self.blob);
                return Err(Bad::new(why, "have it written with gzip: `skopeo copy --dest-compress-format gzip`"));
            }
            _ => Box::new(packed),
        };
        let limited = Limited { reader, bytes: &mut budget.bytes, spent };
        let mut archive = BufReader::with_capacity(BUFFER, Hashed::new(limited));
        let digest = archive.get_ref().digest();
        each(&mut archive)?;
        io::copy(&mut archive, &mut io::sink()).map_err(|error| self.unreadable(&error))?;
        if finished(&digest) != self.uncompressed {
            return Err(bad(format!("what is in its layer {} is not what its configuration says", self.blob)));
        }
        Ok(())
    }

    fn unreadable(&self, error: &io::Error) -> Bad {
        bad(format!("its layer {} cannot be read: {error}", self.blob))
    }
}

/// Digests what passes through it.
struct Hashed<R> {
    reader: R,
    hash: Rc<RefCell<Sha256>>,
}

impl<R: Read> Hashed<R> {
    fn new(reader: R) -> Self {
        Self { reader, hash: Rc::default() }
    }

    fn digest(&self) -> Rc<RefCell<Sha256>> {
        Rc::clone(&self.hash)
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.hash.borrow_mut().update(&buffer[..read]);
        Ok(read)
    }
}

fn finished(digest: &Rc<RefCell<Sha256>>) -> String {
    format!("sha256:{}", hexadecimal(&digest.borrow().clone().finalize()))
}

/// Bytes as hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Ends with an error when more is read than there is room for.
struct Limited<'a, R> {
    reader: R,
    bytes: &'a mut u64,
    spent: &'a RefCell<bool>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        match self.bytes.checked_sub(read as u64) {
            Some(left) => *self.bytes = left,
            None => {
                *self.spent.borrow_mut() = true;
                return Err(io::Error::new(io::ErrorKind::StorageFull, "there is no room for more"));
            }
        }
        Ok(read)
    }
}

/// All frames of a zstd stream one after the other; those that are for others are passed over.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    open: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), open: false }
    }

    /// Begins the next frame; whether there is one.
    fn next(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.open && self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.open && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
                continue;
            }
            self.open = self.next()?;
            if !self.open {
                return Ok(0);
            }
        }
    }
}
