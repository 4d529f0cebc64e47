//! Everything that another person needs to judge the run or to repeat it.

use std::collections::BTreeMap;

use serde::Serialize;
use tare_model::findings::Findings;
use tare_model::plan::CpuPlacement;
use tare_model::precision::{CaseBlocks, is_spared};
use tare_model::study::{Attach, Case, LabSpec, Placement};

use super::account;
use super::hardware;
use super::setting::load;
use super::table::{Cell, Column, Table};
use super::{case_label, density};
use crate::format;
use crate::plot::arms::Arms;
use crate::words;

/// The disclosure.
#[derive(Debug, Serialize)]
pub(crate) struct Disclosure {
    /// The run and its lab; of figures that others published, which files they were read from.
    pub(crate) run: Vec<Table>,
    pub(crate) arms: Table,
    pub(crate) cases: Table,
    pub(crate) environment: Vec<Table>,
    /// The host's devices.
    pub(crate) hardware: Vec<Table>,
    /// The machines beside the host, each with its tables.
    pub(crate) machines: Vec<(String, Vec<Table>)>,
    /// What driver and guest of each arm said of themselves.
    pub(crate) facts: Vec<Table>,
    pub(crate) redacted: bool,
    /// The order of trials, a row a block.
    pub(crate) order: Option<Table>,
}

impl Disclosure {
    pub(crate) fn new(findings: &Findings, arms: &Arms) -> Self {
        let published = findings.plan.study.published.is_some();
        // Nobody here knows the lab, the host and the order of what others measured.
        let run = if published {
            vec![facts("The import", import_facts(findings))]
        } else {
            vec![facts("The run", run_facts(findings)), facts("The lab", lab_facts(findings))]
        };
        Self {
            run,
            arms: arms_table(findings),
            cases: cases_table(findings),
            environment: sections(findings, |_| !published),
            hardware: hardware::tables("", &findings.environment.hardware),
            machines: findings.environment.machines.iter().map(hardware::machine).collect(),
            facts: if published { Vec::new() } else { account::facts(findings, arms) },
            redacted: findings.environment.redacted,
            order: order(findings, arms).filter(|_| !published),
        }
    }
}

/// The sections of the environment whose title is wanted.
pub(crate) fn sections(findings: &Findings, wanted: impl Fn(&str) -> bool) -> Vec<Table> {
    let sections = findings.environment.sections.iter().filter(|section| wanted(&section.title));
    sections.map(|section| facts(&section.title, section.facts.clone())).collect()
}

/// A table of names and values.
pub(super) fn facts(caption: &str, facts: Vec<(String, String)>) -> Table {
    let mut table = Table::new(caption, vec![Column::text("Fact"), Column::text("Value")]);
    table.rows = facts.into_iter().map(|(name, value)| vec![Cell::text(name), Cell::text(value)]).collect();
    table
}

fn run_facts(findings: &Findings) -> Vec<(String, String)> {
    let (run, plan) = (&findings.run, &findings.plan);
    let study = &plan.study;
    let finished = run.finished_at.clone().unwrap_or_else(|| "cut short".to_owned());
    let facts = [
        ("study", study.name.clone()),
        ("run id", run.id.clone()),
        ("root hash", run.root_hash.clone()),
        ("tare", run.tare_version.clone()),
        ("plan, SHA-256", plan.hash.clone()),
        ("seed of the order and of the drivers", study.seed.to_string()),
        ("first trial began", run.started_at.clone()),
        ("last trial ended", finished),
        ("trials planned", format::count(u64::from(run.planned))),
        ("trials completed", format::count(u64::from(run.completed))),
        ("wall time of all trials", format::wall_time(run.wall_s)),
        ("of which load", format::wall_time(run.load_s)),
        ("blocks", if study.is_open_ended() { super::trust::blocks(findings) } else { study.blocks.to_string() }),
        ("scale of all phases", format::trimmed(study.scale)),
        ("baseline", study.baseline.clone()),
        ("measuring, as planned", format::wall_time(plan.cost.measuring.as_secs_f64())),
        ("around it, as planned", format::wall_time(plan.cost.around.as_secs_f64())),
        ("memory promised at most", plan.cost.memory.to_string()),
        ("disk needed at most", plan.cost.disk.to_string()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn import_facts(findings: &Findings) -> Vec<(String, String)> {
    let facts = [
        ("study", findings.plan.study.name.clone()),
        ("run id", findings.run.id.clone()),
        ("root hash", findings.run.root_hash.clone()),
        ("tare that read the figures", findings.run.tare_version.clone()),
        ("plan, SHA-256", findings.plan.hash.clone()),
        ("baseline", findings.plan.study.baseline.clone()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// On whose CPUs frames should be received; the parity tables say what was granted.
fn receive_steering(cpus: &CpuPlacement, attach: Attach) -> String {
    if attach != Attach::Bridge {
        "none: what comes over the card is received as the card is set".to_owned()
    } else if cpus.are_separate() {
        let (guests, client) = (words::cpus(&cpus.guests), words::cpus(&cpus.client));
        format!("what guests receive on {guests}, what the driver receives on {client}")
    } else {
        "none: driver and guests share CPUs, so there is no CPU time of an operation".to_owned()
    }
}

fn lab_facts(findings: &Findings) -> Vec<(String, String)> {
    let LabSpec { mtu, offloads, link_rate, wire, congestion_control, placement, sample_interval } =
        &findings.plan.study.lab;
    let cpus = &findings.plan.cpus;
    let placement = match placement {
        Placement::Separate => "driver and guests on CPUs of their own".to_owned(),
        Placement::SameCpu => "everything on one CPU".to_owned(),
        Placement::Unpinned => "the scheduler decides".to_owned(),
        Placement::Explicit { client_cpus, guest_cpus } => {
            format!("as listed: driver {}, guests {}", words::cpus(client_cpus), words::cpus(guest_cpus))
        }
    };
    let congestion_control =
        congestion_control.clone().unwrap_or_else(|| "the host's own (see the environment)".to_owned());
    let facts = [
        ("MTU", format!("{mtu} B")),
        ("offloads", if *offloads { "on" } else { "off" }.to_owned()),
        (
            "rate of the link asked",
            link_rate.map_or_else(|| "not bounded".to_owned(), |rate| format!("{rate} each way")),
        ),
        (
            "wire",
            wire.as_ref().map_or_else(
                || "none: inside this host".to_owned(),
                |wire| match wire.attach {
                    Attach::Bridge => format!("{}, with the lab's bridge on it", wire.interface),
                    Attach::Macvlan => format!("{}, with a macvlan for each guest", wire.interface),
                },
            ),
        ),
        ("congestion control", congestion_control),
        ("placement asked", placement),
        ("driver's CPUs", words::cpus(&cpus.client)),
        ("guests' CPUs", words::cpus(&cpus.guests)),
        ("placement, how it came about", cpus.note.clone()),
        ("receive steering asked", receive_steering(cpus, findings.plan.study.lab.attach())),
        ("probes sample every", sample_interval.to_string()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn arms_table(findings: &Findings) -> Table {
    let study = &findings.plan.study;
    let mut columns = ["Arm", "Id", "Platform", "Role", "Options"].map(Column::text).to_vec();
    let asked = study.arms.iter().any(|arm| !arm.host_memory.is_as_found());
    if asked {
        columns.push(Column::text("The host's memory"));
    }
    let starts = study.arms.iter().any(|arm| !arm.start.is_cold());
    if starts {
        columns.push(Column::text("Guests that are started"));
    }
    let mut table = Table::new("Arms", columns);
    for arm in &study.arms {
        let role = match &arm.replica_of {
            Some(of) => format!("repeats {of} to measure the noise floor"),
            None if arm.id == study.baseline => "baseline".to_owned(),
            None if arm.slowed_permille > 0 => format!("positive control: {}", arm.slowed()),
            None => "compared".to_owned(),
        };
        let mut row = vec![
            Cell::text(&arm.label),
            Cell::code(&arm.id),
            Cell::text(&arm.platform),
            Cell::text(role),
            Cell::code(arm.options.to_string()),
        ];
        if asked {
            let stopped = study.merges() && arm.host_memory.merging.is_none();
            let words = stopped.then(|| "merging stopped".to_owned()).into_iter().chain(arm.host_memory.words());
            let words: Vec<String> = words.collect();
            row.push(if words.is_empty() { Cell::text("as found") } else { Cell::text(words.join("; ")) });
        }
        if starts {
            row.push(Cell::text(arm.start.words().unwrap_or_else(|| "from nothing".to_owned())));
        }
        table.rows.push(row);
    }
    table
}

fn cases_table(findings: &Findings) -> Table {
    let columns = ["Case", "Workload", "Load", "Guest", "Around it"].map(Column::text).to_vec();
    let mut table = Table::new("Cases", columns);
    for case in &findings.plan.study.cases {
        table.rows.push(vec![
            Cell::with_note(&case.label, &case.id),
            Cell { code: true, note: case.parameters.to_string(), ..Cell::text(&case.workload) },
            Cell::with_note(load(case, findings), words::phases(&case.phases)),
            Cell::text(guest(case)),
            Cell::text(around(case)),
        ]);
    }
    table
}

fn guest(case: &Case) -> String {
    let size = format!("{}, {}", format::plural(u64::from(case.guest.cpus), "CPU", "CPUs"), case.guest.memory);
    if let Some(guests) = density::guests(case, &size) {
        return guests;
    }
    if case.load.guests().count > 1 { format!("{} of {size}", words::guests(case)) } else { size }
}

fn around(case: &Case) -> String {
    let mut said = Vec::new();
    if let Some(neighbours) = &case.neighbours {
        let count = format::plural(u64::from(neighbours.count), "busy neighbour", "busy neighbours");
        let cpus = format::plural(u64::from(neighbours.guest.cpus), "CPU", "CPUs");
        said.push(format!("{count} of {cpus}, {}", neighbours.guest.memory));
    }
    if case.busy_target {
        said.push("busy loops in the measured guest".to_owned());
    }
    for qos in &case.qos {
        said.push(format!("objective: {} bound {}", qos.metric, format::trimmed(qos.bound)));
    }
    if said.is_empty() { "nothing".to_owned() } else { said.join("; ") }
}

/// The trials in the order in which they were planned, a row a block.
fn order(findings: &Findings, arms: &Arms) -> Option<Table> {
    let mut table = Table::new("Order of trials", ["Block", "Trials in order"].map(Column::text).to_vec());
    let ended: Vec<CaseBlocks> = findings.cases.iter().filter_map(|case| case.blocks.clone()).collect();
    let mut blocks: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let plan = &findings.plan;
    for trial in plan.trials.iter().filter(|trial| !is_spared(plan, &ended, trial)) {
        let label = format!("{}: {}", case_label(findings, &trial.case), arms.label(&trial.arm));
        blocks.entry(plan.study_block(trial)).or_default().push(label);
    }
    let row = |(block, trials): (u32, Vec<String>)| vec![Cell::text(block.to_string()), Cell::text(trials.join("; "))];
    table.rows.extend(blocks.into_iter().map(row));
    table.filled()
}
