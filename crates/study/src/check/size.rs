//! Sizes of guests and lengths of phases, with the file's defaults below those of a case.

use tare_model::guest::{GuestSize, Seccomp};
use tare_model::load::Phases;
use tare_model::units::{ByteSize, Span};

use crate::file;
use crate::language::table::Field;
use crate::language::tree::Cursor;

/// What is asked of a guest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub size: GuestSize,
    pub seccomp: Seccomp,
}

/// What a table says of guests, over what is said for all cases. Without that, the table and its sizes have to be there.
pub(super) fn guest(field: &Field<'_, file::Guest<'_>>, all: Option<Asked>, unsaid: Option<&Cursor<'_>>) -> Asked {
    let size = GuestSize { cpus: 1, memory: ByteSize(16 << 20) };
    let Asked { size, seccomp } = all.unwrap_or(Asked { size, seccomp: Seccomp::Default });
    let Some(guest) = required_without(field, all.is_some(), unsaid) else { return Asked { size, seccomp } };
    if all.is_none() {
        guest.cpus.require();
        guest.memory.require();
    }
    let size = GuestSize { cpus: guest.cpus.or(size.cpus), memory: guest.memory.or(size.memory) };
    Asked { size, seccomp: guest.seccomp.or(seccomp) }
}

/// Phases that hold nothing but a steady state.
pub(super) const fn steady(steady_state: Span) -> Phases {
    let zero = Span::ZERO;
    Phases { warm_up: zero, ramp_up: zero, steady_state, ramp_down: zero }
}

/// What a table says of phases, over what is said for all cases. Without that, the table and its steady state have to be there.
pub(super) fn phases(field: &Field<'_, file::Phases<'_>>, all: Option<Phases>, unsaid: Option<&Cursor<'_>>) -> Phases {
    let below = all.unwrap_or(steady(Span::from_millis(10)));
    let Some(phases) = required_without(field, all.is_some(), unsaid) else { return below };
    if all.is_none() {
        phases.steady_state.require();
    }
    Phases {
        warm_up: phases.warm_up.or(below.warm_up),
        ramp_up: phases.ramp_up.or(below.ramp_up),
        steady_state: phases.steady_state.or(below.steady_state),
        ramp_down: phases.ramp_down.or(below.ramp_down),
    }
}

/// The table, which may be missing only beside a default. Where it is missing everywhere, that is said of the place for all cases.
fn required_without<'f, T>(field: &'f Field<'_, T>, default: bool, unsaid: Option<&Cursor<'_>>) -> Option<&'f T> {
    match unsaid.filter(|_| !field.is_meant()) {
        _ if default => field.value.as_ref(),
        Some(of_all) => {
            of_all.missing();
            None
        }
        None => field.require(),
    }
}
