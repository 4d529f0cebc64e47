//! What the tests of the controller share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::path::{Path, PathBuf};

use tare_controller::{Cancel, ControllerError, Observer, Registry, RunEnd, RunOptions, run};
use tare_model::Span;
use tare_model::guest::GuestSize;
use tare_model::load::{LoadModel, Phases};
use tare_model::plan::{Cost, CpuPlacement, PLAN_SCHEMA, Plan, PlannedTrial};
use tare_model::study::{Arm, Case, LabSpec, Neighbours, Placement, STUDY_SCHEMA, Study};
use tare_model::trial::TrialRecord;
use tare_model::units::ByteSize;
use tare_record::RunFolder;

/// The agent's program: TARE_AGENT, else where cargo puts it.
pub fn agent() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("tare-agent"));
    let path = std::env::var_os("TARE_AGENT").map(PathBuf::from).or_else(beside)?;
    path.exists().then_some(path)
}

/// Two trials of one case, with a neighbour, on the plainest platform that has a link.
#[expect(clippy::too_many_lines, reason = "one value with all its fields")]
pub fn plan() -> Plan {
    let size = GuestSize { cpus: 1, memory: ByteSize(64 << 20) };
    // Long enough that on a busy host both the driver and the neighbour's busy loops get to work in it.
    let steady_state = Span::from_millis(300);
    let phases = Phases { warm_up: Span::ZERO, ramp_up: Span::ZERO, steady_state, ramp_down: Span::ZERO };
    let arm = |id: &str| Arm {
        id: id.into(),
        label: id.into(),
        platform: "native".into(),
        options: serde_json::json!({}),
        replica_of: None,
        host_memory: tare_model::merging::HostMemory::default(),
    };
    let case = Case {
        drivers: 1,
        guests: 1,
        id: "idle".into(),
        label: "idle".into(),
        workload: "rr".into(),
        parameters: serde_json::json!({}),
        load: LoadModel::Closed { clients: 1, think_time: Span::ZERO },
        phases,
        guest: size,
        neighbours: Some(Neighbours { count: 1, guest: size }),
        busy_target: false,
        qos: Vec::new(),
        density: None,
        capacity: None,
        load_from: None,
        cpu_target: None,
        held_out: false,
        seccomp: tare_model::guest::Seccomp::Default,
        instances: 1,
    };
    let lab = LabSpec {
        mtu: 1500,
        offloads: true,
        congestion_control: None,
        placement: Placement::Unpinned,
        sample_interval: Span::from_millis(50),
    };
    let study = Study {
        schema: STUDY_SCHEMA,
        name: "failing".into(),
        question: "What if?".into(),
        blocks: 1,
        seed: 1,
        baseline: "a".into(),
        arms: vec![arm("a"), arm("b")],
        cases: vec![case],
        lab,
        scale: 1.0,
        skip_unavailable: false,
        client: tare_model::study::ClientHost::Local,
        trust_domain: None,
        published: None,
        score: None,
    };
    let trial = |index, arm: &str| PlannedTrial { index, block: 0, case: "idle".into(), arm: arm.into() };
    Plan {
        schema: PLAN_SCHEMA,
        study,
        hash: "0".repeat(64),
        cpus: CpuPlacement { client: Vec::new(), guests: Vec::new(), note: "anywhere".into() },
        trials: vec![trial(0, "a"), trial(1, "b")],
        cost: Cost { measuring: Span::from_millis(100), around: Span::ZERO, memory: size.memory, disk: size.memory },
        deviations: Vec::new(),
        left_out: Vec::new(),
    }
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
