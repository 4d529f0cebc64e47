//! Files whose contents follow from a number: judged as they come, and made as they are sent.

use tare_model::marker::{MARKER_BYTES, MARKER_EVERY, marker};

use crate::session::body::marked;
use crate::session::fault::Fault;

/// A file that is coming.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coming {
    /// Bytes that have come.
    at: u64,
    bytes: u64,
    id: Id,
}

#[derive(Debug, Clone, Copy)]
enum Id {
    Known(u64),
    /// That of the first marker, as far as it has come.
    First([u8; MARKER_BYTES]),
}

const MARKER: Fault = Fault::Kind("marker");
const LENGTH: Fault = Fault::Kind("length");

impl Coming {
    /// One of so many bytes, whose markers have this number or, with `None`, all the same one.
    pub const fn new(bytes: u64, id: Option<u64>) -> Self {
        let id = match id {
            Some(id) => Id::Known(id),
            None => Id::First([0; MARKER_BYTES]),
        };
        Self { at: 0, bytes, id }
    }

    /// Judges the next bytes, in any pieces.
    ///
    /// # Errors
    /// `marker`, `length`: it is too long.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), Fault> {
        let at = self.at;
        self.at += piece.len() as u64;
        if self.at > self.bytes {
            return Err(LENGTH);
        }
        if let Id::First(mut first) = self.id {
            let from = (at as usize).min(MARKER_BYTES);
            let count = piece.len().min(MARKER_BYTES - from);
            first[from..from + count].copy_from_slice(&piece[..count]);
            if self.at < MARKER_BYTES as u64 {
                self.id = Id::First(first);
                return Ok(());
            }
            let digits = std::str::from_utf8(&first[6..22]).map_err(|_| MARKER)?;
            let id = u64::from_str_radix(digits, 16).map_err(|_| MARKER)?;
            if first != marker(id, 0) {
                return Err(MARKER);
            }
            self.id = Id::Known(id);
        }
        match self.id {
            Id::Known(id) => marked(id, at, piece),
            Id::First(_) => Ok(()),
        }
    }

    /// Judges that it has ended here.
    ///
    /// # Errors
    /// `length`: it is too short.
    pub const fn finish(&self) -> Result<(), Fault> {
        if self.at == self.bytes { Ok(()) } else { Err(LENGTH) }
    }
}

/// Blocks that are sent at one time.
const BLOCKS: u64 = 16;

/// What files to be sent are made with: blocks that have all but their markers.
#[derive(Debug)]
pub(crate) struct Template(Box<[u8]>);

impl Default for Template {
    fn default() -> Self {
        Self(vec![b'.'; (BLOCKS * MARKER_EVERY) as usize].into_boxed_slice())
    }
}

impl Template {
    /// The bytes of a file from one that is not its end on, as many as there are at one time.
    pub fn of(&mut self, id: u64, bytes: u64, at: u64) -> &[u8] {
        let first = at / MARKER_EVERY;
        for (block, place) in (first..).zip(self.0.chunks_exact_mut(MARKER_EVERY as usize)) {
            place[..MARKER_BYTES].copy_from_slice(&marker(id, block));
        }
        let begin = first * MARKER_EVERY;
        let end = (bytes - begin).min(self.0.len() as u64);
        &self.0[(at - begin) as usize..end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: u64, bytes: u64, step: usize) -> Vec<u8> {
        let (mut template, mut file) = (Template::default(), Vec::new());
        while (file.len() as u64) < bytes {
            let piece = template.of(id, bytes, file.len() as u64);
            file.extend_from_slice(&piece[..piece.len().min(step)]);
        }
        file
    }

    #[test]
    fn what_is_sent_is_what_is_right_in_whatever_pieces() {
        for (bytes, step) in [(5_758, 1_000), (129_617, 70_000), (20_000, 4_095), (10, 3)] {
            let file = file(77, bytes, step);
            assert_eq!(file.len() as u64, bytes);
            for (id, size) in [(Some(77), 13), (Some(77), 5_000), (None, 13), (None, 5_000)] {
                if id.is_none() && bytes < MARKER_BYTES as u64 {
                    continue;
                }
                let mut coming = Coming::new(bytes, id);
                file.chunks(size).for_each(|piece| coming.feed(piece).unwrap());
                coming.finish().unwrap();
            }
        }
    }

    #[test]
    fn another_file_or_one_cut_or_patched_up_is_reported() {
        let whole = file(77, 20_000, usize::MAX);
        let judged = |id, bytes: &[u8]| {
            let mut coming = Coming::new(20_000, id);
            bytes.chunks(1_000).try_for_each(|piece| coming.feed(piece)).and_then(|()| coming.finish())
        };
        assert_eq!(judged(Some(78), &whole), Err(MARKER));
        assert_eq!((judged(None, &whole[..19_999]), judged(None, &whole)), (Err(LENGTH), Ok(())));
        let longer = [&whole[..], b"."].concat();
        assert_eq!(judged(Some(77), &longer), Err(LENGTH));
        let mut mixed = whole.clone();
        mixed[8_192..12_288].copy_from_slice(&file(78, 20_000, usize::MAX)[8_192..12_288]);
        assert_eq!((judged(None, &mixed), judged(Some(77), &mixed)), (Err(MARKER), Err(MARKER)));
        assert_eq!(judged(None, &[b'.'; 20_000]), Err(MARKER));
    }
}
