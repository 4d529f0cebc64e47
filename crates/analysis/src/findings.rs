//! A run's trials to its findings.

use std::collections::BTreeMap;

use tare_model::cpu_target::CpuSearch;
use tare_model::findings::{
    Answer, ArmCapacity, ArmEstimate, ArmObjective, ArmParity, ArmParts, ArmRequests, ArmResources, ArmSteps,
    CaseFindings, Comparison, FINDINGS_SCHEMA, Findings, FlaggedTrial, MetricFindings, NotCompleted, PrecisionLimits,
    RunSummary, Verdict,
};
use tare_model::kvm;
use tare_model::metric::{MetricSpec, Unit, common};
use tare_model::plan::Plan;
use tare_model::precision::CaseBlocks;
use tare_model::study::{Arm, Case, CaseLoad};
use tare_model::trial::{Outcome, TrialRecord};

use crate::comparison::{Paired, floor_of};
use crate::distribution::{self, completed};
use crate::grouped::Figures;
use crate::run::Run;
use crate::unsafety::Unsafe;
use crate::{
    account, across, audit, capacity, consolidation, cpu, density, estimate, flags, limits, marked, method, objective,
    offered, parts, requests, resources, score, series, sizing, steps, turns,
};

/// Makes the findings: the same input gives the same output, whatever the order of trials.
pub fn findings(run: &Run<'_>) -> Findings {
    let plan = marked::marked(run.plan, run.trials);
    let run = &Run { plan: &plan, ..*run };
    let mut cases: Vec<CaseFindings> =
        run.plan.study.cases.iter().map(|case| CaseTrials::of(run, case).findings()).collect();
    let unsafety = Unsafe::of(run.trials);
    cases.iter_mut().for_each(|case| unsafety.qualify(run.plan, case));
    let audit = audit::entries(run.plan, run.trials);
    cases.iter_mut().for_each(|case| audit::qualify(run.plan, &audit, case));
    let answer = answer(run.plan, &cases);
    let figures = Figures { plan: run.plan, cases: &cases };
    let (consolidation, sizing) = (consolidation::of_run(&figures, run.trials), sizing::of_run(&figures));
    Findings {
        schema: FINDINGS_SCHEMA,
        run: summary(run),
        across: across::of_run(run.plan, run.trials),
        warnings: density::warning(run.plan).into_iter().chain(unsafety.warnings(run.plan)).collect(),
        deviations: deviations(run),
        not_completed: not_completed(run),
        flagged: flagged(run),
        unchecked: series::unchecked(run),
        parity: parity(run),
        environment: run.environment.clone(),
        plan: run.plan.clone(),
        method: method::paragraphs(run.plan, answer.len(), &cases, (&consolidation, &sizing)),
        answer,
        score: score::of_run(run.plan, &cases),
        cases,
        audit,
        consolidation,
        sizing,
    }
}

/// Why metrics of a scale-up are missing whose first number of guests already did not hold.
const NONE_HELD: &str = " (no number of guests held)";
/// Most metrics that are named one by one where all are missing for that.
const NAMED: usize = 3;

/// The trials of one case by arm, in order of blocks.
struct CaseTrials<'a> {
    plan: &'a Plan,
    case: &'a Case,
    redacted: bool,
    by_arm: BTreeMap<&'a str, Vec<&'a TrialRecord>>,
    /// The load that all trials have, where they do not look for it themselves.
    load: Option<f64>,
    /// The blocks that it took, where that followed from its intervals and is decided.
    ended: Option<&'a CaseBlocks>,
}

impl<'a> CaseTrials<'a> {
    fn of(run: &Run<'a>, case: &'a Case) -> Self {
        let mut by_arm: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
        for record in run.trials.iter().filter(|record| record.planned.case == case.id) {
            by_arm.entry(&record.planned.arm).or_default().push(record);
        }
        by_arm.values_mut().for_each(|records| records.sort_by_key(|record| record.planned.block));
        let ended = run.facts.ended.iter().find(|ended| ended.case == case.id);
        let (load, redacted) = (offered::fixed(run, case), run.environment.redacted);
        Self { plan: run.plan, case, redacted, by_arm, load, ended }
    }

    /// The blocks of the study that it took, or was to take: as many as an arm beside the baseline has.
    fn blocks(&self) -> u32 {
        self.ended.map_or(self.plan.study.blocks, |ended| ended.blocks)
    }

    fn arm(&self, id: &str) -> &[&'a TrialRecord] {
        self.by_arm.get(id).map_or(&[], Vec::as_slice)
    }

    fn arms(&self) -> impl Iterator<Item = (&'a Arm, &[&'a TrialRecord])> {
        self.plan.study.arms.iter().map(|arm| (arm, self.arm(&arm.id)))
    }

    fn findings(&self) -> CaseFindings {
        let (specs, mut not_measured) = self.measured();
        let parts = self.parts(&specs);
        if !self.case.load.is_density() && parts.is_empty() && self.arms().any(|(_, trials)| parts::any_in(trials)) {
            not_measured.push("Not given by guest and driver: no metric is the sum over them.".to_owned());
        }
        let primary = specs.first().map_or("", |spec| spec.id.as_str());
        let steps: Vec<ArmSteps> = self.arms().filter_map(|(arm, trials)| steps::of_arm(&arm.id, trials)).collect();
        for (arm, _) in self.arms().filter(|(arm, _)| steps.iter().any(|own| own.arm == arm.id && steps::overrun(own)))
        {
            not_measured
                .push(format!("On {} the steps add up to more than the whole operation: rely on neither.", arm.label));
        }
        let offset = self.case.phases.steady_offset_ns();
        let density = density::of_case(self.case, self.arms());
        let mut metrics: Vec<MetricFindings> = specs.iter().map(|spec| self.metric(spec)).collect();
        if let (Some(density), Some(primary)) = (&density, metrics.first_mut()) {
            density::qualify(self.plan, density, &mut primary.comparisons);
        }
        let capacity = capacity::of_case(self.case, self.arms());
        let requests: Vec<ArmRequests> =
            self.arms().filter_map(|(arm, trials)| requests::of_arm(&arm.id, trials, self.case, self.load)).collect();
        not_measured.extend(self.capacities(&capacity, &mut metrics, !requests.is_empty()));
        CaseFindings {
            id: self.case.id.clone(),
            label: self.case.label.clone(),
            blocks: self.ended.cloned(),
            distributions: self.arms().flat_map(|(arm, trials)| distribution::of_arm(&arm.id, trials)).collect(),
            cpu: self.arms().filter_map(|(arm, trials)| cpu::of_arm(&arm.id, trials)).collect(),
            timelines: self
                .arms()
                .filter_map(|(arm, trials)| series::timeline(&arm.id, trials, primary, offset))
                .collect(),
            accounts: self
                .arms()
                .filter_map(|(arm, trials)| account::of_arm(&arm.id, trials, self.case, self.load, self.redacted))
                .collect(),
            objectives: self.objectives(),
            not_measured,
            parts,
            steps,
            limits: self.limits(&metrics),
            density,
            operation: if requests.is_empty() { "operation" } else { "request" }.to_owned(),
            sections: Vec::new(),
            resources: self.resources(!requests.is_empty()),
            capacity,
            requests,
            cpu_searches: self.cpu_searches(),
            metrics,
        }
    }

    /// What limits the precision of the primary metric, where arms took turns.
    fn limits(&self, metrics: &[MetricFindings]) -> Vec<PrecisionLimits> {
        let primary = metrics.iter().find(|metric| metric.spec.primary);
        let of = |metric: &MetricFindings| {
            let (baseline, pairs) = (self.plan.study.baseline.as_str(), self.case.schedule.pairs());
            limits::of_case(&self.by_arm, (baseline, pairs), (&metric.spec, &metric.comparisons))
        };
        primary.map(of).unwrap_or_default()
    }

    /// Says of the primary metric of a search how many sessions that are. Returns a sentence where other metrics are not compared.
    fn capacities(&self, found: &[ArmCapacity], metrics: &mut [MetricFindings], sessions: bool) -> Option<String> {
        let primary = metrics.first_mut().filter(|metric| metric.spec.id == capacity::COMPARED)?;
        capacity::qualify(self.plan, self.case, found, primary, sessions);
        let (compared, others) = (primary.comparisons.len(), metrics.get(1..)?);
        others
            .iter()
            .any(|metric| metric.comparisons.len() < compared)
            .then(|| capacity::not_compared(self.plan, self.case))
    }

    /// How well the guests' CPUs were held busy to a share, by arm and block, where the case asks for that.
    fn cpu_searches(&self) -> Vec<(String, Vec<(u32, CpuSearch)>)> {
        let of = |record: &&TrialRecord| Some((record.planned.block, completed(record)?.cpu_search.clone()?));
        let arms = self.arms().map(|(arm, trials)| (arm.id.clone(), trials.iter().filter_map(of).collect::<Vec<_>>()));
        arms.filter(|(_, blocks)| !blocks.is_empty()).collect()
    }

    /// What was used at the load that was found, given or derived, where such a load is what the case is about.
    fn resources(&self, has_requests: bool) -> Vec<ArmResources> {
        let published = self.plan.study.published.is_some();
        if !has_requests && !published && !matches!(self.case.load, CaseLoad::Capacity(_) | CaseLoad::ShareOf { .. }) {
            return Vec::new();
        }
        self.arms().filter_map(|(arm, trials)| resources::of_arm(&arm.id, trials, self.load)).collect()
    }

    /// The primary metric by guest and driver or, where that is no sum over them (a response time), the first that is.
    /// Not where guests are added: the number of them is another in each trial, and the levels tell what is theirs.
    fn parts(&self, specs: &[&MetricSpec]) -> Vec<ArmParts> {
        if self.case.load.is_density() {
            return Vec::new();
        }
        let adds_up = |spec: &&&MetricSpec| self.arms().all(|(_, trials)| parts::add_up(trials, spec));
        let of = |spec: &MetricSpec| -> Vec<ArmParts> {
            self.arms().filter_map(|(arm, trials)| parts::of_arm(&arm.id, trials, spec)).collect()
        };
        specs.iter().filter(adds_up).map(|spec| of(spec)).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Every metric that a trial of the case knows, primary first, then in the order of the trials.
    fn specs(&self) -> Vec<&'a MetricSpec> {
        let mut specs: Vec<&MetricSpec> = Vec::new();
        for spec in self.arms().flat_map(|(_, trials)| trials.iter().copied()).flat_map(|record| &record.metrics) {
            if !specs.iter().any(|known| known.id == spec.id) {
                specs.push(spec);
            }
        }
        specs.sort_by_key(|spec| !spec.primary);
        specs
    }

    /// The metrics that there is something to say about, and a sentence for each that completed trials withheld.
    fn measured(&self) -> (Vec<&'a MetricSpec>, Vec<String>) {
        let mut kept = Vec::new();
        // (arms without the metric and the reason, labels of the metrics)
        let mut groups: Vec<(String, &str, Vec<&str>)> = Vec::new();
        let mut tell = |arms: String, why: &'static str, label: &'a str| match groups
            .iter_mut()
            .find(|(own, reason, _)| *own == arms && *reason == why)
        {
            Some((.., labels)) => labels.push(label),
            None => groups.push((arms, why, vec![label])),
        };
        for spec in self.specs() {
            let without: Vec<&Arm> =
                self.plan.study.arms.iter().filter(|arm| self.withheld(&arm.id, &spec.id)).collect();
            let some = self.arms().any(|(arm, _)| !self.values(&arm.id, &spec.id).is_empty());
            let why = self.why_withheld(spec, &without);
            // Only machines have these: where there are none, none is missing.
            let by_nature = common::START_PARTS.contains(&spec.id.as_str()) || kvm::is_count(&spec.id);
            if by_nature && !some {
                continue;
            }
            if without.is_empty() || spec.primary || by_nature {
                kept.push(spec);
            } else if some {
                kept.push(spec);
                let arms: Vec<&str> = without.iter().map(|arm| arm.label.as_str()).collect();
                tell(format!(" on {}", arms.join(", ")), why, &spec.label);
            } else {
                tell(String::new(), why, &spec.label);
            }
        }
        let sentence = |(arms, why, labels): (String, &str, Vec<&str>)| match labels.len() {
            // They are of the largest number that held: that there is none is one fact and not dozens.
            n if n > NAMED && why == NONE_HELD => {
                format!(
                    "Not measured here{arms}: {n} metrics of the largest number of guests that held, because no number \
                     held."
                )
            }
            _ => format!("Not measured here{arms}: {}{why}.", labels.join("; ")),
        };
        (kept, groups.into_iter().map(sentence).collect())
    }

    /// Whether trials of the arm completed and none of them has the metric.
    fn withheld(&self, arm: &str, metric: &str) -> bool {
        self.arm(arm).iter().any(|record| completed(record).is_some()) && self.values(arm, metric).is_empty()
    }

    fn why_withheld(&self, spec: &MetricSpec, without: &[&Arm]) -> &'static str {
        let held_none =
            |arm: &&Arm| self.values(&arm.id, tare_model::density::metric::HELD).iter().all(|(_, held)| *held == 0.0);
        if self.case.load.is_density() && without.iter().all(held_none) {
            NONE_HELD
        } else if spec.id == common::SERVICE_DEMAND && self.case.busy_target {
            " (busy loops in the measured guest use CPU, too)"
        } else if spec.id == common::SERVICE_DEMAND && !self.plan.cpus.are_separate() {
            " (driver and guests share CPUs)"
        } else if spec.id == common::IDLE_MEMORY {
            " (no control group counts it)"
        } else if spec.unit == Unit::Seconds {
            " (too few operations)"
        } else {
            ""
        }
    }

    fn objectives(&self) -> Vec<ArmObjective> {
        if self.case.load.is_capacity() {
            // The load that is found meets them all: that is what it was looked for by.
            return Vec::new();
        }
        let specs = self.specs();
        let mut judged = Vec::new();
        for objective in &self.case.qos {
            let Some(spec) = specs.iter().find(|spec| spec.id == objective.metric) else { continue };
            for (arm, trials) in self.arms().filter(|(_, trials)| !trials.is_empty()) {
                let values = self.values(&arm.id, &objective.metric);
                // In pairs the baseline runs in the blocks of all others.
                let times = if arm.id == self.plan.study.baseline { self.case.schedule.pairs() } else { 1 };
                let planned = self.blocks().saturating_mul(times).max(trials.len() as u32);
                judged.push(objective::judge((&arm.id, &arm.label), spec, objective, &values, planned));
            }
        }
        judged
    }

    /// (block, value) of the completed trials of an arm that have a finite value.
    fn values(&self, arm: &str, metric: &str) -> Vec<(u32, f64)> {
        let value = |record: &&TrialRecord| {
            let value = *completed(record)?.metrics.get(metric)?;
            value.is_finite().then_some((record.planned.block, value))
        };
        self.arm(arm).iter().filter_map(value).collect()
    }

    fn metric(&self, spec: &MetricSpec) -> MetricFindings {
        let arms = self.plan.study.arms.iter().filter_map(|arm| {
            let blocks = self.values(&arm.id, &spec.id);
            let values: Vec<f64> = blocks.iter().map(|(_, value)| *value).collect();
            let estimate = estimate::of_values(&values)?;
            Some(ArmEstimate { arm: arm.id.clone(), estimate, blocks })
        });
        MetricFindings { spec: spec.clone(), arms: arms.collect(), comparisons: self.comparisons(spec) }
    }

    fn comparisons(&self, spec: &MetricSpec) -> Vec<Comparison> {
        if self.case.load.is_density() && !density::COMPARED.contains(&spec.id.as_str()) {
            return Vec::new();
        }
        let study = &self.plan.study;
        let others = || study.arms.iter().filter(|arm| arm.id != study.baseline);
        let replica = others().find(|arm| arm.replica_of.as_deref() == Some(&study.baseline));
        let floor = replica.and_then(|arm| floor_of(&self.paired(spec, arm, None).compare().ratio));
        let said = |arm: &&Arm| !self.withheld(&arm.id, &spec.id) && !self.withheld(&study.baseline, &spec.id);
        // What a search yields beside the capacity is of the load that was found.
        let alike = |arm: &&Arm| {
            !self.case.load.is_capacity()
                || spec.id == capacity::COMPARED
                || capacity::same_load(self.arm(&arm.id), self.arm(&study.baseline))
        };
        others()
            .filter(alike)
            .filter(|arm| spec.primary || said(arm))
            .map(|arm| self.compared(spec, arm, floor))
            .collect()
    }

    fn compared(&self, spec: &MetricSpec, arm: &Arm, floor: Option<f64>) -> Comparison {
        let paired = self.paired(spec, arm, floor);
        if self.plan.study.published.is_some() { paired.compare_published() } else { paired.compare() }
    }

    fn paired<'b>(&'b self, spec: &'b MetricSpec, arm: &'b Arm, floor: Option<f64>) -> Paired<'b> {
        let study = &self.plan.study;
        let label = study.arms.iter().find(|other| other.id == study.baseline).map_or("", |other| other.label.as_str());
        let base: BTreeMap<u32, f64> = self.values(&study.baseline, &spec.id).into_iter().collect();
        let both = |(block, value): (u32, f64)| base.get(&block).map(|&beside| (block, value, beside));
        Paired {
            spec,
            arm: (&arm.id, &arm.label),
            baseline: (&study.baseline, label),
            pairs: self.values(&arm.id, &spec.id).into_iter().filter_map(both).collect(),
            blocks_planned: self.blocks(),
            by_width: study.precision.is_some(),
            floor,
            role: marked::role(&study.baseline, arm, self.by_arm.values().flatten().copied()),
        }
    }
}

/// A sentence a case and arm about the primary metric: differences first, the largest of them foremost, then what was not
/// seen, then what cannot be said.
fn answer(plan: &Plan, cases: &[CaseFindings]) -> Vec<Answer> {
    let study = &plan.study;
    let mut ranked = Vec::new();
    for case in cases {
        let primary = case.metrics.iter().find(|metric| metric.spec.primary);
        for arm in study.arms.iter().filter(|arm| arm.id != study.baseline && arm.replica_of.is_none()) {
            let found =
                primary.and_then(|metric| metric.comparisons.iter().find(|comparison| comparison.arm == arm.id));
            let (verdict, size, sentence) = match found {
                Some(c) => {
                    let carried = case.density.as_ref().and_then(|found| density::sentence(plan, found, c));
                    (c.verdict, c.ratio.value.ln().abs(), carried.unwrap_or_else(|| c.sentence.clone()))
                }
                None => {
                    let none = format!("{}: cannot say: no trial of this case was run", arm.label);
                    (Verdict::CannotSay, 0.0, none)
                }
            };
            let rank = match verdict {
                Verdict::Better | Verdict::Worse => 0,
                Verdict::WithinFloor => 1,
                Verdict::NoDifferenceSeen | Verdict::NoiseFloor => 2,
                Verdict::TooNoisy => 3,
                Verdict::CannotSay => 4,
                Verdict::NotComparable => 5,
            };
            // Only differences have a size worth an order; the rest stays in the order of the study.
            let size = if rank <= 1 { size } else { 0.0 };
            ranked.push((rank, size, Answer { case: case.id.clone(), arm: arm.id.clone(), sentence, verdict }));
        }
    }
    ranked.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    ranked.into_iter().map(|(_, _, answer)| answer).collect()
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

fn deviations(run: &Run<'_>) -> Vec<String> {
    let mut deviations = run.plan.deviations.clone();
    deviations.extend(run.problems.iter().cloned());
    let mut first: BTreeMap<(&str, &str, &str), (&TrialRecord, &str)> = BTreeMap::new();
    for record in in_order(run) {
        for row in &record.parity {
            let key = (record.planned.case.as_str(), record.planned.arm.as_str(), row.resource.as_str());
            let granted = row.granted.as_deref().unwrap_or("nothing");
            let (other, before) = *first.entry(key).or_insert((record, granted));
            if before != granted {
                deviations.push(format!(
                    "{} in {}: {} was {before} in block {} and {granted} in block {}.",
                    key.1, key.0, key.2, other.planned.block, record.planned.block
                ));
            }
        }
    }
    deviations
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
