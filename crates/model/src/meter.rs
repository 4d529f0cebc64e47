//! Decoding that cannot cost much more memory than it was sent bytes.
//!
//! An empty text is one byte in a frame and 24 in memory, so that a frame of nothing but empty texts would grow to
//! many times its length. Here every value that is decoded is charged for, and the decoder stops when they
//! come to more than any honest message.

use postcard::de_flavors::Flavor;
use postcard::{Deserializer, Error};
use serde::de::DeserializeOwned;

/// Why bytes were not decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They would take far more memory than their length.
    #[error("its {bytes} bytes would take more than {limit} bytes in memory")]
    Swollen {
        /// How many they are.
        bytes: usize,
        /// Limit.
        limit: usize,
    },
    /// They are no value of this type.
    #[error("{reason}")]
    Malformed {
        /// The decoder's reason.
        reason: String,
    },
}

/// Most that a message may come to in memory, by the estimate of this module. What lists reserve ahead as they grow
/// comes on top: at most twice as much again.
pub const MAX_DECODED_BYTES: usize = 256 << 20;

/// What a value is charged for, bytes: more than any of the messages' fields needs. The head of a text (24) counts
/// as two values, its length and its bytes; an allocation of its own costs 32 at least.
const VALUE_BYTES: usize = 24;

/// Decodes one value from the whole of `bytes`, which may come to `budget` bytes in memory.
///
/// # Errors
/// When they are no such value, or one that is too large.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], budget: usize) -> Result<T, DecodeError> {
    let mut decoder = Deserializer::from_flavor(Metered { rest: bytes, left: budget });
    let decoded = T::deserialize(&mut decoder);
    match decoded {
        Ok(message) => {
            let rest = decoder.finalize().map_err(malformed)?;
            if rest.is_empty() {
                Ok(message)
            } else {
                Err(DecodeError::Malformed { reason: format!("{} bytes left over", rest.len()) })
            }
        }
        // The decoder's errors carry no words. This one means that the budget is used up.
        Err(Error::SerializeBufferFull) => Err(DecodeError::Swollen { bytes: bytes.len(), limit: budget }),
        Err(error) => Err(malformed(error)),
    }
}

fn malformed(error: Error) -> DecodeError {
    DecodeError::Malformed { reason: error.to_string() }
}

/// The bytes of a frame, and what may still be spent on decoding them.
struct Metered<'de> {
    rest: &'de [u8],
    left: usize,
}

impl Metered<'_> {
    fn charge(&mut self, bytes: usize) -> postcard::Result<()> {
        // An error that decoding never gives otherwise.
        self.left = self.left.checked_sub(bytes).ok_or(Error::SerializeBufferFull)?;
        Ok(())
    }
}

impl<'de> Flavor<'de> for Metered<'de> {
    type Remainder = &'de [u8];
    type Source = &'de [u8];

    fn pop(&mut self) -> postcard::Result<u8> {
        let (&first, rest) = self.rest.split_first().ok_or(Error::DeserializeUnexpectedEnd)?;
        // The high bit says that the number goes on in the next byte: one value, charged for once.
        self.charge(if first & 0x80 == 0 { VALUE_BYTES } else { 1 })?;
        self.rest = rest;
        Ok(first)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }

    fn try_take_n(&mut self, count: usize) -> postcard::Result<&'de [u8]> {
        if count > self.rest.len() {
            return Err(Error::DeserializeUnexpectedEnd);
        }
        self.charge(VALUE_BYTES + count)?;
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    fn finalize(self) -> postcard::Result<Self::Remainder> {
        Ok(self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_decoded_and_nothing_may_follow() {
        let bytes = postcard::to_stdvec(&("text".to_owned(), 300u64)).unwrap();
        assert_eq!(decode::<(String, u64)>(&bytes, 1000).unwrap(), ("text".to_owned(), 300));
        assert!(matches!(decode::<String>(&bytes, 1000), Err(DecodeError::Malformed { .. })));
        assert!(matches!(decode::<(String, u64)>(&bytes[..5], 1000), Err(DecodeError::Malformed { .. })));
    }

    #[test]
    fn empty_texts_do_not_grow_beyond_the_budget_and_long_ones_cost_what_they_are() {
        let tiny = postcard::to_stdvec(&vec![String::new(); 10_000]).unwrap();
        assert!(tiny.len() < 10_010);
        let in_memory = 10_000 * size_of::<String>();
        assert!(matches!(decode::<Vec<String>>(&tiny, in_memory), Err(DecodeError::Swollen { .. })));
        assert_eq!(decode::<Vec<String>>(&tiny, 3 * in_memory).unwrap().len(), 10_000);
        let long = postcard::to_stdvec(&"x".repeat(100_000)).unwrap();
        assert_eq!(decode::<String>(&long, 100_100).unwrap().len(), 100_000);
    }
}
