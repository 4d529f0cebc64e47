//! What a trial did in its turns.

use tare_model::findings::TurnFigure;
use tare_model::metric::{MetricSpec, Unit, common};
use tare_model::plan::Plan;
use tare_model::study::{Case, CaseSchedule};
use tare_model::trial::TrialRecord;
use tare_model::turns::{TrialTurns, TurnCount};

/// What turns can tell of a metric, and whether that is the metric itself: percentiles stand behind the mean. `None` where turns hold
/// nothing of the kind: of commands they have the wall time, and nothing of what these printed; of guests that are made what is compared.
pub(crate) fn figure_of(spec: &MetricSpec, commands: bool) -> Option<(TurnFigure, bool)> {
    if commands {
        let of_guests = [common::STARTS_MEAN, common::TASKS_MEAN].contains(&spec.id.as_str()) && spec.primary;
        return (spec.id == common::WALL_TIME || of_guests).then_some((TurnFigure::MeanResponse, true));
    }
    match &spec.unit {
        Unit::OperationsPerSecond | Unit::Other(_) => Some((TurnFigure::Operations, true)),
        Unit::BitsPerSecond => Some((TurnFigure::Bytes, true)),
        Unit::Seconds => Some((TurnFigure::MeanResponse, spec.id == common::RESPONSE_MEAN)),
        _ => None,
    }
}

/// A figure of one turn: a sum, and what it is divided by.
pub(crate) fn parts(count: &TurnCount, figure: TurnFigure) -> (f64, f64) {
    let seconds = count.measured_ns as f64 * 1e-9;
    match figure {
        TurnFigure::Operations => (count.operations as f64, seconds),
        TurnFigure::Bytes => (count.bytes as f64, seconds),
        TurnFigure::MeanResponse => (count.response_ns as f64 * 1e-9, count.operations as f64),
    }
}

/// Turns with a measured part.
pub(crate) fn measured(taken: &TrialTurns) -> impl Iterator<Item = &TurnCount> {
    taken.done.counts.iter().filter(|count| count.measured_ns > 0)
}

/// The driver's rate in each measured turn, and the name of that series: (nanoseconds of the host's clock, rate).
pub(crate) fn rates(taken: &TrialTurns) -> (&'static str, Vec<(u64, f64)>) {
    let work = |figure| measured(taken).map(|count| parts(count, figure).0).sum::<f64>();
    let bytes = work(TurnFigure::Operations) <= 0.0 && work(TurnFigure::Bytes) > 0.0;
    let (series, figure, each) =
        if bytes { (common::BITS, TurnFigure::Bytes, 8.0) } else { (common::OPERATIONS, TurnFigure::Operations, 1.0) };
    let turns = taken.windows().into_iter().zip(&taken.done.counts);
    let rate = |((_, end), count): ((u64, u64), &TurnCount)| {
        let (work, seconds) = parts(count, figure);
        (seconds > 0.0).then(|| (end, each * work / seconds))
    };
    (series, turns.filter_map(rate).collect())
}

/// The mean response time in each measured turn in which something was done: (nanoseconds of the host's clock, seconds).
pub(crate) fn responses(taken: &TrialTurns) -> Vec<(u64, f64)> {
    let turns = taken.windows().into_iter().zip(&taken.done.counts);
    let mean = |((_, end), count): ((u64, u64), &TurnCount)| {
        let (sum, operations) = parts(count, TurnFigure::MeanResponse);
        (operations > 0.0 && sum > 0.0).then(|| (end, sum / operations))
    };
    turns.filter_map(mean).collect()
}

/// How arms took turns, and why not all together where they took them in pairs; nothing where none did.
pub(crate) fn method(plan: &Plan) -> Vec<String> {
    let in_turns = plan.study.cases.iter().any(|case| case.schedule.turns().is_some()).then(|| {
        "Where arms took turns, all instances of a block were alive at once, and in each round every arm was driven for one short turn, in \
         random order. So all arms saw the same seconds of the host. A trial's value is pooled over its turns: work over the time of its own \
         turns, histograms added up. An operation belongs to the turn in which it began, with all of its time. The unit of analysis remains the \
         block: turns are no repeats, and their number makes no interval narrower. The check for a steady rate goes turn by turn. A trial \
         is flagged where in more than 5 % of its turns operations reached into another arm's turn, and where its guests used more than \
         1 % of a CPU while others had their turns."
            .to_owned()
    });
    let has_commands = |case: &Case| case.schedule.turns().is_some_and(|turns| turns.commands.is_some());
    let commands = plan.study.cases.iter().any(has_commands).then(|| {
        "A turn that is a command is one run of it, and ends with it; the next arm's begins then. A trial's value is the mean over its runs, of the \
         wall time as of each figure that was taken from what the command printed. All runs of a block are in the same instances."
            .to_owned()
    });
    in_turns.into_iter().chain(commands).chain(plan.study.cases.iter().filter_map(in_pairs)).collect()
}

/// How a case was measured whose arms took turns in pairs, and why.
fn in_pairs(case: &Case) -> Option<String> {
    let CaseSchedule::Pairs { pairs, why, .. } = &case.schedule else { return None };
    Some(format!(
        "In the case \u{201c}{}\u{201d} arms took turns in pairs with the baseline, because {why}. For each block of the study it has {pairs} blocks of \
         its own, each with fresh instances of the baseline and of one other arm. An arm is compared with the baseline of its own blocks: as many as \
         the study asks for. The baseline's own figures are those of all these blocks.",
        case.label
    ))
}

/// Wall time of a trial, seconds; of one in turns that of its set, of which each trial has its part.
pub(crate) fn wall_s(record: &TrialRecord) -> f64 {
    record.wall_s * record.turns.as_ref().map_or(1.0, |taken| f64::from(taken.turns.arms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::Better;
    use tare_record::testing;

    fn spec(id: &str, unit: Unit) -> MetricSpec {
        MetricSpec::new(id, "", unit, Better::Lower)
    }

    #[test]
    fn a_percentile_stands_behind_the_mean_and_a_share_behind_nothing() {
        assert_eq!(
            figure_of(&spec(common::RESPONSE_P50, Unit::Seconds), false),
            Some((TurnFigure::MeanResponse, false))
        );
        assert_eq!(
            figure_of(&spec(common::RESPONSE_MEAN, Unit::Seconds), false),
            Some((TurnFigure::MeanResponse, true))
        );
        assert_eq!(figure_of(&spec(common::BITS, Unit::BitsPerSecond), false), Some((TurnFigure::Bytes, true)));
        let orders = Unit::Other("orders/min".to_owned());
        assert_eq!(figure_of(&spec("orders_per_minute", orders), false), Some((TurnFigure::Operations, true)));
        assert_eq!(figure_of(&spec("good_share", Unit::Share), false), None);
        assert_eq!(figure_of(&spec(common::WALL_TIME, Unit::Seconds), true), Some((TurnFigure::MeanResponse, true)));
        assert_eq!(figure_of(&spec("events", Unit::Other("events/s".to_owned())), true), None);
        assert_eq!(figure_of(&spec(common::SERVICE_DEMAND, Unit::CpuSecondsPerOperation), false), None);
    }

    #[test]
    fn the_rate_of_a_turn_is_its_work_over_its_own_time() {
        let mut record = testing::turns_trial(&testing::turns_plan(1), 0);
        let taken = record.turns.as_mut().unwrap();
        let (series, found) = rates(taken);
        assert_eq!((series, found.len()), (common::OPERATIONS, 400));
        assert!((found[0].1 - taken.done.counts[50].operations as f64 / 0.018).abs() < 1e-6);
        assert_eq!(found[0].0, taken.turns.windows(taken.start_ns).nth(50).unwrap().1);
        taken.done.counts.iter_mut().for_each(|count| count.operations = 0);
        let (series, found) = rates(taken);
        assert_eq!(series, common::BITS);
        assert!((found[0].1 - taken.done.counts[50].bytes as f64 * 8.0 / 0.018).abs() < 1e-3);
    }
}
