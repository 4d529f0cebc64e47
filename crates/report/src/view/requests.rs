//! Requests by type and iteration, as published disclosures have them.

use serde::Serialize;
use tare_model::findings::{ArmRequests, CaseFindings, Findings, RequestRow, RequestTable};
use tare_model::metric::Unit;

use super::capacity::{load_text, noun};
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::words;

/// The request types of one case.
#[derive(Debug, Serialize)]
pub(crate) struct RequestsView {
    /// A line an arm: how its iterations met the objectives, worst first.
    pub(crate) summary: Table,
    /// An entry an arm, opened by who wants it.
    pub(crate) arms: Vec<ArmView>,
}

/// The iterations of one arm.
#[derive(Debug, Serialize)]
pub(crate) struct ArmView {
    pub(crate) title: String,
    /// A line an iteration.
    pub(crate) quality: Table,
    /// A table an iteration.
    pub(crate) iterations: Vec<Table>,
}

impl RequestsView {
    pub(super) fn new(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Self> {
        let (noun, published) = (noun(case, findings), findings.plan.study.published.is_some());
        let shown = arms.having(|id| case.requests.iter().find(|own| own.arm == id));
        if shown.is_empty() {
            return None;
        }
        let blocks = shown.iter().flat_map(|(own, _)| &own.iterations).any(|table| table.block > 1);
        let arm = |(own, look): &(&ArmRequests, ArmLook)| {
            let label = &look.label;
            let n = format::plural(own.iterations.len() as u64, "iteration", "iterations");
            ArmView {
                title: format!("{label}: {n}, requests by type"),
                quality: quality(own, label, noun, (blocks, published)),
                iterations: own.iterations.iter().map(|table| of_types(table, label, noun, blocks)).collect(),
            }
        };
        Some(Self { summary: summary(&shown, noun, published), arms: shown.iter().map(arm).collect() })
    }
}

/// What is behind the figures of each arm in one line: the least good of its iterations.
fn summary(shown: &[(&ArmRequests, ArmLook)], noun: &str, published: bool) -> Table {
    let mut columns = vec![Column::text("Arm"), Column::numeric(&words::sentence_case(noun))];
    let noted = |(title, note): (&str, &str)| Column { note: note.to_owned(), ..Column::numeric(title) };
    let shares = [("Good", "least"), ("Tolerable", "or good, least"), ("Failed", "most"), ("Wrong", "in all")];
    columns.push(Column::numeric("Requests"));
    columns.extend(shares.map(noted));
    columns.extend(["Mean response", "Bytes a request"].map(Column::numeric));
    columns.push(Column { note: "met in".to_owned(), ..Column::text("Objectives") });
    let caption = "Quality of service of each arm. Good, Tolerable and Failed: shares in the worst iteration. Wrong: \
                   answers with wrong content; they are part of the failed ones. Mean response and Bytes: means over \
                   all requests.";
    let mut table = Table::new(caption, columns);
    for (own, look) in shown {
        let each = || own.iterations.iter();
        let worst =
            |of: &dyn Fn(&RequestTable) -> f64, pick: fn(f64, f64) -> f64| each().map(of).reduce(pick).unwrap_or(0.0);
        let sum = |of: &dyn Fn(&RequestRow) -> f64| each().map(|table| of(&table.total)).sum::<f64>();
        let requests = sum(&|total| total.counts.requests as f64);
        let mean = |of: &dyn Fn(&RequestRow) -> f64| if requests > 0.0 { sum(of) / requests } else { 0.0 };
        let loads = (worst(&|table| table.load, f64::min), worst(&|table| table.load, f64::max));
        let loads = if loads.0.to_bits() == loads.1.to_bits() {
            load_text(loads.0)
        } else {
            format!("{} to {}", load_text(loads.0), load_text(loads.1))
        };
        let met = each().filter(|table| table.met).count();
        let of = format!("{met}\u{a0}of\u{a0}{}", own.iterations.len());
        let bytes = mean(&|total| total.counts.bytes as f64);
        table.rows.push(vec![
            Cell::arm(look),
            Cell::text(loads),
            Cell::text(format::count(requests as u64)),
            Cell::text(percent(worst(&|table| good(&table.total), f64::min))),
            Cell::text(percent(worst(&|table| tolerable(&table.total), f64::min))),
            Cell::text(percent(worst(&|table| failed(&table.total), f64::max))),
            wrong(sum(&|total| total.counts.validation_errors as f64) as u64, published),
            Cell::text(format::value(mean(&|total| total.counts.response_s), &Unit::Seconds)),
            Cell::text(format::count(bytes.round() as u64)),
            if met == own.iterations.len() {
                Cell::text(of)
            } else {
                Cell::chip(of, if met == 0 { "worse" } else { "unknown" })
            },
        ]);
    }
    table
}

/// Wrong answers. Of figures that others published nobody here knows whether any was checked.
fn wrong(errors: u64, published: bool) -> Cell {
    if published && errors == 0 { Cell::none() } else { Cell::text(format::count(errors)) }
}

fn of_all(part: u64, row: &RequestRow) -> f64 {
    if row.counts.requests > 0 { part as f64 / row.counts.requests as f64 } else { 0.0 }
}

fn good(row: &RequestRow) -> f64 {
    of_all(row.counts.good, row)
}

fn tolerable(row: &RequestRow) -> f64 {
    of_all(row.counts.good + row.counts.tolerable, row)
}

fn failed(row: &RequestRow) -> f64 {
    of_all(row.counts.failed, row)
}

/// A share in percent with one decimal as disclosures have it, and more where all but nothing is left.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let places = if percent > 0.0 && percent < 0.1 || percent > 99.9 && percent < 100.0 { 3 } else { 1 };
    format!("{} %", format::fixed(percent, places))
}

/// The iterations of an arm in the form of a published appendix.
fn quality(own: &ArmRequests, label: &str, noun: &str, (blocks, published): (bool, bool)) -> Table {
    let mut columns = vec![Column::text("Iteration"), Column::numeric(&words::sentence_case(noun))];
    columns.extend(
        ["Requests", "Good", "At least tolerable", "Failed", "Validation errors", "Mean response"].map(Column::numeric),
    );
    columns.push(Column::text("Objectives"));
    let mut table = Table::new(format!("{label}: quality of service, one row per iteration."), columns);
    for own in &own.iterations {
        let total = &own.total;
        table.rows.push(vec![
            Cell::text(named(own, blocks)),
            Cell::text(load_text(own.load)),
            Cell::text(format::count(total.counts.requests)),
            Cell::text(percent(good(total))),
            Cell::text(percent(tolerable(total))),
            Cell::text(percent(failed(total))),
            wrong(total.counts.validation_errors, published),
            Cell::text(format::value(total.response_s, &Unit::Seconds)),
            if own.met { Cell::text("met") } else { Cell::chip("missed", "worse") },
        ]);
    }
    table
}

fn named(table: &RequestTable, blocks: bool) -> String {
    if blocks {
        format!("block\u{a0}{}, iteration\u{a0}{}", table.block, table.iteration)
    } else {
        table.iteration.to_string()
    }
}

/// One iteration by request type.
fn of_types(own: &RequestTable, label: &str, noun: &str, blocks: bool) -> Table {
    let heads = [
        "Requests",
        "Good",
        "Tolerable",
        "Failed",
        "Weighted byte rate, B/s",
        "Mean response",
        "p99",
        "Bytes a request",
    ];
    let columns = std::iter::once(Column::text("Type")).chain(heads.map(Column::numeric)).collect();
    let which = if blocks { named(own, blocks) } else { format!("iteration {}", own.iteration) };
    let window = if own.window_s > 0.0 { format!(", {}", format::wall_time(own.window_s)) } else { String::new() };
    let load = load_text(own.load);
    let caption = format!(
        "{label}, {which}: {load} {noun}{window}. Weighted byte rate: bytes of the type over the response time of all requests; rates add up to the last line\u{2019}s."
    );
    let mut table = Table::new(caption, columns);
    let last = std::iter::once(&own.total).map(|total| (total, true));
    for (row, is_total) in own.rows.iter().map(|row| (row, false)).chain(last) {
        let counts = &row.counts;
        let cells = vec![
            Cell::text(if is_total { "Total".to_owned() } else { counts.name.replace('_', " ") }),
            Cell::text(format::count(counts.requests)),
            Cell::text(format::count(counts.good)),
            Cell::text(format::count(counts.tolerable)),
            Cell::text(format::count(counts.failed)),
            Cell::text(format::count(row.weighted_byte_rate.round() as u64)),
            // No request, no mean.
            if counts.requests > 0 { Cell::text(format::value(row.response_s, &Unit::Seconds)) } else { Cell::none() },
            row.p99_s.map_or_else(Cell::none, |p99| Cell::text(format::value(p99, &Unit::Seconds))),
            if counts.requests > 0 {
                Cell::text(format::count(row.bytes_per_request.round() as u64))
            } else {
                Cell::none()
            },
        ];
        table.rows.push(if is_total { cells.into_iter().map(Cell::strong).collect() } else { cells });
    }
    table
}
