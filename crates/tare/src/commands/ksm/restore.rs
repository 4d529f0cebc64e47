//! `tare ksm restore`.

use std::fmt::Write;

use super::holders::{self, Holder};
use crate::commands::reap;
use crate::exit::{Exit, Failure};
use crate::{output, place};

/// Puts back what dead runs had changed.
pub fn command() -> Result<Exit, Failure> {
    let (mut clean, mut any) = (true, false);
    for holder in holders::all()? {
        any = true;
        let run = &holder.run.run_id;
        if holder.is_alive() {
            let pid = holder.pid();
            output::print(&format!(
                "{run} governs these settings and is alive: end process {pid}, and it puts them back"
            ))?;
            clean = false;
        } else if holder.may_be_reaped()? {
            let reaped = tare_controller::reap_run(&holder.run, &place::agent());
            clean &= reaped.report.is_clean();
            let words = if reaped.report.is_clean() { put_back(&holder) } else { reap::summary(&reaped) };
            output::print(&words)?;
        } else {
            // Somebody else has taken it away by now, or is at it.
            output::print(&format!("{run} is being put back by another process"))?;
        }
    }
    if !any {
        output::print("nothing to restore: no run and no `tare ksm tune` of this user has left settings changed")?;
    }
    Ok(if clean { Exit::Success } else { Exit::Failure })
}

/// What holds again.
fn put_back(holder: &Holder) -> String {
    let mut text = format!("put back what {} had changed:", holder.run.run_id);
    for (path, was) in &holder.settings {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {} = {was}", path.display());
    }
    text
}
