//! The figures of several instances in numbers.

use tare_model::findings::{ArmConsolidation, Estimate, InstancePoint, InstanceSeries, LoadPoint};
use tare_model::metric::Unit;

use super::super::table::{Cell, Column, Table};
use super::{Group, change_parts, load};
use crate::format;
use crate::plot::arms::ArmLook;

/// A figure with its interval below it; a dash without one.
pub(crate) fn cell(estimate: Option<&Estimate>, unit: &Unit) -> Cell {
    estimate.map_or_else(Cell::none, |estimate| {
        let parts = format::estimate_parts(estimate, unit);
        Cell::with_note(parts.value, parts.interval.unwrap_or_default())
    })
}

fn changed(estimate: Option<&Estimate>, unit: &str) -> Cell {
    estimate.map_or_else(Cell::none, |estimate| {
        let (value, interval) = change_parts(estimate);
        Cell::with_note(format!("{value} {unit}"), interval)
    })
}

/// In how many of the blocks all objectives were met.
fn met(point: &LoadPoint) -> Cell {
    match point.met {
        None => Cell::none(),
        Some(met) if met >= 1.0 => Cell::chip("in every block", "better"),
        Some(met) if met <= 0.0 => Cell::chip("in none", "worse"),
        Some(met) => {
            Cell::chip(format!("in {} of the blocks", format::share((met * 100.0).round() / 100.0)), "unknown")
        }
    }
}

impl Group<'_> {
    pub(super) fn arm(&self, look: &ArmLook) -> Cell {
        Cell { key: self.arms.key(&look.id), ..Cell::text(&look.label) }
    }

    pub(super) fn load_table(&self) -> Option<Table> {
        let mut columns = vec![
            Column::text("Arm"),
            Column::numeric("Clients an instance"),
            Column::numeric("Instances"),
            Column::numeric("Clients"),
        ];
        let response = self.response();
        columns.extend(response.map(|label| Column::numeric(&crate::words::sentence_case(label))));
        columns.extend(["CPU of the guest", "Throughput"].map(Column::numeric));
        columns.push(Column::text("Objectives met"));
        let mut table = Table::new("Estimates over the blocks and [intervals].", columns);
        for (arm, look) in self.shown() {
            for (series, point) in arm.by_load.iter().flat_map(|own| own.points.iter().map(move |point| (own, point))) {
                let mut row = vec![
                    self.arm(&look),
                    Cell::text(load(series.clients_per_instance)),
                    Cell::text(point.instances.to_string()),
                    Cell::text(load(point.clients)),
                ];
                row.extend(response.map(|_| cell(point.response.as_ref(), &Unit::Seconds)));
                row.push(cell(point.cpu.as_ref(), &Unit::Share));
                row.push(cell(point.throughput.as_ref(), &Unit::OperationsPerSecond));
                row.push(met(point));
                table.rows.push(row);
            }
        }
        table.filled()
    }

    pub(super) fn lost_table(&self) -> Option<Table> {
        let columns = vec![
            Column::text("Arm"),
            Column::numeric("CPU asked"),
            Column::numeric("Instances"),
            Column::numeric("Throughput"),
            Column::numeric("Lost for each more"),
            Column::numeric("Since the row above, each"),
            Column::numeric("CPU held"),
        ];
        let caption = "Throughput lost, in per cent of the throughput of the fewest instances; values above 0 are a \
                       loss. Paired within blocks, with [intervals]. CPU held: the share of CPU at which it was \
                       measured.";
        self.instance_table(
            caption,
            columns,
            |arm| &arm.lost,
            |series, point| {
                vec![
                    Cell::text(format::share(series.fixed)),
                    Cell::text(point.instances.to_string()),
                    cell(Some(&point.value), &Unit::OperationsPerSecond),
                    changed(point.per_instance.as_ref(), "%"),
                    changed(point.step.as_ref(), "%"),
                    cell(point.held.as_ref(), &Unit::Share),
                ]
            },
        )
    }

    pub(super) fn gained_table(&self) -> Option<Table> {
        let columns = vec![
            Column::text("Arm"),
            Column::numeric("Clients"),
            Column::numeric("Instances"),
            Column::numeric("CPU of the guest"),
            Column::numeric("Gained for each more"),
            Column::numeric("Since the row above, each"),
        ];
        let caption = "Points of the guest\u{2019}s CPUs above those of the fewest instances. Paired within blocks, \
                       with [intervals].";
        self.instance_table(
            caption,
            columns,
            |arm| &arm.gained,
            |series, point| {
                vec![
                    Cell::text(load(series.fixed)),
                    Cell::text(point.instances.to_string()),
                    cell(Some(&point.value), &Unit::Share),
                    changed(point.per_instance.as_ref(), "points"),
                    changed(point.step.as_ref(), "points"),
                ]
            },
        )
    }

    fn instance_table(
        &self,
        caption: &str,
        columns: Vec<Column>,
        of: fn(&ArmConsolidation) -> &Vec<InstanceSeries>,
        cells: impl Fn(&InstanceSeries, &InstancePoint) -> Vec<Cell>,
    ) -> Option<Table> {
        let mut table = Table::new(caption, columns);
        for (arm, look) in self.shown() {
            for (series, point) in of(arm).iter().flat_map(|own| own.points.iter().map(move |point| (own, point))) {
                table.rows.push(std::iter::once(self.arm(&look)).chain(cells(series, point)).collect());
            }
        }
        table.filled()
    }

    /// A line a load, two columns an arm.
    pub(super) fn side_table(&self, each: f64) -> Option<Table> {
        let arms: Vec<(&ArmConsolidation, ArmLook)> = self.shown().collect();
        let series: Vec<_> = arms.iter().filter_map(|(arm, look)| Some((Self::series(arm, each)?, look))).collect();
        let (first, _) = series.first()?;
        let head = |look: &ArmLook, what: &str| Column {
            key: self.arms.key(&look.id),
            note: what.to_owned(),
            ..Column::numeric(&look.label)
        };
        let response = self.response();
        let mut columns = vec![Column::numeric("Clients"), Column::numeric("Instances")];
        for (_, look) in &series {
            columns.extend(response.map(|label| head(look, label)));
            columns.push(head(look, "CPU"));
        }
        let mut table = Table::new("Estimates over the blocks and [intervals].", columns);
        for point in &first.points {
            let mut row = vec![Cell::text(load(point.clients)), Cell::text(point.instances.to_string())];
            for (own, _) in &series {
                let own = own.points.iter().find(|other| other.instances == point.instances);
                row.extend(response.map(|_| cell(own.and_then(|own| own.response.as_ref()), &Unit::Seconds)));
                row.push(cell(own.and_then(|own| own.cpu.as_ref()), &Unit::Share));
            }
            table.rows.push(row);
        }
        table.filled()
    }
}
