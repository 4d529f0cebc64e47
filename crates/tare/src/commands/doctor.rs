//! `tare doctor`.

use std::fmt::Write;

use tare_controller::{PlatformReport, Started};
use tare_platform::Availability;

use crate::args::DoctorArguments;
use crate::exit::{Exit, Failure};
use crate::{output, place};

/// Says what this host can run.
pub fn command(arguments: &DoctorArguments) -> Result<Exit, Failure> {
    let doctor = tare_controller::examine(&place::agent(), &place::new_run_id(), !arguments.quick)
        .map_err(|error| Failure::new(error, Exit::HostUnfit))?;
    let mut text = String::from("Host\n");
    for (name, finding) in &doctor.host {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<22} {finding}");
    }
    text.push_str("\nPlatforms\n");
    let mut usable = 0;
    for platform in &doctor.platforms {
        usable += usize::from(works(platform));
        describe(&mut text, platform);
    }
    output::print(text.trim_end())?;
    Ok(if usable == 0 { Exit::HostUnfit } else { Exit::Success })
}

/// Whether nothing speaks against using a platform.
fn works(platform: &PlatformReport) -> bool {
    matches!(platform.availability, Availability::Available { .. })
        && platform.started.as_ref().is_none_or(Result::is_ok)
}

fn describe(text: &mut String, platform: &PlatformReport) {
    let verdict = match (&platform.availability, &platform.started) {
        (Availability::Unavailable { .. }, _) => "not usable".to_owned(),
        (_, Some(Ok(started))) => format!("works: a guest was ready in {:.0} ms", started.seconds * 1e3),
        (_, Some(Err(_))) => "does not work".to_owned(),
        (_, None) => "looks usable (no guest was started)".to_owned(),
    };
    let _ = writeln!(text, "  {:<12} {verdict}", platform.name);
    let mut detail = |line: &str| {
        let _ = writeln!(text, "               {line}");
    };
    match &platform.availability {
        Availability::Unavailable { reason, remedy } => {
            detail(&format!("why: {reason}"));
            detail(&format!("remedy: {remedy}"));
        }
        Availability::Available { notes } => notes.iter().for_each(|note| detail(note)),
    }
    match &platform.started {
        Some(Err(why)) => why.lines().for_each(&mut detail),
        Some(Ok(started)) => not_granted(started).iter().for_each(|line| detail(line)),
        None => {}
    }
}

/// What the kernel did not grant, in words.
fn not_granted(started: &Started) -> Vec<String> {
    started
        .parity
        .iter()
        .filter(|row| !row.equal)
        .map(|row| format!("not granted: {} of {} ({})", row.resource, row.asked, row.note))
        .collect()
}
