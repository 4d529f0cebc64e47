//! Sections that workloads add to their cases, in the form of everything else in the report.

use serde::Serialize;
use tare_model::findings::CaseFindings;
use tare_model::findings::section::{self, Block, Place, Value};

use super::case::FigureView;
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::Arms;
use crate::plot::curves::{Chart, Line, Panel, Point};

/// A section with its heading.
#[derive(Debug, Serialize)]
pub(crate) struct SectionView {
    pub(crate) title: String,
    /// Whether it stands with the answer.
    pub(crate) answers: bool,
    pub(crate) blocks: Vec<BlockView>,
}

/// One part of a section.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BlockView {
    Sentence(String),
    Table(Table),
    Figure(Box<FigureView>),
    Fold { title: String, tables: Vec<Table> },
}

/// The sections of a case.
pub(super) fn sections(anchor: &str, case: &CaseFindings, arms: &Arms) -> Vec<SectionView> {
    let view = |(n, section): (usize, &section::Section)| {
        let block = |(m, block): (usize, &Block)| {
            Some(match block {
                Block::Sentence(sentence) => BlockView::Sentence(sentence.clone()),
                Block::Table(own) => BlockView::Table(table(own, arms)),
                Block::Figure(own) => {
                    let id = format!("fig-{anchor}-section-{n}-{m}");
                    BlockView::Figure(Box::new(figure(&id, &section.title, own, arms)?))
                }
                Block::Fold { title, tables } => BlockView::Fold {
                    title: title.clone(),
                    tables: tables.iter().map(|own| table(own, arms)).collect(),
                },
            })
        };
        let blocks = section.blocks.iter().enumerate().filter_map(block).collect();
        SectionView { title: section.title.clone(), answers: section.place == Place::Answer, blocks }
    };
    case.sections.iter().enumerate().map(view).collect()
}

fn table(own: &section::Table, arms: &Arms) -> Table {
    let column = |column: &section::Column| {
        let Cell { text, key, .. } = value(&column.head, arms);
        Column { key, numeric: column.numeric, ..Column::text(&text) }
    };
    let cell = |own: &section::Cell| {
        let cell = value(&own.value, arms);
        let notes = [cell.note.as_str(), own.note.as_str()].into_iter().filter(|note| !note.is_empty());
        Cell { note: notes.collect::<Vec<_>>().join("; "), ..cell }
    };
    let mut table = Table::new(own.caption.clone(), own.columns.iter().map(column).collect());
    table.rows = own.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    table
}

fn value(value: &Value, arms: &Arms) -> Cell {
    match value {
        Value::Unknown => Cell::none(),
        Value::Text(text) => Cell::text(text),
        Value::Arm(id) => Cell::arm(&arms.get(id)),
        Value::Count(n) => Cell::text(format::count(*n)),
        Value::Share(share) => Cell::text(format!("{} %", format::fixed(share * 100.0, 1))),
        Value::Estimate(found, unit) => Cell::estimate(found, unit),
    }
}

fn figure(id: &str, title: &str, own: &section::Figure, arms: &Arms) -> Option<FigureView> {
    let point = |own: &section::Point| Point { hollow: own.hollow, ..Point::new(own.x, &own.y) };
    let line = |own: &section::Line| Line::new(arms.get(&own.arm), own.points.iter().map(point).collect());
    let panel = |own: &section::Panel| {
        let lines = own.lines.iter().map(line).collect();
        Panel { bound: own.bound.clone(), ..Panel::new(own.title.clone(), own.unit.clone(), lines) }
    };
    let mut marked: Vec<f64> =
        own.panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points).map(|point| point.x).collect();
    marked.sort_by(f64::total_cmp);
    marked.dedup();
    let chart = Chart {
        title: title.to_owned(),
        x_title: own.x_title.clone(),
        x_marked: marked,
        height: 150.0,
        panels: own.panels.iter().map(panel).collect(),
    };
    FigureView::new(title.to_owned(), &own.caption, chart.figure(id))
}
