//! What a scale-up came to.

use std::collections::BTreeMap;

use tare_model::density::{ScaleUp, StopKind, Stopped, metric};
use tare_model::load::LoadModel;
use tare_model::trial::{Measurement, Outcome, Phase};

use super::Ascending;
use super::level::Best;
use crate::trial::{Gathered, Stop};

impl Ascending<'_> {
    /// The trial's outcome, from all that was seen.
    ///
    /// # Errors
    /// When no number of guests was driven to its end.
    pub(super) fn outcome(mut self, gathered: &mut Gathered) -> Result<Outcome, Stop> {
        let last = self.levels.last().map_or(0, |level| level.guests);
        let stopped = self.stopped.take().unwrap_or_else(|| Stopped {
            kind: StopKind::End,
            guests: last,
            detail: "the last number of the series was reached".to_owned(),
        });
        for (kind, levels, detail) in std::mem::take(&mut self.flags) {
            let levels: Vec<String> = levels.iter().map(ToString::to_string).collect();
            let plural = if levels == ["1"] { "guest" } else { "guests" };
            gathered.flag(&kind, format!("at {} {plural}: {detail}", levels.join(", ")));
        }
        let Some(best) = self.best.take() else {
            return Err(Stop { phase: Phase::Drive, reason: stopped.detail });
        };
        let offered_per_guest_per_s = self.trial.task.load.map(|load| load.rate_per_s).or(match self.trial.load {
            LoadModel::Open { rate, .. } => Some(rate.0),
            LoadModel::Closed { .. } => None,
        });
        let levels = std::mem::take(&mut self.levels);
        let course = self.carrier.take().map_or_else(Vec::new, |carrier| carrier.watch.end());
        let tile: Vec<String> = self.spec.tile.iter().map(|guest| guest.name.clone()).collect();
        // Members of a tile have rates of their own.
        let offered_per_guest_per_s = offered_per_guest_per_s.filter(|_| tile.is_empty());
        let scale_up = ScaleUp { levels, stopped, course, offered_per_guest_per_s, tile };
        Ok(outcome_of(best, scale_up, gathered))
    }
}

/// The figures of the largest number that held, with the whole scale-up. A host that was measured and carries not one guest
/// as asked is an answer, too; one whose guests did wrong work is none.
fn outcome_of(best: Best, scale_up: ScaleUp, gathered: &mut Gathered) -> Outcome {
    let held = scale_up.held();
    gathered.facts.extend(best.apart.facts);
    gathered.samples.extend(best.apart.samples);
    gathered.cpu = best.apart.cpu;
    gathered.window_ns = best.apart.window_ns;
    gathered.facts.insert("the scale-up stopped".to_owned(), scale_up.stopped.detail.clone());
    if held == 0 && scale_up.stopped.kind == StopKind::Wrong {
        return Outcome::Invalid { reason: scale_up.stopped.detail };
    }
    let mut measurement =
        if best.held { best.measurement } else { Measurement { metrics: BTreeMap::new(), ..Measurement::default() } };
    measurement.metrics.insert(metric::HELD.to_owned(), f64::from(held));
    if !scale_up.tile.is_empty() {
        measurement.metrics.insert(metric::TILES_HELD.to_owned(), f64::from(held) / scale_up.tile.len() as f64);
    }
    measurement.scale_up = Some(scale_up);
    Outcome::Completed(measurement)
}
