//! Sizing in numbers: the advice, the models, the checks and what was measured.

use tare_model::findings::{Estimate, SizeCheck, SizeModel};
use tare_model::metric::Unit;

use super::super::consolidation::load;
use super::super::table::{Cell, Column, Table};
use super::Group;
use crate::format;
use crate::plot::arms::ArmLook;

/// A relative residual or a share, to a tenth of a per cent.
fn residual(share: f64) -> String {
    if share.is_finite() { format!("{} %", format::fixed(share * 100.0, 1)) } else { format::NOT_A_NUMBER.to_owned() }
}

fn judged(within: bool) -> (&'static str, &'static str) {
    if within { ("within", "better") } else { ("not within", "worse") }
}

impl Group<'_> {
    fn arm(&self, look: &ArmLook) -> Cell {
        Cell::arm(look)
    }

    /// The load's column.
    fn load_column(&self) -> Column {
        Column::numeric(&crate::words::sentence_case(&self.found.load_unit))
    }

    pub(super) fn advice_table(&self) -> Option<Table> {
        let columns = vec![
            Column::text("Arm"),
            Column::numeric("Instances"),
            self.load_column(),
            Column { note: "keep below".to_owned(), ..Column::numeric("CPU target") },
            Column { note: "with the headroom used up".to_owned(), ..Column::numeric("Response time") },
            Column::numeric("Memory"),
            Column::numeric("Guests"),
            Column::text("Bound by"),
            Column { note: "instances at 70 % / at 80 %".to_owned(), ..Column::numeric("Published rule") },
        ];
        let mut table = Table::new(
            "For one guest: predictions of the models with [intervals], within the measured range.",
            columns,
        );
        for (arm, look) in self.shown() {
            let Some(advice) = &arm.advice else { continue };
            table.rows.push(vec![
                self.arm(&look),
                Cell::text(advice.instances.to_string()).strong(),
                Cell::text(load(advice.load)),
                Cell::known(Some(&advice.cpu), &Unit::Share),
                Cell::known(advice.response.as_ref(), &Unit::Seconds),
                advice.memory_bytes.map_or_else(Cell::none, |bytes| Cell::text(format::value(bytes, &Unit::Bytes))),
                advice.guests.map_or_else(Cell::none, |guests| Cell::text(guests.to_string())),
                bound(super::bound_by(advice)),
                advice.published.map_or_else(Cell::none, |(low, high)| Cell::text(format!("{low} / {high}"))),
            ]);
        }
        table.filled()
    }

    pub(super) fn check_table(&self) -> Option<Table> {
        let predicted = |what: &str| Column { note: "predicted".to_owned(), ..Column::numeric(what) };
        let measured = |what: &str| Column { note: "measured".to_owned(), ..Column::numeric(what) };
        let columns = vec![
            Column::text("Arm"),
            Column::numeric("Instances"),
            self.load_column(),
            predicted("CPU"),
            measured("CPU"),
            Column::text("Within 5 points"),
            predicted("Response time"),
            measured("Response time"),
            Column::text("Within 15 %"),
        ];
        let caption = "Held-out cases, which no model was fitted to: prediction with [interval], and measurement.";
        let mut table = Table::new(caption, columns);
        for (check, look) in self.shown().flat_map(|(arm, look)| arm.checks.iter().map(move |own| (own, look.clone())))
        {
            let head = vec![self.arm(&look), Cell::text(check.instances.to_string()), Cell::text(load(check.load))];
            table.rows.push([head, check_cells(check)].concat());
        }
        table.filled()
    }

    pub(super) fn model_table(&self) -> Option<Table> {
        let columns = vec![
            Column::text("Arm"),
            Column::text("Model"),
            Column::text("Formula"),
            Column { note: "points".to_owned(), ..Column::numeric("n") },
            Column { note: "root mean square".to_owned(), ..Column::numeric("Residual") },
            Column { note: "each point left out in turn".to_owned(), ..Column::numeric("Residual") },
        ];
        let caption = "The models, fitted by least squares. U: busy share of the guest\u{2019}s CPUs; n: instances; X: \
                       operations a second; R: response time; Q: mean time in a queue with one server per CPU, divided \
                       by its service time. Residuals of CPU: in per cent of the guest\u{2019}s CPUs. Residuals of \
                       response time: in per cent of the time.";
        let mut table = Table::new(caption, columns);
        for (model, look) in self.shown().filter_map(|(arm, look)| Some((arm.model.as_ref()?, look))) {
            let mut add = |name: &str, formula: &str, n: u32, residuals: [String; 2]| {
                let head = vec![self.arm(&look), Cell::text(name), Cell::code(formula), Cell::text(n.to_string())];
                table.rows.push([head, residuals.map(Cell::text).to_vec()].concat());
            };
            let throughput = format!("X = {} N", format::fixed(model.throughput.value, 3));
            let none = || [format::NOTHING.to_owned(), format::NOTHING.to_owned()];
            add("throughput", &throughput, model.cpu.points, none());
            let cpu = &model.cpu;
            add("CPU", &cpu.formula, cpu.points, [residual(cpu.rmse), residual(cpu.rmse_left_out)]);
            if let Some(own) = &model.response {
                add("response time", &own.formula, own.points, [residual(own.rmse), residual(own.rmse_left_out)]);
            }
            for own in &model.scalability {
                let rmse = format::value(own.rmse, &Unit::OperationsPerSecond);
                add(&own.name, &own.formula, cpu.points, [rmse, format::NOTHING.to_owned()]);
            }
        }
        table.filled()
    }

    pub(super) fn parameter_table(&self) -> Option<Table> {
        let columns = [Column::text("Arm"), Column::text("Parameter"), Column::numeric("Estimate")].to_vec();
        let mut table = Table::new(
            "Parameters of the models with their [intervals], and the measured range. Nothing is predicted outside it.",
            columns,
        );
        for (model, look) in self.shown().filter_map(|(arm, look)| Some((arm.model.as_ref()?, look))) {
            for (name, value) in parameters(model, &self.found.load_unit) {
                table.rows.push(vec![self.arm(&look), Cell::text(name), value]);
            }
        }
        table.filled()
    }

    pub(super) fn point_table(&self) -> Option<Table> {
        let columns = vec![
            Column::text("Arm"),
            Column::numeric("Instances"),
            self.load_column(),
            Column::numeric("Throughput"),
            Column::numeric("CPU"),
            Column::numeric("Response time"),
            Column::numeric("Memory of an instance"),
            Column::numeric("Guest, idle"),
            Column::text("Used in the fit?"),
        ];
        let mut table = Table::new("Measurements: estimates over the blocks and [intervals].", columns);
        for (point, look) in self.shown().flat_map(|(arm, look)| arm.points.iter().map(move |own| (own, look.clone())))
        {
            table.rows.push(vec![
                self.arm(&look),
                Cell::text(point.instances.to_string()),
                Cell::text(load(point.load)),
                Cell::known(Some(&point.throughput), &Unit::OperationsPerSecond),
                Cell::known(Some(&point.cpu), &Unit::Share),
                Cell::known(point.response.as_ref(), &Unit::Seconds),
                Cell::known(point.instance_memory.as_ref(), &Unit::Bytes),
                Cell::known(point.idle_memory.as_ref(), &Unit::Bytes),
                Cell::text(match (point.held_out, point.saturated) {
                    (true, _) => "no: held out",
                    (_, true) => "no: the CPUs were saturated",
                    _ => "yes",
                }),
            ]);
        }
        table.filled()
    }
}

/// What ends it, with the figures smaller below: `the objective`, and what it would be.
fn bound(by: &str) -> Cell {
    by.split_once(": ").map_or_else(|| Cell::text(by), |(what, figures)| Cell::with_note(what, figures))
}

fn check_cells(check: &SizeCheck) -> Vec<Cell> {
    let share = Unit::Share;
    if let Some(why) = &check.refused {
        let refused = Cell { note: why.clone(), ..Cell::chip("not predicted", "unknown") };
        let measured = check.response.as_ref().map(|(_, measured)| measured);
        let time = Cell::known(measured, &Unit::Seconds);
        return vec![Cell::none(), Cell::known(Some(&check.cpu.1), &share), refused, Cell::none(), time, Cell::none()];
    }
    let (word, class) = judged(check.cpu_within);
    let (time, took) = check.response.as_ref().map_or((None, None), |(time, took)| (Some(time), Some(took)));
    vec![
        Cell::known(Some(&check.cpu.0), &share),
        Cell::known(Some(&check.cpu.1), &share),
        Cell::chip(word, class),
        Cell::known(time, &Unit::Seconds),
        Cell::known(took, &Unit::Seconds),
        check.response_within.map_or_else(Cell::none, |within| {
            let (word, class) = judged(within);
            Cell::chip(word, class)
        }),
    ]
}

/// Every parameter of the models in the units that they read best in.
fn parameters(model: &SizeModel, load_unit: &str) -> Vec<(String, Cell)> {
    let of = |name: &str, estimate: &Estimate, unit: &Unit| (name.to_owned(), Cell::known(Some(estimate), unit));
    let cpus = Unit::Other("CPUs".to_owned());
    let per_load = Unit::Other(format!("operations/s for each of {load_unit}"));
    let mut out = vec![
        of("throughput against load", &model.throughput, &per_load),
        of("CPU of an instance without work", &model.cpu.idle, &cpus),
        of("CPU of an operation, one instance", &model.cpu.demand_s, &Unit::Seconds),
        of("more for each instance beyond the first", &model.cpu.growth_s, &Unit::Seconds),
        ("instances beyond the first until it levels off".to_owned(), Cell::text(model.cpu.level.to_string())),
    ];
    if let Some(response) = &model.response {
        out.push(of("response time without a queue", &response.floor_s, &Unit::Seconds));
        out.push(of("CPU that queues", &response.scale_s, &Unit::Seconds));
        out.push(("CPUs that serve the queue".to_owned(), Cell::text(response.servers.to_string())));
    }
    let range = &model.range;
    let share = |share: f64| format::value(share, &Unit::Share);
    out.push(("measured: instances".to_owned(), Cell::text(format!("{} to {}", range.instances.0, range.instances.1))));
    out.push((
        format!("measured: {load_unit}"),
        Cell::text(format!("{} to {}", load(range.load.0), load(range.load.1))),
    ));
    out.push(("measured: CPU".to_owned(), Cell::text(format!("{} to {}", share(range.cpu.0), share(range.cpu.1)))));
    out
}
