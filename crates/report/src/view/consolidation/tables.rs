//! The figures of several instances in numbers.

use tare_model::findings::{ArmConsolidation, Estimate, InstancePoint, InstanceSeries, LoadPoint};
use tare_model::metric::Unit;

use super::super::table::{Cell, Column, Table};
use super::{Group, change_parts, load};
use crate::format;

fn changed(estimate: Option<&Estimate>, unit: &str) -> Cell {
    estimate.map_or_else(Cell::none, |estimate| Cell::parts(change_parts(estimate, unit)))
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
                    Cell::arm(&look),
                    Cell::text(load(series.clients_per_instance)),
                    Cell::text(point.instances.to_string()),
                    Cell::text(load(point.clients)),
                ];
                row.extend(response.map(|_| Cell::known(point.response.as_ref(), &Unit::Seconds)));
                row.push(Cell::known(point.cpu.as_ref(), &Unit::Share));
                row.push(Cell::known(point.throughput.as_ref(), &Unit::OperationsPerSecond));
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
                    Cell::known(Some(&point.value), &Unit::OperationsPerSecond),
                    changed(point.per_instance.as_ref(), "%"),
                    changed(point.step.as_ref(), "%"),
                    Cell::known(point.held.as_ref(), &Unit::Share),
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
                    Cell::known(Some(&point.value), &Unit::Share),
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
                table.rows.push(std::iter::once(Cell::arm(&look)).chain(cells(series, point)).collect());
            }
        }
        table.filled()
    }
}
