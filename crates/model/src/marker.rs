//! Markers in files whose bytes are checked: which file it is, and which block of it.

/// Bytes from one marker of a file to the next.
pub const MARKER_EVERY: u64 = 4096;
/// Bytes of a marker.
pub const MARKER_BYTES: usize = 32;

/// FNV-1a, 64 bits (Fowler, Noll, Vo; offset basis and prime as in draft-eastlake-fnv).
pub const fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Where FNV-1a begins.
pub const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// What a file is known by in its markers. `path` is that of its address, such as `/files/support/downloads/00001/0-2.bin`.
pub const fn file_id(path: &[u8]) -> u64 {
    fnv1a(FNV_BASIS, path)
}

/// The marker at the start of the n-th block of [`MARKER_EVERY`] bytes of a file, block 0 first: `<tare ID BLOCK>` and a line
/// feed, with 16 and 7 hexadecimal digits. Of a block that is shorter it is cut off.
pub const fn marker(file: u64, block: u64) -> [u8; MARKER_BYTES] {
    let mut text = *b"<tare 0000000000000000 0000000>\n";
    let mut at = 0;
    while at < 16 {
        text[21 - at] = HEX[(file >> (4 * at)) as usize & 15];
        at += 1;
    }
    at = 0;
    while at < 7 {
        text[29 - at] = HEX[(block >> (4 * at)) as usize & 15];
        at += 1;
    }
    text
}

/// A whole file with its markers, and dots between them.
pub fn marked(file: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![b'.'; bytes];
    for (block, place) in (0..).zip(content.chunks_mut(MARKER_EVERY as usize)) {
        let length = place.len().min(MARKER_BYTES);
        place[..length].copy_from_slice(&marker(file, block)[..length]);
    }
    content
}

/// Hexadecimal digits.
pub const HEX: [u8; 16] = *b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_have_the_file_and_the_block_in_them() {
        assert_eq!(fnv1a(FNV_BASIS, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV_BASIS, b"a"), 0xaf63_dc4c_8601_ec8c, "test vector of the draft");
        assert_eq!(fnv1a(FNV_BASIS, b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(&marker(0x0123_4567_89ab_cdef, 0xfff_ff01), b"<tare 0123456789abcdef fffff01>\n");
        assert_eq!(&marker(1, 0), b"<tare 0000000000000001 0000000>\n");
        assert_eq!(marked(1, 4_100), [&marker(1, 0)[..], &[b'.'; 4_096 - 32], b"<tar"].concat());
    }
}
