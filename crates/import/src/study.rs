//! What studies of all published reports have in common.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tare_model::environment::{Environment, Section};
use tare_model::guest::GuestSize;
use tare_model::layout::Layout;
use tare_model::load::{LoadModel, Phases};
use tare_model::merging::HostMemory;
use tare_model::metric::MetricSpec;
use tare_model::plan::{Cost, CpuPlacement, PLAN_SCHEMA, Plan, PlannedTrial};
use tare_model::published::Published;
use tare_model::study::{Arm, Case, CaseLoad, LabSpec, Placement, Roles, STUDY_SCHEMA, Study};
use tare_model::trial::{Measurement, Outcome, TrialRecord};
use tare_model::{ByteSize, Span};

use crate::error::ImportError;
use crate::table::Table;

/// Platform of every arm that somebody else measured.
pub(crate) const PLATFORM: &str = "published";

/// An arm by its name in the files.
pub(crate) fn arm(id: &str) -> Arm {
    Arm {
        id: id.to_owned(),
        label: id.replace('_', " "),
        platform: PLATFORM.to_owned(),
        options: Value::Null,
        replica_of: None,
        slowed_permille: 0,
        host_memory: HostMemory::default(),
        start: tare_model::start::Start::Cold,
    }
}

/// A case of which nothing but the load and the steady state is known.
pub(crate) fn case(id: &str, label: String, workload: &str, load: CaseLoad, steady_s: u64, guest: GuestSize) -> Case {
    let phases = Phases::measuring(Span::from_secs(steady_s));
    Case { label, parameters: Value::Null, ..Case::new(id, workload, load, phases, guest) }
}

/// A closed loop of clients that do not think.
pub(crate) const fn clients(clients: u32) -> LoadModel {
    LoadModel::Closed { clients, think_time: Span::ZERO }
}

/// A study of one block, with the first arm as the baseline. Imported: lab unknown.
pub(crate) fn study(published: Published, arms: Vec<Arm>, cases: Vec<Case>) -> Study {
    Study {
        schema: STUDY_SCHEMA,
        name: format!("published-{}", published.report),
        question: published.title.clone(),
        blocks: 1,
        spare_blocks: 0,
        precision: None,
        margin: None,
        seed: 0,
        baseline: arms.first().map_or_else(String::new, |arm| arm.id.clone()),
        arms,
        cases,
        lab: LabSpec {
            mtu: 0,
            offloads: false,
            link_rate: None,
            wire: None,
            congestion_control: None,
            placement: Placement::Unpinned,
            sample_interval: Span::ZERO,
        },
        scale: 1.0,
        skip_unavailable: false,
        hosts: Vec::new(),
        roles: Roles::default(),
        trust_domain: None,
        score: None,
        published: Some(published),
        compare_with: None,
        original: None,
    }
}

/// One trial of one arm and case, before it has its place in the plan.
pub(crate) struct ReportedTrial {
    pub case: String,
    pub arm: String,
    pub measurement: Measurement,
    pub metrics: Vec<MetricSpec>,
    /// Length of the measured windows together, seconds; 0 where the report does not tell it.
    pub window_s: f64,
    pub facts: BTreeMap<String, String>,
}

/// The plan and the records of trials that a report tells of, in the order of cases and arms.
pub(crate) fn planned(study: Study, mut reported: Vec<ReportedTrial>) -> (Plan, Vec<TrialRecord>) {
    let place = |trial: &ReportedTrial| {
        let case = study.cases.iter().position(|case| case.id == trial.case);
        (case, study.arms.iter().position(|arm| arm.id == trial.arm))
    };
    reported.sort_by_key(place);
    let records: Vec<TrialRecord> = (0..).zip(reported).map(|(index, trial)| record(index, trial)).collect();
    let trials: Vec<PlannedTrial> = records.iter().map(|record| record.planned.clone()).collect();
    let measuring = Span { ns: (records.iter().map(|record| record.load_s).sum::<f64>() * 1e9) as u64 };
    let plan = Plan {
        schema: PLAN_SCHEMA,
        hash: hash(&study, &trials),
        study,
        cpus: CpuPlacement { client: Vec::new(), guests: Vec::new(), note: "not stated in the report".to_owned() },
        trials,
        sets: Vec::new(),
        layout: Layout::default(),
        cost: Cost { measuring, around: Span::ZERO, memory: ByteSize(0), disk: ByteSize(0) },
        differences: vec![
            "Every figure was published by others and read from their tables: tare measured none of them. What the \
             report does not state, such as CPU accounts, samples and granted resources, is absent."
                .to_owned(),
        ],
        left_out: Vec::new(),
    };
    (plan, records)
}

fn record(index: u32, trial: ReportedTrial) -> TrialRecord {
    TrialRecord {
        planned: PlannedTrial { index, block: 1, case: trial.case, arm: trial.arm },
        started_at: String::new(),
        wall_s: trial.window_s,
        load_s: trial.window_s,
        outcome: Outcome::Completed(trial.measurement),
        metrics: trial.metrics,
        parity: Vec::new(),
        cpu: None,
        window_ns: None,
        turns: None,
        samples: Vec::new(),
        flags: Vec::new(),
        deviations: Vec::new(),
        facts: trial.facts,
    }
}

/// SHA-256, hexadecimal, of the JSON of the study and the order: two imports of the same files have the same.
fn hash(study: &Study, trials: &[PlannedTrial]) -> String {
    let whole = serde_json::to_string(&(PLAN_SCHEMA, study, trials)).unwrap_or_default();
    Sha256::digest(whole).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The disclosure: where the figures are from.
pub(crate) fn environment(published: &Published) -> Environment {
    let mut facts = vec![
        ("report".to_owned(), published.report.clone()),
        ("title".to_owned(), published.title.clone()),
        ("measured by".to_owned(), "others; tare read the figures from their tables".to_owned()),
    ];
    facts.extend(published.files.iter().map(|(name, sha256)| (format!("SHA-256 of {name}"), sha256.clone())));
    Environment { sections: vec![Section { title: "Published report".to_owned(), facts }], ..Environment::default() }
}

/// Most different names of a column: each becomes an arm or a case, and the reports have a dozen.
const MOST_NAMES: usize = 500;

/// Different names of a column in the order in which they first stand.
pub(crate) fn names(table: &Table, column: &str) -> Result<Vec<String>, ImportError> {
    let mut found: Vec<String> = Vec::new();
    let mut known = BTreeSet::new();
    for row in &table.rows {
        let name = table.name_in(row, column)?;
        if !known.insert(name) {
            continue;
        }
        if known.len() > MOST_NAMES {
            let what = format!("this is the {}th different name", known.len());
            let remedy = format!("A report may have {MOST_NAMES} of them at most: is this the right file?");
            return Err(table.wrong(row, column, what, &remedy));
        }
        found.push(name.to_owned());
    }
    Ok(found)
}
