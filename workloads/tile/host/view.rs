//! What a report says of tiles: what each member does as they are added.

use std::collections::BTreeSet;

use tare_model::density::metric;
use tare_model::findings::section::{Block, Cell, Column, Figure, Line, Panel, Place, Point, Section, Table, Value};
use tare_model::findings::{ArmDensity, CaseFindings, DensityFindings, LevelFindings};
use tare_model::metric::{MetricSpec, Unit};
use tare_model::study::Case;

use super::{figures, members};
use crate::View;

/// The view of tiles.
pub(super) struct Tiles;

impl View for Tiles {
    fn of_case(&self, case: &Case, found: &CaseFindings) -> Vec<Section> {
        let (Some(density), Ok(members)) = (&found.density, members(&case.parameters)) else { return Vec::new() };
        let names = members.iter().map(|member| member.name.clone()).collect();
        let added = Added { found, density, names, specs: figures::specs(&members) };
        let table =
            added.table().map(|table| Block::Fold { title: "The members in figures".to_owned(), tables: vec![table] });
        let blocks = [added.figure().map(Block::Figure), table];
        Section::of("What each member does as tiles are added", Place::Answer, blocks).into_iter().collect()
    }
}

/// A case that adds tiles.
struct Added<'a> {
    found: &'a CaseFindings,
    density: &'a DensityFindings,
    /// Names of the guests of one tile, in order.
    names: Vec<String>,
    /// All metrics that tiles have.
    specs: Vec<MetricSpec>,
}

impl<'a> Added<'a> {
    /// Levels of whole tiles, ascending, by the number of them.
    fn levels(&self, arm: &'a ArmDensity) -> impl Iterator<Item = (u32, &'a LevelFindings)> {
        let size = (self.names.len() as u32).max(1);
        arm.levels.iter().filter(|level| level.guests > 0).map(move |level| (level.guests / size, level))
    }

    /// Metrics of a member that some level has.
    fn metrics(&self, member: &str) -> impl Iterator<Item = &MetricSpec> {
        let prefix = metric::member(member, "");
        let levels = || self.density.arms.iter().flat_map(|arm| &arm.levels);
        let known = move |spec: &&MetricSpec| levels().any(|level| level.metrics.contains_key(&spec.id));
        self.specs.iter().filter(move |spec| spec.id.starts_with(&prefix)).filter(known)
    }

    /// A line a metric of a member at a number of tiles, a column an arm.
    fn table(&self) -> Option<Table> {
        let arms = &self.density.arms;
        let heads = arms.iter().map(|arm| Column::arm(&arm.arm));
        let columns = [Column::text("Member, metric"), Column::number("Tiles")].into_iter().chain(heads).collect();
        let caption = "Metrics of each member as tiles are added: the worst of the tiles, with [interval], and per cent of the \
                       value of the same member in a single tile. A number of tiles that did not hold in every block is marked.";
        let mut table = Table::new(caption, columns);
        let numbers: BTreeSet<u32> = arms.iter().flat_map(|arm| self.levels(arm)).map(|(tiles, _)| tiles).collect();
        for spec in self.names.iter().flat_map(|member| self.metrics(member)) {
            for tiles in &numbers {
                let cells = arms.iter().map(|arm| self.cell(arm, *tiles, spec));
                let row = [Cell::text(&spec.label), Value::Count(u64::from(*tiles)).into()];
                table.rows.push(row.into_iter().chain(cells).collect());
            }
        }
        table.filled()
    }

    fn cell(&self, arm: &'a ArmDensity, tiles: u32, spec: &MetricSpec) -> Cell {
        let at = |wanted: u32| self.levels(arm).find(|(own, _)| *own == wanted).map(|(_, level)| level);
        let of = |level: &'a LevelFindings| level.metrics.get(&spec.id);
        let Some((level, found)) = at(tiles).and_then(|level| Some((level, of(level)?))) else {
            return Value::Unknown.into();
        };
        let single = at(1).and_then(of).filter(|one| tiles > 1 && spec.unit != Unit::Share && one.value > 0.0);
        let share = single.map(|one| format!("{:.0} % of a single tile", 100.0 * found.value / one.value));
        let held = (level.held < level.tried).then(|| "did not hold".to_owned());
        let notes: Vec<String> = share.into_iter().chain(held).collect();
        Cell::from(Value::Estimate(found.clone(), spec.unit.clone())).noted(notes.join("; "))
    }

    fn figure(&self) -> Option<Figure> {
        let panels: Vec<Panel> = self.names.iter().flat_map(|member| self.panels(member)).collect();
        let caption = "One panel per member and metric, each for the worst of the tiles. Marks: estimates over the blocks, with \
                       their intervals; hollow: that number of tiles did not hold in every block. Dashed: the member\u{2019}s \
                       objective.";
        let x_title = format!("tiles of {} guests ({})", self.names.len(), self.names.join(", "));
        (!panels.is_empty()).then(|| Figure { caption: caption.to_owned(), x_title, panels })
    }

    /// The metrics of a member that its objectives bound, or else those in seconds; and what it still does of what it did in a single tile.
    fn panels(&self, member: &str) -> Vec<Panel> {
        let specs: Vec<&MetricSpec> = self.metrics(member).collect();
        let bound =
            |spec: &MetricSpec| self.found.objectives.iter().find(|own| own.spec.id == spec.id).map(|own| own.bound);
        let bounded = specs.iter().any(|spec| bound(spec).is_some());
        let shown = specs.into_iter().filter(|spec| {
            let wanted = if bounded { bound(spec).is_some() } else { spec.unit == Unit::Seconds };
            wanted || spec.id == metric::member(member, metric::MEMBER_SHARE)
        });
        let panel = |spec: &MetricSpec| Panel {
            title: spec.label.clone(),
            unit: spec.unit.clone(),
            bound: bound(spec).map(|bound| (bound, "objective".to_owned())),
            lines: self.density.arms.iter().map(|arm| self.line(arm, spec)).collect(),
        };
        shown.map(panel).collect()
    }

    fn line(&self, arm: &'a ArmDensity, spec: &MetricSpec) -> Line {
        let point = |(tiles, level): (u32, &LevelFindings)| {
            let y = level.metrics.get(&spec.id)?.clone();
            Some(Point { x: f64::from(tiles), y, hollow: level.held < level.tried })
        };
        Line { arm: arm.arm.clone(), points: self.levels(arm).filter_map(point).collect() }
    }
}

#[cfg(test)]
#[path = "view/tests.rs"]
mod tests;
