//! A run's trials to its findings.

use std::collections::BTreeMap;

use tare_model::findings::{
    ArmParity, CaseFindings, Comparison, FINDINGS_SCHEMA, Findings, FlaggedTrial, MetricFindings, NotCompleted,
    RunSummary, Standing, Verdict,
};
use tare_model::metric::common;
use tare_model::plan::Plan;
use tare_model::study::Study;
use tare_model::trial::{Outcome, TrialRecord};

use crate::across::Counted;
use crate::case::CaseTrials;
use crate::comparison::{self, Subject};
use crate::distribution::completed;
use crate::grouped::Figures;
use crate::run::Run;
use crate::unsafety::Unsafe;
use crate::why::Ground;
use crate::{
    across, answer, audit, consolidation, density, deviations, estimate, flags, isolation, marked, method, score,
    series, sizing, turns,
};

/// Gives every row its keys, so that it can be read apart from what is around it.
fn keyed(case: Option<&str>, metrics: &mut [MetricFindings]) {
    for MetricFindings { spec, arms, comparisons, .. } in metrics {
        let arms = arms.iter_mut().map(|own| (&mut own.case, &mut own.metric));
        let comparisons = comparisons.iter_mut().map(|own| (&mut own.case, &mut own.metric));
        for (own, metric) in arms.chain(comparisons) {
            *own = case.map(str::to_owned);
            spec.id.clone_into(metric);
        }
    }
}

/// Makes the findings: the same input gives the same output, whatever the order of trials.
pub fn findings(run: &Run<'_>) -> Findings {
    let plan = marked::marked(run.plan, run.trials);
    let run = &Run { plan: &plan, ..*run };
    let trials: Vec<CaseTrials<'_>> = run.plan.study.cases.iter().map(|case| CaseTrials::of(run, case)).collect();
    let mut metrics: Vec<Vec<MetricFindings>> = trials.iter().map(CaseTrials::metrics).collect();
    let counted = trials.iter().flat_map(CaseTrials::counted).collect();
    let blocks = trials.iter().map(CaseTrials::blocks).max().unwrap_or(run.plan.study.blocks);
    let mut across = across::of_run(&Counted { plan: run.plan, trials: counted, blocks });
    let compared = settle(run.plan, &mut metrics, &mut across);
    let mut cases: Vec<CaseFindings> =
        trials.iter().zip(metrics).map(|(case, metrics)| case.findings(metrics)).collect();
    let unsafety = Unsafe::of(run.trials);
    cases.iter_mut().for_each(|case| unsafety.qualify(run.plan, case));
    cases.iter_mut().for_each(|case| keyed(Some(&case.id), &mut case.metrics));
    keyed(None, &mut across);
    let audit = audit::entries(run.plan, run.trials);
    cases.iter_mut().for_each(|case| audit::qualify(run.plan, &audit, case));
    let figures = Figures { plan: run.plan, cases: &cases };
    let (consolidation, sizing) = (consolidation::of_run(&figures, run.trials), sizing::of_run(&figures));
    Findings {
        schema: FINDINGS_SCHEMA,
        run: summary(run),
        warnings: deviations::warning(run.plan)
            .into_iter()
            .chain(alarm(run.plan, &cases))
            .chain(density::warning(run.plan))
            .chain(unsafety.warnings(run.plan))
            .chain(controls(&run.plan.study))
            .collect(),
        deviations: deviations::of_run(run.plan, &in_order(run)),
        differences: differences(run),
        not_completed: not_completed(run),
        flagged: flagged(run),
        unchecked: series::unchecked(run),
        parity: parity(run),
        environment: run.environment.clone(),
        plan: run.plan.clone(),
        method: method::paragraphs(run.plan, compared, &cases, (&consolidation, &sizing)),
        answer: answer::of_run(&Ground::of(run.plan, run.trials), &cases, &across),
        across,
        score: score::of_run(run.plan, &cases),
        cases,
        audit,
        consolidation,
        sizing,
        isolation: isolation::of_run(run.plan, run.trials),
    }
}

/// A sentence where the baseline differs from itself in the primary metric of a case, which happens by chance in 5 of 100 studies: whatever
/// made it differ may be behind other differences, too.
fn alarm(plan: &Plan, cases: &[CaseFindings]) -> Option<String> {
    let replicas = cases.iter().filter_map(|case| {
        let primary = case.metrics.iter().find(|metric| metric.spec.primary)?;
        Some((case, primary.comparisons.iter().find(|own| own.standing == Standing::Replica)?))
    });
    let (cases, replicas): (Vec<&CaseFindings>, Vec<&Comparison>) = replicas.unzip();
    let corrected = comparison::holm(&replicas.iter().map(|own| own.p_equal).collect::<Vec<_>>());
    let differs = cases.iter().zip(&replicas).zip(corrected).filter(|(_, p)| p.is_some_and(|p| p <= estimate::ALPHA));
    let said: Vec<String> = differs.map(|((case, own), _)| format!("{}: {}", case.label, own.sentence)).collect();
    (!said.is_empty()).then(|| {
        let baseline = plan.study.arms.iter().find(|arm| arm.id == plan.study.baseline).map_or("", |arm| arm.label.as_str());
        format!(
            "A/A alarm: {baseline} differs from itself. Two equal arms do so by chance in 5 of 100 studies; whatever made them differ may be \
             behind any difference of this study. {}.",
            said.join("; ")
        )
    })
}

/// Settles the comparisons that answer the study: those of each case's primary metric and of what the guest itself weighs, but the replica's
/// and those that must not be made. Returns how many they are.
fn settle(plan: &Plan, cases: &mut [Vec<MetricFindings>], across: &mut [MetricFindings]) -> usize {
    let label = |id: &str| plan.study.arms.iter().find(|arm| arm.id == id).map_or("", |arm| arm.label.as_str());
    let of_cases = cases.iter_mut().flatten().filter(|metric| metric.spec.primary);
    let of_guests = across.iter_mut().filter(|metric| common::OF_THE_GUEST.contains(&metric.spec.id.as_str()));
    let mut primary = Vec::new();
    for MetricFindings { spec, comparisons, .. } in of_cases.chain(of_guests) {
        for comparison in comparisons.iter_mut().filter(|own| is_asked(own)) {
            let (arm, baseline) = (label(&comparison.arm), label(&comparison.baseline));
            primary.push((comparison, Subject { spec, arm, baseline }));
        }
    }
    let number = primary.len();
    comparison::settle_primary(primary);
    number
}

fn is_asked(comparison: &Comparison) -> bool {
    comparison.standing == Standing::Lead && comparison.verdict != Verdict::NotComparable
}

/// Arms that are slower on purpose.
fn controls(study: &Study) -> impl Iterator<Item = String> {
    let slowed = study.arms.iter().filter(|arm| arm.slowed_permille > 0);
    slowed.map(|arm| {
        format!(
            "`{}` is a positive control: {}. Its figures show what this study finds on this host, and not what its platform weighs.",
            arm.id,
            arm.slowed()
        )
    })
}

fn summary(run: &Run<'_>) -> RunSummary {
    let began = |record: &TrialRecord| record.started_at.parse::<jiff::Timestamp>().ok();
    let first = run.trials.iter().filter_map(|record| Some((began(record)?, record))).min_by_key(|(at, _)| *at);
    let ended = |record: &TrialRecord| {
        let wall = jiff::SignedDuration::try_from_secs_f64(turns::wall_s(record)).ok()?;
        began(record)?.checked_add(wall).ok()
    };
    let last = run.trials.iter().filter_map(ended).max();
    let sum = |part: fn(&TrialRecord) -> f64| run.trials.iter().map(part).filter(|s| s.is_finite()).sum();
    RunSummary {
        id: run.facts.run_id.clone(),
        tare_version: run.facts.tare_version.clone(),
        root_hash: run.facts.root_hash.clone(),
        started_at: first.map_or_else(String::new, |(_, record)| record.started_at.clone()),
        finished_at: if run.facts.finished { last.map(|at| at.to_string()) } else { None },
        planned: run.wanted().count() as u32,
        completed: run.trials.iter().filter(|record| completed(record).is_some()).count() as u32,
        wall_s: sum(|record| record.wall_s),
        load_s: sum(|record| record.load_s),
    }
}

fn differences(run: &Run<'_>) -> Vec<String> {
    let mut differences = run.plan.differences.clone();
    differences.extend(run.problems.iter().cloned());
    let mut first: BTreeMap<(&str, &str, &str), (&TrialRecord, &str)> = BTreeMap::new();
    for record in in_order(run) {
        for row in &record.parity {
            let key = (record.planned.case.as_str(), record.planned.arm.as_str(), row.resource.as_str());
            let granted = row.granted.as_deref().unwrap_or("nothing");
            let (other, before) = *first.entry(key).or_insert((record, granted));
            if before != granted {
                differences.push(format!(
                    "{} in {}: {} was {before} in block {} and {granted} in block {}.",
                    key.1, key.0, key.2, other.planned.block, record.planned.block
                ));
            }
        }
    }
    differences
}

fn in_order<'a>(run: &Run<'a>) -> Vec<&'a TrialRecord> {
    let mut records: Vec<_> = run.trials.iter().collect();
    records.sort_by_key(|record| record.planned.index);
    records
}

fn not_completed(run: &Run<'_>) -> Vec<NotCompleted> {
    let mut found = Vec::new();
    for planned in run.wanted() {
        let record = run.trials.iter().find(|record| record.planned.index == planned.index);
        let (how, reason) = match record.map(|record| &record.outcome) {
            Some(Outcome::Completed(_)) => continue,
            Some(Outcome::Invalid { reason }) => ("invalid".to_owned(), reason.clone()),
            Some(Outcome::Failed { phase, reason }) => (format!("failed in {phase}"), reason.clone()),
            None => ("not run".to_owned(), "the run ended before it".to_owned()),
        };
        let (block, case, arm) = (planned.block, planned.case.clone(), planned.arm.clone());
        found.push(NotCompleted { block, case, arm, how, reason });
    }
    found
}

fn flagged(run: &Run<'_>) -> Vec<FlaggedTrial> {
    let flagged = in_order(run).into_iter().filter(|record| completed(record).is_some()).map(|record| FlaggedTrial {
        block: record.planned.block,
        case: record.planned.case.clone(),
        arm: record.planned.arm.clone(),
        flags: flags::of_trial(record, run.plan.study.lab.sample_interval),
    });
    flagged.filter(|trial| !trial.flags.is_empty()).collect()
}

fn parity(run: &Run<'_>) -> Vec<ArmParity> {
    let mut found: Vec<ArmParity> = Vec::new();
    for record in in_order(run).into_iter().filter(|record| !record.parity.is_empty()) {
        let (arm, case) = (&record.planned.arm, &record.planned.case);
        if !found.iter().any(|known| known.arm == *arm && known.case == *case) {
            found.push(ArmParity { arm: arm.clone(), case: case.clone(), rows: record.parity.clone() });
        }
    }
    found
}
