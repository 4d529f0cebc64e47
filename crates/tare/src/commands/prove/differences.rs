//! Equal arms, and arms that differ by a known share.

use tare_analysis::Share;
use tare_model::findings::{Comparison, Findings, Standing, Verdict};
use tare_model::metric::Better;

use super::bar::Bar;
use super::ground::Ground;
use super::plant::Plant;
use super::study;
use crate::exit::Failure;

/// Runs of a study of equal arms in the short and in the long form, and how often each takes each of its cases.
const EQUAL: (u32, u32) = (3, 34);
const EQUAL_CASES: u32 = 4;
/// The same of a study with an arm that is slower, for each share.
const SLOWER: (u32, u32) = (1, 17);
const SLOWER_CASES: u32 = 3;
/// Known shares, thousandths.
const SHARES: [u32; 4] = [10, 20, 50, 100];
/// Level of intervals.
const MISSED: f64 = 0.05;
/// How often a difference is missed that the study was to detect.
const UNSEEN: f64 = 0.2;

/// The comparisons of a case's primary metric, with what is better.
fn primary(findings: &Findings) -> impl Iterator<Item = (&Comparison, Better)> {
    let metrics = findings.cases.iter().flat_map(|case| &case.metrics).filter(|metric| metric.spec.primary);
    metrics.flat_map(|metric| metric.comparisons.iter().map(|one| (one, metric.spec.better)))
}

fn named(comparison: &Comparison, run: u32) -> String {
    format!("run {run}, {}: {}", comparison.case.as_deref().unwrap_or_default(), comparison.sentence)
}

/// How often a difference is seen between equal arms. Every third run has company.
pub fn equal(ground: &Ground<'_>) -> Result<Vec<Bar>, Failure> {
    let (mut seen, mut called) = (Share::default(), Share::default());
    let (mut notes, mut claims) = (Vec::new(), Vec::new());
    for run in ground.numbered(EQUAL).take_while(|_| ground.goes_on()) {
        // Guests without a layer and in one, in turn.
        let mut study = study::table(study::EQUAL[run as usize % study::EQUAL.len()])?;
        study::repeat_cases(&mut study, EQUAL_CASES);
        let planned = ground.study(&format!("equal-{run}"), &study.to_string())?;
        let company = (run % 3 == 0).then(Plant::company);
        let ran = planned.run()?;
        drop(company);
        let findings = match ran.findings() {
            Ok(findings) => findings,
            Err(why) => {
                notes.push(why);
                continue;
            }
        };
        let mut any = false;
        for (comparison, _) in primary(&findings).filter(|(one, _)| one.ends().is_some()) {
            seen.add(comparison.excludes_equality());
            if comparison.excludes_equality() {
                notes.push(named(comparison, run));
            }
        }
        for answer in findings.answer.iter().filter(|own| matches!(own.verdict, Verdict::Better | Verdict::Worse)) {
            any = true;
            claims.push(format!("run {run}: {}", answer.sentence));
        }
        called.add(any);
    }
    let statement = "An interval at 95 % excludes equality for at most 5 of 100 equal arms";
    let study_wide = "At most 5 of 100 studies of equal arms call any arm better or worse";
    Ok(vec![
        Bar::counted("equal-intervals", statement, (MISSED, "comparisons"), seen, notes),
        Bar::counted("equal-verdicts", study_wide, (MISSED, "studies"), called, claims),
    ])
}

/// What was counted of arms that are slower.
#[derive(Default)]
struct Found {
    covered: Share,
    /// Half of each interval's width, as a share of the estimate.
    reach: Vec<f64>,
    powered: Share,
    turned: Share,
    notes: [Vec<String>; 3],
}

impl Found {
    fn add(&mut self, run: u32, (comparison, better): (&Comparison, Better), permille: u32) {
        let Some((low, high)) = comparison.ends() else { return };
        let share = f64::from(permille) / 1000.0;
        let truth = if better == Better::Higher { 1.0 / (1.0 + share) } else { 1.0 + share };
        let misses = truth < low || high < truth;
        self.covered.add(misses);
        self.reach.push((high / low).ln() / 2.0);
        if misses {
            self.notes[0].push(format!("truth {:+.2} %: {}", (truth - 1.0) * 100.0, named(comparison, run)));
        }
        let found = comparison.excludes_equality();
        let wrong = found && (comparison.ratio.value > 1.0) != (truth > 1.0);
        self.turned.add(wrong);
        if wrong {
            self.notes[2].push(named(comparison, run));
        }
        // The size that the study promised to detect in 80 of 100.
        if comparison.detectable.is_some_and(|least| least <= (truth - 1.0).abs())
            && matches!(comparison.standing, Standing::Primary { .. })
        {
            let unseen = comparison.verdict != Verdict::Worse;
            self.powered.add(unseen);
            if unseen {
                self.notes[1].push(named(comparison, run));
            }
        }
    }
}

/// Whether known differences are found and held.
pub fn slower(ground: &Ground<'_>) -> Result<Vec<Bar>, Failure> {
    let mut found = Found::default();
    for run in ground.numbered(SLOWER) {
        for permille in SHARES.into_iter().filter(|_| ground.goes_on()) {
            let mut study = study::table(study::SLOWER)?;
            study::repeat_cases(&mut study, SLOWER_CASES);
            study::set_of_arm(&mut study, "slower", "slowed-by", &format!("{}%", f64::from(permille) / 10.0));
            match ground.study(&format!("slower-{permille}-{run}"), &study.to_string())?.run()?.findings() {
                Ok(findings) => primary(&findings).for_each(|own| found.add(run, own, permille)),
                Err(why) => found.notes[0].push(why),
            }
        }
    }
    let Found { covered, mut reach, powered, turned, notes: [mut missed, mut unseen, wrong] } = found;
    reach.sort_by(f64::total_cmp);
    if let Some(middle) = reach.get(reach.len() / 2) {
        missed.push(format!("half of the intervals reach less than {:.1} % from their estimate", middle * 100.0));
    }
    unseen.push(format!("{} of {} comparisons were to detect what was there", powered.of, covered.of));
    let unit = "comparisons";
    Ok(vec![
        Bar::counted(
            "slower-intervals",
            "An interval at 95 % holds a known difference of 1, 2, 5 or 10 % in at least 95 of 100",
            (MISSED, unit),
            covered,
            missed,
        ),
        Bar::counted(
            "slower-found",
            "A known difference of the size that the study says it detects is found in at least 80 of 100",
            (UNSEEN, unit),
            powered,
            unseen,
        ),
        Bar::counted(
            "slower-direction",
            "An arm that is slower is called faster in at most 2.5 of 100",
            (MISSED / 2.0, unit),
            turned,
            wrong,
        ),
    ])
}
