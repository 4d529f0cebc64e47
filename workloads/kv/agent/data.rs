//! Keys and values: what each holds follows from the seed, so that an answer is verified without keeping what was written.
//!
//! A value begins with a mark: its version, and a check over seed, key and version. The rest is a piece of a pool of random bytes, at a
//! place that the check gives. A version is the number of the connection that wrote it and how many it had written by then.

use super::spec::Keys;
use crate::DriverError;
use crate::session::draw::{Dice, mix};

/// Bytes of a mark: no value is shorter.
pub(super) const MARK_BYTES: usize = 16;
/// What all keys begin with.
const PREFIX: &[u8] = b"tare:";
/// Most bytes of a key, as memcached takes them.
const KEY_BYTES: u32 = 250;
/// Longest value.
const VALUE_BYTES: u32 = 512 << 10;
/// Most keys: the numbers of all fit into what a key has at least.
const KEYS: u64 = 1_000_000_000;
/// Places in the pool at which values begin.
const PLACES: usize = 4096;
/// Bits of a version that count what a connection has written.
const COUNTER_BITS: u32 = 40;
/// Connections that can have a number of their own.
pub(super) const WRITERS: u32 = 1 << (64 - COUNTER_BITS);

/// The version of a value that was there before the load.
pub(super) const LOADED: u64 = 0;

/// The version that a connection writes after so many others.
pub(super) const fn version(writer: u32, count: u64) -> u64 {
    ((writer as u64) << COUNTER_BITS) | count
}

/// The connection that wrote a version.
pub(super) const fn writer(version: u64) -> u64 {
    version >> COUNTER_BITS
}

/// Keys and what their values hold.
#[derive(Debug)]
pub(super) struct Book {
    keys: Keys,
    pool: Vec<u8>,
}

impl Book {
    /// The book of these keys.
    ///
    /// # Errors
    /// When no server could hold them, or a value has no room for its mark.
    pub fn new(keys: Keys) -> Result<Self, DriverError> {
        let (least, most) = keys.value_bytes;
        let sound = (1..=KEYS).contains(&keys.count)
            && (PREFIX.len() as u32 + digits(keys.count)..=KEY_BYTES).contains(&keys.key_bytes)
            && MARK_BYTES as u32 <= least
            && least <= most
            && most <= VALUE_BYTES;
        if !sound {
            let what = format!("there can be no such keys: {keys:?}");
            return Err(DriverError::invalid(what, "use the agent that came with this tare"));
        }
        let mut dice = Dice::new(keys.seed, 0);
        let words = (most as usize + PLACES).div_ceil(8);
        Ok(Self { keys, pool: (0..words).flat_map(|_| dice.draw().to_le_bytes()).collect() })
    }

    /// How many keys there are.
    pub const fn count(&self) -> u64 {
        self.keys.count
    }

    /// Longest value that any key has.
    pub const fn longest(&self) -> usize {
        self.keys.value_bytes.1 as usize
    }

    /// Writes the key of this number, which is as long as all are.
    #[inline]
    pub fn key<'a>(&self, mut number: u64, room: &'a mut [u8; KEY_BYTES as usize]) -> &'a [u8] {
        let key = &mut room[..self.keys.key_bytes as usize];
        let (prefix, places) = key.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX);
        for place in places.iter_mut().rev() {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
        }
        key
    }

    /// Room for a key.
    pub const fn room() -> [u8; KEY_BYTES as usize] {
        [0; KEY_BYTES as usize]
    }

    /// Bytes of a key's values.
    #[inline]
    pub fn size(&self, number: u64) -> usize {
        let (least, most) = self.keys.value_bytes;
        if least == most {
            return least as usize;
        }
        let choices = u64::from(most - least) + 1;
        least as usize + (mix(self.keys.seed ^ mix(number)) % choices) as usize
    }

    fn check(&self, number: u64, version: u64) -> u64 {
        mix(mix(self.keys.seed.wrapping_add(mix(number.wrapping_add(1)))) ^ version)
    }

    fn rest(&self, number: u64, check: u64) -> &[u8] {
        let from = check as usize % PLACES;
        &self.pool[from..from + self.size(number) - MARK_BYTES]
    }

    /// Mark and rest of a value.
    #[inline]
    pub fn value(&self, number: u64, version: u64) -> ([u8; MARK_BYTES], &[u8]) {
        let check = self.check(number, version);
        let mut mark = [0; MARK_BYTES];
        mark[..8].copy_from_slice(&version.to_le_bytes());
        mark[8..].copy_from_slice(&check.to_le_bytes());
        (mark, self.rest(number, check))
    }

    /// The version of a value of this key; `None` where it is none of its values.
    #[inline]
    pub fn read(&self, number: u64, value: &[u8]) -> Option<u64> {
        let (version, after) = value.split_first_chunk()?;
        let (check, rest) = after.split_first_chunk()?;
        let version = u64::from_le_bytes(*version);
        let expected = self.check(number, version);
        (u64::from_le_bytes(*check) == expected && rest == self.rest(number, expected)).then_some(version)
    }
}

/// Digits of the largest number below `count`.
const fn digits(count: u64) -> u32 {
    match (count - 1).checked_ilog10() {
        Some(tens) => tens + 1,
        None => 1,
    }
}

#[cfg(test)]
#[path = "../tests/data.rs"]
mod tests;
