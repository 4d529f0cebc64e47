//! The fixed words of a report, the same in every output.

use tare_model::findings::Verdict;
use tare_model::load::{Arrivals, LoadModel, Phases};
use tare_model::metric::Better;
use tare_model::study::{Case, CaseSchedule, Guests};
use tare_model::turns::{TurnSpec, Waiting};

use crate::format;

/// A verdict in a word or two.
pub const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "equivalent",
        Verdict::Lead => "lead",
        Verdict::WithinFloor => "within noise floor",
        Verdict::NoDifferenceSeen => "no difference detected",
        Verdict::TooNoisy => "too noisy to tell",
        Verdict::CannotSay => "cannot say",
        Verdict::NoiseFloor => "noise floor",
        Verdict::NotComparable => "not comparable",
    }
}

/// A verdict in a word or two, short enough for a narrow column.
pub const fn verdict_short(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::WithinFloor => "within floor",
        Verdict::NoDifferenceSeen => "none detected",
        Verdict::TooNoisy => "too noisy",
        other => self::verdict(other),
    }
}

/// A text with its first letter large.
pub(crate) fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A sentence with its full stop; nothing of nothing.
pub(crate) fn ended(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Style sheet class of a verdict.
pub(crate) const fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent | Verdict::NoDifferenceSeen | Verdict::WithinFloor => "same",
        Verdict::Lead | Verdict::TooNoisy | Verdict::CannotSay | Verdict::NoiseFloor | Verdict::NotComparable => {
            "unknown"
        }
    }
}

/// Which way is better.
pub const fn better(better: Better) -> &'static str {
    match better {
        Better::Lower => "less is better",
        Better::Higher => "more is better",
    }
}

/// How load is offered, in a few words.
pub(crate) fn load(load: &LoadModel) -> String {
    match load {
        LoadModel::Closed { clients, think_time } => {
            let clients = format::plural(u64::from(*clients), "client", "clients");
            if think_time.ns == 0 {
                format!("closed loop, {clients}")
            } else {
                format!("closed loop, {clients} thinking {think_time}")
            }
        }
        LoadModel::Open { rate, arrivals, connections } => {
            let arrivals = match arrivals {
                Arrivals::Poisson => "Poisson",
                Arrivals::Uniform => "evenly spaced",
            };
            let connections = format::plural(u64::from(*connections), "connection", "connections");
            format!("open loop at {rate}, {arrivals} arrivals, {connections}")
        }
    }
}

/// How load is offered, and by how many drivers where that is not one.
pub(crate) fn load_of_each(each: &LoadModel, guests: Guests) -> String {
    match guests.drivers {
        0 | 1 => load(each),
        n => format!("{n} drivers for each guest, each {}", load(each)),
    }
}

/// `guest`, or how many at one time.
pub(crate) fn guests(case: &Case) -> String {
    match case.load.guests().count {
        0 | 1 => "guest".to_owned(),
        n => format!("{n} guests at the same time, each"),
    }
}

/// The phases that are not empty.
pub(crate) fn phases(phases: &Phases) -> String {
    let all = [
        ("warm-up", phases.warm_up),
        ("ramp-up", phases.ramp_up),
        ("steady state", phases.steady_state),
        ("ramp-down", phases.ramp_down),
    ];
    let shown: Vec<String> =
        all.iter().filter(|(_, span)| span.ns > 0).map(|(name, span)| format!("{name} {span}")).collect();
    shown.join(", ")
}

/// How the arms of a case shared the time of a block, in a sentence.
pub(crate) fn schedule(case: &Case) -> String {
    let (turns, in_pairs) = match &case.schedule {
        CaseSchedule::Trials { why } => return format!("The arms ran one trial after another: {why}."),
        CaseSchedule::Turns(turns) => (turns, String::new()),
        CaseSchedule::Conditions(condition) => return conditions(&condition.turns, case),
        CaseSchedule::Pairs { turns, why, .. } => (
            turns,
            format!(" They took them in pairs with the baseline, each pair in blocks of its own, because {why}."),
        ),
    };
    let measured = match turns.warm_up.ns {
        0 => String::new(),
        _ => format!(" (measured after {})", turns.warm_up),
    };
    let waiting = match turns.waiting {
        Waiting::Idle => "had no load",
        Waiting::Frozen => "were stopped",
    };
    let turn = if turns.commands.is_some() { "one command each".to_owned() } else { turns.turn.to_string() };
    format!(
        "The arms took turns of {turn}{measured} in random order, {} apart, in {} a block; the arms that waited {waiting}.{in_pairs}",
        turns.gap,
        format::plural(turns.rounds(&case.phases).into(), "round", "rounds")
    )
}

/// How the conditions of a guest shared the time of a block, in a sentence.
fn conditions(turns: &TurnSpec, case: &Case) -> String {
    format!(
        "In each block, and on each arm, one and the same guest was driven under all conditions in turns of {} (measured after {}) in random \
         order, {} apart, in {}. What the neighbours do begins in the gap before a turn and ends with it.",
        turns.turn,
        turns.warm_up,
        turns.gap,
        format::plural(turns.rounds(&case.phases).into(), "round", "rounds")
    )
}

/// CPU numbers as people list them: `any`, `0`, `0, 2, 3`.
pub(crate) fn cpus(cpus: &[u32]) -> String {
    if cpus.is_empty() {
        return "any".to_owned();
    }
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
