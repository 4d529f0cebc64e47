//! Samples by series, and what a counter did in a window.

use std::collections::HashMap;

use tare_model::sample::{Sample, Source};

/// The values of each series in the order of time.
pub(crate) struct Timeline<'a>(HashMap<(&'a Source, &'a str), Vec<(u64, f64)>>);

impl<'a> Timeline<'a> {
    /// Sorts samples, which may come in any order, into their series.
    pub fn new(samples: impl IntoIterator<Item = &'a Sample>) -> Self {
        let mut series: HashMap<_, Vec<(u64, f64)>> = HashMap::new();
        for sample in samples {
            series.entry((&sample.source, sample.series.as_str())).or_default().push((sample.at_ns, sample.value));
        }
        for points in series.values_mut() {
            points.sort_by_key(|&(at_ns, _)| at_ns);
        }
        Self(series)
    }

    /// Names of the series of a source.
    pub fn names(&self, source: &Source) -> Vec<&'a str> {
        let mut names: Vec<_> = self.0.keys().filter(|(from, _)| *from == source).map(|&(_, name)| name).collect();
        names.sort_unstable();
        names
    }

    /// Sources that have any series.
    pub fn sources(&self) -> Vec<&'a Source> {
        let mut sources: Vec<_> = self.0.keys().map(|&(source, _)| source).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// The first value of a series, for values that never change.
    pub fn constant(&self, source: &Source, series: &str) -> Option<f64> {
        self.0.get(&(source, series))?.first().map(|&(_, value)| value)
    }

    /// What a cumulative counter gained in a window; never negative. The counter is taken to run evenly between two
    /// samples. `None` if the samples do not reach over the whole window.
    pub fn gain(&self, source: &Source, series: &str, (start_ns, end_ns): (u64, u64)) -> Option<f64> {
        let points = self.0.get(&(source, series))?;
        Some((at(points, end_ns)? - at(points, start_ns)?).max(0.0))
    }

    /// The same over several windows together.
    pub fn gain_over(&self, source: &Source, series: &str, windows: &[(u64, u64)]) -> Option<f64> {
        windows.iter().map(|&window| self.gain(source, series, window)).sum()
    }
}

/// The value at an instant, on the straight line between the samples around it.
fn at(points: &[(u64, f64)], at_ns: u64) -> Option<f64> {
    let after = points.partition_point(|&(sampled_ns, _)| sampled_ns < at_ns);
    let &(end_ns, end) = points.get(after)?;
    if end_ns == at_ns {
        return Some(end);
    }
    let &(start_ns, start) = points.get(after.checked_sub(1)?)?;
    let share = (at_ns - start_ns) as f64 / (end_ns - start_ns) as f64;
    Some(start + (end - start) * share)
}

/// What a cumulative counter gained in a window (CLOCK_MONOTONIC nanoseconds), its ends interpolated; never negative.
/// `None` if the samples do not reach over the whole window.
pub fn gain(samples: &[Sample], source: &Source, series: &str, window: (u64, u64)) -> Option<f64> {
    gain_over(samples, source, series, &[window])
}

/// The same over several windows together.
pub fn gain_over(samples: &[Sample], source: &Source, series: &str, windows: &[(u64, u64)]) -> Option<f64> {
    gain_of_all(samples, std::slice::from_ref(source), series, windows)
}

/// The same of several sources together; `None` where it is not known of one. Samples are gone through once, however many sources there are.
pub fn gain_of_all(samples: &[Sample], sources: &[Source], series: &str, windows: &[(u64, u64)]) -> Option<f64> {
    let timeline = Timeline::new(samples.iter().filter(|sample| sample.series == series));
    sources.iter().map(|source| timeline.gain_over(source, series, windows)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        [(0, 0.0), (100, 1.0), (200, 5.0)]
            .map(|(at_ns, value)| Sample { at_ns, source: Source::Host, series: "busy_s".into(), value })
            .into()
    }

    #[test]
    fn ends_between_samples_are_interpolated() {
        let samples = samples();
        let timeline = Timeline::new(&samples);
        assert_eq!(timeline.gain(&Source::Host, "busy_s", (100, 200)), Some(4.0));
        assert_eq!(timeline.gain(&Source::Host, "busy_s", (50, 150)), Some(2.5));
        assert_eq!(gain(&samples, &Source::Host, "busy_s", (0, 200)), Some(5.0));
    }

    #[test]
    fn a_window_that_samples_do_not_cover_has_no_answer() {
        let samples = samples();
        let timeline = Timeline::new(&samples);
        assert_eq!(timeline.gain(&Source::Host, "busy_s", (100, 201)), None);
        assert_eq!(timeline.gain(&Source::Client, "busy_s", (100, 200)), None);
    }

    #[test]
    fn sources_are_added_up_and_one_that_is_not_known_is_not_zero() {
        let mut all = samples();
        all.extend(samples().into_iter().map(|sample| Sample { source: Source::Client, ..sample }));
        let both = [Source::Host, Source::Client];
        assert_eq!(gain_of_all(&all, &both, "busy_s", &[(0, 100), (150, 200)]), Some(6.0));
        assert_eq!(gain_of_all(&samples(), &both, "busy_s", &[(0, 100)]), None);
        assert_eq!(gain_of_all(&all, &both, "other_s", &[(0, 100)]), None);
    }
}
