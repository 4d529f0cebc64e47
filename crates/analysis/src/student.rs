//! Procedures that assume normal values: Student's t, Welch's t, and what a number of blocks can show.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::located::Located;

/// Quantile of the standard normal distribution.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Probability of the standard normal distribution up to `z`.
pub(crate) fn normal_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Two-sided tail probability of the standard normal distribution beyond |z|.
pub(crate) fn normal_tail(z: f64) -> f64 {
    2.0 * Normal::standard().sf(z.abs())
}

/// Two-sided tail probability of Student's t beyond |t| with `freedom` degrees of freedom; 1 when `freedom` is not positive.
pub(crate) fn t_tail(t: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| (2.0 * student.sf(t.abs())).min(1.0))
}

/// Quantile of Student's t with `freedom` degrees of freedom; NaN when `freedom` is not positive.
pub(crate) fn t_quantile(p: f64, freedom: f64) -> f64 {
    let Ok(t) = StudentsT::new(0.0, 1.0, freedom) else { return f64::NAN };
    let guess = t.inverse_cdf(p);
    // The library's inverse is good to a few digits less than its distribution function: two Newton steps close that.
    (0..2).fold(guess, |x, _| {
        let density = statrs::distribution::Continuous::pdf(&t, x);
        if density > 0.0 { x - (t.cdf(x) - p) / density } else { x }
    })
}

/// Mean; `None` of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation with n - 1; `None` of fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Mean with Student's interval at 1 - `alpha`. `None` of nothing.
pub(crate) fn one_sample(values: &[f64], alpha: f64) -> Option<Located> {
    let value = mean(values)?;
    let n = values.len() as f64;
    let ends = deviation(values).map(|sd| {
        let half = t_quantile(1.0 - alpha / 2.0, n - 1.0) * sd / n.sqrt();
        (value - half, value + half)
    });
    Some(Located { value, ends, level: 1.0 - alpha })
}

/// Probability of such a mean, or of a higher one, if the true one were `shift`: the one-sided p-value of the t test. `None` of fewer
/// than two values.
pub(crate) fn above(values: &[f64], shift: f64) -> Option<f64> {
    let (centre, n) = (mean(values)?, values.len() as f64);
    let error = deviation(values)? / n.sqrt();
    if error == 0.0 {
        return Some(if centre > shift { 0.0 } else { 1.0 });
    }
    Some(StudentsT::new(0.0, 1.0, n - 1.0).ok()?.sf((centre - shift) / error))
}

/// Difference of means of `y` and `x` with Welch's interval at 1 - `alpha` (Welch 1947, degrees of freedom by
/// Satterthwaite). `None` when either is empty.
pub(crate) fn welch(x: &[f64], y: &[f64], alpha: f64) -> Option<Located> {
    let value = mean(y)? - mean(x)?;
    let ends = welch_error(x, y).map(|(error, freedom)| {
        // Of values that are all alike there are no degrees of freedom to estimate.
        let half = if error == 0.0 { 0.0 } else { t_quantile(1.0 - alpha / 2.0, freedom) * error };
        (value - half, value + half)
    });
    Some(Located { value, ends, level: 1.0 - alpha })
}

/// Probability of such a difference of means of `y` and `x`, or of a higher one, if the true one were `shift`. `None` where a side has
/// fewer than two values.
pub(crate) fn welch_above(x: &[f64], y: &[f64], shift: f64) -> Option<f64> {
    let (beyond, (error, freedom)) = (mean(y)? - mean(x)? - shift, welch_error(x, y)?);
    if error == 0.0 {
        return Some(if beyond > 0.0 { 0.0 } else { 1.0 });
    }
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.sf(beyond / error))
}

/// Standard error of the difference of two means, and its degrees of freedom. `None` where a side has fewer than two values.
fn welch_error(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let (m, n) = (x.len() as f64, y.len() as f64);
    let (vx, vy) = (deviation(x)?.powi(2) / m, deviation(y)?.powi(2) / n);
    Some(((vx + vy).sqrt(), (vx + vy).powi(2) / (vx * vx / (m - 1.0) + vy * vy / (n - 1.0))))
}
