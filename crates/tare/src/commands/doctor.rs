//! `tare doctor`.

use std::fmt::Write;

use tare_controller::{Examined, Found, May, PlatformReport, Started, WorkloadReport};
use tare_model::Refusal;
use tare_model::study::{Arm, Study};

use crate::args::{DoctorArguments, StudyArguments};
use crate::commands::run;
use crate::exit::{Exit, Failure};
use crate::{output, place, said, studies};

/// Where in the cache is all that guests said which did not come up.
const LOGS: &str = "doctor";

/// Says what this host can run. `confined` is why no lab can be made here, if that is known already.
pub fn command(arguments: &DoctorArguments, confined: Option<String>) -> Result<Exit, Failure> {
    if arguments.again {
        tare_platform::look_again();
    }
    let study = arguments.study.as_deref().map(study_of).transpose()?;
    if let Some(study) = &study {
        output::keep_out(tare_controller::redactor(study, false));
    }
    if let Some(note) = study.as_ref().and_then(run::runs) {
        output::print(&note)?;
    }
    let what = study.as_ref().map_or_else(tare_controller::every_platform, arms_of);
    let doctor = tare_controller::examine(&what, &place::agent(), &place::new_run_id(), !arguments.quick, confined)
        .map_err(|error| Failure::new(error, Exit::HostUnfit))?;
    let mut text = String::from("Host\n");
    for (name, finding) in &doctor.host {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<22} {finding}");
    }
    text.push_str(if study.is_some() { "\nArms\n" } else { "\nPlatforms\n" });
    let widest = doctor.platforms.iter().map(|platform| platform.name.chars().count()).max().unwrap_or(0);
    for platform in &doctor.platforms {
        let _ = writeln!(text, "  {:<widest$}  {}", platform.name, verdict(platform));
    }
    if study.is_none() {
        for (name, _) in tare_controller::on_request() {
            let _ = writeln!(
                text,
                "  {name:<widest$}  not examined: an arm of a study must say which; then `tare doctor STUDY`"
            );
        }
    }
    let workloads = study
        .as_ref()
        .map_or_else(tare_controller::every_workload, |study| tare_controller::workloads_of(&study.cases, May::Run));
    workload_lines(&mut text, &workloads);
    remedies(&mut text, &doctor.platforms);
    worth_knowing(&mut text, &doctor.platforms);
    output::print(text.trim_end())?;
    let usable: Vec<&str> = doctor.platforms.iter().filter(|p| works(p)).map(|p| p.name.as_str()).collect();
    let fit = match &study {
        // The baseline and something to compare it with.
        // No arm can do without what a workload needs, whether arms may be left out or not.
        Some(_) if workloads.iter().any(|report| matches!(report.found, Found::Unusable(_))) => false,
        Some(study) if study.skip_unavailable => usable.contains(&study.baseline.as_str()) && usable.len() > 1,
        Some(_) => usable.len() == doctor.platforms.len(),
        // One is enough to measure something.
        None => !usable.is_empty(),
    };
    Ok(if fit { Exit::Success } else { Exit::HostUnfit })
}

/// The study that the user named.
fn study_of(study: &str) -> Result<Study, Failure> {
    Ok(studies::load(&StudyArguments::of(study))?.study)
}

/// The arms of a study, as they will be used.
fn arms_of(study: &Study) -> Vec<Examined> {
    let of = |arm: &Arm| Examined {
        name: arm.id.clone(),
        summary: arm.label.clone(),
        platform: arm.platform.clone(),
        options: arm.options.clone(),
        merging: arm.host_memory.merging,
    };
    study.arms.iter().filter(|arm| arm.replica_of.is_none()).map(of).collect()
}

/// Whether nothing speaks against using a platform.
fn works(platform: &PlatformReport) -> bool {
    platform.usable.is_ok() && platform.started.as_ref().is_none_or(Result::is_ok)
}

/// What was found, in a line.
fn verdict(platform: &PlatformReport) -> String {
    match (&platform.usable, &platform.started) {
        (Err(_), _) => "not usable".to_owned(),
        (_, Some(Ok(started))) => {
            let apart = if platform.not_comparable.is_some() { "; shown in reports, never compared" } else { "" };
            format!("works: a guest was ready in {}{}{apart}", time(started.seconds), parts(started))
        }
        (_, Some(Err(_))) => "does not work: no guest came up".to_owned(),
        (_, None) => "looks usable (no guest was started)".to_owned(),
    }
}

fn time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

/// Of a machine what the start was made of.
fn parts(started: &Started) -> String {
    started.parts.map_or_else(String::new, |parts| {
        let [firmware, kernel, agent] = [parts.firmware_s, parts.kernel_s, parts.agent_s].map(time);
        format!(" (host and firmware {firmware}, kernel {kernel}, agent {agent})")
    })
}

/// A line a workload, with the remedy where there is something to mend.
fn workload_lines(text: &mut String, workloads: &[WorkloadReport]) {
    text.push_str("\nWorkloads\n");
    let widest = workloads.iter().map(|report| report.name.chars().count()).max().unwrap_or(0);
    for WorkloadReport { name, found } in workloads {
        let state = match found {
            Found::Usable => "usable".to_owned(),
            Found::OnRequest => {
                "not examined: a case of a study must say what it does; then `tare doctor STUDY`".to_owned()
            }
            Found::Unusable(Refusal { reason, remedy }) => {
                let (reason, remedy) = (indented(reason), indented(remedy));
                format!("not usable\n    why:    {reason}\n    remedy: {remedy}")
            }
        };
        let _ = writeln!(text, "  {name:<widest$}  {state}");
    }
}

/// Why each platform that cannot be used cannot, and what would help.
fn remedies(text: &mut String, platforms: &[PlatformReport]) {
    if platforms.iter().all(works) {
        return;
    }
    text.push_str("\nNot usable, and what would help\n");
    for platform in platforms.iter().filter(|platform| !works(platform)) {
        let _ = writeln!(text, "  {}: {}", platform.name, platform.summary);
        if let Err(Refusal { reason, remedy }) = &platform.usable {
            let reason = said::shortened(reason, LOGS, &platform.name);
            let _ = writeln!(text, "    why:    {}", indented(&reason));
            let _ = writeln!(text, "    remedy: {}", indented(remedy));
        }
        if let Some(Err(why)) = &platform.started {
            let why = said::shortened(why, LOGS, &platform.name);
            let _ = writeln!(text, "    why:    {}", indented(&why));
        }
    }
}

/// A text of several lines under what stands before its first.
fn indented(text: &str) -> String {
    text.trim().lines().collect::<Vec<_>>().join("\n            ")
}

/// What a user should know of those that can be used: each sentence once, with whom it is about.
fn worth_knowing(text: &mut String, platforms: &[PlatformReport]) {
    let mut listed: Vec<(String, Vec<&str>)> = Vec::new();
    for platform in platforms.iter().filter(|platform| works(platform)) {
        let notes = platform.usable.iter().flatten();
        let refused = platform.started.iter().flatten().flat_map(not_granted);
        let not_comparable = platform.not_comparable.clone();
        let sentences = platform.disclosures.iter().chain(notes).cloned().chain(refused).chain(not_comparable);
        for sentence in sentences {
            match listed.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, names)) if names.contains(&platform.name.as_str()) => {}
                Some((_, names)) => names.push(&platform.name),
                None => listed.push((sentence, vec![&platform.name])),
            }
        }
    }
    if !listed.is_empty() {
        text.push_str("\nWorth knowing\n");
    }
    for (sentence, names) in listed {
        let _ = writeln!(text, "  {}: {sentence}", names.join(", "));
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
