//! The numbers of several instances in one guest, of sizing, and of held CPUs.

use tare_model::findings::{
    ArmSizing, CaseInstances, Estimate, Findings, InstanceFindings, InstancePoint, InstanceSeries, LoadPoint,
    SizeModel, SizingFindings,
};

use super::{Writer, interval, label, number, optional};

/// The files that there is something for.
pub(super) fn files(findings: &Findings) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut add = |name: &str, there: bool, content: fn(&Findings) -> String| {
        if there {
            files.push((name.to_owned(), content(findings)));
        }
    };
    add("consolidation.csv", !findings.consolidation.is_empty(), consolidation);
    add("sizing.csv", !findings.sizing.is_empty(), sizing);
    add("holds.csv", findings.cases.iter().any(|case| !case.holds.is_empty()), holds);
    files
}

/// An estimate or empty fields.
fn figure(estimate: Option<&Estimate>) -> Vec<String> {
    let none = || vec![String::new(); 6];
    estimate.map_or_else(none, |own| interval(own).into_iter().chain([own.method.clone()]).collect())
}

fn consolidation(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "workload",
        "cpus",
        "memory_bytes",
        "arm",
        "series",
        "fixed",
        "case",
        "instances",
        "clients",
        "met",
        "figure",
        "unit",
        "value",
        "low",
        "high",
        "level",
        "n",
        "method",
        "label",
    ]);
    for (group, arm) in findings.consolidation.iter().flat_map(|group| group.arms.iter().map(move |arm| (group, arm))) {
        let size = [group.guest.cpus.to_string(), group.guest.memory.0.to_string()];
        let head = [vec![group.workload.clone()], size.to_vec(), vec![arm.arm.clone()]].concat();
        let label = label(findings, &arm.arm);
        let mut record = |series: &str, fixed: f64, point: [String; 4], name: [&str; 2], estimate: &Estimate| {
            let mut fields = head.clone();
            fields.extend([series.to_owned(), number(fixed)]);
            fields.extend(point);
            fields.extend(name.map(str::to_owned));
            fields.extend(figure(Some(estimate)));
            fields.push(label.clone());
            out.record(fields);
        };
        for (series, point) in arm.by_load.iter().flat_map(|own| own.points.iter().map(move |point| (own, point))) {
            for (name, estimate) in of_load(point) {
                let place =
                    [point.case.clone(), point.instances.to_string(), number(point.clients), optional(point.met)];
                record("by load", series.clients_per_instance, place, name, estimate);
            }
        }
        for (series, fixed, place, name, estimate) in side_by_side(&arm.side_by_side) {
            record(series, fixed, place, name, estimate);
        }
        for (kind, all) in [("lost", &arm.lost), ("gained", &arm.gained)] {
            for (series, point) in all.iter().flat_map(|own| own.points.iter().map(move |point| (own, point))) {
                for (name, estimate) in of_instances(kind, point) {
                    record(kind, series.fixed, place(kind, series, point), name, estimate);
                }
            }
        }
    }
    out.0
}

/// Series, what is fixed in it, its place, figure with unit, and value.
type Recorded<'a> = (&'static str, f64, [String; 4], [&'static str; 2], &'a Estimate);

/// Each instance of the cases, by its number, and how far those of a case are apart, by how many they are.
fn side_by_side(cases: &[CaseInstances]) -> Vec<Recorded<'_>> {
    let place = |own: &CaseInstances, clients: f64| {
        [own.case.clone(), own.instances.to_string(), number(clients), String::new()]
    };
    let mut all: Vec<Recorded<'_>> = Vec::new();
    for (own, each) in cases.iter().flat_map(|own| own.each.iter().map(move |each| (own, each))) {
        let told = of_each(each).into_iter();
        all.extend(
            told.map(|(name, found)| ("instance", f64::from(each.instance), place(own, each.clients), name, found)),
        );
    }
    for own in cases {
        let ratios = [
            ("response_time_slowest_over_fastest", &own.response_apart),
            ("throughput_most_over_fewest", &own.throughput_apart),
        ];
        let told = ratios.into_iter().filter_map(|(name, found)| Some(([name, "ratio"], found.as_ref()?)));
        all.extend(told.map(|(name, found)| ("apart", f64::from(own.instances), place(own, own.clients), name, found)));
    }
    all
}

fn place(kind: &str, series: &InstanceSeries, point: &InstancePoint) -> [String; 4] {
    let clients = if kind == "gained" { number(series.fixed) } else { String::new() };
    [point.case.clone(), point.instances.to_string(), clients, String::new()]
}

fn of_load(point: &LoadPoint) -> Vec<([&'static str; 2], &Estimate)> {
    let all = [
        (["response_time", "s"], &point.response),
        (["guest_cpu", "share"], &point.cpu),
        (["throughput", "operations/s"], &point.throughput),
    ];
    all.into_iter().filter_map(|(name, estimate)| Some((name, estimate.as_ref()?))).collect()
}

fn of_each(each: &InstanceFindings) -> Vec<([&'static str; 2], &Estimate)> {
    let all = [
        (["response_time", "s"], &each.response),
        (["throughput", "operations/s"], &each.throughput),
        (["failed", "share"], &each.failed),
    ];
    all.into_iter().filter_map(|(name, estimate)| Some((name, estimate.as_ref()?))).collect()
}

fn of_instances<'a>(kind: &str, point: &'a InstancePoint) -> Vec<([&'static str; 2], &'a Estimate)> {
    let (value, unit) =
        if kind == "lost" { (["throughput", "operations/s"], "%") } else { (["guest_cpu", "share"], "points") };
    let others = [
        (["per_instance", unit], &point.per_instance),
        (["step", unit], &point.step),
        (["held", "share"], &point.held),
    ];
    let others = others.into_iter().filter_map(|(name, estimate)| Some((name, estimate.as_ref()?)));
    std::iter::once((value, &point.value)).chain(others).collect()
}

/// One record of `sizing.csv`, but for its group and arm.
struct Row<'a> {
    kind: &'static str,
    case: &'a str,
    instances: Option<u32>,
    load: Option<f64>,
    figure: String,
    unit: &'static str,
    estimate: Option<&'a Estimate>,
    text: String,
}

impl<'a> Row<'a> {
    fn of(kind: &'static str, figure: &str, unit: &'static str, estimate: Option<&'a Estimate>) -> Self {
        let (case, text) = ("", String::new());
        Self { kind, case, instances: None, load: None, figure: figure.to_owned(), unit, estimate, text }
    }

    fn text(kind: &'static str, figure: &str, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::of(kind, figure, "", None) }
    }

    fn at(self, case: &'a str, instances: u32, load: f64) -> Self {
        Self { case, instances: Some(instances), load: Some(load), ..self }
    }
}

fn sizing(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "workload",
        "cpus",
        "memory_bytes",
        "load_unit",
        "arm",
        "kind",
        "case",
        "instances",
        "load",
        "figure",
        "unit",
        "value",
        "low",
        "high",
        "level",
        "n",
        "method",
        "text",
        "label",
    ]);
    for (group, arm) in findings.sizing.iter().flat_map(|group| group.arms.iter().map(move |arm| (group, arm))) {
        let size = [group.guest.cpus.to_string(), group.guest.memory.0.to_string()];
        for row in rows(group, arm) {
            let mut fields = vec![group.workload.clone()];
            fields.extend(size.clone());
            fields.extend([group.load_unit.clone(), arm.arm.clone(), row.kind.to_owned(), row.case.to_owned()]);
            fields.extend([row.instances.map_or_else(String::new, |n| n.to_string()), optional(row.load)]);
            fields.extend([row.figure, row.unit.to_owned()]);
            fields.extend(figure(row.estimate));
            fields.extend([row.text, label(findings, &arm.arm)]);
            out.record(fields);
        }
    }
    out.0
}

fn rows<'a>(group: &'a SizingFindings, arm: &'a ArmSizing) -> Vec<Row<'a>> {
    let mut out: Vec<Row<'a>> = arm.refused.iter().map(|why| Row::text("refused", "", why)).collect();
    out.extend(advice(arm));
    out.extend(arm.model.iter().flat_map(model));
    for check in &arm.checks {
        let at = |row: Row<'a>| row.at(&check.case, check.instances, check.load);
        if let Some(why) = &check.refused {
            out.push(at(Row::text("check", "refused", why)));
        }
        let predicted = |estimate| Some(estimate).filter(|_| check.refused.is_none());
        out.push(at(Row::of("check", "cpu_predicted", "share", predicted(&check.cpu.0))));
        out.push(at(Row::of("check", "cpu_measured", "share", Some(&check.cpu.1))));
        out.push(at(Row::text("check", "cpu_within_5_points", check.cpu_within.to_string())));
        if let Some((time, measured)) = &check.response {
            out.push(at(Row::of("check", "response_predicted", "s", predicted(time))));
            out.push(at(Row::of("check", "response_measured", "s", Some(measured))));
        }
        out.extend(
            check.response_within.map(|own| at(Row::text("check", "response_within_15_percent", own.to_string()))),
        );
    }
    let response = group.response.as_ref().map_or("response_time", |spec| spec.id.as_str());
    for point in &arm.points {
        let kind = match (point.held_out, point.saturated) {
            (true, _) => "held out",
            (_, true) => "saturated",
            _ => "point",
        };
        let figures = [
            ("throughput", "operations/s", Some(&point.throughput)),
            ("guest_cpu", "share", Some(&point.cpu)),
            (response, "s", point.response.as_ref()),
            ("instance_memory", "bytes", point.instance_memory.as_ref()),
            ("idle_memory", "bytes", point.idle_memory.as_ref()),
        ];
        let figures = figures.into_iter().filter(|(.., estimate)| estimate.is_some());
        out.extend(figures.map(|(name, unit, estimate)| {
            Row::of(kind, name, unit, estimate).at(&point.case, point.instances, point.load)
        }));
    }
    out
}

fn advice(arm: &ArmSizing) -> Vec<Row<'_>> {
    let Some(own) = &arm.advice else { return Vec::new() };
    let mut out = vec![
        Row::of("advice", "guest_cpu", "share", Some(&own.cpu)),
        Row::of("advice", "response_time", "s", own.response.as_ref()),
        Row::text("advice", "bound_by", &own.bound_by),
        Row::text("advice", "headroom", number(own.question.headroom)),
    ];
    let optional = [
        ("memory_bytes", own.memory_bytes.map(number)),
        ("guests", own.guests.map(|guests| guests.to_string())),
        ("objective", own.question.qos.as_ref().map(|(metric, bound)| format!("{metric} {bound}"))),
        ("published_instances_at_70_percent", own.published.map(|both| both.0.to_string())),
        ("published_instances_at_80_percent", own.published.map(|both| both.1.to_string())),
    ];
    out.extend(optional.into_iter().filter_map(|(name, text)| Some(Row::text("advice", name, text?))));
    out.extend(own.notes.iter().map(|note| Row::text("advice", "note", note)));
    out.into_iter().map(|row| row.at("", own.instances, own.load)).collect()
}

fn model(own: &SizeModel) -> Vec<Row<'_>> {
    let (cpu, range) = (&own.cpu, &own.range);
    let mut out = vec![
        Row::of("model", "throughput_per_load", "operations/s", Some(&own.throughput)),
        Row::of("model", "cpu_idle", "CPUs", Some(&cpu.idle)),
        Row::of("model", "cpu_demand", "s", Some(&cpu.demand_s)),
        Row::of("model", "cpu_growth", "s", Some(&cpu.growth_s)),
        Row::text("model", "cpu_level", cpu.level.to_string()),
        Row::text("model", "cpu_formula", &cpu.formula),
        Row::text("model", "cpu_points", cpu.points.to_string()),
        Row::text("model", "cpu_rmse", number(cpu.rmse)),
        Row::text("model", "cpu_rmse_left_out", number(cpu.rmse_left_out)),
        Row::text("range", "instances", format!("{} {}", range.instances.0, range.instances.1)),
        Row::text("range", "load", format!("{} {}", range.load.0, range.load.1)),
        Row::text("range", "guest_cpu", format!("{} {}", range.cpu.0, range.cpu.1)),
    ];
    if let Some(time) = &own.response {
        out.extend([
            Row::of("model", "response_floor", "s", Some(&time.floor_s)),
            Row::of("model", "response_scale", "s", Some(&time.scale_s)),
            Row::text("model", "response_servers", time.servers.to_string()),
            Row::text("model", "response_formula", &time.formula),
            Row::text("model", "response_points", time.points.to_string()),
            Row::text("model", "response_rmse", number(time.rmse)),
            Row::text("model", "response_rmse_left_out", number(time.rmse_left_out)),
        ]);
    }
    for fitted in &own.scalability {
        let name = fitted.name.replace(' ', "_");
        out.push(Row::text("model", &format!("{name}_formula"), &fitted.formula));
        out.push(Row::text("model", &format!("{name}_rmse"), number(fitted.rmse)));
    }
    out
}

fn holds(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case",
        "arm",
        "block",
        "target",
        "tolerance",
        "held",
        "spread",
        "held_load",
        "try",
        "load",
        "share",
        "operations_per_s",
        "window_s",
        "label",
    ]);
    for (case, (arm, blocks)) in findings.cases.iter().flat_map(|case| case.holds.iter().map(move |own| (case, own))) {
        for (block, hold) in blocks {
            for (n, step) in hold.steps.iter().enumerate() {
                let mut fields = vec![case.id.clone(), arm.clone(), block.to_string()];
                fields.extend([hold.target, hold.tolerance, hold.share].map(number));
                fields.extend([optional(hold.spread), number(hold.load), (n + 1).to_string()]);
                fields.extend([step.load, step.share, step.operations_per_s, step.window_s].map(number));
                fields.push(label(findings, arm));
                out.record(fields);
            }
        }
    }
    out.0
}
