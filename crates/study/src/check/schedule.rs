//! `schedule` and `turns`: whether the arms of a case take turns, and how.

use tare_model::merging::HostMemory;
use tare_model::study::{Arm, Case, CaseLoad, CaseSchedule, LabSpec, Roles};
use tare_model::traits::{Renewed, TurnTraits};
use tare_model::turns::{ROUNDS_MAX, TurnSpec, Waiting};
use tare_model::units::Span;

use super::Able;
use crate::catalog::Catalog;
use crate::file;
use crate::language::shape::Schedule;
use crate::language::table::Field;
use crate::language::tree::Cursor;

/// What is said for all cases.
pub(super) struct OfStudy<'f> {
    schedule: Option<Written<'f, Schedule>>,
    turns: Said<'f>,
    /// The steady state of cases that give no other, where it is right.
    steady_state: Option<Span>,
    /// Why no case of this study can take turns, and what would help.
    apart: Option<(String, &'static str)>,
    /// Load comes from another machine.
    elsewhere: bool,
    /// An arm that is reached over a network that was there before.
    outside: Option<String>,
}

impl<'f> OfStudy<'f> {
    pub(super) fn of(file: &file::Study<'f>) -> Self {
        let cases = file.cases.value.as_deref().unwrap_or_default().iter().filter_map(|case| case.value.as_ref());
        let trials = file.schedule.value == Some(Schedule::Trials);
        if trials
            && file.turns.is_there()
            && cases.map(|case| case.schedule.value).all(|own| own != Some(Schedule::Turns))
        {
            let what = "stands beside `schedule = \"trials\"`, with which no turns are taken";
            file.turns.wrong_key(what, "leave one of them out");
        }
        let steady_state = steady_state(&file.phases);
        let (schedule, turns) = (written(&file.schedule), Said::of(&file.turns));
        Self { schedule, turns, steady_state, apart: None, elsewhere: false, outside: None }
    }

    /// Takes in what the arms are, and from where and over what their load comes.
    pub(super) fn learn(&mut self, arms: &[Arm], way: (&Roles, &LabSpec), catalog: &dyn Catalog) {
        self.apart = apart(arms, way, catalog);
        self.elsewhere = !way.0.drives_locally();
        let outside = arms.iter().find(|arm| catalog.reaches_outside(&arm.platform, &arm.options));
        self.outside = outside.map(|arm| arm.id.clone());
    }

    /// Why guests of a case cannot be stopped while it is the turn of others.
    fn runs_on(&self, case: &str, turns: &TurnTraits) -> Option<String> {
        if !turns.freezes {
            return Some(format!("what runs in the guests of `{case}` has time-outs that go on"));
        }
        self.outside.as_ref().map(|arm| format!("tare cannot stop the processes of `{arm}`"))
    }

    /// Reports what is said of all turns and holds for none of those that are taken.
    pub(super) fn hold_for_none(&self, cases: &[Case]) {
        let taken: Vec<&TurnSpec> = cases.iter().filter_map(|case| case.schedule.turns()).collect();
        if !taken.is_empty() && taken.iter().all(|spec| spec.commands.is_some()) {
            self.turns.without_lengths("these cases");
        }
        if !taken.is_empty() && taken.iter().all(|spec| spec.commands.is_none()) {
            self.turns.without_rounds("these cases");
        }
    }
}

fn steady_state(phases: &Field<'_, file::Phases<'_>>) -> Option<Span> {
    phases.value.as_ref()?.steady_state.value
}

/// A value with its place.
#[derive(Clone)]
struct Written<'f, T> {
    value: T,
    at: Cursor<'f>,
}

fn written<'f, T: Copy>(field: &Field<'f, T>) -> Option<Written<'f, T>> {
    Some(Written { value: field.value?, at: (**field).clone() })
}

/// Why the arms cannot be alive at one time or have no common clock, and what would help.
fn apart(arms: &[Arm], (roles, lab): (&Roles, &LabSpec), catalog: &dyn Catalog) -> Option<(String, &'static str)> {
    if let Some(arm) = arms.iter().find(|arm| arm.host_memory != HostMemory::default()) {
        let why =
            format!("the arm `{}` sets how the whole host treats memory, and others are measured without that", arm.id);
        return Some((why, "leave `merging`, `ballooning` and `huge-pages` out"));
    }
    if !roles.drives_locally() {
        let why = "load comes from another machine, and when a turn begins there is known only as exactly as the way to it allows";
        return Some((why.to_owned(), "write `drivers = [\"local\"]`"));
    }
    if lab.link_rate.is_some() {
        // Measured: bulk data in turns of 50 ms passed a link of 1 Gbit/s at 1.05, one arm after the other at 0.95.
        let why = "the rate of the link is bounded, and what an arm sent in its turn still arrives after it";
        return Some((why.to_owned(), "leave `link-rate` out"));
    }
    let of = |arm: &Arm| catalog.exclusive(&arm.platform, &arm.options).into_iter();
    let owned: Vec<_> = arms.iter().flat_map(|arm| of(arm).map(move |what| (arm, what))).collect();
    owned.iter().enumerate().find_map(|(n, (arm, own))| {
        let (other, (what, _)) = owned[n + 1..].iter().find(|(other, others)| other.id != arm.id && others == own)?;
        let why = format!("`{}` and `{}` have the same {what}, which one guest has at a time", arm.id, other.id);
        Some((why, "give each arm its own; the baseline is repeated unless the study says `noise-floor = false`"))
    })
}

/// Turns where workload and load allow them; otherwise trials, with the reason. What asks for turns in vain is reported.
pub(super) fn of(at: &Cursor<'_>, case: &file::Case<'_>, able: Able<'_>, load: &CaseLoad) -> CaseSchedule {
    let all = &able.context.schedule;
    let own = case.schedule.value.or_else(|| case.turns.is_there().then_some(Schedule::Turns));
    if case.schedule.value.or(all.schedule.as_ref().map(|all| all.value)) == Some(Schedule::Trials) {
        if case.turns.is_there() {
            let help = "leave it out, or write `schedule = \"turns\"` in the case";
            case.turns.wrong_key("stands where the schedule is \"trials\", and no turns are taken", help);
        }
        return CaseSchedule::Trials { why: "the study asks for it".to_owned() };
    }
    let refused = |why: String, help: &str| {
        let (what, leave) =
            (format!("asks for turns, and {why}"), "leave it out: the arms then run one after the other");
        let help = if help.is_empty() { leave.to_owned() } else { format!("{leave}; {help}") };
        match own {
            Some(_) if case.schedule.is_there() => case.schedule.wrong(&what, help),
            Some(_) => case.turns.wrong_key(&what, help),
            None => {
                let what = format!("asks for turns, and `{}` cannot take them: {why}", at.key());
                let help = "leave it out: turns are taken wherever they can be, without being asked for";
                all.schedule.iter().for_each(|all| all.at.wrong(&what, help));
            }
        }
        CaseSchedule::Trials { why }
    };
    let steady_state = steady_state(&case.phases).or(all.steady_state);
    // Of refused parameters nothing is known.
    let (Some(traits), Some(workload), Some(steady_state)) = (able.traits.first(), able.workload, steady_state) else {
        return CaseSchedule::default();
    };
    match load {
        CaseLoad::Density { .. } => return refused("its guests are added one by one".to_owned(), ""),
        CaseLoad::Capacity(_) | CaseLoad::CpuTarget { .. } => {
            return refused("its load is searched for".to_owned(), "a fixed `load` can be offered in turns");
        }
        CaseLoad::Fixed { .. } | CaseLoad::ShareOf { .. } => {}
    }
    let Some(turns) = &traits.turns else {
        let others = able.context.others("turns can be had with", |traits| traits.turns.is_some());
        let why = traits.no_turns.map_or_else(|| format!("`{workload}` is not driven in turns"), str::to_owned);
        return refused(why, others.trim_start_matches("; "));
    };
    // How long turns are is no wish for them on hosts that a study of turns was not written for (`--hosts`).
    if let Some((why, _)) = all.apart.as_ref().filter(|_| all.elsewhere && !asked(case, all)) {
        return CaseSchedule::Trials { why: why.clone() };
    }
    spec(at, case, all, turns, steady_state).map_or_else(|(why, help)| refused(why, help), CaseSchedule::Turns)
}

/// Whether turns are asked for by their name.
fn asked(case: &file::Case<'_>, all: &OfStudy<'_>) -> bool {
    case.schedule.is_there() || all.schedule.is_some()
}

/// How the arms of a case take turns.
///
/// # Errors
/// Why they cannot, and what would help.
fn spec(
    at: &Cursor<'_>,
    case: &file::Case<'_>,
    all: &OfStudy<'_>,
    turns: &TurnTraits,
    steady_state: Span,
) -> Result<TurnSpec, (String, &'static str)> {
    if let Some(apart) = &all.apart {
        return Err(apart.clone());
    }
    let stops = Stops { busy: case.busy_target.or(false), runs_on: all.runs_on(at.key(), turns) };
    if let Some(why) = stops.runs_on.as_ref().filter(|_| stops.busy) {
        let why = format!("its guests are busy also when it is the turn of others, and {why}");
        return Err((why, "leave `busy-target` out"));
    }
    let mut of_study = all.turns.clone();
    // What is said for all cases is not meant for guests that have to be stopped.
    of_study.waiting.take_if(|waiting| stops.busy && waiting.value == Waiting::Idle);
    let own = Said::of(&case.turns);
    if let Some(spec) = own.of_commands(&of_study, at.key(), turns, &stops) {
        return Ok(spec);
    }
    let said = own.over(of_study);
    let renews = turns.renewed == Some(Renewed::Connections);
    if let Some(arm) = all.outside.as_ref().filter(|_| renews && said.length.is_none()) {
        let why =
            format!("each turn has new connections, and nobody knows how soon those to `{arm}` reach their speed");
        return Err((why, "write a `length` of turns that is long against ten round trips"));
    }
    match said.spec(at.key(), turns, &stops, steady_state) {
        Some(spec) if spec.rounds_in(steady_state) > u64::from(ROUNDS_MAX / 2) => {
            let why = format!("its steady state of {steady_state} holds more turns of {} than are recorded", spec.turn);
            Err((why, "write a longer `length` of turns"))
        }
        Some(spec) => Ok(spec),
        None => Err((too_short(steady_state), "measure longer, or write a `length` of turns")),
    }
}

/// Why no turns are taken in so short a steady state.
pub(crate) fn too_short(steady_state: Span) -> String {
    format!("its steady state of {steady_state} is too short for ten rounds of turns")
}

/// Whether guests have to be stopped between their turns, and can be.
struct Stops {
    /// They are busy by themselves.
    busy: bool,
    /// Why they cannot be stopped.
    runs_on: Option<String>,
}

/// How turns are written: for all cases, or for one over that.
#[derive(Clone)]
struct Said<'f> {
    length: Option<Written<'f, Span>>,
    gap: Option<Written<'f, Span>>,
    warm_up: Option<Written<'f, f64>>,
    rounds: Option<Written<'f, u32>>,
    waiting: Option<Written<'f, Waiting>>,
}

impl<'f> Said<'f> {
    fn of(field: &Field<'f, file::Turns<'f>>) -> Self {
        let turns = field.value.as_ref();
        Self {
            length: turns.and_then(|turns| written(&turns.length)),
            gap: turns.and_then(|turns| written(&turns.gap)),
            warm_up: turns.and_then(|turns| written(&turns.warm_up)),
            rounds: turns.and_then(|turns| written(&turns.rounds)),
            waiting: turns.and_then(|turns| written(&turns.waiting)),
        }
    }

    fn over(self, all: Self) -> Self {
        Self {
            length: self.length.or(all.length),
            gap: self.gap.or(all.gap),
            warm_up: self.warm_up.or(all.warm_up),
            rounds: self.rounds.or(all.rounds),
            waiting: self.waiting.or(all.waiting),
        }
    }

    /// The turns of a case that are commands; `None` where turns have a length.
    fn of_commands(&self, all: &Self, case: &str, traits: &TurnTraits, stops: &Stops) -> Option<TurnSpec> {
        let Some(commands) = traits.commands else {
            self.without_rounds(&format!("`{case}`"));
            return None;
        };
        self.without_lengths(&format!("`{case}`"));
        let said = self.clone().over(all.clone());
        let waiting = said.waiting(case, stops);
        let commands = Some(said.rounds.map_or(commands, |rounds| rounds.value));
        let TurnTraits { turn, warm_up, gap, .. } = *traits;
        Some(TurnSpec { turn, warm_up, gap, waiting, commands })
    }

    /// Reports what says how long turns are that end with their commands.
    fn without_lengths(&self, whose: &str) {
        let lengths = [&self.length, &self.gap].map(|length| length.as_ref().map(|length| &length.at));
        for at in lengths.into_iter().chain([self.warm_up.as_ref().map(|warm_up| &warm_up.at)]).flatten() {
            let what =
                format!("says how long turns are, and those of {whose} are commands, each of which ends its turn");
            at.wrong_key(&what, "leave it out; `rounds` says how many commands an arm runs in a block");
        }
    }

    /// Reports a number of rounds for turns that have a length.
    fn without_rounds(&self, whose: &str) {
        if let Some(rounds) = &self.rounds {
            let what = format!(
                "says how many commands an arm runs, and the turns of {whose} have a length: rounds follow from the phases"
            );
            rounds.at.wrong_key(&what, "leave it out; a longer `steady-state` has more rounds");
        }
    }

    /// The turns of a case; `None` where nothing says how long they are, and the steady state is too short for any.
    fn spec(&self, case: &str, traits: &TurnTraits, stops: &Stops, steady_state: Span) -> Option<TurnSpec> {
        let waiting = self.waiting(case, stops);
        let spec = TurnSpec { turn: traits.turn, warm_up: traits.warm_up, gap: traits.gap, waiting, commands: None };
        let spec = match &self.length {
            Some(Written { value: turn, at }) => {
                not_longer(*turn, at, case, steady_state);
                let share = traits.warm_up.ns as f64 / traits.turn.ns.max(1) as f64;
                TurnSpec { turn: *turn, warm_up: part(*turn, share), ..spec }
            }
            None => spec.shortened(steady_state)?,
        };
        let warm_up = self.warm_up.as_ref().map_or(spec.warm_up, |share| part(spec.turn, share.value));
        Some(TurnSpec { warm_up, gap: self.gap.as_ref().map_or(spec.gap, |gap| gap.value), ..spec })
    }

    /// What an arm does meanwhile. Busy guests have to be stopped.
    fn waiting(&self, case: &str, stops: &Stops) -> Waiting {
        let Some(Written { value, at }) = &self.waiting else {
            return if stops.busy { Waiting::Frozen } else { Waiting::Idle };
        };
        match (value, &stops.runs_on) {
            (Waiting::Frozen, Some(why)) => {
                at.wrong(&format!("is \"frozen\", and {why}"), "leave it out, or write \"idle\"");
            }
            (Waiting::Idle, _) if stops.busy => {
                let what = format!("is \"idle\", and the guests of `{case}` are busy by themselves (`busy-target`)");
                at.wrong(&what, "leave it out, or write \"frozen\"");
            }
            (Waiting::Frozen | Waiting::Idle, _) => {}
        }
        *value
    }
}

/// The turns of a case's conditions, with what is not written taken from `traits`; `None` where its steady state does not hold two of
/// them.
pub(super) fn of_conditions(
    case: &file::Case<'_>,
    all: &OfStudy<'_>,
    traits: &TurnTraits,
    steady_state: Span,
) -> Option<TurnSpec> {
    let own = Said::of(&case.turns);
    own.without_rounds("conditions");
    if let Some(waiting) = &own.waiting {
        let what = "says what arms do that are not in turn, and here conditions take turns: an arm has one guest for all of them";
        waiting.at.wrong_key(what, "leave it out");
    }
    let said = own.over(all.turns.clone());
    let turn = said.length.map_or(traits.turn, |length| length.value);
    let share = said.warm_up.map_or(traits.warm_up.ns as f64 / traits.turn.ns.max(1) as f64, |share| share.value);
    let gap = said.gap.map_or(traits.gap, |gap| gap.value);
    let spec = TurnSpec { turn, warm_up: part(turn, share), gap, waiting: Waiting::Idle, commands: None };
    (spec.rounds_in(steady_state) >= TurnSpec::FEWEST_OF_CONDITIONS).then_some(spec)
}

fn not_longer(turn: Span, at: &Cursor<'_>, case: &str, steady_state: Span) {
    if turn > steady_state {
        let what = format!("is {turn}, longer than the steady state of `{case}` ({steady_state})");
        let tenth = Span::from_millis((steady_state.ns / 10_000_000).max(1));
        at.wrong(&what, format!("write \"{tenth}\" or less: ten rounds and more see all that the host does"));
    }
}

/// A share of a length of time.
fn part(of: Span, share: f64) -> Span {
    Span { ns: (of.ns as f64 * share) as u64 }
}
