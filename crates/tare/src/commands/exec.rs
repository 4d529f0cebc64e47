//! `tare exec`: one command on several arms, without a study file.

mod study;

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use tare_controller::Observer;
use tare_model::findings::Findings;
use tare_model::flag;
use tare_model::metric::common;
use tare_model::trial::{Outcome, TrialRecord};
use tare_platform::registry;
use tare_study::LoadedStudy;

use self::study::{NamedArm, Size, Took};
use crate::args::{ExecArguments, Format, StudyArguments};
use crate::catalog::Registries;
use crate::commands::report;
use crate::commands::run::{self, How};
use crate::exit::{Exit, Failure};
use crate::{output, place};

/// Columns of a report in a text file.
const FILE_WIDTH: usize = 100;

/// Tries the command on every arm, writes the study and runs it.
pub fn command(arguments: &ExecArguments) -> Result<Exit, Failure> {
    let arms = arms(&arguments.on)?;
    let exports = exports(arguments)?;
    names_alone(&arguments.env)?;
    // All that is wrong with the command line is found before anything is started.
    let soonest = Took { command_s: 0.0, around_s: 0.0 };
    let name = loaded(&arms, &Size::of(soonest, arms.len(), arguments)?, arguments)?.study.name;
    let out = arguments.out.clone().unwrap_or_else(|| place::default_folder(&name));
    let asked = StudyArguments::of(&name);
    run::can_be_made(&out)?;
    let cancel = run::stoppable()?;
    let how = How { alongside: arguments.alongside, live: true, ..How::new(&out, &asked, &cancel) };
    let Some(took) = trial_run(&arms, arguments, &how)? else { return Ok(Exit::Interrupted) };
    let loaded = loaded(&arms, &Size::of(took, arms.len(), arguments)?, arguments)?;
    if let Some(file) = &arguments.save {
        save(file, &loaded.source)?;
    }
    let exit = run::execute(loaded, &how)?;
    if exit != Exit::Failure && !exports.is_empty() && out.join(tare_record::layout::FINDINGS).exists() {
        export(&report::analysed(&out, false)?, &exports)?;
    }
    match &arguments.save {
        Some(file) => output::print(&format!("study: {0}; again with `tare run {0}`", file.display()))?,
        None => output::print("to keep it as a study: the same command with `--save study.toml`")?,
    }
    Ok(exit)
}

/// The arms that the user names, the baseline first.
fn arms(on: &[String]) -> Result<Vec<NamedArm>, Failure> {
    let plainest = registry::PLAINEST.map(str::to_owned);
    let on = if on.is_empty() { &plainest } else { on };
    let arms: Vec<NamedArm> = on.iter().map(|word| arm(word.trim())).collect::<Result<_, _>>()?;
    let same = |a: &NamedArm, b: &NamedArm| a.platform == b.platform && a.options == b.options;
    let twice = arms.iter().enumerate().find(|(at, arm)| arms.iter().take(*at).any(|other| same(other, arm)));
    match twice {
        Some((_, arm)) => Err(Failure::new(format!("--on names `{}` twice", arm.label), Exit::Usage)),
        None if arms.len() < 2 => {
            let message = format!("--on names `{}` alone: name what it is compared with, too", on.join(","));
            Err(Failure::new(message, Exit::Usage))
        }
        None => Ok(distinct(arms)),
    }
}

/// The arms with ids of their own: long names are cut, and may then be alike.
fn distinct(mut arms: Vec<NamedArm>) -> Vec<NamedArm> {
    for at in 1..arms.len() {
        let (before, rest) = arms.split_at_mut(at);
        let Some(arm) = rest.first_mut() else { break };
        let taken = |id: &str| before.iter().any(|other| other.id == id);
        let numbered = (2..).map(|n| format!("{}-{n}", arm.id));
        if let Some(id) = std::iter::once(arm.id.clone()).chain(numbered).find(|id| !taken(id)) {
            arm.id = id;
        }
    }
    arms
}

fn arm(word: &str) -> Result<NamedArm, Failure> {
    let Some((entry, options)) = registry::by_word(word) else { return Err(unknown(word)) };
    (entry.check_options)(&options)
        .map_err(|error| Failure::new(format!("--on {word}: {error}; `tare schema {}`", entry.name), Exit::Usage))?;
    Ok(NamedArm { id: study::slug(word), label: word.to_owned(), platform: entry.name, options })
}

fn unknown(word: &str) -> Failure {
    let words = registry::words();
    let name = word.split(':').next().unwrap_or_default();
    let plain = words.iter().map(|word| word.split(':').next().unwrap_or_default());
    let meant = tare_study::nearest(name, plain);
    let meant = meant.map_or_else(String::new, |meant| format!(" Did you mean `{meant}`?"));
    let message = match registry::by_word(name) {
        Some(_) => format!("--on {word}: `{name}` takes nothing behind a colon"),
        None => format!("--on: there is no `{word}`.{meant}"),
    };
    let names = super::wrapped(&words.join(", "), 78, "  names: ", "         ");
    let message = format!("{message}\n{names}  `tare doctor` says which of them work on this host");
    Failure::new(message, Exit::Usage)
}

/// The study, checked.
fn loaded(arms: &[NamedArm], size: &Size, arguments: &ExecArguments) -> Result<LoadedStudy, Failure> {
    let text = study::text(arms, size, arguments);
    tare_study::parse("the study of this command line", &text, &Registries).map_err(|error| output::wrong_study(&error))
}

/// Runs the command once on every arm, in a run that is not kept. `None`: the user stopped it.
///
/// # Errors
/// When the command does not end well on some arm: with its own output.
fn trial_run(arms: &[NamedArm], arguments: &ExecArguments, how: &How<'_>) -> Result<Option<Took>, Failure> {
    output::note(&format!("trying the command once on {}", labels(arms)));
    let failed = |error| Failure::new(format!("the trial run has no folder: {error}"), Exit::Failure);
    let folder = tempfile::Builder::new().prefix("tare-exec-").tempdir().map_err(failed)?;
    let trial = Trial::default();
    let loaded = loaded(arms, &Size::trial(), arguments)?;
    let end = run::perform(loaded, &How { out: &folder.path().join("run"), glance: false, ..*how }, &trial)?;
    if end.interrupted.is_some() && !end.hopeless {
        output::note("stopped: everything was taken down; nothing had been measured yet");
        return Ok(None);
    }
    let records = trial.records.into_inner();
    for record in &records {
        why_not(record).map_or(Ok(()), |reason| Err(did_not_work(arms, record, reason)))?;
    }
    let figures: Vec<String> = arms.iter().filter_map(|arm| figure(arm, &records)).collect();
    output::note(&format!("first run, not counted: {}", figures.join(", ")));
    let sum = |of: fn(&TrialRecord) -> f64| records.iter().map(of).sum::<f64>();
    let command_s = records.iter().filter_map(|record| value(record, common::WALL_TIME)).fold(0.0, f64::max);
    Ok(Some(Took { command_s, around_s: (sum(|record| record.wall_s) - sum(|record| record.load_s)).max(0.0) }))
}

/// Keeps what came of the trial run.
#[derive(Default)]
struct Trial {
    records: RefCell<Vec<TrialRecord>>,
}

impl Observer for Trial {
    fn trial_ended(&self, record: &TrialRecord) {
        self.records.borrow_mut().push(record.clone());
    }
}

fn labels(arms: &[NamedArm]) -> String {
    arms.iter().map(|arm| arm.label.as_str()).collect::<Vec<_>>().join(", ")
}

fn value(record: &TrialRecord, metric: &str) -> Option<f64> {
    match &record.outcome {
        Outcome::Completed(measured) => measured.metrics.get(metric).copied(),
        _ => None,
    }
}

/// What the command came to on an arm.
fn figure(arm: &NamedArm, records: &[TrialRecord]) -> Option<String> {
    let record = records.iter().find(|record| record.planned.arm == arm.id)?;
    let spec = record.metrics.iter().find(|spec| spec.primary)?;
    Some(format!("{} {}", arm.label, tare_report::format::value(value(record, &spec.id)?, &spec.unit).trim_end()))
}

/// Why a trial has no figures, by its own fault.
fn why_not(record: &TrialRecord) -> Option<&str> {
    let other = record.flags.iter().any(|own| own.kind == flag::OTHER_ARM_FAILED);
    match &record.outcome {
        Outcome::Failed { reason, .. } | Outcome::Invalid { reason } if !other => Some(reason),
        _ => None,
    }
}

fn did_not_work(arms: &[NamedArm], record: &TrialRecord, reason: &str) -> Failure {
    let id = &record.planned.arm;
    let label = arms.iter().find(|arm| arm.id == *id).map_or(id, |arm| &arm.label);
    let remedy = "the command runs in a guest of the arm, from its root directory or --directory: its program and files must be there, too";
    Failure::new(
        format!("nothing was measured: the command did not work on `{label}`\n  {reason}\n  remedy: {remedy}"),
        Exit::Failure,
    )
}

/// Refuses `--env NAME=VALUE` without repeating what may be a secret.
fn names_alone(env: &[String]) -> Result<(), Failure> {
    match env.iter().find_map(|given| given.split_once('=')) {
        Some((name, _)) => {
            let message =
                format!("--env {name}=...: give the name alone; tare takes the value from its own environment");
            Err(Failure::new(message, Exit::Usage))
        }
        None => Ok(()),
    }
}

/// Files of the report with their forms, by the ends of their names.
fn exports(arguments: &ExecArguments) -> Result<Vec<(&Path, Format)>, Failure> {
    let form = |file: &'_ Path| match file.extension().and_then(|end| end.to_str()) {
        Some("html") => Some(Format::Html),
        Some("json") => Some(Format::Json),
        Some("md") => Some(Format::Md),
        Some("txt") => Some(Format::Text),
        _ => None,
    };
    let of = |file| {
        let form = form(file).ok_or_else(|| {
            let message =
                format!("--export {}: the end of its name is the form: .html, .json, .md or .txt", file.display());
            Failure::new(message, Exit::Usage)
        });
        Ok((file, form?))
    };
    for file in arguments.export.iter().chain(&arguments.save) {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let message = format!("{} cannot be written: there is no folder {}", file.display(), folder.display());
            return Err(Failure::new(message, Exit::Usage));
        }
    }
    if let Some(file) = arguments.save.as_ref().filter(|file| file.exists()) {
        return Err(Failure::new(
            format!("--save: {} is there already; name another file", file.display()),
            Exit::Usage,
        ));
    }
    arguments.export.iter().map(|file| of(file.as_path())).collect()
}

fn export(findings: &Findings, exports: &[(&Path, Format)]) -> Result<(), Failure> {
    for (file, format) in exports {
        // A file has no colours, whatever the terminal has.
        let text = match format {
            Format::Text => tare_report::terminal(findings, FILE_WIDTH, false),
            other => report::rendered(findings, *other)?,
        };
        std::fs::write(file, text)
            .map_err(|error| Failure::new(format!("--export {}: {error}", file.display()), Exit::Failure))?;
        output::print(&format!("wrote {}", file.display()))?;
    }
    Ok(())
}

/// Writes the study, and never over a file that is there.
fn save(file: &Path, text: &str) -> Result<(), Failure> {
    let written = OpenOptions::new().write(true).create_new(true).open(file);
    written
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .map_err(|error| Failure::new(format!("--save {}: {error}", file.display()), Exit::Failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_of_images_have_short_ids_of_their_own() {
        let image = |version: &str| format!("docker:registry.example/some-organisation/some-service:{version}");
        let arms = arms(&["native".to_owned(), image("1.2.3"), image("1.2.4")]).unwrap();
        let ids: Vec<&str> = arms.iter().map(|arm| arm.id.as_str()).collect();
        assert_eq!(ids, ["native", "docker-registry-example-some-org", "docker-registry-example-some-org-2"]);
        assert_eq!(arms[2].label, image("1.2.4"));
        let twice = super::arms(&[image("1"), image("1")]).unwrap_err();
        assert!(twice.message.contains("twice"), "{}", twice.message);
    }
}
