//! The largest load that meets every objective: the tables and figures of a case that looks for it, and of one that is offered a share of it.

use std::collections::BTreeMap;

use tare_model::capacity::{CapacitySpec, LoadShare, metric};
use tare_model::findings::{ArmCapacity, CaseFindings, Estimate, Findings, MetricFindings, SearchFindings};
use tare_model::load::LoadKind;
use tare_model::metric::{Better, Unit, common};
use tare_model::study::{Case, CaseLoad, QosObjective};

use super::case::{FigureView, Titled};
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::plot::bars::{self, Bar, Bars, Group};
use crate::plot::search::{self, Row};
use crate::words;

/// What loads of a case are counted in, where there are several: sessions of people where the workload has request types.
pub(super) fn noun(case: &CaseFindings, findings: &Findings) -> &'static str {
    let planned = |id: &str| findings.plan.study.cases.iter().find(|planned| planned.id == id);
    let own = planned(&case.id);
    let workload = own.map(|own| own.workload.as_str());
    // Figures that were published may have them in one case of a workload and not in another.
    let has_types = |other: &CaseFindings| {
        !other.requests.is_empty() && planned(&other.id).map(|other| other.workload.as_str()) == workload
    };
    match own.map(|planned| planned.load.kind()) {
        Some(LoadKind::Open { .. }) => "arrivals a second",
        _ if findings.cases.iter().any(has_types) => "sessions",
        _ => "clients",
    }
}

/// A load: whole clients, or arrivals a second with the digits that count.
pub(super) fn load_text(load: f64) -> String {
    if load >= 100.0 || load.fract() == 0.0 { format::count(load.round() as u64) } else { format::fixed(load, 1) }
}

/// How load is offered where the largest is looked for.
pub(super) fn searched(planned: &Case, spec: &CapacitySpec, findings: &Findings) -> String {
    let found = findings.cases.iter().find(|found| found.id == planned.id);
    let noun = found.map_or("clients", |found| noun(found, findings));
    if findings.plan.study.published.is_some() {
        return format!("the largest load that was published, in {noun}");
    }
    format!(
        "the largest load that meets every objective: searched from {} {noun} up to {}{}, to within {}; it must hold \
         in {}, each in a fresh instance{}",
        load_text(spec.from),
        load_text(spec.most),
        among(spec.drivers),
        format::relative(spec.precision),
        format::plural(u64::from(spec.iterations), "iteration", "iterations"),
        objectives(planned, found)
    )
}

/// Among how many drivers a load is dealt out, where that is more than one.
fn among(drivers: u32) -> String {
    if drivers > 1 { format!(", dealt out among {drivers} drivers") } else { String::new() }
}

/// How load is offered where it is a share of what another case found.
pub(super) fn shared(planned: &Case, share: &LoadShare, findings: &Findings) -> String {
    let found = findings.cases.iter().find(|found| found.id == planned.id);
    let noun = found.map_or("clients", |found| noun(found, findings));
    let study = &findings.plan.study;
    let label =
        |id: &str| study.arms.iter().find(|arm| arm.id == id).map_or_else(|| id.to_owned(), |arm| arm.label.clone());
    let offered = found.and_then(|found| Some(format!("{} {noun}: ", load_text(offered(found)?)))).unwrap_or_default();
    format!(
        "{offered}{} of the median capacity that {} had in \u{201c}{}\u{201d}, the same on every arm{}",
        format::share(share.share),
        label(&study.baseline),
        super::case_label(findings, &share.case),
        among(planned.load.guests().drivers)
    )
}

/// The load that all trials of a case had.
pub(super) fn offered(case: &CaseFindings) -> Option<f64> {
    case.resources.iter().map(|own| own.load).find(|load| *load > 0.0)
}

/// The objectives of a case, by the names of their metrics for people where they are known.
fn objectives(planned: &Case, found: Option<&CaseFindings>) -> String {
    let one = |qos: &QosObjective| {
        let spec =
            found.and_then(|found| found.metrics.iter().find(|own| own.spec.id == qos.metric)).map(|own| &own.spec);
        let bound = if spec.is_some_and(|spec| spec.better == Better::Lower) { "at most" } else { "at least" };
        let label = spec.map_or(qos.metric.as_str(), |spec| spec.label.as_str());
        let unit = spec.map_or(Unit::Count, |spec| spec.unit.clone());
        let value = if unit == Unit::Count { format::trimmed(qos.bound) } else { format::value(qos.bound, &unit) };
        // Without the metric nobody knows which way is better.
        if spec.is_some() { format!("{label} {bound} {value}") } else { format!("{label} {value}") }
    };
    let each: Vec<String> = planned.qos.iter().map(one).collect();
    if each.is_empty() { String::new() } else { format!("; objectives: {}", each.join(", ")) }
}

/// The table that belongs to the answer.
pub(super) fn lead(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Titled> {
    if case.capacity.is_empty() {
        return None;
    }
    let table = View { case, findings, arms }.found();
    Some(Titled { title: "The largest load that meets every objective".to_owned(), table })
}

/// The chance that a load is held, with the tries that it is fitted to.
pub(super) fn figure(anchor: &str, case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<FigureView> {
    // Of what others published nobody knows what they tried: there is no fit.
    let row = |arm: &'_ ArmCapacity| Some((arms.get(&arm.arm), arm.searches.clone(), arm.fit.clone()?));
    let all: Vec<_> = View { case, findings, arms }.arms().filter_map(row).collect();
    let rows: Vec<Row<'_>> = all.iter().map(|(arm, searches, fit)| Row { arm: arm.clone(), searches, fit }).collect();
    FigureView::new(
        "The chance that a load is held".to_owned(),
        "Curve: the share of instances that meet every objective at a load, fitted to every try of all blocks. Mark on \
         it: the load that half of the instances hold, with its interval. Above: tries that held, each in an instance of \
         its own. Crosses below: tries that missed. The load is on a logarithmic axis.",
        search::figure(&format!("fig-{anchor}-search"), &rows, noun(case, findings)),
    )
}

/// Every try, for those who want to see why a load did not count.
pub(super) fn tries(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Table> {
    if findings.plan.study.published.is_some() {
        return None;
    }
    let columns = vec![
        Column::text("Search"),
        Column::numeric("Held"),
        Column::text("Tried, in order (\u{2717}: did not hold)"),
        Column::text("How it ended"),
    ];
    let mut table = Table::new("The searches, try by try.", columns);
    for (arm, search) in (View { case, findings, arms }).searches() {
        let tried = search.tried.iter().map(|(load, why)| {
            let load = load_text(*load);
            if why.is_none() { load } else { format!("{load}\u{a0}\u{2717}") }
        });
        let why =
            search.tried.iter().rev().find_map(|(load, why)| Some(format!("{}: {}", load_text(*load), why.as_ref()?)));
        // Why the load above did not hold belongs to how a search ends, unless its own words have it.
        let untold = why.filter(|why| why.split_once(": ").is_some_and(|(_, why)| !search.ended.contains(why)));
        table.rows.push(vec![
            Cell { text: named(arms, arm, search), ..Cell::arm(&arms.get(&arm.arm)) },
            Cell::text(load_text(search.held)),
            Cell::text(tried.collect::<Vec<_>>().join(", ")),
            Cell::with_note(&search.ended, untold.unwrap_or_default()),
        ]);
    }
    table.filled()
}

fn named(arms: &Arms, arm: &ArmCapacity, search: &SearchFindings) -> String {
    if arm.searches.len() == 1 {
        arms.label(&arm.arm)
    } else {
        format!("{}, block {}", arms.label(&arm.arm), search.block)
    }
}

/// Each arm in a line, for a terminal.
pub(crate) fn lines(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<String> {
    let noun = noun(case, findings);
    let line = |arm: &ArmCapacity| {
        let each: Vec<String> = arm.searches.iter().map(|search| between(search, findings)).collect();
        let blocks = if each.len() > 1 { "blocks in order, " } else { "" };
        format!("{}: {blocks}{noun}: {}", arms.label(&arm.arm), each.join("; "))
    };
    let mut out: Vec<String> = case.capacity.iter().map(line).collect();
    let planned = findings.plan.study.cases.iter().find(|planned| planned.id == case.id);
    if let Some((planned, CaseLoad::ShareOf { share, .. })) = planned.map(|planned| (planned, &planned.load)) {
        out.push(format!("offered: {}", shared(planned, share, findings)));
    }
    out
}

/// `510 held, 536 did not`.
fn between(search: &SearchFindings, findings: &Findings) -> String {
    let held = load_text(search.held);
    match search.missed {
        _ if findings.plan.study.published.is_some() => held,
        Some(missed) if search.held > 0.0 => format!("{held} held, {} did not", load_text(missed)),
        Some(missed) => format!("not even {} held", load_text(missed)),
        None => format!("{held} held, the largest load allowed"),
    }
}

struct View<'a> {
    case: &'a CaseFindings,
    findings: &'a Findings,
    arms: &'a Arms,
}

impl<'a> View<'a> {
    /// In the order of the study.
    fn arms(&self) -> impl Iterator<Item = &'a ArmCapacity> + '_ {
        let case = self.case;
        self.arms.iter().filter_map(move |look| case.capacity.iter().find(|arm| arm.arm == look.id))
    }

    fn searches(&self) -> impl Iterator<Item = (&'a ArmCapacity, &'a SearchFindings)> + '_ {
        self.arms().flat_map(|arm| arm.searches.iter().map(move |search| (arm, search)))
    }

    fn found(&self) -> Table {
        let noun = words::sentence_case(noun(self.case, self.findings));
        if self.findings.plan.study.published.is_some() {
            return self.published(&noun);
        }
        let columns = vec![
            Column::text("Arm"),
            Column::numeric(&format!("{noun} that half hold")),
            Column::numeric("That 95 of 100 hold"),
            Column::numeric("Against baseline"),
            Column::numeric("Spread"),
            Column::text("By block"),
            Column::numeric("Blocks"),
            Column::numeric("Tries"),
        ];
        let caption = "The load at which half of the instances meet every objective, with its interval, and the load at which 95 \
                       of 100 do, with its lower bound: fitted to every try of all blocks. Spread: standard deviation of what \
                       instances hold.";
        let mut table = Table::new(caption, columns);
        for arm in self.arms() {
            let Some(fit) = &arm.fit else { continue };
            let look = self.arms.get(&arm.arm);
            let least = fit.most.low.map_or_else(String::new, |low| format!("at least {}", load_text(low.floor())));
            let bound = if fit.all_held { "\u{2265} " } else { "" };
            let half = value(&fit.half);
            let blocks: Vec<String> = arm.searches.iter().map(|search| between(search, self.findings)).collect();
            table.rows.push(vec![
                Cell::arm(&look),
                Cell { text: format!("{bound}{}", half.text), ..half },
                Cell::with_note(load_text(fit.most.value.floor()), least),
                self.against(&look),
                Cell::text(format::relative(fit.spread)),
                Cell::text(blocks.join("; ")),
                Cell::text(fit.half.n.to_string()),
                Cell::text(fit.tries.to_string()),
            ]);
        }
        table
    }

    fn published(&self, noun: &str) -> Table {
        let columns = ["Against baseline", "Iterations"].map(Column::numeric);
        let columns = [Column::text("Arm"), Column::numeric(noun)].into_iter().chain(columns).collect();
        let mut table = Table::new("The largest load of each arm, as published.", columns);
        for arm in self.arms() {
            let look = self.arms.get(&arm.arm);
            let estimate = self.capacity().and_then(|metric| metric.arms.iter().find(|own| own.arm == look.id));
            let estimate = estimate.map_or_else(Cell::none, |own| value(&own.estimate));
            let iterations: Vec<usize> = arm.searches.iter().map(|search| search.iterations as usize).collect();
            table.rows.push(vec![Cell::arm(&look), estimate, self.against(&look), Cell::text(range(&iterations))]);
        }
        table
    }

    fn capacity(&self) -> Option<&'a MetricFindings> {
        self.case.metrics.iter().find(|own| own.spec.id == metric::CAPACITY)
    }

    /// The capacity of an arm beside that of the baseline.
    fn against(&self, look: &ArmLook) -> Cell {
        let found = self.capacity().and_then(|metric| metric.comparisons.iter().find(|own| own.arm == look.id));
        let Some(c) = found else {
            return if look.is_baseline { Cell::text("baseline") } else { Cell::none() };
        };
        Cell::default().compared(c, words::verdict(c.verdict))
    }
}

fn value(found: &Estimate) -> Cell {
    let text = bars::figure(found, &Unit::Count);
    let (value, interval) = text.split_once(' ').unwrap_or((&text, ""));
    Cell::with_note(value, interval).strong()
}

/// `9`, or `8 to 11`.
fn range(numbers: &[usize]) -> String {
    match (numbers.iter().min(), numbers.iter().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => format::NOTHING.to_owned(),
    }
}

/// The capacities of all cases in one figure.
pub(super) fn overview(findings: &Findings, arms: &Arms) -> Option<FigureView> {
    let cases: Vec<&CaseFindings> = findings.cases.iter().filter(|case| !case.capacity.is_empty()).collect();
    let group = |case: &&CaseFindings| {
        let found = case.metrics.iter().find(|own| own.spec.id == metric::CAPACITY)?;
        let bar = |look: &ArmLook| {
            let own = found.arms.iter().find(|own| own.arm == look.id)?;
            let fit = case.capacity.iter().find(|arm| arm.arm == look.id).and_then(|arm| arm.fit.as_ref());
            let capped = fit.is_some_and(|fit| fit.all_held);
            let figure = bars::figure(&own.estimate, &Unit::Count);
            let text = if capped { format!("at least {figure}") } else { figure };
            Some(Bar { arm: look.clone(), estimate: own.estimate.clone(), text: Some(text) })
        };
        Some(Group { heading: case.label.clone(), bars: arms.iter().filter_map(bar).collect() })
    };
    let nouns: std::collections::BTreeSet<&str> = cases.iter().map(|case| noun(case, findings)).collect();
    // Sessions and arrivals have no axis in common.
    if cases.is_empty() || nouns.len() > 1 {
        return None;
    }
    let noun = nouns.into_iter().next().unwrap_or("clients");
    let title = "The largest load that meets every objective".to_owned();
    let bars = Bars {
        title: title.clone(),
        axis: noun.to_owned(),
        unit: Unit::Count,
        groups: cases.iter().filter_map(group).collect(),
    };
    let caption = format!("More is better. {}", bars_caption(findings));
    FigureView::new(title, &caption, bars.figure("fig-capacities"))
}

const fn bars_caption(findings: &Findings) -> &'static str {
    if findings.plan.study.published.is_some() {
        "Bar: the published figure."
    } else {
        "Bar: the estimate over the blocks. Line: its interval, if there are enough blocks."
    }
}

/// Mean response times at equal load of all cases that have one, in one figure.
pub(super) fn latencies(findings: &Findings, arms: &Arms) -> Option<FigureView> {
    let loads: BTreeMap<&str, f64> =
        findings.cases.iter().filter_map(|case| Some((case.id.as_str(), equal(case, findings)?))).collect();
    let group = |case: &CaseFindings| {
        let load = loads.get(case.id.as_str())?;
        let bar = |look: &ArmLook| {
            let own = case.resources.iter().find(|own| own.arm == look.id)?;
            let estimate = estimate_of(case, &look.id, own.response_s?);
            Some(Bar { arm: look.clone(), estimate, text: None })
        };
        let heading = format!("{}: {} {}", case.label, load_text(*load), noun(case, findings));
        Some(Group { heading, bars: arms.iter().filter_map(bar).collect() })
    };
    let groups: Vec<Group> = findings.cases.iter().filter_map(group).collect();
    if groups.is_empty() {
        return None;
    }
    let title = "Response time at equal load".to_owned();
    let axis = "mean response time".to_owned();
    let bars = Bars { title: title.clone(), axis, unit: Unit::Seconds, groups };
    let caption = format!(
        "Less is better. Mean over all requests, each with its embedded files, at a load that is the same on every arm. {}",
        bars_caption(findings)
    );
    FigureView::new(title, &caption, bars.figure("fig-latencies"))
}

/// The load that all arms of a case had alike, where a load is what it is about; `None` where they did not, or it was looked for.
fn equal(case: &CaseFindings, findings: &Findings) -> Option<f64> {
    let planned = findings.plan.study.cases.iter().find(|planned| planned.id == case.id)?;
    let is_share = matches!(planned.load, CaseLoad::ShareOf { .. });
    let about_a_load = is_share || !case.requests.is_empty() || has_mean(case);
    if !about_a_load || planned.load.is_capacity() {
        return None;
    }
    let first = offered(case)?;
    case.resources.iter().all(|own| (own.load - first).abs() < 1e-9).then_some(first)
}

fn has_mean(case: &CaseFindings) -> bool {
    case.metrics.iter().any(|own| own.spec.id == common::RESPONSE_MEAN)
}

/// The estimate of the mean response time, from the metric where the workload yields one.
fn estimate_of(case: &CaseFindings, arm: &str, mean: f64) -> Estimate {
    let metric = case.metrics.iter().find(|own| own.spec.id == common::RESPONSE_MEAN);
    let own = metric.and_then(|metric| metric.arms.iter().find(|own| own.arm == arm));
    own.map_or_else(
        || Estimate {
            value: mean,
            low: None,
            high: None,
            level: 0.95,
            n: 1,
            method: "mean over the trials".to_owned(),
        },
        |own| own.estimate.clone(),
    )
}
