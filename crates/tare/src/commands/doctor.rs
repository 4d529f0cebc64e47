//! `tare doctor`.

use std::fmt::Write;

use tare_controller::{Examined, PlatformReport, Started};
use tare_model::study::Arm;
use tare_platform::Availability;

use crate::args::{DoctorArguments, StudyArguments};
use crate::exit::{Exit, Failure};
use crate::{output, place, studies};

/// Says what this host can run. `confined` is why no lab can be made here, if that is known already.
pub fn command(arguments: &DoctorArguments, confined: Option<String>) -> Result<Exit, Failure> {
    let what = match &arguments.study {
        Some(study) => arms_of(study)?,
        None => tare_controller::every_platform(),
    };
    let doctor = tare_controller::examine(&what, &place::agent(), &place::new_run_id(), !arguments.quick, confined)
        .map_err(|error| Failure::new(error, Exit::HostUnfit))?;
    let mut text = String::from("Host\n");
    for (name, finding) in &doctor.host {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<22} {finding}");
    }
    text.push_str(if arguments.study.is_some() { "\nArms\n" } else { "\nPlatforms\n" });
    let mut usable = 0;
    for platform in &doctor.platforms {
        usable += usize::from(works(platform));
        describe(&mut text, platform);
    }
    output::print(text.trim_end())?;
    // Of a study every arm is needed; of the platforms, one is enough to measure something.
    let fit = if arguments.study.is_some() { usable == doctor.platforms.len() } else { usable > 0 };
    Ok(if fit { Exit::Success } else { Exit::HostUnfit })
}

/// The arms of a study, as they will be used.
fn arms_of(study: &str) -> Result<Vec<Examined>, Failure> {
    let named = StudyArguments { study: study.to_owned(), scale: None, blocks: None, seed: None, without: Vec::new() };
    let arms = studies::load(&named)?.study.arms;
    let of = |arm: Arm| Examined { name: arm.id, summary: arm.label, platform: arm.platform, options: arm.options };
    Ok(arms.into_iter().filter(|arm| arm.replica_of.is_none()).map(of).collect())
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
    if works(platform) {
        platform.disclosures.iter().for_each(|sentence| detail(sentence));
    }
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
