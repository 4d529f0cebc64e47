//! Values as people write them: with their unit and the digits that count.

use crate::findings::Estimate;
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

/// A number with exactly so many decimals, commas between its thousands; what rounds to nothing has no sign.
pub fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let text = if text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) { text.trim_start_matches('-') } else { &text };
    grouped(text)
}

/// Whether a ratio is twofold or more, either way, and so is written as a multiple: percents would mislead there.
pub fn is_multiple(ratio: f64) -> bool {
    ratio >= 2.0 || ratio <= 0.5
}

/// A ratio as the signed change of the metric from the baseline to the arm, and its interval with the same signs: `+3.1 %` and
/// `[+2.2, +4.0]`. Where it or an end is twofold or more, both are multiples: `2.31x` and `[2.11, 2.53]`.
pub fn change(ratio: &Estimate) -> (String, Option<String>) {
    let ends = ratio.low.zip(ratio.high).filter(|(low, high)| low.is_finite() && high.is_finite());
    if is_multiple(ratio.value) || ends.is_some_and(|(low, high)| is_multiple(low) || is_multiple(high)) {
        let interval = ends.map(|(low, high)| format!("[{}, {}]", multiple(low), multiple(high)));
        return (format!("{}x", multiple(ratio.value)), interval);
    }
    let percent = |r: f64| (r - 1.0) * 100.0;
    let half = ends.map(|(low, high)| (percent(high) - percent(low)) / 2.0);
    let digits = percent_decimals(percent(ratio.value), half);
    let interval =
        ends.map(|(low, high)| format!("[{}, {}]", signed(percent(low), digits), signed(percent(high), digits)));
    (format!("{} %", signed(percent(ratio.value), digits)), interval)
}

/// A multiple with at most two decimals; beyond a hundredfold either way only that.
fn multiple(ratio: f64) -> String {
    match ratio {
        r if r > 100.0 => ">100".to_owned(),
        r if r < 0.01 => "<0.01".to_owned(),
        r if r >= 99.95 => fixed(r, 0),
        r if r >= 9.995 => fixed(r, 1),
        r => fixed(r, 2),
    }
}

/// Decimal places of a percentage whose interval is twice `half` wide: one as a rule, two where everything is tiny, none where all is
/// coarse.
pub fn percent_decimals(percent: f64, half: Option<f64>) -> usize {
    let size = half.unwrap_or(percent.abs()).abs();
    if size >= 10.0 && percent.abs() >= 10.0 {
        0
    } else if size < 0.1 && size > 0.0 {
        2
    } else {
        1
    }
}

fn signed(number: f64, decimals: usize) -> String {
    let text = fixed(number, decimals);
    let is_zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    if number > 0.0 && !is_zero { format!("+{text}") } else { text }
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
