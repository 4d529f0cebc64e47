//! Numbers to text: the one place where a value gets its digits, its prefix and its unit.
//!
//! Every output of the report and of the command line goes through these functions, so a figure
//! reads the same in a table, on an axis and on the terminal. Digits follow from the interval: three
//! significant digits of the value, and one or two more where the interval is narrow enough for them.

use tare_model::findings::Estimate;
use tare_model::metric::Unit;
use tare_model::written;
pub(crate) use tare_model::written::fixed;
use tare_model::written::{grouped, percent_decimals};

/// Text for a value that is not a finite number.
pub const NOT_A_NUMBER: &str = "n/a";

/// Text where there is no value.
pub const NOTHING: &str = "\u{2013}";

/// Bytes that one unit of service demand in bulk transfer covers, as netperf's "KB".
const BYTES_PER_KIB: f64 = 1024.0;

/// A prefix and unit chosen for one magnitude, so that a value, its interval and an axis share it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// What a stored value is multiplied by.
    factor: f64,
    /// The written unit, such as `us` or `Gbit/s`; empty for bare numbers.
    unit: String,
}

impl Scale {
    /// The scale on which a value of about `magnitude` (in the metric's stored unit) reads best.
    pub fn new(unit: &Unit, magnitude: f64) -> Self {
        let of = |prefixes: &[(f64, &str)], factor: f64, magnitude: f64| {
            let magnitude = round_significant(magnitude.abs(), 3);
            let fits = prefixes.iter().find(|(size, _)| magnitude >= *size);
            let smallest = prefixes.last();
            // A zero has no magnitude of its own: it takes the unprefixed unit, which comes first among equals.
            let chosen =
                if magnitude == 0.0 { prefixes.iter().find(|(size, _)| *size == 1.0) } else { fits.or(smallest) };
            let (size, name) = chosen.copied().unwrap_or((1.0, ""));
            Self { factor: factor / size, unit: name.to_owned() }
        };
        match unit {
            Unit::Seconds => of(&SECONDS, 1.0, magnitude),
            Unit::CpuSecondsPerOperation => of(&SECONDS, 1.0, magnitude).per("op"),
            Unit::CpuSecondsPerByte => of(&SECONDS, BYTES_PER_KIB, magnitude * BYTES_PER_KIB).per("KiB"),
            Unit::OperationsPerSecond => of(&OPERATIONS, 1.0, magnitude),
            Unit::BitsPerSecond => of(&BITS, 1.0, magnitude),
            Unit::Bytes => of(&BYTES, 1.0, magnitude),
            Unit::Count => Self { factor: 1.0, unit: String::new() },
            // Shares of a whole are kept from 0 to 1 and read as per cent.
            Unit::Share => Self { factor: 100.0, unit: "%".to_owned() },
            Unit::Other(name) => Self { factor: 1.0, unit: name.clone() },
        }
    }

    fn per(mut self, what: &str) -> Self {
        self.unit = format!("{}/{what}", self.unit);
        self
    }

    /// The written unit, such as `us`; empty for bare numbers.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// A stored value as a number on this scale.
    pub fn number(&self, value: f64) -> f64 {
        value * self.factor
    }

    /// A stored value on this scale with three significant digits, without its unit.
    pub fn text(&self, value: f64) -> String {
        let number = self.number(value);
        fixed(number, decimals(number, None))
    }

    /// An estimate on this scale, without its unit.
    pub(crate) fn parts(&self, estimate: &Estimate) -> Parts {
        if !estimate.value.is_finite() {
            return Parts { value: NOT_A_NUMBER.to_owned(), interval: None };
        }
        let interval = bounds(estimate).map(|(low, high)| format!("[{}, {}]", self.text(low), self.text(high)));
        Parts { value: self.text(estimate.value), interval }
    }

    /// A number with its unit behind it.
    pub fn with_unit(&self, number: &str) -> String {
        if self.unit.is_empty() { number.to_owned() } else { format!("{number} {}", self.unit) }
    }
}

const SECONDS: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
const OPERATIONS: [(f64, &str); 4] = [(1e9, "Gop/s"), (1e6, "Mop/s"), (1e3, "kop/s"), (1.0, "op/s")];
const BITS: [(f64, &str); 5] = [(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const BYTES: [(f64, &str); 5] =
    [(1_099_511_627_776.0, "TiB"), (1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];

/// An estimate in two parts, for tables with a column each.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// The value with its unit, such as `15.4 us`.
    pub value: String,
    /// The interval on the same scale, such as `[15.1, 15.8]`; `None` when there is none.
    pub interval: Option<String>,
}

impl Parts {
    /// Both parts in one text: `15.4 us [15.1, 15.8]`.
    pub fn joined(&self) -> String {
        match &self.interval {
            Some(interval) => format!("{} {interval}", self.value),
            None => self.value.clone(),
        }
    }
}

/// A value with its unit, three significant digits: `15.4 us`, `9.87 Gbit/s`.
pub fn value(value: f64, unit: &Unit) -> String {
    if !value.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let scale = Scale::new(unit, value);
    let number = scale.number(value);
    scale.with_unit(&fixed(number, decimals(number, None)))
}

/// An estimate as value and interval, both on the scale of the value.
pub fn estimate_parts(estimate: &Estimate, unit: &Unit) -> Parts {
    if !estimate.value.is_finite() {
        return Parts { value: NOT_A_NUMBER.to_owned(), interval: None };
    }
    let scale = Scale::new(unit, estimate.value);
    let number = scale.number(estimate.value);
    let bounds = bounds(estimate).map(|(low, high)| (scale.number(low), scale.number(high)));
    // Things that were counted, and came out the same each time.
    let whole = |number: f64| (number - number.round()).abs() <= 1e-9 * number.abs();
    let counted = *unit == Unit::Count
        && whole(number)
        && bounds.is_none_or(|(low, high)| whole(low) && (high - low).abs() <= 1e-9 * high.abs());
    // No fraction of a client was ever counted.
    let many = *unit == Unit::Count && number.abs() >= 100.0;
    let half = bounds.map(|(low, high)| (high - low) / 2.0);
    let digits = match unit {
        Unit::Count if counted || many => 0,
        // There are none, and parts of a byte are nothing that one could have.
        Unit::Bytes if number == 0.0 && half.unwrap_or(0.0) == 0.0 => 0,
        // No share of CPUs is known to more than a tenth of a point, unless all is tiny.
        Unit::Share => percent_decimals(number, half).max(1),
        _ => decimals(number, half),
    };
    // Two trials that differ make an interval over powers of ten, of which nobody wants the digits.
    let bound = |bound: f64| match bound / number {
        times if number > 0.0 && times > 100.0 => ">100x".to_owned(),
        times if number > 0.0 && bound > 0.0 && times < 0.01 => "<0.01x".to_owned(),
        _ => fixed(bound, digits),
    };
    Parts {
        value: scale.with_unit(&fixed(number, digits)),
        interval: bounds.map(|(low, high)| format!("[{}, {}]", bound(low), bound(high))),
    }
}

/// An estimate as bare numbers with so many decimals.
pub(crate) fn fixed_parts(estimate: &Estimate, decimals: usize) -> Parts {
    if !estimate.value.is_finite() {
        return Parts { value: NOT_A_NUMBER.to_owned(), interval: None };
    }
    let text = |value: f64| fixed(value, decimals);
    let interval = bounds(estimate).map(|(low, high)| format!("[{}, {}]", text(low), text(high)));
    Parts { value: text(estimate.value), interval }
}

/// An estimate with its interval: `15.4 us [15.1, 15.8]`.
pub fn estimate(estimate: &Estimate, unit: &Unit) -> String {
    estimate_parts(estimate, unit).joined()
}

/// A ratio as a difference, `+3.1 %`, when it and its interval are under twofold either way, else as a factor, `2.31x`;
/// the interval in the same form. A dash where nothing was compared.
pub fn ratio_parts(ratio: &Estimate) -> Parts {
    if ratio.n == 0 {
        return Parts { value: NOTHING.to_owned(), interval: None };
    }
    if !ratio.value.is_finite() {
        return Parts { value: NOT_A_NUMBER.to_owned(), interval: None };
    }
    let (value, interval) = written::change(ratio);
    Parts { value, interval }
}

/// A ratio with its interval: `+3.1 % [+2.2, +4.0]` or `2.31x [2.11, 2.53]`.
pub fn ratio(ratio: &Estimate) -> String {
    ratio_parts(ratio).joined()
}

/// A relative size without a sign, such as a detectable difference or a floor: 0.015 is `1.5 %`, 4 is `factor 5.0`.
pub fn relative(share: f64) -> String {
    match share {
        s if !s.is_finite() => NOT_A_NUMBER.to_owned(),
        s if s < 1.0 => {
            let percent = s * 100.0;
            format!("{} %", fixed(percent, percent_decimals(percent, None)))
        }
        s if s < 99.0 => format!("factor {}", fixed(1.0 + s, if s < 8.95 { 1 } else { 0 })),
        _ => "factor 100".to_owned(),
    }
}

/// A share of a whole, as on the axis of a distribution: 0.001 is `0.1 %`, 0.0001 is `0.01 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    format!("{} %", trimmed(percent))
}

/// A probability: `0.031`, `<0.001`.
pub fn p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

/// A quantile by its customary name: 0.5 is `p50`, 0.9999 is `p99.99`, 1 is `max`.
pub fn quantile(q: f64) -> String {
    if q >= 1.0 {
        return "max".to_owned();
    }
    format!("p{}", trimmed(q * 100.0))
}

/// A count with its thousands apart: `1,234,567`.
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// A length of wall time for people: `41 s`, `4 min 31 s`, `2 h 05 min`.
pub fn wall_time(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NOT_A_NUMBER.to_owned();
    }
    if seconds < 10.0 {
        return value(seconds, &Unit::Seconds);
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// `1 block`, `5 blocks`: a count and its noun.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A number with just the digits it needs, for ticks: `0.5`, `20`, `1,000`.
pub fn trimmed(number: f64) -> String {
    if !number.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    let rounded = round_significant(number, 6);
    let text = format!("{rounded:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let text = if text == "-0" { "0" } else { text };
    grouped(text)
}

/// Both ends of an interval, where both are finite.
pub(crate) fn bounds(estimate: &Estimate) -> Option<(f64, f64)> {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) if low.is_finite() && high.is_finite() => Some((low, high)),
        _ => None,
    }
}

/// Decimal places for three significant digits of the value, or for four where the interval's half
/// width is under a tenth of it, or for five where it is under a two-thousandth.
fn decimals(number: f64, half_width: Option<f64>) -> usize {
    let exponent = if number == 0.0 { 0 } else { round_significant(number.abs(), 3).log10().floor() as i32 };
    let uncertainty = half_width.map_or(f64::INFINITY, |half| half / number.abs());
    let significant = match uncertainty {
        u if u < 0.0005 => 5,
        u if u < 0.1 => 4,
        _ => 3,
    };
    (significant - 1 - exponent).clamp(0, 9) as usize
}

fn round_significant(number: f64, digits: i32) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    // Through decimal text, so that 2e-5 stays 2e-5 and does not pick up binary dust.
    let precision = (digits - 1).max(0) as usize;
    format!("{number:.precision$e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low: Some(low), high: Some(high), level: 0.95, n: 5, method: String::new() }
    }

    #[test]
    fn an_interval_over_powers_of_ten_has_no_digits() {
        let orders = Unit::Other("orders/min".into());
        assert_eq!(estimate(&of(166.0, 0.0004, 70_084_556.0), &orders), "166 orders/min [<0.01x, >100x]");
        assert_eq!(estimate(&of(166.0, 2.0, 16_500.0), &orders), "166 orders/min [2, 16,500]");
    }

    #[test]
    fn nothing_is_no_fraction_of_a_byte() {
        assert_eq!(estimate(&of(0.0, 0.0, 0.0), &Unit::Bytes), "0 B [0, 0]");
        assert_eq!(estimate(&of(0.0, 0.0, 0.4), &Unit::Bytes), "0.00 B [0.00, 0.40]", "there was some at times");
        assert_eq!(estimate(&of(0.5, 0.4, 0.6), &Unit::Bytes), "0.500 B [0.400, 0.600]");
    }

    #[test]
    fn values_take_the_prefix_that_reads_best() {
        let cases = [
            (15.42e-6, Unit::Seconds, "15.4 us"),
            (0.0, Unit::Seconds, "0.00 s"),
            (999.96e-6, Unit::Seconds, "1.00 ms"),
            (3.2e-10, Unit::Seconds, "0.320 ns"),
            (18.34, Unit::Seconds, "18.3 s"),
            (28.9e9, Unit::BitsPerSecond, "28.9 Gbit/s"),
            (64_935.0, Unit::OperationsPerSecond, "64.9 kop/s"),
            (9.81e-6, Unit::CpuSecondsPerOperation, "9.81 us/op"),
            (3e-11, Unit::CpuSecondsPerByte, "30.7 ns/KiB"),
            (3_221_225_472.0, Unit::Bytes, "3.00 GiB"),
            (1_234_567.0, Unit::Count, "1,234,567"),
            (2421.0, Unit::Other("events/s".into()), "2,421 events/s"),
            (f64::NAN, Unit::Seconds, "n/a"),
        ];
        for (number, unit, text) in cases {
            assert_eq!(value(number, &unit), text);
        }
    }

    #[test]
    fn digits_follow_the_interval() {
        assert_eq!(estimate(&of(15.42e-6, 15.1e-6, 15.8e-6), &Unit::Seconds), "15.42 us [15.10, 15.80]");
        assert_eq!(estimate(&of(15.42e-6, 12.0e-6, 19.0e-6), &Unit::Seconds), "15.4 us [12.0, 19.0]");
        assert_eq!(estimate(&of(15.42317e-6, 15.4231e-6, 15.4232e-6), &Unit::Seconds), "15.423 us [15.423, 15.423]");
    }

    #[test]
    fn no_interval_is_no_brackets() {
        let one = Estimate { low: None, high: None, n: 1, ..of(15.42e-6, 0.0, 0.0) };
        assert_eq!(estimate(&one, &Unit::Seconds), "15.4 us");
        assert_eq!(ratio_parts(&one).interval, None);
    }

    #[test]
    fn ratios_are_differences_until_they_are_twofold() {
        assert_eq!(ratio(&of(1.031, 1.022, 1.040)), "+3.1 % [+2.2, +4.0]");
        assert_eq!(ratio(&of(0.999, 0.985, 1.013)), "-0.1 % [-1.5, +1.3]");
        assert_eq!(ratio(&of(1.0, 0.9996, 1.0004)), "0.00 % [-0.04, +0.04]");
        assert_eq!(ratio(&of(2.31, 2.11, 2.53)), "2.31x [2.11, 2.53]");
        assert_eq!(ratio(&of(0.42, 0.40, 0.44)), "0.42x [0.40, 0.44]");
        assert_eq!(ratio(&of(1.6, 1.3, 2.1)), "1.60x [1.30, 2.10]", "an end is twofold");
        assert_eq!(ratio(&of(3.0, 0.0001, 1e7)), "3.00x [<0.01, >100]");
        assert_eq!(ratio(&Estimate { low: None, high: None, n: 0, ..of(1.0, 0.0, 0.0) }), "\u{2013}");
    }

    #[test]
    fn names_of_quantiles_shares_times_and_counts() {
        assert_eq!(quantile(0.5), "p50");
        assert_eq!(quantile(0.999), "p99.9");
        assert_eq!(quantile(1.0), "max");
        assert_eq!(share(0.0001), "0.01 %");
        assert_eq!([0.0153, 0.556, 4.03].map(relative), ["1.5 %", "56 %", "factor 5.0"]);
        assert_eq!(wall_time(271.2), "4 min 31 s");
        assert_eq!(wall_time(7500.0), "2 h 05 min");
        assert_eq!(plural(1, "block", "blocks"), "1 block");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(trimmed(1000.0), "1,000");
        assert_eq!(trimmed(0.1 + 0.2), "0.3");
    }
}
