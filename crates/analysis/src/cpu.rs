//! CPU account of an arm.

use tare_model::count;
use tare_model::findings::ArmCpu;
use tare_model::metric::common;
use tare_model::sample::CpuAccount;
use tare_model::trial::{Measurement, TrialRecord};

use crate::distribution::completed;
use crate::estimate;

/// The mean over an arm's completed trials; `None` when none has an account. A unit of work is an operation, or a byte
/// where the workload counts no operations. With a busy target the guest's CPU is mostly that of its busy loops, so
/// none is given for a unit of work.
pub(crate) fn of_arm(arm: &str, trials: &[&TrialRecord], busy_target: bool) -> Option<ArmCpu> {
    let with_account: Vec<_> = trials.iter().filter_map(|record| Some((record.cpu?, completed(record)?))).collect();
    let n = with_account.len();
    let (first, _) = with_account.first()?;
    let count = |name: &str| -> f64 {
        with_account.iter().map(|(_, m)| m.counts.get(name).copied().unwrap_or(0) as f64).sum::<f64>() / n as f64
    };
    let (operations, bytes) = (count(count::OPERATIONS), count(count::BYTES));
    let (work, unit) = if operations > 0.0 || bytes == 0.0 { (operations, "operation") } else { (bytes, "byte") };
    let demands: Vec<f64> = with_account.iter().filter_map(|(account, m)| demand(account, m, unit)).collect();
    let per_work_s = if busy_target { None } else { estimate::of_values(&demands).map(|estimate| estimate.value) };
    let accounts: Vec<CpuAccount> = with_account.iter().map(|(account, _)| *account).collect();
    let mean = |part: fn(&CpuAccount) -> f64| accounts.iter().map(part).sum::<f64>() / n as f64;
    let account = CpuAccount {
        window_s: mean(|a| a.window_s),
        cpus: first.cpus,
        guest_user_s: mean(|a| a.guest_user_s),
        guest_system_s: mean(|a| a.guest_system_s),
        neighbours_s: mean(|a| a.neighbours_s),
        softirq_s: mean(|a| a.softirq_s),
        irq_s: mean(|a| a.irq_s),
        other_s: mean(|a| a.other_s),
        total_s: mean(|a| a.total_s),
        steal_s: mean(|a| a.steal_s),
        probe_s: mean(|a| a.probe_s),
    };
    Some(ArmCpu { arm: arm.to_owned(), account, work, unit_of_work: unit.to_owned(), per_work_s })
}

/// CPU seconds of one trial for a unit of its work: the metric where the trial has it, so that both agree to the digit.
fn demand(account: &CpuAccount, measurement: &Measurement, unit: &str) -> Option<f64> {
    if let Some(metric) = measurement.metrics.get(common::SERVICE_DEMAND) {
        return Some(*metric);
    }
    let counted = if unit == "byte" { count::BYTES } else { count::OPERATIONS };
    let work = *measurement.counts.get(counted).filter(|n| **n > 0)?;
    Some((account.total_s - account.neighbours_s) / work as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::trial::Outcome;
    use tare_record::testing;

    #[test]
    fn the_mean_is_over_completed_trials_and_work_falls_back_to_bytes() {
        let plan = testing::plan(2);
        let mut trials: Vec<_> = (0..3).map(|index| testing::trial(&plan, index)).collect();
        for (record, total) in trials.iter_mut().zip([2.0, 4.0, 100.0]) {
            record.cpu.as_mut().unwrap().total_s = total;
            if let Outcome::Completed(m) = &mut record.outcome {
                m.counts.insert("operations".to_owned(), 0);
                m.counts.insert("bytes".to_owned(), 1000);
            }
        }
        trials[2].outcome = Outcome::Invalid { reason: "x".to_owned() };
        let cpu = of_arm("native", &trials.iter().collect::<Vec<_>>(), false).unwrap();
        assert_eq!((cpu.account.total_s, cpu.work, cpu.unit_of_work.as_str()), (3.0, 1000.0, "byte"));
        assert_eq!(of_arm("native", &[&trials[2]], false), None);
        let demand = |trial: usize| match &trials[trial].outcome {
            Outcome::Completed(m) => m.metrics[common::SERVICE_DEMAND],
            _ => f64::NAN,
        };
        let both = (demand(0) * demand(1)).sqrt();
        assert!((cpu.per_work_s.unwrap() / both - 1.0).abs() < 1e-9, "as the table of metrics has it");
        assert_eq!(of_arm("native", &trials.iter().collect::<Vec<_>>(), true).unwrap().per_work_s, None);
    }
}
