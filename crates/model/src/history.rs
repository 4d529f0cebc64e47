//! Runs of studies over time: what a history keeps of each run, and what `tare history show --format json` prints.

use serde::{Deserialize, Serialize};

use crate::findings::{Estimate, Verdict};
use crate::metric::MetricSpec;

/// What a history keeps of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEffects {
    /// Run id.
    pub run: String,
    /// The hash by which a copy of the run folder is known: 64 hexadecimal digits.
    pub root_hash: String,
    /// Name of the study.
    pub study: String,
    /// First trial's begin, UTC, RFC 3339.
    pub started_at: String,
    /// Version of tare that ran it.
    pub tare_version: String,
    /// The fingerprint of the host and of the machines beside it, as name and value: runs that differ in one of these facts are in series of
    /// their own.
    pub host: Vec<(String, String)>,
    /// Facts that may change within a series, such as the kernel's release.
    pub notes: Vec<(String, String)>,
    /// Its effects, one an arm and metric of each case.
    pub effects: Vec<Effect>,
}

/// An arm over the baseline of the same run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Case id; `None` of what is the guest's own over all cases.
    pub case: Option<String>,
    /// The case for people.
    pub case_label: String,
    /// Arm id.
    pub arm: String,
    /// The arm for people.
    pub arm_label: String,
    /// Baseline arm id.
    pub baseline: String,
    /// The metric. It is primary where the effect answers the study.
    pub metric: MetricSpec,
    /// Digest of the parts of the plan on which the effect depends, apart from the arm: 64 hexadecimal digits. Runs that differ in it are in
    /// series of their own.
    pub plan: String,
    /// Digest of the arm's platform and options. It may change within a series.
    pub arm_plan: String,
    /// The arm's value over the baseline's.
    pub ratio: Estimate,
    /// Why no verdict may rest on the effect, if there is a reason.
    pub fault: Option<String>,
}

/// Runs over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The runs, in order of time.
    pub runs: Vec<HistoryRun>,
    /// The hosts that they ran on, in order of their first runs.
    pub hosts: Vec<HistoryHost>,
    /// One entry an effect, plan and host: in the order of the studies, those of one effect in order of time.
    pub series: Vec<EffectSeries>,
    /// How change points were looked for, and how often equal runs show one, in paragraphs.
    pub method: Vec<String>,
}

/// A run of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRun {
    /// Run id.
    pub run: String,
    /// See [`RunEffects::root_hash`].
    pub root_hash: String,
    /// Name of the study.
    pub study: String,
    /// First trial's begin, UTC, RFC 3339.
    pub started_at: String,
    /// Version of tare that ran it.
    pub tare_version: String,
    /// Number of its host, from 1.
    pub host: u32,
    /// See [`RunEffects::notes`].
    pub notes: Vec<(String, String)>,
}

/// A host of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryHost {
    /// From 1.
    pub number: u32,
    /// See [`RunEffects::host`].
    pub facts: Vec<(String, String)>,
}

/// One effect over runs of one plan on one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectSeries {
    /// [`crate::findings::verdict_id`] of the effect.
    pub id: String,
    /// Name of the study.
    pub study: String,
    /// Case id; `None` of what is the guest's own over all cases.
    pub case: Option<String>,
    /// The case for people, as the latest run has it.
    pub case_label: String,
    /// Arm id.
    pub arm: String,
    /// The arm for people, as the latest run has it.
    pub arm_label: String,
    /// Baseline arm id.
    pub baseline: String,
    /// The metric. It is primary where the effect answers the study.
    pub metric: MetricSpec,
    /// Number of the host, from 1.
    pub host: u32,
    /// Number of the plan among those of this effect, from 1.
    pub plan: u32,
    /// Why it is not one with the series of the same effect before it, in a sentence.
    pub split: Option<String>,
    /// One entry a run, in order of time.
    pub points: Vec<SeriesPoint>,
    /// Why no change can be found in it, if there is a reason.
    pub withheld: Option<String>,
    /// Where the effect changed, in order of time.
    pub change_points: Vec<ChangePoint>,
}

/// The effect in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Run id.
    pub run: String,
    /// The arm's value over the baseline's.
    pub ratio: Estimate,
    /// Why the run does not count in the search for changes, if there is a reason.
    pub fault: Option<String>,
}

/// A run from which on an effect is another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// The last run before it.
    pub before: String,
    /// The first run after it.
    pub after: String,
    /// Runs from the change before, or from the first, to `before`.
    pub runs_before: u32,
    /// Runs from `after` to the next change, or to the last.
    pub runs_after: u32,
    /// The effect after it over the effect before it. The interval does not know that the place was chosen because the two differ there.
    pub ratio: Estimate,
    /// Probability of such a difference of two sets of so many equal runs, by the test that chose the point.
    pub p_equal: f64,
    /// Whether the arm does better or worse from there on; a lead where the interval does not exclude that nothing changed.
    pub verdict: Verdict,
    /// What else differs between the two runs, a sentence each.
    pub differences: Vec<String>,
    /// All of it in a sentence.
    pub sentence: String,
}

/// A time as files have it (UTC, RFC 3339), to the minute and for people: `2026-01-02 03:04 UTC`. Another text stays as it is.
pub fn minute(time: &str) -> String {
    match (time.get(..10), time.get(10..11), time.get(11..16)) {
        (Some(day), Some("T"), Some(minute)) if time.ends_with('Z') => format!("{day} {minute} UTC"),
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_read_to_the_minute() {
        for (time, said) in [
            ("2026-01-02T03:04:05.123456789Z", "2026-01-02 03:04 UTC"),
            ("2026-01-02T03:04:05Z", "2026-01-02 03:04 UTC"),
            ("2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05+01:00"),
            ("", ""),
        ] {
            assert_eq!(super::minute(time), said);
        }
    }
}
