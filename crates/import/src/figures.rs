//! Figures that a report's text states one by one, with no table of its own.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use tare_model::ByteSize;
use tare_model::guest::GuestSize;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::published::Published;
use tare_model::study::{Case, Study};
use tare_model::trial::Measurement;

use crate::error::ImportError;
use crate::study::{self, ReportedTrial};
use crate::table::{Row, Table};
use crate::web::LINES_MAX;

/// Where the text gives a range, its ends are figures of their own: nothing between them was printed.
const ENDS: [(&str, &str); 2] = [("_least", ", at least"), ("_most", ", at most")];

/// A case as `claims.toml` describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct CaseText {
    /// Id, as in the column `case`.
    id: String,
    label: String,
    workload: String,
    /// CPUs of the guest.
    cpus: u32,
    memory: ByteSize,
    /// Clients at one time.
    #[serde(default = "one")]
    clients: u32,
    /// Length of the steady state, seconds; 0 where it is not stated.
    #[serde(default)]
    steady_s: u64,
}

const fn one() -> u32 {
    1
}

impl CaseText {
    fn case(&self) -> Case {
        let guest = GuestSize { cpus: self.cpus, memory: self.memory };
        let load = study::clients(self.clients).into();
        study::case(&self.id, self.label.clone(), &self.workload, load, self.steady_s, guest)
    }
}

/// A figure as `claims.toml` describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureText {
    label: String,
    better: Better,
}

/// What `claims.toml` describes: cases, figures, arms.
pub(crate) struct Described<'a> {
    pub cases: &'a [CaseText],
    /// By id, as in the column `figure`.
    pub figures: &'a BTreeMap<String, FigureText>,
    /// Arms by id. One of which no figure is printed has no trial.
    pub arms: &'a BTreeMap<String, String>,
}

/// The lines of one report as a study and its trials.
pub(crate) fn imported(
    tables: &[&Table],
    described: &Described<'_>,
    published: Published,
) -> Result<(Study, Vec<ReportedTrial>), ImportError> {
    let report = published.report.clone();
    let mut trials: Vec<ReportedTrial> = Vec::new();
    let mut arms: Vec<String> = Vec::new();
    for table in tables {
        for row in table.of_report(&report) {
            let case = case(table, row, described)?;
            let arm = table.name_in(row, "arm")?;
            if !arms.iter().any(|known| known == arm) {
                arms.push(arm.to_owned());
            }
            let at = trials.iter().position(|own| own.case == case.id && own.arm == arm).unwrap_or_else(|| {
                trials.push(trial(&case.id, arm, case.steady_s));
                trials.len() - 1
            });
            add(table, row, described, &mut trials[at])?;
        }
    }
    arms.extend(described.arms.keys().filter(|id| !arms.contains(id)).cloned().collect::<Vec<_>>());
    let used: BTreeSet<&str> = trials.iter().map(|trial| trial.case.as_str()).collect();
    let cases = described.cases.iter().filter(|case| used.contains(case.id.as_str())).map(CaseText::case).collect();
    let arms = arms.iter().map(|id| study::arm(id)).collect();
    Ok((study::study(published, arms, cases), trials))
}

fn trial(case: &str, arm: &str, steady_s: u64) -> ReportedTrial {
    ReportedTrial {
        case: case.to_owned(),
        arm: arm.to_owned(),
        measurement: Measurement::default(),
        metrics: Vec::new(),
        window_s: steady_s as f64,
        facts: BTreeMap::new(),
    }
}

fn case<'a>(table: &Table, row: &Row, described: &'a Described<'_>) -> Result<&'a CaseText, ImportError> {
    let id = table.name_in(row, "case")?;
    described.cases.iter().find(|case| case.id == id).ok_or_else(|| {
        let what = format!("the case `{id}` is not described");
        table.wrong(row, "case", what, "Describe it beside the file, as `[[report.cases]]` of claims.toml")
    })
}

/// Adds the figures of a line. The first of a trial is its primary metric.
fn add(table: &Table, row: &Row, described: &Described<'_>, trial: &mut ReportedTrial) -> Result<(), ImportError> {
    let id = table.name_in(row, "figure")?;
    let Some(text) = described.figures.get(id) else {
        let what = format!("the figure `{id}` is not described");
        return Err(table.wrong(
            row,
            "figure",
            what,
            "Describe it beside the file, in `[report.figures]` of claims.toml",
        ));
    };
    let (_, unit, factor) = table.unit(row)?;
    let line = table.ordinal(row, "line", LINES_MAX)?;
    let (least, most) = (table.number(row, "least")?, table.number(row, "most")?);
    if least > most {
        let what = format!("{least} is more than {most} in `most`");
        return Err(table.wrong(row, "least", what, "Write the same figure twice where the report prints one"));
    }
    if trial.metrics.iter().any(|spec| spec.id == id || spec.id == format!("{id}{}", ENDS[0].0)) {
        let what = format!("{id} of {} in {} is listed a second time", trial.arm, trial.case);
        return Err(table.wrong(row, "figure", what, "Leave one of the lines in, or give each a case of its own"));
    }
    let mut put = |id: String, label: String, unit: Unit, value: f64| {
        let spec = MetricSpec::new(&id, &label, unit, text.better);
        trial.metrics.push(if trial.metrics.is_empty() { spec.primary() } else { spec });
        trial.facts.insert(format!("line of {id}"), line.to_string());
        trial.measurement.metrics.insert(id, value);
    };
    if table.text(row, "least") == table.text(row, "most") {
        put(id.to_owned(), text.label.clone(), unit, least * factor);
        return Ok(());
    }
    for ((suffix, words), value) in ENDS.into_iter().zip([least, most]) {
        put(format!("{id}{suffix}"), format!("{}{words}", text.label), unit.clone(), value * factor);
    }
    Ok(())
}
