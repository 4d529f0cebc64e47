//! Whether what comes of a body is right, in any pieces.

use tare_model::marker::{MARKER_BYTES, MARKER_EVERY, marker};

use super::fault::Fault;

/// How every page ends.
pub(crate) const CLOSING: [u8; 8] = *b"</html>\n";

/// Keeps the last bytes of what comes in pieces, of which this one came.
pub(crate) fn keep_last<const N: usize>(last: &mut [u8; N], piece: &[u8]) {
    if let Some(end) = piece.last_chunk() {
        *last = *end;
    } else {
        last.rotate_left(piece.len());
        last[N - piece.len()..].copy_from_slice(piece);
    }
}

/// Whether a piece of a body that begins at `at` has `text` at `from`, as far as it has that part of the body at all.
pub(crate) fn agrees(text: &[u8], from: u64, at: u64, piece: &[u8]) -> bool {
    let begin = from.max(at);
    let end = (from + text.len() as u64).min(at + piece.len() as u64);
    begin >= end
        || text[(begin - from) as usize..(end - from) as usize] == piece[(begin - at) as usize..(end - at) as usize]
}

/// Compares all markers that lie in a piece of a file that begins at `at`, wholly or in part.
pub(crate) fn marked(id: u64, at: u64, piece: &[u8]) -> Result<(), Fault> {
    let end = at + piece.len() as u64;
    // In the block that it begins in, the marker may have come before.
    let mut block = at / MARKER_EVERY;
    if at % MARKER_EVERY >= MARKER_BYTES as u64 {
        block += 1;
    }
    while block * MARKER_EVERY < end {
        if !agrees(&marker(id, block), block * MARKER_EVERY, at, piece) {
            return Err(Fault::Kind("marker"));
        }
        block += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_do_not_depend_on_how_all_were_split() {
        let data: Vec<u8> = (0..100).collect();
        for step in [1, 3, 15, 16, 17, 99] {
            let mut last = [0; 16];
            data.chunks(step).for_each(|part| keep_last(&mut last, part));
            assert_eq!(last, data[84..], "in parts of {step}");
        }
    }
}
