//! `tare calibrate`.

use serde_json::json;
use tare_model::findings::{Estimate, Findings};
use tare_model::sample::Source;
use tare_model::trial::TrialRecord;
use tare_record::RunFolder;
use tare_report::Page;

use crate::args::{CalibrateArguments, StudyArguments};
use crate::catalog::Registries;
use crate::commands::report;
use crate::commands::run::{self, How};
use crate::exit::{Exit, Failure};
use crate::{forms, output, place, studies};

/// Runs the instrument's own study: the platform and the workload that do nothing.
pub fn command(arguments: &CalibrateArguments) -> Result<Exit, Failure> {
    let study = studies::CALIBRATE;
    let loaded = tare_study::parse(study.name, study.text, &Registries).map_err(|error| output::wrong_study(&error))?;
    let asked = StudyArguments { scale: arguments.scale, ..StudyArguments::of(study.name) };
    let loaded = studies::changed(loaded, &asked)?;
    let out = arguments.out.clone().unwrap_or_else(|| place::default_folder(study.name));
    let format = arguments.shown.format;
    let cancel = run::stoppable()?;
    let how = How { alongside: arguments.alongside, format, ..How::new(&out, &asked, &cancel) };
    let exit = run::execute(loaded, &how)?;
    if exit != Exit::Interrupted {
        let folder = RunFolder::open(&out).map_err(|error| Failure::new(error, Exit::Failure))?;
        let trials = folder.trials().map_err(|error| Failure::new(error, Exit::Failure))?;
        let cost = Cost::of(&report::analysed(&out, false)?, &trials);
        let data = json!({ "run": out, "recording_ratio": cost.recording, "probe_cpu_share": cost.probing });
        forms::print(format, &data, |_| cost.page())?;
    }
    Ok(exit)
}

/// What measuring costs.
struct Cost {
    /// Rate over loopback with every operation recorded, over that without.
    recording: Option<Estimate>,
    /// CPU of the host's probe, the most of any trial, as a share of one CPU.
    probing: Option<f64>,
}

impl Cost {
    fn of(findings: &Findings, trials: &[TrialRecord]) -> Self {
        let recorded = rates(findings, "loopback");
        let unrecorded = rates(findings, "loopback-unrecorded");
        let beside = |block: &u32| unrecorded.iter().find(|(other, _)| other == block).map(|(_, without)| *without);
        let pairs: Vec<(f64, f64)> =
            recorded.iter().filter_map(|(block, with)| Some((*with, beside(block)?))).collect();
        let probes = trials.iter().filter_map(probe_share);
        Self { recording: tare_analysis::paired_ratio(&pairs), probing: probes.reduce(f64::max) }
    }

    fn page(&self) -> Page {
        let recording = match &self.recording {
            Some(ratio) => {
                let interval = match (ratio.low, ratio.high) {
                    (Some(low), Some(high)) => format!(" [{:+.2}, {:+.2}]", (low - 1.0) * 100.0, (high - 1.0) * 100.0),
                    _ => String::new(),
                };
                format!("{:+.2} %{interval} of the rate over loopback, {} blocks", (ratio.value - 1.0) * 100.0, ratio.n)
            }
            None => "cannot be computed: too few trials completed".to_owned(),
        };
        let probing = match self.probing {
            Some(most) => format!("at most {:.2} % of one CPU", most * 100.0),
            None => "cannot be computed: no trial was sampled".to_owned(),
        };
        let rows = [["recording every operation", &recording], ["the host's probe", &probing]];
        let mut page = Page::new("What measuring costs");
        page.heading("What measuring costs");
        page.rows(&["What", "Cost"], rows.map(|row| row.map(str::to_owned).to_vec()).to_vec());
        page
    }
}

/// CPU of the host's probe over a trial, as a share of one CPU.
fn probe_share(trial: &TrialRecord) -> Option<f64> {
    let mut samples = trial.samples.iter().filter(|s| s.source == Source::Host && s.series == "probe_cpu_s");
    let first = samples.next()?;
    let last = samples.next_back()?;
    let seconds = last.at_ns.checked_sub(first.at_ns).filter(|ns| *ns > 0)? as f64 / 1e9;
    Some((last.value - first.value) / seconds)
}

/// Transactions in a second, (block, rate), of the baseline in one case.
fn rates(findings: &Findings, case: &str) -> Vec<(u32, f64)> {
    let found = findings.cases.iter().find(|found| found.id == case);
    let metric = found.and_then(|case| case.metrics.iter().find(|metric| metric.spec.primary));
    let arm = metric.and_then(|metric| metric.arms.iter().find(|arm| arm.arm == findings.plan.study.baseline));
    arm.map(|arm| arm.blocks.clone()).unwrap_or_default()
}
