//! `tare ksm watch`.

use std::time::Instant;

use tare_controller::Cancel;
use tare_memory::Kernel;
use tare_model::units::Span;

use super::look::{HEAD, Look};
use super::unseen;
use crate::args::LineFormat;
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints a line at each interval.
pub fn command(every: Span, format: LineFormat, lasts: Option<Span>) -> Result<Exit, Failure> {
    if every.ns == 0 {
        return Err(Failure::new("--every is no time at all; write `1s`, say", Exit::Usage));
    }
    let json = format == LineFormat::Json;
    let kernel = Kernel::host();
    let look = || Look::take(&kernel).map_err(|error| unseen(&kernel, &error));
    let cancel = Cancel::new();
    let failed = |error| Failure::new(format!("signals cannot be caught: {error}"), Exit::Failure);
    cancel.on_signals_with_message("stopping").map_err(failed)?;
    let began = Instant::now();
    let mut before: Option<Look> = None;
    if !json {
        output::print(HEAD)?;
    }
    for number in 1_u32.. {
        let now = look()?;
        let line = if json { now.json(before.as_ref()).to_string() } else { now.line(before.as_ref()) };
        output::print(&line)?;
        before = Some(now);
        // Lines are due from the start, so that they do not come later and later.
        let due = every.duration().saturating_mul(number);
        let wait = lasts.map_or(due, |lasts| due.min(lasts.duration())).saturating_sub(began.elapsed());
        if cancel.wait(wait).is_some() {
            return Ok(Exit::Interrupted);
        }
        if lasts.is_some_and(|lasts| began.elapsed() >= lasts.duration()) {
            break;
        }
    }
    Ok(Exit::Success)
}
