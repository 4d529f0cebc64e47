//! Sizes of guests and lengths of phases, with the file's defaults below those of a case.

use tare_model::guest::{GuestSize, Seccomp};
use tare_model::load::Phases;
use tare_model::units::{ByteSize, Span};

use crate::fields;
use crate::tree::{Cursor, Table};

/// Most CPUs of a guest; what a host has is the plan's business.
const MAX_CPUS: u32 = 4096;
/// Least memory of a guest: the agent, its sample buffers and the kernel's own charges fit.
const MIN_MEMORY: ByteSize = ByteSize(16 << 20);
/// Most memory of a guest: keeps every sum within 64 bits.
const MAX_MEMORY: ByteSize = ByteSize(1 << 47);
/// Longest phase: keeps every sum within 64 bits, and whoever means more has slipped by a unit.
const MAX_SPAN: Span = Span::from_secs(30 * 24 * 3600);
/// Least share that means anything.
const MIN_SHARE: f64 = 0.01;
/// Shortest steady state: below it the driver's own start and stop are part of what is measured.
const MIN_STEADY: Span = Span::from_millis(10);

const STAND_IN_SIZE: GuestSize = GuestSize { cpus: 1, memory: MIN_MEMORY };
const STAND_IN_GUEST: Asked = Asked { size: STAND_IN_SIZE, seccomp: Seccomp::Default };
const STAND_IN_PHASES: Phases =
    Phases { warm_up: Span::ZERO, ramp_up: Span::ZERO, steady_state: MIN_STEADY, ramp_down: Span::ZERO };

/// What is asked of a guest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub size: GuestSize,
    pub seccomp: Seccomp,
}

/// `[guest]`, if it is there.
pub(super) fn default_guest(study: &Table<'_>) -> Option<Asked> {
    study.get("guest").map(|cursor| guest(&cursor, None))
}

/// `[phases]`, if it is there.
pub(super) fn default_phases(study: &Table<'_>) -> Option<Phases> {
    study.get("phases").map(|cursor| phases(&cursor, None))
}

/// The guest of a case: its own fields before the default's.
pub(super) fn case_guest(case: &Table<'_>, default: Option<Asked>) -> Asked {
    match (case.get("guest"), default) {
        (Some(cursor), _) => guest(&cursor, default),
        (None, Some(default)) => default,
        (None, None) => case.require("guest").map_or(STAND_IN_GUEST, |cursor| guest(&cursor, None)),
    }
}

/// The phases of a case: its own fields before the default's.
pub(super) fn case_phases(case: &Table<'_>, default: Option<Phases>) -> Phases {
    match (case.get("phases"), default) {
        (Some(cursor), _) => phases(&cursor, default),
        (None, Some(default)) => default,
        (None, None) => case.require("phases").map_or(STAND_IN_PHASES, |cursor| phases(&cursor, None)),
    }
}

fn guest(cursor: &Cursor<'_>, default: Option<Asked>) -> Asked {
    let Some(table) = cursor.table(fields::GUEST) else { return STAND_IN_GUEST };
    let fallback = default.map_or(Seccomp::Default, |default| default.seccomp);
    let seccomp = table.get("seccomp").and_then(|c| level(&c)).unwrap_or(fallback);
    Asked { size: sized(&table, default.map(|default| default.size)), seccomp }
}

fn level(cursor: &Cursor<'_>) -> Option<Seccomp> {
    let name = cursor.text()?;
    let level = Seccomp::named(name);
    if level.is_none() {
        let known = Seccomp::ALL.map(|(known, _)| format!("`{known}`")).join(" or ");
        cursor.wrong(&format!("is `{name}`, which is no level of the filter"), format!("write {known}"));
    }
    level
}

/// `cpus` and `memory` of a table that has them among its fields.
pub(super) fn sized(table: &Table<'_>, default: Option<GuestSize>) -> GuestSize {
    let field = |key| if default.is_some() { table.get(key) } else { table.require(key) };
    let fallback = default.unwrap_or(STAND_IN_SIZE);
    GuestSize {
        cpus: field("cpus").and_then(|c| c.integer32(1..=MAX_CPUS)).unwrap_or(fallback.cpus),
        memory: field("memory").and_then(|c| memory(&c)).unwrap_or(fallback.memory),
    }
}

/// A share of a whole, as a number.
pub(super) fn share(cursor: &Cursor<'_>) -> Option<f64> {
    let share = cursor.number()?;
    if (MIN_SHARE..=1.0).contains(&share) {
        return Some(share);
    }
    let meant = share / 100.0;
    let help = if (MIN_SHARE..=1.0).contains(&meant) {
        format!("a share, not a percentage: {share} % is {meant}")
    } else {
        "write a share of 1, such as 0.4 for 40 %".to_owned()
    };
    cursor.wrong(&format!("is {share}, and must be from {MIN_SHARE} to 1"), help);
    None
}

/// A size of the host's memory that is not absurd.
pub(super) fn host_memory(cursor: &Cursor<'_>, least: ByteSize, for_what: &str) -> Option<ByteSize> {
    let size: ByteSize = cursor.quantity()?;
    if size < least {
        cursor.wrong(&format!("is {size}, less than the {least} {for_what}"), format!("write \"{least}\" or more"));
    } else if size > MAX_MEMORY {
        cursor.wrong(&format!("is {size}, more than the {MAX_MEMORY} that a host can have"), "is the unit right?");
    }
    Some(size.clamp(least, MAX_MEMORY))
}

fn memory(cursor: &Cursor<'_>) -> Option<ByteSize> {
    let size: ByteSize = cursor.quantity()?;
    if size < MIN_MEMORY {
        let what = format!("is {size}, less than the {MIN_MEMORY} that tare's agent takes in a guest");
        cursor.wrong(&what, "give the guest more memory, such as \"64MiB\"");
    } else if size > MAX_MEMORY {
        cursor.wrong(&format!("is {size}, more than the {MAX_MEMORY} that a guest can have"), "is the unit right?");
    }
    Some(size.clamp(MIN_MEMORY, MAX_MEMORY))
}

fn phases(cursor: &Cursor<'_>, default: Option<Phases>) -> Phases {
    let Some(table) = cursor.table(fields::PHASES) else { return STAND_IN_PHASES };
    let fallback = default.unwrap_or(STAND_IN_PHASES);
    let steady = if default.is_some() { table.get("steady-state") } else { table.require("steady-state") };
    let phase = |key: &str, fallback: Span| table.get(key).and_then(|c| span(&c)).unwrap_or(fallback);
    Phases {
        warm_up: phase("warm-up", fallback.warm_up),
        ramp_up: phase("ramp-up", fallback.ramp_up),
        steady_state: steady.and_then(|c| steady_state(&c)).unwrap_or(fallback.steady_state),
        ramp_down: phase("ramp-down", fallback.ramp_down),
    }
}

fn steady_state(cursor: &Cursor<'_>) -> Option<Span> {
    let steady = span(cursor)?;
    if steady < MIN_STEADY {
        let what = format!("is {steady}, and only steady state is measured: it takes at least {MIN_STEADY}");
        cursor.wrong(&what, "two seconds show a first figure, a minute a steady one: \"2s\", \"60s\"");
    }
    Some(steady)
}

/// A length of time that is not absurd.
pub(super) fn span(cursor: &Cursor<'_>) -> Option<Span> {
    let span: Span = cursor.quantity()?;
    if span > MAX_SPAN {
        cursor.wrong(&format!("is {span}, more than 30 days"), "is the unit right? `m` is minutes, `ms` milliseconds");
        return None;
    }
    Some(span)
}
