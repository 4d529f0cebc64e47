//! A failure on purpose in every phase: the trial tells where and why, the run goes on (or stops for an
//! unclean host), and nothing is left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use tare_controller::{Cancel, ControllerError, Quiet, Registry, RunEnd, RunOptions, run};
use tare_model::Span;
use tare_model::guest::GuestSize;
use tare_model::load::{LoadModel, Phases};
use tare_model::plan::{Cost, CpuPlacement, PLAN_SCHEMA, Plan, PlannedTrial};
use tare_model::study::{Arm, Case, LabSpec, Neighbours, Placement, STUDY_SCHEMA, Study};
use tare_model::trial::{Outcome, Phase, TrialRecord};
use tare_model::units::ByteSize;
use tare_record::RunFolder;
use tare_testkit::{Failing, Hostile, Mischief, REASON, skipped};

/// The agent's program: TARE_AGENT, else where cargo puts it.
fn agent() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("tare-agent"));
    let path = std::env::var_os("TARE_AGENT").map(PathBuf::from).or_else(beside)?;
    path.exists().then_some(path)
}

/// Two trials of one case, with a neighbour, on the plainest platform that has a link.
fn plan() -> Plan {
    let size = GuestSize { cpus: 1, memory: ByteSize(64 << 20) };
    let phases =
        Phases { warm_up: Span::ZERO, ramp_up: Span::ZERO, steady_state: Span::from_millis(50), ramp_down: Span::ZERO };
    let arm = |id: &str| Arm {
        id: id.into(),
        label: id.into(),
        platform: "native".into(),
        options: serde_json::json!({}),
        replica_of: None,
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

/// Runs the plan with what this registry has in place of the shipped platforms, and reads what was recorded.
fn run_with(
    registry: &dyn Registry,
    out: &Path,
    agent: &Path,
    run_id: &str,
) -> (Result<RunEnd, ControllerError>, Vec<TrialRecord>) {
    let plan = plan();
    let ended = run(&RunOptions {
        plan: &plan,
        source: "",
        out,
        resume: false,
        run_id: run_id.to_owned(),
        agent: agent.to_owned(),
        version: "test",
        redact: true,
        alongside: true,
        registry,
        observer: &Quiet,
        cancel: &Cancel::new(),
    });
    let records = RunFolder::open(out).unwrap().trials().unwrap();
    (ended, records)
}

#[test]
fn a_failure_in_any_phase_is_told_and_leaves_nothing_behind() {
    let Some(agent) = agent() else { return skipped("there is no tare-agent: build it first") };
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root");
    }
    for (n, phase) in Phase::ALL.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let run_id = format!("fail-{}-{n}", std::process::id());
        let (ended, records) = run_with(&Failing { phase }, &folder.path().join("run"), &agent, &run_id);
        match phase {
            Phase::Teardown => {
                // The next trial must not begin on a host that is not clean.
                assert!(matches!(ended, Err(ControllerError::NotClean { trial: 0, .. })), "{ended:?}");
                assert_eq!(records.len(), 1);
                assert!(records[0].flags.iter().any(|flag| flag.kind == "teardown" && flag.detail.contains(REASON)));
            }
            Phase::Parity => {
                assert_eq!(ended.unwrap().completed, 2);
                assert!(records.iter().all(|record| record.flags.iter().any(|flag| flag.kind == "parity")));
            }
            Phase::Verify => {
                assert_eq!(ended.unwrap().invalid, 2);
                let right =
                    |record: &TrialRecord| matches!(&record.outcome, Outcome::Invalid { reason } if reason == REASON);
                assert!(records.iter().all(right), "{records:?}");
            }
            _ => {
                assert_eq!(ended.unwrap().failed, 2, "{phase}");
                for record in records {
                    let Outcome::Failed { phase: at, reason } = record.outcome else { panic!("{phase}: completed") };
                    // What cannot be sampled is found out when sampling begins.
                    let expected = if phase == Phase::Collect { Phase::Drive } else { phase };
                    assert_eq!(at, expected, "{reason}");
                    assert!(!reason.is_empty());
                }
            }
        }
        assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new(), "after a failure in {phase}");
    }
}

#[test]
fn an_agent_that_turns_against_its_controller_costs_a_trial_and_no_more() {
    let Some(agent) = agent() else { return skipped("there is no tare-agent: build it first") };
    if !rustix::process::geteuid().is_root() {
        return skipped("needs root");
    }
    use Mischief::{Escapes, Flood, Malformed, TooLong};
    for (n, mischief) in [TooLong, Malformed, Flood, Escapes].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let run_id = format!("hostile-{}-{n}", std::process::id());
        let (ended, records) = run_with(&Hostile { mischief }, &folder.path().join("run"), &agent, &run_id);
        assert_eq!(ended.unwrap().failed, 2, "{mischief:?}");
        for record in records {
            let Outcome::Failed { phase, reason } = record.outcome else { panic!("{mischief:?}: completed") };
            assert!(phase == Phase::Prepare && reason.contains(mischief.reason()), "{mischief:?}: {phase}: {reason}");
            assert!(!reason.contains(|c: char| c.is_control() && c != '\n'), "{mischief:?}: {reason:?}");
        }
        assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new(), "{mischief:?}");
    }
}
