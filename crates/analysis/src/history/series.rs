//! Runs to series: which runs belong to one, and in which order.

use tare_model::findings::verdict_id;
use tare_model::history::{Effect, EffectSeries, History, HistoryHost, HistoryRun, RunEffects, SeriesPoint};

use super::{host, points};

/// The history of these runs, whatever their order.
pub fn history(runs: &[RunEffects]) -> History {
    let mut runs: Vec<&RunEffects> = runs.iter().collect();
    runs.sort_by_cached_key(|run| {
        (run.started_at.parse::<jiff::Timestamp>().ok(), run.started_at.clone(), run.run.clone())
    });
    let mut hosts: Vec<&[(String, String)]> = Vec::new();
    let mut placed: Vec<Placed<'_>> = Vec::new();
    for run in runs {
        let known = hosts.iter().position(|facts| host::is_same(facts, &run.host));
        let at = known.unwrap_or_else(|| {
            hosts.push(&run.host);
            hosts.len() - 1
        });
        placed.push((at as u32 + 1, run));
    }
    let collected = collected(&placed);
    let series = collected.iter().enumerate().map(|(at, own)| {
        let before = at.checked_sub(1).and_then(|at| collected.get(at)).filter(|before| before.is_same_effect(own));
        own.series(before)
    });
    let mut series: Vec<EffectSeries> = series.collect();
    number_plans(&mut series, &collected);
    History {
        runs: placed.iter().map(|(host, run)| summary(run, *host)).collect(),
        hosts: hosts.iter().zip(1..).map(|(facts, number)| HistoryHost { number, facts: facts.to_vec() }).collect(),
        method: points::method(series.len()),
        series,
    }
}

fn summary(run: &RunEffects, host: u32) -> HistoryRun {
    HistoryRun {
        run: run.run.clone(),
        root_hash: run.root_hash.clone(),
        study: run.study.clone(),
        started_at: run.started_at.clone(),
        tare_version: run.tare_version.clone(),
        host,
        notes: run.notes.clone(),
    }
}

/// A run and the number of its host, from 1.
type Placed<'a> = (u32, &'a RunEffects);

/// The runs of one series, and what each has of the effect.
struct Collected<'a> {
    id: String,
    host: u32,
    points: Vec<(&'a RunEffects, &'a Effect)>,
}

/// The series, those of one effect one after the other.
fn collected<'a>(runs: &[Placed<'a>]) -> Vec<Collected<'a>> {
    let mut all: Vec<Collected<'_>> = Vec::new();
    for (host, run) in runs.iter().copied() {
        for effect in &run.effects {
            let id = verdict_id(effect.case.as_deref(), &effect.arm, &effect.metric.id);
            match all.iter_mut().find(|own| own.id == id && own.host == host && own.takes(run, effect)) {
                Some(own) => own.points.push((run, effect)),
                None => all.push(Collected { id, host, points: vec![(run, effect)] }),
            }
        }
    }
    let first = |own: &Collected<'_>| all.iter().position(|other| other.is_same_effect(own));
    let order: Vec<Option<usize>> = all.iter().map(first).collect();
    let mut ordered: Vec<(Option<usize>, Collected<'_>)> = order.into_iter().zip(all).collect();
    ordered.sort_by_key(|(first, _)| *first);
    ordered.into_iter().map(|(_, own)| own).collect()
}

impl<'a> Collected<'a> {
    fn first(&self) -> &'a RunEffects {
        self.points[0].0
    }

    fn is_same_effect(&self, other: &Self) -> bool {
        self.id == other.id && self.first().study == other.first().study
    }

    /// Whether a further run of its host belongs to the series.
    fn takes(&self, run: &RunEffects, effect: &Effect) -> bool {
        let (first, own) = self.points[0];
        (&first.study, &own.plan, &own.baseline) == (&run.study, &effect.plan, &effect.baseline)
    }

    /// The series, after the one of the same effect `before` it; its plan has no number yet.
    fn series(&self, before: Option<&Self>) -> EffectSeries {
        let (_, latest) = self.points[self.points.len() - 1];
        let point = |(run, effect): &(&RunEffects, &Effect)| SeriesPoint {
            run: run.run.clone(),
            ratio: effect.ratio.clone(),
            fault: effect.fault.clone(),
        };
        let found = points::changes(&self.points);
        EffectSeries {
            id: self.id.clone(),
            study: self.first().study.clone(),
            case: latest.case.clone(),
            case_label: latest.case_label.clone(),
            arm: latest.arm.clone(),
            arm_label: latest.arm_label.clone(),
            baseline: latest.baseline.clone(),
            metric: latest.metric.clone(),
            host: self.host,
            plan: 0,
            split: before.map(|before| self.why_not_one_with(before)),
            points: self.points.iter().map(point).collect(),
            withheld: points::withheld(&self.points),
            change_points: found,
        }
    }

    fn why_not_one_with(&self, before: &Self) -> String {
        let ((run, effect), (other, other_effect)) = (self.points[0], before.points[0]);
        let mut why = Vec::new();
        if self.host != before.host {
            why.push(format!("it ran on another host ({})", points::changed(&other.host, &run.host).join("; ")));
        }
        if effect.plan != other_effect.plan || effect.baseline != other_effect.baseline {
            why.push("its plan differs in what the effect depends on".to_owned());
        }
        format!("A series of its own from run {} on: {}.", run.run, why.join(", and "))
    }
}

/// Numbers the plans of each effect, in order of time.
fn number_plans(series: &mut [EffectSeries], collected: &[Collected<'_>]) {
    let plan = |at: usize| (&collected[at].points[0].1.plan, &collected[at].points[0].1.baseline);
    for at in 0..collected.len() {
        let same = (0..at).filter(|other| collected[*other].is_same_effect(&collected[at]));
        let numbers = same.map(|other| (plan(other) == plan(at), series[other].plan));
        let (known, most) = numbers.fold((None, 0), |(known, most), (is_known, number)| {
            (if is_known { Some(number) } else { known }, most.max(number))
        });
        series[at].plan = known.unwrap_or(most + 1);
    }
}
