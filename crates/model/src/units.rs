//! Quantities as people write them: `128B`, `3GiB`, `120s`, `1Gbit/s`, `1000/s`.
//!
//! Each type parses from and prints to the written form, and is a string in every file. A bare
//! number is refused, because a number without a unit is how studies go wrong by a factor of 1024.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a written quantity was refused, and what was meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{written}` is not {expected}")]
pub struct UnitError {
    /// The text as it stood in the file.
    pub written: String,
    /// What would have been understood, with an example.
    pub expected: &'static str,
}

macro_rules! written_as_string {
    ($name:ident, $schema_name:literal, $description:literal, $pattern:literal, $expected:literal) => {
        impl FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                Self::read(text.trim()).ok_or_else(|| UnitError { written: text.to_owned(), expected: $expected })
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($description)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $schema_name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "description": $description, "pattern": $pattern})
            }
        }
    };
}

/// Prints the largest unit that divides a number exactly, so that printing loses nothing; of nothing the last.
fn write_whole(f: &mut fmt::Formatter<'_>, number: u64, units: &[(&str, u64)], rest: &str) -> fmt::Result {
    let divides = |(_, size): &&(&str, u64)| number != 0 && number.is_multiple_of(*size);
    let (unit, size) = units.iter().find(divides).copied().unwrap_or((rest, 1));
    write!(f, "{}{unit}", number / size)
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

written_as_string!(
    ByteSize,
    "ByteSize",
    "a size with its unit in quotes, such as \"128B\", \"64KiB\", \"3GiB\" or \"1GB\"",
    r"^\s*[0-9]+(\.[0-9]+)?\s*([KMGTkmgt]i?)?B\s*$",
    "a size: write a number and its unit, such as \"128B\", \"64KiB\" or \"3GiB\""
);

impl ByteSize {
    fn read(text: &str) -> Option<Self> {
        // `bytesize` takes a bare number and a bare `K`; a study does not.
        let has_unit = text.ends_with('B') && !text.starts_with('-');
        Some(Self(text.parse::<bytesize::ByteSize>().ok().filter(|_| has_unit)?.as_u64()))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whole(f, self.0, &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)], "B")
    }
}

/// A length of time, in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Nanoseconds.
    pub ns: u64,
}

written_as_string!(
    Span,
    "Span",
    "a length of time with its unit in quotes, such as \"300ms\", \"120s\" or \"5m\"",
    r"^\s*[0-9]+(\.[0-9]+)?\s*[a-zA-Zµ]+.*$",
    "a length of time: write a number and its unit, such as \"300ms\", \"120s\" or \"5m\""
);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self { ns: 0 };

    /// A span of whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self { ns: ms * 1_000_000 }
    }

    /// A span of whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self { ns: s * 1_000_000_000 }
    }

    /// Seconds, as a float.
    pub fn as_secs_f64(self) -> f64 {
        self.ns as f64 / 1e9
    }

    /// The span as a standard duration.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.ns)
    }

    /// The span times a factor (not negative), rounded to whole milliseconds but never to nothing.
    pub fn scaled(self, factor: f64) -> Self {
        if self.ns == 0 {
            return self;
        }
        let ms = (self.ns as f64 * factor / 1e6).round().max(1.0);
        Self::from_millis(ms as u64)
    }

    fn read(text: &str) -> Option<Self> {
        // jiff takes ISO 8601 (`PT5M`) too; people who write that in a study are welcome to it.
        let parsed: jiff::SignedDuration = text.parse().ok()?;
        Some(Self { ns: u64::try_from(parsed.as_nanos()).ok()? })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = if self.ns == 0 { "s" } else { "ns" };
        write_whole(f, self.ns, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)], rest)
    }
}

/// Bits in a second; prefixes are decimal, as on a network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

written_as_string!(
    BitRate,
    "BitRate",
    "a bit rate in quotes, such as \"100Mbit/s\" or \"1Gbit/s\"",
    r"^\s*[0-9]+(\.[0-9]+)?\s*[kKMGT]?bit/s\s*$",
    "a bit rate: write a number and its unit, such as \"100Mbit/s\" or \"1Gbit/s\""
);

impl BitRate {
    fn read(text: &str) -> Option<Self> {
        let stem = text.strip_suffix("bit/s")?.trim_end();
        let (number, factor) = match stem.chars().next_back() {
            Some('k' | 'K') => (&stem[..stem.len() - 1], 1e3),
            Some('M') => (&stem[..stem.len() - 1], 1e6),
            Some('G') => (&stem[..stem.len() - 1], 1e9),
            Some('T') => (&stem[..stem.len() - 1], 1e12),
            _ => (stem, 1.0),
        };
        let bits = number.trim().parse::<f64>().ok()? * factor;
        // Not a number is in no range, so this refuses it too.
        (1.0..=1e18).contains(&bits).then_some(Self(bits.round() as u64))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units =
            [("Tbit/s", 1_000_000_000_000), ("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000)];
        write_whole(f, self.0, &units, "bit/s")
    }
}

/// Addresses of a network that one may use, all of them: `192.0.2.100-192.0.2.150/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    /// The first.
    pub first: Ipv4Addr,
    /// The last; not before the first, and in the same network.
    pub last: Ipv4Addr,
    /// Length of the network's prefix, 8 to 30.
    pub prefix: u8,
}

written_as_string!(
    AddressRange,
    "AddressRange",
    "a range of addresses with the length of the network's prefix, such as \"192.0.2.100-192.0.2.150/24\"",
    r"^\s*[0-9.]+\s*-\s*[0-9.]+/[0-9]+\s*$",
    "a range of addresses: write the first, the last and the length of the network's prefix, such as \"192.0.2.100-192.0.2.150/24\", \
     without the network's own address and its broadcast"
);

impl AddressRange {
    fn read(text: &str) -> Option<Self> {
        let (addresses, prefix) = text.split_once('/')?;
        let (first, last) = addresses.split_once('-')?;
        let (first, last): (Ipv4Addr, Ipv4Addr) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let range = Self { first, last, prefix: prefix.trim().parse().ok()? };
        let inside = (8..=30).contains(&range.prefix) && {
            let network = range.network();
            (network + 1..=network | (u32::MAX >> range.prefix)).contains(&first.to_bits())
                && (first.to_bits()..network | (u32::MAX >> range.prefix)).contains(&last.to_bits())
        };
        inside.then_some(range)
    }

    /// The network's own address, as a number.
    pub const fn network(&self) -> u32 {
        self.first.to_bits() & !(u32::MAX >> self.prefix)
    }

    /// Whether an address is in that network.
    pub const fn shares_network_with(&self, address: Ipv4Addr) -> bool {
        address.to_bits() & !(u32::MAX >> self.prefix) == self.network()
    }

    /// Whether an address is in the range.
    pub fn has(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// How many addresses it has.
    pub const fn count(&self) -> u32 {
        self.last.to_bits() - self.first.to_bits() + 1
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}/{}", self.first, self.last, self.prefix)
    }
}

/// Operations in a second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

written_as_string!(
    Rate,
    "Rate",
    "a rate in quotes, such as \"1000/s\" or \"90/min\"",
    r"^\s*[0-9]+(\.[0-9]+)?\s*/\s*(s|min)\s*$",
    "a rate: write operations and the time, such as \"1000/s\" or \"90/min\""
);

impl Rate {
    fn read(text: &str) -> Option<Self> {
        let (number, per) = text.split_once('/')?;
        let seconds = match per.trim() {
            "s" => 1.0,
            "min" => 60.0,
            _ => return None,
        };
        let value: f64 = number.trim().parse().ok()?;
        (value.is_finite() && value > 0.0).then_some(Self(value / seconds))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

/// Whether a number may be left out of what is written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in
            [("128B", 128), ("64KiB", 65_536), ("3GiB", 3 << 30), ("1GB", 1_000_000_000), ("1.5 KiB", 1536)]
        {
            assert_eq!(text.parse::<ByteSize>().map(|s| s.0), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_quantity_without_its_unit_is_refused() {
        assert!("128".parse::<ByteSize>().is_err());
        assert!("3G".parse::<ByteSize>().is_err());
        assert!("-3GiB".parse::<ByteSize>().is_err());
        assert!("120".parse::<Span>().is_err());
        assert!("-1s".parse::<Span>().is_err());
        assert!("1000".parse::<Rate>().is_err());
        assert!("0/s".parse::<Rate>().is_err());
        for wrong in [
            "192.0.2.1",
            "192.0.2.9-192.0.2.1/24",
            "192.0.2.0-192.0.2.9/24",
            "192.0.2.1-192.0.2.255/24",
            "192.0.2.1-192.0.3.1/24",
            "10.0.0.1-10.0.0.2/31",
        ] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
        let range: AddressRange = " 192.0.2.100 - 192.0.2.150/24 ".parse().unwrap();
        assert_eq!((range.to_string().as_str(), range.count()), ("192.0.2.100-192.0.2.150/24", 51));
        for (address, shares, has) in
            [("192.0.2.150", true, true), ("192.0.2.99", true, false), ("192.0.3.100", false, false)]
        {
            let address = address.parse().unwrap();
            assert_eq!((range.shares_network_with(address), range.has(address)), (shares, has), "{address}");
        }
        assert!("1Gbps".parse::<BitRate>().is_err());
        assert!("1GB/s".parse::<BitRate>().is_err());
    }

    #[test]
    fn spans_and_rates() {
        assert_eq!("120s".parse(), Ok(Span::from_secs(120)));
        assert_eq!("300ms".parse(), Ok(Span::from_millis(300)));
        assert_eq!("5m".parse(), Ok(Span::from_secs(300)));
        assert_eq!("90/min".parse(), Ok(Rate(1.5)));
        assert_eq!("1Gbit/s".parse(), Ok(BitRate(1_000_000_000)));
        assert_eq!("2.5 Gbit/s".parse(), Ok(BitRate(2_500_000_000)));
    }

    #[test]
    fn scaling_never_makes_a_phase_vanish() {
        assert_eq!(Span::from_secs(120).scaled(0.1), Span::from_secs(12));
        assert_eq!(Span::from_millis(1).scaled(0.001), Span::from_millis(1));
        assert_eq!(Span::ZERO.scaled(0.1), Span::ZERO);
    }

    proptest! {
        #[test]
        fn printing_and_reading_again_loses_nothing(n in 0u64..1 << 50) {
            prop_assert_eq!(ByteSize(n).to_string().parse(), Ok(ByteSize(n)));
            prop_assert_eq!(Span { ns: n }.to_string().parse(), Ok(Span { ns: n }));
            prop_assert_eq!(BitRate(n + 1).to_string().parse(), Ok(BitRate(n + 1)));
        }
    }
}
