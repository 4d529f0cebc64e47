//! `tare doctor`.

use serde::Serialize;
use tare_controller::{Examined, Found, May, PlatformReport, Started, WorkloadReport};
use tare_model::Refusal;
use tare_model::study::{Arm, Study};
use tare_report::Page;

use crate::args::{DoctorArguments, Format, StudyArguments};
use crate::commands::{plan, run};
use crate::exit::{Exit, Failure};
use crate::{forms, output, place, said, studies};

/// Where in the cache is all that guests said which did not come up.
const LOGS: &str = "doctor";

/// What of the host decides whether guests have limits.
const FIRST: [&str; 2] = ["runs as", "control groups"];

/// All that was found.
#[derive(Serialize)]
struct Examination {
    /// The study whose arms were examined.
    study: Option<String>,
    /// Platforms, or arms of the study, that can be used.
    usable: usize,
    platforms: Vec<Platform>,
    workloads: Vec<Workload>,
    /// Shipped studies that this host has room and platforms for, or the study that was examined.
    studies: Vec<String>,
    /// The host in general, each as name and finding.
    host: Vec<(String, String)>,
}

/// What was found of a platform, or of an arm.
#[derive(Serialize)]
struct Platform {
    name: String,
    summary: String,
    state: State,
    /// Seconds from creation to agent ready, and their parts where the guest is a machine.
    start_s: Option<f64>,
    firmware_s: Option<f64>,
    kernel_s: Option<f64>,
    agent_s: Option<f64>,
    /// Why it cannot be used.
    reason: Option<String>,
    remedy: Option<String>,
    /// What a reader of its figures must know.
    notes: Vec<String>,
    /// Why its figures are compared with no others.
    not_comparable: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// A guest was ready.
    Works,
    /// Nothing speaks against it; no guest was started.
    LooksUsable,
    NotUsable,
    NotExamined,
}

#[derive(Serialize)]
struct Workload {
    name: String,
    state: State,
    reason: Option<String>,
    remedy: Option<String>,
}

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
        // Before anything of it is run; what is printed besides must stay one document.
        if arguments.shown.format == Format::Text { output::print(&note)? } else { output::note(&note) }
    }
    let what = study.as_ref().map_or_else(tare_controller::every_platform, arms_of);
    let doctor = tare_controller::examine(&what, &place::agent(), &place::new_run_id(), !arguments.quick, confined)
        .map_err(|error| Failure::new(error, Exit::HostUnfit))?;
    let mut platforms: Vec<Platform> = doctor.platforms.iter().map(Platform::of).collect();
    let workloads = study
        .as_ref()
        .map_or_else(tare_controller::every_workload, |study| tare_controller::workloads_of(&study.cases, May::Run));
    let workloads: Vec<Workload> = workloads.into_iter().map(Workload::of).collect();
    let is_fit = fits(study.as_ref(), &platforms, &workloads);
    let run_here = match (&arguments.study, is_fit) {
        (Some(study), true) => vec![study.clone()],
        (None, true) => {
            studies::SHIPPED.iter().map(|own| own.name.to_owned()).filter(|name| plan::fits(name)).collect()
        }
        (_, false) => Vec::new(),
    };
    if study.is_none() {
        platforms
            .extend(tare_controller::on_request().into_iter().map(|(name, summary)| Platform::named(name, summary)));
    }
    let usable = platforms.iter().filter(|own| own.works()).count();
    let (study, host) = (arguments.study.clone(), doctor.host);
    let found = Examination { study, usable, platforms, workloads, studies: run_here, host };
    forms::print(arguments.shown.format, &found, |_| found.page(arguments.verbose))?;
    Ok(if is_fit { Exit::Success } else { Exit::HostUnfit })
}

/// Whether this host can run the study, or, of no study, anything.
fn fits(study: Option<&Study>, platforms: &[Platform], workloads: &[Workload]) -> bool {
    let usable: Vec<&str> = platforms.iter().filter(|own| own.works()).map(|own| own.name.as_str()).collect();
    match study {
        // No arm can do without what a workload needs, whether arms may be left out or not.
        Some(_) if workloads.iter().any(|own| own.state == State::NotUsable) => false,
        // The baseline and something to compare it with.
        Some(study) if study.skip_unavailable => {
            let subject = study.original.iter().flat_map(|original| &original.subject);
            let needed = subject.chain([&study.baseline]);
            needed.into_iter().all(|id| usable.contains(&id.as_str())) && usable.len() > 1
        }
        Some(_) => usable.len() == platforms.len(),
        // One is enough to measure something.
        None => !usable.is_empty(),
    }
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

impl Platform {
    /// One that only a study can say how to reach.
    fn named(name: &str, summary: &str) -> Self {
        Self {
            name: name.to_owned(),
            summary: summary.to_owned(),
            state: State::NotExamined,
            start_s: None,
            firmware_s: None,
            kernel_s: None,
            agent_s: None,
            reason: None,
            remedy: None,
            notes: Vec::new(),
            not_comparable: None,
        }
    }

    fn of(report: &PlatformReport) -> Self {
        let mut own = Self::named(&report.name, &report.summary);
        let shortened = |text: &str| Some(said::shortened(text, LOGS, &report.name));
        own.state = match (&report.usable, &report.started) {
            (Err(_), _) | (_, Some(Err(_))) => State::NotUsable,
            (_, Some(Ok(_))) => State::Works,
            (_, None) => State::LooksUsable,
        };
        match (&report.usable, &report.started) {
            (Err(Refusal { reason, remedy }), _) => {
                (own.reason, own.remedy) = (shortened(reason), Some(remedy.clone()));
            }
            (_, Some(Err(why))) => own.reason = shortened(why).map(|why| format!("no guest came up: {why}")),
            (_, Some(Ok(started))) => {
                own.start_s = Some(started.seconds);
                let parts = started.parts;
                (own.firmware_s, own.kernel_s) = (parts.map(|own| own.firmware_s), parts.map(|own| own.kernel_s));
                own.agent_s = parts.map(|own| own.agent_s);
            }
            (_, None) => {}
        }
        if own.works() {
            let refused = report.started.iter().flatten().flat_map(not_granted);
            own.notes =
                report.disclosures.iter().chain(report.usable.iter().flatten()).cloned().chain(refused).collect();
            own.not_comparable = report.not_comparable.clone();
        }
        own
    }

    /// Whether nothing speaks against using it.
    fn works(&self) -> bool {
        matches!(self.state, State::Works | State::LooksUsable)
    }

    /// What was found, in a few words.
    fn verdict(&self) -> String {
        let apart = if self.not_comparable.is_some() { "; shown in reports, never compared" } else { "" };
        match (self.state, self.start_s) {
            (State::NotUsable, _) => "not usable".to_owned(),
            (State::NotExamined, _) => ON_REQUEST.to_owned(),
            (State::Works, Some(seconds)) => format!("works: a guest was ready in {}{apart}", time(seconds)),
            (State::Works | State::LooksUsable, _) => "looks usable (no guest was started)".to_owned(),
        }
    }
}

const ON_REQUEST: &str = "only a study says what to look at: `tare doctor STUDY`";

impl Workload {
    fn of(report: WorkloadReport) -> Self {
        let (state, refusal) = match report.found {
            Found::Usable => (State::LooksUsable, None),
            Found::OnRequest => (State::NotExamined, None),
            Found::Unusable(refusal) => (State::NotUsable, Some(refusal)),
        };
        let (reason, remedy) = refusal.map(|Refusal { reason, remedy }| (reason, remedy)).unzip();
        Self { name: report.name, state, reason, remedy }
    }
}

impl Examination {
    /// What a user needs first: what can be used, what not and the remedy, and what to do next.
    fn page(&self, verbose: bool) -> Page {
        let mut page = Page::new("What this host can run");
        let what = if self.study.is_some() { "arms" } else { "platforms" };
        let mut platforms: Vec<&Platform> = self.platforms.iter().collect();
        platforms.sort_by_key(|own| !own.works());
        let rows = platforms.iter().map(|own| vec![own.name.clone(), own.verdict()]).collect();
        page.heading(format!("{} of {} {what} usable on this host", self.usable, self.platforms.len()));
        page.rows(&["Name", "What was found"], rows);
        self.workloads(&mut page);
        let refused =
            self.platforms.iter().map(|own| (format!("{}: {}", own.name, own.summary), &own.reason, &own.remedy));
        let refused = refused.chain(self.workloads.iter().map(|own| (own.name.clone(), &own.reason, &own.remedy)));
        let row = |(name, reason, remedy): (String, &Option<String>, &Option<String>)| {
            Some(vec![name, reason.clone()?, remedy.clone().unwrap_or_default()])
        };
        let refused: Vec<Vec<String>> = refused.filter_map(row).collect();
        if !refused.is_empty() {
            page.heading("Not usable, and what would help").records(&["Name", "why", "remedy"], refused);
        }
        let notes = self.notes();
        if verbose {
            page.heading("Worth knowing").records(&["Of", "note"], notes);
            let host = self.host.iter().map(|(name, finding)| vec![name.clone(), finding.clone()]).collect();
            page.heading("Host").rows(&["What", "Finding"], host);
        } else {
            let who = self.host.iter().filter(|(name, _)| FIRST.contains(&name.as_str()));
            page.heading("Host")
                .rows(&["What", "Finding"], who.map(|(name, own)| vec![name.clone(), own.clone()]).collect());
            page.heading(format!(
                "`--verbose` adds {} notes on what the figures of these {what} mean, and more of the host",
                notes.len()
            ));
        }
        self.next(&mut page);
        page
    }

    /// Those that can be used in one line, for there is nothing to be said of each.
    fn workloads(&self, page: &mut Page) {
        let of = |state: State| -> Vec<&str> {
            self.workloads.iter().filter(|own| own.state == state).map(|own| own.name.as_str()).collect()
        };
        let rows =
            [("usable", State::LooksUsable), ("not usable", State::NotUsable), ("not examined", State::NotExamined)];
        let rows = rows.map(|(words, state)| (words, of(state))).into_iter().filter(|(_, names)| !names.is_empty());
        let row = |(words, names): (&str, Vec<&str>)| {
            let why = if words == "not examined" { format!(": {ON_REQUEST}") } else { String::new() };
            vec![words.to_owned(), format!("{}{why}", names.join(", "))]
        };
        page.heading("Workloads").rows(&["What was found", "Workloads"], rows.map(row).collect());
    }

    /// Each sentence once, with whom it is about.
    fn notes(&self) -> Vec<Vec<String>> {
        let mut listed: Vec<(&str, Vec<&str>)> = Vec::new();
        for platform in &self.platforms {
            for sentence in platform.notes.iter().chain(&platform.not_comparable) {
                match listed.iter_mut().find(|(known, _)| known == sentence) {
                    Some((_, names)) if names.contains(&platform.name.as_str()) => {}
                    Some((_, names)) => names.push(&platform.name),
                    None => listed.push((sentence, vec![&platform.name])),
                }
            }
        }
        listed.into_iter().map(|(sentence, names)| vec![names.join(", "), sentence.to_owned()]).collect()
    }

    /// What to do next.
    fn next(&self, page: &mut Page) {
        match (self.studies.first(), &self.study) {
            (Some(first), None) => page
                .heading(format!(
                    "{} of {} shipped studies run here: {}",
                    self.studies.len(),
                    studies::SHIPPED.len(),
                    self.studies.join(", ")
                ))
                .paragraph(format!("next: `tare run {first}`")),
            (Some(first), Some(_)) => page.heading(format!("next: `tare run {first}`")),
            (None, _) => page.heading("No study runs here until one of the remedies above is followed"),
        };
    }
}

fn time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
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
