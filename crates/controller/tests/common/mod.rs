//! What the tests of the controller share.

use std::path::{Path, PathBuf};
use std::process::Command;

use tare_controller::{Cancel, ControllerError, Observer, Registry, RunEnd, RunOptions, run};
use tare_model::Span;
use tare_model::guest::GuestSize;
use tare_model::load::{LoadModel, Phases};
use tare_model::plan::{CpuPlacement, Plan, PlannedTrial};
use tare_model::study::{Case, Neighbours, Placement};
use tare_model::trial::TrialRecord;
use tare_model::units::ByteSize;
use tare_record::{RunFolder, testing};
use tare_testkit::skipped;

/// The agent's program, TARE_AGENT, else where cargo puts it; says that the test is skipped where it cannot run.
pub fn ready() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("tare-agent"));
    let agent = std::env::var_os("TARE_AGENT").map(PathBuf::from).or_else(beside).filter(|path| path.exists());
    if agent.is_none() {
        skipped("there is no tare-agent: build it first");
        return None;
    }
    if !rustix::process::geteuid().is_root() {
        skipped("needs root");
        return None;
    }
    agent
}

/// Tells a process that is to be killed its run folder.
const KILLED_IN: &str = "TARE_TEST_KILLED_IN";

/// The run folder, in a process that is to be killed: there a test only runs its plan, and then panics with `it was not killed: ` and
/// how the run ended.
pub fn killed_in() -> Option<PathBuf> {
    std::env::var_os(KILLED_IN).map(PathBuf::from)
}

/// Runs the calling test again, as a process that is killed at this line of the journal; false where the run was over before.
pub fn killed_at(line: usize, out: &Path) -> bool {
    // The test harness names the thread after the test.
    let thread = std::thread::current();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", thread.name().unwrap(), "--nocapture"]).env(KILLED_IN, out);
    let output = child.env("TARE_TEST_KILL_AT_LINE", line.to_string()).output().unwrap();
    let killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
    assert!(killed || String::from_utf8_lossy(&output.stderr).contains("it was not killed: Ok"), "{output:?}");
    killed
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
    let trial = |index, arm: &str| PlannedTrial { index, block: 1, case: "idle".into(), arm: arm.into() };
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
        rule: tare_analysis::judge,
        observer,
        cancel,
    });
    // A run that was refused has no folder.
    let records = RunFolder::open(out).map(|folder| folder.trials().unwrap()).unwrap_or_default();
    (ended, records)
}
