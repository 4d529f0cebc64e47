//! What shows that a page has asked the backend.

use tare_model::marker::{FNV_BASIS, HEX, fnv1a};

/// What the backend answers to a query first, and what a page that asked it must show: 16 hexadecimal digits. A server that
/// asks nobody cannot know it, for `salt` is known to driver and backend alone.
pub const fn proof(salt: u64, query: &[u8]) -> [u8; 16] {
    let mut hash = fnv1a(fnv1a(FNV_BASIS, &salt.to_le_bytes()), query);
    // The last bytes of FNV-1a hardly reach the high digits: mixed once more (finaliser of MurmurHash3).
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^= hash >> 33;
    let mut text = [0; 16];
    let mut at = 0;
    while at < 16 {
        text[15 - at] = HEX[(hash >> (4 * at)) as usize & 15];
        at += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_depends_on_the_salt_and_on_every_byte() {
        let one = proof(7, b"banking&4&0000000001&000010&00");
        assert!(one.iter().all(u8::is_ascii_hexdigit));
        assert_ne!(one, proof(8, b"banking&4&0000000001&000010&00"));
        let other = proof(7, b"banking&4&0000000001&000010&01");
        let same = one.iter().zip(other).filter(|(a, b)| **a == *b).count();
        assert!(same < 8, "{same} of 16 digits are the same");
    }
}
