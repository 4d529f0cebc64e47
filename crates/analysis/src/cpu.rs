//! CPU account of an arm.

use tare_model::count;
use tare_model::findings::ArmCpu;
use tare_model::metric::common;
use tare_model::sample::CpuAccount;
use tare_model::trial::TrialRecord;

use crate::distribution::completed;
use crate::estimate;

/// The mean over an arm's completed trials; `None` when none has an account. A unit of work is an operation, or a byte
/// where the workload counts no operations. CPU for it is the metric of the trials that have it, so that both agree to the digit.
pub(crate) fn of_arm(arm: &str, trials: &[&TrialRecord]) -> Option<ArmCpu> {
    let with_account: Vec<_> = trials.iter().filter_map(|record| Some((record.cpu?, completed(record)?))).collect();
    let n = with_account.len();
    let (first, _) = with_account.first()?;
    let count = |name: &str| -> f64 {
        with_account.iter().map(|(_, m)| m.counts.get(name).copied().unwrap_or(0) as f64).sum::<f64>() / n as f64
    };
    let (operations, bytes) = (count(count::OPERATIONS), count(count::BYTES));
    let (work, unit) = if operations > 0.0 || bytes == 0.0 { (operations, "operation") } else { (bytes, "byte") };
    let demands = with_account.iter().filter_map(|(_, m)| m.metrics.get(common::SERVICE_DEMAND).copied());
    let per_work_s = estimate::of_values(&demands.collect::<Vec<f64>>()).map(|estimate| estimate.value);
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
        kernel_s: mean(|a| a.kernel_s),
        foreign_s: mean(|a| a.foreign_s),
        total_s: mean(|a| a.total_s),
        steal_s: mean(|a| a.steal_s),
        probe_s: mean(|a| a.probe_s),
    };
    Some(ArmCpu { arm: arm.to_owned(), account, work, unit_of_work: unit.to_owned(), per_work_s })
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
        let cpu = of_arm("native", &trials.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!((cpu.account.total_s, cpu.work, cpu.unit_of_work.as_str()), (3.0, 1000.0, "byte"));
        assert_eq!(of_arm("native", &[&trials[2]]), None);
        let demand = |trial: usize| match &trials[trial].outcome {
            Outcome::Completed(m) => m.metrics[common::SERVICE_DEMAND],
            _ => f64::NAN,
        };
        let both = (demand(0) * demand(1)).sqrt();
        assert!((cpu.per_work_s.unwrap() / both - 1.0).abs() < 1e-9, "as the table of metrics has it");
        for record in &mut trials {
            if let Outcome::Completed(m) = &mut record.outcome {
                m.metrics.remove(common::SERVICE_DEMAND);
            }
        }
        let without = of_arm("native", &trials.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(without.per_work_s, None, "no trial has it: driver and guests share CPUs, or busy loops ran beside");
    }
}
