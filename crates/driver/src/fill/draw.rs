//! Random numbers that are a function of where they are used, and of nothing that went before.

/// The step of the sequence: 2^64 over the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64 (Steele, Lea, Flood 2014) begun at a place of its own for every row: cheaper to begin than to use, so that any
/// row can be made without those before it.
#[derive(Debug, Clone)]
pub struct Draw(u64);

/// Where the sequences of a table begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// The key of a table, for a seed.
    #[must_use]
    pub fn new(seed: u64, table: u64) -> Self {
        Self(mix(seed.wrapping_add(mix(table.wrapping_add(STEP)))))
    }

    /// The sequence of a row.
    #[inline]
    #[must_use]
    pub fn row(self, row: u64) -> Draw {
        Draw(mix(self.0.wrapping_add(row.wrapping_mul(STEP))))
    }
}

impl Draw {
    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Uniform on 0 to `n` less one. What it is off by is below `n` / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        high(self.bits(), n).0
    }

    /// Uniform on `low` to `high`, both included.
    #[inline]
    pub fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Negative exponential with mean 1, at most 53 ln 2 (36.7): by inversion of 53 bits.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64).ln()
    }

    /// Random capitals, all of one draw: at most 12.
    #[inline]
    pub fn capitals<const N: usize>(&mut self) -> [u8; N] {
        self.each(26, b'A')
    }

    /// Random digits, all of one draw: at most 16.
    #[inline]
    pub fn digits<const N: usize>(&mut self) -> [u8; N] {
        self.each(10, b'0')
    }

    /// The draw as a fraction of 1, written to the base of `n`.
    #[inline]
    fn each<const N: usize>(&mut self, n: u64, first: u8) -> [u8; N] {
        let mut rest = self.bits();
        std::array::from_fn(|_| {
            let (digit, left) = high(rest, n);
            rest = left;
            first + digit as u8
        })
    }
}

/// The upper and the lower half of a product.
#[inline]
fn high(bits: u64, n: u64) -> (u64, u64) {
    let product = u128::from(bits) * u128::from(n);
    ((product >> 64) as u64, product as u64)
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first values of SplitMix64 begun at 1234567, as its reference implementation gives them.
        let mut draw = Draw(1_234_567);
        assert_eq!([draw.bits(), draw.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn rows_and_tables_have_sequences_of_their_own() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..3 {
            for table in 0..8 {
                for row in 0..1_000 {
                    assert!(seen.insert(Key::new(seed, table).row(row).bits()));
                }
            }
        }
    }

    #[test]
    fn letters_and_digits_are_uniform() {
        let mut letters = [0_u32; 26];
        let mut digits = [0_u32; 10];
        for row in 0..26_000 {
            let mut draw = Key::new(1, 1).row(row);
            for letter in draw.capitals::<10>() {
                letters[usize::from(letter - b'A')] += 1;
            }
            for digit in draw.digits::<16>() {
                digits[usize::from(digit - b'0')] += 1;
            }
        }
        // Six standard deviations of 260,000 and 416,000 throws.
        assert!(letters.iter().all(|n| n.abs_diff(10_000) < 600), "{letters:?}");
        assert!(digits.iter().all(|n| n.abs_diff(41_600) < 1_200), "{digits:?}");
    }
}
