//! Values as people write them: with their unit and the digits that count.

use crate::metric::Unit;

/// A value with its unit and three digits that count: `1.20 ms`.
pub fn value(value: f64, unit: &Unit) -> String {
    let (prefixes, name): (&[(f64, &str)], &str) = match unit {
        Unit::Seconds => (&[(1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n")], "s"),
        Unit::CpuSecondsPerOperation => (&[(1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n")], "s/op"),
        Unit::CpuSecondsPerByte => (&[(1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p")], "s/B"),
        Unit::OperationsPerSecond => (&[(1e6, "M"), (1e3, "k"), (1.0, "")], "op/s"),
        Unit::BitsPerSecond => (&[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")], "bit/s"),
        Unit::Bytes => (&[(1_073_741_824.0, "Gi"), (1_048_576.0, "Mi"), (1024.0, "Ki"), (1.0, "")], "B"),
        Unit::Share => (&[(0.01, "")], "%"),
        Unit::Count => (&[(1.0, "")], ""),
        Unit::Other(name) => (&[(1.0, "")], name),
    };
    let one = (1.0, "");
    // By what will be written: 0.9999 s is 1.00 s and not 1,000 ms.
    let rounded: f64 = format!("{:.2e}", value.abs()).parse().unwrap_or_default();
    let magnitude = rounded.max(value.abs());
    let fits = prefixes.iter().find(|(size, _)| magnitude >= *size).or(prefixes.last());
    let (size, prefix) = fits.copied().filter(|_| value != 0.0).unwrap_or(one);
    let number = value / size;
    let places = match magnitude / size {
        n if n >= 100.0 => 0,
        n if n >= 10.0 => 1,
        n if n >= 1.0 || n == 0.0 => 2,
        _ => 3,
    };
    format!("{} {prefix}{name}", grouped(&format!("{number:.places$}"))).trim_end().to_owned()
}

/// A share as a percentage, to a thousandth of a per cent at most: `2.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e5).round() / 1e3)
}

/// What a percentile without a number was, for so large a share of the operations did not complete.
pub fn not_reached(missing: f64) -> String {
    format!("not reached: {}", missing_operations(missing))
}

/// That so large a share of the operations did not complete.
pub fn missing_operations(missing: f64) -> String {
    format!("{} of operations did not complete", percent(missing))
}

/// Commas between the thousands of a written decimal number.
pub fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_prefix_and_three_digits() {
        assert_eq!(value(1.2e-3, &Unit::Seconds), "1.20 ms");
        assert_eq!(value(28.94e9, &Unit::BitsPerSecond), "28.9 Gbit/s");
        assert_eq!(value(0.0, &Unit::Seconds), "0.00 s");
        assert_eq!(value(950.0, &Unit::Other("events/s".to_owned())), "950 events/s");
        assert_eq!(
            (value(0.9999, &Unit::Seconds), value(0.999, &Unit::Seconds)),
            ("1.00 s".to_owned(), "999 ms".to_owned())
        );
        assert_eq!(value(7.0, &Unit::Count), "7.00");
        assert_eq!(value(12_340.4, &Unit::Other("orders/min".to_owned())), "12,340 orders/min");
        assert_eq!(value(-1_234_567.0, &Unit::Count), "-1,234,567");
    }
}
