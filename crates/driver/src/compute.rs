//! A fixed piece of mixed computing, the same on every machine, whose result is known.
//!
//! One chunk is, in this order: [`HASHED_WORDS`] words hashed, [`SORTED_WORDS`] words sorted (branches that cannot be
//! predicted), two matrices of [`MATRIX_SIDE`] x [`MATRIX_SIDE`] numbers of 64 bits multiplied, and [`WALKED_STEPS`] dependent
//! steps through a ring of [`RING_WORDS`] words of 32 bits (4 MiB: beyond most second-level caches, so that also the cost of
//! translating addresses is seen). Integers wrap, and floating point is multiplied and added one by one in a fixed
//! order, so IEEE 754 leaves no choice and the result is the same bit for bit.

use std::hint::black_box;

/// Words of 64 bits that a chunk hashes: 256 KiB of memory, read once.
pub const HASHED_WORDS: usize = 32 << 10;
/// Words of 64 bits that a chunk sorts.
pub const SORTED_WORDS: usize = 8 << 10;
/// Rows and columns of the matrices that a chunk multiplies.
pub const MATRIX_SIDE: usize = 64;
/// Words of 32 bits in the ring that a chunk walks through.
pub const RING_WORDS: usize = 1 << 20;
/// Steps of the walk, each to where the last one pointed.
pub const WALKED_STEPS: usize = 32 << 10;

/// The result of every chunk.
const EXPECTED: u64 = 0x1856_f8f2_edc2_9eed;

/// What one thread computes with; about 5 MiB.
#[derive(Debug, Clone)]
pub struct Compute {
    words: Vec<u64>,
    sorted: Vec<u64>,
    left: Vec<f64>,
    right: Vec<f64>,
    product: Vec<f64>,
    ring: Vec<u32>,
}

impl Compute {
    /// Prepares the data, the same every time.
    pub fn new() -> Self {
        let mut numbers = SplitMix(0x7461_7265);
        let words: Vec<u64> = (0..HASHED_WORDS).map(|_| numbers.next()).collect();
        // Between -1 and 1, in steps of 2^-20.
        let mut matrix = || {
            let side = MATRIX_SIDE * MATRIX_SIDE;
            (0..side).map(|_| (numbers.next() >> 43) as f64 / f64::from(1 << 20) - 1.0).collect::<Vec<f64>>()
        };
        let (left, right) = (matrix(), matrix());
        let product = vec![0.0; MATRIX_SIDE * MATRIX_SIDE];
        Self { words, sorted: vec![0; SORTED_WORDS], left, right, product, ring: ring(&mut numbers) }
    }

    /// Moves the data into other memory.
    pub fn renew_memory(&mut self) {
        // The copy is whole before the old memory is free, so none of it is used again.
        let copy = self.clone();
        *self = copy;
    }

    /// Computes one chunk; tells whether its result is right.
    pub fn chunk(&mut self) -> bool {
        let hash = hash(black_box(&self.words));
        self.sorted.copy_from_slice(black_box(&self.words[..SORTED_WORDS]));
        self.sorted.sort_unstable();
        let sorted = hash_ordered(black_box(&self.sorted));
        multiply(black_box(&self.left), black_box(&self.right), &mut self.product);
        let product = self.product.iter().fold(0, |sum: u64, &cell| mix(sum ^ cell.to_bits()));
        let place = walk(black_box(&self.ring));
        let result = [hash, sorted, product, place].into_iter().fold(0, |sum: u64, part| mix(sum ^ part));
        black_box(result) == EXPECTED
    }
}

impl Default for Compute {
    fn default() -> Self {
        Self::new()
    }
}

/// The generator of pseudo-random numbers by Steele, Lea and Flood (SplitMix64, 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// SplitMix64's mixing of one word.
const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A ring through all places in random order, each naming the next (Sattolo's shuffle gives one cycle).
fn ring(numbers: &mut SplitMix) -> Vec<u32> {
    let mut ring: Vec<u32> = (0..RING_WORDS as u32).collect();
    for last in (1..RING_WORDS).rev() {
        ring.swap(last, (numbers.next() % last as u64) as usize);
    }
    ring
}

fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| mix(sum ^ word))
}

/// A hash of the words that also says whether they are in order.
fn hash_ordered(words: &[u64]) -> u64 {
    let inversions = words.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    hash(words).wrapping_add(inversions)
}

fn multiply(left: &[f64], right: &[f64], product: &mut [f64]) {
    product.fill(0.0);
    for (left, product) in left.chunks_exact(MATRIX_SIDE).zip(product.chunks_exact_mut(MATRIX_SIDE)) {
        for (&factor, right) in left.iter().zip(right.chunks_exact(MATRIX_SIDE)) {
            for (cell, &number) in product.iter_mut().zip(right) {
                *cell += factor * number;
            }
        }
    }
}

fn walk(ring: &[u32]) -> u64 {
    (0..WALKED_STEPS).fold(0, |place: usize, _| ring[place] as usize) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_comes_to_the_same_and_one_that_was_tampered_with_does_not() {
        let mut compute = Compute::new();
        assert!(compute.chunk() && compute.chunk());
        let ring = compute.ring.as_ptr();
        compute.renew_memory();
        assert!(compute.chunk() && ring != compute.ring.as_ptr());
        let mut others = Compute::new();
        others.words[7] ^= 1;
        assert!(!others.chunk(), "a word was not hashed");
        let mut others = Compute::new();
        others.right[100] += 1e-9;
        assert!(!others.chunk(), "a number was not multiplied");
        let mut others = Compute::new();
        others.ring[0] = others.ring[others.ring[0] as usize];
        assert!(!others.chunk(), "a step was not taken");
    }

    #[test]
    fn the_ring_goes_through_all_places() {
        let ring = ring(&mut SplitMix(1));
        let mut place = 0;
        for step in 1..=RING_WORDS {
            place = ring[place] as usize;
            assert_eq!(place == 0, step == RING_WORDS, "back after {step} steps");
        }
    }
}
