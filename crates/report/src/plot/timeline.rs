//! One trial of each arm over time: a small panel a series, all on one time axis, steady state shaded.

use std::collections::BTreeSet;

use tare_model::findings::Timeline;
use tare_model::metric::Unit;
use tare_model::sample::{BY_COMMAND, BY_HYPERVISOR};

use super::arms::{ArmLook, Arms};
use super::scale::{Axis, extent, linear_ticks, tick_texts};
use super::svg::{Anchor, Svg, TEXT, text_width, wrapped};
use super::{Figure, Page};
use crate::format::{self, Scale};

/// Most panels that are drawn; the rest is in `findings.json`.
pub(crate) const PANELS: usize = 6;
/// Most points of a line that are drawn.
const POINTS: usize = 600;

/// What all measured guests of a trial take, where there are several.
const TOGETHER: &str = "guests_measured_cpu_total_cpus";

/// The series that tell most, in the order in which they are drawn, with their names for people; others follow.
const TELLING: [(&str, &str); 20] = [
    ("operations_per_s", "operations of the driver"),
    ("bits_per_s", "bits of the driver"),
    (TOGETHER, "measured guests together, CPU"),
    ("guest_target_cpu_total_cpus", "measured guest, CPU"),
    ("host_cpu_busy_cpus", "all of the SUT, busy CPU"),
    ("host_cpu_steal_cpus", "SUT, CPU taken away by the machine under it (steal)"),
    ("host_run_queue_tasks", "host, tasks that run or wait for a CPU"),
    ("host_pressure_cpu_share", "host, share of time in which a task waits for a CPU"),
    ("host_memory_available_bytes", "host, memory available"),
    ("host_pressure_memory_share", "host, share of time in which a task waits for memory"),
    ("guest_target_throttled_share", "measured guest, held back by its CPU quota"),
    ("host_cpu_softirq_cpus", "SUT, CPU in software interrupts"),
    ("host_cpu_system_cpus", "SUT, CPU in the kernel"),
    ("host_cpu_user_cpus", "SUT, CPU in user mode"),
    ("host_cpu_irq_cpus", "SUT, CPU in hardware interrupts"),
    ("host_pressure_io_share", "host, share of time in which a task waits for a disk"),
    ("guest_target_cpu_user_cpus", "measured guest, CPU in user mode"),
    ("guest_target_cpu_system_cpus", "measured guest, CPU in the kernel"),
    ("throughput_bits_per_s", "throughput of the driver"),
    ("throughput_bytes_per_s", "throughput of the driver"),
];

/// Names of the series of a case in the order in which they are drawn: what the work did first.
pub(crate) fn series(timelines: &[Timeline]) -> Vec<String> {
    let names: BTreeSet<&String> = timelines
        .iter()
        .flat_map(|timeline| timeline.series.iter().filter(|(_, points)| points.len() > 1).map(|(name, _)| name))
        .collect();
    let several = names.iter().any(|name| name.as_str() == TOGETHER);
    let rank = |name: &str| {
        // The user asked for them: right after what the work did.
        if name.starts_with(BY_COMMAND) || name.starts_with(BY_HYPERVISOR) {
            return 1;
        }
        // One of several measured guests tells less than what all take together.
        if several && name.starts_with("guest_target") {
            return TELLING.len() + 1;
        }
        let listed = TELLING.iter().position(|(known, _)| *known == name);
        let rate = ["per_s", "/s", "rate", "throughput"].iter().any(|word| name.contains(word));
        if rate { 0 } else { listed.map_or(TELLING.len() + 1, |at| at + 1) }
    };
    let mut names: Vec<String> = names.into_iter().cloned().collect();
    names.sort_by_key(|name| rank(name));
    names
}

/// A series' name for people and its unit, from the unit at the end of the name.
pub(crate) fn named(series: &str) -> (String, Unit) {
    for (prefix, by) in [(BY_COMMAND, "the user\u{2019}s command"), (BY_HYPERVISOR, "the hypervisor\u{2019}s counters")]
    {
        if let Some(own) = series.strip_prefix(prefix) {
            let (name, unit) = by_its_end(own);
            return (format!("{name}, by {by}"), unit);
        }
    }
    let said = TELLING.iter().find(|(known, _)| *known == series).map(|(_, name)| (*name).to_owned());
    let (name, unit) = by_its_end(series);
    (said.unwrap_or(name), unit)
}

/// The same of a series that has no name of its own for people.
fn by_its_end(series: &str) -> (String, Unit) {
    let known: [(&str, Unit); 9] = [
        ("bits_per_s", Unit::BitsPerSecond),
        ("bit_per_s", Unit::BitsPerSecond),
        ("operations_per_s", Unit::OperationsPerSecond),
        ("ops_per_s", Unit::OperationsPerSecond),
        ("bytes", Unit::Bytes),
        ("cpus", Unit::Other("CPUs".to_owned())),
        ("percent", Unit::Other("%".to_owned())),
        ("per_s", Unit::Other("/s".to_owned())),
        ("s", Unit::Seconds),
    ];
    for (suffix, unit) in known {
        if series == suffix {
            return (suffix.replace('_', " "), unit);
        }
        if let Some(stem) = series.strip_suffix(suffix).and_then(|stem| stem.strip_suffix(['_', ' '])) {
            let name = if stem.is_empty() { suffix.replace('_', " ") } else { stem.replace('_', " ") };
            let name = name.strip_prefix("guest ").map_or(name.clone(), |guest| guest.replacen(" cpu", ", CPU", 1));
            return (name, unit);
        }
    }
    (series.replace('_', " "), Unit::Count)
}

/// Draws the panels; `None` when there is no line to draw.
pub(crate) fn figure(id: &str, timelines: &[Timeline], arms: &Arms) -> Option<Figure> {
    let names: Vec<String> = series(timelines).into_iter().take(PANELS).collect();
    let times = timelines.iter().flat_map(|t| t.series.values().flatten().map(|p| p.0).chain([t.steady_s.1]));
    let (first, last) = extent(times)?;
    if names.is_empty() || last <= first {
        return None;
    }
    let chart = Chart { names, range: (first.min(0.0), last), timelines, arms };
    Some(Figure::draw(id, |page| chart.draw(page)))
}

struct Chart<'a> {
    names: Vec<String>,
    range: (f64, f64),
    timelines: &'a [Timeline],
    arms: &'a Arms,
}

impl Chart<'_> {
    fn draw(&self, page: &Page) -> String {
        let mut svg = Svg::new(&page.id, page.width);
        let (left, right) = if page.narrow { (48.0, page.width - 12.0) } else { (64.0, page.width - 16.0) };
        let x = Axis::linear(self.range, left, right);
        let panel = if page.narrow { 92.0 } else { 96.0 };
        let top = self.draw_keys(&mut svg, left, page) + 8.0;
        let bottom = top + panel * self.names.len() as f64;
        let ticks = linear_ticks(self.range, if page.narrow { 5 } else { 10 });
        for (i, name) in self.names.iter().enumerate() {
            let panel_top = top + panel * i as f64;
            self.draw_panel(&mut svg, name, &x, (panel_top + 24.0, panel_top + panel - 6.0), i, &ticks);
        }
        for (tick, text) in ticks.iter().zip(tick_texts(&ticks)) {
            svg.text((x.at(*tick), bottom + 12.0), Anchor::Middle, "tick", &text);
        }
        svg.text(
            ((left + right) / 2.0, bottom + 32.0),
            Anchor::Middle,
            "axis-title",
            "time since the start of load, s",
        );
        let described: Vec<String> = self.timelines.iter().map(|t| self.describe(t)).collect();
        svg.finish(bottom + 40.0, "One trial of each arm over time", &described.join("; "))
    }

    fn draw_keys(&self, svg: &mut Svg, left: f64, page: &Page) -> f64 {
        let (mut x, mut y) = (left, 16.0);
        for timeline in self.timelines {
            let arm = self.arms.get(&timeline.arm);
            let name = format!("{}, block {}", arm.label, timeline.block);
            let name = wrapped(&name, page.width - left - 50.0, TEXT, 1).concat();
            let width = 40.0 + text_width(&name, TEXT) + 14.0;
            if x > left && x + width > page.width {
                (x, y) = (left, y + 20.0);
            }
            svg.polyline(&[(x, y - 4.0), (x + 30.0, y - 4.0)], &format!("{} curve", arm.class), arm.dash);
            svg.text((x + 38.0, y), Anchor::Start, "label", &name);
            x += width;
        }
        let width = 38.0 + text_width("steady state", TEXT);
        if x > left && x + width > page.width {
            (x, y) = (left, y + 20.0);
        }
        svg.rect((x, y - 11.0), (30.0, 13.0), "steady edge");
        svg.text((x + 38.0, y), Anchor::Start, "label", "steady state");
        y
    }

    fn lines(&self, name: &str) -> Vec<(ArmLook, Vec<(f64, f64)>)> {
        let line = |t: &Timeline| t.series.get(name).map(|points| (self.arms.get(&t.arm), thinned(points)));
        self.timelines.iter().filter_map(line).collect()
    }

    fn draw_panel(&self, svg: &mut Svg, name: &str, x: &Axis, (top, bottom): (f64, f64), i: usize, ticks: &[f64]) {
        let lines = self.lines(name);
        let highest = lines.iter().flat_map(|(_, points)| points).map(|p| p.1).fold(0.0, f64::max);
        let lowest = lines.iter().flat_map(|(_, points)| points).map(|p| p.1).fold(0.0, f64::min);
        let range = (lowest, if highest > lowest { highest * 1.08 } else { lowest + 1.0 });
        let y = Axis::linear(range, bottom, top);
        if let Some((from, to)) = self.steady() {
            svg.rect((x.at(from), top), (x.at(to) - x.at(from), bottom - top), "steady");
        }
        for &tick in ticks {
            svg.line((x.at(tick), top), (x.at(tick), bottom), "grid");
        }
        let (label, unit) = named(name);
        let scale = Scale::new(&unit, highest);
        let own = linear_ticks((scale.number(range.0), scale.number(range.1)), 2);
        for (tick, text) in own.iter().zip(tick_texts(&own)) {
            let at = y.at(tick / scale.number(1.0));
            svg.line((x.start(), at), (x.end(), at), "grid");
            svg.text((x.start() - 7.0, at + 4.0), Anchor::End, "tick", &text);
        }
        let title = if scale.unit().is_empty() { label } else { format!("{label} ({})", scale.unit()) };
        for line in wrapped(&title, x.end() - x.start(), TEXT, 1) {
            svg.text((x.start(), top - 7.0), Anchor::Start, "label strong", &line);
        }
        svg.clipped((x.start(), top - 1.0), (x.end() - x.start(), bottom - top + 2.0), &format!("s{i}"), |svg| {
            for (arm, points) in &lines {
                let pixels: Vec<(f64, f64)> = points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
                svg.polyline(&pixels, &format!("{} curve thin", arm.class), arm.dash);
            }
        });
        svg.line((x.start(), bottom), (x.end(), bottom), "axis");
    }

    /// The time that is steady in every trial shown.
    fn steady(&self) -> Option<(f64, f64)> {
        let from = self.timelines.iter().map(|t| t.steady_s.0).fold(f64::NEG_INFINITY, f64::max);
        let to = self.timelines.iter().map(|t| t.steady_s.1).fold(f64::INFINITY, f64::min);
        (from.is_finite() && to.is_finite() && to > from).then_some((from, to))
    }

    fn describe(&self, timeline: &Timeline) -> String {
        let (from, to) = timeline.steady_s;
        format!(
            "{}, block {}: steady state from {} to {}",
            self.arms.label(&timeline.arm),
            timeline.block,
            format::value(from, &Unit::Seconds),
            format::value(to, &Unit::Seconds)
        )
    }
}

/// Finite points, at most [`POINTS`] of them.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(POINTS).max(1);
    points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_most_is_drawn_first() {
        let names = [
            "host_cpu_irq_cpus",
            "guest_neighbour-1_cpu_total_cpus",
            "host_cpu_steal_cpus",
            "by_command_x",
            "operations_per_s",
        ];
        let line = || vec![(0.0, 1.0), (1.0, 1.0)];
        let series = names.iter().map(|name| ((*name).to_owned(), line())).collect();
        let timeline = Timeline { arm: "a".to_owned(), block: 1, steady_s: (0.0, 1.0), series };
        let order = super::series(&[timeline]);
        assert_eq!(order, ["operations_per_s", "by_command_x", "host_cpu_steal_cpus", "host_cpu_irq_cpus", names[1]]);
    }

    #[test]
    fn the_unit_is_read_from_the_end_of_the_name() {
        assert_eq!(named("operations_per_s"), ("operations of the driver".to_owned(), Unit::OperationsPerSecond));
        assert_eq!(named("goodput_bits_per_s"), ("goodput".to_owned(), Unit::BitsPerSecond));
        let cpus = Unit::Other("CPUs".to_owned());
        assert_eq!(named("guest_target_cpu_total_cpus"), ("measured guest, CPU".to_owned(), cpus.clone()));
        assert_eq!(named("guest_neighbour-2_cpu_total_cpus"), ("neighbour-2, CPU total".to_owned(), cpus));
        assert_eq!(named("host_run_queue_tasks").1, Unit::Count);
        assert_eq!(named("memory_available_bytes"), ("memory available".to_owned(), Unit::Bytes));
        assert_eq!(named("run_queue"), ("run queue".to_owned(), Unit::Count));
        let printed = "esx ready, by the user\u{2019}s command".to_owned();
        assert_eq!(named("by_command_esx_ready_percent"), (printed, Unit::Other("%".to_owned())));
        let counted = "vm1 memory consumed, by the hypervisor\u{2019}s counters".to_owned();
        assert_eq!(named("by_hypervisor_vm1_memory_consumed_bytes"), (counted, Unit::Bytes));
        assert!(
            !named("by_command_operations_per_s").0.contains("driver"),
            "what others call theirs is not the driver's"
        );
    }
}
