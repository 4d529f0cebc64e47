//! What the tests of the controller share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::path::{Path, PathBuf};

use tare_controller::{Cancel, ControllerError, Observer, Registry, RunEnd, RunOptions, run};
use tare_model::Span;
use tare_model::guest::GuestSize;
use tare_model::load::{LoadModel, Phases};
use tare_model::plan::{CpuPlacement, Plan, PlannedTrial};
use tare_model::study::{Case, Neighbours, Placement};
use tare_model::trial::TrialRecord;
use tare_model::units::ByteSize;
use tare_record::{RunFolder, testing};

/// The agent's program: TARE_AGENT, else where cargo puts it.
pub fn agent() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("tare-agent"));
    let path = std::env::var_os("TARE_AGENT").map(PathBuf::from).or_else(beside)?;
    path.exists().then_some(path)
}

/// Two trials of one case, with a neighbour, on the plainest platform that has a link.
pub fn plan() -> Plan {
    let mut plan = testing::plan(1);
    let study = &mut plan.study;
    study.arms.truncate(2);
    for (arm, id) in study.arms.iter_mut().zip(["a", "b"]) {
        (arm.id, arm.label, arm.platform) = (id.into(), id.into(), "native".into());
        arm.options = serde_json::json!({});
    }
    study.baseline = "a".into();
    study.lab.congestion_control = None;
    (study.lab.placement, study.lab.sample_interval) = (Placement::Unpinned, Span::from_millis(50));
    let size = GuestSize { cpus: 1, memory: ByteSize(64 << 20) };
    // Long enough that on a busy host both the driver and the neighbour's busy loops get to work in it.
    let phases = Phases::measuring(Span::from_millis(300));
    let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    let neighbours = Some(Neighbours { count: 1, guest: size });
    study.cases = vec![Case { neighbours, ..Case::new("idle", "rr", load.into(), phases, size) }];
    let trial = |index, arm: &str| PlannedTrial { index, block: 0, case: "idle".into(), arm: arm.into() };
    plan.trials = vec![trial(0, "a"), trial(1, "b")];
    plan.cpus = CpuPlacement { client: Vec::new(), guests: Vec::new(), note: "anywhere".into() };
    plan
}

/// Runs a plan with what this registry has in place of the shipped platforms, and reads what was recorded.
pub fn run_plan(
    plan: &Plan,
    registry: &dyn Registry,
    (out, agent, run_id): (&Path, &Path, &str),
    observer: &dyn Observer,
    cancel: &Cancel,
) -> (Result<RunEnd, ControllerError>, Vec<TrialRecord>) {
    let ended = run(&RunOptions {
        plan,
        source: "",
        out,
        resume: false,
        run_id: run_id.to_owned(),
        reaper: None,
        agent: agent.to_owned(),
        version: "test",
        redact: true,
        alongside: true,
        registry,
        observer,
        cancel,
    });
    // A run that was refused has no folder.
    let records = RunFolder::open(out).map(|folder| folder.trials().unwrap()).unwrap_or_default();
    (ended, records)
}
