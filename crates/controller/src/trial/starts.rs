//! How long guests took to start, and what a machine's start was made of.

use tare_model::metric::common;
use tare_platform::{Guest, StartParts};

/// The starts of the guests of a trial.
#[derive(Debug, Clone, Default)]
pub(super) struct Starts(Vec<(f64, Option<StartParts>)>);

impl Starts {
    /// Adds that of a guest that came up.
    pub(super) fn add(&mut self, guest: &dyn Guest) {
        self.0.push((guest.start_time_s(), guest.start_parts()));
    }

    /// Means of the guests, by the names of the metrics. Parts only where every guest has them: they add up to the whole.
    pub(super) fn means(&self) -> Vec<(String, f64)> {
        let count = self.0.len() as f64;
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut means =
            vec![(common::START_TIME.to_owned(), self.0.iter().map(|(whole, _)| whole).sum::<f64>() / count)];
        let parts: Option<Vec<StartParts>> = self.0.iter().map(|(_, parts)| *parts).collect();
        let of: [fn(&StartParts) -> f64; 3] = [|p| p.firmware_s, |p| p.kernel_s, |p| p.agent_s];
        for (id, of) in common::START_PARTS.into_iter().zip(of) {
            means.extend(parts.iter().map(|parts| (id.to_owned(), parts.iter().map(of).sum::<f64>() / count)));
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_means_where_every_guest_has_them() {
        assert!(Starts::default().means().is_empty());
        let parts = |firmware_s, kernel_s, agent_s| Some(StartParts { firmware_s, kernel_s, agent_s });
        let mut starts = Starts(vec![(4.0, parts(1.0, 2.0, 1.0)), (8.0, parts(3.0, 4.0, 1.0))]);
        let means: Vec<f64> = starts.means().into_iter().map(|(_, mean)| mean).collect();
        assert_eq!(means, [6.0, 2.0, 3.0, 1.0]);
        starts.0.push((0.1, None));
        let names: Vec<String> = starts.means().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [common::START_TIME]);
    }
}
