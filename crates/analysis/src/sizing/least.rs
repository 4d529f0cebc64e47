//! Least squares of at most three columns whose coefficients are zero or above.

/// Share of a column that must not follow from the columns before it: with less of its own, noise alone would decide between them.
const OWN_MIN: f64 = 1e-3;

/// Columns of a row.
pub(super) type Columns = [f64; 3];

/// The normal equations of rows that were added up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Normal {
    products: [[f64; 3]; 3],
    values: [f64; 3],
    square: f64,
}

impl Normal {
    /// Of these rows.
    pub(super) fn of(rows: impl Iterator<Item = (Columns, f64)>) -> Self {
        rows.fold(Self::default(), |sum, (columns, value)| sum.with(columns, value, 1.0))
    }

    /// With one row more, or with `times` -1 one less.
    #[must_use]
    pub(super) fn with(mut self, columns: Columns, value: f64, times: f64) -> Self {
        for i in 0..3 {
            for j in 0..3 {
                self.products[i][j] += times * columns[i] * columns[j];
            }
            self.values[i] += times * columns[i] * value;
        }
        self.square += times * value * value;
        self
    }

    /// Which columns the rows distinguish, in this order: each that does not follow from those before it.
    pub(super) fn distinguishable(&self) -> [bool; 3] {
        let mut kept = [false; 3];
        for column in 0..3 {
            let whole = self.products[column][column];
            // A constant sum of squares that is left when the columns before have explained what they can.
            let own = self.solve(kept, |row| self.products[row][column]).map_or(whole, |by| {
                let explained: f64 =
                    (0..3).filter(|&row| kept[row]).map(|row| by[row] * self.products[row][column]).sum();
                whole - explained
            });
            kept[column] = whole > 0.0 && whole.is_finite() && own > OWN_MIN * whole;
        }
        kept
    }

    /// The coefficients of the columns that are `used`, whatever their sign, of the least residual; and the sum of its squares.
    pub(super) fn free(&self, used: [bool; 3]) -> Option<(Columns, f64)> {
        let found = self.solve(used, |row| self.values[row])?;
        Some((found, self.residual(&found))).filter(|(_, residual)| residual.is_finite())
    }

    /// The coefficients of the columns that are `used`, none below zero, of the least residual; and the sum of its squares.
    ///
    /// Where the least squares of all of them are above zero, there are none less. Otherwise some column is zero in the solution, and
    /// there are few enough sets of them to try all.
    pub(super) fn non_negative(&self, used: [bool; 3]) -> Option<(Columns, f64)> {
        if let Some(whole) = self.free(used).filter(|(found, _)| found.iter().all(|value| *value >= 0.0)) {
            return Some(whole);
        }
        let sets = (1u8..8).map(|set| [set & 1 != 0, set & 2 != 0, set & 4 != 0]);
        let allowed = sets.filter(|set| (0..3).all(|at| used[at] || !set[at]));
        let solved = allowed.filter_map(|set| self.solve(set, |row| self.values[row]));
        let fits =
            solved.filter(|found| found.iter().all(|value| *value >= 0.0)).map(|found| (found, self.residual(&found)));
        fits.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, residual)| residual.is_finite())
    }

    fn residual(&self, found: &Columns) -> f64 {
        let mut left = self.square;
        for i in 0..3 {
            left -= 2.0 * found[i] * self.values[i];
            left += (0..3).map(|j| found[i] * found[j] * self.products[i][j]).sum::<f64>();
        }
        left.max(0.0)
    }

    /// Solves the equations of the columns in `set`; the others are zero. `None` when they have no one solution.
    fn solve(&self, set: [bool; 3], right: impl Fn(usize) -> f64) -> Option<Columns> {
        let own: Vec<usize> = (0..3).filter(|&column| set[column]).collect();
        // Scaled to columns of length 1: seconds of CPU beside instances differ by orders of magnitude.
        let scale = |column: usize| self.products[column][column].sqrt();
        if own.is_empty() || own.iter().any(|&column| !(scale(column) > 0.0 && scale(column).is_finite())) {
            return None;
        }
        let mut rows: Vec<Vec<f64>> = own
            .iter()
            .map(|&i| {
                let left = own.iter().map(|&j| self.products[i][j] / scale(i) / scale(j));
                left.chain([right(i) / scale(i)]).collect()
            })
            .collect();
        let n = own.len();
        for at in 0..n {
            let pivot = (at..n).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))?;
            rows.swap(at, pivot);
            let row = rows[at].clone();
            if row[at].abs() < 1e-12 || !row[at].is_finite() {
                return None;
            }
            for (_, other) in rows.iter_mut().enumerate().filter(|(index, _)| *index != at) {
                let factor = other[at] / row[at];
                other.iter_mut().zip(&row).for_each(|(cell, above)| *cell -= factor * above);
            }
        }
        let mut found = [0.0; 3];
        for (at, &column) in own.iter().enumerate() {
            found[column] = rows[at][n] / rows[at][at] / scale(column);
        }
        found.iter().all(|value| value.is_finite()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: impl Fn(f64, f64) -> f64) -> Normal {
        let at = (1..6).flat_map(|x| (1..4).map(move |n| (f64::from(x), f64::from(n))));
        Normal::of(at.map(|(x, n)| ([x, x * n, n], of(x, n))))
    }

    #[test]
    fn what_made_the_values_is_found_and_nothing_below_zero() {
        let (found, residual) = rows(|x, n| 2.0 * x + 0.5 * x * n + 0.1 * n).non_negative([true; 3]).unwrap();
        for (found, made) in found.iter().zip([2.0, 0.5, 0.1]) {
            assert!((found - made).abs() < 1e-9, "{found} {made}");
        }
        assert!(residual < 1e-9);
        let (found, residual) = rows(|x, n| 2.0 * x - 0.1 * x * n).non_negative([true; 3]).unwrap();
        assert!(found[0] > 1.5 && found[1] == 0.0 && found[2] >= 0.0 && residual > 0.0, "{found:?}");
        let (free, residual) = rows(|x, n| 2.0 * x - 0.1 * x * n).free([true; 3]).unwrap();
        assert!((free[1] + 0.1).abs() < 1e-9 && residual < 1e-9, "what is free may be below it: {free:?}");
        let (found, _) = rows(|x, n| x + n).non_negative([true, true, false]).unwrap();
        assert_eq!(found[2], 0.0, "what is not used is zero");
        assert!(rows(|_, _| f64::NAN).non_negative([true; 3]).is_none());
        assert!(Normal::default().non_negative([true; 3]).is_none());
    }

    #[test]
    fn columns_that_follow_from_others_are_found() {
        assert_eq!(rows(|x, _| x).distinguishable(), [true; 3]);
        let one = Normal::of((1..6).map(|x| ([f64::from(x), 3.0 * f64::from(x), 1.0], 1.0)));
        assert_eq!(one.distinguishable(), [true, false, true]);
        let alike = Normal::of((1..6).map(|n| ([2.0 * f64::from(n), f64::from(n * n), f64::from(n)], 1.0)));
        assert_eq!(alike.distinguishable(), [true, true, false]);
        assert_eq!(Normal::default().distinguishable(), [false; 3]);
    }

    #[test]
    fn a_row_that_is_taken_away_was_never_there() {
        let all = rows(|x, n| x + n);
        let without = all.with([9.0, 18.0, 2.0], 5.0, 1.0).with([9.0, 18.0, 2.0], 5.0, -1.0);
        let of = |normal: &Normal| normal.non_negative([true; 3]).unwrap().0;
        assert!(of(&all).iter().zip(of(&without)).all(|(a, b)| (a - b).abs() < 1e-9));
    }
}
