//! The token of a guest in a trial: what its drivers show to its servers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// 128 random bits that the servers of a guest and its drivers know, and nobody else. They go to the agents alone, over their channels: it is
/// in no file, no argument and no report, and cannot be printed.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Token([u8; Token::LEN]);

impl Token {
    /// Bytes of a token.
    pub const LEN: usize = 16;

    /// A token of these bits, which are to be random.
    pub const fn new(bits: [u8; Self::LEN]) -> Self {
        Self(bits)
    }

    /// Its bits, to be shown to a server.
    pub const fn bits(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Whether these are its bits. It takes as long whichever of them differ, so that time tells nothing of them.
    pub fn is(&self, shown: &[u8; Self::LEN]) -> bool {
        let differ = self.0.iter().zip(shown).fold(0, |differ, (own, other)| differ | (own ^ other));
        std::hint::black_box(differ) == 0
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(...)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_own_bits_alone_and_is_not_printed() {
        let bits: [u8; 16] = std::array::from_fn(|n| n as u8 * 11);
        let token = Token::new(bits);
        assert!(token.is(&bits) && token.is(token.bits()));
        for bit in 0..128 {
            let mut other = bits;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!token.is(&other), "bit {bit}");
        }
        assert_eq!(format!("{token:?}"), "Token(...)");
    }
}
