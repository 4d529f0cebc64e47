//! `tare run`.

use std::path::{Path, PathBuf};

use tare_controller::{Cancel, ControllerError, Observer, RunEnd, RunOptions, Shipped};
use tare_model::study::Study;
use tare_record::{RecordError, RunFolder, layout};
use tare_study::LoadedStudy;

use crate::args::{Format, RunArguments, StudyArguments};
use crate::commands::plan::{Goal, planned};
use crate::commands::report;
use crate::exit::{Exit, Failure};
use crate::glance::Glance;
use crate::live::Live;
use crate::progress::Progress;
use crate::{forms, output, place, said, studies};

/// Runs a study to its report.
pub fn command(arguments: &RunArguments) -> Result<Exit, Failure> {
    let loaded = studies::load(&arguments.study)?;
    let out = arguments.out.clone().unwrap_or_else(|| place::default_folder(&loaded.study.name));
    let cancel = stoppable()?;
    let (resume, redact, alongside) = (arguments.resume, !arguments.no_redact, arguments.alongside);
    let how = How { resume, redact, alongside, ..How::new(&out, &arguments.study, &cancel) };
    execute(loaded, &how)
}

/// How a study is run.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// Run folder.
    pub out: &'a Path,
    /// Whether the folder holds a run to go on with.
    pub resume: bool,
    /// Whether the disclosed environment is redacted.
    pub redact: bool,
    /// Whether other runs may be alive.
    pub alongside: bool,
    /// What the user asked for beside the study.
    pub asked: &'a StudyArguments,
    /// The wish to stop.
    pub cancel: &'a Cancel,
    /// Whether the figures so far are shown while it goes on.
    pub live: bool,
    /// How the caller prints: the report of the trials goes to standard output as text alone, so that another form is one document.
    pub format: Format,
    /// Whether it is looked at how busy others keep this host.
    pub glance: bool,
}

impl<'a> How<'a> {
    /// A run from the beginning that is alone on this host, redacted, and ends with the text of its report.
    pub fn new(out: &'a Path, asked: &'a StudyArguments, cancel: &'a Cancel) -> Self {
        let (resume, redact, alongside, live, glance) = (false, true, false, false, true);
        Self { out, resume, redact, alongside, asked, cancel, live, format: Format::Text, glance }
    }

    /// How a user goes on with the run when it was stopped.
    fn resume_by(&self) -> String {
        let out = self.out.display();
        if self.live {
            format!("`tare run {out}/{} --resume --out {out}`", layout::STUDY)
        } else {
            format!("the same command and `--resume --out {out}`")
        }
    }
}

/// A wish to stop that Ctrl-C expresses.
///
/// # Errors
/// When signals cannot be caught.
pub fn stoppable() -> Result<Cancel, Failure> {
    let cancel = Cancel::new();
    cancel.on_signals().map_err(|error| Failure::new(format!("signals cannot be caught: {error}"), Exit::Failure))?;
    Ok(cancel)
}

/// Runs a study that is loaded, and ends with findings and report.
///
/// # Errors
/// When the run cannot begin or go on; what was acknowledged is in the run folder.
pub fn execute(loaded: LoadedStudy, how: &How<'_>) -> Result<Exit, Failure> {
    let progress = Progress::new(&absolute(how.out));
    let ended = if how.live { perform(loaded, how, &Live::new(&progress)) } else { perform(loaded, how, &progress) };
    progress.finish();
    conclude(how, &ended?)
}

/// Runs a study that is loaded; nothing is analysed.
///
/// # Errors
/// As [`execute`].
pub fn perform(mut loaded: LoadedStudy, how: &How<'_>, observer: &dyn Observer) -> Result<RunEnd, Failure> {
    if !how.resume {
        can_be_made(how.out)?;
    }
    if loaded.draws_seed {
        loaded.study.seed = seed(how);
    }
    let loaded = &loaded;
    // Its secrets are read here, by a run and never by a plan.
    let redactor = tare_controller::redactor(&loaded.study, how.redact);
    let source = tare_study::redacted(&loaded.source, &redactor);
    output::keep_out(tare_controller::redactor(&loaded.study, false));
    let glance = how.glance.then(Glance::begin);
    let alone = tare_study::alone(&loaded.study).map(str::to_owned);
    for note in [runs(&loaded.study), alone, tare_lab::ends_with_session()].iter().flatten() {
        observer.note(note);
    }
    let goal = if how.resume { Goal::Resume } else { Goal::Run };
    let mut plan = planned(loaded, how.out, how.asked, goal)?;
    // Only here the arms are known that are left out, and what their reasons must not hold.
    let shown = redactor.plan(&plan);
    (plan.differences, plan.left_out) = (shown.differences, shown.left_out);
    if let Some(note) = glance.and_then(Glance::note) {
        observer.note(&note);
    }
    let options = RunOptions {
        plan: &plan,
        source: &source,
        out: how.out,
        resume: how.resume,
        run_id: place::new_run_id(),
        reaper: Some(&place::reaper),
        agent: place::agent(),
        version: env!("CARGO_PKG_VERSION"),
        redact: how.redact,
        alongside: how.alongside,
        registry: &Shipped,
        rule: tare_analysis::judge,
        observer,
        cancel: how.cancel,
    };
    tare_controller::run(&options).map_err(|error| failure(&error, &loaded.study.name))
}

/// The seed of a run whose study names none: drawn, or the one that the run began with. It is short, for people will write it down. The run
/// reports a folder that cannot be read: it reads it next.
fn seed(how: &How<'_>) -> u64 {
    let began = how.resume.then(|| RunFolder::open(how.out).ok()).flatten();
    began.map_or_else(|| u64::from(rand::random::<u32>()), |folder| folder.plan().study.seed)
}

/// Which programs the study names by path; they are run on this host.
pub fn runs(study: &Study) -> Option<String> {
    let programs = tare_controller::named_programs(study);
    (!programs.is_empty()).then(|| format!("runs programs that the study names: {}", programs.join(", ")))
}

/// Looks whether a run folder can be made here, before anything is planned or asked of the host. What is in a folder that is there the run
/// looks at itself.
///
/// # Errors
/// When it cannot be made.
pub fn can_be_made(out: &Path) -> Result<(), Failure> {
    let path = absolute(out);
    let Some(there) = path.ancestors().find(|folder| folder.exists()) else { return Ok(()) };
    let refused = |why: String| {
        let message = format!("no run folder can be made at {}: {why}. Name another by --out DIR", out.display());
        Failure::new(message, Exit::Usage)
    };
    if !there.is_dir() {
        return Err(refused(format!("{} is a file", there.display())));
    }
    rustix::fs::access(there, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
        .map_err(|error| refused(format!("{} cannot be written to: {error}", there.display())))
}

/// The exit code that fits an error of the controller's.
fn failure(error: &ControllerError, study: &str) -> Failure {
    let exit = match error {
        ControllerError::Unavailable { .. }
        | ControllerError::NoHosts { .. }
        | ControllerError::Unusable { .. }
        | ControllerError::NoRoom { .. }
        | ControllerError::Lab(_)
        | ControllerError::AnotherRun { .. }
        | ControllerError::DeadRun { .. } => Exit::HostUnfit,
        ControllerError::Registry { .. }
        | ControllerError::OtherPlan { .. }
        | ControllerError::OtherStudy { .. }
        | ControllerError::OtherCpus { .. }
        | ControllerError::Record(
            RecordError::NotEmpty { .. } | RecordError::NotARun { .. } | RecordError::NewerTare { .. },
        ) => Exit::Usage,
        _ => Exit::Failure,
    };
    // What a guest said before the first trial is in no run folder.
    Failure::new(said::shortened(&error.to_string(), "run", study), exit)
}

/// Findings and report of whatever was completed.
fn conclude(how: &How<'_>, end: &RunEnd) -> Result<Exit, Failure> {
    let (out, resume) = (how.out, how.resume_by());
    let print = |text: &str| {
        if how.format == Format::Text {
            return output::print(text);
        }
        output::note(text);
        Ok(())
    };
    if end.completed + end.invalid + end.failed == 0 {
        let Some(reason) = &end.interrupted else {
            print(&format!("no trial was run (the plan holds no trial); {} holds the plan", out.display()))?;
            return Ok(Exit::Failure);
        };
        print(&format!(
            "stopped by {reason}: everything was taken down, and no trial was completed, so none is kept; \
             begin anew with {resume}"
        ))?;
        return Ok(Exit::Interrupted);
    }
    let findings = report::analysed(out, false)?;
    let html = report::write_all(out, &findings)?;
    print(&tare_report::terminal(&findings, forms::width(), report::colour()))?;
    print(&format!("report: {}", absolute(&html).display()))?;
    print(&report::root_hash(&findings))?;
    if let Some(reason) = end.interrupted.as_ref().filter(|_| end.hopeless) {
        print(&format!("stopped by {reason}. Mend the study, or what its guests are made of, and begin a new run"))?;
        return Ok(Exit::Incomplete);
    }
    if let Some(reason) = &end.interrupted {
        print(&format!(
            "stopped by {reason}: everything was taken down, {} trials are kept; \
             go on with {resume}",
            end.completed + end.invalid + end.failed
        ))?;
        return Ok(Exit::Interrupted);
    }
    if end.invalid + end.failed > 0 {
        print(&format!("{} trials failed and {} are invalid: the report lists why", end.failed, end.invalid))?;
        return Ok(Exit::Incomplete);
    }
    Ok(Exit::Success)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
