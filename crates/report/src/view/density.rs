//! How many guests the host carries: the tables and figures of a case that adds guests.

use std::collections::BTreeSet;

use tare_model::density::{CoursePoint, metric};
use tare_model::findings::{ArmDensity, CaseFindings, DensityFindings, Findings, LevelFindings, Thresholds};
use tare_model::load::LoadModel;
use tare_model::metric::Unit;
use tare_model::study::{Case, CaseLoad};

use super::case::{FigureView, Titled};
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::plot::curves::{Chart, Line, Panel, Point};
use crate::plot::stack::{PATTERNS, Part, Stacks};
use crate::plot::{Figure, Page};
use crate::words;

/// The tables that belong to the answer.
pub(super) fn lead(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<Titled> {
    let Some(density) = &case.density else { return Vec::new() };
    let view = View { density, findings, arms };
    let titled = |title: &str, table: Table| Titled { title: title.to_owned(), table };
    let many = view.many();
    let mut lead = vec![titled(&format!("How many {many}, and what they do there"), view.carried())];
    lead.extend(view.published().map(|table| titled("Operations a second by number of guests", table)));
    lead
}

/// What is said with figures of a case that are those of one number of guests; nothing where no guests are
/// added. Of a case that looks for its load: that they are those of the load that was found.
pub(super) fn at_held(case: &CaseFindings) -> &'static str {
    if case.density.is_some() {
        " Measured at the largest number of guests that held in each trial, which differs between arms."
    } else if !case.capacity.is_empty() {
        " Measured in the last iteration at each arm\u{2019}s own capacity, which differs between arms."
    } else {
        ""
    }
}

/// How load is offered where guests are added. `offered`: operations a second of each guest, where load is throttled.
pub(super) fn load(case: &Case, load: &LoadModel, offered: Option<f64>) -> String {
    if matches!(&case.load, CaseLoad::Density { spec, .. } if !spec.tile.is_empty()) {
        return "each member under a load of its own".to_owned();
    }
    match (load, offered) {
        (LoadModel::Closed { clients, .. }, Some(rate)) => {
            let rate = format::value(rate, &Unit::OperationsPerSecond);
            let clients = format::plural(u64::from(*clients), "client", "clients");
            format!(
                "each guest is offered {rate} by {clients}, a rate that was found before the first trial and is the same on every arm"
            )
        }
        _ => format!("in each guest {}", words::load(load)),
    }
}

/// Which guests there are, and what they do with their memory, where they are added.
pub(super) fn guests(case: &Case, size: &str) -> Option<String> {
    let CaseLoad::Density { spec, .. } = &case.load else { return None };
    let numbers = spec.guests.words();
    let members: Vec<&str> = spec.tile.iter().map(|guest| guest.name.as_str()).collect();
    if members.is_empty() {
        return Some(format!("guests of {size}, added one at a time; all are measured at {numbers}"));
    }
    Some(format!("tiles of {}, a guest each; all are measured at {numbers} tiles", members.join(", ")))
}

/// Each arm in a line, for a terminal.
pub(crate) fn lines(case: &CaseFindings, arms: &Arms) -> Vec<String> {
    let Some(density) = &case.density else { return Vec::new() };
    let line = |arm: &ArmDensity| {
        let level = |level: &LevelFindings| {
            let failed = if level.held < level.tried { " (did not hold)" } else { "" };
            let rate = level
                .metrics
                .get(metric::OPERATIONS)
                .map_or_else(String::new, |rate| format!(" {}", format::value(rate.value, &Unit::OperationsPerSecond)));
            format!("{}{rate}{failed}", counted(arm, level.guests))
        };
        let levels: Vec<String> = arm.levels.iter().filter(|level| level.guests > 0).map(level).collect();
        let detail = detail(arm).map_or_else(String::new, |detail| format!(": {detail}"));
        let held = counted(arm, arm.held);
        format!("{}: {held} held; {}; stopped by {}{detail}", arms.label(&arm.arm), levels.join(", "), reasons(arm))
    };
    density.arms.iter().map(line).collect()
}

/// The figures, most telling first.
pub(super) fn figures(anchor: &str, case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<FigureView> {
    let Some(density) = &case.density else { return Vec::new() };
    let view = View { density, findings, arms };
    let id = |name: &str| format!("fig-{anchor}-density-{name}");
    let many = view.many();
    let figures = [
        FigureView::new(
            format!("Operations a second as {many} are added"),
            &format!(
                "All guests together. Marks: estimates over the blocks, with their intervals. Dotted: the fitted model \
                 with the smaller residual, if at least four numbers were measured (the table has both models). Large \
                 hollow mark: its knee, beyond which more {many} add no work. A line ends where no more {many} could \
                 be added, or at the end of the series."
            ),
            view.throughput().figure(&id("operations")),
        ),
        FigureView::new(
            view.of_a_guest().title,
            "As far as it applies: operations a second of a guest, its 99th percentile of response time, and how busy the host is. Response \
             time counts from the moment when an operation was due.",
            view.of_a_guest().figure(&id("guest")),
        ),
        FigureView::new(
            format!("Memory while {many} are added"),
            "One scale-up of each arm (the block with the middle result). Savings follow the guests that they come \
             from; the delay shows how fast the rule merges.",
            view.course().figure(&id("course")),
        ),
        FigureView::new(
            "What a guest costs, and what merging costs".to_owned(),
            "Unique: memory that no other process maps. Shared: a guest's proportional part of the rest. Cost for the \
             host: the drop in available memory since before the first guest, divided by the guests. Scanner: the \
             kernel thread that looks for equal pages.",
            view.costs().figure(&id("costs")),
        ),
        FigureView::new(
            "Where the saving came from".to_owned(),
            &format!("Memory saved at the largest number of {many} that held, by the content of the merged pages."),
            view.saved_from(&id("saved")),
        ),
    ];
    figures.into_iter().flatten().collect()
}

/// Further tables: the models.
pub(super) fn tables(case: &CaseFindings, arms: &Arms) -> Vec<Table> {
    let Some(density) = &case.density else { return Vec::new() };
    [models(density, arms), stops(density, arms)].into_iter().flatten().collect()
}

struct View<'a> {
    density: &'a DensityFindings,
    findings: &'a Findings,
    arms: &'a Arms,
}

/// The largest number of guests that was measured, held, and is at most what half of the scale-ups hold.
fn held_level(arm: &ArmDensity) -> Option<&LevelFindings> {
    arm.levels.iter().rfind(|level| level.guests <= arm.held && level.held > 0)
}

/// Whether the list ended before anything did not hold.
fn at_least(arm: &ArmDensity) -> bool {
    arm.fit.as_ref().map_or(arm.end_of_series && arm.held > 0, |fit| fit.all_held)
}

/// `3 guests`, or `1 tile` where guests are added by tiles.
fn counted(arm: &ArmDensity, guests: u32) -> String {
    match arm.tile.len() as u32 {
        0 => format::plural(u64::from(guests), "guest", "guests"),
        size => format::plural(u64::from(guests / size), "tile", "tiles"),
    }
}

/// What was seen when the first scale-up stopped.
fn detail(arm: &ArmDensity) -> Option<&String> {
    arm.stopped.iter().map(|(.., detail)| detail).find(|detail| !detail.is_empty())
}

fn reasons(arm: &ArmDensity) -> String {
    let kinds: BTreeSet<&str> = arm.stopped.iter().map(|(_, _, kind, _)| kind.as_str()).collect();
    kinds.into_iter().collect::<Vec<_>>().join(", ")
}

impl<'a> View<'a> {
    fn shown(&self) -> impl Iterator<Item = (&'a ArmDensity, ArmLook)> {
        let density = self.density;
        self.arms.having(|id| density.arms.iter().find(|arm| arm.arm == id)).into_iter()
    }

    /// What governs merging and balloons on an arm, for people.
    fn governed_by(&self, arm: &str) -> String {
        let planned = self.findings.plan.study.arms.iter().find(|planned| planned.id == arm);
        let asked = planned.map(|arm| arm.host_memory).unwrap_or_default();
        let merging = asked.merging.map_or_else(
            || "no merging".to_owned(),
            |merging| {
                let zero = if merging.zero_pages { ", empty pages apart" } else { "" };
                format!("{}{zero}", merging.rule.name())
            },
        );
        let balloons = if asked.ballooning.is_some() { ", balloons by mom" } else { "" };
        format!("{merging}{balloons}")
    }

    fn carried(&self) -> Table {
        let host = match self.density.host_memory_bytes {
            0 => String::new(),
            _ if self.density.arms.iter().any(ArmDensity::is_elsewhere) => String::new(),
            bytes => format!(" on a host of {}", format::value(bytes as f64, &Unit::Bytes)),
        };
        let (many, of) = match self.tile() {
            [] => ("guests", format::value(self.density.guest_memory_bytes as f64, &Unit::Bytes)),
            names => ("tiles", format!("{} guests ({})", names.len(), names.join(", "))),
        };
        let caption = format!(
            "The number of {many} of {of}{host} that half of the scale-ups hold, with its interval and what the blocks held, and the \
             number that 95 of 100 hold, with its lower bound. The figures were measured at the first number, or at the next \
             below it: estimate and [interval]. Overcommit: memory promised to guests divided by the host's memory."
        );
        let mut columns = vec![Column::text("Arm"), Column::numeric(&words::sentence_case(many))];
        columns.push(Column::numeric("95 of 100 hold"));
        columns.extend(["Overcommit", "Operations", "of a guest", "Response, p99", "Host busy"].map(Column::numeric));
        columns.extend(["Saved by merging", "Given back by balloons"].map(Column::numeric));
        columns.push(Column::text("Stopped by"));
        let mut table = Table::new(caption, columns);
        for (arm, look) in self.shown() {
            let level = held_level(arm);
            let of = |id: &str, unit: &Unit| Cell::known(level.and_then(|level| level.metrics.get(id)), unit);
            // The guests of a tile do work of different kinds, which do not add up.
            let work = |id: &str| {
                if self.tile().is_empty() { of(id, &Unit::OperationsPerSecond) } else { Cell::none() }
            };
            let overcommit = level.and_then(|level| level.metrics.get(metric::OVERCOMMIT));
            let name = Cell { note: self.governed_by(&arm.arm), ..Cell::arm(&look) };
            table.rows.push(vec![
                name,
                self.half(arm),
                self.most(arm),
                overcommit.map_or_else(Cell::none, |ratio| Cell::text(format!("{}x", format::fixed(ratio.value, 2)))),
                work(metric::OPERATIONS),
                self.with_share(work(metric::PER_GUEST), level),
                of(metric::RESPONSE_P99, &Unit::Seconds),
                of(metric::HOST_CPU, &Unit::Share),
                of(metric::SAVED, &Unit::Bytes),
                of(metric::BALLOONED, &Unit::Bytes),
                Cell::with_note(reasons(arm), detail(arm).cloned().unwrap_or_default()),
            ]);
        }
        table.without_empty_columns()
    }

    /// What half of the scale-ups hold, with the interval and what each block held.
    fn half(&self, arm: &ArmDensity) -> Cell {
        let count = |guests: f64| format::count((guests / f64::from(self.unit())).round().max(0.0) as u64);
        let bound = if at_least(arm) { "\u{2265} " } else { "" };
        let blocks: Vec<String> = arm.held_blocks.iter().map(|(_, held)| (held / self.unit()).to_string()).collect();
        let mut notes = Vec::new();
        if let Some((low, high)) = arm.fit.as_ref().and_then(|fit| format::bounds(&fit.half)) {
            notes.push(format!("[{}, {}]", count(low), count(high)));
        }
        if blocks.len() > 1 {
            notes.push(format!("blocks: {}", blocks.join(", ")));
        }
        Cell::with_note(format!("{bound}{}", arm.held / self.unit()), notes.join("; ")).strong()
    }

    fn most(&self, arm: &ArmDensity) -> Cell {
        let count = |guests: f64| format::count((guests / f64::from(self.unit())).round().max(0.0) as u64);
        let of = |fit: &Thresholds| {
            let least = fit.most.low.map_or_else(String::new, |low| format!("at least {}", count(low)));
            Cell::with_note(count(fit.most.value), least)
        };
        arm.fit.as_ref().map_or_else(Cell::none, of)
    }

    /// What a guest did, with the share of its offered load that this is: a number may hold and its guests starve, where no
    /// objective forbids it.
    fn with_share(&self, mut cell: Cell, level: Option<&LevelFindings>) -> Cell {
        let done = level.and_then(|level| level.metrics.get(metric::PER_GUEST)).map(|found| found.value);
        if let Some((done, offered)) = done.zip(self.density.offered_per_guest_per_s).filter(|(_, rate)| *rate > 0.0) {
            let share = format!("{} % of its load", format::fixed(100.0 * done / offered, 0));
            cell.note = if cell.note.is_empty() { share } else { format!("{}; {share}", cell.note) };
        }
        cell
    }

    /// In the form of the published table: a line a number of guests, a column an arm.
    fn published(&self) -> Option<Table> {
        if !self.tile().is_empty() {
            // The guests of a tile do work of different kinds, which do not add up.
            return None;
        }
        let numbers: BTreeSet<u32> =
            self.shown().flat_map(|(arm, _)| arm.levels.iter().map(|level| level.guests)).collect();
        let caption = "Operations a second of all guests together: estimate over the blocks and [interval].";
        let looks: Vec<ArmLook> = self.shown().map(|(_, look)| look).collect();
        let mut table = Table::by_arm(caption, "Guests", &looks);
        for guests in numbers {
            let of = |arm: &ArmDensity| match arm.levels.iter().find(|level| level.guests == guests) {
                Some(level) if level.held == level.tried => {
                    Cell::known(level.metrics.get(metric::OPERATIONS), &Unit::OperationsPerSecond)
                }
                Some(level) => {
                    let found = Cell::known(level.metrics.get(metric::OPERATIONS), &Unit::OperationsPerSecond);
                    let held = format!("held in {} of {}", level.held, level.tried);
                    let note = if found.note.is_empty() { held } else { format!("{}; {held}", found.note) };
                    Cell { note, ..found }
                }
                None if guests > arm.held => Cell::with_note("unable to run", reasons(arm)),
                None => Cell::none(),
            };
            let row = std::iter::once(Cell::text(guests.to_string())).chain(self.shown().map(|(arm, _)| of(arm)));
            table.rows.push(row.collect());
        }
        table.filled()
    }

    fn numbers(&self) -> Vec<f64> {
        let all: BTreeSet<u32> =
            self.density.arms.iter().flat_map(|arm| arm.levels.iter().map(|level| level.guests)).collect();
        all.into_iter().map(|guests| self.x(guests)).collect()
    }

    /// Names of the guests of one tile; none where each guest is like the others.
    fn tile(&self) -> &'a [String] {
        self.density.arms.iter().map(|arm| arm.tile.as_slice()).find(|names| !names.is_empty()).unwrap_or_default()
    }

    /// Guests that are added at a time.
    fn unit(&self) -> u32 {
        (self.tile().len() as u32).max(1)
    }

    /// What is added.
    fn many(&self) -> &'static str {
        if self.tile().is_empty() { "guests" } else { "tiles" }
    }

    /// Guests, or tiles, on the axis.
    fn x(&self, guests: u32) -> f64 {
        f64::from(guests) / f64::from(self.unit())
    }

    fn by_guests(&self, title: &str, id: &str, unit: Unit) -> Panel {
        let lines = self.shown().map(|(arm, look)| {
            let point = |level: &LevelFindings| {
                let found = level.metrics.get(id)?;
                Some(Point::new(self.x(level.guests), found))
            };
            Line::new(look, arm.levels.iter().filter_map(point).collect())
        });
        Panel::new(title, unit, lines.collect())
    }

    fn chart(&self, title: &str, height: f64, panels: Vec<Panel>) -> Chart {
        let x_title = match self.tile() {
            [] => format!("guests of {}", format::value(self.density.guest_memory_bytes as f64, &Unit::Bytes)),
            names => format!("tiles of {} guests", names.len()),
        };
        Chart { title: title.to_owned(), x_title, x_marked: self.numbers(), height, panels }
    }

    fn throughput(&self) -> Chart {
        let mut panel = self.by_guests("all guests together", metric::OPERATIONS, Unit::OperationsPerSecond);
        for line in &mut panel.lines {
            let arm = self.density.arms.iter().find(|arm| arm.arm == line.arm.id);
            if let Some(model) = arm.and_then(|arm| arm.models.first()) {
                let size = f64::from(self.unit());
                line.model = model.curve.iter().map(|(guests, value)| (guests / size, *value)).collect();
                line.knee = model.knee.map(|knee| knee / size);
            }
        }
        self.chart(&format!("Operations a second as {} are added", self.many()), 320.0, vec![panel])
    }

    fn of_a_guest(&self) -> Chart {
        let share = || Unit::Other("of all CPUs".to_owned());
        let busy = self.by_guests("host busy, share", metric::HOST_CPU, share());
        if !self.tile().is_empty() {
            return self.chart("How busy the host is", 150.0, vec![busy]);
        }
        let panels = vec![
            self.by_guests("operations of one guest, mean", metric::PER_GUEST, Unit::OperationsPerSecond),
            self.by_guests("response time, 99th percentile", metric::RESPONSE_P99, Unit::Seconds),
            busy,
        ];
        self.chart("What one guest still gets", 150.0, panels)
    }

    fn costs(&self) -> Chart {
        let panels = vec![
            self.by_guests("cost for the host, each guest", metric::GUEST_COST, Unit::Bytes),
            self.by_guests("unique memory of a guest, mean", metric::GUEST_UNIQUE, Unit::Bytes),
            self.by_guests("shared memory, part of a guest, mean", metric::GUEST_SHARED, Unit::Bytes),
            self.by_guests("start of a guest that was added, mean", metric::ADDED_START, Unit::Seconds),
            self.by_guests("CPU of the scanner since the first guest", metric::SCANNER_CPU_S, Unit::Seconds),
        ];
        self.chart("What a guest costs, and what merging costs", 150.0, panels)
    }

    fn course(&self) -> Chart {
        let over_time = |title: &str, unit: Unit, of: &dyn Fn(&CoursePoint) -> f64| {
            let lines = self.shown().map(|(arm, look)| {
                let points = arm.course.iter().map(|point| Point::at(point.at_s, of(point)));
                Line { marked: false, ..Line::new(look, points.collect()) }
            });
            Panel::new(title, unit, lines.collect())
        };
        let merges = |point: &CoursePoint| point.saved_bytes > 0 || point.scanner_cpu_s > 0.0;
        let mut saved = over_time("saved by merging", Unit::Bytes, &|point| point.saved_bytes as f64);
        let mut scanner = over_time("CPU of the scanner so far", Unit::Seconds, &|point| point.scanner_cpu_s);
        for panel in [&mut saved, &mut scanner] {
            // An arm that merges nothing would be a line on the axis.
            panel.lines.retain(|line| {
                let arm = self.density.arms.iter().find(|arm| arm.arm == line.arm.id);
                arm.is_some_and(|arm| arm.course.iter().any(merges))
            });
        }
        let panels = vec![
            over_time("guests", Unit::Count, &|point| f64::from(point.guests)),
            over_time("memory of the host, available", Unit::Bytes, &|point| point.available_bytes as f64),
            saved,
            scanner,
        ];
        let x_title = "time since the start of the scale-up, s".to_owned();
        Chart {
            title: "Memory while guests are added".to_owned(),
            x_title,
            x_marked: Vec::new(),
            height: 140.0,
            panels,
        }
    }

    fn saved_from(&self, id: &str) -> Option<Figure> {
        let part = |n: usize, name: &str, class| Part { name: name.to_owned(), class, pattern: PATTERNS[n] };
        let parts = vec![
            part(0, "empty pages", "part-user"),
            part(1, "code and libraries", "part-system"),
            part(2, "data", "part-softirq"),
            part(3, "not distinguished", "part-irq"),
        ];
        let rows = self.shown().filter_map(|(arm, look)| {
            let saved = held_level(arm)?.saved_from;
            let kinds = [saved.zero_bytes, saved.code_bytes, saved.data_bytes, saved.unknown_bytes];
            kinds.iter().any(|bytes| *bytes > 0).then(|| (look.id, kinds.map(|bytes| bytes as f64).to_vec()))
        });
        let stacks = Stacks {
            parts,
            rows: rows.collect(),
            unit: Unit::Bytes,
            axis: "saved by merging".to_owned(),
            title: "Where the saving came from".to_owned(),
            none: "nothing was merged",
        };
        (stacks.longest() > 0.0).then(|| Figure::draw(id, |page: &Page| stacks.draw(page, self.arms)))
    }
}

fn models(density: &DensityFindings, arms: &Arms) -> Option<Table> {
    let columns = vec![
        Column::text("Arm"),
        Column::text("Model"),
        Column::text("Formula (N guests)"),
        Column::numeric("Residual, RMS"),
        Column::numeric("Knee, guests"),
    ];
    let caption = "Models of operations a second against the number of guests, fitted by least squares, the better one \
                   first. They are valid within the measured range.";
    let mut table = Table::new(caption, columns);
    for (arm, model) in density.arms.iter().flat_map(|arm| arm.models.iter().map(move |model| (arm, model))) {
        table.rows.push(vec![
            Cell::text(arms.label(&arm.arm)),
            Cell::text(&model.name),
            Cell::code(&model.formula),
            Cell::text(format::value(model.rmse, &Unit::OperationsPerSecond)),
            model.knee.map_or_else(|| Cell::text("none found"), |knee| Cell::text(format::fixed(knee, 1))),
        ]);
    }
    table.filled()
}

fn stops(density: &DensityFindings, arms: &Arms) -> Option<Table> {
    let columns = vec![
        Column::text("Arm"),
        Column::numeric("Block"),
        Column::numeric("Held"),
        Column::numeric("Guests running"),
        Column::text("Ended by"),
        Column::text("What was seen"),
    ];
    let mut table = Table::new("How each scale-up ended.", columns);
    for arm in &density.arms {
        for (block, guests, kind, detail) in &arm.stopped {
            let held = arm.held_blocks.iter().find(|(own, _)| own == block).map_or(0, |(_, held)| *held);
            table.rows.push(vec![
                Cell::text(arms.label(&arm.arm)),
                Cell::text(block.to_string()),
                Cell::text(held.to_string()),
                Cell::text(guests.to_string()),
                Cell::text(kind),
                Cell::text(detail),
            ]);
        }
    }
    table.filled()
}
