//! Models of total operations a second against the number of guests, or the load, fitted by least squares.
//!
//! Both are small enough to be fitted here without a library of optimisers: the capped line has an exact solution, and the
//! law has three parameters, a good start from its own linear form, and steps that are only taken when they help.

use std::collections::BTreeMap;

use tare_model::findings::FittedModel;

/// Fewest different numbers of guests from which a model is fitted: the law has three parameters.
const LEVELS_MIN: usize = 4;
/// How far the line must lie above its cap at the largest number of guests, as a share of the cap. Noise of the last number alone
/// bends the least squares a little, which is no knee.
const BEND_MIN: f64 = 0.05;
/// Points of a curve for drawing.
const DRAWN: usize = 120;
/// Steps after which the law's parameters have long settled.
const STEPS_MAX: usize = 400;

/// The capped line and the universal scalability law fitted to (guests, operations a second), the one with the smaller residual
/// first; nothing with fewer than four numbers of guests.
pub(crate) fn models(points: &[(f64, f64)]) -> Vec<FittedModel> {
    models_of(points, "guest")
}

/// The same against anything that there may be more of; `one` of it, in words.
pub(crate) fn models_of(points: &[(f64, f64)], one: &str) -> Vec<FittedModel> {
    let mut levels: Vec<f64> = points.iter().map(|point| point.0).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let usable = points.iter().all(|(n, x)| n.is_finite() && x.is_finite() && *n > 0.0 && *x >= 0.0);
    if !usable || levels.len() < LEVELS_MIN || points.iter().all(|point| point.1 == 0.0) {
        return Vec::new();
    }
    let most = levels.last().copied().unwrap_or(1.0);
    let line = capped_line(points, &levels);
    let bends = line.slope * most >= line.cap * (1.0 + BEND_MIN);
    let line = if bends { line } else { through(points, f64::INFINITY) };
    let mut models = vec![line.fitted_model(points, most, one)];
    models.extend(Law::fitted(points).map(|law| law.fitted_model(points, most, one)));
    models.sort_by(|a, b| a.rmse.total_cmp(&b.rmse));
    models
}

/// Operations a second of one, with decimals where they are few: a client that thinks does a fraction of one.
fn each(rate: f64) -> String {
    let places = if rate < 10.0 { 3 } else { 0 };
    format!("{rate:.places$}")
}

/// A coefficient of squares, which is tiny where there are many: with digits that count all the same.
fn small(kappa: f64) -> String {
    if kappa > 0.0 && kappa < 1e-5 { format!("{kappa:.2e}") } else { format!("{kappa:.6}") }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}

/// Root of the mean squared residual.
fn rmse(points: &[(f64, f64)], model: impl Fn(f64) -> f64) -> f64 {
    let squares: f64 = points.iter().map(|&(n, x)| (x - model(n)).powi(2)).sum();
    (squares / points.len() as f64).sqrt()
}

fn curve(most: f64, model: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    (0..=DRAWN).map(|i| most * i as f64 / DRAWN as f64).map(|n| (n, model(n))).collect()
}

/// `min(slope N, cap)`: each guest does its work until something of the host is used up.
#[derive(Debug, Clone, Copy)]
struct CappedLine {
    slope: f64,
    cap: f64,
}

impl CappedLine {
    fn at(self, n: f64) -> f64 {
        (self.slope * n).min(self.cap)
    }

    fn fitted_model(self, points: &[(f64, f64)], most: f64, one: &str) -> FittedModel {
        let knee = self.cap / self.slope;
        // Without a level beyond the knee there is no cap to be seen.
        let seen = knee < most;
        let formula = match seen {
            true => format!("min({} N, {:.0}) op/s", each(self.slope), self.cap),
            false => format!("{} N op/s", each(self.slope)),
        };
        let mut parameters = BTreeMap::from([(format!("operations a second of {} {one}", article(one)), self.slope)]);
        if seen {
            parameters.insert("cap, operations a second".to_owned(), self.cap);
        }
        FittedModel {
            name: "capped line".to_owned(),
            formula,
            parameters,
            rmse: rmse(points, |n| self.at(n)),
            knee: seen.then_some(knee),
            curve: curve(most, |n| self.at(n)),
        }
    }
}

/// The least squares over all lines and caps, exactly: between two neighbouring numbers of guests the residual is that of a line
/// through the left points and of a constant through the right ones; its least value over all of them lies within such a
/// stretch or where the knee is one of the numbers.
fn capped_line(points: &[(f64, f64)], levels: &[f64]) -> CappedLine {
    let within = levels.windows(2).filter_map(|pair| {
        let [low, high] = pair else { return None };
        let (mut nx, mut nn, mut right) = (0.0, 0.0, Vec::new());
        for &(n, x) in points {
            if n <= *low {
                (nx, nn) = (nx + n * x, nn + n * n);
            } else {
                right.push(x);
            }
        }
        let line = CappedLine { slope: nx / nn, cap: right.iter().sum::<f64>() / right.len() as f64 };
        let knee = line.cap / line.slope;
        (knee.is_finite() && (*low..=*high).contains(&knee)).then_some(line)
    });
    let all = within.chain(levels.iter().map(|&knee| through(points, knee)));
    let best = all.min_by(|a, b| rmse(points, |n| a.at(n)).total_cmp(&rmse(points, |n| b.at(n))));
    best.unwrap_or_else(|| through(points, f64::INFINITY))
}

/// The least squares of all lines that are capped at `knee` guests; at infinity they are not.
fn through(points: &[(f64, f64)], knee: f64) -> CappedLine {
    let m = |n: f64| n.min(knee);
    let (xm, mm) = points.iter().fold((0.0, 0.0), |(xm, mm), &(n, x)| (xm + x * m(n), mm + m(n) * m(n)));
    let slope = xm / mm;
    CappedLine { slope, cap: slope * knee }
}

/// The universal scalability law, `lambda N / (1 + sigma (N - 1) + kappa N (N - 1))` (N. J. Gunther, Guerrilla Capacity
/// Planning, 2007): `lambda` is one guest's, `sigma` the part that queues, `kappa` what each two guests cost each other.
#[derive(Debug, Clone, Copy)]
struct Law {
    lambda: f64,
    sigma: f64,
    kappa: f64,
}

impl Law {
    fn at(self, n: f64) -> f64 {
        let below = 1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0);
        if n <= 0.0 { 0.0 } else { self.lambda * n / below }
    }

    /// From a start that is the law in its linear form, `N/X = a + b (N-1) + c N (N-1)`, by damped Gauss-Newton steps
    /// (Levenberg-Marquardt) on the residuals of X themselves, with `sigma` and `kappa` at zero or above.
    fn fitted(points: &[(f64, f64)]) -> Option<Self> {
        let first = points.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(n, x)| x / n)?;
        let mut best = Self { lambda: first.max(f64::MIN_POSITIVE), sigma: 0.01, kappa: 0.0 };
        if let Some(start) = Self::linear(points).filter(|start| start.loss(points) < best.loss(points)) {
            best = start;
        }
        let mut damping = 1e-3;
        for _ in 0..STEPS_MAX {
            let Some(next) = best.step(points, damping) else { break };
            let (was, is) = (best.loss(points), next.loss(points));
            if is < was {
                best = next;
                damping = (damping / 3.0).max(1e-12);
                if was - is <= 1e-14 * was {
                    break;
                }
            } else {
                damping *= 4.0;
                if damping > 1e12 {
                    break;
                }
            }
        }
        Some(best)
    }

    fn loss(self, points: &[(f64, f64)]) -> f64 {
        rmse(points, |n| self.at(n))
    }

    fn linear(points: &[(f64, f64)]) -> Option<Self> {
        let rows: Vec<([f64; 3], f64)> =
            points.iter().filter(|point| point.1 > 0.0).map(|&(n, x)| ([1.0, n - 1.0, n * (n - 1.0)], n / x)).collect();
        let [a, b, c] = least_squares(&rows, 0.0)?;
        (a > 0.0).then(|| Self { lambda: 1.0 / a, sigma: (b / a).max(0.0), kappa: (c / a).max(0.0) })
    }

    fn step(self, points: &[(f64, f64)], damping: f64) -> Option<Self> {
        let rows: Vec<([f64; 3], f64)> = points
            .iter()
            .map(|&(n, x)| {
                let below = 1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0);
                let at = self.at(n);
                // By lambda relative to itself, so that all three columns are of a size.
                ([at, -at * (n - 1.0) / below, -at * n * (n - 1.0) / below], x - at)
            })
            .collect();
        let [l, s, k] = least_squares(&rows, damping)?;
        let lambda = self.lambda * (1.0 + l.max(-0.5));
        let (sigma, kappa) = ((self.sigma + s).max(0.0), (self.kappa + k).max(0.0));
        Some(Self { lambda, sigma, kappa })
    }

    fn fitted_model(self, points: &[(f64, f64)], most: f64, one: &str) -> FittedModel {
        let Self { lambda, sigma, kappa } = self;
        // Where the derivative is zero.
        let knee = (kappa > 0.0 && sigma < 1.0).then(|| ((1.0 - sigma) / kappa).sqrt());
        let of_one = format!("lambda, operations a second of one {one}");
        let parameters = [(of_one, lambda), ("sigma".to_owned(), sigma), ("kappa".to_owned(), kappa)];
        FittedModel {
            name: "universal scalability law".to_owned(),
            formula: format!("{} N / (1 + {sigma:.4} (N-1) + {} N (N-1)) op/s", each(lambda), small(kappa)),
            parameters: parameters.into(),
            rmse: self.loss(points),
            // Beyond what was measured it would be a guess.
            knee: knee.filter(|knee| *knee < most),
            curve: curve(most, |n| self.at(n)),
        }
    }
}

/// Solves the normal equations of three columns, each diagonal enlarged by `damping` of itself; `None` when they have no one
/// solution.
fn least_squares(rows: &[([f64; 3], f64)], damping: f64) -> Option<[f64; 3]> {
    let mut a = [[0.0; 4]; 3];
    for (columns, value) in rows {
        for i in 0..3 {
            for j in 0..3 {
                a[i][j] += columns[i] * columns[j];
            }
            a[i][3] += columns[i] * value;
        }
    }
    let largest = a.iter().enumerate().map(|(i, row)| row[i]).fold(0.0, f64::max);
    for (i, row) in a.iter_mut().enumerate() {
        row[i] += damping * row[i] + largest * 1e-18;
    }
    for i in 0..3 {
        let pivot = (i..3).max_by(|&p, &q| a[p][i].abs().total_cmp(&a[q][i].abs()))?;
        a.swap(i, pivot);
        let row = a[i];
        if row[i] == 0.0 || !row[i].is_finite() {
            return None;
        }
        for (_, other) in a.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = other[i] / row[i];
            other.iter_mut().zip(row).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    let solved = [a[0][3] / a[0][0], a[1][3] / a[1][1], a[2][3] / a[2][2]];
    solved.iter().all(|value| value.is_finite()).then_some(solved)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations of a run of 1,797 s with merging, by guests, from the published report of 2009 (its Figure 3).
    const PUBLISHED: [(f64, f64); 9] = [
        (1.0, 11_033_251.0),
        (4.0, 44_449_704.0),
        (8.0, 88_187_982.0),
        (12.0, 122_250_238.0),
        (16.0, 165_091_261.0),
        (20.0, 183_294_679.0),
        (24.0, 189_147_463.0),
        (28.0, 190_191_751.0),
        (32.0, 189_871_385.0),
    ];

    #[test]
    fn the_published_curve_is_a_capped_line_with_its_knee_at_seventeen_guests() {
        let points = PUBLISHED.map(|(n, operations)| (n, operations / 1_797.0));
        let models = models(&points);
        let (line, law) = (&models[0], &models[1]);
        assert_eq!((line.name.as_str(), law.name.as_str()), ("capped line", "universal scalability law"));
        // The law's residual is known from another fit of the same figures: 2,803, with sigma a little below zero.
        assert!((law.rmse / 2_803.0 - 1.0).abs() < 0.01 && law.parameters["sigma"] == 0.0, "{law:?}");
        // The line through the first levels and the last, 6,174 a guest up to 105,662, is close, but not the least squares.
        let drawn = rmse(&points, |n| (6_174.0 * n).min(105_662.0));
        assert!(line.rmse < law.rmse && line.rmse < drawn, "{} {} {drawn}", line.rmse, law.rmse);
        let knee = line.knee.unwrap();
        assert!((17.0..18.5).contains(&knee), "{knee}");
    }

    #[test]
    fn what_a_model_made_is_found_again() {
        let levels = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0];
        let law = Law { lambda: 950.0, sigma: 0.03, kappa: 0.0015 };
        let found = models(&levels.map(|n| (n, law.at(n))));
        assert_eq!(found[0].name, "universal scalability law");
        assert!(found[0].rmse < 1e-3, "{:?}", found[0]);
        let knee = ((1.0 - 0.03) / 0.0015_f64).sqrt();
        assert!((found[0].knee.unwrap() - knee).abs() < 1e-3);

        let line = CappedLine { slope: 100.0, cap: 1_050.0 };
        let found = models(&levels.map(|n| (n, line.at(n))));
        assert!(found[0].name == "capped line" && found[0].rmse < 1e-6, "{:?}", found[0]);
        assert!((found[0].knee.unwrap() - 10.5).abs() < 1e-6);
    }

    #[test]
    fn a_straight_line_has_no_knee_and_three_levels_no_model() {
        let straight: Vec<(f64, f64)> = (1..=6).map(|n| (f64::from(n), 50.0 * f64::from(n))).collect();
        let found = models(&straight);
        let line = found.iter().find(|model| model.name == "capped line").unwrap();
        assert_eq!((line.knee, line.formula.as_str()), (None, "50 N op/s"));
        let knees = |points: &[(f64, f64)]| models(points).iter().filter(|model| model.knee.is_some()).count();
        let mut noisy = straight.clone();
        noisy[5].1 *= 0.98;
        assert_eq!(knees(&noisy), 0, "the last number is a little low: {:?}", models(&noisy));
        noisy[5].1 = noisy[4].1;
        assert!(models(&noisy).iter().any(|model| model.name == "capped line" && model.knee.is_some()));
        let beyond = Law { lambda: 950.0, sigma: 0.03, kappa: 0.0007 };
        let found = models(&[1.0, 2.0, 4.0, 8.0].map(|n| (n, beyond.at(n))));
        let law = found.iter().find(|model| model.name == "universal scalability law").unwrap();
        assert!(law.rmse < 1e-3 && law.knee.is_none(), "37 guests were not measured: {law:?}");
        assert!(models(&straight[..3]).is_empty());
        assert!(models(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (4.0, 0.0)]).is_empty());
        assert!(models(&[(1.0, f64::NAN), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)]).is_empty());
    }
}
