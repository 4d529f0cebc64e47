//! Comparisons in words.

use tare_model::findings::Estimate;
use tare_model::metric::{MetricSpec, Unit};
pub(crate) use tare_model::written::{grouped, value};

/// Ratio from which (and below whose inverse) a difference is said as a multiple and not in percent.
const MULTIPLE: f64 = 2.0;

/// Words for more and for less of a metric.
const fn more_and_less(unit: &Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::Seconds => ("longer than", "shorter than"),
        Unit::CpuSecondsPerOperation | Unit::CpuSecondsPerByte | Unit::Bytes => ("more than", "less than"),
        Unit::OperationsPerSecond | Unit::BitsPerSecond | Unit::Share | Unit::Count | Unit::Other(_) => {
            ("higher than", "lower than")
        }
    }
}

/// A relative size: `1.5 %`, with the digits that the report gives it too.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let places = match value.abs() {
        v if v >= 10.0 => 0,
        v if v >= 0.1 => 1,
        _ => 2,
    };
    format!("{value:.places$} %")
}

/// A relative size for people: in percent, as a multiple where percents mislead, and not at all where a
/// study could have seen nothing.
pub(crate) fn size(share: f64) -> String {
    match share {
        s if s < 1.0 => percent(s),
        s if s < 99.0 => format!("a factor of {}", multiple(1.0 + s).trim_end_matches('x')),
        _ => "a factor of 100".to_owned(),
    }
}

/// Whether a ratio is said as a multiple: it or an end of its interval is twofold or more, either way. Percents would
/// mislead there, and 219 % shorter is no length.
fn as_multiple(ratio: &Estimate) -> bool {
    let far = |r: f64| r >= MULTIPLE || r <= 1.0 / MULTIPLE;
    far(ratio.value) || ratio.low.is_some_and(far) || ratio.high.is_some_and(far)
}

/// The interval of a ratio in percent or, where that misleads, in multiples, with a space before it:
/// ` [-1.0, +2.3] %`; nothing without one.
pub(crate) fn interval(ratio: &Estimate) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) if !as_multiple(ratio) => {
            let places = decimals((high - low) * 100.0);
            format!(" [{}, {}] %", signed((low - 1.0) * 100.0, places), signed((high - 1.0) * 100.0, places))
        }
        (Some(low), Some(high)) => format!(" [{}, {}]", multiple(low), multiple(high)),
        _ => String::new(),
    }
}

/// A number with its sign; zero has none, whichever side it was rounded from.
fn signed(value: f64, places: usize) -> String {
    let text = format!("{value:+.places$}");
    let digits = text.trim_start_matches(['+', '-']);
    if digits.chars().all(|own| matches!(own, '0' | '.')) { digits.to_owned() } else { text }
}

/// Decimals that show a figure whose interval is about `width` wide with the digits that mean something.
fn decimals(width: f64) -> usize {
    match width {
        w if w >= 10.0 => 0,
        w if w >= 0.1 => 1,
        w if w >= 0.01 => 2,
        _ => 3,
    }
}

/// A multiple with at most two decimals; beyond a hundredfold either way only that.
fn multiple(ratio: f64) -> String {
    match ratio {
        r if r > 100.0 => ">100x".to_owned(),
        r if r < 0.01 => "<0.01x".to_owned(),
        r if r >= 9.95 => format!("{r:.0}x"),
        r if r >= 2.0 => format!("{r:.1}x"),
        r => format!("{r:.2}x"),
    }
}

/// `response time, median 3.1 % longer than native [+2.2, +4.0] %`. Signs are those of the metric everywhere: minus is less of it.
pub(crate) fn difference(spec: &MetricSpec, ratio: &Estimate, baseline: &str) -> String {
    let (label, interval) = (&spec.label, interval(ratio));
    if as_multiple(ratio) {
        return format!("{label} {} that of {baseline}{interval}", multiple(ratio.value));
    }
    let (more, less) = more_and_less(&spec.unit);
    let word = if ratio.value >= 1.0 { more } else { less };
    let size = (ratio.value - 1.0).abs() * 100.0;
    let width = ratio.low.zip(ratio.high).map_or(size / 10.0, |(low, high)| (high - low) * 100.0);
    format!("{label} {size:.*} % {word} {baseline}{interval}", decimals(width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::Better;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low: Some(low), high: Some(high), level: 0.95, n: 6, method: String::new() }
    }

    #[test]
    fn differences_read_as_people_say_them() {
        let time = MetricSpec::new("t", "response time, median", Unit::Seconds, Better::Lower);
        let rate = MetricSpec::new("r", "throughput", Unit::BitsPerSecond, Better::Higher);
        let per_minute = Unit::Other("orders/min".to_owned());
        let orders = MetricSpec::new("o", "orders a minute (OPM)", per_minute, Better::Higher);
        let cases = [
            (&time, estimate(1.031, 1.022, 1.040), "response time, median 3.1 % longer than native [+2.2, +4.0] %"),
            (&time, estimate(0.969, 0.960, 0.978), "response time, median 3.1 % shorter than native [-4.0, -2.2] %"),
            (&rate, estimate(0.9, 0.85, 1.01), "throughput 10 % lower than native [-15, +1] %"),
            (&rate, estimate(0.9, 0.85, 0.94), "throughput 10.0 % lower than native [-15.0, -6.0] %"),
            (
                &time,
                estimate(1.00312, 1.00310, 1.00315),
                "response time, median 0.312 % longer than native [+0.310, +0.315] %",
            ),
            (&time, estimate(5.04, 4.96, 12.3), "response time, median 5.0x that of native [5.0x, 12x]"),
            (&time, estimate(0.80, 0.20, 3.19), "response time, median 0.80x that of native [0.20x, 3.2x]"),
            (
                &orders,
                estimate(1.0478, 1.0414, 1.0542),
                "orders a minute (OPM) 4.8 % higher than native [+4.1, +5.4] %",
            ),
            (&rate, estimate(0.42, 0.40, 0.45), "throughput 0.42x that of native [0.40x, 0.45x]"),
        ];
        for (spec, ratio, words) in cases {
            assert_eq!(difference(spec, &ratio, "native"), words);
        }
        let single = Estimate { low: None, high: None, n: 1, ..estimate(1.25, 0.0, 0.0) };
        assert_eq!(difference(&time, &single, "native"), "response time, median 25.0 % longer than native");
    }

    #[test]
    fn sizes_that_percents_would_mislead_about_are_multiples() {
        assert_eq!(size(0.015), "1.5 %");
        assert_eq!(size(4.03), "a factor of 5.0");
        assert_eq!(size(1e9), "a factor of 100");
        assert_eq!(interval(&estimate(1.0, 0.85, 1.10)), " [-15, +10] %");
        assert_eq!(interval(&estimate(1.05, 0.998, 1.11)), " [0, +11] %");
        assert_eq!(interval(&estimate(1.0, 0.2, 4.0)), " [0.20x, 4.0x]");
    }

    #[test]
    fn percents_keep_the_digits_that_matter() {
        assert_eq!([0.015, 0.23, 0.0004, 1.5].map(percent), ["1.5 %", "23 %", "0.04 %", "150 %"]);
    }
}
