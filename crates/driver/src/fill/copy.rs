//! Rows as `COPY ... (FORMAT binary)` takes them (PostgreSQL, documentation of COPY): the server parses no number and no date, and
//! looks for no escapes.

/// What comes first.
pub const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What comes last.
pub const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Begins a row.
#[inline]
pub fn row(out: &mut Vec<u8>, columns: u16) {
    out.extend_from_slice(&columns.to_be_bytes());
}

/// An `integer`, or a `date` as days since the first of January 2000.
#[inline]
pub fn integer(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&(u64::from(4_u32) << 32 | u64::from(value)).to_be_bytes());
}

/// A `smallint`.
#[inline]
pub fn small(out: &mut Vec<u8>, value: i16) {
    out.extend_from_slice(&2_u32.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}

/// A `double precision`.
#[inline]
pub fn real(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&8_u32.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}

/// A `timestamp` as seconds since the first of January 2000.
#[inline]
pub fn timestamp(out: &mut Vec<u8>, seconds: u64) {
    out.extend_from_slice(&8_u32.to_be_bytes());
    out.extend_from_slice(&(seconds * 1_000_000).to_be_bytes());
}

/// A `text` or `varchar`.
#[inline]
pub fn text(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

/// A `text` of parts.
#[inline]
pub fn joined(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.extend_from_slice(&parts.iter().map(|p| p.len() as u32).sum::<u32>().to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// A `numeric` with two decimals, from cents below 10^10.
#[inline]
pub fn amount(out: &mut Vec<u8>, cents: u64) {
    // Digits to the base of 10,000: those before the point, and one whose upper half is the cents.
    let units = cents / 100;
    let digits = [(units / 10_000) as u16, (units % 10_000) as u16, (cents % 100 * 100) as u16];
    let first = digits.iter().take_while(|d| **d == 0).count();
    let last = digits.len() - digits.iter().rev().take_while(|d| **d == 0).count().min(digits.len() - first);
    let count = (last - first) as u16;
    let weight = if count == 0 { 0 } else { 1 - first as i16 };
    out.extend_from_slice(&(8 + 2 * u32::from(count)).to_be_bytes());
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    // Sign, and two decimals.
    out.extend_from_slice(&[0, 0, 0, 2]);
    for digit in &digits[first..last] {
        out.extend_from_slice(&digit.to_be_bytes());
    }
}

/// A number as decimal digits, in a buffer of its own.
#[derive(Debug)]
pub struct Decimal {
    digits: [u8; 20],
    from: usize,
}

impl Decimal {
    /// Writes the number.
    #[inline]
    #[must_use]
    pub fn new(mut value: u64) -> Self {
        let mut digits = [b'0'; 20];
        let mut from = digits.len() - 1;
        digits[from] += (value % 10) as u8;
        while value >= 10 {
            value /= 10;
            from -= 1;
            digits[from] += (value % 10) as u8;
        }
        Self { digits, from }
    }

    /// Its digits.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.digits[self.from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_decimals() {
        for value in [0, 7, 10, 99, 100, 12_345, 8_000_000, u64::MAX] {
            assert_eq!(Decimal::new(value).bytes(), value.to_string().as_bytes());
        }
    }

    /// Digits, weight and decimals as the server's own binary output has them.
    #[test]
    fn amounts_have_the_digits_that_the_server_writes() {
        let cases: [(u64, &[i16]); 7] = [
            (0, &[0, 0, 0, 2]),
            (1, &[1, -1, 0, 2, 100]),
            (100, &[1, 0, 0, 2, 1]),
            (1_299, &[2, 0, 0, 2, 12, 9_900]),
            (40_000, &[1, 0, 0, 2, 400]),
            (1_000_000, &[1, 1, 0, 2, 1]),
            (123_456_789, &[3, 1, 0, 2, 123, 4_567, 8_900]),
        ];
        for (cents, words) in cases {
            let mut out = Vec::new();
            amount(&mut out, cents);
            let mut expected = (words.len() as u32 * 2).to_be_bytes().to_vec();
            words.iter().for_each(|w| expected.extend_from_slice(&w.to_be_bytes()));
            assert_eq!(out, expected, "{cents}");
        }
    }
}
