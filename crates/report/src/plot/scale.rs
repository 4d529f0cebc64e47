//! Axes: data to pixels, and ticks at round values.

use crate::format;

/// How data maps to pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    log: bool,
}

impl Axis {
    /// A linear axis of the data range `from..to` on the pixels `start..end`.
    pub(crate) fn linear(range: (f64, f64), start: f64, end: f64) -> Self {
        Self { from: range.0, to: range.1, start, end, log: false }
    }

    /// A logarithmic axis; both ends of the range are above 0.
    pub(crate) fn log(range: (f64, f64), start: f64, end: f64) -> Self {
        Self { from: range.0.ln(), to: range.1.ln(), start, end, log: true }
    }

    /// The pixel of a value, held within the axis.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let width = self.to - self.from;
        let share = if width == 0.0 { 0.5 } else { ((value - self.from) / width).clamp(0.0, 1.0) };
        self.start + share * (self.end - self.start)
    }

    /// First pixel.
    pub(crate) fn start(&self) -> f64 {
        self.start
    }

    /// Whether a value lies on the axis; one that does not is drawn at its end.
    pub(crate) fn holds(&self, value: f64) -> bool {
        let value = if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        (self.from..=self.to).contains(&value)
    }

    /// Last pixel.
    pub(crate) fn end(&self) -> f64 {
        self.end
    }
}

/// The range of finite values, `None` without any.
pub(crate) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .into_iter()
        .filter(|v| v.is_finite())
        .fold(None, |range, v| Some(range.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
}

/// A range a little wider than given, never empty.
pub(crate) fn padded((low, high): (f64, f64), share: f64) -> (f64, f64) {
    let width = high - low;
    let pad = if width > 0.0 { width * share } else { (low.abs() * 0.05).max(f64::MIN_POSITIVE * 1e10) };
    (low - pad, high + pad)
}

/// About `wanted` ticks at multiples of 1, 2 or 5 times a power of ten, within the range.
pub(crate) fn linear_ticks((low, high): (f64, f64), wanted: usize) -> Vec<f64> {
    let width = high - low;
    if !(width > 0.0 && width.is_finite()) {
        return vec![low];
    }
    let raw = width / wanted.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= raw * 0.75).unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Ticks of a logarithmic axis: decades where there are many, 1-2-5 where there are few, and round
/// linear steps within a part of one decade.
pub(crate) fn log_ticks((low, high): (f64, f64), wanted: usize) -> Vec<f64> {
    let decades = (high / low).log10();
    if decades < 0.6 {
        return linear_ticks((low, high), wanted);
    }
    let within = |v: &f64| *v >= low * 0.999_999 && *v <= high * 1.000_001;
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let multiples: &[f64] = if decades * 3.0 <= wanted as f64 + 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let ticks: Vec<f64> =
        (first..=last).flat_map(|e| multiples.iter().map(move |m| m * 10f64.powi(e))).filter(within).collect();
    let every = ticks.len().div_ceil(wanted.max(2));
    ticks.into_iter().step_by(every.max(1)).collect()
}

/// The texts of ticks, all with as many decimals as the one that needs most; zero is just `0`.
pub(crate) fn tick_texts(ticks: &[f64]) -> Vec<String> {
    let needed = |tick: &f64| {
        let text = format::trimmed(*tick);
        text.split_once('.').map_or(0, |(_, decimals)| decimals.len())
    };
    let decimals = ticks.iter().map(needed).max().unwrap_or(0);
    ticks.iter().map(|tick| if *tick == 0.0 { "0".to_owned() } else { format::fixed(*tick, decimals) }).collect()
}

/// An axis of ratios around 1: differences in percent while all stay within twofold, else factors on a
/// logarithmic scale, where 2x and 0.5x are equally far from 1.
#[derive(Debug, Clone)]
pub(crate) struct RatioAxis {
    pub(crate) axis: Axis,
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) is_log: bool,
}

impl RatioAxis {
    /// The axis that holds all of `ratios`, and 1, on the pixels `start..end`.
    pub(crate) fn new(ratios: impl IntoIterator<Item = f64>, start: f64, end: f64) -> Self {
        let positive = ratios.into_iter().filter(|r| *r > 0.0);
        let (low, high) = extent(positive.chain([1.0])).unwrap_or((1.0, 1.0));
        // At least a per cent either way: a study that found nothing must not look as if it had.
        let (low, high) = (low.min(0.99), high.max(1.01));
        let wanted = ((end - start) / 70.0).max(3.0) as usize;
        if low > 0.5 && high < 2.0 {
            let range = padded((low, high), 0.05);
            let ticks = linear_ticks(((range.0 - 1.0) * 100.0, (range.1 - 1.0) * 100.0), wanted)
                .into_iter()
                .map(|percent| (1.0 + percent / 100.0, percent_tick(percent)))
                .collect();
            return Self { axis: Axis::linear(range, start, end), ticks, is_log: false };
        }
        let range = (low / 1.06, high * 1.06);
        let mut ticks: Vec<(f64, String)> = log_ticks(range, wanted)
            .into_iter()
            .filter(|v| *v > 0.0)
            .map(|v| (v, format!("{}x", format::trimmed(v))))
            .collect();
        if !ticks.iter().any(|(v, _)| (*v - 1.0).abs() < 1e-9) {
            ticks.push((1.0, "1x".to_owned()));
        }
        Self { axis: Axis::log(range, start, end), ticks, is_log: true }
    }
}

fn percent_tick(percent: f64) -> String {
    let text = format::trimmed(percent);
    if percent > 0.0 { format!("+{text} %") } else { format!("{text} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_inside() {
        assert_eq!(linear_ticks((0.0, 10.0), 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(linear_ticks((14.2, 17.1), 4), [15.0, 16.0, 17.0]);
        assert_eq!(linear_ticks((3.0, 3.0), 4), [3.0]);
    }

    #[test]
    fn log_ticks_thin_out_over_many_decades() {
        assert_eq!(log_ticks((1.0, 100.0), 8), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(log_ticks((1.0, 1e6), 7).len(), 7);
        assert!(log_ticks((1.0, 1e12), 6).len() <= 7);
    }

    #[test]
    fn equality_is_always_on_a_ratio_axis() {
        for ratios in [vec![], vec![1.03, 1.2], vec![2.5, 9.0], vec![0.2], vec![f64::NAN, -1.0, 0.0]] {
            let axis = RatioAxis::new(ratios.clone(), 0.0, 500.0);
            let one = axis.axis.at(1.0);
            assert!(one > 0.0 && one < 500.0, "{ratios:?}");
            assert!(axis.ticks.iter().any(|(v, _)| (*v - 1.0).abs() < 1e-9), "{ratios:?} {:?}", axis.ticks);
        }
    }

    #[test]
    fn a_log_axis_puts_twofold_either_way_equally_far() {
        let axis = Axis::log((0.25, 4.0), 0.0, 400.0);
        assert!((axis.at(1.0) - 200.0).abs() < 1e-9);
        assert!((axis.at(2.0) - 300.0).abs() < 1e-9);
        assert!((axis.at(0.5) - 100.0).abs() < 1e-9);
    }
}
