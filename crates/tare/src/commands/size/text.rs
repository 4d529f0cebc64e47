//! A sizing for people.

use std::path::Path;

use tare_analysis::{GuestSizing, LoadSizing, Sizing, written};
use tare_model::findings::{ArmSizing, Estimate, Findings, SizeAdvice, SizeCheck, SizeModel, SizingFindings};
use tare_model::metric::Unit;

use super::holds;

/// What is printed.
pub(super) fn text(run: &Path, findings: &Findings, sizing: &Sizing, width: usize, colour: bool) -> String {
    let page = Page { findings, colour, width };
    let mut text = format!("{}: {}\n", run.display(), findings.plan.study.question);
    for group in &sizing.models {
        for arm in &group.arms {
            text.push_str(&page.modelled(group, arm));
        }
    }
    for found in &sizing.guests {
        text.push_str(&page.guests(found, sizing.question.total_load));
    }
    for found in &sizing.loads {
        text.push_str(&page.loads(found, sizing.question.total_load));
    }
    if sizing.models.is_empty() && sizing.guests.is_empty() && sizing.loads.is_empty() {
        text.push_str(
            "\nthis run cannot be used for sizing: no case offers load to one guest and has figures.\nUse a study with \
             several loads and numbers of instances, such as jvm-consolidation.\n",
        );
    }
    text
}

struct Page<'a> {
    findings: &'a Findings,
    colour: bool,
    width: usize,
}

impl Page<'_> {
    fn heading(&self, text: &str) -> String {
        if self.colour { format!("\n\u{1b}[1m{text}\u{1b}[0m\n") } else { format!("\n{text}\n") }
    }

    fn arm<'a>(&'a self, id: &'a str) -> &'a str {
        let arms = &self.findings.plan.study.arms;
        arms.iter().find(|arm| arm.id == id).map_or(id, |arm| arm.label.as_str())
    }

    fn case<'a>(&'a self, id: &'a str) -> &'a str {
        self.findings.cases.iter().find(|case| case.id == id).map_or(id, |case| case.label.as_str())
    }

    /// `  name  text`, the text broken between words and set in from the second line on.
    fn line(&self, name: &str, text: &str) -> String {
        let mut lines = vec![format!("  {name:<11}")];
        for word in text.split_whitespace() {
            let last = lines.len() - 1;
            let full = lines[last].chars().count() + 1 + word.chars().count() > self.width;
            if full && lines[last].trim() != name && !lines[last].trim().is_empty() {
                lines.push(" ".repeat(13));
            }
            let last = lines.len() - 1;
            if !lines[last].ends_with(' ') {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    fn modelled(&self, group: &SizingFindings, arm: &ArmSizing) -> String {
        let size = &group.guest;
        let cpus = if size.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", size.cpus) };
        let mut text = self.heading(&format!(
            "{}, {} in guests of {cpus} and {}",
            self.arm(&arm.arm),
            group.workload,
            size.memory
        ));
        if let Some(advice) = &arm.advice {
            text.push_str(&self.advice(group, advice, arm.model.as_ref()));
        }
        if let Some(refused) = &arm.refused {
            text.push_str(&self.line("no models", refused));
        }
        text.push_str(&self.points(group, arm));
        if let Some(model) = &arm.model {
            text.push_str(&self.model(group, model));
        }
        text.push_str(&self.checks(group, &arm.checks));
        text
    }

    fn advice(&self, group: &SizingFindings, advice: &SizeAdvice, model: Option<&SizeModel>) -> String {
        let unit = &group.load_unit;
        let what = match advice.instances {
            0 => "no instance: no configuration in the measured range fits".to_owned(),
            1 => format!("1 instance in a guest, {} {unit}", number(advice.load)),
            n => {
                let each = number(advice.load / f64::from(n));
                format!("{n} instances in a guest, {} {unit} together, {each} each", number(advice.load))
            }
        };
        let mut text = self.line("advice", &what);
        if advice.load > 0.0 {
            text.push_str(
                &self.line("", &format!("keep the guest's CPU below {} (of all its CPUs)", percent(&advice.cpu))),
            );
        }
        if let (Some(time), Some(spec)) = (&advice.response, &group.response) {
            let asked = advice
                .question
                .qos
                .as_ref()
                .map_or(String::new(), |(_, bound)| format!("; at most {} is asked", written(*bound, &spec.unit)));
            let headroom = number(advice.question.headroom * 100.0);
            let time = with_interval(time, &spec.unit);
            text.push_str(&self.line("", &format!("{} {time} with {headroom} % more load{asked}", spec.label)));
        }
        if let Some(memory) = advice.memory_bytes {
            let memory = written(memory, &Unit::Bytes);
            text.push_str(
                &self.line("", &format!("memory {memory}: the guest's own when idle and the largest of each instance")),
            );
        }
        if let (Some(guests), Some(total)) = (advice.guests, advice.question.total_load) {
            text.push_str(&self.line("", &format!("{guests} such guests for {} {unit}", number(total))));
        }
        text.push_str(&self.line("bound by", &advice.bound_by));
        if let Some(model) = model {
            let (points, blocks) = (count(model.cpu.points, "point"), count(model.throughput.n, "block"));
            let time = model.response.as_ref().map(|own| format!(" and {:.1} % of the time", own.rmse * 100.0));
            let (cpu, time) = (model.cpu.rmse * 100.0, time.unwrap_or_default());
            let said = format!("{points} in {blocks}; residual {cpu:.2} points of CPU{time}; [intervals] of 95 %");
            text.push_str(&self.line("made from", &said));
        }
        if let Some((low, high)) = advice.published {
            let rule = "at 70 % and at 80 % CPU, each with the CPU of its load and 4 points";
            text.push_str(
                &self.line("published", &format!("{low} and {high} instances by the published rule: {rule}")),
            );
        }
        advice.notes.iter().for_each(|note| text.push_str(&self.line("note", note)));
        text
    }

    fn points(&self, group: &SizingFindings, arm: &ArmSizing) -> String {
        if arm.points.is_empty() {
            return String::new();
        }
        let time = group.response.as_ref().map_or("", |spec| spec.label.as_str());
        let head = ["point", "instances", &group.load_unit, "op/s", "CPU", time, "in the fit"].map(str::to_owned);
        let mut rows = vec![head.to_vec()];
        for point in &arm.points {
            let unit = group.response.as_ref().map_or(Unit::Seconds, |spec| spec.unit.clone());
            rows.push(vec![
                self.case(&point.case).to_owned(),
                point.instances.to_string(),
                number(point.load),
                with_interval(&point.throughput, &Unit::Count),
                percent(&point.cpu),
                point.response.as_ref().map_or_else(String::new, |time| with_interval(time, &unit)),
                match (point.held_out, point.saturated) {
                    (true, _) => "no: held out",
                    (_, true) => "no: saturated",
                    _ => "yes",
                }
                .to_owned(),
            ]);
        }
        table(&rows)
    }

    fn model(&self, group: &SizingFindings, model: &SizeModel) -> String {
        let range = &model.range;
        let mut text = self.line(
            "measured",
            &format!(
                "{} to {} instances, {} to {} {}, {:.0} to {:.0} % CPU: no predictions outside",
                range.instances.0,
                range.instances.1,
                number(range.load.0),
                number(range.load.1),
                group.load_unit,
                range.cpu.0 * 100.0,
                range.cpu.1 * 100.0
            ),
        );
        let slope = figure(&model.throughput);
        text.push_str(&self.line("throughput", &format!("X = g N, g = {slope} op/s ({})", model.throughput.method)));
        let cpu = &model.cpu;
        text.push_str(&self.line("CPU", &cpu.formula));
        let of = |name: &str, own: &Estimate, unit: &str| match own.n {
            0 => format!("{name}: {}", own.method),
            _ => format!("{name} {} {unit}", figure(own)),
        };
        let terms =
            [of("demand", &cpu.demand_s, "s/op"), of("growth", &cpu.growth_s, "s/op"), of("idle", &cpu.idle, "CPUs")];
        text.push_str(&self.line("", &terms.join("; ")));
        let (points, own, out) = (cpu.points, cpu.rmse * 100.0, cpu.rmse_left_out * 100.0);
        text.push_str(
            &self.line("", &format!("{points} points, residual {own:.2} points of CPU, {out:.2} of those left out")),
        );
        if let Some(response) = &model.response {
            text.push_str(&self.line("time", &response.formula));
            let terms = [of("floor", &response.floor_s, "s"), of("scale", &response.scale_s, "s")];
            text.push_str(&self.line("", &terms.join("; ")));
            let (points, own, out) = (response.points, response.rmse * 100.0, response.rmse_left_out * 100.0);
            text.push_str(
                &self.line("", &format!("{points} points, residual {own:.1} %, {out:.1} % of those left out")),
            );
        }
        for (at, fitted) in model.scalability.iter().enumerate() {
            let ends = ["lower", "upper"].map(|end| fitted.parameters.get(&format!("knee, {end} end of its interval")));
            let interval = match ends {
                [Some(low), Some(high)] => format!(" [{}, {}]", number(*low), number(*high)),
                _ => String::new(),
            };
            let knee = fitted.knee.map_or(String::new(), |knee| format!(", knee at {}{interval}", number(knee)));
            let said = format!("{}: {}, residual {:.2} op/s{knee}", fitted.name, fitted.formula, fitted.rmse);
            text.push_str(&self.line(if at == 0 { "scalability" } else { "" }, &said));
        }
        text
    }

    fn checks(&self, group: &SizingFindings, checks: &[SizeCheck]) -> String {
        let one = |check: &SizeCheck| {
            let case = self.case(&check.case);
            if let Some(refused) = &check.refused {
                return self.line("held out", &format!("{case}: not predicted ({refused})"));
            }
            let mut said =
                format!("{case}: CPU {} predicted, {} measured", percent(&check.cpu.0), percent(&check.cpu.1));
            if let (Some((predicted, measured)), Some(spec)) = (&check.response, &group.response) {
                let (predicted, measured) = (with_interval(predicted, &spec.unit), with_interval(measured, &spec.unit));
                said.push_str(&format!("; {} {predicted} predicted, {measured} measured", spec.label));
            }
            let verdict = if holds(check) { "within" } else { "NOT within" };
            self.line("held out", &format!("{said}: {verdict} 5 points and 15 %"))
        };
        checks.iter().map(one).collect()
    }

    fn guests(&self, found: &GuestSizing, total: Option<f64>) -> String {
        let mut text = self.heading(&format!(
            "{}, {}: guests for a host like this one",
            self.arm(&found.arm),
            self.case(&found.case)
        ));
        let advised = match (found.guests, found.held) {
            (0, 0) => "none: not even the first number of guests met its objectives".to_owned(),
            (0, held) => format!("none; 95 of 100 scale-ups hold {held}"),
            (guests, held) => format!("{}; 95 of 100 scale-ups hold {held}", count(guests, "guest")),
        };
        text.push_str(&self.line("advice", &advised));
        if let Some(hosts) = found.hosts {
            let total = total
                .map_or_else(|| "the total load".to_owned(), |total| format!("{} operations a second", number(total)));
            text.push_str(&self.line("", &format!("{hosts} such hosts for {total}")));
        }
        if let (Some(most), Some((unique, shared))) = (&found.by_memory, found.unique_and_shared) {
            let (unique, shared) = (written(unique, &Unit::Bytes), written(shared, &Unit::Bytes));
            text.push_str(&self.line(
                "memory",
                &format!(
                    "{} guests by memory alone: {unique} of each, {shared} shared by all ({})",
                    whole(most),
                    most.method
                ),
            ));
        }
        text.push_str(&self.line("bound by", &found.bound_by));
        let alone = if found.blocks == 1 { ": no interval, and another block may hold fewer" } else { "" };
        text.push_str(&self.line("made from", &format!("{}{alone}", count(found.blocks, "block"))));
        found.notes.iter().for_each(|note| text.push_str(&self.line("note", note)));
        text
    }

    fn loads(&self, found: &LoadSizing, total: Option<f64>) -> String {
        let mut text = self.heading(&format!("{}, {}: load for a guest", self.arm(&found.arm), self.case(&found.case)));
        let unit = &found.unit;
        let capacity = figure(&found.capacity);
        text.push_str(&self.line("advice", &format!("{} {unit}; {capacity} met the objectives", number(found.load))));
        if let Some(cpu) = &found.cpu {
            text.push_str(&self.line("", &format!("the guest's CPU was at {} then", percent(cpu))));
        }
        if let (Some(guests), Some(total)) = (found.guests, total) {
            text.push_str(&self.line("", &format!("{guests} such guests for {} {unit}", number(total))));
        }
        text.push_str(&self.line("made from", &count(found.capacity.n, "block")));
        found.notes.iter().for_each(|note| text.push_str(&self.line("note", note)));
        text
    }
}

/// Rows under their heads, numbers to the right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    let one = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &wide))| match at {
            0 => format!("{cell:<wide$}"),
            _ if at + 1 == columns => cell.clone(),
            _ => format!("{cell:>wide$}"),
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end()).replace("\n\n", "\n")
    };
    rows.iter().map(one).collect()
}

/// `1 block`, `3 blocks`.
fn count(n: u32, of: &str) -> String {
    format!("{n} {of}{}", if n == 1 { "" } else { "s" })
}

/// A number with the digits that count.
fn number(value: f64) -> String {
    let whole = (value - value.round()).abs() < 1e-6 || value.abs() >= 1000.0;
    if whole { format!("{value:.0}") } else { digits(value, value) }
}

/// With as many decimals as `scale` has digits that count, which are three.
fn digits(value: f64, scale: f64) -> String {
    let magnitude = if scale == 0.0 { 0 } else { scale.abs().log10().floor() as i32 };
    let places = usize::try_from((2 - magnitude).clamp(0, 9)).unwrap_or(0);
    format!("{value:.places$}")
}

/// `59.3 % [58.1, 60.5]` of a share.
fn percent(share: &Estimate) -> String {
    let interval = match (share.low, share.high) {
        (Some(low), Some(high)) => format!(" [{:.1}, {:.1}]", low * 100.0, high * 100.0),
        _ => String::new(),
    };
    format!("{:.1} %{interval}", share.value * 100.0)
}

/// `0.00912 [0.0090, 0.0093]`.
fn figure(own: &Estimate) -> String {
    let of = |value: f64| digits(value, own.value);
    match (own.low, own.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", of(own.value), of(low), of(high)),
        _ => of(own.value),
    }
}

/// `9 [7, 11]` of things that are whole or not at all.
fn whole(own: &Estimate) -> String {
    let of = |value: f64| format!("{:.0}", value.floor());
    match (own.low, own.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", of(own.value), of(low), of(high)),
        _ => of(own.value),
    }
}

/// `65.1 ms [61.2 ms, 69.0 ms]`.
fn with_interval(own: &Estimate, unit: &Unit) -> String {
    if *unit == Unit::Count {
        return figure(own);
    }
    match (own.low, own.high) {
        (Some(low), Some(high)) => {
            format!("{} [{}, {}]", written(own.value, unit), written(low, unit), written(high, unit))
        }
        _ => written(own.value, unit),
    }
}
