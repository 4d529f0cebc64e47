//! The instances of one guest side by side: whether they were served alike.

use tare_model::findings::{ArmConsolidation, CaseInstances, Estimate, InstanceFindings};
use tare_model::metric::Unit;

use super::super::table::{Cell, Column, Table};
use super::figures::APART;
use super::{FigureView, Group, PartView, load};
use crate::format;
use crate::plot::arms::ArmLook;
use crate::plot::curves::{Chart, Line, Panel, Point, on_one_scale};

/// How many times as long as the fastest the slowest instance may take and still count as served alike: the 90th percentiles of ten
/// equal instances of some hundred operations each lie so far apart by chance.
const ALIKE: f64 = 1.25;

/// Most cases whose instances are drawn.
const DRAWN: usize = 2;

/// `1.06 times [1.02, 1.10]`.
fn times(ratio: &Estimate) -> String {
    let parts = format::fixed_parts(ratio, 2);
    format::Parts { value: format!("{} times", parts.value), ..parts }.joined()
}

fn ratio(found: Option<&Estimate>) -> Cell {
    found.map_or_else(Cell::none, |own| Cell::parts(format::fixed_parts(own, 2)))
}

/// How far the instances of a case were apart: by response time, else by throughput.
fn apart(own: &CaseInstances) -> Option<&Estimate> {
    own.response_apart.as_ref().or(own.throughput_apart.as_ref())
}

/// How the instances of one guest were served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Served {
    Alike,
    /// Further apart than alike, but no interval says that this was no chance.
    Unsure,
    Unlike,
}

impl Served {
    fn of(ratio: &Estimate) -> Self {
        match (ratio.value > ALIKE, ratio.low.is_some_and(|low| low > ALIKE)) {
            (false, _) => Self::Alike,
            (true, false) => Self::Unsure,
            (true, true) => Self::Unlike,
        }
    }
}

/// `8 instances, 1,000 clients`.
fn place(own: &CaseInstances) -> String {
    let instances = format::plural(u64::from(own.instances), "instance", "instances");
    if own.clients > 0.0 { format!("{instances}, {} clients", load(own.clients.round())) } else { instances }
}

/// The least and the most of a figure over the instances.
fn ends(
    own: &CaseInstances,
    of: fn(&InstanceFindings) -> Option<&Estimate>,
) -> Option<(&InstanceFindings, &InstanceFindings)> {
    let value = |each: &InstanceFindings| of(each).map_or(f64::NAN, |found| found.value);
    let known = || own.each.iter().filter(|each| value(each).is_finite());
    let least = known().min_by(|a, b| value(a).total_cmp(&value(b)))?;
    Some((least, known().max_by(|a, b| value(a).total_cmp(&value(b)))?))
}

fn response(each: &InstanceFindings) -> Option<&Estimate> {
    each.response.as_ref()
}

fn throughput(each: &InstanceFindings) -> Option<&Estimate> {
    each.throughput.as_ref()
}

/// `12.1 to 12.4`, on one scale and with its unit.
fn range(own: &CaseInstances, of: fn(&InstanceFindings) -> Option<&Estimate>, unit: &Unit) -> Cell {
    let Some((least, most)) = ends(own, of) else { return Cell::none() };
    let value = |each| of(each).map_or(f64::NAN, |found| found.value);
    let scale = format::Scale::new(unit, value(most));
    Cell::text(format!("{} to {}", scale.text(value(least)), scale.with_unit(&scale.text(value(most)))))
}

impl<'a> Group<'a> {
    /// An arm in a sentence: alike in every case, or not in which.
    pub(super) fn seen_alike(&self) -> Vec<String> {
        self.served().map(|(_, said)| said).collect()
    }

    /// The same of the arms on which they surely were not.
    pub(super) fn seen_unlike(&self) -> Vec<String> {
        self.served().filter(|(served, _)| *served == Served::Unlike).map(|(_, said)| said).collect()
    }

    fn served(&self) -> impl Iterator<Item = (Served, String)> + '_ {
        self.shown().filter_map(|(arm, look)| {
            let (served, said) = of_arm(arm)?;
            Some((served, format!("{}: {said}.", look.label)))
        })
    }

    pub(super) fn side_by_side_instances(&self, id: &str) -> Option<PartView> {
        let table = self.alike_table()?;
        let title = "Were the instances of a guest served alike?".to_owned();
        let caption = "The cases with the largest differences between instances. Mark: one instance over the blocks, \
                       with its interval. Instances that are served alike lie on a level line.";
        let figure = self.alike_figure(&title, &format!("{id}-alike"));
        Some(PartView {
            figure: figure.and_then(|figure| FigureView::new(title.clone(), caption, Some(figure))),
            title,
            seen: self.seen_alike(),
            table: Some(table),
            table_title: "The slowest beside the fastest instance of each case, in figures".to_owned(),
        })
    }

    /// Every instance by itself.
    pub(super) fn each_instance(&self) -> Option<PartView> {
        let mut columns = vec![
            Column::text("Arm"),
            Column::numeric("Instances"),
            Column::numeric("Clients"),
            Column::numeric("Instance"),
            Column::numeric("Its clients"),
            Column::numeric("Throughput"),
        ];
        columns.extend(self.response().map(|label| Column::numeric(&crate::words::sentence_case(label))));
        columns.push(Column::numeric("Wrong or no answer"));
        let mut table = Table::new("One instance a row: estimates over the blocks and [intervals].", columns);
        for (own, look) in self.cases() {
            for each in &own.each {
                let mut row = vec![
                    Cell::arm(&look),
                    Cell::text(own.instances.to_string()),
                    Cell::text(load(own.clients.round())),
                    Cell::text(each.instance.to_string()),
                    Cell::text(load(each.clients.round())),
                    Cell::known(each.throughput.as_ref(), &Unit::OperationsPerSecond),
                ];
                row.extend(self.response().map(|_| Cell::known(each.response.as_ref(), &Unit::Seconds)));
                row.push(Cell::known(each.failed.as_ref(), &Unit::Share));
                table.rows.push(row);
            }
        }
        let table_title = "Each instance by itself, in figures".to_owned();
        let part = |table| PartView { title: String::new(), seen: Vec::new(), figure: None, table, table_title };
        table.filled().map(|table| part(Some(table)))
    }

    fn cases(&self) -> impl Iterator<Item = (&'a CaseInstances, ArmLook)> + '_ {
        self.shown().flat_map(|(arm, look)| arm.side_by_side.iter().map(move |own| (own, look.clone())))
    }

    fn alike_table(&self) -> Option<Table> {
        let response = self.response();
        let mut columns = vec![
            Column::text("Arm"),
            Column::numeric("Instances"),
            Column::numeric("Clients"),
            Column { note: "of an instance, fewest to most".to_owned(), ..Column::numeric("Throughput") },
            Column { note: "most / fewest".to_owned(), ..Column::numeric("Throughput") },
        ];
        columns.extend(response.iter().flat_map(|label| {
            let label = crate::words::sentence_case(label);
            [
                Column { note: "of an instance, fastest to slowest".to_owned(), ..Column::numeric(&label) },
                Column { note: "slowest / fastest".to_owned(), ..Column::numeric(&label) },
                Column::numeric("Slowest instance"),
            ]
        }));
        let caption = format!(
            "Instances that share one guest. Ratios are taken within each block; shown is the estimate over the blocks \
             with [interval]. Ratios of equal instances lie slightly above 1. Ratios up to {} count as served alike. \
             Instances count as not served alike where the whole interval lies above that.",
            format::fixed(ALIKE, 2)
        );
        let mut table = Table::new(caption, columns);
        for (own, look) in self.cases() {
            let mut row = vec![
                Cell::arm(&look),
                Cell::text(own.instances.to_string()),
                Cell::text(load(own.clients.round())),
                range(own, throughput, &Unit::OperationsPerSecond),
                ratio(own.throughput_apart.as_ref()),
            ];
            if response.is_some() {
                let slowest = ends(own, self::response).map(|(_, slowest)| slowest.instance.to_string());
                row.push(range(own, self::response, &Unit::Seconds));
                row.push(ratio(own.response_apart.as_ref()));
                row.push(slowest.map_or_else(Cell::none, Cell::text));
            }
            table.rows.push(row);
        }
        table.filled()
    }

    /// The response times of the instances in the cases in which they were furthest apart.
    fn alike_figure(&self, title: &str, id: &str) -> Option<crate::plot::Figure> {
        let mut cases: Vec<(&CaseInstances, ArmLook)> =
            self.cases().filter(|(own, _)| own.response_apart.is_some()).collect();
        let value = |own: &CaseInstances| apart(own).map_or(0.0, |ratio| ratio.value);
        cases.sort_by(|(a, _), (b, _)| value(b).total_cmp(&value(a)));
        let mut ids: Vec<&CaseInstances> = Vec::new();
        for (own, _) in &cases {
            if ids.len() < DRAWN && ids.iter().all(|known| known.case != own.case) {
                ids.push(own);
            }
        }
        let middle = self.arms.iter().count().saturating_sub(1) as f64 / 2.0;
        let panel = |case: &CaseInstances| {
            let line = |(own, look): (&CaseInstances, ArmLook)| {
                let point =
                    |each: &InstanceFindings| Some(Point::new(f64::from(each.instance), each.response.as_ref()?));
                let beside = self.arms.iter().position(|arm| arm.id == look.id).unwrap_or(0);
                let shift = (beside as f64 - middle) * APART;
                Line { joined: false, shift, ..Line::new(look, own.each.iter().filter_map(point).collect()) }
            };
            let lines = self.cases().filter(|(own, _)| own.case == case.case).map(line);
            Panel::new(
                format!("{}: {}", self.response().unwrap_or_default(), place(case)),
                Unit::Seconds,
                lines.collect(),
            )
        };
        let mut panels: Vec<Panel> = ids.iter().copied().map(panel).collect();
        on_one_scale(&mut panels);
        let most = ids.iter().map(|own| own.instances).max().unwrap_or(0);
        let chart = Chart {
            title: title.to_owned(),
            x_title: "instance of the guest".to_owned(),
            x_marked: (1..=most).map(f64::from).collect(),
            height: 180.0,
            panels,
        };
        chart.figure(id)
    }
}

/// How the instances of an arm's cases were served, and how far they were apart in the case that tells it.
fn of_arm(arm: &ArmConsolidation) -> Option<(Served, String)> {
    let compared: Vec<(&CaseInstances, &Estimate)> =
        arm.side_by_side.iter().filter_map(|own| Some((own, apart(own)?))).collect();
    let served = compared.iter().map(|(_, ratio)| Served::of(ratio)).max()?;
    let those = compared.iter().filter(|(_, ratio)| Served::of(ratio) == served);
    let (worst, ratio) = those.clone().max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let seen = if worst.response_apart.is_some() {
        let slowest = ends(worst, response).map(|(_, slowest)| format!(" (instance {})", slowest.instance));
        format!("the slowest{} took {} as long as the fastest", slowest.unwrap_or_default(), times(ratio))
    } else {
        format!("that with the most did {} the operations of that with the fewest", times(ratio))
    };
    let (n, all) = (those.count(), compared.len());
    let cases = if all == 1 { String::new() } else { format!(" in {n} of {all} cases: at most") };
    let seen = format!("{}{seen} ({})", if all == 1 { ": " } else { ", " }, place(worst));
    let said = match served {
        Served::Alike => format!("the instances of a guest were served alike{cases}{seen}"),
        Served::Unlike => format!("the instances of a guest were NOT served alike{cases}{seen}"),
        Served::Unsure => {
            format!("whether the instances of a guest were served alike is unknown with so few blocks{cases}{seen}")
        }
    };
    Some((served, said))
}
