//! Are percentiles those of the server's own log?

use tare_analysis::Share;
use tare_model::flag;
use tare_model::trial::{Outcome, TrialRecord};
use tare_record::RunFolder;

use super::bar::Bar;
use super::ground::Ground;
use super::study;
use crate::exit::{Exit, Failure};

/// Runs in the short and in the long form.
const RUNS: (u32, u32) = (1, 20);
/// The same percentile by driver and server: the driver's own has the way to the server and back in it.
const PAIRS: [(&str, &str); 3] = [
    ("response_time_p50_s", "service_time_p50_s"),
    ("response_time_p99_s", "service_time_p99_s"),
    ("response_time_p999_s", "service_time_p999_s"),
];
/// How far they may be apart: the larger of a share and a time, seconds.
const SHARE: f64 = 0.01;
const WAY_S: f64 = 100e-6;
/// How often they may be further apart: a wake-up that comes late is on the way back.
const FURTHER: f64 = 0.05;

/// Whether a flag says that the driver, or the server, waited for others.
fn disturbs(flag: &str) -> bool {
    flag::OUTSIDE.contains(&flag) || flag::LIMITED.contains(&flag)
}

/// What a trial's percentiles are compared to, each with whether it is too far off and how far.
fn compared(trial: &TrialRecord) -> Vec<(bool, String)> {
    let Outcome::Completed(measured) = &trial.outcome else { return Vec::new() };
    let of = |id: &str| measured.metrics.get(id).copied();
    let pairs = PAIRS.iter().filter_map(|(driver, server)| {
        let (seen, truth) = (of(driver)?, of(server)?);
        let off = seen - truth;
        let words = format!(
            "{}, {driver}: {:.3} ms, by the server's log {:.3} ms ({:+.0} us)",
            trial.planned.case,
            seen * 1e3,
            truth * 1e3,
            off * 1e6
        );
        Some((off.abs() > (SHARE * truth).max(WAY_S), words))
    });
    pairs.collect()
}

/// Whether drivers report what servers did.
pub fn bars(ground: &Ground<'_>) -> Result<Vec<Bar>, Failure> {
    let (mut off, mut notes) = (Share::default(), Vec::new());
    for run in ground.numbered(RUNS).take_while(|_| ground.goes_on()) {
        let ran = ground.study(&format!("percentiles-{run}"), study::PERCENTILES)?.run()?;
        if let Err(why) = ran.findings() {
            notes.push(why);
            continue;
        }
        let trials = RunFolder::open(&ran.folder).and_then(|folder| folder.trials());
        for trial in trials.map_err(|error| Failure::new(error, Exit::Failure))? {
            if let Some(flag) = trial.flags.iter().find(|flag| disturbs(&flag.kind)) {
                notes.push(format!("run {run}, {}: not counted, for it is flagged {}", trial.planned.case, flag.kind));
                continue;
            }
            let compared = compared(&trial);
            if compared.len() < PAIRS.len() {
                let case = &trial.planned.case;
                notes.push(format!("run {run}, {case}: {} of 3 percentiles can be compared", compared.len()));
            }
            for (wrong, words) in compared {
                off.add(wrong);
                if wrong {
                    notes.push(format!("run {run}, {words}"));
                }
            }
        }
    }
    let statement = "Unless its trial is flagged as disturbed, a percentile is within 1 % or 100 us of the server's own log in at least 95 of 100";
    Ok(vec![Bar::counted("percentiles", statement, (FURTHER, "percentiles"), off, notes)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::testing::{plan, trial};

    #[test]
    fn a_percentile_that_is_too_far_off_is_found_and_one_within_is_not() {
        let mut record = trial(&plan(1), 0);
        let of = |pairs: [f64; 4]| {
            let ids = [PAIRS[0].0, PAIRS[0].1, PAIRS[1].0, PAIRS[1].1];
            ids.iter().zip(pairs).map(|(id, value)| ((*id).to_owned(), value)).collect()
        };
        let Outcome::Completed(measured) = &mut record.outcome else { panic!("{record:?}") };
        // 90 us and 0.9 % are within, 110 us of 5 ms is not.
        measured.metrics = of([1.09e-3, 1e-3, 100.9e-3, 100e-3]);
        let wrong = |record: &TrialRecord| compared(record).iter().map(|(wrong, _)| *wrong).collect::<Vec<_>>();
        assert_eq!(wrong(&record), [false, false]);
        let Outcome::Completed(measured) = &mut record.outcome else { panic!("{record:?}") };
        measured.metrics = of([5.11e-3, 5e-3, 98.9e-3, 100e-3]);
        assert_eq!(wrong(&record), [true, true]);
    }
}
