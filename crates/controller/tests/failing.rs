//! A failure on purpose in every phase: the trial tells where and why, the run goes on (or stops for an
//! unclean host), and nothing is left behind.

use std::path::Path;

use crate::common::{plan, ready, run_plan};
use tare_controller::{Cancel, ControllerError, Quiet, Registry, RunEnd};
use tare_model::trial::{Outcome, Phase, TrialRecord};
use tare_testkit::{Failing, Hostile, Mischief, REASON};

/// Runs the plan with what this registry has in place of the shipped platforms, and reads what was recorded.
fn run_with(
    registry: &dyn Registry,
    out: &Path,
    agent: &Path,
    run_id: &str,
) -> (Result<RunEnd, ControllerError>, Vec<TrialRecord>) {
    run_plan(&plan(), registry, (out, agent, run_id), &Quiet, &Cancel::new())
}

#[test]
fn a_failure_in_any_phase_is_reported_and_leaves_nothing_behind() {
    let Some(agent) = ready() else { return };
    for (n, phase) in Phase::ALL.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let run_id = format!("fail-{}-{n}", std::process::id());
        let (ended, records) = run_with(&Failing { phase }, &folder.path().join("run"), &agent, &run_id);
        let outcomes: Vec<Outcome> = records.iter().map(|record| record.outcome.clone()).collect();
        match phase {
            Phase::Teardown => {
                // The next trial must not begin on a host that is not clean.
                assert!(matches!(ended, Err(ControllerError::NotClean { trial: 0, .. })), "{ended:?}");
                assert_eq!(records.len(), 1);
                assert!(records[0].flags.iter().any(|flag| flag.kind == "teardown" && flag.detail.contains(REASON)));
            }
            Phase::Parity => {
                assert_eq!(ended.unwrap().completed, 2, "{outcomes:?}");
                assert!(records.iter().all(|record| record.flags.iter().any(|flag| flag.kind == "parity")));
            }
            Phase::Verify => {
                assert_eq!(ended.unwrap().invalid, 2, "{outcomes:?}");
                let right =
                    |record: &TrialRecord| matches!(&record.outcome, Outcome::Invalid { reason } if reason == REASON);
                assert!(records.iter().all(right), "{records:?}");
            }
            _ => {
                assert_eq!(ended.unwrap().failed, 2, "{phase}: {outcomes:?}");
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
    let Some(agent) = ready() else { return };
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
